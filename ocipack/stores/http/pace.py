"""How fast one registry may be asked: requests at once, and requests a second."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext


class Pace:
    """The limits of one registry, shared by all threads; 0 is no limit.

    A request counts until its answer begins. What a thread asks while it is itself in the middle
    of one (an upload that reads its source from the same registry) counts as part of that: else
    as many uploads as there are turns would wait for each other for ever.
    """

    def __init__(
        self,
        concurrency: int,
        rate: int,
        *,
        sleep: Callable[[float], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._turns = threading.BoundedSemaphore(concurrency) if concurrency else nullcontext()
        self._between = 1 / rate if rate else 0.0
        self._sleep = sleep
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._next = 0.0
        self._own = threading.local()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until a request may begin, and count it until the block ends."""
        if getattr(self._own, "busy", False):
            self._wait()
            yield
            return
        with self._turns:
            self._own.busy = True
            try:
                self._wait()
                yield
            finally:
                self._own.busy = False

    def _wait(self) -> None:
        if not self._between:
            return
        with self._lock:
            now = self._monotonic()
            begins = max(self._next, now)
            self._next = begins + self._between
        if begins > now:
            self._sleep(begins - now)
