"""Rules about the ignores themselves: none of them can be ignored."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import ERROR, WARNING, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="ignores, docs/output.md")

IGNORES = table(
    Rule(
        "ignore-expired",
        WARNING,
        "an ignore whose last day has passed",
        "an excuse with a date is a promise; past the date its findings count again",
        "mend what it excused, or agree on a new date and say so",
    ),
    Rule(
        "ignore-unused",
        WARNING,
        "an ignore that no finding needed",
        "the next mistake of that kind in that place would pass unseen",
        "remove it",
    ),
    Rule(
        "ignore-refused",
        ERROR,
        "an ignore of a rule that cannot be ignored",
        "confinement, integrity, signatures and the rules of ignores hold for everyone, "
        "or they would hold for no one",
        "remove it, and mend what the rule found",
    ),
    Rule(
        "ignore-malformed",
        ERROR,
        "an ignoring comment that does not say all it must",
        "an excuse without rule, owner, last day and reason is nobody's, and stays for ever",
        "write # ocipack:ignore RULE until=YYYY-MM-DD owner=WHO, then the reason",
    ),
)
