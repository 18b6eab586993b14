"""`ocipack rules`: what findings mean."""

from __future__ import annotations

import difflib
import textwrap
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.errors import Misuse
from ocipack.rules import ROOMS, RULES
from ocipack.rules.rule import Rule

WIDTH = 92


class Rules(click.Group):
    """The commands; a rule is none, though its name is what people have at hand."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; Misuse for the name of a rule."""
        if args and args[0] in RULES:
            hint = f"did you mean `ocipack rules explain {args[0]}`?"
            raise Misuse(f"{args[0]} is a rule, not a command", hint=hint)
        return super().resolve_command(ctx, args)


@click.group(cls=Rules)
def command() -> None:
    """List the rules that findings name, and explain one."""


def described(rule: Rule) -> dict[str, Any]:
    """The JSON form of a rule."""
    return {
        "id": rule.id,
        "severity": rule.severity.value,
        "summary": rule.summary,
        "why": rule.why,
        "mend": rule.mend,
        "source": rule.source,
        "ignorable": rule.ignorable,
    }


def list_(_: App) -> Outcome:
    """List every rule: its id, how much its findings matter, and what it finds."""
    width = max(map(len, RULES))
    lines: list[str] = []
    for title, room in ROOMS.items():
        lines += ["", title] if lines else [title]
        for rule in room.values():
            lines.append(f"  {rule.id:<{width}}  {rule.severity.value:<7}  {rule.summary}")
    return Outcome("\n".join(lines), {"rules": [described(rule) for rule in RULES.values()]})


@click.argument("rule", metavar="ID")
def explain(_: App, *, rule: str) -> Outcome:
    """Say what a rule finds, why it matters, and what to do about a finding."""
    found = RULES.get(rule)
    if found is None:
        near = difflib.get_close_matches(rule, RULES, n=1)
        hint = f"did you mean {near[0]}?" if near else "see `ocipack rules list`"
        raise Misuse(f"there is no rule {rule!r}", hint=hint)
    rows = {
        "finds": found.summary,
        "why": found.why,
        "mend": found.mend,
        "source": found.source,
        "ignore": "by ocipack.yaml or a comment on the line" if found.ignorable else "not possible",
    }
    lines = [f"{found.id} ({found.severity.value})", ""]
    for name, text in rows.items():
        lines += textwrap.wrap(text, WIDTH, initial_indent=f"{name:<8}", subsequent_indent=" " * 8)
    return Outcome("\n".join(lines), {"rule": described(found)})


for _function in (list_, explain):
    command.add_command(outcome_command(_function, connects=False))
