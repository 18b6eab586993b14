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
from dataclasses import dataclass, field, replace

from ocipack.k8s.kustomization.paths import View
from ocipack.k8s.kustomization.walk import Root
from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import split
from ocipack.k8s.yaml.nodes import Mapping
from ocipack.report import Finding, Report
from ocipack.validate.trace import generated
from ocipack.validate.trace.layers import Layer, Read, Source, Stack, is_source, names
from ocipack.validate.trace.patches import Patch, may_apply, patches, sets
from ocipack.validate.trace.spots import IDENTITY, UNKNOWN, Said, Spot, Tokens, agrees, pointer


def traced(
    report: Report, resources: Iterable[Resource], roots: Iterable[Root], view: View, read: Read
) -> Report:
    """`report` with its findings about rendered `resources` placed in the files of the tree.

    `roots` are what was rendered; `view` and `read` give the tree that it was rendered from.
    """
    about: defaultdict[tuple[str, str], list[Resource]] = defaultdict(list)
    for resource in resources:
        if resource.origin.root:
            about[resource.origin.file, str(resource)].append(resource)
    tracer = Tracer(view, read, {str(root): root for root in roots})
    return Report.of(
        _placed(finding, about.get((finding.file, finding.subject), []), tracer)
        for finding in report.findings
    )


def _placed(finding: Finding, found: list[Resource], tracer: Tracer) -> Finding:
    if finding.line or len(found) != 1:
        return finding
    spot = tracer.spot(found[0], split(finding.pointer))
    if spot is None:
        return finding
    return replace(finding, file=spot.file, line=spot.line, column=spot.column)


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


@dataclass(frozen=True, slots=True)
class _Made:
    """What one root is made of."""

    sources: list[Source]
    layers: list[Layer]


@dataclass(slots=True)
class Tracer:
    """Answers where the values of rendered objects come from."""

    view: View
    read: Read
    roots: dict[str, Root]
    _made: dict[str, _Made] = field(default_factory=dict)
    _patches: dict[str, list[Patch]] = field(default_factory=dict)
    _contents: dict[str, bytes] = field(default_factory=dict)
    _stack: Stack = field(init=False)

    def __post_init__(self) -> None:
        self._stack = Stack(self.view, self._content)

    def spot(self, resource: Resource, tokens: Tokens) -> Spot | None:
        """The one place that says what is at `tokens` of a rendered object; None if unsure."""
        root = self.roots.get(resource.origin.root)
        if root is None:
            return None
        made = self._of(root)
        origins = [one for one in made.sources if is_source(one, resource)]
        entries = generated.generators(resource, made.layers)
        if len(origins) + bool(entries) != 1:
            return None
        origin = origins[0] if origins else None
        layers = origin.layers if origin else tuple(made.layers)
        if any(layer.is_opaque(resource.kind) for layer in layers) and tokens not in IDENTITY:
            return None
        own = self._own(origin, resource, tokens)
        stages = [[Said(own)] if own else []]
        stages += [self._said(resource, tokens, layer, origin, entries) for layer in layers]
        return _last(stages)

    def _said(
        self,
        resource: Resource,
        tokens: Tokens,
        layer: Layer,
        origin: Source | None,
        entries: list[tuple[Layer, Mapping]],
    ) -> list[Said]:
        """What one layer says about the value, whichever of its fields does."""
        known = {resource.name}
        if origin is not None:
            known.update(names(origin.resource.name, resource.kind, origin.layers))
        here = [entry for at, entry in entries if at is layer]
        found = list(generated.entries(resource, tokens, layer, here, self._stack))
        found += generated.fields(resource, tokens, layer, known)
        if layer.file not in self._patches:
            self._patches[layer.file] = list(patches(layer, self._stack))
        for patch in self._patches[layer.file]:
            if may_apply(patch, resource, known):
                found += sets(patch, resource.value, tokens)
        return found

    def _own(self, origin: Source | None, resource: Resource, tokens: Tokens) -> Spot | None:
        """Where the object's own document says it."""
        if origin is None:
            return None
        there = () if tokens == () else agrees(resource.value, origin.resource.value, tokens)
        if there is None:
            return None
        at = origin.resource.origin
        line, column = origin.document.locate(at.pointer + pointer(there))
        return Spot(at.file, line, column)

    def _of(self, root: Root) -> _Made:
        key = str(root)
        if key not in self._made:
            sources = self._stack.sources(root.directory, root.resources)
            layers = self._stack.layers(root.directory, root.resources)
            self._made[key] = _Made(sources, layers)
        return self._made[key]

    def _content(self, name: str) -> bytes:
        if name not in self._contents:
            self._contents[name] = self.read(name)
        return self._contents[name]
