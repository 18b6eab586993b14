"""The reference store: what the contract means, in one screen."""

from __future__ import annotations

from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected
from ocipack.oci.closure import closure
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import TAG
from ocipack.oci.store import manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import EllipsisType

    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.store import Source


class MemoryStore:
    """A repository held in three dictionaries."""

    def __init__(self) -> None:
        self.content: dict[Digest, bytes] = {}
        self.manifests: dict[Digest, Descriptor] = {}
        self.names: dict[str, Descriptor] = {}
        self._lock = RLock()

    def resolve(self, name: str) -> Descriptor:
        """See Source."""
        found = self.manifests.get(Digest.parse(name)) if ":" in name else self.names.get(name)
        if found is None:
            raise NotFound(f"there is no manifest {name} in memory")
        return found

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """See Source."""
        if target.digest not in self.content:
            raise NotFound(f"there is no {target.digest} in memory")
        return target.check([self.content[target.digest]])

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """See Source."""
        for target in list(self.manifests.values()):
            found = Manifest(self.content[target.digest], target.media_type)
            if found.subject is not None and found.subject.digest == subject.digest:
                yield replace(
                    target, annotations=found.annotations, artifact_type=found.artifact_type
                )

    def tags(self) -> Iterator[str]:
        """See Listing."""
        return iter(sorted(self.names))

    def exists(self, target: Descriptor) -> bool:
        """See Store."""
        try:
            for node, _ in closure(self, target):
                b"".join(self.fetch(node))
        except (NotFound, IntegrityError):
            return False
        return not target.is_manifest or target.digest in self.manifests

    def push(self, target: Descriptor, source: Source) -> None:
        """See Store."""
        if not target.is_manifest:
            self.content[target.digest] = b"".join(target.check(source.fetch(target)))
            return
        found = manifest(source, target)
        for child in found.children:
            if child.digest not in self.content:
                raise NotFound(f"{target.digest} needs {child.digest}, which is not here")
        with self._lock:
            self.content[target.digest] = found.raw
            self.manifests[target.digest] = target.plain

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        """See Store."""
        if not TAG.fullmatch(name):
            raise Misuse(f"not a tag: {name[:200]!r}")
        manifest(self, target)
        with self._lock:
            now = self.names.get(name)
            at = now.digest if now is not None else None
            if was is not ... and at not in (was, target.digest):
                raise Rejected(f"tag {name} is at {at or 'nothing'}, not at {was or 'nothing'}")
            self.names[name] = target.plain
