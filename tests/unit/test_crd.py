"""Custom resources as an API server treats them: structural schemas, rule by rule."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from things import check, definition, said, thing

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import Resource
from ocipack.validate.crd import custom_kinds
from ocipack.validate.defaults import Defaults

TEXT = {"type": "string"}
ONE = "spec.a unsupported value 'y': one of x"


def rules(properties: dict[str, Any], spec: Any, **more: Any) -> list[tuple[str, str]]:
    """Rule and pointer of each finding about a Thing whose `spec` has `properties`."""
    schemas = check()
    schemas.apis.add(custom_kinds(definition(properties)))
    found = list(schemas(thing("a.example.org/v1", "Thing", spec=spec, **more)))
    return [(f.rule, f.pointer) for f in found]


@pytest.mark.parametrize(
    ("properties", "good", "bad", "rule"),
    [
        # objects are closed, unless they say otherwise
        ({"a": TEXT}, {"a": "x"}, {"b": "x"}, "unknown-field"),
        ({"a": {"type": "object"}}, {"a": {}}, {"a": {"b": 1}}, "unknown-field"),
        (
            {"a": {"type": "object", "additionalProperties": {"type": "integer"}}},
            {"a": {"x": 1}},
            {"a": {"x": "1"}},
            "wrong-type",
        ),
        # preserving opens one level; declared fields below it stay strict
        (
            {
                "a": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"b": {"type": "object", "properties": {"c": TEXT}}},
                }
            },
            {"a": {"any": [1], "b": {"c": "x"}}},
            {"a": {"b": {"d": "x"}}},
            "unknown-field",
        ),
        # int-or-string, whatever repeats it
        ({"a": {"x-kubernetes-int-or-string": True}}, {"a": 1}, {"a": True}, "wrong-type"),
        (
            {
                "a": {
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                    "x-kubernetes-int-or-string": True,
                    "pattern": "^[0-9]+%$",
                }
            },
            {"a": "5%"},
            {"a": "5"},
            "pattern-mismatch",
        ),
        (
            {
                "a": {
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                    "x-kubernetes-int-or-string": True,
                    "nullable": True,
                }
            },
            {"a": None},
            {"a": []},
            "wrong-type",
        ),
        (  # alternatives that say more than the types stay
            {
                "a": {
                    "anyOf": [{"type": "integer", "minimum": 5}, {"type": "string"}],
                    "x-kubernetes-int-or-string": True,
                }
            },
            {"a": 5},
            {"a": 4},
            "schema-combination",
        ),
        # formats in alternatives, which have no type
        (
            {"a": {"type": "string", "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}},
            {"a": "::1"},
            {"a": "x"},
            "schema-combination",
        ),
        # null: where it is nullable, or has a default
        ({"a": {"type": "string", "nullable": True}}, {"a": None}, {"a": 1}, "wrong-type"),
        ({"a": {"type": "string", "default": "x"}}, {"a": None}, {"a": 1}, "wrong-type"),
        ({"a": TEXT}, {}, {"a": None}, "wrong-type"),
        (
            {"a": {"type": "string", "enum": ["x"], "nullable": True}},
            {"a": None},
            {"a": "y"},
            "unsupported-value",
        ),
        # combinations check values: they close nothing
        (
            {
                "a": {
                    "type": "object",
                    "properties": {"b": TEXT, "c": TEXT},
                    "oneOf": [
                        {"properties": {"b": {}}, "required": ["b"]},
                        {"properties": {"c": {}}, "required": ["c"]},
                    ],
                }
            },
            {"a": {"b": "x"}},
            {"a": {"b": "x", "c": "y"}},
            "schema-combination",
        ),
        (
            {"a": {"not": {"enum": ["x"]}, "type": "string"}},
            {"a": "y"},
            {"a": "x"},
            "schema-combination",
        ),
        # bounds in the words of OpenAPI 3.0
        (
            {"a": {"type": "integer", "maximum": 5, "exclusiveMaximum": True}},
            {"a": 4},
            {"a": 5},
            "out-of-range",
        ),
        (
            {"a": {"type": "integer", "maximum": 5, "exclusiveMaximum": False}},
            {"a": 5},
            {"a": 6},
            "out-of-range",
        ),
        (
            {"a": {"type": "integer", "format": "int32"}},
            {"a": 2**31 - 1},
            {"a": 2**31},
            "out-of-range",
        ),
        (
            {"a": {"type": "integer", "format": "int64"}},
            {"a": 2**63 - 1},
            {"a": 2**63},
            "out-of-range",
        ),
        # formats are the server's, unknown ones mean nothing
        (
            {"a": {"type": "string", "format": "ipv4"}},
            {"a": "1.2.3.4"},
            {"a": "::1"},
            "invalid-format",
        ),
        (
            {"a": {"type": "string", "format": "uri-reference"}},
            {"a": "not a uri"},
            {"a": 1},
            "wrong-type",
        ),
        ({"a": {"type": "string", "format": "regex"}}, {"a": "("}, {"a": 1}, "wrong-type"),
        # patterns are Go's
        (
            {"a": {"type": "string", "pattern": "(?i)^x$"}},
            {"a": "X"},
            {"a": "y"},
            "pattern-mismatch",
        ),
        # a property may be called like a keyword
        (
            {"default": TEXT, "items": TEXT, "properties": TEXT, "enum": TEXT, "description": TEXT},
            {"default": "a", "items": "b", "properties": "c", "enum": "d", "description": "e"},
            {"default": 1},
            "wrong-type",
        ),
        # embedded resources are whole objects
        (
            {
                "a": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            },
            {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"labels": {"a": "b"}}, "c": 1}},
            {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"lables": {}}}},
            "unknown-field",
        ),
        (
            {
                "a": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": TEXT},
                }
            },
            {"a": {"apiVersion": "v1", "kind": "X", "spec": "x"}},
            {"a": {"kind": "X", "spec": "x"}},
            "required-field",
        ),
    ],
)
def test_structural_rules(properties: dict[str, Any], good: Any, bad: Any, rule: str) -> None:
    assert rules(properties, good) == []
    assert [found for found, _ in rules(properties, bad)] == [rule]


@pytest.mark.parametrize(
    ("node", "value", "message"),
    [
        ({"type": "string", "minLength": 2}, "x", "must have at least 2 characters"),
        ({"type": "string", "minLength": 1}, "", "must have at least 1 characters"),
        ({"type": "string", "maxLength": 1}, "xy", "must have at most 1 characters"),
        ({"type": "array", "minItems": 2, "items": TEXT}, ["x"], "must have at least 2 items"),
        ({"type": "object", "minProperties": 1}, {}, "must have at least 1 fields"),
        ({"type": "integer", "minimum": 2}, 1, "must be at least 2, not 1"),
        ({"type": "integer", "maximum": 2}, 3, "must be at most 2, not 3"),
        ({"type": "string", "pattern": r"^\d$"}, "x", r"must match `^\d$`, not 'x'"),
        ({"type": "string", "format": "ipv4"}, "x", "must be in the format ipv4, not 'x'"),
        ({"type": "string", "format": "ipv4"}, "", "must be in the format ipv4; it is empty"),
        ({"type": "number", "multipleOf": 2}, 3, "does not meet `multipleOf` of its schema"),
        (
            {"anyOf": [{"enum": ["x"]}, {"minLength": 3}], "type": "string"},
            "y",
            f"must meet at least one of: {ONE}; or spec.a must have at least 3 characters",
        ),
        (
            {"not": {"enum": ["x"]}, "type": "string"},
            "x",
            "meets a combination that its schema forbids",
        ),
        (
            {"oneOf": [{"minLength": 1}, {"maxLength": 3}], "type": "string"},
            "y",
            "must meet exactly one alternative, but meets 2",
        ),
    ],
)
def test_words(node: dict[str, Any], value: Any, message: str) -> None:
    schemas = check()
    schemas.learn([definition({"a": node})])
    found = schemas(thing("a.example.org/v1", "Thing", spec={"a": value}))
    assert [f.message for f in found] == [f"spec.a: {message}"]


def test_the_root_has_the_fields_of_every_object() -> None:
    assert rules({}, {}) == []
    assert rules({}, {}, more=1) == [("unknown-field", "/more")]
    resource = thing("a.example.org/v1", "Thing", spec={})
    schemas = check()
    schemas.apis.add(custom_kinds(definition({})))
    value = {**resource.value, "metadata": {"name": "x", "lables": {"a": "b"}}}
    (finding,) = schemas(Resource(value))
    assert finding.message == "metadata.lables: unknown field"
    assert finding.hint == "did you mean `labels`?"


def test_a_required_field_with_a_default_may_be_absent() -> None:
    item = {"type": "object", "required": ["b"], "properties": {"b": {**TEXT, "default": "x"}}}
    assert rules({"a": {"type": "array", "items": item}}, {"a": [{}]}) == []
    del item["properties"]["b"]["default"]  # type: ignore[index] # a literal
    assert rules({"a": {"type": "array", "items": item}}, {"a": [{}]}) == [
        ("required-field", "/spec/a/0/b")
    ]


def test_defaulting_fills_what_is_there_and_changes_nothing() -> None:
    schema = {
        "properties": {
            "a": {"properties": {"b": {"default": 1}, "c": {"default": 2, "nullable": True}}},
            "d": {"default": {"e": 3}, "properties": {"e": {}, "f": {"default": 4}}},
            "g": {"additionalProperties": {"properties": {"h": {"default": 5}}}},
            "i": {"items": {"properties": {"j": {"default": 6}}}},
            "k": {"properties": {"l": {"default": 7}}},
            "m": {},
        }
    }
    plan = Defaults.of(schema)
    assert plan
    value = {"a": {"b": None, "c": None}, "g": {"x": {}}, "i": [{}, {"j": 0}], "m": {"n": 1}}
    before = deepcopy(value)
    assert plan.apply(value) == {
        "a": {"b": 1, "c": None},
        "d": {"e": 3, "f": 4},
        "g": {"x": {"h": 5}},
        "i": [{"j": 6}, {"j": 0}],
        "m": {"n": 1},
    }
    assert value == before
    assert plan.apply({"i": {"j": None}, "g": [], "a": 1}) == {
        "i": {"j": None},
        "g": [],
        "a": 1,
        "d": {"e": 3, "f": 4},
    }
    assert Defaults.of({"properties": {"a": {"enum": [{"default": 1}]}}}) is None


def test_a_pattern_that_cannot_be_translated_is_reported_and_not_used() -> None:
    properties = {"a": {"type": "string", "pattern": "^(?=x)"}}
    where = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a/pattern"
    assert rules(properties, {"a": "y"}) == [("crd-pattern-unchecked", where)]


def test_a_pattern_that_the_engine_refuses_is_reported_and_not_used() -> None:
    properties = {"a": {"type": "string", "pattern": r"\p{NoSuchScript}"}, "b": TEXT}
    found = rules(properties, {"a": "y", "c": 1})
    assert [rule for rule, _ in found] == ["crd-pattern-unchecked", "unknown-field"]


def test_a_schema_that_is_none_is_said_of_its_definition() -> None:
    schemas = check()
    schemas.apis.add(custom_kinds(definition({"a": {"type": "text"}})))
    found = list(schemas(thing("a.example.org/v1", "Thing", spec={})))
    assert [(f.rule, f.subject) for f in found] == [
        ("crd-invalid", "CustomResourceDefinition x"),
        ("schema-missing", "Thing x"),
    ]
    assert not list(schemas(thing("a.example.org/v1", "Thing", spec={})))


def test_faults_of_a_definition_are_found_without_objects_of_it() -> None:
    crd = definition({"a": {"type": "string", "pattern": "(?=x)"}})
    schemas = check()
    assert not list(schemas.apis.learn(crd))
    assert "crd-pattern-unchecked" in [f.rule for f in schemas(crd)]


def test_a_definition_that_cannot_be_read_is_said_so() -> None:
    crd = thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec={"group": "a.b"})
    schemas = check()
    assert [f.rule for f in schemas.apis.learn(crd)] == ["crd-invalid"]
    assert "required-field" in [f.rule for f in schemas(crd)]


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        [],
        {"group": "a.b"},
        {"group": "a.b", "names": []},
        {"group": "a.b", "names": {"kind": "X"}, "versions": [1]},
        {"group": "a.b", "names": {"kind": "X"}, "versions": [{"name": "v1", "schema": []}]},
    ],
)
def test_definitions_of_another_shape_are_integrity_errors(spec: Any) -> None:
    crd = thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec=spec)
    with pytest.raises(IntegrityError):
        custom_kinds(crd)


def test_deep_schemas_are_refused() -> None:
    node: dict[str, Any] = {"type": "object"}
    for _ in range(400):
        node = {"type": "object", "properties": {"a": node}}
    schemas = check()
    schemas.apis.add(custom_kinds(definition({"a": node})))
    first, *_ = schemas(thing("a.example.org/v1", "Thing", spec={}))
    assert first.rule == "crd-invalid"
    assert "deeper" in first.message


def test_other_objects_define_nothing() -> None:
    crd = definition({})
    assert custom_kinds(crd)
    assert not custom_kinds(Resource({**crd.value, "kind": "Other"}))
    assert not custom_kinds(Resource({**crd.value, "apiVersion": "example.org/v1"}))


def test_definitions_are_learnt_and_the_later_wins() -> None:
    schemas = check()
    broken = thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec=None)
    schemas.learn([thing("v1", "Pod"), definition({"a": TEXT}), broken, definition({"b": TEXT})])
    found = list(schemas(thing("a.example.org/v1", "Thing", spec={"a": "x"})))
    assert [f.rule for f in found] == ["crd-invalid", "unknown-field"]
    assert found[1].pointer == "/spec/a"


def test_old_definitions() -> None:
    crd = thing(
        "apiextensions.k8s.io/v1beta1",
        "CustomResourceDefinition",
        spec={
            "group": "a.example.org",
            "version": "v1",
            "names": {"kind": "Thing", "plural": "things"},
            "validation": {
                "openAPIV3Schema": {"properties": {"spec": {"properties": {"a": TEXT}}}}
            },
        },
    )
    schemas = check()
    schemas.apis.add(custom_kinds(crd))
    assert not list(schemas(thing("a.example.org/v1", "Thing", spec={"b": 1}, more=1)))
    assert [f.rule for f in schemas(thing("a.example.org/v1", "Thing", spec={"a": 1}))] == [
        "wrong-type"
    ]


def test_versions_and_scope() -> None:
    versions = [
        {"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        {"name": "v1beta1", "served": True, "deprecated": True, "deprecationWarning": "gone soon"},
        {"name": "v1alpha1", "served": False},
    ]
    schemas = check()
    schemas.apis.add(custom_kinds(definition({}, versions=versions, scope="Cluster")))

    def about(version: str) -> list[tuple[str, str, str]]:
        found = schemas.apis(thing(f"a.example.org/{version}", "Thing"))
        return [(f.rule, f.message, f.hint) for f in found]

    assert about("v1") == []
    assert about("v1beta1") == [("api-deprecated", "gone soon", "served: a.example.org/v1")]
    assert [rule for rule, _, _ in about("v1alpha1")] == ["api-unserved"]
    assert [rule for rule, _, _ in about("v2")] == ["api-unserved"]
    assert schemas.apis.namespaced(thing("a.example.org/v1", "Thing")) is False
    near = list(schemas.apis(thing("a.example.org/v1", "Thingg")))
    assert [(f.rule, f.hint) for f in near] == [("unknown-kind", "did you mean `kind: Thing`?")]


def test_a_definition_cannot_replace_a_built_in_kind() -> None:
    crd = definition({}, group="apps", names={"kind": "Deployment", "plural": "deployments"})
    schemas = check()
    schemas.apis.add(custom_kinds(crd))
    assert [rule for rule, _, _ in said(thing("apps/v1", "Deployment", spec={"a": 1}))]
    assert not schemas.apis.custom
