"""Text form: what the next command needs. Findings are on standard error already."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocipack.cli.outcome import Result


def write(result: Result) -> str:
    """The text of a command that ran to its end, with a line end behind it."""
    text = result.outcome.text
    return f"{text}\n" if text and not text.endswith("\n") else text
