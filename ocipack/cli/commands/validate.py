"""`ocipack validate`."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plural
from ocipack.cli.definitions import Target, given, target_options
from ocipack.cli.judged import Group, Judged, together
from ocipack.cli.outcome import Outcome
from ocipack.cli.projects import (
    Selected,
    artifact_option,
    has_project,
    project_option,
    read_project,
    selected,
    settled,
)
from ocipack.cli.reading import Gathered, Gathering
from ocipack.errors import Misuse, OcipackError
from ocipack.files.entries import Entries
from ocipack.files.manifests import reader
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.report import Finding, Report, Severity
from ocipack.validate.cache import Cache
from ocipack.validate.inputs import KUSTOMIZATIONS, SUFFIXES
from ocipack.validate.options import Options
from ocipack.validate.run import UNREADABLE, Done, Run, Task
from ocipack.validate.together import Validation

if TYPE_CHECKING:
    from ocipack.cli.building import Built
    from ocipack.files.workspace import Workspace
    from ocipack.k8s.resource import Resource
    from ocipack.validate.judge import Judge
    from ocipack.validate.sources import Look

WORTH = 128 * 1024
"""Bytes below which other processes cost more than they save."""

_GARBAGE = 100_000


@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@target_options
@artifact_option
@project_option
@click.option(
    "--dialect",
    type=click.Choice([one.value for one in Dialect]),
    default=Dialect.FLUX.value,
    show_default=True,
    help="Whose reading of YAML is meant: kustomize's, which Flux uses, or kubectl's and Helm's.",
)
@click.option(
    "--skip",
    multiple=True,
    metavar="KIND",
    help="Do not judge objects of this kind (Kind or group/version/Kind); repeatable.",
)
@click.option(
    "--ignore",
    "ignored",
    multiple=True,
    metavar="PATTERN",
    help="Leave out these files of directories; Flux's dialect; repeatable.",
)
@click.option(
    "--render/--no-render",
    default=True,
    show_default=True,
    help="Judge what kustomizations build, or only the files as they are.",
)
@click.option(
    "--renderer",
    default="embedded",
    show_default=True,
    metavar="PROGRAM",
    help="kustomize as it comes with ocipack, or the kubectl or kustomize on PATH.",
)
@click.option(
    "--render-timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long one root may take.",
)
@click.option(
    "--cache",
    metavar="DIR",
    help="Keep verdicts on files there, and take those of files that have not changed.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many processes; as many as there are processors if not given.",
)
def validate(app: App, *, paths: tuple[str, ...], **options: Any) -> Outcome:
    """Check manifests as the API server and Flux will read them.

    PATH is a file, a directory, or - for standard input. In a directory, what kustomizations
    build is judged as it is built, and every other manifest as it stands there; if its
    ocipack.yaml lists artifacts, each of them as the tree that it will be. Nothing is fetched.
    Exits with 1 if an object is wrong or there is none, 2 if a path is not there, 3 if
    something could not be read.
    """
    gc.freeze()
    gc.set_threshold(_GARBAGE)  # values of documents hold no cycles
    target = Target.pop(options)
    how = _How(**options)
    app.base = paths[0] if len(paths) == 1 and os.path.isdir(paths[0]) else ""  # noqa: PTH112 - start-up
    with ExitStack() as stack:
        workspace = cache(partial(_workspace, stack))
        gathering = Gathering(workspace, how.ignored, how.render)
        if not (how.artifacts or has_project(how.project, app.base)):
            group = Group(gathering.gather(paths), (target.kubernetes_version,), target.crds)
            return _Validate(app, workspace, target, how, None).outcome([group])
        found = selected(app, app.base, how.project, how.artifacts)
        groups = list(_groups(app, found, gathering, paths, target))
        required = target.require_schema or found.project.require_schema
        target = replace(target, require_schema=required)
        return _Validate(app, workspace, target, how, found).outcome(groups)


def _groups(
    app: App, found: Selected, gathering: Gathering, paths: tuple[str, ...], target: Target
) -> Iterator[Group]:
    """What a project says is judged together: each artifact as the tree that it will be."""
    for part in found.artifacts:
        versions = (target.kubernetes_version,) if target.kubernetes_version else part.kubernetes
        crds = (*map(found.crd, part.crds), *target.crds)
        ignored = (*(part.ignore if app.base else ()), *gathering.ignored)
        ready = replace(gathering, ignored=ignored)
        listed = found.listed and bool(app.base)
        gathered = ready.below(found.top(part), part.prefix) if listed else ready.gather(paths)
        yield Group(gathered, versions or ("",), crds, ignored, part.render)
        if not listed:
            return


def _workspace(stack: ExitStack) -> Workspace:
    """Make the private directory, which few runs need."""
    from ocipack.files.workspace import Workspace  # noqa: PLC0415 - start-up

    return stack.enter_context(Workspace())


@dataclass(frozen=True, slots=True)
class _How:
    """What the options say, beside the target."""

    dialect: str
    skip: tuple[str, ...]
    ignored: tuple[str, ...]
    render: bool
    renderer: str
    render_timeout: float
    cache: str | None
    jobs: int | None
    project: str
    artifacts: tuple[str, ...]

    @property
    def processes(self) -> int:
        """How many processes may work at once."""
        return self.jobs or len(os.sched_getaffinity(0))


class _Validate:
    """One run of the command, once it is known what to look at."""

    def __init__(
        self,
        app: App,
        workspace: Callable[[], Workspace],
        target: Target,
        how: _How,
        found: Selected | None,
    ) -> None:
        self._app, self._workspace, self._target, self._how = app, workspace, target, how
        self._selected = found
        self._given = cache(partial(given, app))

    def outcome(self, groups: list[Group]) -> Outcome:
        """Judge what was gathered, raw and built, for each version of Kubernetes."""
        judged, report = together(
            {version: self._judged(group, version) for version in group.versions}
            for group in groups
        )
        failures = judged.failures
        if not judged.objects and not failures and report.ok:
            report += Report.of([_nothing(judged.found, judged.whole)])
        report = self._settled(report, judged)
        for name, error in failures:
            said = str(error) if name in str(error) else f"{name}: {error}"
            self._app.console.error(said, error.hint)
        return Outcome(
            data=_data(judged),
            report=report,
            code=_code(report, failures),
            summary=_summary(report, judged),
            failures=failures,
            checked=[
                *judged.whole.subjects,
                *(name for one in judged.built for name in one.subjects),
            ],
        )

    def _judged(self, group: Group, version: str) -> Judged:
        run = self._run(group, version)
        whole = run.judge(group.found.sources)
        return Judged(group.found, whole, self._built(group, run))

    def _settled(self, report: Report, judged: Judged) -> Report:
        """The report after the ignores of the project, and of comments."""
        found, whole, chosen = judged.found, judged.whole, self._selected
        files = {
            one.prefix + name: path for one in found.directories for name, path in one.files.items()
        }
        built = [name for name in files if name.rpartition("/")[2] in KUSTOMIZATIONS]
        names = [name for name in (*whole.excusing, *built) if name.endswith(SUFFIXES)]
        how = self._how
        if chosen is None and not names:
            return report
        whole_tree = bool(found.directories) and (chosen is None or chosen.whole)
        return settled(
            report,
            chosen.project if chosen else read_project("", self._app.base),
            names,
            lambda name: b"".join(reader(files.get(name, name))()),
            whole=whole_tree and how.render and not (how.skip or found.failures),
        )

    def _run(self, group: Group, version: str) -> Run:
        how, target = self._how, self._target
        options = Options(
            version,
            Dialect(how.dialect),
            require_schema=target.require_schema,
            skip=_kinds(how.skip),
            flux=self._selected.project.flux if self._selected else "",
        )
        kept = Entries(how.cache) if how.cache else None
        return Run(
            options,
            partial(self._engine, group.crds),
            self._spread,
            cache=Cache(kept.load, kept.save) if kept else None,
            given=[one.digest for one in self._given(group.crds)],
        )

    def _engine(
        self, crds: tuple[str, ...], options: Options, looks: list[Look]
    ) -> tuple[Judge, list[Resource]]:
        from ocipack.validate.engine import engine  # noqa: PLC0415 - not for what is unchanged

        known = self._given(crds)
        return engine(lambda: [one for found in known for one in found.definitions()])(
            options, looks
        )

    def _spread(
        self,
        tasks: Iterable[Task],
        work: Callable[[Task], Done],
        meanwhile: Callable[[], None],
        size: int,
    ) -> Iterator[Done]:
        if size > WORTH and self._how.processes > 1:
            from ocipack.tools.workers import spread  # noqa: PLC0415 - start-up

            yield from spread(tasks, work, jobs=self._how.processes, meanwhile=meanwhile)
            return
        meanwhile()
        yield from map(work, tasks)

    def _built(self, group: Group, run: Run) -> list[Built]:
        """What kustomize builds in the directories, and what is wrong with it."""
        if not any(one.roots for one in group.found.directories):
            return []
        from ocipack.cli.building import Building  # noqa: PLC0415 - only where something is built

        how = self._how
        judge, _ = run.engine()
        building = Building(self._workspace(), how.renderer, how.render_timeout, how.processes)
        return [
            building.build(one, judge, group.ignored, group.render)
            for one in group.found.directories
            if one.roots is not None
        ]


def _kinds(texts: Iterable[str]) -> tuple[str, ...]:
    """The kinds that `--skip` names, commas between them allowed as elsewhere."""
    return tuple(sorted(kind for text in texts for kind in text.split(",") if kind))


def _nothing(found: Gathered, whole: Validation) -> Finding:
    """Nothing was found, and that proves nothing: say what there is instead."""
    parts = []
    if whole.empty:
        parts.append(f"{plural(len(whole.empty), 'file')} with nothing but comments")
    if whole.other:
        parts.append(f"{plural(len(whole.other), 'file')} that do not claim to be manifests")
    if found.skipped:
        parts.append(f"{plural(len(found.skipped), 'file')} left out")
    there = f", only {', '.join(parts)}" if parts else ""
    return Finding(
        "nothing-to-validate",
        f"there is no object to check{there}",
        hint="name the right directory; an empty set passes every check",
    )


def _code(report: Report, failures: list[tuple[str, OcipackError]]) -> int:
    """1 if anything is wrong for certain, else 2 for a bad request, else 3 for what is unknown."""
    errors = {f.rule for f in report.findings if f.severity is Severity.ERROR}
    kinds = {error.exit_code for _, error in failures}
    if errors - {UNREADABLE} or 1 in kinds:
        return 1
    if Misuse.exit_code in kinds:
        return Misuse.exit_code
    return 3 if errors or kinds else 0


def _data(judged: Judged) -> dict[str, Any]:
    """The members of the JSON form."""
    found, whole, built = judged.found, judged.whole, judged.built
    return {
        "files": whole.files,
        "documents": whole.documents,
        "objects": judged.objects,
        "cached": whole.cached,
        "roots": [root for one in built for root in one.roots],
        "components": [root for one in built for root in one.components],
        "skipped": dict(sorted(found.skipped.items())),
        "empty": whole.empty,
        "notManifests": whole.other,
        "withoutSchema": dict(sorted(judged.missing.items())),
    }


def _summary(report: Report, judged: Judged) -> list[tuple[str, str]]:
    """The table for people."""
    found, whole, built = judged.found, judged.whole, judged.built
    errors, warnings = (report.count(s) for s in (Severity.ERROR, Severity.WARNING))
    raw = f"{plural(whole.objects, 'object')} in {plural(whole.files, 'file')}"
    rendered = sum(one.objects for one in built)
    roots = sum(len(one.roots) for one in built)
    left = [*found.skipped, *whole.other, *whole.empty]
    missing = judged.missing
    kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(missing.items())[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""  # noqa: PLR2004 - as above
    return [
        ("read", raw if whole.files or not built else ""),
        ("built", f"{plural(rendered, 'object')} from {plural(roots, 'root')}" if built else ""),
        ("unchanged", plural(whole.cached, "file") if whole.cached else ""),
        ("no manifests", plural(len(left), "file") if left else ""),
        ("no schema", kinds + more),
        ("result", f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"),
    ]


command = outcome_command(validate)
