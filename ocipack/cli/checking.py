"""From an artifact to rendered and checked manifests: what render and ship share.

Everything here works on the packed tree, read back from the archive into a private directory, and
without the files that source-controller will leave out: what is checked is what the cluster gets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ocipack.cli.command import App
from ocipack.cli.console import plural
from ocipack.cli.definitions import given, in_tree, target_options
from ocipack.cli.projects import (
    Excuses,
    Selected,
    artifact_option,
    placing,
    project_option,
    was_given,
)
from ocipack.errors import Misuse
from ocipack.files.workspace import Workspace
from ocipack.flux import artifact as flux
from ocipack.oci import store as stores
from ocipack.oci.artifact import Artifact
from ocipack.render import Rendered, render
from ocipack.report import Report
from ocipack.tools.kustomize import PROGRAMS, TIMEOUT, Kustomize, Program
from ocipack.tree import ignore, unarchive
from ocipack.tree.tree import Entry
from ocipack.validate.check import schemas_for, validate
from ocipack.validate.trace import traced
from ocipack.validate.versions import across

if TYPE_CHECKING:
    from ocipack.project import Part

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--root",
        "roots",
        multiple=True,
        metavar="DIR",
        help="Directory of the tree to build; repeatable. Else every kustomization that no other "
        "one names.",
    ),
    click.option("--allow-tags", is_flag=True, help="Only warn of images without a digest."),
    click.option(
        "--renderer",
        type=click.Choice(PROGRAMS),
        default=PROGRAMS[0],
        show_default=True,
        help="kustomize as it comes with ocipack, or the kubectl or kustomize on PATH.",
    ),
    click.option(
        "--render-timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=TIMEOUT,
        show_default=True,
        metavar="SECONDS",
        help="How long one root may take.",
    ),
)


def checking_options(function: _F) -> _F:
    """Add the options of `Checking`."""
    function = artifact_option(project_option(target_options(function)))
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Checking:
    """What the options of `checking_options` say."""

    kubernetes_version: str
    crds: tuple[str, ...]
    require_schema: bool
    roots: tuple[str, ...]
    allow_tags: bool
    renderer: str
    render_timeout: float
    kubernetes: tuple[str, ...] = ()
    flux: str = ""

    @classmethod
    def pop(cls, options: dict[str, Any]) -> Checking:
        """Take them out of the options of a command."""
        return cls(**{f.name: options.pop(f.name) for f in fields(cls) if f.name in options})

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions of Kubernetes to check against; empty text is the newest."""
        return self.kubernetes or (self.kubernetes_version,)

    def about(self, found: Selected) -> None:
        """Misuse if the directories to build are said of several artifacts."""
        if self.roots and len(found.artifacts) > 1:
            raise Misuse("--root is about one artifact", hint="name it with --artifact")

    def of(self, found: Selected, part: Part) -> Checking:
        """How an artifact of a project is checked: flags win, and `--crd` adds to its own."""
        return replace(
            self,
            kubernetes=() if self.kubernetes_version else part.kubernetes,
            crds=(*map(found.crd, part.crds), *self.crds),
            require_schema=self.require_schema or found.project.require_schema,
            flux=found.project.flux,
            roots=self.roots or part.render,
        )


@dataclass(frozen=True, slots=True)
class Checked:
    """What was rendered, and every finding about it."""

    rendered: Rendered
    report: Report


def checked(
    app: App,
    workspace: Workspace,
    artifact: Artifact,
    how: Checking,
    excuses: Excuses,
    *,
    prefix: str = "",
) -> Checked:
    """Render what was packed and check it; findings that are errors are for the caller to refuse.

    Files in findings get the `prefix` that stands for where the tree is. Rejected if the tree names
    something outside, or if there is nothing to render.
    """
    with app.console.stage("render") as stage, placing(prefix):
        copy = _Copy(workspace, artifact)
        program = Program.find(how.renderer, os.environ.get("PATH", os.defpath))
        private = workspace.directory()
        with Kustomize(program, copy.path, private, timeout=how.render_timeout) as kustomize:
            rendered = render(
                copy.names,
                copy.read,
                kustomize.build,
                roots=how.roots or None,
                jobs=len(os.sched_getaffinity(0)),
            )
        report = rendered.report + _validated(app, copy, rendered, how)
        roots = [built.root for built in rendered.roots]
        report = traced(report, rendered.resources, roots, copy.names, copy.read)
        report = excuses.settled(
            report, copy.names, copy.read, prefix, whole=not was_given("roots")
        )
        objects = plural(len(rendered.resources), "object")
        stage.say(f"{objects} from {plural(len(rendered.roots), 'root')}")
    return Checked(rendered, report)


def _validated(app: App, copy: _Copy, rendered: Rendered, how: Checking) -> Report:
    """Every finding by the schemas of each target version.

    Custom kinds are those that were given, then the tree's. What is not found for all versions
    says for which it is.
    """
    named = [one for found in given(app, how.crds) for one in found.definitions()]
    known = [*named, *in_tree(copy.names, copy.read)]
    reports = {
        version: validate(
            rendered.resources,
            allow_tags=how.allow_tags,
            schemas=schemas_for(version, known, require=how.require_schema, flux=how.flux),
        )
        for version in how.versions
    }
    return across(reports)


class _Copy:
    """The packed tree in a private directory: `path`, its file `names`, and a reader."""

    def __init__(self, workspace: Workspace, artifact: Artifact) -> None:
        self.names: set[str] = set()
        self.path = workspace.extract(self._entries(artifact))
        self._drop()

    def read(self, name: str) -> bytes:
        """The content of one file; packing has bounded it."""
        return (self.path / name).read_bytes()

    def _entries(self, artifact: Artifact) -> Iterator[Entry]:
        content = flux.content(artifact.manifest)
        assert content.config is not None  # ours has one
        config = stores.read(artifact, content.config, limit=flux.CONFIG_LIMIT)
        layer = content.layer
        for entry in unarchive.read(
            artifact.fetch(layer), size=layer.size, diff_id=flux.diff_id(config)
        ):
            self.names.add(entry.name)
            yield entry

    def _drop(self) -> None:
        """Remove what source-controller will: kustomize must not find it here either."""
        rules = ignore.rules(self.names, self.read)
        for name, _ in list(ignore.dropped(self.names, rules)):
            (self.path / name).unlink()
            self.names.discard(name)
