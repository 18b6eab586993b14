"""`ocipack copy`."""

from __future__ import annotations

from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import size
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import opened, place
from ocipack.cli.trusted import Trust, proof_options, proven
from ocipack.copy import Copied, copy as move, copy_attached
from ocipack.errors import Rejected
from ocipack.tag import standing, tag


@click.argument("origin", metavar="SRC")
@click.argument("destination", metavar="DST")
@click.option(
    "--signatures/--no-signatures",
    default=True,
    show_default=True,
    help="Bring along what is attached: .sig, .att and .sbom tags, and referrers.",
)
@click.option("--jobs", type=click.IntRange(1, 64), default=8, show_default=True)
@proof_options
def copy(
    app: App,
    *,
    origin: str,
    destination: str,
    signatures: bool,
    jobs: int,
    **options: Any,
) -> Outcome:
    """Copy an artifact by digest, then its tag.

    Without a tag in DST nothing is tagged. With one, the copy is verified at DST first; its
    immutable twin, TAG-<first 12 hex of the digest>, is written before it. Prints the pinned
    place.
    """
    source_place, where = place(origin), place(destination)
    name = where.reference.tag
    trust = Trust(**options)
    if name is not None:
        trust.check_tagging(where)  # refuse before anything moves what would be refused after it
    with opened(app, source_place) as source, opened(app, where, write=True) as store:
        target = source.resolve(source_place.reference.name)
        if where.reference.digest not in (None, target.digest):
            raise Rejected(f"{source_place} is {target.digest}, and not what {where} asks for")
        before = standing(store, [name] if name is not None else [])
        with app.console.stage("copy") as stage:
            done = move(source, store, target, jobs=jobs)
            if signatures:
                done += copy_attached(source, store, target, jobs=jobs)
            stage.say(_described(done))
        pinned = where.at(target.digest)
        if name is not None:
            proven(app, store, pinned, trust, [name])
            with app.console.stage("tag") as stage:
                stage.say(", ".join(tag(store, target, before).written) or "there already")
    return Outcome(
        str(pinned),
        {
            "artifact": {"place": str(pinned), "digest": str(target.digest)},
            "copied": {"count": done.copied, "bytes": done.copied_bytes},
            "skipped": {"count": done.skipped, "bytes": done.skipped_bytes},
        },
    )


def _described(done: Copied) -> str:
    moved = f"{done.copied} moved ({size(done.copied_bytes)})"
    return f"{moved}, {done.skipped} there already"


command = outcome_command(copy)
