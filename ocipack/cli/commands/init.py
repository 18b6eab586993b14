"""`ocipack init`."""

from __future__ import annotations

import os
import posixpath

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plural
from ocipack.cli.outcome import Outcome
from ocipack.cli.reading import content
from ocipack.errors import Misuse, Rejected
from ocipack.files.manifests import listing
from ocipack.files.rewriting import create, manifests
from ocipack.files.seam import printable
from ocipack.flux import origin
from ocipack.project import FILE
from ocipack.project.draft import Named, draft, named
from ocipack.project.reader import read
from ocipack.project.survey import Survey, survey
from ocipack.tools import git


@click.argument("directory", default=".")
@click.option("--force", is_flag=True, help="Replace a project file that is there already.")
def init(app: App, *, directory: str, force: bool) -> Outcome:
    """Write a first project file, ocipack.yaml, from what is found in a directory.

    Flux Kustomizations say what is delivered and from where, and kustomizations what belongs
    together; a directory without either is taken by its folders. What was found is shown, and
    what could not be is there as a comment. Prints the name of the file.
    """
    path = posixpath.normpath(posixpath.join(directory, FILE))
    if os.path.lexists(path) and not force:
        raise Misuse(f"{printable(path)}: is there already", hint="give --force to replace it")
    listed = listing(directory)
    if listed.single:
        raise Misuse(f"{printable(directory)}: not a directory")
    files = {name: where for name, where in listed.files.items() if not _hidden(name)}
    if not any(name.endswith((".yaml", ".yml")) for name in files):
        raise Rejected(f"{printable(directory)}: no manifests", hint="files end in .yaml or .yml")
    checkout = git.look(directory, environment=os.environ).checkout
    source = origin.source(checkout=checkout)
    with app.console.stage("survey") as stage:
        found = survey(files, lambda name: content(files[name]), remote=source)
        stage.say(f"{plural(len(files), 'file')}, {plural(len(found.proposals), 'artifact')}")
    artifacts = named(found, posixpath.basename(source or posixpath.realpath(directory)))
    text = draft(found, artifacts, files, source=source).encode()
    read(text, file=path)  # what we write, we can read
    _write(path, text)
    return _outcome(path, found, artifacts, source)


def _hidden(name: str) -> bool:
    """Whether it is a file of tools: Flux does not read what CI and editors keep there."""
    return name == FILE or any(part.startswith(".") for part in name.split("/"))


def _write(path: str, text: bytes) -> None:
    if not os.path.lexists(path):
        create(path, text)
        return
    (place,) = manifests(path).values()
    place.replace(place.read(), text)


def _outcome(path: str, found: Survey, artifacts: list[Named], source: str) -> Outcome:
    rows = [
        (one.name, f"{one.proposal.root or '.'}  {one.proposal.why}".strip()) for one in artifacts
    ]
    return Outcome(
        path,
        {
            "file": path,
            "source": source,
            "flux": found.flux,
            "artifacts": [
                {
                    "name": one.name,
                    "root": one.proposal.root or ".",
                    "repository": one.repository,
                    "why": one.proposal.why,
                }
                for one in artifacts
            ],
            "elsewhere": list(found.elsewhere),
        },
        summary=[
            *rows,
            ("source", source or "not known: there is no remote with a network address"),
            ("elsewhere", ", ".join(found.elsewhere)),
        ],
    )


command = outcome_command(init, connects=False)
