"""Small files that are worth keeping between runs, and that nobody misses when they are gone."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

LIMIT: Final = 16 * 1024 * 1024
"""Bytes of an entry; a larger one is not kept."""

_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Entries:
    """A directory of entries by key. Several processes may use it at once.

    An entry is written beside its place and then moved there, so that readers see all of it or
    none. What cannot be read is not there, what cannot be written is lost: neither is an error.
    Only this user can read what is written.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def load(self, key: str) -> bytes | None:
        """The entry of `key`, a text of hexadecimal digits."""
        try:
            handle = os.open(f"{self._directory}/{key[:2]}/{key[2:]}", _READ)
        except OSError:
            return None
        try:
            data = os.read(handle, min(os.fstat(handle).st_size, LIMIT) + 1)
        except OSError:
            return None
        finally:
            os.close(handle)
        return data

    def save(self, key: str, data: bytes) -> None:
        """Keep `data` under `key`."""
        if len(data) > LIMIT:
            return
        directory = f"{self._directory}/{key[:2]}"
        path = ""
        try:
            os.makedirs(self._directory, mode=0o700, exist_ok=True)  # noqa: PTH103 - speed
            os.makedirs(directory, mode=0o700, exist_ok=True)  # noqa: PTH103 - speed
            path = f"{directory}/.new-{os.getpid()}-{key[2:]}"
            handle = os.open(path, _WRITE, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(path, f"{directory}/{key[2:]}")  # noqa: PTH105 - speed
        except OSError:
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - speed
