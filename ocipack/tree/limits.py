"""How much of an archive we are ready to write, and therefore to read: one table."""

from __future__ import annotations

from dataclasses import dataclass

MiB = 1024 * 1024

PATH_LIMIT = 4096
"""Bytes of a whole name, what Linux calls PATH_MAX."""
SEGMENT_LIMIT = 255
"""Bytes between two slashes, what every common file system takes."""
DEPTH_LIMIT = 128
"""Segments of a name: whoever writes a tree holds a directory handle for each."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Budgets of one archive; packing refuses what reading would refuse.

    `tar` is in bytes, headers included. `entries` counts directories, listed or not; `names` is
    how many bytes all their names have. `ratio` is how many times the compressed size the tar may
    be once it is longer than `free` bytes. `layer` is the size of the compressed form.
    """

    tar: int = 512 * MiB
    entries: int = 100_000
    names: int = 32 * MiB
    ratio: int = 200
    free: int = 64 * MiB
    layer: int = 513 * MiB

    def uncompressed(self, compressed: int) -> int:
        """The longest tar, in bytes, that `compressed` bytes may turn into."""
        return min(self.tar, max(self.free, self.ratio * compressed))


LIMITS = Limits()
