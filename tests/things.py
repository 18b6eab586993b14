"""Objects and the rules about them, made from literals."""

from __future__ import annotations

from typing import Any

from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.validate.apis import Apis
from ocipack.validate.schema import SchemaCheck


def thing(api: str, kind: str, **more: Any) -> Resource:
    return Resource({"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, **more})


def check(version: str = "", *, require: bool = False) -> SchemaCheck:
    return SchemaCheck(Apis(Catalog.of(version)), require=require)


def said(resource: Resource, version: str = "") -> list[tuple[str, str, str]]:
    """Rule, message and hint of each finding of the schemas about `resource`."""
    return [(f.rule, f.message, f.hint) for f in check(version)(resource)]


def definition(properties: dict[str, Any], **spec: Any) -> Resource:
    """The definition of a Thing of a.example.org/v1 whose `spec` has `properties`."""
    inner = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": inner}}
    return thing(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        spec={
            "group": "a.example.org",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}],
            **spec,
        },
    )
