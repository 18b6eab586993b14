"""`ocipack pack`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.cli.packing import Packed, Packer, Packing, Seen, packing_options
from ocipack.cli.projects import artifact_option, has_project, home_of, project_option
from ocipack.errors import Misuse, OcipackError, Rejected
from ocipack.files.workspace import Workspace
from ocipack.report import Report

if TYPE_CHECKING:
    from ocipack.cli.projects import Selected
    from ocipack.oci.location import Location


@click.argument("directory")
@click.option(
    "--to",
    "destination",
    metavar="PLACE",
    help="Put the artifact there, by digest alone: only ship and tag give it a tag.",
)
@click.option("--list", "listing", is_flag=True, help="Print exactly what goes in.")
@artifact_option
@project_option
@packing_options
def pack(
    app: App,
    *,
    directory: str,
    destination: str | None,
    listing: bool,
    artifacts: tuple[str, ...],
    project: str,
    **packing: Any,
) -> Outcome:
    """Pack a tree into a deterministic artifact.

    The same content gives the same digest on every machine. Prints the digest, or with --to the
    pinned place. A directory whose ocipack.yaml lists artifacts is packed as all of them, or those
    that --artifact names, a line each.
    """
    where = _place(destination) if destination is not None else None
    how = Packing(**packing)
    if artifacts or has_project(project, home_of(directory)):
        from ocipack.cli.projects import selected  # noqa: PLC0415 - start-up, of one tree

        found = selected(app, directory, project, artifacts)
        if found.listed:
            return _together(app, found, how, where, listing=listing)
        how = how.of(found.project, found.artifacts[0])
    packer = Packer(app, directory)
    (seen,) = packer.look([(directory, "", how)])
    done = _one(app, packer, seen, where)
    return Outcome("\n".join(done.listing) if listing else done.text, done.data, done.report)


def _together(
    app: App, found: Selected, how: Packing, where: Location | None, *, listing: bool
) -> Outcome:
    """Pack artifacts of a project one after the other."""
    from ocipack.cli.several import each  # noqa: PLC0415 - start-up, of one tree

    if where is not None and where.reference.digest is not None and len(found.artifacts) > 1:
        raise Misuse(f"{where}: several artifacts cannot have one digest")
    places = [where.below(part.repository) if where else None for part in found.artifacts]
    packer = Packer(app, found.directory)
    seen = packer.look(
        (found.top(part), part.root, how.of(found.project, part)) for part in found.artifacts
    )
    work: list[tuple[str, Callable[[], _Done]]] = [
        (part.name, partial(_one, app, packer, one, place, prefix=part.prefix))
        for part, one, place in zip(found.artifacts, seen, places, strict=True)
    ]
    results = each(app, work)
    done = [one for _, one in results.good]
    lines = [line for one in done for line in (one.listing if listing else [one.text])]
    return results.outcome(
        "\n".join(lines),
        lambda one: one.data,
        sum((one.report for one in done), Report()),
        summary=lambda one: one.text.rpartition("@")[2],
    )


@dataclass(frozen=True, slots=True)
class _Done:
    """What is left of an artifact that was packed, and perhaps delivered."""

    text: str
    data: dict[str, Any]
    listing: list[str]
    report: Report

    @classmethod
    def of(cls, done: Packed, where: Location | None, prefix: str) -> _Done:
        """Take it, while the content is still there."""
        digest = done.artifact.root.digest
        text = str(where.at(digest)) if where is not None else str(digest)
        files = done.tree.files.items()
        return cls(
            text,
            {
                "artifact": {**({"place": text} if where is not None else {}), **done.as_dict()},
                "listing": [
                    {"name": name, "size": file.size, "executable": file.executable}
                    for name, file in files
                ],
            },
            [
                f"{'x' if file.executable else '-'} {file.size:>10} {prefix}{name}"
                for name, file in files
            ],
            done.report,
        )


def _one(
    app: App,
    packer: Packer,
    seen: Seen | OcipackError,
    where: Location | None,
    *,
    prefix: str = "",
) -> _Done:
    if isinstance(seen, OcipackError):
        raise seen
    with Workspace() as workspace:
        done = packer.pack(seen, workspace)
        if where is not None:
            _deliver(app, done, where)
        return _Done.of(done, where, prefix)


def _place(text: str) -> Location:
    from ocipack.cli.places import place  # noqa: PLC0415 - start-up, where nothing is copied

    where = place(text)
    if where.reference.tag is not None:
        raise Misuse(
            f"{where}: pack gives no tag, since nothing is signed yet",
            hint=f"leave the tag out ({where.bare}), or use `ocipack ship`",
        )
    return where


def _deliver(app: App, done: Packed, where: Location) -> None:
    expected = where.reference.digest
    if expected is not None and expected != done.artifact.root.digest:
        raise Rejected(f"{where}: the tree packs to {done.artifact.root.digest}")
    from ocipack.cli.places import opened  # noqa: PLC0415 - as above
    from ocipack.copy import copy  # noqa: PLC0415 - as above

    with opened(app, where, write=True) as store, app.console.stage("copy") as stage:
        copied = copy(done.artifact, store, done.artifact.root)
        stage.say(f"{copied.copied} written, {copied.skipped} there already")


command = outcome_command(pack)
