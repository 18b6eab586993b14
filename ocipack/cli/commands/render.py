"""`ocipack render`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from ocipack.cli.checking import Checked, Checking, checked, checking_options
from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plural
from ocipack.cli.outcome import Outcome
from ocipack.cli.packing import Packed, Packer, Packing, Seen, packing_options
from ocipack.cli.projects import Excuses, selected
from ocipack.cli.several import Results, each
from ocipack.errors import OcipackError, Rejected
from ocipack.files.workspace import Workspace
from ocipack.report import Report


@click.argument("directory")
@checking_options
@packing_options
def render(app: App, *, directory: str, **options: Any) -> Outcome:
    """Build the manifests of a packed tree and check them.

    What is built is what would be packed: ignored files are not there, and nothing outside the
    tree can be read. Prints the manifests as YAML documents; with findings that are errors it
    prints none and exits with 1. A directory whose ocipack.yaml lists artifacts is rendered as
    each of them, or as those that --artifact names.
    """
    checking, packing = Checking.pop(options), Packing.pop(options)
    found = selected(app, directory, options.pop("project"), options.pop("artifacts"))
    checking.about(found)
    hows = [checking.of(found, part) for part in found.artifacts]
    packer = Packer(app, directory)
    run = _Run(app, packer, Excuses.of(found))
    seen = packer.look(
        (found.top(part), part.root, packing.of(found.project, part)) for part in found.artifacts
    )
    work = [
        (part.name, partial(run.render, found.top(part), one, how, prefix=part.prefix))
        for part, one, how in zip(found.artifacts, seen, hows, strict=True)
    ]
    if found.listed:
        return run.together(each(app, work))
    done = work[0][1]()
    return Outcome(done.text, done.as_dict(), done.report, checked=done.objects)


@dataclass(frozen=True, slots=True)
class _Rendered:
    """An artifact that was packed and rendered."""

    packed: Packed
    checked: Checked

    @property
    def report(self) -> Report:
        """Every finding."""
        return self.packed.report + self.checked.report

    @property
    def text(self) -> str:
        """The manifests, as YAML documents."""
        return "---\n".join(built.data.decode() for built in self.checked.rendered.roots)

    @property
    def objects(self) -> list[str]:
        """What was looked at."""
        return [str(one) for one in self.checked.rendered.resources]

    def as_dict(self) -> dict[str, Any]:
        """The members of the JSON form."""
        return {
            "artifact": self.packed.as_dict(),
            "roots": [
                {"root": str(built.root), "objects": [str(one) for one in built.resources]}
                for built in self.checked.rendered.roots
            ],
        }


@dataclass(frozen=True, slots=True)
class _Run:
    app: App
    packer: Packer
    excuses: Excuses

    def render(
        self, top: str, seen: Seen | OcipackError, how: Checking, *, prefix: str
    ) -> _Rendered:
        """Pack and render one artifact; Rejected if it must not be delivered as it is."""
        if isinstance(seen, OcipackError):
            raise seen
        with Workspace() as workspace:
            done = self.packer.pack(seen, workspace)
            result = checked(self.app, workspace, done.artifact, how, self.excuses, prefix=prefix)
        made = _Rendered(done, result)
        if not made.report.ok:
            raise Rejected(
                f"{top}: the manifests must not be delivered as they are", report=made.report
            )
        return made

    def together(self, results: Results[_Rendered]) -> Outcome:
        """One outcome for several artifacts."""
        self.excuses.whole &= not results.failures
        done = [one for _, one in results.good]
        return results.outcome(
            "" if results.failures else "---\n".join(one.text for one in done),
            _Rendered.as_dict,
            sum((one.report for one in done), self.excuses.stale()),
            summary=lambda one: plural(len(one.objects), "object"),
            checked=[item for one in done for item in one.objects],
        )


command = outcome_command(render, connects=False)
