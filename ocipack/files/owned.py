"""Directories that one command owns below another one: found without following a link, emptied."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from ocipack.errors import Rejected
from ocipack.files.seam import printable, translated


def inside(base: str, name: str) -> str:
    """The path of `name` below `base`, whose parts are directories or not there.

    Rejected for a link or a file on the way: what is behind it may be anywhere.
    """
    path = os.path.realpath(base)
    for part in name.split("/"):
        path = f"{path}/{part}"
        with translated(path):
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                continue
        if not stat.S_ISDIR(mode):
            what = "a link" if stat.S_ISLNK(mode) else "no directory"
            raise Rejected(
                f"{printable(path)}: {what}, and a directory is needed",
                hint="remove it, or name another directory",
            )
    return path


def remove(base: str, name: str, files: Iterable[str]) -> None:
    """Remove `files` of the directory `name` below `base`, then all directories left empty."""
    top = inside(base, name)
    parents = {top}
    for one in files:
        above = inside(base, f"{name}/{one}".rpartition("/")[0])
        with translated(f"{above}/{one.rpartition('/')[2]}"), suppress(FileNotFoundError):
            os.unlink(f"{above}/{one.rpartition('/')[2]}")  # noqa: PTH108 - paths as text
        while above != top:
            parents.add(above)
            above = above.rpartition("/")[0]
    for directory in sorted(parents, key=len, reverse=True):
        with suppress(OSError):  # not empty, or not there
            os.rmdir(directory)  # noqa: PTH106 - as above
