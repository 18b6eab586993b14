"""What a person sees: stages, notes, findings and errors, all on standard error.

Standard output carries data alone. On a terminal a stage that is under way shows a spinner (rich,
loaded only then); in a pipe each finished stage is one plain line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TextIO

from ocipack.report import Finding, Report, Severity

if TYPE_CHECKING:
    from rich.status import Status

_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
_COMMAND = r"(?m)^([^\S\n]*):(?=:)|(?<=#)#(?=\[|vso\[)"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_KIB = 1024


def plain(text: str) -> str:
    """Make text from elsewhere safe to show: no control or direction characters.

    Nor what CI runners take for their own commands: lines that begin with `::`, and `##[` and
    `##vso[` anywhere.
    """
    if not text.isprintable():
        text = re.sub(_CONTROL, lambda m: f"\\u{ord(m[0]):04x}", text)
    if "::" not in text and "##" not in text:
        return text  # as nearly always: the pattern need not be compiled
    return re.sub(_COMMAND, lambda m: "\\u0023" if m[1] is None else f"{m[1]}\\u003a", text)


def line(text: str) -> str:
    """`plain`, and on one line: whoever could begin another would speak as we do."""
    return plain(text).replace("\n", "\\n")


def size(count: float) -> str:
    """Bytes for people: `999 B`, `1.4 MiB`."""
    unit = 0
    while count >= _KIB and unit < len(_UNITS) - 1:
        count /= _KIB
        unit += 1
    return f"{count:.0f} {_UNITS[unit]}" if unit == 0 else f"{count:.1f} {_UNITS[unit]}"


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


@dataclass
class Stage:
    """One stage under way; `say` replaces the line that its end will print."""

    name: str
    status: Status | None = None
    text: str = ""
    moved: int = 0

    def say(self, text: str) -> None:
        """Set what the finished stage reports."""
        self.text = text

    def progress(self, text: str) -> None:
        """Show how far it is, on a terminal only."""
        if self.status is not None:
            self.status.update(f"{self.name} {plain(text)}")


@dataclass
class Console:
    """Standard error, and how talkative to be.

    `followed` is a hint that was followed already, so that it is not given.
    """

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    quiet: bool = False
    least: Severity = Severity.WARNING
    followed: str = ""
    _hints: set[str] = field(default_factory=set)
    under_way: Stage | None = None

    def line(self, text: str) -> None:
        """Print one line, made safe."""
        print(line(text), file=self.stream)

    def note(self, text: str) -> None:
        """Print a line that only informs; silent with --quiet."""
        if not self.quiet:
            self.line(text)

    def warn(self, text: str) -> None:
        """Print something that the reader can act on."""
        self.line(f"warning: {text}")

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Run a stage: a spinner on a terminal, one line when it is done, nothing if it fails."""
        stage = self.under_way = Stage(name)
        if self.quiet or not self.stream.isatty():
            yield stage
        else:
            from rich.console import Console as Terminal  # noqa: PLC0415 - only on a terminal

            with Terminal(file=self.stream).status(name) as status:
                stage.status = status
                yield stage
        if stage.text:
            self.note(f"{name:<9} {stage.text}")

    def moved(self, count: int) -> None:
        """Show that `count` more bytes have moved, on a terminal only; from any thread."""
        stage = self.under_way
        if stage is not None and stage.status is not None:
            stage.moved += count
            stage.progress(size(stage.moved))

    def findings(self, report: Report) -> None:
        """Print what is at least as important as `least`: place, rule, words, hint."""
        for finding, more in report.groups():
            if finding.severity.rank <= self.least.rank:
                hint = "" if finding.hint == self.followed else finding.hint
                self._hints.add(hint)
                for text in describe(replace(finding, hint=hint), more):
                    self.line(text)

    def table(self, rows: Iterable[tuple[str, str]]) -> None:
        """Print names and values in two columns, after an empty line."""
        kept = [(name, value) for name, value in rows if value]
        if kept:
            self.note("")
        width = max((len(name) for name, _ in kept), default=0)
        for name, value in kept:
            self.note(f"{name:<{width}}  {value}")

    def error(self, message: str, hint: str = "") -> None:
        """Print why the command ends, and what to do, unless a finding has said so."""
        self.line(f"error: {message}")
        if self.untold(hint):
            self.line(f"hint: {hint}")

    def untold(self, hint: str) -> str:
        """The `hint`, or nothing if a finding gave it or it was followed."""
        return "" if hint in {self.followed, *self._hints} else hint


def about(finding: Finding, more: int = 0) -> str:
    """What a finding is about: an object, how many `more` have the same, and where in it."""
    also = f"and {plural(more, 'more object')}," if more else ""
    return " ".join(part for part in (finding.subject, also, finding.pointer) if part)


def describe(finding: Finding, more: int = 0) -> Iterator[str]:
    """Yield the lines that show one finding; `more` objects have it as well."""
    what = about(finding, more)
    where = f"{finding.place}: " if finding.place else ""
    tail = f" ({what})" if what else ""
    yield f"{where}{finding.severity.value}[{finding.rule}] {finding.message}{tail}"
    if finding.hint:
        yield f"  hint: {finding.hint}"
