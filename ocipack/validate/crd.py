"""CustomResourceDefinitions as schemas: what the API server does to an object of theirs.

A structural schema is converted to strict JSON Schema 2020-12, by position (a property may be
called `default` or `items`):

* an object with `properties` is closed, unless it has `additionalProperties` or preserves unknown
  fields; preserving opens one level only, declared fields below it stay strict
* bodies of `allOf`, `anyOf`, `oneOf` and `not` only check values: they close nothing and add no
  null
* `nullable` allows null; a null for a field with a default becomes the default; any other null is
  refused, as server-side apply does
* the root and embedded resources have `apiVersion`, `kind` and a strict `metadata`
* patterns are Go's and are translated; formats are the server's; unknown formats mean nothing

Defaults are filled in before an object is judged (`defaults.py`), since a required field may have
one. Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from ocipack.errors import IntegrityError, malformed
from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas.catalog import OBJECT_META, Catalog
from ocipack.report import Finding
from ocipack.validate import formats, goregex
from ocipack.validate.rules import Path, found, spell

_COPIED = {
    *("minLength", "maxLength", "multipleOf", "minItems", "maxItems", "uniqueItems"),
    *("minProperties", "maxProperties", "required"),
}
_BOUNDS = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}
_INTEGERS = {"int32": 2**31, "int64": 2**63}
_PRESERVE, _INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
_EMBEDDED = "x-kubernetes-embedded-resource"
_DEPTH = 200
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CustomKind:
    """One version of a custom kind: its structural schema and what the definition says of it.

    `schema` is None where the definition has none (an old one): any field is accepted then, as
    everywhere below an unpruned one (`preserveUnknownFields: true`).
    """

    api_version: str
    kind: str
    namespaced: bool
    served: bool
    deprecated: bool
    warning: str
    schema: Mapping[str, Any] | None
    pruned: bool
    source: Resource
    pointer: Path

    @property
    def group(self) -> str:
        """The API group."""
        return self.api_version.rpartition("/")[0]


def custom_kinds(resource: Resource) -> list[CustomKind]:
    """The versions that a CustomResourceDefinition declares; empty for any other object.

    Reads `v1`, and `v1beta1` with one schema for all versions. Raises IntegrityError for a
    definition whose shape cannot be read.
    """
    if resource.kind != "CustomResourceDefinition" or resource.group != "apiextensions.k8s.io":
        return []
    with malformed(f"{resource.place}: {resource}"):
        return list(_versions(resource))


def _versions(resource: Resource) -> Iterator[CustomKind]:
    spec = resource.value["spec"]
    shared = (spec.get("validation") or {}).get("openAPIV3Schema")
    versions = spec.get("versions") or [{"name": spec["version"], "served": True}]
    opened = spec.get("preserveUnknownFields", resource.api_version.endswith("/v1beta1"))
    for index, version in enumerate(versions):
        holder = version.get("schema")
        own = holder.get("openAPIV3Schema") if holder is not None else None
        schema = own if own is not None else shared
        if schema is not None and not isinstance(schema, Mapping):
            raise IntegrityError(f"{resource.place}: the schema of {version['name']} is no mapping")
        yield CustomKind(
            api_version=f"{spec['group']}/{version['name']}",
            kind=spec["names"]["kind"],
            namespaced=spec.get("scope") != "Cluster",
            served=version.get("served", True) is not False,
            deprecated=bool(version.get("deprecated")),
            warning=str(version.get("deprecationWarning") or ""),
            schema=schema,
            pruned=not opened,
            source=resource,
            pointer=("spec", "versions", index, "schema", "openAPIV3Schema")
            if own is not None
            else ("spec", "validation", "openAPIV3Schema"),
        )


@dataclass(slots=True)
class Conversion:
    """Converts one custom kind; what it could not express is in `findings`."""

    kind: CustomKind
    findings: list[Finding] = field(default_factory=list)

    def document(self, catalog: Catalog) -> Json:
        """The JSON Schema of the kind, without the definitions that `$defs` must hold.

        Raises IntegrityError if the schema is no schema.
        """
        if self.kind.schema is None:
            return {"type": "object"}
        with malformed(f"{self.kind.source.place}: {self.kind.source}"):
            converted = self._node(self.kind.schema, self.kind.pointer, root=True)
        converted["$defs"] = {
            name: catalog.definition(name) for name in catalog.closure(OBJECT_META)
        }
        return converted

    def _node(self, node: Mapping[str, Any], at: Path, *, root: bool = False) -> Json:
        """A node that prunes and closes."""
        if len(at) > _DEPTH:
            raise IntegrityError(f"{spell(at[:6])}…: nested deeper than {_DEPTH}")
        out = self._values(node, at)
        properties = {
            name: self._node(child, (*at, "properties", name))
            for name, child in (node.get("properties") or {}).items()
        }
        resource = root or node.get(_EMBEDDED) is True
        if resource:
            self._frame(out, properties)
        extra = node.get("additionalProperties")
        if properties or resource:
            out["properties"] = properties
        if isinstance(extra, Mapping):
            out["additionalProperties"] = self._node(extra, (*at, "additionalProperties"))
        elif extra is False or (
            extra is None
            and self.kind.pruned
            and _is_object(node, properties)
            and node.get(_PRESERVE) is not True
        ):
            # without `properties` the engine would not name the field that it refuses
            out |= {"properties": properties, "additionalProperties": False}
        if isinstance(node.get("items"), Mapping):
            out["items"] = self._node(node["items"], (*at, "items"))
        if node.get("nullable") is True:
            _allow_null(out)
        return out

    @staticmethod
    def _frame(out: Json, properties: Json) -> None:
        """What a whole object has, declared or not."""
        own = properties.get("metadata", {})
        properties["metadata"] = {"allOf": [{"$ref": f"#/$defs/{OBJECT_META}"}, _opened(own)]}
        for name in ("apiVersion", "kind"):
            properties[name] = {**properties.get(name, {}), "type": "string", "minLength": 1}
        out["required"] = sorted({*out.get("required", []), "apiVersion", "kind"})

    def _values(self, node: Mapping[str, Any], at: Path) -> Json:
        """What a node says of values, at any place."""
        out: Json = {key: deepcopy(node[key]) for key in _COPIED if key in node}
        integer_or_text = node.get(_INT_OR_STRING) is True or node.get("format") == "int-or-string"
        if integer_or_text:
            out["type"] = ["integer", "string"]
        elif isinstance(node.get("type"), str) and node["type"]:
            out["type"] = node["type"]
        if isinstance(node.get("enum"), list):
            out["enum"] = deepcopy(node["enum"])
        self._limits(node, out)
        self._text(node, at, out)
        for word in ("allOf", "anyOf", "oneOf"):
            if word in node and not (integer_or_text and _restates(node[word])):
                out[word] = [
                    self._check(child, (*at, word, index)) for index, child in enumerate(node[word])
                ]
        if isinstance(node.get("not"), Mapping):
            out["not"] = self._check(node["not"], (*at, "not"))
        return out

    @staticmethod
    def _limits(node: Mapping[str, Any], out: Json) -> None:
        """Bounds: OpenAPI's booleans as numbers, and those of the integer formats."""
        for bound, exclusive in _BOUNDS.items():
            if bound in node:
                out[exclusive if node.get(exclusive) is True else bound] = node[bound]
        size = _INTEGERS.get(str(node.get("format")))
        if size and node.get("type") == "integer":
            out["minimum"] = max(out.get("minimum", -size), -size)
            out["maximum"] = min(out.get("maximum", size - 1), size - 1)

    def _text(self, node: Mapping[str, Any], at: Path, out: Json) -> None:
        """Format and pattern."""
        name = f"crd-{node.get('format')}"
        if name in formats.CUSTOM:
            out["format"] = name
        pattern = node.get("pattern")
        if not pattern:
            return
        try:
            out["pattern"] = goregex.translate(str(pattern))
            out["x-go-pattern"] = pattern
        except goregex.Untranslatable as e:
            self.unchecked(pattern, (*at, "pattern"), str(e))

    def unchecked(self, pattern: str, at: Path, reason: str) -> None:
        """Report a pattern that fields are not checked against."""
        message = f"{spell(at)}: `{pattern}` is not checked: {reason}"
        self.findings.append(found("crd-pattern-unchecked", self.kind.source, message, at))

    def _check(self, node: Mapping[str, Any], at: Path) -> Json:
        """A node below a combination: values only."""
        out = self._values(node, at)
        if properties := node.get("properties"):
            out["properties"] = {
                name: self._check(child, (*at, "properties", name))
                for name, child in properties.items()
            }
        for word in ("items", "additionalProperties"):
            if isinstance(node.get(word), Mapping):
                out[word] = self._check(node[word], (*at, word))
        return out


def _is_object(node: Mapping[str, Any], properties: Json) -> bool:
    return node.get("type") == "object" or bool(properties)


def _opened(node: Json) -> Json:
    """What a definition says of metadata adds to the common fields; it closes nothing."""
    return {key: value for key, value in node.items() if key != "additionalProperties"}


def _restates(alternatives: object) -> bool:
    """Whether `anyOf` only repeats that a value is an integer or a text."""
    return isinstance(alternatives, list) and all(
        isinstance(one, Mapping) and set(one) <= {"type"} for one in alternatives
    )


def _allow_null(out: Json) -> None:
    if "type" in out:
        kinds = out["type"] if isinstance(out["type"], list) else [out["type"]]
        out["type"] = [*kinds, "null"]
    if "enum" in out and None not in out["enum"]:
        out["enum"] = [*out["enum"], None]


def without_bad_patterns(
    conversion: Conversion, document: Json, engine: Callable[[Any], Any]
) -> Any:
    """A validator of `document` by `engine`, which raises ValueError for what is no schema.

    Patterns that the engine refuses are dropped and reported. Raises IntegrityError if the
    schema is refused for another reason.
    """
    try:
        return engine(document)
    except ValueError:
        pass
    for path, node in list(_patterns(document, ())):
        try:
            engine({"pattern": node["pattern"]})
        except ValueError as e:
            conversion.unchecked(node.pop("x-go-pattern"), path, str(e).partition("\n")[0])
            del node["pattern"]
    try:
        return engine(document)
    except ValueError as e:
        where = f"{conversion.kind.source.place}: {conversion.kind.source}"
        raise IntegrityError(f"{where}: {str(e).partition(chr(10))[0]}") from e


def _patterns(node: Any, at: Path) -> Iterator[tuple[Path, Json]]:
    """Every converted node that has a pattern, with its path in the converted document."""
    if isinstance(node, dict):
        if "x-go-pattern" in node and isinstance(node["x-go-pattern"], str):
            yield at, node
        for name, child in node.items():
            if name not in {"enum", "$defs"}:
                yield from _patterns(child, (*at, name))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _patterns(child, (*at, index))
