"""What the definitions that come with ocipack say about Flux's objects, beside an API server.

Nothing is given: no CustomResourceDefinition, no server. `tests/interop/flux_verdicts.py` asks a
real one the same. What only an expression (CEL) refuses is not found, and listed by its class.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from answers import Case, cases, findings as by_given, flux_cases

from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.report import Finding, Severity
from ocipack.validate.apis import Apis
from ocipack.validate.checks import checks
from ocipack.validate.schema import SchemaCheck

RULES = {
    "unknown-field": {"unknown-field"},
    "type": {"wrong-type"},
    "null": {"wrong-type"},
    "enum": {"unsupported-value"},
    "pattern": {"pattern-mismatch"},
    "required": {"required-field"},
    "size": {"out-of-range"},
    "name": {"invalid-name"},
    "version": {"api-unserved"},
    "kind": {"unknown-kind"},
}
"""The rules that say so, by the class of fault."""

REFUSED = [case for case in flux_cases() if case.refused]


@cache
def rules() -> tuple[Any, ...]:
    return checks(SchemaCheck(Apis(Catalog.of("1.36"))))


def findings(case: Case) -> list[Finding]:
    return [finding for rule in rules() for finding in rule(Resource(case.value))]


@pytest.mark.parametrize(
    "case", [case for case in flux_cases() if not case.refused], ids=lambda case: case.id
)
def test_nothing_is_said_about_accepted_objects(case: Case) -> None:
    assert not findings(case)


@pytest.mark.parametrize("case", [c for c in REFUSED if c.kind in RULES], ids=lambda c: c.id)
def test_refused_objects_are_found_at_the_field_that_the_server_names(case: Case) -> None:
    (found,) = findings(case)
    assert found.severity is Severity.ERROR
    assert found.rule in RULES[case.kind]
    for field in case.fields:
        assert found.message.startswith(f"{field}: ")


def test_expressions_are_not_evaluated() -> None:
    assert [case.id for case in REFUSED if case.kind not in RULES and not findings(case)] == [
        case.id for case in REFUSED if case.kind == "cel"
    ]


OLDER = [case for case in cases() if str(case.value.get("apiVersion")).endswith("fluxcd.io/v1")]


@pytest.mark.parametrize("case", OLDER, ids=lambda case: case.id)
def test_the_same_is_said_as_by_a_definition_that_is_given(case: Case) -> None:
    ours = [f.message for f in findings(case) if f.rule != "object-identity"]
    assert ours == [f.message for f in by_given(case) if f.rule != "object-identity"]


def test_the_documented_numbers_are_the_measured_ones() -> None:
    text = (Path(__file__).parents[2] / "docs" / "validation-coverage.md").read_text()
    every, refused = len(flux_cases()), len(REFUSED)
    cel = sum(case.kind == "cel" for case in REFUSED)
    words = " ".join(text.split())
    assert f"{every} objects were sent" in words
    assert f"the {every - refused} that it accepted, and of the {refused} that it refused" in words
    assert f"but the {cel} that only an expression refuses" in words


def test_there_is_something_of_every_kind() -> None:
    kinds = {(case.value["apiVersion"], case.value["kind"]) for case in flux_cases()}
    assert len({kind for _, kind in kinds} - {"HelmRelese"}) == 15
    assert len(REFUSED) > 60
    assert len(OLDER) > 30
