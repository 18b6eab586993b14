"""Reading a tar.gz that a stranger made.

Accepted: what Flux, GNU tar, Go, Python and we write for plain trees. That is one or more gzip
members; POSIX, GNU or old headers; `./` before names, directories listed or not, long names of
GNU or pax; zeros after the end. Everything that two readers could take for two trees, that points
elsewhere, or that is more than the budget is an IntegrityError that names it:

1. links, devices, fifos, sparse files (`ustar.parse`);
2. names that are absolute, lead out, or are not plain (`tree.check_name`), and `.git`, whose
   configuration can name programs that git then runs;
3. a name that comes twice, or is both a file and a directory;
4. more bytes or entries than the limits, or more bytes than so short a layer may turn into;
5. an archive that is cut short, or has anything after its end;
6. a content digest other than the config promises.

Only after the last entry is all of that known: whoever publishes what it read does so then.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator

from ocipack.errors import IntegrityError, malformed
from ocipack.oci.digest import Digest
from ocipack.tree import ustar
from ocipack.tree.limits import LIMITS, Limits
from ocipack.tree.tree import Entry, check_name, parents, shown

_GZIP = b"\x1f\x8b"
_PIECE = 256 * 1024
_PAX_LIMIT = 64 * 1024
_GIT = ".git"


def read(
    chunks: Iterable[bytes], *, size: int, diff_id: Digest | None = None, limits: Limits = LIMITS
) -> Iterator[Entry]:
    """Yield the files of a compressed archive of `size` bytes, in its order.

    `diff_id` is the digest that the uncompressed archive must have, if anything says so. What is
    left of an entry's content is skipped when the next one is asked for. `chunks` is read to its
    end, so that a stream that checks itself has its say.
    """
    tar = _Tar(_decompressed(chunks, limits.uncompressed(size)), diff_id)
    names = _Names(limits)
    path: bytes | None = None
    while (block := tar.take(ustar.BLOCK)) != bytes(ustar.BLOCK):
        head = ustar.parse(block)
        if head.kind == ustar.PAX_GLOBAL:
            if path is not None or ustar.pax_path(tar.small(head.size)) is not None:
                raise IntegrityError("tar: a global pax header that gives a name")
        elif head.kind in {ustar.PAX, ustar.LONG_NAME}:
            path = _long_name(tar, head, path)
        else:
            name = names.take(head, head.name if path is None else path)
            path = None
            if head.kind == ustar.REGULAR:
                yield Entry(name, head.size, head.executable, tar.stream(head.size))
                tar.skip(head.size)
    if path is not None:
        raise IntegrityError("tar: a long name without an entry")
    tar.finish()


def _long_name(tar: _Tar, head: ustar.Header, before: bytes | None) -> bytes | None:
    """The name that a pax or GNU header gives to the next entry; None if it gives none."""
    if head.kind == ustar.PAX:
        found = ustar.pax_path(tar.small(head.size))
    else:
        raw = tar.small(head.size)
        found = raw.removesuffix(b"\0")
    if before is not None:
        raise IntegrityError(f"tar: two long names for one entry: {before[:200]!r}")
    return found


class _Names:
    """Which names were there, and whether that is still within the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._bytes = limits, 0
        self._files: set[str] = set()
        self._directories: set[str] = set()

    def take(self, head: ustar.Header, raw: bytes) -> str:
        """Judge the next entry's name and return it plain; empty for the root directory."""
        with malformed(f"tar: {raw[:200]!r}"):
            name = raw.decode()
        directory = head.kind == ustar.DIRECTORY
        if directory and name in {".", "./"}:
            return ""
        name = name.removeprefix("./")
        if directory:
            name = name.removesuffix("/")
        with malformed("tar"):
            check_name(name)
        if any(part.lower() == _GIT for part in name.split("/")):
            raise IntegrityError(f"tar: {shown(name)}: part of a git repository")
        self._place(name, directory=directory)
        return name

    def _place(self, name: str, *, directory: bool) -> None:
        if name in self._files or (not directory and name in self._directories):
            raise IntegrityError(f"tar: there twice: {shown(name)}")
        above = list(parents(name, self._directories))
        if clash := next((parent for parent in above if parent in self._files), None):
            raise IntegrityError(f"tar: both a file and a directory: {shown(clash)}")
        new = above if directory and name in self._directories else [name, *above]
        self._bytes += sum(len(found.encode()) for found in new)
        self._directories.update(above)
        (self._directories if directory else self._files).add(name)
        # directories that nothing lists count as well, or a few names would fill the memory
        if len(self._files) + len(self._directories) > self._limits.entries:
            raise IntegrityError(f"tar: more than {self._limits.entries} files and directories")
        if self._bytes > self._limits.names:
            raise IntegrityError(f"tar: more than {self._limits.names} bytes of names")


class _Tar:
    """A cursor over uncompressed bytes that hashes all of them."""

    def __init__(self, pieces: Iterator[bytes], diff_id: Digest | None) -> None:
        self._pieces, self._diff_id = pieces, diff_id
        self._hash = diff_id.hasher() if diff_id is not None else hashlib.sha256()
        self._held, self._at = b"", 0
        self._left = 0

    def _refill(self) -> bool:
        piece = next(self._pieces, b"")
        self._hash.update(piece)
        self._held, self._at = piece, 0
        return bool(piece)

    def _some(self, most: int) -> bytes:
        """Between 1 and `most` of the next bytes."""
        if self._at == len(self._held) and not self._refill():
            raise IntegrityError("tar: cut short")
        found = self._held[self._at : self._at + most]
        self._at += len(found)
        return found

    def take(self, size: int) -> bytes:
        """Exactly the next `size` bytes."""
        found = self._some(size) if size else b""
        while len(found) < size:
            found += self._some(size - len(found))
        return found

    def small(self, size: int) -> bytes:
        """The content of an extended header, which says nothing that needs more space."""
        if size > _PAX_LIMIT:
            raise IntegrityError(f"tar: an extended header of {size} bytes")
        data = self.take(size)
        self.take(-size % ustar.BLOCK)
        return data

    def stream(self, size: int) -> Iterator[bytes]:
        """The next `size` bytes, in pieces; `_left` always says what is still to come."""
        self._left = size
        return self._rest()

    def _rest(self) -> Iterator[bytes]:
        while self._left:
            piece = self._some(self._left)
            self._left -= len(piece)
            yield piece

    def skip(self, size: int) -> None:
        """Pass over what nobody took of the last stream of `size` bytes, and its padding."""
        for _ in self._rest():
            pass
        self.take(-size % ustar.BLOCK)

    def finish(self) -> None:
        """Check what follows the first block of zeros: another one, zeros, nothing."""
        if any(self.take(ustar.BLOCK)):
            raise IntegrityError("tar: no end where it should be")
        while True:
            rest = self._held[self._at :]
            if rest.count(0) != len(rest):
                raise IntegrityError("tar: something after the end")
            if not self._refill():
                break
        if self._diff_id is not None and self._hash.hexdigest() != self._diff_id.hex:
            actual = f"{self._diff_id.algorithm}:{self._hash.hexdigest()}"
            raise IntegrityError(f"the content is {actual}, and its config says {self._diff_id}")


def _decompressed(chunks: Iterable[bytes], limit: int) -> Iterator[bytes]:
    """Undo gzip, member after member; IntegrityError as soon as there are more than `limit` bytes.

    Both checksums of each member are compared (zlib does that).
    """
    total, member = 0, None
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE):
            rest = chunk[start : start + _PIECE]
            while rest:
                fresh = member is None
                member = member or zlib.decompressobj(wbits=31)
                piece, rest = _inflate(member, rest, fresh=fresh)
                total += len(piece)
                if total > limit:
                    raise IntegrityError(f"gzip: more than the {limit} bytes that it may turn into")
                if piece:
                    yield piece
                if member.eof:
                    member = None
    if member is not None:
        raise IntegrityError("gzip: cut short")


def _inflate(member: zlib._Decompress, data: bytes, *, fresh: bool) -> tuple[bytes, bytes]:
    """One piece of output, and the input that is left."""
    try:
        piece = member.decompress(data, _PIECE)
    except zlib.error as e:
        foreign = fresh and data[:2] != _GZIP
        what = "not gzip, or something after its end" if foreign else str(e)
        raise IntegrityError(f"gzip: {what}") from e
    return piece, member.unused_data or member.unconsumed_tail
