"""How a run ends: an exception becomes words on standard error and an exit code."""

from __future__ import annotations

import os
import re
import sys

import click

from ocipack.cli.console import Console, plain
from ocipack.errors import Misuse, OcipackError

BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

_SECRET = re.compile(
    r"(://)[^/\s@]+@|((?:token|password|signature|sig|secret)=)[^&\s]+", re.IGNORECASE
)


def end(error: BaseException) -> int:
    """Say on standard error why the run ends with `error`, and return the exit code."""
    console = Console()
    match error:
        case OcipackError():
            return refused(console, error)
        case click.exceptions.Exit():
            return error.exit_code
        case click.ClickException():
            context = error.ctx if isinstance(error, click.UsageError) else None
            path = context.command_path if context is not None else "ocipack"
            message = error.format_message().rstrip(".")
            return refused(console, Misuse(message, hint=f"see `{path} --help`"))
        case KeyboardInterrupt() | click.Abort():
            console.line("interrupted")
            return INTERRUPTED
        case BrokenPipeError():
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit
            return BROKEN_PIPE
        case _:
            return bug(console, error)


def refused(console: Console, error: OcipackError) -> int:
    """Show a deliberate error: its sentence and its hint; its command has shown the findings."""
    console.error(str(error), error.hint)
    return error.exit_code


def bug(console: Console, error: BaseException) -> int:
    """Show where it broke, without values of variables and without what looks like a secret."""
    import traceback  # noqa: PLC0415 - only ever needed here

    shown = "".join(traceback.format_exception(error))
    for line in _SECRET.sub(lambda m: f"{m[1] or m[2]}***", shown).splitlines():
        print(plain(line), file=console.stream)
    console.error("this is a bug in ocipack", "please report it with the lines above")
    return BUG
