"""`ocipack render`."""

from __future__ import annotations

from typing import Any

import click

from ocipack.cli.checking import Checking, checked, checking_options
from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.cli.packing import Packing, packed, packing_options
from ocipack.cli.projects import Excuses, selected
from ocipack.errors import Rejected
from ocipack.files.workspace import Workspace


@click.argument("directory")
@checking_options
@packing_options
def render(app: App, *, directory: str, **options: Any) -> Outcome:
    """Build the manifests of a packed tree and check them.

    What is built is what would be packed: ignored files are not there, and nothing outside the
    tree can be read. Prints the manifests as YAML documents; with findings that are errors it
    prints none and exits with 1.
    """
    checking, packing = Checking.pop(options), Packing.pop(options)
    found = selected(app, directory, options.pop("project"), options.pop("artifacts"))
    excuses = Excuses(found.project)
    with Workspace() as workspace:
        done = packed(app, workspace, directory, packing)
        result = checked(app, workspace, done.artifact, checking, excuses)
    report = done.report + result.report + excuses.stale()
    if not report.ok:
        raise Rejected(
            f"{directory}: the manifests must not be delivered as they are", report=report
        )
    return Outcome(
        "---\n".join(built.data.decode() for built in result.rendered.roots),
        {
            "artifact": done.as_dict(),
            "roots": [
                {"root": str(built.root), "objects": [str(one) for one in built.resources]}
                for built in result.rendered.roots
            ],
        },
        report,
        checked=[str(one) for one in result.rendered.resources],
    )


command = outcome_command(render, connects=False)
