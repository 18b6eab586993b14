"""Files to be read as they are: what an argument names, and what stands in a directory.

Links are followed, since a mounted ConfigMap or a monorepo consists of them; a file that is
reached several times is there once. Nothing that is not a plain file is ever opened, unless the
user named it: a pipe in a tree would be waited for without end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ocipack.errors import Misuse, Rejected, StoreError, Unavailable
from ocipack.files.seam import printable, translated

LIMIT: Final = 1_000_000
"""Files and directories below one argument."""

_BLOCK: Final = 1024 * 1024
_SKIPPED: Final = ".git"


@dataclass(slots=True)
class Listing:
    """What stands below one argument.

    `files` maps names below it (bytewise order) to paths; for a single file the one name is
    empty. `special` are the names of pipes, sockets and devices, `broken` maps what cannot be
    looked at to the reason.
    """

    root: str
    files: dict[str, str] = field(default_factory=dict)
    special: list[str] = field(default_factory=list)
    broken: dict[str, StoreError] = field(default_factory=dict)

    @property
    def single(self) -> bool:
        """Whether the argument is no directory."""
        return "" in self.files


def listing(path: str) -> Listing:
    """What `path` names: a directory, or anything that can be read.

    Misuse if it is not there; Denied or Unavailable if it cannot be looked at; Rejected for
    more than LIMIT entries.
    """
    try:
        with translated(path):
            found = os.stat(path)  # noqa: PTH116 - a path as it was typed
    except StoreError as e:
        if isinstance(e.__cause__, FileNotFoundError | NotADirectoryError):
            raise Misuse(f"{printable(path)}: no such file or directory") from e
        raise
    made = Listing(path)
    if not stat.S_ISDIR(found.st_mode):
        made.files[""] = path
        return made
    walk = _Walk(made)
    walk.directory("", path, found, ())
    walk.links()
    made.files = {name: made.files[name] for name in sorted(made.files, key=os.fsencode)}
    return made


Id = tuple[int, int]


@dataclass(slots=True)
class _Walk:
    """First what really stands there, then what links lead to, if it was not met before."""

    made: Listing
    _seen: set[Id] = field(default_factory=set)
    _links: list[tuple[str, str, tuple[Id, ...]]] = field(default_factory=list)
    _count: int = 0

    def directory(self, name: str, path: str, found: os.stat_result, chain: tuple[Id, ...]) -> None:
        own = (found.st_dev, found.st_ino)
        if own in self._seen:
            return
        self._seen.add(own)
        chain = (*chain, own)
        try:
            with translated(path), os.scandir(path) as entries:
                listed = sorted(entries, key=lambda entry: os.fsencode(entry.name))
        except StoreError as e:
            self.made.broken[name] = e
            return
        for entry in listed:
            if entry.name != _SKIPPED:
                below = f"{name}/{entry.name}" if name else entry.name
                self._entry(below, entry, chain)

    def _entry(self, name: str, entry: os.DirEntry[str], chain: tuple[Id, ...]) -> None:
        self._count += 1
        if self._count > LIMIT:
            root = printable(self.made.root)
            raise Rejected(f"{root}: more than {LIMIT} files", hint="name a smaller directory")
        if entry.is_symlink():
            self._links.append((name, entry.path, chain))
        elif entry.is_dir(follow_symlinks=False):
            self._below(name, entry.path, chain)
        elif entry.is_file(follow_symlinks=False):
            self._seen.add((chain[-1][0], entry.inode()))
            self.made.files[name] = entry.path
        else:
            self.made.special.append(name)

    def _below(self, name: str, path: str, chain: tuple[Id, ...]) -> None:
        try:
            with translated(path):
                found = os.stat(path)  # noqa: PTH116 - as above
        except StoreError as e:
            self.made.broken[name] = e
            return
        self.directory(name, path, found, chain)

    def links(self) -> None:
        """Follow every link, those too that are met on the way."""
        while self._links:
            name, path, chain = self._links.pop(0)
            try:
                with translated(path):
                    found = os.stat(path)  # noqa: PTH116 - as above
            except StoreError as e:
                self.made.broken[name] = e
                continue
            if stat.S_ISDIR(found.st_mode):
                self.directory(name, path, found, chain)
            elif not stat.S_ISREG(found.st_mode):
                self.made.special.append(name)
            elif (found.st_dev, found.st_ino) not in self._seen:
                self._seen.add((found.st_dev, found.st_ino))
                self.made.files[name] = path


def reader(path: str, *, special: bool = False) -> Callable[[], Iterator[bytes]]:
    """Opens `path` anew with each call, as blocks of at most 1 MiB.

    Denied or Unavailable if it cannot be read, also if it is no plain file any more, unless
    `special` allows pipes and devices: those can be read once.
    """
    return partial(_blocks, path, special)


def _blocks(path: str, special: bool) -> Iterator[bytes]:  # noqa: FBT001 - bound above
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if special else os.O_NONBLOCK)
    with translated(path):
        handle = os.open(path, flags)
        try:
            found = os.fstat(handle)
            if not (special or stat.S_ISREG(found.st_mode)):
                raise Unavailable(f"{printable(path)}: not a plain file any more")
            plain = stat.S_ISREG(found.st_mode)
            asked = min(found.st_size + 1, _BLOCK) if plain else _BLOCK
            while block := os.read(handle, asked):
                yield block
                if plain and len(block) < asked:
                    return  # the end: plain files give what there is
        finally:
            os.close(handle)
