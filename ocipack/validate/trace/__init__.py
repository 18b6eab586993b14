"""From a finding about a rendered object back to the file that says so.

kustomize's output has lost where its parts come from. So every place in the tree that could have
said the value is gathered: the object's own document, patches, generators, and the fields of the
kustomizations that it went through. One that says exactly the value that was rendered, and is
the only one or has the last word, is the origin. Where that is not sure, nothing is claimed: the
finding stays with the kustomization of its root, without a line, since a wrong line costs more
than none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from ocipack.k8s.kustomization.paths import View
from ocipack.k8s.kustomization.walk import Root
from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import split
from ocipack.report import Finding, Report
from ocipack.validate.trace import generated
from ocipack.validate.trace.layers import Layer, Read, Source, Stack
from ocipack.validate.trace.patches import Patch, may_apply, patches, sets
from ocipack.validate.trace.spots import IDENTITY, UNKNOWN, Said, Spot, Tokens, agrees, pointer


def traced(
    report: Report,
    resources: Iterable[Resource],
    roots: Iterable[Root],
    names: Iterable[str],
    read: Read,
) -> Report:
    """`report` with its findings about rendered `resources` placed in the files of the tree.

    `roots` are what was rendered; `names` and `read` give the files that it was rendered from.
    """
    return Tracer(names, read).place(report, resources, roots)


def _last(stages: list[list[Said]]) -> Spot | None:
    """The place that decides: the only one, or the only one of the last stage that says it.

    Later stages work on what earlier ones made, so the last word counts, if it is surely said.
    """
    saying = [stage for stage in stages if stage]
    if not saying:
        return None
    spots = {said.spot for said in saying[-1]}
    if len(spots) != 1 or UNKNOWN in spots:
        return None
    everything = {said.spot for stage in saying for said in stage}
    sure = all(said.surely for said in saying[-1])
    return spots.pop() if sure or len(everything) == 1 else None


class Tracer:
    """Answers where the values of rendered objects come from; reads what it needs, once."""

    def __init__(self, names: Iterable[str], read: Read) -> None:
        self._names, self._read = names, read
        self._contents: dict[str, bytes] = {}
        self._sources: dict[str, dict[tuple[str, str, str], list[Source]]] = {}
        self._patches: dict[str, list[Patch]] = {}

    @cached_property
    def _stack(self) -> Stack:
        return Stack(View.of(self._names), self._content)

    def place(self, report: Report, resources: Iterable[Resource], roots: Iterable[Root]) -> Report:
        """`report` with its findings about `resources` placed, as far as they can be."""
        unplaced = {(f.file, f.subject) for f in report.findings if not f.line}
        about: defaultdict[tuple[str, str], list[Resource]] = defaultdict(list)
        for resource in resources if unplaced else ():
            key = (resource.origin.file, str(resource))
            if resource.origin.root and key in unplaced:
                about[key].append(resource)
        known = {str(root): root for root in roots}
        return Report.of(
            self._placed(finding, about.get((finding.file, finding.subject), []), known)
            for finding in report.findings
        )

    def _placed(self, finding: Finding, found: list[Resource], roots: dict[str, Root]) -> Finding:
        if finding.line or len(found) != 1:
            return finding
        root = roots.get(found[0].origin.root)
        spot = self.spot(found[0], root, split(finding.pointer)) if root is not None else None
        if spot is None:
            return finding
        return replace(finding, file=spot.file, line=spot.line, column=spot.column)

    def spot(self, resource: Resource, root: Root, tokens: Tokens) -> Spot | None:
        """The place that decides what is at `tokens` of an object of `root`; None if unsure."""
        known = self._of(root)
        kind = (resource.group, resource.kind)
        candidates = [*known.get((*kind, resource.name), []), *known.get((*kind, ""), [])]
        sources = [one for one in candidates if one.becomes(resource)]
        if len(sources) != 1:
            return None
        (source,) = sources
        opaque = any(layer.is_opaque(resource.kind) for layer in source.layers)
        if opaque and tokens not in IDENTITY:
            return None
        own = self._own(source, resource, tokens)
        stages = [[Said(own)] if own else []]
        stages += [self._said(resource, tokens, layer, source) for layer in source.layers]
        return _last(stages)

    def _said(self, resource: Resource, tokens: Tokens, layer: Layer, source: Source) -> list[Said]:
        """What one layer says about the value, whichever of its fields does."""
        known = {resource.name, *source.called}
        made = generated.generators(source, layer)
        found = list(generated.entries(resource, tokens, layer, made, self._stack))
        found += generated.fields(resource, tokens, layer, known)
        if layer.file not in self._patches:
            self._patches[layer.file] = list(patches(layer, self._stack))
        for patch in self._patches[layer.file]:
            if may_apply(patch, resource, known):
                found += sets(patch, resource.value, tokens)
        return found

    def _own(self, source: Source, resource: Resource, tokens: Tokens) -> Spot | None:
        """Where the object's own document says it."""
        if source.document is None or source.resource is None:
            return None
        there = () if tokens == () else agrees(resource.value, source.resource.value, tokens)
        if there is None:
            return None
        at = source.resource.origin
        line, column = source.document.locate(at.pointer + pointer(there))
        return Spot(at.file, line, column)

    def _of(self, root: Root) -> dict[tuple[str, str, str], list[Source]]:
        """The sources of a root by group, kind and what it may be called; "" if it has a hash."""
        key = str(root)
        if key not in self._sources:
            made: defaultdict[tuple[str, str, str], list[Source]] = defaultdict(list)
            for source in self._stack.sources(root.directory, root.resources):
                for name in set(source.called) if source.document else {""}:
                    made[source.group, source.kind, name].append(source)
            self._sources[key] = made
        return self._sources[key]

    def _content(self, name: str) -> bytes:
        if name not in self._contents:
            self._contents[name] = self._read(name)
        return self._contents[name]
