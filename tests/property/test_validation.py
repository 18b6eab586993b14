"""Whatever an object looks like, rules answer with findings; whatever a pattern, with a reason."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
from hypothesis import given, settings, strategies as st
from things import check, definition

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import Resource
from ocipack.validate.checks import checks
from ocipack.validate.crd import custom_kinds
from ocipack.validate.formats import ALL
from ocipack.validate.goregex import Untranslatable, translate
from ocipack.validate.suggest import distance, nearest

SCHEMAS = check()
SCHEMAS.apis.add(custom_kinds(definition({"a": {"type": "array", "items": {"default": 1}}})))
RULES = checks(SCHEMAS)

KEYS = st.sampled_from(
    [
        *("spec", "metadata", "name", "namespace", "labels", "annotations", "data", "type"),
        *("template", "containers", "rules", "http", "paths", "backend", "service", "port"),
        *("selector", "matchLabels", "ports", "endpoints", "addresses", "addressType", "volumes"),
        *("status", "stringData", "a", "", "x/y", "sops", "versions", "names", "schema"),
    ]
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
KINDS = st.sampled_from(
    [
        *(("v1", "Pod"), ("v1", "Secret"), ("v1", "Service"), ("apps/v1", "Deployment")),
        *(("batch/v1", "CronJob"), ("networking.k8s.io/v1", "Ingress"), ("v1", "ConfigMap")),
        *(("rbac.authorization.k8s.io/v1", "Role"), ("discovery.k8s.io/v1", "EndpointSlice")),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        *(("a.example.org/v1", "Thing"), ("v1", "PersistentVolume"), ("x", "y")),
    ]
)


@settings(deadline=None)  # a kind is compiled when its first object comes
@given(KINDS, st.dictionaries(KEYS, VALUES, max_size=5))
def test_rules_never_fail_on_an_object(kind: tuple[str, str], value: dict[str, Any]) -> None:
    resource = Resource({"apiVersion": kind[0], "kind": kind[1], **value})
    for rule in RULES:
        for finding in rule(resource):
            assert finding.message


@settings(deadline=None)  # a kind is compiled when its first object comes
@given(st.dictionaries(st.sampled_from(["group", "names", "versions", "scope"]), VALUES))
def test_definitions_are_read_or_refused(spec: dict[str, Any]) -> None:
    value = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    try:
        kinds = custom_kinds(Resource({**value, "spec": spec}))
    except IntegrityError:
        return
    schemas = check()
    schemas.apis.add(kinds)


@settings(deadline=None)  # a kind is compiled when its first object comes
@given(
    st.dictionaries(
        st.sampled_from(["type", "properties", "items", "enum", "pattern", "anyOf", "format"]),
        VALUES,
    )
)
def test_schemas_are_converted_or_refused(schema: dict[str, Any]) -> None:
    schemas = check()
    crd = definition({"a": schema})
    assert not list(schemas.apis.learn(crd))
    thing = Resource({"apiVersion": "a.example.org/v1", "kind": "Thing", "spec": {"a": [1, {}]}})
    for rule in checks(schemas):
        assert all(finding.message for finding in (*rule(thing), *rule(crd)))


PATTERNS = st.text(alphabet=r"ab01()[]{}|*+?.^$\-:=<>PQEdwszAnsi,&~#é ", max_size=14)


@settings(deadline=None)  # a kind is compiled when its first object comes
@given(PATTERNS)
def test_patterns_are_translated_or_refused(pattern: str) -> None:
    try:
        text = translate(pattern)
    except Untranslatable:
        return
    try:
        jsonschema_rs.Draft202012Validator(
            {"pattern": text}, pattern_options=jsonschema_rs.RegexOptions()
        )
    except ValueError:
        return  # what is no expression in Go either is reported when the schema is compiled


@given(st.sampled_from(sorted(ALL)), st.text(max_size=40))
def test_formats_answer(name: str, text: str) -> None:
    assert ALL[name](text) in {True, False}


@given(st.text(alphabet="abc", max_size=8), st.text(alphabet="abc", max_size=8))
def test_distance_is_a_distance(a: str, b: str) -> None:
    assert distance(a, b, 9) == distance(b, a, 9)
    assert (distance(a, b, 9) == 0) == (a == b)
    assert distance(a, b, 9) <= max(len(a), len(b))
    assert distance(a, b, 1) == min(distance(a, b, 9), 2)


@given(st.text(max_size=10), st.lists(st.text(max_size=10)))
def test_nearest_is_one_of_them(name: str, known: list[str]) -> None:
    assert nearest(name, known) in {"", *known}
