"""Writing what a plan says: blobs, what is attached, the manifests, the listings."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import replace
from functools import partial
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from ocipack.copy.count import Copied
from ocipack.copy.names import Names
from ocipack.errors import NotFound, StoreError
from ocipack.oci.artifact import Artifact
from ocipack.oci.store import Remote, Watched

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ocipack.copy.crew import Crew, Job
    from ocipack.copy.plan import Part, Plan
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source, Store


class Delivery:
    """One plan on its way to one store.

    The order, and what it is for:

    1. blobs, the big ones first;
    2. what is attached, children before parents, with its digest tags: when a manifest can be
       found at the destination, its signatures are there already;
    3. the manifests, children before parents, so that what is there is complete at each moment;
    4. the listings of referrers, once for each subject;
    5. a last look: what is attached must be shown by the destination's own listings.

    A failure anywhere ends it, and no tag of the content has moved.
    """

    def __init__(self, plan: Plan, dest: Store, crew: Crew, job: Job) -> None:
        self._plan, self._dest, self._crew, self._job = plan, dest, crew, job
        self._source = Watched(plan.source, job.check)
        # asked once: to hold an object against a protocol is slow
        self._remote = dest if isinstance(dest, Remote) else None
        self._lock = threading.Lock()
        self._copied: list[Descriptor] = []
        self._skipped: list[Descriptor] = []
        self._mounted: list[Descriptor] = []
        self._names: dict[Descriptor, list[str]] = defaultdict(list)
        for part in plan.missing:
            if part.name:
                self._names[part.target].append(part.name)

    def run(self) -> Copied:
        """Write everything; raises what failed first."""
        plan = self._plan
        blobs = {part.target for part in plan.missing if not part.target.is_manifest}
        self._blobs(sorted(blobs, key=lambda blob: -blob.size))  # (1)
        late = {target: found for target, found in plan.manifests.items() if self._moves(target)}
        first = self._below(part.target for part in plan.missing if part.is_attached)
        self._manifests(first & late.keys())  # (2)
        self._name_what_is_here()
        self._manifests(late.keys() - first)  # (3)
        self._attach()  # (4)
        self._compare()  # (5)
        here = {part.target for part in plan.parts if part.target.digest in plan.present}
        return Copied.of(self._copied, [*here, *self._skipped], self._mounted, plan.kinds)

    def _moves(self, target: Descriptor) -> bool:
        return target.digest not in self._plan.present

    def _blobs(self, blobs: Iterable[Descriptor]) -> None:
        place = self._remote.shared if self._remote is not None else id(self._dest)
        for blob in blobs:
            self._crew.lead((place, blob.digest), self._job, partial(self._blob, blob))
        self._job.wait()

    def _blob(self, target: Descriptor) -> None:
        if self._dest.exists(target):
            self._skipped.append(target)
        elif self._push(target, self._source):
            self._mounted.append(target)

    def _push(self, target: Descriptor, source: Source, name: str = "") -> bool:
        mounted = False
        together = self._plan.attached or not target.is_manifest
        if self._remote is not None and together:
            mounted = self._remote.take(target, source, name=name)
        else:
            self._dest.push(target, source)
        self._copied.append(target)
        return mounted

    def _below(self, roots: Iterable[Descriptor]) -> set[Descriptor]:
        """`roots` and all manifests below them that were read."""
        found: set[Descriptor] = set()
        todo = list(roots)
        while todo:
            target = todo.pop()
            if target in found:
                continue
            found.add(target)
            known = self._plan.manifests.get(target)
            todo += [child for child in known.children if child.is_manifest] if known else []
        return found

    def _manifests(self, targets: Iterable[Descriptor]) -> None:
        """Push `targets`, each as soon as its children are there."""
        wanted = set(targets)
        known = self._plan.manifests
        sorter: TopologicalSorter[Descriptor] = TopologicalSorter(
            {one: [child for child in known[one].children if child in wanted] for one in wanted}
        )
        sorter.prepare()
        self._go_on(sorter)
        self._job.wait()

    def _go_on(self, sorter: TopologicalSorter[Descriptor]) -> None:
        with self._lock:
            able = sorter.get_ready()
        for target in able:
            self._job.start(self._next, sorter, target)

    def _next(self, sorter: TopologicalSorter[Descriptor], target: Descriptor) -> None:
        self._manifest(target)
        with self._lock:
            sorter.done(target)
        self._go_on(sorter)

    def _manifest(self, target: Descriptor) -> None:
        """Push one, at once under a digest tag where nothing can stand in its place."""
        known = self._plan.manifests[target]
        names = self._names.pop(target, [])
        free = [name for name in names if name not in self._plan.standing]
        name = free[0] if free and self._remote is not None else ""
        content = Artifact(known, {target.digest: known.raw})
        try:
            self._push(target, content, name)
        except NotFound:
            self._bring(known)
            self._push(target, content, name)
        for other in names:
            if other != name:
                self._tag(target, other)

    def _bring(self, known: Manifest) -> None:
        """Push once more what a store was said to have, and lacks now that it is needed.

        A registry collects what no manifest names yet, if it takes long enough to come.
        """
        for child in known.children:
            if not child.is_manifest and not self._dest.exists(child):
                self._push(child, self._source)

    def _tag(self, target: Descriptor, name: str) -> None:
        self._dest.tag(target, name, was=self._plan.standing.get(name))

    def _name_what_is_here(self) -> None:
        """Set the digest tags whose manifests the destination had already."""
        for target, names in self._names.items():
            for name in names:
                if target.digest in self._plan.present:
                    self._job.start(self._tag, target, name)
        self._job.wait()

    def _attach(self) -> None:
        remote = self._remote
        if remote is None or not self._plan.attached:
            return  # pushing has listed them
        unlisted = {part.target for part in self._plan.missing if part.subject is not None}
        entries: dict[Descriptor, list[Descriptor]] = defaultdict(list)
        for target, found in self._plan.manifests.items():
            if found.subject is not None and (target in unlisted or self._moves(target)):
                entries[found.subject.plain].append(_listed(target, found))
        for number, (subject, attached) in enumerate(entries.items()):
            self._job.start(remote.attach, subject, attached)
            if not number:
                self._job.wait()  # whether there is an API at all is then known to the others
        self._job.wait()

    def _compare(self) -> None:
        """StoreError unless the destination shows each digest tag; `attach` has seen the rest.

        A tag that its list leaves out is asked for by name: lists may come late.
        """
        shown = Names(target=True)
        for part in self._plan.missing:
            if part.name:
                self._job.start(self._shown, part, shown)
        self._job.wait()

    def _shown(self, part: Part, names: Names) -> None:
        if names.has(part.name, self._dest):
            return
        try:
            there = self._dest.resolve(part.name).digest
        except NotFound:
            there = None
        if there != part.target.digest:
            raise StoreError(
                f"{part.name}: written as {part.target.digest}, and the destination has "
                f"{there or 'nothing'} there now",
                hint="somebody else writes there, or the registry loses what it takes; run again",
            )


def _listed(target: Descriptor, found: Manifest) -> Descriptor:
    """Describe a referrer as a listing does, by the digest that it was found by."""
    return replace(target, annotations=found.annotations, artifact_type=found.artifact_type)
