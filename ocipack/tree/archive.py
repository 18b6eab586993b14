"""A tree as a deterministic tar.gz: the same bytes for the same tree, everywhere.

The tar: USTAR; files 0644 or 0755, directories that hold something 0755; no owner, no time; stored
names in bytewise order, directories with their slash; a pax header only for a name that is not
ASCII or does not fit; two blocks of zeros and nothing after them.

The gzip: members of MEMBER bytes of tar each (RFC 1952 §2.2: a file is a series of members), so
that memory stays flat. `deflate` bytes depend on the pinned libdeflate alone; `stored` bytes on
nothing, for they are not compressed at all (RFC 1951 §3.2.4).
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from threading import Thread
from typing import TYPE_CHECKING

import deflate

from ocipack.errors import IntegrityError, Misuse, Rejected
from ocipack.oci.digest import Digest
from ocipack.tree import ustar
from ocipack.tree.limits import LIMITS, Limits, MiB
from ocipack.tree.tree import shown

if TYPE_CHECKING:
    from ocipack.tree.tree import File, Tree

MEMBER = 8 * MiB
"""Bytes of tar in each gzip member but the last."""

DEFLATE, STORED = "deflate", "stored"
LEVEL = 6

_GZIP_HEADER = bytes.fromhex("1f8b08 00 00000000 00 ff")
_STORED_BLOCK = 65535


@dataclass(frozen=True, slots=True)
class Sums:
    """What one pass over a tree found out: sizes are in bytes.

    `diff_id` is the digest of the tar, `digest` and `size` belong to its compressed form.
    """

    digest: Digest
    size: int
    diff_id: Digest
    tar_size: int


class Archive:
    """A tree being written: iterate once for the compressed bytes, then ask for `sums`.

    Raises Misuse for an unknown compression, Rejected for a tree past `limits`: before anything
    is read, or at the end if it compresses so well that reading would take it for a bomb.
    """

    def __init__(self, tree: Tree, *, compression: str = DEFLATE, limits: Limits = LIMITS) -> None:
        if compression not in _MEMBERS:
            known = " or ".join(_MEMBERS)
            raise Misuse(f"no such compression: {compression!r}", hint=f"use {known}")
        self._tree, self._compress, self._limits = tree, _MEMBERS[compression], limits
        self._entries = _entries(tree)
        self._sums: Sums | None = None
        self._started = False
        _affordable(self._entries, limits)

    @property
    def sums(self) -> Sums:
        """Digests and sizes; only after the last byte has been taken."""
        if self._sums is None:
            raise RuntimeError("the archive has not been read to its end")
        return self._sums

    def __iter__(self) -> Iterator[bytes]:
        if self._started:
            raise RuntimeError("a tree is read once: what was hashed is what is sent")
        self._started = True
        whole, content, size, tar_size = hashlib.sha256(), hashlib.sha256(), 0, 0
        for block in _members(_tar(self._entries)):
            hashing = Thread(target=content.update, args=(block,))  # outside of Python's lock
            hashing.start()
            member = self._compress(block)
            hashing.join()
            whole.update(member)
            size += len(member)
            tar_size += len(block)
            if tar_size > self._limits.tar:
                raise _too_long(self._limits)
            del block
            yield member
            del member
        if tar_size > self._limits.uncompressed(size):
            raise Rejected(
                f"the tree compresses {tar_size // size} times, and more than "
                f"{self._limits.ratio} times is taken for a bomb by whoever reads it",
                hint="leave the repetitive files out, or use the compression 'stored'",
            )
        digest, diff_id = (Digest("sha256", found.hexdigest()) for found in (whole, content))
        self._sums = Sums(digest, size, diff_id, tar_size)


def _entries(tree: Tree) -> list[tuple[str, File | None]]:
    """Every stored name in bytewise order, and its file unless it is a directory."""
    found: list[tuple[str, File | None]] = [(f"{name}/", None) for name in tree.directories]
    found.extend(tree.files.items())
    found.sort(key=itemgetter(0))  # code points sort as UTF-8's bytes do
    return found


def _affordable(entries: list[tuple[str, File | None]], limits: Limits) -> None:
    if len(entries) > limits.entries:
        raise Rejected(
            f"{len(entries)} files and directories, and at most {limits.entries} are packed",
            hint="pack a smaller directory, or leave files out with --ignore",
        )
    slashes = sum(file is None for _, file in entries)
    if len("".join([name for name, _ in entries]).encode()) - slashes > limits.names:
        raise Rejected(f"the names alone are longer than the {limits.names} bytes that are packed")
    if sum([file.size for _, file in entries if file]) > limits.tar:
        size, name = max((file.size, name) for name, file in entries if file)
        raise _too_long(limits, f"; the largest file is {shown(name)} with {size} bytes")


def _too_long(limits: Limits, detail: str = "") -> Rejected:
    return Rejected(
        f"the tree is longer than the {limits.tar} bytes that are packed{detail}",
        hint="an artifact carries manifests: leave large files out with --ignore",
    )


def _head(name: str, file: File | None) -> bytes:
    if file is None:
        return ustar.header(name, size=0, executable=False)
    return ustar.header(name, size=file.size, executable=file.executable)


def _tar(entries: Iterable[tuple[str, File | None]]) -> Iterator[bytes]:
    for name, file in entries:
        yield _head(name, file)
        if file is None:
            continue
        seen = 0
        for chunk in file.open():
            seen += len(chunk)
            if seen > file.size:
                break
            yield chunk
        if seen != file.size:
            raise IntegrityError(f"{shown(name)}: not the {file.size} bytes that its size says")
        yield ustar.padding(file.size)
    yield ustar.END


def _members(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut the stream after every MEMBER bytes, wherever its chunks end."""
    parts: list[bytes | memoryview] = []
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size < MEMBER:
            parts.append(chunk)
            continue
        rest = memoryview(chunk)
        while size >= MEMBER:
            size -= MEMBER
            cut = len(rest) - size
            block = b"".join((*parts, rest[:cut]))
            parts, rest = [], rest[cut:]
            yield block
            del block  # or the next one is put together beside it
        parts.append(rest)
    if size:
        yield b"".join(parts)


def _deflated(data: bytes) -> bytes:
    return bytes(deflate.gzip_compress(data, LEVEL))


def _stored(data: bytes) -> bytes:
    parts = [_GZIP_HEADER]
    for start in range(0, len(data), _STORED_BLOCK):
        block = data[start : start + _STORED_BLOCK]
        final = start + len(block) == len(data)
        parts += (struct.pack("<?HH", final, len(block), len(block) ^ 0xFFFF), block)
    parts.append(struct.pack("<II", zlib.crc32(data), len(data)))
    return b"".join(parts)


_MEMBERS: dict[str, Callable[[bytes], bytes]] = {DEFLATE: _deflated, STORED: _stored}
COMPRESSIONS = tuple(_MEMBERS)
