"""Tar headers made by hand, for tests that need wrong ones."""

from __future__ import annotations

import gzip
import struct


def entry(
    name: bytes | str,
    data: bytes = b"",
    *,
    kind: bytes = b"0",
    mode: bytes = b"0000644\0",
    size: bytes | None = None,
    magic: bytes = b"ustar\x0000",
    prefix: bytes = b"",
    linkname: bytes = b"",
    tail: bytes = b"",
    checksum: int | None = None,
) -> bytes:
    """One header block with the right checksum unless told, the data, and its padding."""
    raw = name.encode() if isinstance(name, str) else name
    fields = (raw, mode, b"0000000\0", b"0000000\0", size or b"%011o\0" % len(data))
    block = struct.pack(
        "100s8s8s8s12s12s8s1s100s8s32s32s8s8s155s12s",
        *(*fields, b"00000000000\0", b" " * 8, kind, linkname, magic),
        *(b"", b"", b"", b"", prefix, tail),
    )
    total = sum(block) if checksum is None else checksum
    return block[:148] + b"%06o\0 " % total + block[156:] + data + bytes(-len(data) % 512)


def pax(*records: tuple[str, bytes | str], kind: bytes = b"x") -> bytes:
    """An extended header with these records."""
    return entry("PaxHeader", b"".join(record(k, v) for k, v in records), kind=kind)


def record(keyword: str, value: bytes | str) -> bytes:
    """One `length keyword=value` line."""
    raw = value.encode() if isinstance(value, str) else value
    body = b" " + keyword.encode() + b"=" + raw + b"\n"
    length = len(body)
    while length != len(body) + len(str(length)):
        length = len(body) + len(str(length))
    return str(length).encode() + body


def layer(*entries: bytes, end: bytes = bytes(1024)) -> bytes:
    """A compressed archive of these entries."""
    return gzip.compress(b"".join(entries) + end, mtime=0)
