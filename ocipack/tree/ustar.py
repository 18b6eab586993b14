"""Tar headers: the few we write, and the few we accept (POSIX.1-2017, pax, "ustar Interchange").

Every field that could differ from one machine to the next is constant: owner and group 0 and
nameless, time 0, device 0, mode 0644 or 0755.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from ocipack.errors import IntegrityError

BLOCK = 512
END = bytes(2 * BLOCK)
"""What ends an archive: two blocks of zeros."""

REGULAR, DIRECTORY, PAX, PAX_GLOBAL, LONG_NAME = b"0", b"5", b"x", b"g", b"L"

LARGEST = 8**11 - 1
"""Bytes of content that the header itself can say; a pax record says more."""

_NAME, _PREFIX = 100, 155
_EXTENDED = b"PaxHeader"
_HEADER = struct.Struct("100s8s8s8s12s12s8sc100s8s32s32s8s8s155s12x")
_ZERO, _NEVER, _MAGIC = b"0000000\0", b"00000000000\0", b"ustar\x0000"
_CONSTANT = sum(b"%b%b%b%b%b%b" % (_ZERO, _ZERO, _NEVER, _MAGIC, _ZERO, _ZERO)) + 8 * 32
"""What every header adds to its checksum, which counts itself as eight spaces."""

_PADDING = bytes(BLOCK)
_MODES = {False: b"0000644\0", True: b"0000755\0"}
_TYPE_BITS = {REGULAR: 0o100000, DIRECTORY: 0o040000}
_MAGICS = {b"ustar\x0000": "ustar", b"ustar  \0": "gnu", bytes(8): "v7"}
_OCTAL = rb" *([0-7]+)[ \0]*"
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a fifo",
    b"S": "a sparse file",
    b"K": "a link with a long name",
}


def header(name: str, *, size: int, executable: bool) -> bytes:
    """The block or blocks before a file's content, or of a directory if `name` ends in a slash."""
    directory = name.endswith("/")
    mode = _MODES[directory or executable]
    kind = DIRECTORY if directory else REGULAR
    raw = name.encode()
    prefix, last = _split(raw) if len(raw) > _NAME else (b"", raw)
    record = b""
    if not last or not raw.isascii():
        record = _record(b"path", raw)
        prefix, last = b"", name.encode("ascii", "replace").replace(b"?", b"_")[:_NAME].rstrip(b"/")
    if size > LARGEST:
        record += _record(b"size", str(size).encode())
    block = _block(last, mode, size if size <= LARGEST else 0, kind, prefix)
    if not record:
        return block
    extended = _block(_EXTENDED, _MODES[False], len(record), PAX, b"")
    return extended + record + padding(len(record)) + block


def padding(size: int) -> bytes:
    """What fills the last block of `size` bytes of content."""
    return _PADDING[: -size % BLOCK]


def _split(raw: bytes) -> tuple[bytes, bytes]:
    """Cut a long name into prefix and name at the last slash that fits, as Go does."""
    cut = raw.rfind(b"/", 0, min(_PREFIX + 1, len(raw) - 1))
    if cut <= 0 or len(raw) - cut - 1 > _NAME:
        return b"", b""
    return raw[:cut], raw[cut + 1 :]


def _record(keyword: bytes, value: bytes) -> bytes:
    """A pax record, `length keyword=value`, whose length counts its own digits."""
    body = b" " + keyword + b"=" + value + b"\n"
    length = len(body) + len(str(len(body)))
    length = len(body) + len(str(length))
    return str(length).encode() + body


def _block(name: bytes, mode: bytes, size: int, kind: bytes, prefix: bytes) -> bytes:
    length = b"%011o\0" % size
    total = _CONSTANT + sum(name) + sum(mode) + sum(length) + sum(kind) + sum(prefix)
    fields = (name, mode, _ZERO, _ZERO, length, _NEVER, b"%06o\0 " % total, kind)
    return _HEADER.pack(*fields, b"", _MAGIC, b"", b"", _ZERO, _ZERO, prefix)


@dataclass(frozen=True, slots=True)
class Header:
    """What one header block says; `size` is in bytes, `name` as it stands there."""

    name: bytes
    kind: bytes
    size: int
    executable: bool

    @property
    def label(self) -> str:
        """The name for a message."""
        return ascii(self.name.decode("utf-8", "replace")[:200])


def parse(block: bytes) -> Header:
    """Read one header block, of POSIX, GNU or the seventh edition.

    IntegrityError for a wrong checksum, for a kind that is neither file, directory nor long
    name, and for whatever two readers could take for different things: type bits in the mode that
    contradict the kind, a prefix where the dialect has none, sizes in base 256.
    """
    fields = _HEADER.unpack(block)
    name, magic, prefix = fields[0].split(b"\0")[0], fields[9], fields[14]
    head = Header(name, fields[7], 0, executable=False)
    dialect = _MAGICS.get(magic)
    if dialect is None:
        raise IntegrityError(f"tar: not a header: {head.label}")
    if _number(fields[6], head) != sum(block) - sum(fields[6]) + 8 * 32:
        raise IntegrityError(f"tar: wrong checksum of {head.label}")
    if any(block[500:]) or (dialect != "ustar" and any(prefix)):
        raise IntegrityError(f"tar: a dialect that we do not read: {head.label}")
    kind = REGULAR if head.kind == b"\0" else head.kind
    if prefix := prefix.split(b"\0")[0]:
        name = prefix + b"/" + name
    return _judged(name, kind, _number(fields[4], head), _number(fields[1], head))


def _judged(name: bytes, kind: bytes, size: int, mode: int) -> Header:
    head = Header(name, kind, size, executable=bool(mode & 0o111))
    if kind in {PAX, PAX_GLOBAL, LONG_NAME}:
        return head
    if kind not in _TYPE_BITS:
        what = _KINDS.get(kind, f"of the unknown kind {kind!r}")
        raise IntegrityError(f"tar: {head.label} is {what}, and only files are read")
    if mode & ~0o7777 not in {0, _TYPE_BITS[kind]}:
        raise IntegrityError(f"tar: mode and kind of {head.label} contradict each other")
    if kind == DIRECTORY and size:
        raise IntegrityError(f"tar: the directory {head.label} has content")
    return head


def _number(field: bytes, head: Header) -> int:
    match = re.fullmatch(_OCTAL, field)
    if match is None:
        raise IntegrityError(f"tar: not a number in the header of {head.label}: {field!r}")
    return int(match[1], 8)


_RECORD = rb"([1-9][0-9]{0,8}) ([^=\n\0]+)="
_HARMLESS = (
    rb"(?s)(?:[amc]time|[ug]id|[ug]name|comment|SCHILY\.(?:dev|ino|nlink|fflags|xattr\..*|acl\..*)"
    rb"|LIBARCHIVE\.(?:creationtime|xattr\..*)|RHT\..*)"
)


def pax_path(data: bytes) -> bytes | None:
    """The `path` of a pax header, if it has one.

    IntegrityError for a malformed record, a keyword that comes twice, and every keyword that
    changes content or place in another way (size, linkpath, sparse maps, character sets).
    """
    found = _records(data)
    path = found.pop(b"path", None)
    _refuse_others(found)
    return path


def pax_path_and_size(data: bytes) -> tuple[bytes | None, int | None]:
    """The `path` and the `size` of a pax header, as far as it has them; errors as `pax_path`.

    Only what the header itself cannot say is taken for a size: a reader that does not know pax
    would go on elsewhere.
    """
    found = _records(data)
    path, size = found.pop(b"path", None), found.pop(b"size", None)
    _refuse_others(found)
    if size is None:
        return path, None
    if not re.fullmatch(rb"[1-9][0-9]{9,18}", size) or int(size) <= LARGEST:
        raise IntegrityError(f"tar: not a size that needs a pax record: {size[:40]!r}")
    return path, int(size)


def _records(data: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    record, at = re.compile(_RECORD), 0
    while at < len(data):
        match = record.match(data, at)
        end = at + int(match[1]) if match else 0
        if match is None or end > len(data) or end <= match.end() or data[end - 1 : end] != b"\n":
            raise IntegrityError("tar: a malformed pax record")
        keyword = match[2]
        if keyword in found:
            raise IntegrityError(f"tar: the pax record {keyword!r} twice")
        found[keyword] = data[match.end() : end - 1]
        at = end
    return found


def _refuse_others(found: dict[bytes, bytes]) -> None:
    for keyword in found:
        if not re.fullmatch(_HARMLESS, keyword):
            raise IntegrityError(f"tar: a pax record that we do not read: {keyword[:100]!r}")
