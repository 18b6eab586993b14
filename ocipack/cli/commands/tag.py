"""`ocipack tag`."""

from __future__ import annotations

from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import opened, place
from ocipack.cli.trusted import Trust, proof_options, proven
from ocipack.tag import standing, tag as point


@click.argument("location", metavar="PLACE")
@click.argument("names", nargs=-1, required=True, metavar="TAG...")
@proof_options
def tag(
    app: App,
    *,
    location: str,
    names: tuple[str, ...],
    **options: Any,
) -> Outcome:
    """Point tags at an artifact that is there already.

    The artifact is verified first, under --policy as each of the TAGs. Each TAG is preceded by
    its immutable twin, TAG-<first 12 hex of the digest>, which never moves; a tag that someone
    moves meanwhile is left alone. Prints the pinned place.
    """
    where = place(location)
    with opened(app, where, write=True) as store:
        before = standing(store, names)
        target = proven(app, store, where, Trust(**options), names)
        with app.console.stage("tag") as stage:
            done = point(store, target, before)
            stage.say(", ".join(done.written) or "unchanged")
    pinned = str(where.tagged(names[-1]).at(target.digest))
    return Outcome(
        pinned,
        {
            "artifact": {"place": pinned, "digest": str(target.digest)},
            "tags": {"written": list(done.written), "unchanged": list(done.unchanged)},
        },
    )


command = outcome_command(tag)
