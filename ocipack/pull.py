"""Pull a verified artifact: from proof to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError
from ocipack.flux import artifact
from ocipack.oci import store
from ocipack.tree import unarchive
from ocipack.tree.limits import LIMITS, Limits
from ocipack.tree.tree import Entry

if TYPE_CHECKING:
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.digest import Digest
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source
    from ocipack.verify import Exempted, Verified

Write = Callable[[Iterator[Entry]], None]
"""Takes entries to their end, and only then lets anyone see what it wrote."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """What arrived: the artifact, its layer, how many files with how many bytes."""

    manifest: Manifest
    layer: Descriptor
    files: int
    size: int


def pull(
    source: Source, verified: Verified | Exempted, write: Write, *, limits: Limits = LIMITS
) -> Pulled:
    """Hand the files of the artifact that `verified` is about to `write`, one by one.

    1. The manifest is the one that was hashed when it was verified; it is not read again.
    2. It has one layer, a tree of files, no larger than is read: nothing else is fetched.
    3. The layer has the digest and size that the manifest says, the tar the digest that the
       config says, and `unarchive` accepts every entry; `write` sees the end of its entries only
       after all of that held.

    IntegrityError where one of these fails; whatever `write` raises passes through.
    """
    manifest = verified.manifest
    if manifest.descriptor.digest != verified.descriptor.digest:  # (1)
        raise IntegrityError(f"{verified.descriptor.digest}: proof about another manifest")
    content = artifact.content(manifest)  # (2)
    layer = content.layer
    if layer.size > limits.layer:
        raise IntegrityError(
            f"{layer.digest}: a layer of {layer.size} bytes, and at most {limits.layer} are read"
        )
    diff_id = _promised(source, content.config)
    entries = unarchive.read(source.fetch(layer), size=layer.size, diff_id=diff_id, limits=limits)
    counted = _Counted(entries)
    write(iter(counted))  # (3)
    if not counted.complete:
        raise RuntimeError("the writer stopped before the content was known to be right")
    return Pulled(manifest, layer, counted.files, counted.size)


def _promised(source: Source, config: Descriptor | None) -> Digest | None:
    if config is None:
        return None
    return artifact.diff_id(store.read(source, config, limit=artifact.CONFIG_LIMIT))


class _Counted:
    """Entries passing by."""

    def __init__(self, entries: Iterator[Entry]) -> None:
        self._entries = entries
        self.files = self.size = 0
        self.complete = False

    def __iter__(self) -> Iterator[Entry]:
        for entry in self._entries:
            self.files += 1
            self.size += entry.size
            yield entry
        self.complete = True
