"""Everything below a manifest: a walk that hostile graphs cannot make endless."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError
from ocipack.oci.store import manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source

DEPTH = 10
"""How many manifests may stand above a blob: indexes of indexes end somewhere."""

NODES = 50_000
"""Manifests and blobs of one closure, each counted once."""

HELD = 64 * 1024 * 1024
"""Bytes of manifests of one closure: they are held in memory until they have been pushed."""


class Walk:
    """What one walk has met, and its limits.

    Content that is named twice is met once. A digest named with two sizes is refused, since at
    most one of them is true, and so is a graph beyond DEPTH, NODES or HELD (IntegrityError).
    A name as a manifest and a name as a blob are two: registries keep them in two rooms.
    """

    def __init__(self, root: Descriptor) -> None:
        self._root = root
        self._sizes: dict[tuple[str, object], int] = {}
        self._held = 0

    def meets(self, target: Descriptor, depth: int) -> bool:
        """Whether `target`, found below `depth` manifests, is new to this walk."""
        key = (target.media_type if target.is_manifest else "", target.digest)
        known = self._sizes.get(key)
        if known is not None and known != target.size:
            raise self._refusal(f"{target.digest} is said to have {known} and {target.size} bytes")
        if depth > DEPTH:
            raise self._refusal(f"more than {DEPTH} manifests stand above {target.digest}")
        self._sizes[key] = target.size
        if len(self._sizes) > NODES:
            raise self._refusal(f"it names more than {NODES} manifests and blobs")
        return known is None

    def holds(self, size: int) -> None:
        """Account for a manifest of `size` bytes before it is read."""
        self._held += size
        if self._held > HELD:
            raise self._refusal(
                f"the manifests to read for it have more than {HELD} bytes together"
            )

    def _refusal(self, why: str) -> IntegrityError:
        return IntegrityError(f"{self._root.digest}: {why}")


def closure(source: Source, root: Descriptor) -> Iterator[tuple[Descriptor, Manifest | None]]:
    """Yield `root` and all that it needs, parents first, each once.

    Manifests come with their content, read and hashed; blobs are named and not read. Subjects
    and referrers are no part of it. Raises what reading a manifest raises, and IntegrityError
    beyond the limits of Walk.
    """
    walk, todo = Walk(root), deque([(root, 0)])
    while todo:
        target, depth = todo.popleft()
        if not walk.meets(target, depth):
            continue
        if not target.is_manifest:
            yield target, None
            continue
        walk.holds(target.size)
        found = manifest(source, target)
        yield target, found
        todo += [(child, depth + 1) for child in found.children]
