"""`ocipack pack`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.cli.packing import Packed, Packing, packed, packing_options
from ocipack.errors import Misuse, Rejected
from ocipack.files.workspace import Workspace

if TYPE_CHECKING:
    from ocipack.oci.location import Location


@click.argument("directory")
@click.option(
    "--to",
    "destination",
    metavar="PLACE",
    help="Put the artifact there, by digest alone: only ship and tag give it a tag.",
)
@click.option("--list", "listing", is_flag=True, help="Print exactly what goes in.")
@packing_options
def pack(
    app: App, *, directory: str, destination: str | None, listing: bool, **packing: Any
) -> Outcome:
    """Pack a tree into a deterministic artifact.

    The same content gives the same digest on every machine. Prints the digest, or with --to the
    pinned place.
    """
    where = _place(destination) if destination is not None else None
    with Workspace() as workspace:
        done = packed(app, workspace, directory, Packing(**packing))
        if where is not None:
            _deliver(app, done, where)
    digest = done.artifact.root.digest
    text = str(where.at(digest)) if where is not None else str(digest)
    return Outcome(
        "\n".join(_lines(done)) if listing else text,
        {
            "artifact": {**({"place": text} if where is not None else {}), **done.as_dict()},
            "listing": [
                {"name": name, "size": file.size, "executable": file.executable}
                for name, file in done.tree.files.items()
            ],
        },
        done.report,
    )


def _lines(done: Packed) -> list[str]:
    return [
        f"{'x' if file.executable else '-'} {file.size:>10} {name}"
        for name, file in done.tree.files.items()
    ]


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
