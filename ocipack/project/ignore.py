"""Excuses that a project file holds: findings that do not count, each for a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Node
from ocipack.k8s.yaml.strict import Reader
from ocipack.rules import RULES

_GLOB: Final = 500
_FIELDS: Final = ("rule", "path", "object", "owner", "reason", "until")


@dataclass(frozen=True, slots=True)
class Ignore:
    """One excuse: findings of `rule` at files like `path`, about objects like `object`.

    An empty glob fits all. `until` is the last day on which it holds; `file`, `line` and `column`
    say where it is written. Raises Misuse for an unknown rule, and for one that nobody may ignore.
    """

    rule: str
    owner: str
    reason: str
    until: date
    path: str = ""
    object: str = ""
    file: str = ""
    line: int = 0
    column: int = 0

    def __post_init__(self) -> None:
        check_rule(self.rule)
        if not self.owner.strip() or not self.reason.strip():
            raise Misuse("an ignore needs an owner and a reason")

    @property
    def place(self) -> str:
        """`file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}"

    def covers(self, file: str, subject: str) -> bool:
        """Whether the globs fit a finding in `file` about `subject`."""
        return fits(self.path, file) and fits(self.object, subject)


def check_rule(rule: str) -> None:
    """Misuse if `rule` is unknown, or may not be ignored."""
    if rule not in RULES:
        near = get_close_matches(rule, RULES, n=1)
        hint = f"did you mean {near[0]}?" if near else "see `ocipack rules list`"
        raise Misuse(f"there is no rule {rule[:60]!r}", hint=hint)
    if not RULES[rule].ignorable:
        raise Misuse(f"rule {rule} cannot be ignored", hint=f"see `ocipack rules explain {rule}`")


def fits(glob: str, text: str) -> bool:
    """Whether `glob` (`*` and `?` within a part, `**` across `/`) is all of `text`."""
    return not glob or _pattern(glob).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    split = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(pieces.get(part, re.escape(part)) for part in split), re.DOTALL)


def read(reader: Reader, node: Node) -> Ignore:
    """One entry of `validate.ignore`."""
    said = reader.mapping(node, "the ignore", _FIELDS, ("rule", "owner", "reason", "until"))
    texts = {
        pair.key: reader.text(pair.value, pair.key) for pair in said.pairs if pair.key != "until"
    }
    if "path" not in texts and "object" not in texts:
        hint = 'path: "**" is everywhere'
        reader.refuse(said.place, "the ignore has neither path nor object", hint)
    for pair in said.pairs:
        if pair.key in ("path", "object") and len(texts[pair.key]) > _GLOB:
            reader.refuse(pair.value.place, f"{pair.key} is longer than {_GLOB} characters")
    rule = said.get("rule")
    assert rule is not None  # it is needed
    with reader.about(rule):
        check_rule(texts["rule"])
    at = said.place
    until = reader.day(said.get("until"))
    return Ignore(**texts, until=until, file=reader.file, line=at.line, column=at.column)
