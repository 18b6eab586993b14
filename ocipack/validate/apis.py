"""Whether a kind is served at all: unknown, removed, too new, deprecated, or custom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas.catalog import Catalog, Life
from ocipack.report import Finding
from ocipack.validate.crd import CustomKind
from ocipack.validate.rules import found
from ocipack.validate.suggest import distance, nearest


def _rank(version: str) -> int:
    return int(version.partition(".")[2] or 0)


@dataclass(slots=True)
class Apis:
    """The kinds that a cluster would serve: the built-in ones of a version, and `custom` ones."""

    catalog: Catalog
    custom: dict[tuple[str, str], CustomKind] = field(default_factory=dict)

    def add(self, kinds: Iterable[CustomKind]) -> None:
        """Make custom kinds known; of two definitions the later wins, as it would in a cluster."""
        for kind in kinds:
            if not self.catalog.find(kind.api_version, kind.kind):
                self.custom[kind.api_version, kind.kind] = kind

    def namespaced(self, resource: Resource) -> bool | None:
        """Whether objects of this kind live in a namespace; None if nobody knows."""
        if self.catalog.find(resource.api_version, resource.kind):
            return self.catalog.namespaced(resource.group, resource.kind)
        custom = self.custom.get((resource.api_version, resource.kind))
        return custom.namespaced if custom else None

    def refuses(self, resource: Resource) -> bool:
        """Whether `resource` is of a kind that the cluster certainly does not serve."""
        return any(f.rule != "api-deprecated" for f in self(resource))

    def __call__(self, resource: Resource) -> Iterator[Finding]:
        """The findings about the kind of `resource`."""
        api, kind = resource.api_version, resource.kind
        if not api or not kind:
            return
        if custom := self.custom.get((api, kind)):
            yield from self._custom(resource, custom)
            return
        life = self.catalog.life(api, kind)
        if self.catalog.find(api, kind) and life:
            yield from self._old(resource, life)
        elif life:
            yield self._gone(resource, life)
        else:
            yield from self._unknown(resource)

    def _custom(self, resource: Resource, custom: CustomKind) -> Iterator[Finding]:
        name = f"{custom.api_version} {custom.kind}"
        if not custom.served:
            message = f"{name} is not served: its CustomResourceDefinition says so"
            yield found(
                "api-unserved", resource, message, ("apiVersion",), hint=self._better(custom)
            )
        elif custom.deprecated:
            message = custom.warning or f"{name} is deprecated"
            yield found(
                "api-deprecated", resource, message, ("apiVersion",), hint=self._better(custom)
            )

    def _better(self, custom: CustomKind) -> str:
        served = sorted(
            other.api_version
            for other in self.custom.values()
            if (other.group, other.kind) == (custom.group, custom.kind)
            and other.served
            and not other.deprecated
        )
        return f"served: {', '.join(served)}" if served else ""

    def _old(self, resource: Resource, life: Life) -> Iterator[Finding]:
        """A served built-in kind that is on its way out."""
        since = life.deprecated
        if not (since and _rank(since) <= _rank(self.catalog.version)) and not life.removed:
            return
        when = f"; it is gone in Kubernetes {life.removed}" if life.removed else ""
        start = f" since Kubernetes {since}" if since else ""
        message = f"{resource.api_version} {resource.kind} is deprecated{start}{when}"
        hint = f"use {life.instead}" if life.instead else ""
        yield found("api-deprecated", resource, message, ("apiVersion",), hint=hint)

    def _gone(self, resource: Resource, life: Life) -> Finding:
        name = f"{resource.api_version} {resource.kind}"
        if life.since and _rank(life.since) > _rank(self.catalog.version):
            message = (
                f"{name} comes with Kubernetes {life.since}, the target is {self.catalog.version}"
            )
            other = self.catalog.newest(resource.api_version, resource.kind)
            hint = f"{self.catalog.version} has {other}" if other else ""
            return found("api-too-new", resource, message, ("apiVersion",), hint=hint)
        message = f"{name} was removed in Kubernetes {life.removed}"
        hint = f"use {life.instead}" if life.instead else "nothing replaces it"
        return found("api-removed", resource, message, ("apiVersion",), hint=hint)

    def _unknown(self, resource: Resource) -> Iterator[Finding]:
        group = resource.group
        if group in self.catalog.groups():
            yield self._no_such_kind(resource)
        elif versions := self._versions(resource):
            message = f"no {resource.kind} in {resource.api_version}"
            hint = f"served: {', '.join(versions)}"
            yield found("api-unserved", resource, message, ("apiVersion",), hint=hint)
        else:
            sure, meant = self._meant(resource)
            if sure:
                message = f"no {resource.kind} in {resource.api_version}"
                yield found("unknown-kind", resource, message, ("apiVersion",), hint=meant)

    def _no_such_kind(self, resource: Resource) -> Finding:
        """An unknown kind or version in a group of Kubernetes itself."""
        api, kind = resource.api_version, resource.kind
        message = f"Kubernetes {self.catalog.version} has no {kind} in {api}"
        if homes := self.catalog.serving(kind):
            hint = f"did you mean `apiVersion: {homes[0]}`?"
        elif meant := nearest(kind, self.catalog.served(api)):
            hint = f"did you mean `kind: {meant}`?"
        else:
            hint = ""
        path = ("apiVersion",) if homes else ("kind",)
        return found("unknown-kind", resource, message, path, hint=hint)

    def _versions(self, resource: Resource) -> list[str]:
        """The served versions of a custom kind that is known, in other versions than this."""
        return sorted(
            api
            for (api, kind), custom in self.custom.items()
            if kind == resource.kind and custom.group == resource.group and custom.served
        )

    def _meant(self, resource: Resource) -> tuple[bool, str]:
        """Whether an unknown kind certainly is a slip, and what was meant, as a hint."""
        group, kind = resource.group, resource.kind
        kinds = {custom.kind for custom in self.custom.values() if custom.group == group}
        if kinds:
            near = [other for other in sorted(kinds) if distance(kind, other, 1) == 1]
            return bool(near), f"did you mean `kind: {near[0]}`?" if near else ""
        slips = [other for other in sorted(self.catalog.groups()) if _slip(group, other)]
        homes = [api for api in self.catalog.serving(kind) if api.rpartition("/")[0] in slips]
        if "." not in group:  # no custom resource has a group without a dot
            homes = homes or self.catalog.serving(kind)
        if homes:
            return True, f"did you mean `apiVersion: {homes[0]}`?"
        return "." not in group or bool(slips), f"did you mean `{slips[0]}`?" if slips else ""


def _slip(group: str, other: str) -> bool:
    """Whether `group` is one typo, letter case or a forgotten domain away from `other`."""
    if not group or not other:
        return False
    folded = group.lower()
    return distance(folded, other, 1) <= 1 or (
        "." not in folded and other.startswith(folded + ".") and other.endswith(".k8s.io")
    )
