"""What a rule is: the words that every finding's `rule` stands for."""

from __future__ import annotations

from dataclasses import dataclass

from ocipack.report import Severity

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its stable `id`, and how much its findings matter unless they say otherwise.

    `summary` names what is found, in one line; `why` says what would happen if nobody cared;
    `mend` says what to do; `source` names where the rule comes from. `ignorable` is False for
    what a project may not excuse: confinement, integrity, signatures, and the ignores themselves.
    """

    id: str
    severity: Severity
    summary: str
    why: str
    mend: str
    source: str
    ignorable: bool = True

    @property
    def anchor(self) -> str:
        """Where docs/rules.md explains it."""
        return f"docs/rules.md#{self.id}"


def table(*rules: Rule) -> dict[str, Rule]:
    """Rules by id."""
    return {rule.id: rule for rule in rules}
