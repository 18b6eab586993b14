"""Bytes in one file, or in volumes of one size beside a list of their checksums.

`site.tar` in volumes is `site.tar.001`, `site.tar.002`, …, which `cat` makes one again, and
`site.tar.sha256`, which `sha256sum -c` reads (GNU coreutils, "md5sum invocation"). While they are
written all have other names (`.site.tar.001.partial`); the list gets its name last, so that
volumes without it are none that anybody finished.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

from ocipack.errors import IntegrityError, Misuse, NotFound, Unavailable
from ocipack.stores.layout.directory import PIECE, write_all
from ocipack.stores.layout.failures import translated

MEMBERS = 200_000
"""Members of an archive, directories counted."""

VOLUMES = 999
"""Volumes of one archive: with three digits `cat site.tar.???` has them in their order."""

SMALLEST = 1024 * 1024
"""Bytes of a volume at least."""

_LIST = 128 * 1024
_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^\n]+)\n")
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Checksums:
    """SHA-256 of each run of `volume` bytes of a stream, of the last one, or, with 0, of all."""

    def __init__(self, volume: int = 0) -> None:
        self.volume = volume
        self.size = 0
        self._done: list[str] = []
        self._hash = hashlib.sha256()

    def update(self, data: bytes | memoryview) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        while view:
            room = self.volume - self.size % self.volume if self.volume else len(view)
            piece, view = view[:room], view[room:]
            self._hash.update(piece)
            self.size += len(piece)
            if self.volume and self.size % self.volume == 0:
                self._done.append(self._hash.hexdigest())
                self._hash = hashlib.sha256()

    def copy(self) -> Checksums:
        """What was taken so far, on its own from here."""
        other = Checksums(self.volume)
        other.size, other._done, other._hash = self.size, list(self._done), self._hash.copy()
        return other

    def all(self) -> list[str]:
        """The checksum of each volume, the unfinished one included, in hex."""
        rest = not self.volume or self.size % self.volume or not self._done
        return [*self._done, self._hash.hexdigest()] if rest else list(self._done)


class Parts:
    """Files read as one, at any place; they stay open until `close`."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)
        self.sizes: list[int] = []
        self._handles: list[int] = []
        try:
            for path in self.paths:
                self.sizes.append(self._opened(path))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        while self._handles:
            os.close(self._handles.pop())

    def _opened(self, path: Path) -> int:
        """Open one more; return how many bytes it has."""
        with translated(str(path)):
            handle = os.open(path, _READ)
            self._handles.append(handle)
            found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise IntegrityError(f"{path}: not a regular file")
        return found.st_size

    @property
    def size(self) -> int:
        """Bytes of all of them together."""
        return sum(self.sizes)

    def pieces(self, offset: int, size: int) -> Iterator[bytes]:
        """The `size` bytes from `offset` on; IntegrityError if there are fewer."""
        start = 0
        for path, handle, length in zip(self.paths, self._handles, self.sizes, strict=True):
            while size and start <= offset < start + length:
                count = min(PIECE, size, start + length - offset)
                with translated(str(path)):
                    piece = os.pread(handle, count, offset - start)
                if not piece:
                    raise IntegrityError(f"{path}: it has become shorter while it was read")
                offset, size = offset + len(piece), size - len(piece)
                yield piece
            start += length
        if size:
            raise IntegrityError(f"{self.paths[-1]}: cut short: {size} more bytes should follow")

    def take(self, offset: int, size: int) -> bytes:
        """The `size` bytes from `offset` on, at once."""
        return b"".join(self.pieces(offset, size))


class Sink:
    """Where a stream of bytes goes: under unfinished names until `finish`.

    `kept` bytes of what a run before left under those names are taken as written, and `sums` has
    seen them; whatever else is there under such names goes.
    """

    def __init__(self, path: Path, sums: Checksums, kept: int = 0) -> None:
        self._path, self.sums = path, sums
        self._handle = -1
        self._number = -(-kept // (sums.volume or kept)) if kept else 0
        ours = {_partial(name) for name in self._names()}
        for found in _there(path, partial=True):
            if found not in ours:
                _remove(found)
        if kept:
            self._open(kept - (self._number - 1) * sums.volume)

    def write(self, data: bytes) -> None:
        """Take the next bytes."""
        volume, view = self.sums.volume, memoryview(data)
        while view:
            if self._handle < 0 or (volume and self.sums.size == self._number * volume):
                self._next()
            room = self._number * volume - self.sums.size if volume else len(view)
            piece, view = view[:room], view[room:]
            self._take(piece)
            self.sums.update(piece)

    def finish(self) -> tuple[Path, ...]:
        """Make everything durable and visible; what had these names before is replaced."""
        self.close(sync=True)
        names = self._names()
        for old in finished(self._path):
            if old not in names:
                _remove(old)
        with translated(str(self._path)):
            for name in names:
                _partial(name).replace(name)
            if self.sums.volume:
                self._list(names)
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        return names

    def close(self, *, sync: bool = False) -> None:
        """Let go of the file that is being written; it stays, unfinished."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        try:
            if sync:
                with translated(str(self._path)):
                    os.fsync(handle)
        finally:
            os.close(handle)

    def _take(self, piece: memoryview) -> None:
        try:
            with translated(str(self._path)):
                write_all(self._handle, piece)
        except Unavailable as e:
            hint = "make room, and run again: it goes on where it was"
            raise Unavailable(str(e), hint=hint) from e

    def _names(self) -> tuple[Path, ...]:
        return _names(self._path, self._number) if self.sums.volume else (self._path,)

    def _next(self) -> None:
        if self._number == VOLUMES:
            raise Misuse(
                f"{self._path}: more than {VOLUMES} volumes of {self.sums.volume} bytes",
                hint="make them larger",
            )
        self.close(sync=True)
        self._number += 1
        self._open(0)

    def _open(self, at: int) -> None:
        name = _partial(self._names()[-1])
        with translated(str(name)):
            self._handle = os.open(name, _WRITE, 0o666)
            os.ftruncate(self._handle, at)
            os.lseek(self._handle, at, os.SEEK_SET)

    def _list(self, names: tuple[Path, ...]) -> None:
        pairs = zip(self.sums.all(), names, strict=True)
        listed = _listed(self._path)
        with _partial(listed).open("w", encoding="utf-8") as file:
            file.writelines(f"{digest}  {name.name}\n" for digest, name in pairs)
            file.flush()
            os.fsync(file.fileno())
        _partial(listed).replace(listed)


def unfinished(path: Path, volume: int) -> list[Path]:
    """What an earlier run left of `path`, in order: as much of it as volumes of that size can be.

    Only the last file is shorter than the others.
    """
    if not volume:
        return [_partial(path)] if _partial(path).is_file() else []
    found: list[Path] = []
    for name in map(_partial, _names(path, VOLUMES)):
        if not name.is_file() or name.stat().st_size > volume:
            return found
        found.append(name)
        if name.stat().st_size < volume:
            return found
    return found


def finished(path: Path) -> list[Path]:
    """What is there of an archive at `path`: the list of checksums, the file, the volumes."""
    return _there(path, partial=False)


def volumes(path: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The files of the archive at `path`, and their checksums if it is in volumes.

    NotFound if it is not there, or not all of it; IntegrityError if the list is not one of ours.
    """
    path = path.with_suffix("") if path.suffix == ".sha256" else path
    if os.path.lexists(path):
        return (path,), ()
    listed = _listed(path)
    if not os.path.lexists(listed):
        hint = "name the archive, without the number of a volume"
        if finished(path):
            hint = f"there are volumes, but not {listed.name}, with which a save ends"
        raise NotFound(f"{path}: there is no archive", hint=hint)
    with Parts([listed]) as file:
        if file.size > _LIST:
            raise IntegrityError(f"{listed}: more than {_LIST} bytes")
        text = file.take(0, file.size).decode("utf-8", "replace")
    lines = _LINE.findall(text)
    names = _names(path, len(lines))
    if (
        not lines
        or [name for _, name in lines] != [one.name for one in names]
        or _LINE.sub("", text)
    ):
        raise IntegrityError(
            f"{listed}: it does not list {path.name}.001 and so on, in this order",
            hint="bring the list that was written with the volumes",
        )
    for number, name in enumerate(names, 1):
        if not os.path.lexists(name):
            raise NotFound(
                f"{name}: volume {number} of {len(names)} is missing", hint="bring all of them"
            )
    return names, tuple(digest for digest, _ in lines)


def _names(path: Path, count: int) -> tuple[Path, ...]:
    return tuple(path.with_name(f"{path.name}.{number:03}") for number in range(1, count + 1))


def _listed(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _there(path: Path, *, partial: bool) -> list[Path]:
    """Every file that has a name of the archive `path`, finished or not; the list comes first."""
    try:
        with translated(str(path.parent)):
            names = {entry.name for entry in path.parent.iterdir()}
    except NotFound:
        return []
    tails = r"(?:\.sha256|\.[0-9]{3})?"
    ours = re.escape(path.name) + tails
    pattern = re.compile(rf"\.{ours}\.partial" if partial else ours)
    found = sorted(path.with_name(name) for name in names if pattern.fullmatch(name))
    return sorted(found, key=lambda one: one.name != _listed(path).name)


def _remove(path: Path) -> None:
    with translated(str(path)):
        path.unlink(missing_ok=True)
