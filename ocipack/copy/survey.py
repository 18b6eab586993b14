"""What a copy comes to: the walk over a source that is made once, before anything is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from ocipack.copy.plan import TAGGED, Kind, Part, Plan, attached_kind, child_kind
from ocipack.errors import NotFound, Rejected
from ocipack.oci.closure import Walk
from ocipack.oci.descriptor import INDEXES
from ocipack.oci.store import manifest

if TYPE_CHECKING:
    from ocipack.copy.crew import Job
    from ocipack.copy.names import Names
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.digest import Digest
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source, Store

ATTACHED = 1000
"""Manifests that one copy carries along because they are attached to what it moves."""

LISTED = 10_000
"""Entries in lists of referrers that are looked at for one copy, of all its manifests together."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a copy takes along.

    `attached`: what is attached to each manifest. `choose` says which entries of an index are
    wanted (None: all). `overwrite` lets digest tags of the destination be replaced. `gone_ok`: a
    referrer that is listed and not there is no error, since lists outlive what they list.
    """

    attached: bool = False
    choose: Callable[[Manifest], frozenset[Digest]] | None = None
    overwrite: bool = False
    gone_ok: bool = False


class Survey:
    """One walk: from the root down, and from every manifest to what is attached to it.

    What bounds it, whatever the source says:

    1. everything together is one closure with the limits of `oci.closure.Walk`, which meets
       nothing twice: a tag that leads back to its own subject, or an index that holds what it
       refers to, ends there;
    2. at most ATTACHED manifests are attached, no more are listed for one subject, and at most
       LISTED for all;
    3. a listing is hearsay: a referrer is one if its manifest, read and hashed, names the subject;
       one that the source does not have is an error, or `gone`;
    4. what the destination has is not read again, nor anything below it; but where attachments
       are wanted, indexes are read and their entries asked for one by one, since registries exist
       that take an index without its children;
    5. a digest tag that names other content at the destination is refused, unless the source has
       all that the destination has there, or it may be overwritten.
    """

    def __init__(
        self,
        source: Source,
        dest: Store,
        root: Descriptor,
        *,
        job: Job,
        wanted: Wanted,
        names: tuple[Names, Names],
    ) -> None:
        self._source, self._dest, self._root, self._job = source, dest, root, job
        self._wanted, (self._names, self._their_names) = wanted, names
        self._walk = Walk(root)
        self._lock = threading.Lock()
        self._attached: set[Digest] = set()
        self._listed = 0
        self._gone: set[Digest] = set()
        self._here: dict[Digest, bool] = {}
        self._parts: list[tuple[Part, bool]] = []
        self._manifests: dict[Descriptor, Manifest] = {}
        self._left_out: set[Digest] = set()
        self._standing: dict[str, Digest | None] = {}

    def plan(self) -> Plan:
        """Walk; raises what reading raises, IntegrityError beyond the limits, and Rejected."""
        self._meet(Part(self._root, child_kind(self._root)), 0, tree=True)
        self._job.wait()
        order = {kind: number for number, kind in enumerate(Kind)}
        parts = [
            replace(part, here=linked and self._here.get(part.target.digest, False))
            for part, linked in self._parts
        ]
        taken = {part.target for part in parts}  # not those who only claimed to belong
        parts.sort(key=lambda part: (order[part.kind], part.target.digest, part.name))
        return Plan(
            self._source,
            self._root,
            self._wanted.attached,
            tuple(parts),
            {target: found for target, found in self._manifests.items() if target in taken},
            frozenset(digest for digest, here in self._here.items() if here),
            frozenset(self._left_out),
            frozenset(self._gone),
            self._standing,
        )

    def _meet(self, part: Part, depth: int, *, tree: bool, linked: bool = True) -> None:
        """Take `part` in, and what is below it if it is new; `tree` if it is the root's own."""
        with self._lock:
            fresh = self._walk.meets(part.target, depth)  # (1)
            if fresh or part.is_attached:
                self._parts.append((part, linked))
        if fresh and part.target.is_manifest:
            self._job.start(self._enter, part, depth, tree)

    def _enter(self, part: Part, depth: int, tree: bool) -> None:  # noqa: FBT001 - called by the job
        target = part.target
        here = self._exists(target)
        if not part.name and self._wanted.attached:
            self._scan(target)
        if here and not (self._wanted.attached and target.media_type in INDEXES):
            return  # (4)
        found = self._read(target)
        wanted = None
        if tree and found.is_index and self._wanted.choose is not None:
            wanted = self._wanted.choose(found)
        for child in found.manifests if found.is_index else found.children:
            if wanted is not None and child.digest not in wanted:
                self._left_out.add(child.digest)
            elif child.is_manifest or not here:
                self._meet(Part(child.plain, child_kind(child)), depth + 1, tree=tree)

    def _exists(self, target: Descriptor) -> bool:
        known = self._here.get(target.digest)
        if known is None:
            known = self._here[target.digest] = self._dest.exists(target)
        return known

    def _read(self, target: Descriptor) -> Manifest:
        known = self._manifests.get(target)
        if known is None:
            with self._lock:
                self._walk.holds(target.size)
            known = self._manifests[target] = manifest(self._source, target)
        return known

    def _scan(self, node: Descriptor) -> None:
        """Look for what is attached to `node`, which has just been met."""
        # names first: a store without an API then knows which lists of referrers there are
        found = [suffix for suffix in TAGGED if self._may_have(node.digest.tag + suffix)]
        self._job.start(self._referrers, node)
        for suffix in found:
            self._job.start(self._digest_tag, node, suffix)

    def _may_have(self, name: str) -> bool:
        return self._names.may_have(name, self._source)

    def _count(self, target: Descriptor) -> None:
        with self._lock:
            self._attached.add(target.digest)
            if len(self._attached) > ATTACHED:  # (2)
                raise Rejected(
                    f"{self._root.digest}: more than {ATTACHED} manifests are attached to it"
                )

    def _referrers(self, node: Descriptor) -> None:
        listed = list(islice(self._source.referrers(node), ATTACHED + 1))
        if len(listed) > ATTACHED:  # (2)
            raise Rejected(f"{node.digest}: more than {ATTACHED} referrers are listed for it")
        if not listed:
            return
        with self._lock:
            self._listed += len(listed)
            if self._listed > LISTED:  # (2)
                raise Rejected(f"{self._root.digest}: more than {LISTED} referrers are listed")
        there: set[Digest] = set()
        if self._exists(node):
            there = {one.digest for one in islice(self._dest.referrers(node), LISTED)}
        for entry in listed:
            part = Part(entry.plain, attached_kind(entry), subject=node)
            self._job.start(self._referrer, part, node, entry.digest in there)

    def _referrer(self, part: Part, node: Descriptor, linked: bool) -> None:  # noqa: FBT001 - called by the job
        if not (linked and self._exists(part.target)):
            try:
                found = self._read(part.target)
            except NotFound:
                if not self._wanted.gone_ok:
                    raise
                self._gone.add(part.target.digest)  # (3)
                return
            if found.subject is None or found.subject.digest != node.digest:  # (3)
                return
            part = replace(part, kind=attached_kind(found.referrer))
        self._count(part.target)
        self._meet(part, 0, tree=False, linked=linked)

    def _digest_tag(self, node: Descriptor, suffix: str) -> None:
        name = node.digest.tag + suffix
        try:
            target = self._source.resolve(name)
        except NotFound:
            return
        self._count(target)
        linked = self._stands(name, target) if self._must_ask(node, name) else False
        self._meet(Part(target, TAGGED[suffix], name=name), 0, tree=False, linked=linked)

    def _must_ask(self, node: Descriptor, name: str) -> bool:
        """Whether `name` may stand at the destination already.

        Not where neither the subject nor any tag is: then nobody can have signed it there.
        """
        theirs = self._their_names
        return theirs.may_have(name, self._dest) or not theirs.empty or self._exists(node)

    def _stands(self, name: str, target: Descriptor) -> bool:
        """Whether `name` is `target` at the destination; Rejected if it is what must stay."""
        try:
            there = self._dest.resolve(name)
        except NotFound:
            self._standing[name] = None
            return False
        self._standing[name] = there.digest
        if there.digest == target.digest:
            return True
        if not self._wanted.overwrite and not self._holds_all(target, there):  # (5)
            raise Rejected(
                f"{name}: the destination has other content there, {there.digest}",
                hint="signatures made there would be lost: sign there again instead",
            )
        return False

    def _holds_all(self, target: Descriptor, there: Descriptor) -> bool:
        """Whether each signature or attestation in `there` is in `target` too."""
        ours, theirs = self._read(target), manifest(self._dest, there)
        if ours.is_index or theirs.is_index:
            return False
        return _layers(theirs) <= _layers(ours)


def _layers(found: Manifest) -> set[tuple[Digest, tuple[tuple[str, str], ...]]]:
    return {(one.digest, tuple(sorted(one.annotations.items()))) for one in found.layers}
