"""`ocipack list`."""

from __future__ import annotations

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import opened, place
from ocipack.errors import Misuse


@click.argument("location", metavar="PLACE")
@click.option("--digests", is_flag=True, help="Show what each tag points at.")
def list_(app: App, *, location: str, digests: bool) -> Outcome:
    """List the tags of a repository or layout.

    Tags that hold signatures and listings of referrers (`sha256-…`) are among them.
    """
    where = place(location)
    if where.reference.tag is not None or where.reference.digest is not None:
        raise Misuse(
            f"{where}: all tags are listed, not one",
            hint=f"write {where.bare}, or see `ocipack inspect {where}`",
        )
    with opened(app, where) as source:
        names = list(source.tags())
        found = {name: str(source.resolve(name).digest) for name in names} if digests else {}
    rows = [f"{name}\t{found[name]}" if digests else name for name in names]
    return Outcome(
        "\n".join(rows),
        {
            "place": where.bare,
            "tags": [
                {"name": name, **({"digest": found[name]} if digests else {})} for name in names
            ],
        },
    )


command = outcome_command(list_)
