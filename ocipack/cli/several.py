"""Work on several artifacts of a project: one that fails does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ocipack.cli.command import App
from ocipack.cli.outcome import Outcome, failed, report_of
from ocipack.errors import OcipackError, Rejected
from ocipack.report import Report

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Results(Generic[_T]):
    """What came of each artifact, by name, in the order of the project file."""

    each: tuple[tuple[str, _T | OcipackError], ...]

    @property
    def good(self) -> list[tuple[str, _T]]:
        """Those that did not end in an error."""
        return [(name, one) for name, one in self.each if not isinstance(one, OcipackError)]

    @property
    def failures(self) -> list[tuple[str, OcipackError]]:
        """Those that did."""
        return [(name, one) for name, one in self.each if isinstance(one, OcipackError)]

    def outcome(
        self,
        text: str,
        describe: Callable[[_T], dict[str, Any]],
        report: Report,
        *,
        summary: Callable[[_T], str],
        checked: Iterable[str] = (),
    ) -> Outcome:
        """One outcome for all.

        The exit code is 0 if all is well, 1 if any was refused, else the least of the others.
        """
        return Outcome(
            text,
            {"artifacts": [self._described(name, one, describe) for name, one in self.each]},
            report,
            min((error.exit_code for _, error in self.failures), default=0),
            summary=[
                (name, word(one) if isinstance(one, OcipackError) else summary(one))
                for name, one in self.each
            ],
            failures=self.failures,
            refused=sum((report_of(error) for _, error in self.failures), Report()),
            checked=list(checked),
        )

    def _described(
        self, name: str, one: _T | OcipackError, describe: Callable[[_T], dict[str, Any]]
    ) -> dict[str, Any]:
        if not isinstance(one, OcipackError):
            return {"name": name, **describe(one)}
        findings = [finding.as_dict() for finding in report_of(one).findings]
        return {"name": name, "state": word(one), **failed(one), "findings": findings}


def each(app: App, work: Iterable[tuple[str, Callable[[], _T]]]) -> Results[_T]:
    """Do the `work` on each artifact, by name, and say at once what went wrong."""
    found: list[tuple[str, _T | OcipackError]] = []
    for name, do in work:
        app.console.note(f"--- {name}")
        try:
            found.append((name, do()))
        except OcipackError as error:
            app.console.findings(report_of(error))
            app.console.error(f"{name}: {error}", error.hint)
            found.append((name, error))
    return Results(tuple(found))


def word(error: OcipackError) -> str:
    """What an error says of an artifact, in a word."""
    return "refused" if isinstance(error, Rejected) else "undecided"
