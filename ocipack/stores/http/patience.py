"""Trying again: bounded, with growing pauses, and as the server asked."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

from ocipack.stores.http.answer import Answer
from ocipack.stores.http.faults import Transient

RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 522})
"""Statuses after which the same request may succeed."""

_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 8.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """At most `tries` attempts, and never a longer wait than `limit` seconds at a time."""

    tries: int = 4
    limit: float = 60.0
    sleep: Callable[[float], None] = field(default=time.sleep)
    random: Callable[[], float] = field(default=random.random)
    monotonic: Callable[[], float] = field(default=time.monotonic)

    def retry(self, call: Callable[[], T]) -> T:
        """Call until it stops raising Transient; the last one is raised as it is.

        A server that asks for a longer pause than we are ready to make is not asked again.
        """
        for attempt in range(1, self.tries):
            try:
                return call()
            except Transient as e:
                if e.after is not None and e.after > self.limit:
                    raise
                self.sleep(self._pause(attempt) if e.after is None else e.after)
        return call()

    def _pause(self, attempt: int) -> float:
        longest = min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE, self.limit)
        return float(longest * (0.5 + self.random() / 2))


def retry_after(answer: Answer) -> float | None:
    """Seconds the server asks for (RFC 9110, 10.2.3); a date is read against its own clock."""
    text = answer.header("Retry-After").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        there = parsedate_to_datetime(answer.header("Date"))
        return max(0.0, (parsedate_to_datetime(text) - there).total_seconds())
    except (TypeError, ValueError):
        return None
