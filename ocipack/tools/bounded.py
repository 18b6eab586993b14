"""A program as a subprocess: alone, without network or environment, bounded in time and output.

No `PATH` (so no other program), an empty home, proxies that refuse, its own process group, and
nothing inherited from our environment.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from ocipack.errors import Rejected, Unavailable

ERRORS: Final = 1024 * 1024
"""Bytes of what a program says on stderr that are kept."""

_NO_PROXY_ANSWERS: Final = "http://127.0.0.1:9"  # the discard port
_DEAD: Final = {
    name: _NO_PROXY_ANSWERS
    for lower in ("http_proxy", "https_proxy", "all_proxy")
    for name in (lower, lower.upper())
}
_PIECE: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its exit code (negative: a signal) and what it said."""

    status: int
    output: bytes
    errors: str


class Bounded:
    """Runs programs called `name`; safe to call from several threads.

    `private` is an empty directory that is theirs to write in, `timeout` in seconds for each,
    `limit` the bytes that one may write to its standard output, `hint` what to say of one that
    hangs, `more` what is in the environment besides. As a context manager it kills what still
    runs when it is left.
    """

    def __init__(
        self,
        name: str,
        private: Path,
        *,
        timeout: float,
        limit: int,
        hint: str = "",
        more: Mapping[str, str] | None = None,
    ) -> None:
        self._name, self._private, self._hint = name, private, hint
        self._timeout, self._limit = timeout, limit
        self._more = more or {}
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            for group in self._running:
                _kill(group)

    def _environment(self) -> dict[str, str]:
        return {"HOME": str(self._private), "TMPDIR": str(self._private), **_DEAD, **self._more}

    def run(self, arguments: list[str], what: str) -> Ended:
        """Run a program to its end; `what` it makes is for messages.

        Unavailable if it hangs or cannot be started; Rejected if it writes too much.
        """
        with self._lock:
            if self._closed:
                raise Unavailable("interrupted")
            try:
                process = subprocess.Popen(  # noqa: S603 - a fixed program, arguments of our own
                    arguments,
                    cwd=self._private,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as e:
                raise Unavailable(f"cannot start {arguments[0]}: {e.strerror}") from e
            self._running.add(process.pid)
        try:
            return self._gather(process, what)
        finally:
            _kill(process.pid)  # children that outlive it, and itself after a failure
            process.wait()
            with self._lock:
                self._running.discard(process.pid)

    def _gather(self, process: subprocess.Popen[bytes], what: str) -> Ended:
        """Read both pipes to their ends, within the time and the number of bytes allowed."""
        output, errors = process.stdout, process.stderr
        assert output is not None  # both were asked for
        assert errors is not None
        found = {output.fileno(): bytearray(), errors.fileno(): bytearray()}
        deadline = time.monotonic() + self._timeout
        with output, errors, selectors.DefaultSelector() as ready:
            for number in found:
                ready.register(number, selectors.EVENT_READ)
            while ready.get_map():
                for key, _ in ready.select(self._left(deadline, what)):
                    piece = os.read(key.fd, _PIECE)
                    if not piece:
                        ready.unregister(key.fd)
                    room = self._limit if key.fd == output.fileno() else ERRORS
                    found[key.fd] += piece[: room + 1 - len(found[key.fd])]
                    if key.fd == output.fileno() and len(found[key.fd]) > room:
                        raise Rejected(f"{self._name} makes more than {room} bytes of {what}")
            out, err = (bytes(data) for data in found.values())
            try:
                status = process.wait(self._left(deadline, what))
            except subprocess.TimeoutExpired as e:
                raise self._hung(what) from e
        return Ended(status, out, err.decode(errors="replace"))

    def _left(self, deadline: float, what: str) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise self._hung(what)
        return left

    def _hung(self, what: str) -> Unavailable:
        return Unavailable(
            f"{self._name} did not finish {what} within {self._timeout:g} seconds", hint=self._hint
        )


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # it has ended; macOS says EPERM for a zombie
        return
