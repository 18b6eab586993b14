"""Trying again: bounded, with growing pauses, and as the server asked."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

from ocipack.stores.http.answer import Answer
from ocipack.stores.http.faults import Silent, Transient

RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 522})
"""Statuses after which the same request may succeed."""

PROGRESS = 1024 * 1024
"""Bytes that must have come or gone for a transfer to count as getting on."""

_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 8.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """At most `tries` attempts, and never a longer wait than `limit` seconds at a time.

    `retried` is called in the thread that is about to try again.
    """

    tries: int = 4
    limit: float = 60.0
    sleep: Callable[[float], None] = field(default=time.sleep)
    random: Callable[[], float] = field(default=random.random)
    monotonic: Callable[[], float] = field(default=time.monotonic)
    retried: Callable[[], object] = field(default=bool)

    def retry(self, call: Callable[[], T], moved: Callable[[], int] = int) -> T:
        """Call until it stops raising Transient; the last one is raised as it is.

        A server that asks for a longer pause than we are ready to make is not asked again, nor is
        one that fell silent. `moved` says how far a transfer has come: one that gets on is not
        given up, however often it is cut.
        """
        trying = Trying(self)
        while True:
            try:
                return call()
            except (Transient, Silent) as e:
                trying.again(e, moved())

    def pause(self, attempt: int) -> float:
        """Seconds before another try after `attempt` failures in a row."""
        longest = min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE, self.limit)
        return float(longest * (0.5 + self.random() / 2))


class Trying:
    """Failures in a row, which end a job; what moved in between forgives those before it."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._failed = 0
        self._moved = 0

    def again(self, error: Transient | Silent, moved: int = 0) -> None:
        """Pause before another try, or raise `error`; `moved` is in bytes, from the beginning."""
        progress = moved - self._moved >= PROGRESS
        self._failed = 1 if progress else self._failed + 1
        self._moved = moved if progress else self._moved
        after = error.after if isinstance(error, Transient) else None
        if self._failed >= self._patience.tries or (after or 0.0) > self._patience.limit:
            raise error
        if isinstance(error, Silent) and not progress:
            raise error  # it has had its time already, and would take as long once more
        self._patience.retried()
        self._patience.sleep(self._patience.pause(self._failed) if after is None else after)


def retry_after(answer: Answer) -> float | None:
    """Seconds the server asks for (RFC 9110, 10.2.3); a date is read against its own clock."""
    text = answer.header("Retry-After").strip()
    if not text:
        return None
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        there = parsedate_to_datetime(answer.header("Date"))
        return max(0.0, (parsedate_to_datetime(text) - there).total_seconds())
    except (TypeError, ValueError):
        return None
