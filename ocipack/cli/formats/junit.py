"""JUnit XML, as GitLab, Jenkins and the others read it.

Source: the schema of Jenkins' xUnit plugin (junit-10.xsd). A test case is one object, or one file
when no object is named, or the command itself. Errors are failures; what could not be decided is
an `error`; warnings and notes are text in `system-out` and fail nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from ocipack.cli.console import plain
from ocipack.cli.outcome import report_of
from ocipack.errors import Rejected
from ocipack.report import Finding, Severity

if TYPE_CHECKING:
    from ocipack.cli.outcome import Result
    from ocipack.errors import OcipackError

_ILLEGAL = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class _Case:
    """A test case: what was found about it, and the error that ended it, if one did."""

    name: str
    findings: list[Finding] = field(default_factory=list)
    error: OcipackError | None = None

    @property
    def failing(self) -> list[Finding]:
        return [f for f in self.findings if f.severity is Severity.ERROR]

    @property
    def refused(self) -> bool:
        return bool(self.failing) or isinstance(self.error, Rejected)

    @property
    def undecided(self) -> bool:
        return self.error is not None and not isinstance(self.error, Rejected)


def write(result: Result) -> str:
    """One test suite for the command."""
    cases = _cases(result)
    counts = (
        f'tests="{len(cases)}" failures="{sum(case.refused for case in cases)}" '
        f'errors="{sum(case.undecided for case in cases)}"'
    )
    name = _attribute(f"ocipack {result.command}")
    body = "".join(text for case in cases for text in _written(case, result))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="ocipack" {counts}>\n'
        f'  <testsuite name={name} {counts} skipped="0" time="0">\n'
        f"{body}  </testsuite>\n</testsuites>\n"
    )


def _cases(result: Result) -> Sequence[_Case]:
    cases = {name: _Case(name) for name in result.outcome.checked}
    for finding in result.report.findings:
        name = finding.subject or result.path(finding) or f"ocipack {result.command}"
        cases.setdefault(name, _Case(name)).findings.append(finding)
    for name, error in result.failures:
        if not report_of(error).ok:
            continue  # its findings say it
        cases.setdefault(name, _Case(name)).error = error
    name = f"ocipack {result.command}"
    return list(cases.values()) or [_Case(name)]


def _written(case: _Case, result: Result) -> Iterator[str]:
    group = _attribute(f"ocipack.{result.command}")
    yield f'    <testcase name={_attribute(case.name)} classname={group} time="0">\n'
    if case.undecided and case.error is not None:
        kind, message = _attribute(type(case.error).__name__), _attribute(str(case.error))
        yield f"      <error type={kind} message={message}>{_text(case.error.hint)}</error>\n"
    elif case.error is not None:
        kind, message = _attribute(type(case.error).__name__), _attribute(str(case.error))
        yield f"      <failure type={kind} message={message}>{_text(case.error.hint)}</failure>\n"
    for finding in case.failing:
        rule, message = _attribute(finding.rule), _attribute(finding.message)
        yield f"      <failure type={rule} message={message}>{_text(_told(finding))}</failure>\n"
    rest = [f for f in case.findings if f.severity is not Severity.ERROR]
    if rest:
        yield f"      <system-out>{_text(chr(10).join(map(_told, rest)))}</system-out>\n"
    yield "    </testcase>\n"


def _told(finding: Finding) -> str:
    place = f"{finding.place}: " if finding.place else ""
    lines = [f"{place}{finding.severity.value}[{finding.rule}] {finding.message}"]
    lines += [f"at {finding.pointer}"] if finding.pointer else []
    lines += [f"hint: {finding.hint}"] if finding.hint else []
    if finding.ignored is not None:
        excuse = finding.ignored
        lines.append(f"ignored by {excuse.owner} until {excuse.until}: {excuse.reason}")
    return "\n".join(lines)


def _legal(text: str) -> str:
    """`text` with only the characters that XML 1.0 has; others are shown by number."""
    return _ILLEGAL.sub(lambda m: f"\\u{ord(m[0]):04x}", plain(text))


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _text(text: str) -> str:
    return escape(_legal(text))
