"""Move content from one place to another: the one verb behind push, pull and mirror.

Why a tag can never name half of something, step by step:

1. The graph is walked from its root before anything is written, within the limits of
   `oci.closure`, and every manifest is read once, hashed, and kept for pushing.
2. What `exists` at the destination is left alone, and so is everything below it: a store says
   yes only for content that is there *with its closure* (a layout looks; a registry, which
   refuses a manifest without its children, is taken at its word).
3. Blobs are pushed first, `jobs` at a time.
4. Manifests follow, children before parents, so that at each moment what is there is complete.
5. The tag moves last. A failure anywhere ends the run before this line.
"""

from __future__ import annotations

from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from ocipack.errors import IntegrityError, NotFound, Rejected
from ocipack.oci.artifact import Artifact
from ocipack.oci.closure import Walk, closure
from ocipack.oci.digest import Digest
from ocipack.oci.store import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import EllipsisType

    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source, Store

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did: blobs and manifests moved, and those that were there already, with bytes.

    A manifest that was there already counts once, for itself and all below it.
    """

    copied: int = 0
    copied_bytes: int = 0
    skipped: int = 0
    skipped_bytes: int = 0

    @classmethod
    def of(cls, copied: Iterable[Descriptor], skipped: Iterable[Descriptor]) -> Copied:
        """Count both lists."""
        moved, kept = [d.size for d in copied], [d.size for d in skipped]
        return cls(len(moved), sum(moved), len(kept), sum(kept))

    def __add__(self, other: Copied) -> Copied:
        return Copied(
            self.copied + other.copied,
            self.copied_bytes + other.copied_bytes,
            self.skipped + other.skipped,
            self.skipped_bytes + other.skipped_bytes,
        )


def copy(
    source: Source,
    dest: Store,
    root: Descriptor,
    *,
    tag: str | None = None,
    was: Digest | EllipsisType | None = ...,
    jobs: int = 8,
) -> Copied:
    """Copy the manifest `root` with all it needs, then point `tag` at it if one is given.

    `was` is handed to `dest.tag`: the tag moves only from there. `jobs` requests are in flight
    at most; the first error ends the run, once those in flight are done, and is what is raised.
    Nothing is asked or fetched twice. IntegrityError if `root` is no manifest, if anything is
    not what its descriptor says, or if the graph is beyond the limits of `oci.closure`.
    """
    if not root.is_manifest:
        raise IntegrityError(f"{root.digest}: {root.media_type!r} is not a manifest or index")
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="copy") as pool:
        run = _Run(source, dest, pool)
        run.walk(root.plain)
        run.push_blobs()
        run.push_manifests()
    if tag is not None:
        dest.tag(root.plain, tag, was=was)
    return Copied.of(run.copied, run.skipped)


class _Run:
    """One copy: what was found to move, and what has moved."""

    def __init__(self, source: Source, dest: Store, pool: ThreadPoolExecutor) -> None:
        self._source, self._dest, self._pool = source, dest, pool
        self._manifests: dict[Descriptor, Manifest] = {}
        self._blobs: list[Descriptor] = []
        self.copied: list[Descriptor] = []
        self.skipped: list[Descriptor] = []

    def walk(self, root: Descriptor) -> None:
        """Find what is missing at the destination, level by level from the root."""
        walk, level, depth = Walk(root), [root], 0
        while level:
            fresh = [target for target in level if walk.meets(target, depth)]
            self._blobs += [target for target in fresh if not target.is_manifest]
            missing = self._missing([target for target in fresh if target.is_manifest])
            for target in missing:
                walk.holds(target.size)
            found = self._each(lambda target: manifest(self._source, target), missing)
            self._manifests |= dict(zip(missing, found, strict=True))
            level, depth = [child for one in found for child in one.children], depth + 1

    def push_blobs(self) -> None:
        """Move the blobs that are missing."""
        self._each(self._push_blob, self._blobs)

    def push_manifests(self) -> None:
        """Move the manifests, each after its children."""
        order: TopologicalSorter[Descriptor] = TopologicalSorter(
            {
                target: [child for child in one.children if child in self._manifests]
                for target, one in self._manifests.items()
            }
        )
        order.prepare()
        while order.is_active():
            ready = order.get_ready()
            self._each(self._push_manifest, ready)
            order.done(*ready)

    def _missing(self, targets: list[Descriptor]) -> list[Descriptor]:
        here = self._each(self._dest.exists, targets)
        self.skipped += [one for one, found in zip(targets, here, strict=True) if found]
        return [one for one, found in zip(targets, here, strict=True) if not found]

    def _push_blob(self, target: Descriptor) -> None:
        if self._dest.exists(target):
            self.skipped.append(target)
            return
        self._dest.push(target, self._source)
        self.copied.append(target)

    def _push_manifest(self, target: Descriptor) -> None:
        known = self._manifests[target]
        self._dest.push(target, Artifact(known, {target.digest: known.raw}))
        self.copied.append(target)

    def _each(self, work: Callable[[Descriptor], _R], items: Sequence[Descriptor]) -> list[_R]:
        """Do `work` on all `items` at once; raise what failed first, and start nothing after."""
        if len(items) == 1:
            return [work(items[0])]
        first: list[BaseException] = []

        def guarded(item: Descriptor) -> _R:
            if first:
                raise first[0]
            try:
                return work(item)
            except BaseException as e:
                first.append(e)  # list.append is atomic: the root cause stands first
                raise

        futures = [self._pool.submit(guarded, item) for item in items]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            for future in futures:
                future.cancel()
        if first:
            raise first[0]
        return [future.result() for future in futures]


ATTACHED = 1000
"""Manifests that one copy carries along because they are attached to what it moves."""

_DIGEST_TAGS = (".sig", ".att", ".sbom")


def copy_attached(source: Source, dest: Store, root: Descriptor, *, jobs: int = 8) -> Copied:
    """Copy what others have attached to `root`, already at `dest`, and to all manifests below it.

    That is the tags `sha256-<hex>.sig`, `.att` and `.sbom`, and the referrers, theirs included.
    What a listing shows that names another subject is left behind. Rejected if `dest` has such a
    tag with other content, which would be lost, and for more than ATTACHED referrers.
    """
    total, seen = Copied(), set[Digest]()
    nodes = [node for node, found in closure(source, root) if found is not None]
    while nodes:
        node = nodes.pop()
        if node.digest in seen:
            continue
        seen.add(node.digest)
        if len(seen) > ATTACHED:
            raise Rejected(f"{root.digest}: more than {ATTACHED} manifests are attached to it")
        total += _copy_digest_tags(source, dest, node, jobs)
        for found in _referrers(source, node):
            total += copy(source, dest, found, jobs=jobs)
            nodes.append(found)
    return total


def _copy_digest_tags(source: Source, dest: Store, node: Descriptor, jobs: int) -> Copied:
    total = Copied()
    for suffix in _DIGEST_TAGS:
        name = f"{node.digest.algorithm}-{node.digest.hex}{suffix}"
        try:
            found = source.resolve(name)
        except NotFound:
            continue
        total += copy(source, dest, found, jobs=jobs)
        try:
            there = dest.resolve(name).digest
        except NotFound:
            there = None
        if there not in (None, found.digest):
            raise Rejected(
                f"{name}: the destination has other content there, {there}",
                hint="signatures made there would be lost: sign there again instead",
            )
        if there is None:
            dest.tag(found, name, was=None)
    return total


def _referrers(source: Source, node: Descriptor) -> list[Descriptor]:
    """The manifests that really refer to `node`."""
    listed = [found.plain for found in islice(source.referrers(node), ATTACHED + 1)]
    if len(listed) > ATTACHED:
        raise Rejected(f"{node.digest}: more than {ATTACHED} referrers are listed for it")
    return [one for one in listed if _names(source, one, node)]


def _names(source: Source, referrer: Descriptor, node: Descriptor) -> bool:
    subject = manifest(source, referrer).subject
    return subject is not None and subject.digest == node.digest
