"""The recorded answers of an API server, and what our rules say about the same objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.report import Finding, Severity
from ocipack.validate import objects
from ocipack.validate.apis import Apis
from ocipack.validate.checks import checks
from ocipack.validate.crd import custom_kinds
from ocipack.validate.schema import SchemaCheck

HERE = Path(__file__).parent / "vectors" / "validation"
SERVER = "1.36"


@dataclass(frozen=True)
class Case:
    id: str
    kind: str  # the class of fault
    decidable: bool  # the object and its definition decide
    refused: bool
    fields: tuple[str, ...]
    value: Any


def lines(name: str) -> Iterator[dict[str, Any]]:
    with (HERE / name).open() as file:
        yield from map(json.loads, file)


def put(value: Any, pointer: str, *new: Any) -> Any:
    """`value` with `new` at `pointer`, or without what is there."""
    if not pointer:
        return new[0]
    *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))
    node = value
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node[part]
    key = int(last) if isinstance(node, list) else last
    if new:
        node[key] = new[0]
    else:
        del node[key]
    return value


@cache
def cases() -> tuple[Case, ...]:
    return made(lines("cases.jsonl"))


@cache
def flux_cases() -> tuple[Case, ...]:
    """Objects of Flux's kinds, judged by the definitions that Flux installs."""
    return made(json.loads((HERE / "flux.json").read_text()))


def made(rows: Iterable[dict[str, Any]]) -> tuple[Case, ...]:
    plain: dict[str, Any] = {}
    found = []
    for row in rows:
        value = row["object"] if "object" in row else deepcopy(plain[row["base"]])
        for change in row.get("changes", []):
            value = put(value, *change)
        plain[row["id"]] = deepcopy(value)
        if grow := row.get("grow"):
            value = put(value, grow["pointer"], grow["char"] * grow["count"])
        found.append(
            Case(
                row["id"],
                row["class"],
                row.get("scope", "object") == "object",
                row["verdict"] == "refused",
                tuple(row.get("fields", ())),
                value,
            )
        )
    return tuple(found)


def definitions() -> Iterator[Resource]:
    for name in ("crds-forge.jsonl", "crds-flux.jsonl"):
        for value in lines(name):
            yield Resource(value)


@cache
def rules() -> tuple[Any, ...]:
    apis = Apis(Catalog.of(SERVER))
    for definition in definitions():
        apis.add(custom_kinds(definition))
    return (objects.identity, *checks(SchemaCheck(apis)))


def findings(case: Case) -> list[Finding]:
    resource = Resource(case.value)
    return [finding for rule in rules() for finding in rule(resource)]


def errors(case: Case) -> list[Finding]:
    return [finding for finding in findings(case) if finding.severity is Severity.ERROR]
