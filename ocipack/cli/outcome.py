"""What a command gives back, and where it is written in which form.

Every command returns an Outcome. In text form its `text` alone goes to standard output, so that
commands chain: those that make, move or prove an artifact print its pinned place, and every
command that takes a place accepts `-` to read one from standard input. `--output FORMAT[=PATH]`
writes other forms (docs/output.md), also when the command fails; each is a module of
`ocipack.cli.formats`, loaded when it is asked for.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ocipack.errors import Misuse, OcipackError, Rejected, Unavailable
from ocipack.report import Finding, Report

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = {
    "text": "plain_text",
    "json": "json_document",
    "junit": "junit",
    "sarif": "sarif",
    "github": "github",
    "markdown": "markdown",
}
"""Every form, and its module in `ocipack.cli.formats`, whose `write` takes a Result."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command found or made.

    `text` is what text form prints (empty: nothing), `data` the members of the JSON form,
    `report` the findings, `code` the exit code of a command that ran to its end, and `summary` a
    table for people: names and values, those without a value left out. `failures` are the parts
    that ended in an error, by name, when others did not, and `refused` what was found about them
    that `report` leaves out; `checked` are the objects that were looked at, so that a form can
    also say what is good.
    """

    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    code: int = 0
    summary: Sequence[tuple[str, str]] = ()
    failures: Sequence[tuple[str, OcipackError]] = ()
    refused: Report = field(default_factory=Report)
    checked: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """A command that has ended, for a form to write: with an Outcome, or with an `error`.

    `base` is the directory that the files of findings count from, as it was given.
    """

    command: str
    outcome: Outcome
    error: OcipackError | None = None
    base: str = ""

    @classmethod
    def failed(cls, command: str, error: OcipackError, base: str = "") -> Result:
        """The result of a command that was refused or could not decide."""
        outcome = Outcome(report=report_of(error), code=error.exit_code)
        return cls(command, outcome, error, base)

    @property
    def report(self) -> Report:
        """Every finding, those of failed parts too."""
        return self.outcome.report + self.outcome.refused

    @property
    def failures(self) -> list[tuple[str, OcipackError]]:
        """What ended in an error: the command, or its parts by name."""
        own = [(f"ocipack {self.command}", self.error)] if self.error is not None else []
        return [*own, *self.outcome.failures]

    def path(self, finding: Finding) -> str:
        """The finding's file as seen from where the command was run; empty if it has none."""
        if not finding.file:
            return ""
        return posixpath.normpath(posixpath.join(self.base, finding.file))


@dataclass(frozen=True, slots=True)
class Output:
    """One `--output FORMAT[=PATH]`; without a path it goes to standard output."""

    format: str
    path: Path | None = None

    @classmethod
    def parse(cls, text: str) -> Output:
        """Read FORMAT[=PATH]; Misuse if the format is unknown or the path empty."""
        name, separator, path = text.partition("=")
        if name not in FORMATS or (separator and not path):
            raise Misuse(
                f"not an output: {text!r}",
                hint=f"write FORMAT or FORMAT=PATH with one of {', '.join(FORMATS)}",
            )
        if not path:
            return cls(name)
        from pathlib import Path  # noqa: PLC0415 - start-up

        return cls(name, Path(path))

    def put(self, result: Result) -> None:
        """Write `result` in this form; Unavailable if the file cannot be written."""
        form = import_module(f"ocipack.cli.formats.{FORMATS[self.format]}")
        text: str = form.write(result)
        if text or self.path is not None:
            self.write(text)

    def write(self, text: str) -> None:
        """Write `text`; Unavailable if the file or standard output cannot be written."""
        if self.path is None:
            _print(text)
            return
        try:
            self.path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        except OSError as e:
            raise Unavailable(f"{self.path}: {e.strerror or e}") from e


def _print(text: str) -> None:
    if sys.stdout is None:  # whoever started us has closed it
        raise Unavailable("standard output: closed")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as e:
        raise Unavailable(f"standard output: {e.strerror or e}") from e


def outputs(texts: tuple[str, ...]) -> tuple[Output, ...]:
    """Read every --output; text to standard output unless something else goes there.

    Misuse if two of them share a destination.
    """
    found = tuple(Output.parse(text) for text in texts)
    if all(output.path is not None for output in found):
        found = (*found, Output("text"))
    destinations = [output.path for output in found]
    if len(set(destinations)) != len(destinations):
        raise Misuse("two outputs have the same destination", hint="give one of them =PATH")
    return found


def report_of(error: OcipackError) -> Report:
    """The findings behind a refusal; empty for every other error."""
    return (error.report if isinstance(error, Rejected) else None) or Report()


def failed(error: OcipackError) -> dict[str, Any]:
    """The member that says why: kind, message and, if there is one, hint."""
    said = {"kind": type(error).__name__, "message": str(error), "hint": error.hint}
    return {"error": {name: value for name, value in said.items() if value}}
