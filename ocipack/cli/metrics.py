"""`--metrics FILE`: what a run asked of registries, for the textfile collector of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ocipack import __version__
from ocipack.cli import TERMINATED, Terminated
from ocipack.cli.exits import BROKEN_PIPE, BUG, INTERRUPTED
from ocipack.errors import OcipackError

if TYPE_CHECKING:
    from ocipack.cli.console import Console
    from ocipack.cli.registries import Connections
    from ocipack.stores.http.tally import Tally

MODE = 0o644
"""Everybody may read the file: the collector is somebody else, and nothing in it is secret."""


@contextmanager
def recorded(
    registries: Connections, command: str, console: Console
) -> Iterator[Callable[[int], None]]:
    """Write the metrics of `command` to its file when the block ends, however it ends.

    The block says which exit code it comes to. StoreError if the file cannot be written; when
    the block has failed that is only a warning.
    """
    file, tally = registries.metrics, registries.tally
    began, codes = time.monotonic(), [0]
    try:
        yield codes.append
    except BaseException as error:
        try:
            _write(file, command, tally, _code(error), began)
        except OcipackError as e:
            console.warn(str(e))
        raise
    _write(file, command, tally, codes[-1], began)


def _code(error: BaseException) -> int:
    """The exit code that `error` becomes."""
    match error:
        case OcipackError():
            return error.exit_code
        case KeyboardInterrupt():
            return INTERRUPTED
        case BrokenPipeError():
            return BROKEN_PIPE
        case Terminated():
            return TERMINATED
        case _:
            return BUG


def _write(file: str, command: str, tally: Tally, code: int, began: float) -> None:
    from ocipack.files.replacing import replace  # noqa: PLC0415 - start-up
    from ocipack.stores.http.tally import exposed  # noqa: PLC0415 - start-up

    which = (("command", command),)
    now = time.time()
    lines = [
        *exposed("ocipack_run_exit_code", "gauge", "Exit code of the run.", [(which, code)]),
        *exposed(
            "ocipack_run_seconds",
            "gauge",
            "Seconds that the run took.",
            [(which, time.monotonic() - began)],
        ),
        *exposed(
            "ocipack_run_end_timestamp_seconds",
            "gauge",
            "When the run ended, in seconds since 1970.",
            [(which, now)],
        ),
        *exposed(
            "ocipack_build_info",
            "gauge",
            "The version that ran.",
            [((("version", __version__),), 1)],
        ),
        *tally.lines(),
    ]
    replace(file, ("\n".join(lines) + "\n").encode(), mode=MODE)
