"""A private directory for the length of one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Self

from ocipack.files.placing import Placer, write_all
from ocipack.files.seam import translated

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from ocipack.tree.tree import Entry

_CHUNK = 1024 * 1024

SMALL = 1024 * 1024
"""Bytes of a stream that are kept in memory rather than in a file."""


class Workspace:
    """A directory that only this user may enter (0700), gone when the block ends.

    `parent` is where to make it; the system's place for temporary files unless given. It is made
    when something has to be put there: what is small stays in memory.
    """

    def __init__(self, parent: str | None = None) -> None:
        self._parent = parent
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        path = self.__dict__.pop("path", None)
        if path is not None:
            from shutil import rmtree  # noqa: PLC0415 - start-up

            rmtree(path, ignore_errors=True)

    @cached_property
    def path(self) -> Path:
        """The directory; Denied, NotFound or Unavailable if it cannot be made."""
        import tempfile  # noqa: PLC0415 - start-up
        from pathlib import Path  # noqa: PLC0415 - start-up

        with translated(self._parent or tempfile.gettempdir()):
            return Path(tempfile.mkdtemp(prefix="ocipack-", dir=self._parent))

    def spool(self, chunks: Iterable[bytes]) -> Callable[[], Iterator[bytes]]:
        """Take a stream to its end; the result opens it again, as long as the block lasts.

        Unavailable if the disk is full; what was written is then removed at once.
        """
        rest = iter(chunks)
        held, size = list[bytes](), 0
        for chunk in rest:
            held.append(chunk)
            size += len(chunk)
            if size > SMALL:
                break
        else:
            return lambda: iter(held)
        del chunk  # or the longest one stays beside those that follow
        return self._written(held, rest)

    def _written(self, held: list[bytes], rest: Iterator[bytes]) -> Callable[[], Iterator[bytes]]:
        """Spool what is `held` and then the `rest` in a file."""
        path = self._new("blob")
        try:
            with translated(str(path)), path.open("xb", buffering=0) as file:
                while held:
                    write_all(file, held.pop(0))
                for chunk in rest:
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
