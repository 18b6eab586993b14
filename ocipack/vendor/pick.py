"""The files of what was fetched that an entry wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from ocipack.errors import IntegrityError, Rejected, malformed
from ocipack.mirror.model import glob
from ocipack.mirror.pattern import Pattern
from ocipack.tree import unarchive
from ocipack.tree.limits import Limits, MiB
from ocipack.tree.tree import File, Tree
from ocipack.vendor.model import Item

SOURCES: Final = Limits(tar=128 * MiB, entries=20_000, names=4 * MiB, free=16 * MiB)
"""What an archive may turn into, and what may be taken of a repository."""

Named = tuple[str, bool, bytes]
"""The name of a file, whether it is executable, and its content."""


def archived(data: bytes, *, is_chart: bool = False, limits: Limits = SOURCES) -> Iterator[Named]:
    """The files of a tar.gz; those of a chart by their names below its directory.

    IntegrityError for links, names that lead out, and what is past `limits`.
    """
    for entry in unarchive.read([data], size=len(data), limits=limits):
        name = entry.name
        if is_chart:
            _, slash, name = name.partition("/")
            if not slash:
                raise IntegrityError(f"not a chart: {entry.name[:200]!r} is not in its directory")
        yield name, entry.executable, b"".join(entry.content)


@dataclass(frozen=True, slots=True)
class Choice:
    """What an entry wants of the files that there are."""

    path: str = ""
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()

    @classmethod
    def of(cls, item: Item) -> Self:
        """What `item` says."""
        globs = (tuple(map(glob, texts)) for texts in (item.include, item.exclude))
        return cls(item.path, *globs)

    def name(self, full: str) -> str:
        """What the file `full` is called in the directory; empty if it is not wanted.

        A glob fits names of ASCII only, and of what one line holds.
        """
        own = full
        if self.path and full != self.path:
            own = full.removeprefix(f"{self.path}/")
            if own == full:
                return ""
        elif self.path:
            own = full.rpartition("/")[2]  # path names a file
        chosen = not self.include or any(one.fits(own) for one in self.include)
        return own if chosen and not any(one.fits(own) for one in self.exclude) else ""


def picked(item: Item, files: Iterable[Named]) -> Tree:
    """Those of `files` that `item` wants, by their names in its directory.

    Rejected if that is none: an empty directory would prune what an earlier one brought.
    """
    choice = Choice.of(item)
    found = {
        own: File.of(data, executable=executable)
        for name, executable, data in files
        if (own := choice.name(name))
    }
    if not found:
        raise Rejected(
            f"{item.place}: nothing of {item.address} is wanted",
            hint="look at path, include and exclude: globs fit a whole name below path",
        )
    with malformed(item.address):
        return Tree(found)
