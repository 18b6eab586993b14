"""Excuses for findings: by the project file, or by a comment on the line.

# ocipack:ignore RULE until=YYYY-MM-DD owner=WHO why it is so

A comment behind something is about its own line; one that stands alone is about the next line
that holds something. What is excused becomes a note that says by whom and until when. An excuse
that is over, that nothing needed or that excuses what may not be is a finding of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from ocipack.errors import Misuse
from ocipack.k8s.yaml.documents import pieces
from ocipack.k8s.yaml.events import Mark, YamlError, scalars
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.k8s.yaml.strict import day
from ocipack.project import Project
from ocipack.project.ignore import Ignore, check_rule
from ocipack.report import Excuse, Finding, Report, Severity
from ocipack.rules import RULES

Read = Callable[[str], bytes]

MARK: Final = b"ocipack:ignore"
_COMMENT: Final = re.compile(r"#[ \t]*ocipack:ignore(?![\w-])([^\n\r]*)")
_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_NAMES: Final = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Comment:
    """An ignore that is written as a comment, and the `target`: the line that it is about."""

    ignore: Ignore
    target: int

    def covers(self, finding: Finding) -> bool:
        """Whether `finding` is on the line."""
        return finding.file == self.ignore.file and finding.line == self.target


@dataclass(frozen=True, slots=True)
class Ignores:
    """Every excuse there is, and what is wrong with those that could not be read."""

    project: tuple[Ignore, ...] = ()
    comments: tuple[Comment, ...] = ()
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, project: Project, names: Iterable[str], read: Read) -> Ignores:
        """Those of the project file, and those in the YAML files among `names`."""
        found: list[Comment] = []
        findings: list[Finding] = []
        for name in sorted(names):
            if not name.endswith(_NAMES):
                continue
            data = read(name)
            for one in comments(name, data) if MARK in data else ():
                (found if isinstance(one, Comment) else findings).append(one)  # type: ignore[arg-type]  # told apart here
        return cls(project.ignores, tuple(found), tuple(findings))

    def apply(
        self, report: Report, *, today: date, whole: bool = True, used: set[str] | None = None
    ) -> Report:
        """`report` with excused findings as notes, and with what is to say about the excuses.

        `today` decides which of them are over. With `whole` false only a part was looked at, so
        that an unused excuse may be needed elsewhere, and is not reported. Several artifacts share
        a project's excuses: then `used` gathers the places of those that were needed, and whoever
        has all of it says what is left (`stale`).
        """
        needed: set[str] = set() if used is None else used
        settled = [self._settled(finding, today, needed) for finding in report.findings]
        own = [comment.ignore for comment in self.comments]
        judged = own if used is not None else [*own, *self.project]
        over = stale(judged, today, needed, whole=whole)
        return Report.of([*settled, *self.findings, *over])

    def _settled(self, finding: Finding, today: date, used: set[str]) -> Finding:
        """`finding`, excused if anything covers it; a note needs that only in other commands."""
        rule = RULES.get(finding.rule)
        if rule is None or not rule.ignorable:
            return finding
        for ignore, in_source in self._covering(finding):
            used.add(ignore.place)
            if today <= ignore.until and finding.severity is not Severity.NOTE:
                excuse = Excuse(
                    *(ignore.owner, ignore.reason, ignore.until.isoformat(), ignore.place),
                    severity=finding.severity,
                    in_source=in_source,
                )
                return replace(finding, severity=Severity.NOTE, ignored=excuse)
        return finding

    def _covering(self, finding: Finding) -> Iterator[tuple[Ignore, bool]]:
        for comment in self.comments:
            if comment.ignore.rule == finding.rule and comment.covers(finding):
                yield comment.ignore, True
        for ignore in self.project:
            if ignore.rule == finding.rule and ignore.covers(finding.file, finding.subject):
                yield ignore, False


def stale(
    ignores: Iterable[Ignore], today: date, used: set[str], *, whole: bool
) -> Iterator[Finding]:
    """What is over by `today`, and if the `whole` was looked at, what is not among the `used`."""
    for ignore in ignores:
        who = f"the ignore of {ignore.rule} by {ignore.owner}"
        if today > ignore.until:
            message = f"{who} was good until {ignore.until.isoformat()}: {ignore.reason}"
            yield _about(ignore, "ignore-expired", message)
        elif whole and ignore.place not in used:
            yield _about(ignore, "ignore-unused", f"{who} excuses nothing")


def _about(ignore: Ignore, rule: str, message: str) -> Finding:
    return Finding(
        rule,
        message,
        RULES[rule].severity,
        file=ignore.file,
        line=ignore.line,
        column=ignore.column,
        hint=RULES[rule].mend,
    )


def comments(file: str, data: bytes) -> Iterator[Comment | Finding]:
    """The ignoring comments of a YAML file; a Finding for each that cannot be one.

    What looks like a comment inside a text is not one. A file that is no YAML has none.
    """
    try:
        chunks = list(pieces(data, Dialect.FLUX))
    except YamlError:
        return
    for chunk, start in chunks:
        if MARK not in chunk:
            continue
        try:
            text = chunk.decode()
            inside = list(scalars(text))
        except (UnicodeDecodeError, YamlError):
            continue
        yield from _in_chunk(file, text, inside, start)


def _in_chunk(
    file: str, text: str, inside: list[tuple[Mark, Mark]], start: int
) -> Iterator[Comment | Finding]:
    lines = _BREAK.split(text)
    for number, line in enumerate(lines):
        for match in _COMMENT.finditer(line):
            at = (number, match.start())
            if any(a <= at < b for a, b in inside):
                continue
            alone = not line[: match.start()].strip()
            target = _next(lines, number) if alone else number
            yield _comment(file, match, number + start, target + start)
            break


def _next(lines: list[str], number: int) -> int:
    """The index of the next line that holds more than a comment."""
    for index in range(number + 1, len(lines)):
        text = lines[index].strip()
        if text and not text.startswith("#"):
            return index
    return number


def _comment(file: str, match: re.Match[str], line: int, target: int) -> Comment | Finding:
    column = match.start() + 1
    words = match[1].split()
    options = {"until": "", "owner": ""}
    reason = []
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals and name in options and not options[name]:
            options[name] = value
        else:
            reason.append(word)
    rule = words[0] if words else ""
    refused = rule in RULES and not RULES[rule].ignorable
    try:
        check_rule(rule)
        until = day(options["until"])
        ignore = Ignore(
            *(rule, options["owner"], " ".join(reason), until),
            file=file,
            line=line,
            column=column,
        )
    except Misuse as e:
        id_ = "ignore-refused" if refused else "ignore-malformed"
        hint = e.hint or RULES[id_].mend
        return Finding(id_, str(e), RULES[id_].severity, file, line, column, hint=hint)
    return Comment(ignore, target)
