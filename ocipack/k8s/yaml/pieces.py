"""Where one document ends and the next begins, found in a stream that need not be whole.

Both Go readers split before they parse: every line that begins with `---` ends a document, also
inside a block text. kubectl takes a first line for a separator too, kustomize leaves it to its
parser. Memory holds one piece at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ocipack.k8s.yaml import limits
from ocipack.k8s.yaml.scalars import Dialect

WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
"""How UTF-16 begins; neither reader splits it."""

_MARK: Final = b"\n---"
_LINE: Final = 4096  # bytes of a separator that are waited for
_SHOWN: Final = 60
_KEPT: Final = 1024 * 1024


class Piece(NamedTuple):
    """What stands between two separators, and the `line` it begins on, from 1.

    `fault` says why it is no document to anybody, at `fault_line`: too large (then `chunk` is
    empty), or the separator behind it is none.
    """

    chunk: bytes
    line: int
    fault: str = ""
    fault_line: int = 0


def cut(blocks: Iterable[bytes], dialect: Dialect) -> Iterator[Piece]:
    """The pieces of a stream that comes in `blocks` of any size."""
    cutter = _Cutter()
    start = b""
    for block in blocks:
        if cutter.line:
            yield from cutter.more(block)
            continue
        start += block
        if len(start) >= len(_MARK):
            yield from cutter.begin(start, dialect)
    if not cutter.line:
        yield from cutter.begin(start, dialect)
    yield from cutter.end()


class _Cutter:
    """The part of the stream that no separator has ended yet."""

    __slots__ = ("_buffer", "_dropped", "_scan", "_start", "_wide", "line")

    def __init__(self) -> None:
        self.line = 0  # of the piece that is being gathered; 0 before the first byte
        self._buffer = bytearray()
        self._start = 0
        self._scan = 0
        self._dropped = False
        self._wide = False

    def begin(self, block: bytes, dialect: Dialect) -> Iterator[Piece]:
        """Take the first bytes, at least four of them unless the stream is shorter."""
        self.line = 1
        self._wide = block.startswith(WIDE)
        if dialect is Dialect.KUBECTL and block.startswith(_MARK[1:]):
            self._buffer += b"\n"  # as if a line stood before it: the first line may separate
            self._start = 1
        yield from self.more(block)

    def more(self, block: bytes) -> Iterator[Piece]:
        """Take more of the stream, and give what it ends."""
        buffer = self._buffer
        buffer += block
        while not self._wide and (hit := buffer.find(_MARK, self._scan)) >= 0:
            end = buffer.find(b"\n", hit + len(_MARK), hit + _LINE)
            if end < 0 and len(buffer) < hit + _LINE:
                self._scan = hit  # the separator's line is not all there
                break
            yield self._ended(hit, end if end >= 0 else hit + _LINE)
        else:
            self._scan = max(self._scan, len(buffer) - len(_MARK) + 1)
        self._shrink()

    def end(self) -> Iterator[Piece]:
        """What is left when the stream ends."""
        hit = -1 if self._wide else self._buffer.find(_MARK, self._scan)
        if hit >= 0:
            yield self._ended(hit, len(self._buffer))
        yield self._made(bytes(self._buffer[self._start :]))

    def _ended(self, hit: int, end: int) -> Piece:
        """The piece before the separator that begins behind `hit` and ends before `end`."""
        chunk = bytes(self._buffer[self._start : hit + 1])
        piece = self._made(chunk)
        line = self.line + chunk.count(b"\n")
        behind = bytes(self._buffer[hit + len(_MARK) : end]).strip()
        if behind and not behind.startswith(b"#") and not piece.fault:
            shown = bytes(self._buffer[hit + 1 : end]).rstrip().decode(errors="replace")[:_SHOWN]
            piece = piece._replace(fault=f"not a document separator: {shown!r}", fault_line=line)
        self._start, self._scan, self.line = end + 1, end, line + 1
        self._dropped = False
        return piece

    def _made(self, chunk: bytes) -> Piece:
        if self._dropped or len(chunk) > limits.PIECE:
            fault = f"a document of more than {limits.PIECE} bytes"
            return Piece(b"", self.line, fault, self.line)
        return Piece(chunk, self.line)

    def _shrink(self) -> None:
        """Forget what was given out, and the beginning of a piece that is too large anyway."""
        if self._start > _KEPT:
            self._forget(self._start)
        if len(self._buffer) - self._start > limits.PIECE + _KEPT:
            self._dropped = True
            self.line += self._buffer.count(b"\n", self._start, self._scan)
            self._start = self._scan
            self._forget(self._scan)

    def _forget(self, count: int) -> None:
        del self._buffer[:count]
        self._start, self._scan = max(self._start - count, 0), max(self._scan - count, 0)
