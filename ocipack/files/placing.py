"""Writing files below a directory by its handle, never through a link."""

from __future__ import annotations

import os
from contextlib import suppress
from io import RawIOBase
from types import TracebackType
from typing import Self

from ocipack.errors import Rejected
from ocipack.files.seam import printable, translated
from ocipack.tree.tree import Entry, check_name

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_all(file: RawIOBase, chunk: bytes) -> None:
    """Write the whole of `chunk`, of which the system may take less at a time."""
    rest = memoryview(chunk)
    while rest:
        rest = rest[file.write(rest) or 0 :]


class Placer:
    """Puts files into `root`, an open handle to each directory on the way to the last one.

    Modes are 0644 and 0755, less what the umask takes. A name that is there already is an error,
    and so is a link where a directory should be.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._names: list[str] = []
        self._handles: list[int] = []

    def __enter__(self) -> Self:
        with translated(self._root):
            self._handles.append(os.open(self._root, _DIRECTORY))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        while self._handles:
            os.close(self._handles.pop())

    def put(self, entry: Entry) -> None:
        """Write one file; Rejected if the file system takes its name for one that is there."""
        check_name(entry.name)
        *parents, last = entry.name.split("/")
        path = f"{self._root}/{entry.name}"
        try:
            with translated(path):
                self._enter(parents)
                mode = 0o755 if entry.executable else 0o644
                handle = os.open(last, _NEW, mode, dir_fd=self._handles[-1])
        except Exception as e:
            if isinstance(e.__cause__, FileExistsError):
                raise Rejected(
                    f"{printable(entry.name)}: this file system has that name already",
                    hint="it may know no upper and lower case: unpack elsewhere",
                ) from e
            raise
        with os.fdopen(handle, "wb", buffering=0) as file:
            for chunk in entry.content:
                with translated(path):
                    write_all(file, chunk)

    def _enter(self, parents: list[str]) -> None:
        """Make `parents` the open directory, keeping the handles that both have in common."""
        same = 0
        while same < min(len(parents), len(self._names)) and parents[same] == self._names[same]:
            same += 1
        while len(self._names) > same:
            self._names.pop()
            os.close(self._handles.pop())
        for name in parents[same:]:
            with suppress(FileExistsError):  # ours, or a link, which the next line does not open
                os.mkdir(name, 0o755, dir_fd=self._handles[-1])
            self._handles.append(os.open(name, _DIRECTORY, dir_fd=self._handles[-1]))
            self._names.append(name)
