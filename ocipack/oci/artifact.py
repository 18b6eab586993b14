"""A finished artifact that is not anywhere yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.errors import NotFound
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest

if TYPE_CHECKING:
    from ocipack.oci.manifest import Manifest

Blob = bytes | Callable[[], Iterable[bytes]]
"""Content at hand, or a stream that can be opened again (each call starts from the beginning)."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A closed graph of content: `manifest`, and a blob for each of its children.

    It is a Source, so pushing it is `copy`.
    """

    manifest: Manifest
    blobs: Mapping[Digest, Blob]

    @property
    def root(self) -> Descriptor:
        """What names the whole."""
        return self.manifest.descriptor

    def resolve(self, name: str) -> Descriptor:
        """Only the root has a name here: its digest."""
        if name != str(self.root.digest):
            raise NotFound(f"{name} is not in this artifact")
        return self.root

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """Stream the manifest or one of its blobs."""
        if target.digest == self.root.digest:
            return target.check([self.manifest.raw])
        if target.digest not in self.blobs:
            raise NotFound(f"{target.digest} is not in this artifact")
        blob = self.blobs[target.digest]
        return target.check([blob] if isinstance(blob, bytes) else blob())

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:  # noqa: ARG002 - the protocol
        """Nothing can refer to what is not anywhere."""
        return iter(())
