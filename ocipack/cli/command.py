"""What every command has: an App, its outputs, and an Outcome that is written for it."""

from __future__ import annotations

import inspect
import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

from ocipack.cli.console import Console
from ocipack.cli.outcome import FORMATS, Outcome, Output, Result, outputs, report_of
from ocipack.cli.registries import Connections, options
from ocipack.errors import OcipackError, Unavailable


@dataclass
class App:
    """One run: who is listening, where results go, and what files of findings count from.

    A command that finds things in the files of a directory sets `base` to it, as it was given:
    forms that annotate files need paths from where the command was run.
    """

    console: Console = field(default_factory=Console)
    outputs: tuple[Output, ...] = (Output("text"),)
    registries: Connections = field(default_factory=Connections)
    base: str = ""


def command(function: Callable[..., Outcome], *, connects: bool = True) -> click.Command:
    """Make a click command of a function that takes the App first and returns an Outcome.

    Adds `--output`, `--quiet` and, if it `connects`, how registries are reached; writes the
    outcome, whose exit code is the command's.
    """
    name = function.__name__.rstrip("_")

    @click.pass_context
    def invoke(context: click.Context, /, output: tuple[str, ...], **values: Any) -> int:
        app = context.ensure_object(App)
        app.console.quiet = values.pop("quiet")
        if connects:
            app.registries = Connections(
                values.pop("ca_file"),
                values.pop("plain_http"),
                debug_http=values.pop("debug_http"),
                settings_file=values.pop("settings_file"),
                metrics=values.pop("metrics"),
                sent=app.console.moved,
            )
        app.outputs = outputs(output)
        path = context.command_path.partition(" ")[2]
        if not app.registries.metrics:
            return _run(app, path, lambda: function(app, **values))
        from ocipack.cli.metrics import recorded  # noqa: PLC0415 - start-up

        with recorded(app.registries, path, app.console) as ended:
            code = _run(app, path, lambda: function(app, **values))
            ended(code)
        return code

    invoke.__doc__ = function.__doc__
    invoke.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]  # how click's decorators hand parameters on
    made = click.command(name, help=inspect.getdoc(function))(invoke)
    made.params += [
        *(options() if connects else ()),
        click.Option(
            ["--output"],
            multiple=True,
            metavar="FORMAT[=PATH]",
            help=f"Write the result as {', '.join(FORMATS)}, "
            "to standard output or a file; repeatable.",
        ),
        click.Option(["--quiet", "-q"], is_flag=True, help="Print only warnings and errors."),
    ]
    return made


def _run(app: App, path: str, call: Callable[[], Outcome]) -> int:
    """Run the command at `path` and write what came of it; its exit code."""
    try:
        outcome = call()
    except OcipackError as error:
        app.console.findings(report_of(error))
        _emit_failure(app, Result.failed(path, error, _seen_from(app.base)))
        error.hint = app.console.untold(error.hint)  # what is raised is shown next
        raise
    app.console.findings(outcome.report)
    app.console.table(outcome.summary)
    for one in app.outputs:
        one.put(Result(path, outcome, base=_seen_from(app.base)))
    return outcome.code


def _seen_from(base: str) -> str:
    """The directory `base` as those see it who show a report beside the files.

    GitHub counts from the workspace, wherever in it the command runs; others from there.
    """
    try:
        here = os.getcwd()  # noqa: PTH109 - start-up
    except OSError:  # it was removed under us
        return base
    there = posixpath.normpath(posixpath.join(here, base))
    for top in (os.environ.get("GITHUB_WORKSPACE", ""), here):
        if top[:1] == "/" and posixpath.commonpath([top, here, there]) == posixpath.normpath(top):
            return posixpath.relpath(there, top)
    return base


def _emit_failure(app: App, result: Result) -> None:
    """Write a failure; a place that cannot be written must not hide why the command failed."""
    for output in app.outputs:
        try:
            output.put(result)
        except Unavailable as error:
            app.console.warn(str(error))
