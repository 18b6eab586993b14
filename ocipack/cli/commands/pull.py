"""`ocipack pull`."""

from __future__ import annotations

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plural, size
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import key_options, opened, place
from ocipack.cli.trusted import policy, prove
from ocipack.files.unpack import write_tree
from ocipack.pull import pull as fetch


@click.argument("location", metavar="PLACE")
@key_options
@click.option(
    "-o", "--output-dir", "directory", required=True, metavar="DIR", help="Where to unpack."
)
@click.option("--force", is_flag=True, help="Replace what is in DIR, as a whole.")
def pull(
    app: App,
    *,
    location: str,
    keys: tuple[str, ...],
    threshold: int,
    allow_example_key: bool,
    directory: str,
    force: bool,
) -> Outcome:
    """Verify an artifact, then unpack it into a directory.

    Nothing is written unless the signature and every digest hold; DIR appears whole or not at
    all. Prints DIR.
    """
    where = place(location)
    trusted = policy(keys, threshold, places=[where], allow_example_key=allow_example_key)
    with opened(app, where) as source:
        proof = prove(app, source, where, trusted)
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
