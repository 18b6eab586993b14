"""Lists that the server treats as maps or sets: one entry for each key, each value once.

JSON Schema cannot say it, so the places are collected from the schema once for each kind and
visited in each object. Server-side apply, which Flux uses, refuses a double entry; a plain create
lets it pass and keeps one. Deprecated fields are found on the same walk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ocipack.k8s.resource import MAPS, Resource
from ocipack.k8s.schemas.catalog import OBJECT_META, Catalog
from ocipack.report import Finding
from ocipack.validate.apis import Apis
from ocipack.validate.rules import Path, found, spell

_KEY_DEFAULTS = {"protocol": "TCP"}  # the keys of built-in lists that the server fills in


@dataclass(slots=True)
class Plan:
    """What to look at below one node: only branches that lead to something are there."""

    fields: dict[str, Plan] = field(default_factory=dict)
    each: Plan | None = None
    values: Plan | None = None
    keys: tuple[tuple[str, Any], ...] = ()
    unique: bool = False
    deprecated: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look at."""
        return not (
            self.fields or self.each or self.values or self.keys or self.unique or self.deprecated
        )


class Plans:
    """Makes plans from the schemas of one Kubernetes version, each definition once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[str, Plan] = {}
        self._open: set[str] = set()

    def named(self, name: str) -> Plan:
        """The plan of a definition; one that contains itself gets a plan that does, too."""
        if name not in self._known:
            plan = self._known[name] = Plan()
            self._open.add(name)
            self._fill(plan, self._catalog.definition(name))
            self._open.discard(name)
        return self._known[name]

    def of(self, node: Any) -> Plan | None:
        """The plan of a schema node, None if it is empty."""
        if not isinstance(node, Mapping):
            return None
        if name := str(node.get("$ref", "")).removeprefix("#/$defs/"):
            plan = self.named(name)
            if node.get("deprecated") is True:
                return replace(plan, deprecated=True)
            return plan if name in self._open or not plan.empty else None
        plan = Plan()
        self._fill(plan, node)
        return None if plan.empty else plan

    def _fill(self, plan: Plan, node: Mapping[str, Any]) -> None:
        for name, child in _mapping(node.get("properties")).items():
            if (below := self.of(child)) is not None:
                plan.fields[name] = below
        plan.each = self.of(node.get("items"))
        plan.values = self.of(node.get("additionalProperties"))
        plan.unique = node.get("x-kubernetes-list-type") == "set"
        plan.deprecated = node.get("deprecated") is True
        if node.get("x-kubernetes-list-type") == "map":
            plan.keys = tuple(_keys(node))


def _keys(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The keys of a list that is a map, each with its default."""
    items = _mapping(node.get("items"))
    declared = _mapping(items.get("properties"))
    keys = node.get("x-kubernetes-list-map-keys")
    for name in keys if isinstance(keys, list) else ():
        if isinstance(name, str):
            default = _KEY_DEFAULTS.get(name) if "$ref" in items else None
            yield name, _mapping(declared.get(name)).get("default", default)


def _mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one: definitions may hold anything."""
    return value if isinstance(value, Mapping) else {}


@dataclass(slots=True)
class ListCheck:
    """The rule about double entries and deprecated fields; call it with each object."""

    apis: Apis
    _plans: Plans = field(init=False)
    _kinds: dict[tuple[str, str], Plan | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._plans = Plans(self.apis.catalog)

    def __call__(self, resource: Resource) -> Iterator[Finding]:
        """The findings about `resource`."""
        key = (resource.api_version, resource.kind)
        if key not in self._kinds:
            self._kinds[key] = self._plan(*key)
        plan = self._kinds[key]
        if plan is None:
            return
        met: list[Met] = []
        visit(plan, resource.value, (), met)
        for rule, path, text in met:
            yield found(rule, resource, f"{spell(path)}: {text}", path)

    def _plan(self, api_version: str, kind: str) -> Plan | None:
        if name := self.apis.catalog.find(api_version, kind):
            return self._plans.named(name)
        custom = self.apis.declared(api_version, kind)
        if custom is None:
            return None
        plan = self._plans.of(custom.schema) or Plan()
        plan.fields["metadata"] = self._plans.named(OBJECT_META)
        return plan


Met = tuple[str, Path, str]  # rule, path, text


def visit(plan: Plan, value: Any, path: Path, out: list[Met]) -> None:
    """Add every finding at and below `value` to `out`."""
    if isinstance(value, MAPS):
        for name, below in plan.fields.items():
            child = value.get(name)
            if child is not None:
                if below.deprecated:
                    out.append(("field-deprecated", (*path, name), "this field is deprecated"))
                visit(below, child, (*path, name), out)
        if plan.values:
            for name in value.keys() - plan.fields.keys():
                visit(plan.values, value[name], (*path, name), out)
    elif isinstance(value, list):
        _visit_list(plan, value, path, out)


def _visit_list(plan: Plan, items: list[Any], path: Path, out: list[Met]) -> None:
    if (plan.keys or plan.unique) and len(items) > 1:
        out += _doubles(plan, items, path)
    if plan.each:
        for index, item in enumerate(items):
            visit(plan.each, item, (*path, index), out)


def _doubles(plan: Plan, items: list[Any], path: Path) -> Iterator[Met]:
    first: dict[Any, int] = {}
    for index, item in enumerate(items):
        named = _identity(plan, item)
        if named is not None and first.setdefault(named, index) != index:
            shown = ", ".join(f"{name}={v}" for name, v in named if v is not None).lstrip("=")
            there = f"{spell(path)}[{first[named]}]"
            yield "duplicate-entry", (*path, index), f"{shown} is there already, at {there}"


def _identity(plan: Plan, item: Any) -> tuple[tuple[str, Any], ...] | None:
    """What makes an entry the same as another; None if it has nothing of the kind."""
    if plan.unique:
        return (("", item),) if isinstance(item, str | int | float) else None
    if not isinstance(item, MAPS):
        return None
    pairs = []
    for name, default in plan.keys:
        value = item.get(name)
        pairs.append((name, default if value is None else value))
    hashable = all(isinstance(value, str | int | float | None) for _, value in pairs)
    return tuple(pairs) if hashable and any(v is not None for _, v in pairs) else None
