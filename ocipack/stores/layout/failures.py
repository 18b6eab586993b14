"""The one seam where what the operating system says about a layout becomes our own words."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ocipack.errors import Denied, IntegrityError, NotFound, OcipackError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_LINK = {errno.ELOOP, errno.ENOTDIR}


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn an OSError about `path` into the error that says what to do about it."""
    try:
        yield
    except OSError as e:
        raise _meaning(e, path) from e


def _meaning(e: OSError, path: str) -> OcipackError:
    why = f"{path}: {e.strerror or e}"
    if e.errno == errno.ENOENT:
        return NotFound(why)
    if e.errno in _REFUSED:
        return Denied(why, hint="look at the owner and mode of the layout, and at the mount")
    if e.errno in _LINK:
        return IntegrityError(
            f"{path}: a link, or not what a layout has there; links are not followed",
            hint="copy the layout with its links resolved (cp -rL)",
        )
    if e.errno in _FULL:
        return Unavailable(why, hint="make room, and run again: nothing half written was kept")
    return Unavailable(why)
