"""How fast one registry may be asked: requests at once, and requests a second.

A registry that says that it is asked too often (429, or 503 with Retry-After) is asked by half as
many at once from then on, and by one more after each round that it took without complaint, up to
what was allowed before. When it says how long to wait, nobody asks until then.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

TOO_MANY, OVERLOADED = 429, 503


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
        longest: float = 60.0,
    ) -> None:
        self._most = float(concurrency) if concurrency else math.inf
        self._allowed = self._most
        self._busy = 0
        self._between = 1 / rate if rate else 0.0
        self._sleep = sleep
        self._monotonic = monotonic
        self._longest = longest
        self._turn = threading.Condition()
        self._next = 0.0
        self._silent_until = 0.0
        self._halved = -math.inf
        self._own = threading.local()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait until a request may begin, and count it until the block ends."""
        if getattr(self._own, "busy", False):
            self._wait()
            yield
            return
        with self._turn:
            self._turn.wait_for(lambda: self._busy + 1 <= self._allowed)
            self._busy += 1
        self._own.busy = True
        try:
            self._wait()
            yield
        finally:
            self._own.busy = False
            with self._turn:
                self._busy -= 1
                self._turn.notify()

    def heard(self, status: int, began: float, after: float | None) -> None:
        """Learn from an answer to what `began` then; `after` is its Retry-After, in seconds.

        Of answers to requests that were under way together only the first says something new.
        """
        complains = status == TOO_MANY or (status == OVERLOADED and after is not None)
        with self._turn:
            if complains:
                self._slow_down(began, after)
            elif self._allowed < self._most:
                self._allowed = min(self._allowed + 1 / self._allowed, self._most)
                self._turn.notify()

    def _slow_down(self, began: float, after: float | None) -> None:
        now = self._monotonic()
        if began >= self._halved:
            self._allowed = max(1.0, min(self._allowed, self._busy + 1) // 2)
            self._halved = now
        if after is not None and after <= self._longest:  # a longer pause is for nobody to make
            self._silent_until = max(self._silent_until, now + after)
            self._own.told = self._silent_until

    def _wait(self) -> None:
        """Pause as the rate and the registry want; who was told to wait itself has done so."""
        with self._turn:
            now = self._monotonic()
            told = getattr(self._own, "told", 0.0) >= self._silent_until
            begins = max(self._next, now, 0.0 if told else self._silent_until)
            self._next = begins + self._between if self._between else self._next
        if begins > now:
            self._sleep(begins - now)
