"""A layout's files in a directory: opened without following links, replaced whole, durable.

Every name is opened from the layout's root by handle, one component at a time, so that no link
inside a hostile layout leads out of it. A file is written under another name in the same folder,
synced, and renamed: what has its final name is whole, also after a kill or a power cut. Writers
hold a shared lock while such a half-written file exists, so whoever gets that lock alone knows
that the ones it finds were left by the dead.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError, NotFound, Rejected, Unavailable
from ocipack.stores.layout import locks
from ocipack.stores.layout.failures import translated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE = 1024 * 1024
"""Bytes read at once."""

INDEX_LOCK = ".ocipack-index.lock"
WRITE_LOCK = ".ocipack-write.lock"
_PARTIAL = ".ocipack-partial-"
_OURS = {"blobs", "oci-layout", INDEX_LOCK, WRITE_LOCK}

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO must not hang us
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Identity = tuple[int, ...]
"""What changes whenever a file's content may have changed."""


class Directory:
    """Files of a layout by name (`index.json`, `blobs/sha256/…`), below the directory `path`."""

    def __init__(self, path: str, *, patience: float = locks.PATIENCE) -> None:
        self.path = path
        self._patience = patience
        self._swept = False
        self._mutex = Lock()

    def identity(self, name: str) -> Identity | None:
        """Tell which version of `name` is there, its size in bytes first; None if it is not."""
        try:
            with self._opened(name) as handle:
                found = os.fstat(handle)
        except NotFound:
            return None
        return (found.st_size, found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)

    def read(self, name: str) -> Iterator[bytes]:
        """Stream `name`; NotFound if it is not there, IntegrityError if it is no plain file."""
        with self._opened(name) as handle:
            while True:
                with translated(f"{self.path}/{name}"):
                    piece = os.read(handle, PIECE)
                if not piece:
                    return
                yield piece

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Make `name` hold `chunks`, all of them or, if anything fails, what it held before."""
        self._prepare()
        with self._writing(), self._parent(name, make=True) as (folder, leaf):
            partial = f"{_PARTIAL}{os.urandom(8).hex()}"
            path = f"{self.path}/{name}"
            try:
                self._fill(folder, partial, chunks, path)
                with translated(path):
                    os.replace(partial, leaf, src_dir_fd=folder, dst_dir_fd=folder)
                    os.fsync(folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only one who reads index.json in order to change it."""
        self._prepare()
        with locks.held(f"{self.path}/{INDEX_LOCK}", patience=self._patience):
            yield

    def names(self) -> list[str]:
        """List the files of the layout, sorted; locks and what is half written are none."""
        found = []
        for folder in ("", "blobs/sha256/", "blobs/sha512/"):
            with suppress(NotFound), self._parent(f"{folder}x") as (handle, _):
                found += [f"{folder}{leaf}" for leaf in os.listdir(handle)]  # noqa: PTH208 - by handle
        return sorted(n for n in found if n != "blobs" and "ocipack-" not in n)

    def close(self) -> None:
        """Nothing is held back: what was put is there."""

    def discard(self) -> None:
        """Nothing is held back: what was put is there."""

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        path = f"{self.path}/{name}"
        with self._parent(name) as (folder, leaf):
            with translated(path):
                handle = os.open(leaf, _READ, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise IntegrityError(f"{path}: not a regular file")
                yield handle
            finally:
                os.close(handle)

    @contextmanager
    def _parent(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of `name` without following links; make it if asked."""
        *folders, leaf = name.split("/")
        with translated(self.path):
            handle = os.open(self.path, _FOLDER)
        try:
            with translated(f"{self.path}/{'/'.join(folders)}"):
                for folder in folders:
                    if make:
                        _make(folder, handle)
                    below = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
                    os.close(handle)
                    handle = below
            yield handle, leaf
        finally:
            os.close(handle)

    def _fill(self, folder: int, partial: str, chunks: Iterable[bytes], path: str) -> None:
        with translated(path):
            handle = os.open(partial, _WRITE, 0o666, dir_fd=folder)
        try:
            for chunk in chunks:
                with translated(path):
                    write_all(handle, chunk)
            with translated(path):
                os.fsync(handle)
        finally:
            os.close(handle)

    def _prepare(self) -> None:
        """Before the first write: make the directory, and remove what killed writers left."""
        with self._mutex:
            if self._swept:
                return
            with translated(self.path):
                _make_all(Path(self.path))
                self._refuse_strangers([entry.name for entry in Path(self.path).iterdir()])
            with suppress(Unavailable), locks.held(f"{self.path}/{WRITE_LOCK}", patience=0):
                self._sweep()
            self._swept = True

    def _refuse_strangers(self, names: list[str]) -> None:
        if "index.json" in names:
            return
        strangers = sorted(n for n in names if n not in _OURS and not n.startswith(_PARTIAL))
        if strangers:
            raise Rejected(
                f"{self.path}: not an OCI layout, and not empty: it holds {strangers[0]!r}",
                hint="give the layout a directory of its own",
            )

    def _sweep(self) -> None:
        folders = ["x", "blobs/sha256/x", "blobs/sha512/x"]
        for name in folders:
            with suppress(NotFound), self._parent(name) as (folder, _), translated(self.path):
                for leaf in os.listdir(folder):  # noqa: PTH208 - by handle
                    if leaf.startswith(_PARTIAL):
                        os.unlink(leaf, dir_fd=folder)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with locks.held(f"{self.path}/{WRITE_LOCK}", shared=True, patience=self._patience):
            yield


def write_all(handle: int, data: bytes | memoryview) -> None:
    """Write all of `data`: the system may take less at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _make(folder: str, parent: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(folder, dir_fd=parent)
        os.fsync(parent)


def _make_all(path: Path) -> None:
    """Make `path` and what is missing above it, durably."""
    if path.is_dir():
        return
    _make_all(path.parent)
    with suppress(FileExistsError):
        path.mkdir()
    handle = os.open(path.parent, _FOLDER)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
