"""Manifests that are changed where they stand: found without following a link, replaced whole.

A link is never followed, neither while looking nor while writing: what it points at may be outside
of what the user named. Every directory on the way is opened from the handle of its parent.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from ocipack.errors import Misuse, Rejected, Unavailable
from ocipack.files.seam import printable, translated

LIMIT: Final = 1_000_000
"""Files and directories below one argument."""

BYTES: Final = 64 * 1024 * 1024
"""Bytes of a manifest that is to be changed; a longer one is an error."""

_NAMES: Final = (".yaml", ".yml")
_BARE: Final = "Kustomization"
_SKIPPED: Final = ".git"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """A file by the directory that the user named, and the names that lead to it from there."""

    root: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path, for messages."""
        return os.path.join(self.root, *self.parts)  # noqa: PTH118 - a path as it was typed

    def read(self) -> bytes:
        """The content. Denied or Unavailable if it cannot be read, Rejected if it is too long."""
        with self._parent() as parent:
            return self._content(parent)

    def replace(self, before: bytes, after: bytes) -> None:
        """Put `after` in the place of `before`, in one step, with the mode that the file has.

        Rejected if the file is not what it was when it was read: somebody else changed it.
        Nothing is left of a failure.
        """
        with self._parent() as parent, translated(self.path):
            if self._content(parent) != before:
                raise Rejected(
                    f"{printable(self.path)}: changed while we worked on it", hint="run again"
                )
            mode = os.stat(self.parts[-1], dir_fd=parent, follow_symlinks=False).st_mode
            new = f".{self.parts[-1][:200]}.{secrets.token_hex(6)}"
            try:
                handle = os.open(new, _NEW, 0o600, dir_fd=parent)
                with os.fdopen(handle, "wb") as file:
                    file.write(after)
                    file.flush()
                    os.fchmod(handle, stat.S_IMODE(mode))
                    os.fsync(handle)
                os.rename(new, self.parts[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with suppress(OSError):
                    os.unlink(new, dir_fd=parent)
                raise

    def _content(self, parent: int) -> bytes:
        with translated(self.path):
            handle = os.open(self.parts[-1], _FILE, dir_fd=parent)
            with os.fdopen(handle, "rb", buffering=0) as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise Unavailable(f"{printable(self.path)}: not a plain file any more")
                found = bytearray()
                while chunk := file.read(_CHUNK):
                    found += chunk
                    if len(found) > BYTES:
                        raise Rejected(f"{printable(self.path)}: more than {BYTES} bytes")
                return bytes(found)

    @contextmanager
    def _parent(self) -> Iterator[int]:
        """An open handle of the file's directory."""
        with translated(self.path):
            handle = os.open(self.root, _DIRECTORY)
        try:
            for name in self.parts[:-1]:
                with translated(self.path):
                    inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)


def create(path: str, data: bytes) -> None:
    """Write a file that is not there yet; Unavailable if it is, or if the disk is full."""
    with translated(path):
        handle = os.open(path, _NEW, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
        except BaseException:
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - a path as it was typed
            raise


def manifests(path: str) -> dict[str, Place]:
    """The files that `path` names, by name: itself, or every YAML file below it.

    `.git` is left out, and so is every link. Misuse if there is nothing at `path`, or a link to a
    file; Denied or Unavailable if a directory cannot be read.
    """
    clean = os.path.normpath(path)
    with translated(path):
        if not os.path.lexists(path):
            raise Misuse(f"{printable(path)}: no such file or directory")
        if os.path.isdir(path):  # noqa: PTH112 - a path as it was typed
            prefix = "" if clean == os.curdir else f"{clean}/"
            return {f"{prefix}{'/'.join(parts)}": Place(path, parts) for parts in _below(path)}
    root, name = os.path.split(clean)
    if os.path.islink(clean):  # noqa: PTH114 - a path as it was typed
        raise Misuse(
            f"{printable(path)}: a link, and a file is changed where it stands",
            hint="name the file that it points at",
        )
    return {clean: Place(root or os.curdir, (name,))}


def _below(root: str) -> Iterator[tuple[str, ...]]:
    waiting: list[tuple[str, ...]] = [()]
    count = 0
    while waiting:
        parts = waiting.pop()
        path = os.path.join(root, *parts)  # noqa: PTH118 - a path as it was typed
        with translated(path), os.scandir(path) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        for entry in listed:
            count += 1
            if count > LIMIT:
                raise Rejected(f"{printable(root)}: more than {LIMIT} files")
            if entry.is_symlink() or entry.name == _SKIPPED:
                continue
            if entry.is_dir():
                waiting.append((*parts, entry.name))
            elif entry.is_file() and (entry.name.endswith(_NAMES) or entry.name == _BARE):
                yield (*parts, entry.name)
