"""Write a layout as a tar in one stream, whose members are all known before the first byte.

The same members have the same bytes, on any machine and whatever came when: headers of USTAR
without owners and times (`tree.ustar`), in the order they are given. So a run that follows one
that was killed can tell what is there already: as many members from the beginning as are, header
and content, what would be written now. It hashes them, and goes on behind them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from ocipack.errors import Misuse, Rejected
from ocipack.stores.layout import locks
from ocipack.stores.layout.failures import translated
from ocipack.stores.layout.volumes import MEMBERS, Checksums, Parts, Sink, finished, unfinished
from ocipack.tree import ustar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from types import TracebackType

    from ocipack.oci.layout import Member


class Stream:
    """A tar at `path`, in volumes of `volume` bytes if that is not 0, made in a `with` block.

    It is there when the block ends, and not before; if the block fails, what was written stays
    under another name, for the next run. Rejected if there is one already, unless it may
    `replace` it.
    """

    def __init__(
        self,
        path: Path,
        *,
        volume: int = 0,
        replace: bool = False,
        patience: float = locks.PATIENCE,
    ) -> None:
        self._path, self._volume, self._replace = path, volume, replace
        self._patience = patience
        self._lock_path = path.with_name(f".{path.name}.lock")
        self._lock = -1
        self._members: Sequence[Member] = ()
        self._next = 0
        self._sink: Sink | None = None
        self.files: tuple[Path, ...] = ()
        self.checksums: tuple[str, ...] = ()
        self.size = 0

    def __enter__(self) -> Self:
        with translated(str(self._path)):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = locks.acquire(str(self._lock_path), patience=self._patience)
        try:
            self._refuse_standing()
        except BaseException:
            self._unlock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._finish()
            elif self._sink is not None:
                self._sink.close()
        finally:
            self._unlock()

    def _refuse_standing(self) -> None:
        if self._path.is_dir():
            raise Misuse(f"{self._path}: a directory, and the name of a file is needed")
        if not self._replace and (there := finished(self._path)):
            raise Rejected(f"{there[0]}: there is an archive already", hint="--force replaces it")

    def begin(self, members: Sequence[Member]) -> int:
        """Say what will be written, in its order; return how many of them are there already.

        Rejected for more than are read again.
        """
        if len(members) > MEMBERS:
            raise Rejected(
                f"{self._path}: {len(members)} files, and at most {MEMBERS} are read again",
                hint="make several archives",
            )
        self._members = members
        self._next, sums = self._kept()
        self._sink = Sink(self._path, sums, sums.size)
        return self._next

    def put(self, chunks: Iterable[bytes]) -> None:
        """Write the next member, whose `chunks` must be as many bytes as it was said to have.

        They are not hashed here: `Descriptor.check` is what they come from.
        """
        member, sink = self._members[self._next], self._sink
        if sink is None:
            raise RuntimeError("nothing was begun")
        seen = 0
        sink.write(ustar.header(member.name, size=member.size, executable=False))
        for chunk in chunks:
            seen += len(chunk)
            sink.write(chunk)
        if seen != member.size:
            raise RuntimeError(f"{member.name}: {seen} bytes for a header that says {member.size}")
        sink.write(ustar.padding(member.size))
        self._next += 1

    def _finish(self) -> None:
        if self._sink is None or self._next != len(self._members):
            raise RuntimeError("an archive was left before its end")
        self._sink.write(ustar.END)
        self.size = self._sink.sums.size
        self.checksums = tuple(self._sink.sums.all())
        self.files = self._sink.finish()

    def _kept(self) -> tuple[int, Checksums]:
        """How many members are there from the beginning, and the checksums up to their end."""
        sums = Checksums(self._volume)
        with Parts(unfinished(self._path, self._volume)) as parts:
            for number, member in enumerate(self._members):
                before = sums.copy()
                if not _same(parts, member, sums):
                    return number, before
        return len(self._members), sums

    def _unlock(self) -> None:
        with suppress(OSError):
            self._lock_path.unlink()
        os.close(self._lock)


def _same(parts: Parts, member: Member, sums: Checksums) -> bool:
    """Whether the next bytes of `parts` are `member`, whole; `sums` takes them."""
    head = ustar.header(member.name, size=member.size, executable=False)
    tail = ustar.padding(member.size)
    at = sums.size
    if at + len(head) + member.size + len(tail) > parts.size:
        return False
    if parts.take(at, len(head)) != head:
        return False
    sums.update(head)
    hasher = member.digest.hasher()
    for piece in parts.pieces(at + len(head), member.size):
        hasher.update(piece)
        sums.update(piece)
    if hasher.hexdigest() != member.digest.hex or parts.take(sums.size, len(tail)) != tail:
        return False
    sums.update(tail)
    return True
