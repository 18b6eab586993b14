"""A layout's files in a `.tar`: read in place, replaced whole when the writer is done.

Reading: the members are indexed once per version of the file, then read at their offsets. Only
plain files and directories are accepted; a link, a device, a name twice or one that leaves the
archive is refused, since two readers would see two layouts.

Writing: the first `put` takes the lock beside the tar and stages in a directory beside it;
`close` writes a new tar (old content and staged, members sorted, no owners or times, so the same
layout has the same bytes), syncs it, and renames it into place. Until then nobody sees a change;
`discard`, or a kill, leaves the old tar. The lock is held from the first `put` to the end: a
second writer waits.
"""

from __future__ import annotations

import os
import shutil
import stat
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, BinaryIO

from ocipack.errors import IntegrityError, NotFound
from ocipack.stores.layout import locks
from ocipack.stores.layout.directory import PIECE, Directory, Identity, write_all
from ocipack.stores.layout.failures import translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from tarfile import TarFile, TarInfo

MEMBERS = 100_000
"""Members of a tar that we are ready to index."""

HEADER = 64 * 1024
"""Bytes of one header (PAX records, GNU long names) that we are ready to read."""

_BLOCK = 512  # POSIX.1-2017, pax: ustar Interchange Format


class Tarball:
    """Files of a layout by name, in the tar file `path`."""

    def __init__(self, path: str, *, patience: float = locks.PATIENCE) -> None:
        self.path = path
        self._real = Path(path).resolve()
        self._patience = patience
        self._lock_path = self._real.with_name(f".{self._real.name}.lock")
        self._stage_path = self._real.with_name(f".{self._real.name}.staging")
        self._partial_path = self._real.with_name(f".{self._real.name}.partial")
        self._mutex = RLock()
        self._version: Identity = ()
        self._members: dict[str, tuple[int, int]] = {}
        self._stage: Directory | None = None
        self._locked: int | None = None
        self._dirty = False

    def identity(self, name: str) -> Identity | None:
        """Tell which version of `name` is there, its size in bytes first; None if it is not."""
        staged = self._stage.identity(name) if self._stage is not None else None
        if staged is not None:
            return staged
        with suppress(NotFound), self._opened() as (_, members):
            if name in members:
                return (members[name][1], members[name][0], *self._version)
        return None

    def read(self, name: str) -> Iterator[bytes]:
        """Stream `name`; NotFound if it is not there."""
        if self._stage is not None and self._stage.identity(name) is not None:
            yield from self._stage.read(name)
            return
        with self._opened() as (handle, members):
            if name not in members:
                raise NotFound(f"{self.path}: there is no {name} in it")
            offset, size = members[name]
            end = offset + size
            while offset < end:
                with translated(self.path):
                    piece = os.pread(handle, min(PIECE, end - offset), offset)
                if not piece:
                    raise IntegrityError(f"{self.path}: cut short in {name}")
                offset += len(piece)
                yield piece

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Stage `chunks` as `name`, all of them or none; `close` makes it so."""
        self._begin().put(name, chunks)
        self._dirty = True

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only writer, from here until `close` or `discard`."""
        with self._mutex:
            self._begin()
            yield

    def close(self) -> None:
        """Replace the tar by one with what was staged, if anything was, and let others write."""
        with self._mutex:
            try:
                if self._stage is not None and self._dirty:
                    self._commit(self._stage)
            finally:
                self.discard()

    def discard(self) -> None:
        """Forget what was staged and let others write."""
        with self._mutex:
            handle, self._locked, self._stage, self._dirty = self._locked, None, None, False
            if handle is None:
                return
            try:
                self._clean()
                with suppress(OSError):
                    self._lock_path.unlink()
            finally:
                os.close(handle)

    def __del__(self) -> None:
        if getattr(self, "_locked", None) is not None:
            warnings.warn(f"{self.path}: never closed, so nothing was written", ResourceWarning, 2)
            self.discard()

    def _begin(self) -> Directory:
        with self._mutex:
            if self._stage is None:
                with translated(self.path):
                    self._real.parent.mkdir(parents=True, exist_ok=True)
                self._locked = locks.acquire(str(self._lock_path), patience=self._patience)
                try:
                    self._clean()
                    self._stage = Directory(str(self._stage_path), patience=self._patience)
                except BaseException:
                    self.discard()
                    raise
            return self._stage

    def _clean(self) -> None:
        """Remove what a killed writer left; only under the lock."""
        with translated(self.path):
            self._partial_path.unlink(missing_ok=True)
        if self._stage_path.exists():
            with translated(self.path):
                shutil.rmtree(self._stage_path)

    def _commit(self, stage: Directory) -> None:
        with translated(self.path):
            handle = os.open(
                self._partial_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666
            )
        try:
            names = {*stage.names(), *self._names()}
            for name in sorted(names, key=lambda n: (n.startswith("blobs/"), n != "oci-layout", n)):
                self._append(handle, name)
            with translated(self.path):
                write_all(handle, bytes(2 * _BLOCK))
                os.fsync(handle)
        finally:
            os.close(handle)
        with translated(self.path):
            self._partial_path.replace(self._real)
            folder = os.open(self._real.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _append(self, handle: int, name: str) -> None:
        identity = self.identity(name)
        if identity is None:
            raise NotFound(f"{self.path}: {name} vanished while the tar was written")
        size, seen = identity[0], 0
        with translated(self.path):
            write_all(handle, _header(name, size))
        for piece in self.read(name):
            seen += len(piece)
            with translated(self.path):
                write_all(handle, piece)
        if seen != size:
            raise IntegrityError(f"{self.path}: {name} changed while the tar was written")
        with translated(self.path):
            write_all(handle, bytes(-size % _BLOCK))

    def _names(self) -> list[str]:
        with suppress(NotFound), self._opened() as (_, members):
            return list(members)
        return []

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, dict[str, tuple[int, int]]]]:
        """Open the tar as it is now, with its members' offsets and sizes."""
        with translated(self.path):
            handle = os.open(self._real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            yield handle, self._index(handle)
        finally:
            os.close(handle)

    def _index(self, handle: int) -> dict[str, tuple[int, int]]:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise IntegrityError(f"{self.path}: not a regular file")
        version = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        with self._mutex:
            if version != self._version:
                with os.fdopen(os.dup(handle), "rb") as file:
                    self._members = _members(file, self.path)
                self._version = version
            return self._members


class _Frugal:
    """A file that refuses to be read in large pieces: a header cannot ask for the memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        if not 0 <= size <= HEADER:
            raise IntegrityError(f"a header of {size} bytes, and at most {HEADER} are read")
        return self._file.read(size)


def _members(file: BinaryIO, where: str) -> dict[str, tuple[int, int]]:
    """Index the plain files of a tar: name → offset and size in bytes."""
    import tarfile  # noqa: PLC0415 - 10 ms that a directory layout does not need

    found: dict[str, tuple[int, int]] = {}
    folders: set[str] = set()
    try:
        file.seek(0)
        frugal: BinaryIO = _Frugal(file)  # type: ignore[assignment] # all that tarfile calls
        with tarfile.open(fileobj=frugal, mode="r:") as archive:
            while (member := archive.next()) is not None:
                archive.members = []  # type: ignore[attr-defined] # else it keeps every one
                if len(found) + len(folders) >= MEMBERS:
                    raise IntegrityError(f"{where}: more than {MEMBERS} members")
                name = _name(member, where)
                if name in found or (name in folders and not member.isdir()):
                    raise IntegrityError(f"{where}: {name!r} is there twice")
                if member.isdir():
                    folders.add(name)
                else:
                    found[name] = (member.offset_data, member.size)
            _require_end(archive, file, where)
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as e:
        raise IntegrityError(
            f"{where}: not a tar that we read: {e}", hint="a compressed one is unpacked first"
        ) from e
    return found


def _name(member: TarInfo, where: str) -> str:
    name = member.name.removeprefix("./").rstrip("/")
    shown = f"{where}: {member.name[:200]!r}"
    if not (member.isreg() or member.isdir()) or member.issparse():
        raise IntegrityError(f"{shown} is neither a plain file nor a directory")
    if name.startswith("/") or ".." in name.split("/"):
        raise IntegrityError(f"{shown} leaves the archive")
    return name


def _require_end(archive: TarFile, file: BinaryIO, where: str) -> None:
    """Tarfile takes a damaged header in the middle for the end; what follows would vanish."""
    file.seek(archive.offset)
    if any(file.read(_BLOCK)):
        raise IntegrityError(f"{where}: a damaged header at byte {archive.offset}")


def _header(name: str, size: int) -> bytes:
    import tarfile  # noqa: PLC0415 - see above

    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf(tarfile.PAX_FORMAT)
