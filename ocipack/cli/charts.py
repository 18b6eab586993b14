"""Charts wherever they are, and the images that they run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ocipack.cli.command import App
from ocipack.cli.console import plural
from ocipack.errors import IntegrityError, Misuse, OcipackError
from ocipack.files.workspace import Workspace
from ocipack.helm import chart as charts, images
from ocipack.helm.images import Image
from ocipack.k8s.images.site import Confidence
from ocipack.mirror.model import Mirror, Source
from ocipack.mirror.plan import Item, Plan
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source as Readable, manifest, read
from ocipack.pin.resolve import each
from ocipack.report import Finding, Report, Severity
from ocipack.tools import helm
from ocipack.tools.helm import Helm, Rendering
from ocipack.tree import unarchive
from ocipack.tree.tree import Tree

AUTO, ALWAYS, NEVER = "auto", "always", "never"
RENDER = (AUTO, ALWAYS, NEVER)

AT_ONCE = 8
"""Charts that are looked into at once."""


def archive(source: Readable, name: str, shown: object) -> tuple[Descriptor, bytes]:
    """The chart that `name` is in `source`: its artifact, and its archive.

    IntegrityError if that is no chart.
    """
    root = source.resolve(name)
    layers = () if (made := manifest(source, root)).is_index else made.layers
    content = [one for one in layers if one.media_type == charts.CONTENT]
    if len(content) != 1:
        raise IntegrityError(f"{shown}: not a chart: {len(content)} archives of one are in it")
    return root, read(source, content[0], limit=charts.ARCHIVE)


@dataclass(frozen=True, slots=True)
class Looked:
    """The images of a chart, and what could not be found out."""

    images: tuple[Image, ...]
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class Finder:
    """Looks into charts; with `program`, the path of helm, what they render to counts."""

    workspace: Workspace
    program: str | None
    how: Rendering
    render: str = AUTO

    @classmethod
    def of(cls, app: App, workspace: Workspace, render: str, how: Rendering) -> Self:
        """As the options say; Misuse if it must render, and there is no helm."""
        search = app.registries.environment.get("PATH", os.defpath)
        program = helm.find(search) if render != NEVER else None
        if render == ALWAYS and program is None:
            raise Misuse("helm is not installed", hint="install it, or leave --render out")
        return cls(workspace, program, how, render)

    def archive(self, data: bytes, name: str) -> Looked:
        """The images of the chart in an archive; `name` is for messages."""

        def copy() -> Path:
            entries = unarchive.read([data], size=len(data), limits=charts.LIMITS)
            (top,) = self.workspace.extract(entries).iterdir()
            return top

        return self._looked(images.opened(data), copy, name)

    def tree(self, tree: Tree, name: str) -> Looked:
        """The images of the chart that `tree` is."""
        files = {
            file: one.read(limit=charts.ARCHIVE)
            for file, one in tree.files.items()
            if images.is_wanted(file)
        }
        return self._looked(
            images.of_files(files), lambda: self.workspace.extract(tree.entries()), name
        )

    def _looked(self, chart: images.Chart, copy: Callable[[], Path], name: str) -> Looked:
        findings: list[Finding] = []
        rendered = self._rendered(copy, name, findings)

        def told(what: str) -> None:
            findings.append(_warning("chart-unreadable", what, name))

        found = images.images(chart, rendered, told)
        for one in found:
            if not one.is_resolved:
                said = f"{one.text}: {one.reason} ({one.why[0]})"
                findings.append(_warning("chart-image-unresolved", said, name))
        return Looked(tuple(found), tuple(findings))

    def _rendered(
        self, copy: Callable[[], Path], name: str, findings: list[Finding]
    ) -> bytes | None:
        """What helm makes of the chart; None, and a finding, if it makes nothing."""
        if self.program is None:
            if self.render != NEVER:
                findings.append(_warning("chart-unrendered", "helm is not installed", name))
            return None
        try:
            private = self.workspace.directory()
            return Helm(self.program, private).template(copy(), name, self.how)
        except OcipackError as e:
            if self.render == ALWAYS:
                raise
            findings.append(_warning("chart-unrendered", str(e), name))
            return None


def _warning(rule: str, message: str, name: str) -> Finding:
    return Finding(rule, message, Severity.WARNING, subject=name)


@dataclass(frozen=True, slots=True)
class Along:
    """The images of the charts that a mirror file names, as sources of their own.

    `failed` are the charts that could not be looked into.
    """

    sources: tuple[Source, ...] = ()
    failed: tuple[tuple[Source, OcipackError], ...] = ()
    findings: tuple[Finding, ...] = ()

    def report(self, *, strict: bool) -> Report:
        """What could not be found out: a warning, or, if it is `strict`, an error."""
        severity = Severity.ERROR if strict else Severity.WARNING
        return Report.of(replace(one, severity=severity) for one in self.findings)


def along(app: App, items: Iterable[Item], source: Callable[[Reference], Readable]) -> Along:
    """What the charts among `items` run, of those of which the mirror file wants that.

    `source` opens the repository of a chart. An image goes where the file says that its
    repository goes, and need be signed if its chart need be.
    """
    wanted = {item.reference: item for item in items if item.source.images}
    found: dict[str, Source] = {}
    failed: list[tuple[Source, OcipackError]] = []
    findings: list[Finding] = []
    if not wanted:
        return Along()

    def look(reference: Reference) -> Looked:
        name = str(reference)
        data = archive(source(wanted[reference].source.bare), reference.name, name)[1]
        with Workspace() as workspace:
            return Finder.of(app, workspace, AUTO, Rendering()).archive(data, name)

    with app.console.stage("images") as stage:
        answers = each(wanted, look, jobs=AT_ONCE)
        for reference, item in wanted.items():
            answer = answers[reference]
            if isinstance(answer, OcipackError):
                failed.append((item.source, answer))
                continue
            findings += answer.findings
            for one in answer.images:
                if one.is_resolved and one.reference and one.covers(Confidence.LIKELY):
                    made = _source(one.reference, item.source)
                    found.setdefault(str(made.reference), made)
        stage.say(f"{len(found)} of {plural(len(wanted), 'chart')}")
    return Along(tuple(found.values()), tuple(failed), tuple(findings))


def with_images(
    app: App,
    wanted: Mirror,
    planned: Callable[[Mirror], Plan],
    source: Callable[[Reference], Readable],
) -> tuple[Mirror, Along]:
    """`wanted`, and the images of its charts where it says so; `planned` picks the charts."""
    chosen = tuple(one for one in wanted.sources if one.images)
    if not chosen:
        return wanted, Along()
    more = along(app, planned(replace(wanted, sources=chosen)).items, source)
    return replace(wanted, sources=(*wanted.sources, *more.sources)), more


def _source(reference: Reference, chart: Source) -> Source:
    untagged = reference.tag is None and reference.digest is None
    return Source(
        "image",
        replace(reference, tag="latest") if untagged else reference,
        attached=chart.attached,
        overwrite=chart.overwrite,
        unsigned=chart.unsigned,
        place=chart.place,
    )
