"""The one shape that every judgement takes."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(enum.Enum):
    """How much a finding matters; only ERROR changes an exit code."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """Order of importance: 0 is the most serious."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a finding does not count: who says so, until which day, and where that is written.

    `until` is an ISO date, the last day on which it holds; `place` is `file:line:column` of the
    ignore; `severity` is what the finding would be without it; `in_source` says whether it
    stands as a comment beside what it excuses, rather than in the project file.
    """

    owner: str
    reason: str
    until: str
    place: str
    severity: Severity
    in_source: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "owner": self.owner,
            "reason": self.reason,
            "until": self.until,
            "place": self.place,
            "severity": self.severity.value,
            "by": "comment" if self.in_source else "project",
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact that someone may have to act on.

    `rule` is a stable slug. `file`, `line` and `column` (from 1; 0 is unknown) point into the
    tree as packed, `pointer` is an RFC 6901 JSON pointer into the object, `subject` names the
    object (`kind namespace/name`), the reference or the digest that the finding is about.
    `ignored` says who excused it; such a finding is a note.
    """

    rule: str
    message: str
    severity: Severity = Severity.ERROR
    file: str = ""
    line: int = 0
    column: int = 0
    pointer: str = ""
    subject: str = ""
    hint: str = ""
    ignored: Excuse | None = None

    @property
    def place(self) -> str:
        """`file:line:column` as far as it is known, else empty."""
        known = [str(n) for n in (self.line, self.column) if n]
        return ":".join([self.file, *known]) if self.file else ""

    @property
    def order(self) -> tuple[str, int, int, int, str, str, str]:
        """Sort key: by place, then severity, then rule; stable between runs."""
        return (
            self.file,
            self.line,
            self.column,
            self.severity.rank,
            self.rule,
            self.subject,
            self.message,
        )

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: every field that says something, in the order of the class."""
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: _plain(value) for name, value in pairs if value not in ("", 0, None)}


def _plain(value: Any) -> Any:
    if isinstance(value, Excuse):
        return value.as_dict()
    return value.value if isinstance(value, Severity) else value


@dataclass(frozen=True, slots=True)
class Report:
    """An ordered set of findings: sorted by place, each once, whoever found it first."""

    findings: tuple[Finding, ...] = field(default=())

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Report:
        """Collect `findings`, dropping repeats and sorting by place."""
        return cls(tuple(sorted(set(findings), key=lambda f: f.order)))

    @property
    def ok(self) -> bool:
        """Whether nothing here is an error."""
        return not self.count(Severity.ERROR)

    def count(self, severity: Severity) -> int:
        """How many findings have `severity`."""
        return sum(f.severity is severity for f in self.findings)

    def groups(self) -> list[tuple[Finding, int]]:
        """Each finding once for its place, and how many other objects it is about as well.

        What many objects get from one line is one thing to mend.
        """
        counts: dict[Finding, int] = {}
        first: dict[Finding, Finding] = {}
        for finding in self.findings:
            key = replace(finding, subject="") if finding.line else finding
            counts[key] = counts.get(key, -1) + 1
            first.setdefault(key, finding)
        return [(finding, counts[key]) for key, finding in first.items()]

    def __add__(self, other: Report) -> Report:
        return Report.of((*self.findings, *other.findings))
