"""A directory that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ocipack.errors import Misuse
from ocipack.files.placing import Placer
from ocipack.files.seam import printable, translated
from ocipack.tree.tree import Entry

_PREFIX = ".ocipack-"


def write_tree(entries: Iterable[Entry], destination: str, *, force: bool = False) -> None:
    """Write `entries` into `destination`, which must not exist or be empty unless `force`.

    Everything is written beside it first and moved in one step when `entries` has ended, so a
    reader that is still to object (a digest, a signature) is heard before anyone sees a file.
    With `force` what was there is replaced as a whole, not mixed with. A directory that cannot
    be moved (a mount point, the working directory, a parent that we may not write) gets its
    entries moved into it one after the other, and back if that fails.

    Misuse if something is there, and even with `force` for a git repository and for `/`, since
    what was there is gone afterwards. Unavailable if the disk is full. Nothing is left of a
    failure.
    """
    target = Path(os.path.realpath(destination))
    with translated(destination):
        inside = _judge(target, force=force) and _fixed(target)
        made = _parents(target.parent)
    try:
        _stage(entries, target, inside=inside)
    except BaseException:
        with suppress(OSError):  # someone else may have put something there meanwhile
            for directory in made:
                directory.rmdir()
        raise


def _judge(target: Path, *, force: bool) -> bool:
    """Whether `target` exists; Misuse if it may not be written."""
    if not target.exists():
        return False
    if not target.is_dir():
        raise Misuse(f"{printable(str(target))}: there, and not a directory")
    if any(target.iterdir()) and not force:
        raise Misuse(
            f"{printable(str(target))}: not empty",
            hint="choose another directory, or replace what is there with --force",
        )
    if (target / ".git").exists() or target == target.parent:
        raise Misuse(
            f"{printable(str(target))}: a repository or a root, which is never replaced",
            hint="choose another directory",
        )
    return True


def _fixed(target: Path) -> bool:
    """Whether the directory itself has to stay: only what is in it can be exchanged."""
    around = Path(os.path.realpath(os.curdir)).is_relative_to(target)
    return around or target.is_mount() or not os.access(target.parent, os.W_OK)


def _parents(directory: Path) -> list[Path]:
    """Make `directory`, and return what had to be made, innermost first."""
    made = []
    while not directory.exists():
        made.append(directory)
        directory = directory.parent
    for missing in reversed(made):
        missing.mkdir()
    return made


def _stage(entries: Iterable[Entry], target: Path, *, inside: bool) -> None:
    with translated(str(target)):
        place = target if inside else target.parent
        staging = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    try:
        fresh = staging / "new"
        with translated(str(target)):
            fresh.mkdir(0o755)  # below a private directory until it is complete
        with Placer(str(fresh)) as placer:
            for entry in entries:
                placer.put(entry)
        with translated(str(target)):
            (_move_children if inside else _swap)(fresh, target, staging)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _swap(fresh: Path, target: Path, staging: Path) -> None:
    """Put the directory `fresh` in the place of `target`, which may be missing or empty."""
    old = staging / "old"
    kept = target.is_dir() and any(target.iterdir())
    if kept:
        target.rename(old)
    try:
        fresh.rename(target)
    except BaseException:
        if kept:
            old.rename(target)
        raise


def _move_children(fresh: Path, target: Path, staging: Path) -> None:
    """Exchange what is in `target` for what is in `fresh`, and undo it if a step fails."""
    old = staging / "old"
    old.mkdir()
    moves = [(path, old / path.name) for path in target.iterdir() if path != staging]
    moves += [(path, target / path.name) for path in fresh.iterdir()]
    done: list[tuple[Path, Path]] = []
    try:
        for before, after in moves:
            before.rename(after)
            done.append((before, after))
    except BaseException:
        for before, after in reversed(done):
            after.rename(before)
        raise
