"""Threads that many pieces of work share: so many requests in flight, whoever asks for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_R = TypeVar("_R")


class Job:
    """Work that belongs together: what fails first ends all of it.

    Tasks run on the crew's threads and may start further ones; they must not wait for each other.
    What has not begun when one fails does not begin.
    """

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._changed = threading.Condition()
        self._open = 0
        self._first: BaseException | None = None

    def start(self, work: Callable[..., object], *args: Any) -> None:
        """Have `work` done on one of the threads."""
        self.begin()
        self.submit(self.finish, lambda: work(*args))

    def each(self, work: Callable[[Any], object], items: Iterable[Any]) -> None:
        """Have `work` done on each of `items`, and wait for all of them."""
        for item in items:
            self.start(work, item)
        self.wait()

    def call(self, work: Callable[..., _R], *args: Any) -> _R:
        """Have `work` done and return what it returns; for whoever is on no thread of the crew."""
        found: list[_R] = []
        self.start(lambda: found.append(work(*args)))
        self.wait()
        return found[0]

    def check(self) -> None:
        """Raise what failed first, for work that takes long."""
        if self._first is not None:
            raise self._first

    def begin(self) -> None:
        """Account for a task before it is submitted."""
        with self._changed:
            self._open += 1

    def submit(self, work: Callable[..., object], *args: Any) -> None:
        """Hand a task that has begun to the threads: `work` must call `end`."""
        try:
            self._pool.submit(work, *args)
        except BaseException as e:  # the pool is shut: nobody else would end the task
            self._fail(e)
            self.end()
            raise

    def finish(self, work: Callable[[], object]) -> None:
        """Do a task that has begun, and end it."""
        self.attempt(work)
        self.end()

    def attempt(self, work: Callable[[], object]) -> bool:
        """Do `work` unless something failed before; whether it was done."""
        if self._first is not None:
            return False
        try:
            work()
        except BaseException as e:  # noqa: BLE001 - wait raises it, on the thread that asked
            self._fail(e)
            return False
        return True

    def end(self) -> None:
        """Account for the end of a task."""
        with self._changed:
            self._open -= 1
            if not self._open:
                self._changed.notify_all()

    def wait(self) -> None:
        """Wait until no task is left, then raise what failed first.

        An interrupt ends the job: what is in flight is waited for, and nothing else begins.
        """
        with self._changed:
            try:
                self._changed.wait_for(lambda: not self._open)
            except BaseException as e:
                self._first = self._first or e
                self._changed.wait_for(lambda: not self._open)
                raise
            if self._first is not None:
                raise self._first

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._first = self._first or error


class Crew:
    """`size` threads for the requests of any number of jobs."""

    def __init__(self, size: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=size, thread_name_prefix="copy")
        self._lock = threading.Lock()
        self._led: dict[Hashable, list[tuple[Job, Callable[[], object]]]] = {}

    def job(self) -> Job:
        """Begin a job."""
        return Job(self._pool)

    def close(self) -> None:
        """Wait for the threads."""
        self._pool.shutdown()

    def lead(self, key: Hashable, job: Job, work: Callable[[], object]) -> None:
        """Have `work` done for `job`: by the first for `key` alone, then by all others at once.

        So what was sent once is mounted by those who come after. The others hold no thread while
        they wait. One that fails leaves it to the next to be first.
        """
        job.begin()
        self._enter(key, job, work)

    def _enter(self, key: Hashable, job: Job, work: Callable[[], object]) -> None:
        with self._lock:
            if key in self._led:
                self._led[key].append((job, work))
                return
            self._led[key] = []
        job.submit(self._first, key, job, work)

    def _first(self, key: Hashable, job: Job, work: Callable[[], object]) -> None:
        done = job.attempt(work)
        with self._lock:
            others = self._led.pop(key)
        for other, its in others:
            if done:
                other.submit(other.finish, its)
            else:
                self._enter(key, other, its)
        job.end()
