"""Structural defaulting: what an API server adds to a custom resource before it judges it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Defaults:
    """The branches of a schema that lead to a default; all others are left alone.

    A field that is absent, or null without being nullable, takes its default. Objects that are
    not there get none of the defaults below them.
    """

    own: Any
    nullable: bool
    properties: Mapping[str, Defaults]
    extra: Defaults | None
    items: Defaults | None

    @classmethod
    def of(cls, schema: object) -> Defaults | None:
        """The defaults at and below a node of a structural schema, None if there are none."""
        if not isinstance(schema, Mapping):
            return None
        children = schema.get("properties")
        below = {
            name: plan
            for name, child in (children if isinstance(children, Mapping) else {}).items()
            if (plan := cls.of(child)) is not None
        }
        extra, items = cls.of(schema.get("additionalProperties")), cls.of(schema.get("items"))
        if "default" not in schema and not (below or extra or items):
            return None
        own = schema.get("default", _NOTHING)
        return cls(own, schema.get("nullable") is True, below, extra, items)

    def apply(self, value: Any) -> Any:
        """`value` with the defaults below it; the given value is not changed."""
        if isinstance(value, Mapping) and (self.properties or self.extra):
            return self._object(value)
        if isinstance(value, list) and self.items:
            return [self.items.apply(item) for item in value]
        return value

    def _object(self, value: Mapping[str, Any]) -> dict[str, Any]:
        out = dict(value)
        for name, plan in self.properties.items():
            if plan.own is not _NOTHING and (
                name not in out or (out[name] is None and not plan.nullable)
            ):
                out[name] = deepcopy(plan.own)
            if name in out:
                out[name] = plan.apply(out[name])
        if self.extra:
            for name in out.keys() - self.properties.keys():
                out[name] = self.extra.apply(out[name])
        return out
