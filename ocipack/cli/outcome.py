"""What a command gives back, and the forms in which it is written.

Every command returns an Outcome. In text form its `line` alone goes to standard output, so that
commands chain: those that make, move or prove an artifact print its pinned place, and every
command that takes a place accepts `-` to read one from standard input. `--output json[=PATH]`
writes one JSON document instead (docs/output.md), also when the command fails.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ocipack.errors import Misuse, OcipackError, Rejected, Unavailable
from ocipack.report import Report

SCHEMA = "ocipack.dev/result/v1"
FORMATS = ("text", "json")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command found or made.

    `text` is what text form prints (empty: nothing), `data` the members of the JSON form,
    `report` the findings, `code` the exit code of a command that ran to its end, and `summary` a
    table for people: names and values, those without a value left out.
    """

    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    code: int = 0
    summary: Sequence[tuple[str, str]] = ()


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
        return cls(name, Path(path) if path else None)

    def write(self, text: str) -> None:
        """Write `text`; Unavailable if the file cannot be written."""
        if self.path is None:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        try:
            self.path.write_text(text, encoding="utf-8")
        except OSError as e:
            raise Unavailable(f"{self.path}: {e.strerror or e}") from e


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


def document(command: str, outcome: Outcome) -> dict[str, Any]:
    """The JSON form of a command that ran to its end."""
    return {
        "schema": SCHEMA,
        "command": command,
        "exitCode": outcome.code,
        **outcome.data,
        "findings": [finding.as_dict() for finding in outcome.report.findings],
    }


def failure(command: str, error: OcipackError) -> dict[str, Any]:
    """The JSON form of a command that was refused or could not decide."""
    return {
        "schema": SCHEMA,
        "command": command,
        "exitCode": error.exit_code,
        **failed(error),
        "findings": [finding.as_dict() for finding in report_of(error).findings],
    }


def report_of(error: OcipackError) -> Report:
    """The findings behind a refusal; empty for every other error."""
    return (error.report if isinstance(error, Rejected) else None) or Report()


def failed(error: OcipackError) -> dict[str, Any]:
    """The member that says why: kind, message and, if there is one, hint."""
    said = {"kind": type(error).__name__, "message": str(error), "hint": error.hint}
    return {"error": {name: value for name, value in said.items() if value}}


def pretty(document: Mapping[str, Any]) -> str:
    """Serialise for people and machines alike: indented, members in their order."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
