"""Whether a kind is served at all: unknown, removed, too new, deprecated, or custom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas import flux
from ocipack.k8s.schemas.catalog import Catalog, Life
from ocipack.report import Finding
from ocipack.validate.crd import CustomKind, custom_kinds
from ocipack.validate.rules import found
from ocipack.validate.suggest import distance, nearest


def _rank(version: str) -> int:
    return int(version.partition(".")[2] or 0)


class Verdict(NamedTuple):
    """One thing to say about a kind: a rule, a message, the field it is about, what to do."""

    rule: str
    message: str
    field: str = "apiVersion"
    hint: str = ""


@dataclass(slots=True)
class Apis:
    """The kinds that a cluster would serve: the built-in ones of a version, and `custom` ones.

    `custom` are those of definitions that were given. Of Flux's kinds that none of them defines
    the definitions of Flux `flux.VERSION` hold; `flux` is the version that the cluster runs, if
    somebody said so.
    """

    catalog: Catalog
    custom: dict[tuple[str, str], CustomKind] = field(default_factory=dict)
    flux: str = ""
    _groups: dict[str, tuple[CustomKind, ...]] = field(default_factory=dict)
    _known: dict[tuple[str, str], tuple[Verdict, ...]] = field(default_factory=dict)

    def add(self, kinds: Iterable[CustomKind]) -> None:
        """Make custom kinds known; of two definitions the later wins, as it would in a cluster."""
        for kind in kinds:
            if not self.catalog.find(kind.api_version, kind.kind):
                self.custom[kind.api_version, kind.kind] = kind
                self._known.clear()
                self._groups.pop(kind.group, None)

    def declared(self, api_version: str, kind: str) -> CustomKind | None:
        """A custom kind: as it was given, else as Flux defines its own."""
        if given := self.custom.get((api_version, kind)):
            return given
        own = self._of_flux(api_version.rpartition("/")[0])
        return next(
            (one for one in own if (one.api_version, one.kind) == (api_version, kind)), None
        )

    def _of_flux(self, group: str) -> tuple[CustomKind, ...]:
        """Flux's own kinds in `group`, without those that a given definition is about.

        A cluster has one definition of a kind: of the given one no version is added to.
        """
        if group not in self._groups:
            given = {custom.kind for custom in self.custom.values() if custom.group == group}
            self._groups[group] = tuple(
                kind
                for definition in flux.definitions(group)
                for kind in custom_kinds(Resource(definition))
                if kind.kind not in given
            )
        return self._groups[group]

    def _group(self, group: str) -> list[CustomKind]:
        """Every custom kind of a group."""
        given = [custom for custom in self.custom.values() if custom.group == group]
        return [*given, *self._of_flux(group)]

    def learn(self, resource: Resource) -> Iterator[Finding]:
        """Add the kinds of `resource` if it is a definition; say so if it cannot be read."""
        try:
            self.add(custom_kinds(resource))
        except IntegrityError as e:
            yield found("crd-invalid", resource, str(e), ("spec",), hint=e.hint)

    def namespaced(self, resource: Resource) -> bool | None:
        """Whether objects of this kind live in a namespace; None if nobody knows."""
        if self.catalog.find(resource.api_version, resource.kind):
            return self.catalog.namespaced(resource.group, resource.kind)
        custom = self.declared(resource.api_version, resource.kind)
        return custom.namespaced if custom else None

    def refuses(self, resource: Resource) -> bool:
        """Whether `resource` is of a kind that the cluster certainly does not serve."""
        return any(v.rule != "api-deprecated" for v in self.verdicts(resource))

    def __call__(self, resource: Resource) -> Iterator[Finding]:
        """The findings about the kind of `resource`."""
        for rule, message, field_name, hint in self.verdicts(resource):
            yield found(rule, resource, message, (field_name,), hint=hint)

    def verdicts(self, resource: Resource) -> tuple[Verdict, ...]:
        """What there is to say about a kind: found once, the same for each object of it."""
        key = (resource.api_version, resource.kind)
        if key not in self._known:
            self._known[key] = tuple(self._judge(*key)) if all(key) else ()
        return self._known[key]

    def _judge(self, api: str, kind: str) -> Iterator[Verdict]:
        if custom := self.declared(api, kind):
            yield from self._custom(custom)
            return
        life = self.catalog.life(api, kind)
        if self.catalog.find(api, kind) and life:
            yield from self._old(f"{api} {kind}", life)
        elif life:
            yield self._gone(api, kind, life)
        elif api.rpartition("/")[0] in self.catalog.groups():
            yield self._no_such_kind(api, kind)
        elif versions := self._versions(api, kind):
            yield self._unserved(api, kind, f"served: {', '.join(versions)}")
        else:
            sure, meant = self._meant(api, kind)
            if sure:
                yield Verdict("unknown-kind", f"no {kind} in {api}", hint=meant)

    def _custom(self, custom: CustomKind) -> Iterator[Verdict]:
        name = f"{custom.api_version} {custom.kind}"
        if not custom.served:
            message = f"{name} is not served: its CustomResourceDefinition says so"
            yield Verdict("api-unserved", message, hint=self._better(custom))
        elif custom.deprecated:
            message = custom.warning or f"{name} is deprecated"
            yield Verdict("api-deprecated", message, hint=self._better(custom))

    def _better(self, custom: CustomKind) -> str:
        served = sorted(
            other.api_version
            for other in self._group(custom.group)
            if other.kind == custom.kind and other.served and not other.deprecated
        )
        return f"served: {', '.join(served)}" if served else ""

    def _old(self, name: str, life: Life) -> Iterator[Verdict]:
        """A served built-in kind that is on its way out."""
        since = life.deprecated
        if not (since and _rank(since) <= _rank(self.catalog.version)) and not life.removed:
            return
        when = f"; it is gone in Kubernetes {life.removed}" if life.removed else ""
        start = f" since Kubernetes {since}" if since else ""
        hint = f"use {life.instead}" if life.instead else ""
        yield Verdict("api-deprecated", f"{name} is deprecated{start}{when}", hint=hint)

    def _gone(self, api: str, kind: str, life: Life) -> Verdict:
        """A built-in kind that the target does not serve: not any more, or not yet."""
        target = self.catalog.version
        if life.since and _rank(life.since) > _rank(target):
            message = f"{api} {kind} comes with Kubernetes {life.since}, the target is {target}"
            other = self.catalog.newest(api, kind)
            return Verdict("api-too-new", message, hint=f"{target} has {other}" if other else "")
        message = f"{api} {kind} was removed in Kubernetes {life.removed}"
        hint = f"use {life.instead}" if life.instead else "nothing replaces it"
        return Verdict("api-removed", message, hint=hint)

    def _no_such_kind(self, api: str, kind: str) -> Verdict:
        """An unknown kind or version in a group of Kubernetes itself."""
        message = f"Kubernetes {self.catalog.version} has no {kind} in {api}"
        if homes := self.catalog.serving(kind):
            return Verdict("unknown-kind", message, hint=f"did you mean `apiVersion: {homes[0]}`?")
        meant = nearest(kind, self.catalog.served(api))
        hint = f"did you mean `kind: {meant}`?" if meant else ""
        return Verdict("unknown-kind", message, "kind", hint)

    def _versions(self, api: str, kind: str) -> list[str]:
        """The served versions of a custom kind that is known, in other versions than this."""
        return sorted(
            custom.api_version
            for custom in self._group(api.rpartition("/")[0])
            if custom.kind == kind and custom.served
        )

    def _unserved(self, api: str, kind: str, served: str) -> Verdict:
        """A version of a known custom kind that its definition does not have.

        Of Flux's own kinds an older Flux may still have it: if it is the target, that is a warning.
        """
        group = api.rpartition("/")[0]
        if kind not in {own.kind for own in self._of_flux(group)}:
            return Verdict("api-unserved", f"no {kind} in {api}", hint=served)
        message = f"{api} {kind} is not served by Flux {flux.VERSION}"
        if self.flux and flux.before(self.flux):
            return Verdict("api-deprecated", f"{message}; the target is {self.flux}", hint=served)
        hint = f"{served}; an older Flux? --crd takes its definitions"
        return Verdict("api-unserved", message, hint=hint)

    def _meant(self, api: str, kind: str) -> tuple[bool, str]:
        """Whether an unknown kind certainly is a slip, and what was meant, as a hint."""
        group = api.rpartition("/")[0]
        kinds = {custom.kind for custom in self._group(group)}
        if kinds:
            near = [other for other in sorted(kinds) if distance(kind, other, 1) == 1]
            return bool(near), f"did you mean `kind: {near[0]}`?" if near else ""
        slips = [other for other in sorted(self.catalog.groups()) if _slip(group, other)]
        homes = [one for one in self.catalog.serving(kind) if one.rpartition("/")[0] in slips]
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
