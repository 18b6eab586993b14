"""A private directory for the length of one run."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from ocipack.files.placing import Placer, write_all
from ocipack.files.seam import translated
from ocipack.tree.tree import Entry

_CHUNK = 1024 * 1024


class Workspace:
    """A directory that only this user may enter (0700), gone when the block ends.

    `parent` is where to make it; the system's place for temporary files unless given.
    """

    def __init__(self, parent: str | None = None) -> None:
        self._parent = parent
        self._count = 0
        self.path = Path()

    def __enter__(self) -> Self:
        with translated(self._parent or tempfile.gettempdir()):
            self.path = Path(tempfile.mkdtemp(prefix="ocipack-", dir=self._parent))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def spool(self, chunks: Iterable[bytes]) -> Callable[[], Iterator[bytes]]:
        """Take a stream to its end; the result opens it again, as long as the block lasts.

        Unavailable if the disk is full; what was written is then removed at once.
        """
        path = self._new("blob")
        try:
            with translated(str(path)), path.open("xb", buffering=0) as file:
                for chunk in chunks:
                    write_all(file, chunk)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return lambda: _read(path)

    def extract(self, entries: Iterable[Entry]) -> Path:
        """Write files into a new directory of this one, and return its path."""
        root = self._new("tree")
        with translated(str(root)):
            root.mkdir(0o700)
        with Placer(str(root)) as placer:
            for entry in entries:
                placer.put(entry)
        return root

    def directory(self) -> Path:
        """Make an empty directory in this one."""
        path = self._new("directory")
        with translated(str(path)):
            path.mkdir(0o700)
        return path

    def _new(self, kind: str) -> Path:
        self._count += 1
        return self.path / f"{kind}-{self._count}"


def _read(path: Path) -> Iterator[bytes]:
    with translated(str(path)), path.open("rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            yield chunk
