"""The table of commands, and the one place where an exception becomes an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from ocipack import __version__
from ocipack.cli.console import Console
from ocipack.cli.exits import end
from ocipack.cli.outcome import Outcome, Output, document, failure, outputs, pretty
from ocipack.errors import OcipackError

COMMANDS = {
    "ship": "Pack, check, push, sign and verify a tree, then move its tags.",
    "pack": "Pack a tree into a deterministic artifact.",
    "render": "Build the manifests of a packed tree and check them.",
    "copy": "Copy an artifact by digest, then its tag.",
    "sign": "Sign what is in a repository or layout, so that cosign agrees.",
    "verify": "Prove that an artifact was signed by keys you trust, or say why not.",
    "pull": "Verify an artifact, then unpack it into a directory.",
    "tag": "Point tags at an artifact that is there already.",
    "list": "List the tags of a repository or layout.",
    "inspect": "Show an artifact's manifest, and everything attached to it.",
    "keys": "Make, import and read signing keys.",
}
"""Every command and its first line of help: what --help shows without loading any of them."""


@dataclass
class App:
    """One run: who is listening, and where results go."""

    console: Console
    outputs: tuple[Output, ...] = (Output("text"),)


class Commands(click.Group):
    """A group whose commands are loaded when they run, never for --help or --version."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every command, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"ocipack.cli.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Show the table without loading anything."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done or yes, 1 no, 2 malformed request, 3 could not decide, 70 a bug.",
)
@click.version_option(__version__, message="ocipack %(version)s")
def group() -> None:
    """Turn a GitOps tree into a signed, digest-pinned OCI artifact; deliver nothing else."""


def command(function: Callable[..., Outcome]) -> click.Command:
    """Make a click command of a function that takes the App first and returns an Outcome.

    Adds `--output` and `--quiet`, and writes the outcome; its exit code is the command's.
    """
    name = function.__name__.rstrip("_")

    @click.pass_context
    def invoke(context: click.Context, /, output: tuple[str, ...], **values: Any) -> int:
        app = context.ensure_object(App)
        app.console.quiet = values.pop("quiet")
        app.outputs = outputs(output)
        path = context.command_path.removeprefix("ocipack ").split(" ", 1)[-1]
        try:
            outcome = function(app, **values)
        except OcipackError as error:
            _emit(app, pretty(failure(path, error)), "")
            raise
        app.console.findings(outcome.report)
        text = outcome.text + "\n" if outcome.text and not outcome.text.endswith("\n") else ""
        _emit(app, pretty(document(path, outcome)), text or outcome.text)
        return outcome.code

    invoke.__doc__ = function.__doc__
    invoke.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # how click's decorators hand parameters on
    made = click.command(name, help=_help(function.__doc__ or ""))(invoke)
    made.params += [
        click.Option(
            ["--output"],
            multiple=True,
            metavar="FORMAT[=PATH]",
            help="Write the result as text or json, to standard output or a file; repeatable.",
        ),
        click.Option(["--quiet", "-q"], is_flag=True, help="Print only warnings and errors."),
    ]
    return made


def _help(docstring: str) -> str:
    """Dedent as click would; the docstring is the help."""
    lines = docstring.splitlines()
    return "\n".join([lines[0].strip(), *(line.strip() for line in lines[1:])]) if lines else ""


def _emit(app: App, structured: str, text: str) -> None:
    for output in app.outputs:
        if output.format == "json":
            output.write(structured)
        elif text:
            output.write(text)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and turn how it ended into an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app = App(Console(sys.stderr))
    try:
        code = group.main(list(arguments), "ocipack", standalone_mode=False, obj=app)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - Python's own exit code is 1, and 1 means "no"
        return end(app.console, error)
    return code if isinstance(code, int) else 0
