"""The project file on the command line, and what its ignores make of findings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ocipack.cli.clock import now
from ocipack.errors import Misuse
from ocipack.files.manifests import reader
from ocipack.files.seam import printable
from ocipack.report import Report
from ocipack.validate.inputs import PROJECT

if TYPE_CHECKING:
    from ocipack.project import Project

_F = TypeVar("_F", bound=Callable[..., Any])


def project_option(function: _F) -> _F:
    """Add `--project`."""
    return click.option(
        "--project",
        "project",
        default="",
        metavar="FILE",
        help=f"The project file; else {PROJECT} at the top of the directory, if there is one.",
    )(function)


def has_project(given: str, base: str) -> bool:
    """Whether there is anything that `read_project` would read, or complain of."""
    return bool(given) or os.path.lexists(Path(base or ".") / PROJECT)


def read_project(given: str, base: str) -> Project:
    """The project file: the one that was `given`, else the one in the directory `base`, or none.

    Misuse if the given one is not there, or if what is there is no project file.
    """
    from ocipack.k8s.yaml.strict import BYTES  # noqa: PLC0415 - start-up
    from ocipack.project import Project  # noqa: PLC0415 - start-up
    from ocipack.project.reader import read  # noqa: PLC0415 - start-up

    path = Path(given) if given else Path(base or ".") / PROJECT
    if not path.is_file():
        if given or path.is_symlink() or path.exists():
            raise Misuse(f"{printable(str(path))}: no such file, or not a plain one")
        return Project()
    found = bytearray()
    for block in reader(str(path))():
        found += block
        if len(found) > BYTES:
            break
    return read(bytes(found), file=os.path.relpath(path, base or "."))


def settled(
    report: Report,
    project: Project,
    names: Iterable[str],
    read: Callable[[str], bytes],
    *,
    whole: bool,
) -> Report:
    """`report` after the ignores of `project` and of the comments in the files called `names`.

    `whole` says whether all of the tree was looked at, so that an unused ignore is one.
    """
    from ocipack.validate.ignores import Ignores  # noqa: PLC0415 - start-up

    ignores = Ignores.of(project, names, read)
    return ignores.apply(report, today=date.fromisoformat(now()[:10]), whole=whole)
