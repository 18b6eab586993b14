"""`ocipack pull`."""

from __future__ import annotations

from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plural, size
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import opened, place
from ocipack.cli.trusted import Trust, prove, trust_options
from ocipack.files.unpack import write_tree
from ocipack.pull import pull as fetch


@click.argument("location", metavar="PLACE")
@trust_options
@click.option(
    "-o", "--output-dir", "directory", required=True, metavar="DIR", help="Where to unpack."
)
@click.option("--force", is_flag=True, help="Replace what is in DIR, as a whole.")
def pull(
    app: App,
    *,
    location: str,
    directory: str,
    force: bool,
    **options: Any,
) -> Outcome:
    """Verify an artifact, then unpack it into a directory.

    Nothing is written unless the signature and every digest hold; DIR appears whole or not at
    all. Prints DIR.
    """
    where = place(location)
    trust = Trust(**options)
    trusted = trust.policy([where])
    with opened(app, where) as source:
        proof = prove(app, source, where, trusted, trust)
        with app.console.stage("pull") as stage:
            done = fetch(source, proof, lambda entries: write_tree(entries, directory, force=force))
            stage.say(f"{plural(done.files, 'file')}, {size(done.size)}")
    pinned = str(where.at(proof.descriptor.digest))
    return Outcome(
        directory,
        {
            "artifact": {"place": pinned, "digest": str(proof.descriptor.digest)},
            "directory": directory,
            "files": done.files,
            "size": done.size,
        },
    )


command = outcome_command(pull)
