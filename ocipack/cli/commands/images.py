"""`ocipack images`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ocipack.cli.charts import AUTO, RENDER, Finder, Looked, archive
from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plain, plural
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import opened, place
from ocipack.errors import Misuse
from ocipack.files.seam import read_bytes
from ocipack.files.snapshot import snapshot
from ocipack.files.workspace import Workspace
from ocipack.helm.chart import ARCHIVE
from ocipack.helm.images import Image
from ocipack.k8s.images.site import Confidence
from ocipack.report import Report, Severity
from ocipack.tools.helm import Rendering


@click.argument("chart", metavar="PLACE|DIR|FILE.tgz")
@click.option(
    "--values",
    "-f",
    multiple=True,
    metavar="FILE",
    help="Render with these values, as helm does; repeatable.",
)
@click.option("--kube-version", default="", metavar="VERSION", help="Render for this version.")
@click.option(
    "--render",
    type=click.Choice(RENDER),
    default=AUTO,
    show_default=True,
    help="Whether helm is run: auto if it is on PATH.",
)
@click.option(
    "--confidence",
    type=click.Choice([one.value for one in Confidence]),
    default=Confidence.LIKELY.value,
    show_default=True,
    help="Leave out what is less sure.",
)
@click.option("--why", is_flag=True, help="Say below each image which places name it.")
@click.option("--strict", is_flag=True, help="Fail if anything could not be found out.")
def images(
    app: App,
    *,
    chart: str,
    values: tuple[str, ...],
    kube_version: str,
    render: str,
    confidence: str,
    why: bool,
    strict: bool,
) -> Outcome:
    """List the images that a chart runs, and how sure that is.

    The chart is at a place (oci://, ocidir://, helm+https://), in a directory, or an archive. What
    it renders to is certain; what its annotations, lock files and values say is likely, or maybe
    (docs/charts.md). Helm runs on a private copy without network. Prints the confidence and the
    name of each.
    """
    for path in values:
        if not Path(path).is_file():
            raise Misuse(f"--values {path}: there is no such file")
    how = Rendering(tuple(Path(os.path.realpath(path)) for path in values), kube_version)
    with Workspace() as workspace, app.console.stage("look") as stage:
        looked = _looked(app, Finder.of(app, workspace, render, how), chart)
        stage.say(plural(len(looked.images), "image"))
    least = Confidence(confidence)
    shown = [one for one in looked.images if one.is_resolved and one.covers(least)]
    findings = looked.findings
    if strict:
        findings = tuple(replace(one, severity=Severity.ERROR) for one in findings)
    lines = [line for one in shown for line in _lines(one, why=why)]
    return Outcome(
        "\n".join(map(plain, lines)),
        {
            "images": [_described(one) for one in shown],
            "unresolved": [_described(one) for one in looked.images if not one.is_resolved],
        },
        Report.of(findings),
        code=1 if strict and findings else 0,
    )


def _looked(app: App, finder: Finder, chart: str) -> Looked:
    if "://" in chart or chart == "-":
        where = place(chart)
        with opened(app, where) as source:
            return finder.archive(archive(source, where.reference.name, where)[1], str(where))
    if Path(chart).is_dir():
        return finder.tree(snapshot(chart, symlinks="resolve").tree, chart)
    return finder.archive(read_bytes(chart, limit=ARCHIVE), chart)


def _lines(one: Image, *, why: bool) -> list[str]:
    first = f"{one.confidence.value:<9}{one.reference}"
    return [first, *(f"           {line}" for line in one.why)] if why else [first]


def _described(one: Image) -> dict[str, Any]:
    said = {
        "reference": str(one.reference or ""),
        "text": one.text,
        "confidence": one.confidence.value,
        "why": list(one.why),
        "reason": one.reason,
    }
    return {name: value for name, value in said.items() if value}


command = outcome_command(images)
