"""Locks between processes that a kill cannot leave behind: flock on a file that says nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ocipack.errors import Unavailable
from ocipack.stores.layout.failures import translated

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 300.0
"""Seconds to wait for another writer before giving up."""

_PAUSE = 0.01  # seconds between two looks at a lock that someone else holds
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def acquire(path: str, *, shared: bool = False, patience: float = PATIENCE) -> int:
    """Take the lock that is the file `path`, made if need be; return the handle that holds it.

    The kernel lets go of it when the handle is closed or its process dies. Unavailable if others
    have held it for `patience` seconds, or if the file system has no locks.
    """
    deadline = time.monotonic() + patience
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        with translated(path):
            handle = os.open(path, _FLAGS, 0o666)
        try:
            if _try(handle, mode, path) and _is(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() >= deadline:
            raise Unavailable(
                f"{path}: another process has been writing for {patience:g} s",
                hint="wait for it, or end it; the lock goes with the process that holds it",
            )
        time.sleep(_PAUSE)


@contextmanager
def held(path: str, *, shared: bool = False, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock `path` (see `acquire`) for the length of a `with` block."""
    handle = acquire(path, shared=shared, patience=patience)
    try:
        yield
    finally:
        os.close(handle)


def _try(handle: int, mode: int, path: str) -> bool:
    try:
        fcntl.flock(handle, mode | fcntl.LOCK_NB)
    except OSError as e:
        if e.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            return False
        raise Unavailable(
            f"{path}: cannot be locked: {e.strerror}",
            hint="writers of a layout lock it; keep it on a file system with flock",
        ) from e
    return True


def _is(handle: int, path: str) -> bool:
    """Whether `path` is still the file that was locked: its last holder may have removed it."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    return False
