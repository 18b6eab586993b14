"""Workflow commands for GitHub Actions: a finding becomes an annotation beside its line.

Source: actions/runner, ActionCommand.cs: `::error file=F,line=L,col=C,title=T::message`, with %, CR
and LF escaped everywhere and `:` and `,` in properties too. Escaped text cannot begin a line, so
it cannot become a command of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ocipack.cli.console import about, plain
from ocipack.report import Finding, Severity

if TYPE_CHECKING:
    from ocipack.cli.outcome import Result

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def write(result: Result) -> str:
    """One command for each error and warning, then one for each error that ended something."""
    return "".join(f"{line}\n" for line in _lines(result))


def _lines(result: Result) -> Iterator[str]:
    for finding, more in result.report.groups():
        if finding.severity in _COMMANDS:
            yield _annotation(finding, more, result.path(finding))
    for name, error in result.failures:
        text = f"{error}\n{error.hint}" if error.hint else str(error)
        yield f"::error title={_property(name)}::{_data(text)}"


def _annotation(finding: Finding, more: int, path: str) -> str:
    known = {
        "file": path,
        "line": str(finding.line or ""),
        "col": str(finding.column or "") if finding.line else "",
        "title": finding.rule,
    }
    properties = ",".join(f"{key}={_property(value)}" for key, value in known.items() if value)
    what = about(finding, more)
    text = f"{finding.message} ({what})" if what else finding.message
    text = f"{text}\n{finding.hint}" if finding.hint else text
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(text)}"


def _data(text: str) -> str:
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
