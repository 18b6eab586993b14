"""The composition root: the only reader of arguments, environment and clock.

`main` turns whatever happens into an exit code (docs/exit-codes.md). Start-up decides how fast a
verification is, so this package imports next to nothing: each command's module is loaded when the
command runs (`ocipack.cli.app`).
"""

from __future__ import annotations

import gc
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["main"]

TERMINATED = 128 + signal.SIGTERM


class Terminated(BaseException):
    """SIGTERM arrived; unwinds through every `finally`, so that nothing half-made stays behind."""


def main() -> NoReturn:
    """Run the command line and exit."""
    from ocipack.cli.app import run  # noqa: PLC0415 - SIGTERM is handled before anything loads

    def terminate(_signal: int, _frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    gc.set_threshold(50_000, 20, 100)  # imports make no garbage, and looking for it takes time
    try:
        code = run(sys.argv[1:])
    except Terminated:
        code = TERMINATED
    gc.freeze()  # Python would look for cycles among all that is left, which goes with the process
    sys.exit(code)
