"""Markdown: a table for a job summary or a comment on a merge request.

Text from elsewhere stands in `<code>`, every character of it that Markdown or HTML could act on
written as a numeric reference: it is no markup, no link, no mention and no end of a cell. Rows and
cells are bounded, since a comment holds 65,536 characters at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ocipack.cli.console import plain, plural
from ocipack.report import Finding, Severity

if TYPE_CHECKING:
    from ocipack.cli.outcome import Result

SIZE = 60_000
"""Characters of the whole table at most."""

CELL = 300
"""Characters of text from elsewhere in one cell at most."""

_ACTIVE = re.compile(r"[^\w ,/=-]|_|(?<=www)\.", re.ASCII)
_SIGNS = {Severity.ERROR: "❌ error", Severity.WARNING: "⚠️ warning", Severity.NOTE: "note"}


def write(result: Result) -> str:
    """A heading with the verdict, what ended the command, and a table of the findings."""
    report = result.report
    verdict = "passed" if result.outcome.code == 0 else f"failed (exit code {result.outcome.code})"
    counts = [
        plural(report.count(severity), severity.value)
        for severity in Severity
        if report.count(severity)
    ]
    lines = [f"### ocipack {inert(result.command)}: {verdict}", ""]
    for name, error in result.failures:
        hint = f" Hint: {inert(error.hint)}" if error.hint else ""
        lines += [f"{inert(name)}: {inert(str(error))}{hint}", ""]
    facts = [(name, value) for name, value in result.outcome.summary if value]
    lines += [f"- {inert(name)}: {inert(value)}" for name, value in facts] + [""][: len(facts)]
    if counts:
        lines += [", ".join(counts) + ".", "", "| | rule | place | finding |", "|---|---|---|---|"]
    return "\n".join([*lines, *_rows(result, SIZE - sum(map(len, lines)))]) + "\n"


def _rows(result: Result, room: int) -> Iterator[str]:
    findings = sorted(result.report.groups(), key=lambda group: group[0].severity.rank)
    for number, (finding, more) in enumerate(findings):
        row = _row(result, finding, more)
        room -= len(row) + 1
        if room < 0:
            yield ""
            yield f"… and {plural(len(findings) - number, 'more finding')}."
            return
        yield row


def _row(result: Result, finding: Finding, more: int) -> str:
    numbers = [str(n) for n in (finding.line, finding.column) if n]
    path = result.path(finding)
    place = ":".join([path, *numbers]) if path else finding.subject
    parts = [inert(finding.message)]
    if path and finding.subject:
        also = f" and {plural(more, 'more object')}" if more else ""
        parts.append(inert(finding.subject) + also)
    if finding.ignored is not None:
        excuse = finding.ignored
        parts.append(f"ignored by {inert(excuse.owner)} until {inert(excuse.until)}")
    if finding.hint:
        parts.append(f"hint: {inert(finding.hint)}")
    cells = (_SIGNS[finding.severity], inert(finding.rule), inert(place), "<br>".join(parts))
    return f"| {' | '.join(cells)} |"


def inert(text: str) -> str:
    """`text` as code that nothing in it can end; bounded, on one line; empty if it is."""
    shown = " ".join(plain(text).split())
    if len(shown) > CELL:
        shown = shown[: CELL - 1] + "…"
    return f"<code>{_ACTIVE.sub(lambda m: f'&#{ord(m[0])};', shown)}</code>" if shown else ""
