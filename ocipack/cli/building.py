"""Kustomizations of a directory, built as they would be in the cluster, each root by itself."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ocipack.cli.reading import Directory
from ocipack.errors import OcipackError, Rejected
from ocipack.files.snapshot import RESOLVE, snapshot
from ocipack.files.workspace import Workspace
from ocipack.k8s.kustomization.paths import View
from ocipack.k8s.kustomization.walk import EVERY, Read, Walk, confined
from ocipack.render import Rendered, render
from ocipack.report import Finding, Report
from ocipack.tools.kustomize import Kustomize, Program
from ocipack.tree.ignore import defaults
from ocipack.tree.tree import Entry, Tree
from ocipack.validate.judge import Judge
from ocipack.validate.trace import Tracer


@dataclass(slots=True)
class Built:
    """What came of the kustomizations of one directory.

    `roots` are those that were built, `components` those that are none; `failures` are the roots
    that could not be built, with the reason; `missing` counts objects without a schema by kind.
    """

    roots: list[str] = field(default_factory=list)
    components: list[str] = field(default_factory=list)
    objects: int = 0
    findings: list[Finding] = field(default_factory=list)
    failures: list[tuple[str, OcipackError]] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    subjects: list[str] = field(default_factory=list)


class Building:
    """Builds directories with one program, in private copies, `jobs` roots at a time."""

    def __init__(self, workspace: Workspace, renderer: str, timeout: float, jobs: int) -> None:
        self._workspace = workspace
        self._program = Program.find(renderer, os.environ.get("PATH", os.defpath))
        self._timeout = timeout
        self._jobs = jobs

    def build(
        self,
        directory: Directory,
        judge: Judge,
        ignored: tuple[str, ...],
        only: tuple[str, ...] = (),
    ) -> Built:
        """Build the roots of `directory` and judge what they give; one that fails is a failure.

        `only` are the directories to build, if it is said which.
        """
        found = directory.roots
        assert found is not None  # the caller chose those that have some
        made = Built(components=[directory.prefix + (one or ".") for one in found.components])
        try:
            left_out = defaults("\n".join(ignored))
            seen = snapshot(directory.path, left_out=left_out, symlinks=RESOLVE)
            top = self._workspace.extract(_entries(seen.tree))
        except OcipackError as e:
            made.failures.append((directory.path, e))
            _explain(made, directory, e)
            return made
        tracer = Tracer(seen.tree.files, lambda name: (top / name).read_bytes())
        findings = [*seen.report.findings]
        if not only or EVERY in only:  # else each root reports what it reaches
            findings += found.report.findings
        wanted = found.build
        if only:
            walk = Walk(View.of(seen.tree.files), lambda name: (top / name).read_bytes())
            wanted = tuple(one.directory for one in confined(only, walk))
        results = self._all(wanted, top, seen.tree, empty=not only or EVERY in only)
        for root, result in zip(wanted, results, strict=True):
            name = root or "."
            if isinstance(result, OcipackError):
                made.failures.append((directory.prefix + name, result))
                _explain(made, directory, result)
                continue
            made.roots.append(directory.prefix + name)
            made.objects += len(result.resources)
            made.subjects += map(str, result.resources)
            judge.schemas.learn(result.resources)
            judge.schemas.missing.clear()
            report = Report.of(judge.built(result.resources))
            report = tracer.place(report, result.resources, [one.root for one in result.roots])
            findings += [*result.report.findings, *report.findings]
            made.missing.update(judge.schemas.missing)
        made.findings += [_placed(finding, directory) for finding in dict.fromkeys(findings)]
        return made

    def _all(
        self, roots: tuple[str, ...], top: Path, tree: Tree, *, empty: bool
    ) -> Iterator[Rendered | OcipackError]:
        names = list(tree.files)
        private = self._workspace.directory()
        with (
            Kustomize(self._program, top, private, timeout=self._timeout) as kustomize,
            ThreadPoolExecutor(max_workers=self._jobs, thread_name_prefix="build") as pool,
        ):
            one = partial(_one, names, lambda name: (top / name).read_bytes(), kustomize, empty)
            yield from pool.map(one, roots)


def _one(
    names: list[str],
    read: Read,
    kustomize: Kustomize,
    empty: bool,  # noqa: FBT001 - called by the pool
    root: str,
) -> Rendered | OcipackError:
    try:
        return render(names, read, kustomize.build, roots=(root,), jobs=1, empty=empty)
    except OcipackError as e:
        return e


def _entries(tree: Tree) -> Iterator[Entry]:
    for name, file in tree.files.items():
        yield Entry(name, file.size, file.executable, iter(file.open()))


def _explain(made: Built, directory: Directory, error: OcipackError) -> None:
    """Take the findings behind a refusal to the others."""
    if isinstance(error, Rejected) and error.report is not None:
        made.findings += [_placed(finding, directory) for finding in error.report.findings]


def _placed(finding: Finding, directory: Directory) -> Finding:
    return replace(finding, file=directory.prefix + finding.file) if finding.file else finding
