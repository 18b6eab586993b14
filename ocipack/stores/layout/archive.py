"""Read a layout in a tar that a stranger carried: an allow-list, and every byte hashed once.

1. A member is a plain file named `oci-layout`, `index.json` or `blobs/<algorithm>/<hex>`, or a
   directory on the way to one; everything else, and links, devices, sparse files, is refused.
2. A name that comes twice is refused: two readers would see two layouts.
3. There are at most MEMBERS of them; an extended header has at most HEADER bytes.
4. The archive ends with two blocks of zeros, and nothing but zeros (at most TAIL) follows, so
   that one which was cut short is found before anything of it is used.
5. Volumes but the last have the same size, and each has the checksum that the list says.
6. Each blob has the size and the digest that its name says: `check` reads all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self

from ocipack.errors import IntegrityError, NotFound
from ocipack.oci.digest import Digest
from ocipack.oci.layout import INDEX_FILE, LAYOUT_FILE
from ocipack.stores.layout.volumes import MEMBERS, Checksums, Parts, volumes
from ocipack.tree import ustar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HEADER = 64 * 1024
"""Bytes of an extended header (pax records, GNU long names)."""

TAIL = 1024 * 1024
"""Bytes of zeros after the end: what writes to tapes fills its last record with them."""

_BLOB = re.compile(r"blobs/(?:(sha256)/([0-9a-f]{64})|(sha512)/([0-9a-f]{128}))")
_FOLDERS = {"", ".", "blobs", "blobs/sha256", "blobs/sha512"}


def _ignore(_: int) -> None:
    pass


class Archive:
    """A layout in the tar at `path`, one file or volumes, open until `close`.

    NotFound if it is not there; IntegrityError if it is not what this module reads.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        names, self._listed = volumes(path)
        self._parts = Parts(names)
        try:
            self._check_sizes()
            self._members = _members(self._parts, str(path))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        self._parts.close()

    @property
    def where(self) -> str:
        """What it is called in messages."""
        return str(self.path)

    @property
    def size(self) -> int:
        """Bytes of the whole."""
        return self._parts.size

    @property
    def blobs(self) -> dict[Digest, int]:
        """Every blob by its digest, with its size in bytes."""
        found = ((_digest(name), size) for name, (_, size) in self._members.items())
        return {digest: size for digest, size in found if digest is not None}

    def has(self, name: str) -> int | None:
        """How many bytes the file `name` has; None if it is not there."""
        found = self._members.get(name)
        return found[1] if found is not None else None

    def read(self, name: str) -> Iterator[bytes]:
        """Stream the file `name`; NotFound if it is not there."""
        if name not in self._members:
            raise NotFound(f"{self.path}: there is no {name} in it")
        return self._parts.pieces(*self._members[name])

    def check(self, read: Callable[[int], None] = _ignore) -> None:
        """Read and hash everything, once and in order; IntegrityError names what is wrong.

        A volume that is damaged is named rather than the blobs in it: it can be brought again.
        `read` is told of every so many bytes that were.
        """
        sums = Checksums(self._parts.sizes[0] if self._listed else 0)
        wrong: list[str] = []
        for name, (offset, size) in sorted(self._members.items(), key=lambda one: one[1]):
            for piece in self._parts.pieces(sums.size, offset - sums.size):
                sums.update(piece)
            digest = _digest(name) or Digest.of(b"")
            hasher = digest.hasher()
            for piece in self._parts.pieces(offset, size):
                hasher.update(piece)
                sums.update(piece)
                read(len(piece))
            if _digest(name) not in (None, Digest(digest.algorithm, hasher.hexdigest())):
                wrong.append(name)
        for piece in self._parts.pieces(sums.size, self._parts.size - sums.size):
            sums.update(piece)
        self._judge(sums, wrong)

    def _judge(self, sums: Checksums, wrong: list[str]) -> None:
        """Say what `check` found."""
        if self._listed:
            for path, said, found in zip(self._parts.paths, self._listed, sums.all(), strict=True):
                if said != found:
                    raise IntegrityError(
                        f"{path}: its checksum is {found}, and the list says {said}",
                        hint="it was damaged, or is a volume of another archive: bring it again",
                    )
        if wrong:
            more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            raise IntegrityError(
                f"{self.path}: {wrong[0]} is not what its name says{more}",
                hint="the archive was damaged on its way: bring it again",
            )

    def _check_sizes(self) -> None:
        """Find a volume that was cut short before anything is read from the wrong place (5)."""
        first, *others = self._parts.sizes
        for path, size in zip(self._parts.paths[1:], others, strict=True):
            last = path == self._parts.paths[-1]
            if size > first or (size != first and not last) or not size:
                raise IntegrityError(
                    f"{path}: {size} bytes, and {self._parts.paths[0].name} has {first}",
                    hint="it was cut short, or is a volume of another archive: bring it again",
                )


def _members(parts: Parts, where: str) -> dict[str, tuple[int, int]]:
    """Where each file is and how long: name → offset and size in bytes (1, 2, 3)."""
    found: dict[str, tuple[int, int]] = {}
    folders: set[str] = set()
    walk = _Walk(parts, where)
    while (entry := walk.next()) is not None:
        name, offset, size, is_folder = entry
        if name in found or (is_folder and name in folders):
            raise IntegrityError(f"{where}: {name!r} is there twice")
        if is_folder:
            folders.add(name)
        else:
            found[name] = (offset, size)
        if len(found) + len(folders) > MEMBERS:
            raise IntegrityError(f"{where}: more than {MEMBERS} members")
    for name in (LAYOUT_FILE, INDEX_FILE):
        if name not in found:
            raise IntegrityError(f"{where}: not an OCI layout: it has no {name}")
    return found


class _Walk:
    """From header to header."""

    def __init__(self, parts: Parts, where: str) -> None:
        self._parts, self._where = parts, where
        self._at = 0

    def next(self) -> tuple[str, int, int, bool] | None:
        """The next member: name, offset and size of its content, whether it is a directory."""
        path: bytes | None = None
        size: int | None = None
        while (block := self._take(ustar.BLOCK)) != bytes(ustar.BLOCK):
            head = self._parsed(block)
            if head.kind == ustar.PAX_GLOBAL:
                if ustar.pax_path(self._small(head.size)) is not None:
                    raise IntegrityError(f"{self._where}: a global pax header that gives a name")
            elif head.kind in {ustar.PAX, ustar.LONG_NAME}:
                if path is not None or size is not None:
                    raise IntegrityError(f"{self._where}: two long headers for one member")
                path, size = self._extended(head)
            else:
                length = head.size if size is None else size
                found = self._named(head, head.name if path is None else path)
                offset, self._at = self._at, self._at + length + -length % ustar.BLOCK
                return found, offset, length, head.kind == ustar.DIRECTORY
        if path is not None or size is not None:
            raise IntegrityError(f"{self._where}: a long header without a member")
        self._end()
        return None

    def _parsed(self, block: bytes) -> ustar.Header:
        try:
            return ustar.parse(block)
        except IntegrityError as e:
            hint = "a compressed archive is unpacked first"
            raise IntegrityError(f"{self._where}: {e}", hint=hint) from e

    def _take(self, size: int) -> bytes:
        if self._at + size > self._parts.size:
            raise IntegrityError(
                f"{self._where}: cut short at byte {self._parts.size}",
                hint="the archive was not carried over whole: bring it again",
            )
        found = self._parts.take(self._at, size)
        self._at += size
        return found

    def _small(self, size: int) -> bytes:
        if size > HEADER:
            raise IntegrityError(f"{self._where}: an extended header of {size} bytes")
        data = self._take(size)
        self._take(-size % ustar.BLOCK)
        return data

    def _extended(self, head: ustar.Header) -> tuple[bytes | None, int | None]:
        data = self._small(head.size)
        if head.kind == ustar.LONG_NAME:
            return data.removesuffix(b"\0"), None
        return ustar.pax_path_and_size(data)

    def _named(self, head: ustar.Header, raw: bytes) -> str:
        """The member's name, if a layout has such a file or directory (1)."""
        name = raw.decode("utf-8", "backslashreplace").removeprefix("./")
        if head.kind == ustar.DIRECTORY and (plain := name.removesuffix("/")) in _FOLDERS:
            return plain
        listed = name in (LAYOUT_FILE, INDEX_FILE) or _digest(name) is not None
        if head.kind == ustar.REGULAR and listed:
            return name
        raise IntegrityError(
            f"{self._where}: {name[:200]!a} is no part of an OCI layout",
            hint="only what `ocipack airgap save` and other writers of layouts make is read",
        )

    def _end(self) -> None:
        """Check what follows the first block of zeros (4)."""
        rest = self._parts.size - self._at
        if rest < ustar.BLOCK:
            self._take(ustar.BLOCK)
        if rest > TAIL or any(self._parts.take(self._at, rest)):
            raise IntegrityError(f"{self._where}: something after the end of the archive")


def _digest(name: str) -> Digest | None:
    """The digest that the name of a blob says."""
    match = _BLOB.fullmatch(name)
    if match is None:
        return None
    return Digest(match[1] or match[3], match[2] or match[4])
