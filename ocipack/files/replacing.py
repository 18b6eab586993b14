"""Writing a whole file in one step: whoever reads it finds the old one or the new one."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress

from ocipack.files.seam import translated

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace(path: str, data: bytes, *, mode: int, parents: int | None = None) -> None:
    """Put `data` at `path` with `mode`; a link there stays, and what it leads to is replaced.

    With `parents` directories that are missing are made, with that mode. StoreError as
    `translated` says; nothing is left of a failure.
    """
    target = os.path.realpath(path)
    new = f"{os.path.dirname(target)}/.{os.path.basename(target)[:200]}.{secrets.token_hex(6)}"  # noqa: PTH119, PTH120 - paths as text
    with translated(path):
        if parents is not None:
            os.makedirs(os.path.dirname(target), parents, exist_ok=True)  # noqa: PTH103, PTH120 - as above
        try:
            with os.fdopen(os.open(new, _NEW, 0o600), "wb") as file:
                file.write(data)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            os.rename(new, target)  # noqa: PTH104 - as above
        except BaseException:
            with suppress(OSError):
                os.unlink(new)  # noqa: PTH108 - as above
            raise
