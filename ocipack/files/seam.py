"""Where what the operating system says becomes one of our errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from ocipack.errors import Denied, Misuse, NotFound, StoreError, Unavailable

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn an OSError about `path` into a StoreError: Denied, NotFound, or Unavailable."""
    try:
        yield
    except OSError as e:
        raise error_about(e, path) from e


def error_about(error: OSError, path: str) -> StoreError:
    """The StoreError that `translated` raises: for loops in which a context manager is felt."""
    place = printable(path)
    if isinstance(error, PermissionError):
        return Denied(
            f"{place}: this user may not read or write it", hint="look at its owner and mode"
        )
    if isinstance(error, FileNotFoundError):
        return NotFound(f"{place}: no such file or directory")
    if error.errno in _FULL:
        return Unavailable(f"{place}: no space left", hint="free some space, then run again")
    return Unavailable(f"{place}: {error.strerror or error}")


def printable(path: str) -> str:
    """`path` for a message: what is not UTF-8 or would move the cursor is escaped."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def read_bytes(path: str, *, limit: int) -> bytes:
    """Read a file that an argument names: a plain one, a pipe, or a device such as /dev/stdin.

    Misuse if it is not there, is a directory, or holds more than `limit` bytes; Denied or
    Unavailable if it cannot be read.
    """
    found = bytearray()
    try:
        with translated(path), open(path, "rb") as file:  # noqa: PTH123 - a path as it was typed
            while len(found) <= limit and (chunk := file.read(limit + 1 - len(found))):
                found += chunk
    except NotFound as e:
        raise Misuse(f"{printable(path)}: no such file") from e
    except Unavailable as e:
        if os.path.isdir(path):  # noqa: PTH112 - a path as it was typed
            raise Misuse(f"{printable(path)}: a directory, and a file is needed") from e
        raise
    if len(found) > limit:
        raise Misuse(f"{printable(path)}: more than the {limit} bytes that are read")
    return bytes(found)
