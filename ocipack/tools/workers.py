"""Work spread over forked processes.

A forked process has everything that was loaded and learned before it began, which costs two or
three milliseconds; one that starts anew pays for imports and definitions again. Tasks and results
go through pipes; a process is given its next task before it has finished the last, and no more,
so that a producer who is faster does not fill the memory.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import selectors
import signal
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from ocipack.errors import OcipackError, Unavailable

T = TypeVar("T")
R = TypeVar("R")

_LENGTH: Final = struct.Struct("!Q")
_AHEAD: Final = 2  # tasks that a process has before it
_HELD: Final = 32  # results that wait for an earlier one before this process waits too
_READ: Final = 1024 * 1024
_GARBAGE: Final = 100_000


def available() -> bool:
    """Whether processes can be forked here; elsewhere one process does the work."""
    return sys.platform == "linux" and hasattr(os, "fork")


def spread(
    tasks: Iterable[T],
    work: Callable[[T], R],
    *,
    jobs: int,
    meanwhile: Callable[[], None] = lambda: None,
) -> Iterator[R]:
    """Apply `work` to every task in `jobs` processes; results come in the order of the tasks.

    This process is one of them; `meanwhile` runs in it once the others have something to do.
    What `work` prints or changes in another process is lost; what it raises ends the whole.
    Unavailable if a process dies. With one job, or where it is impossible to fork, everything
    happens here.
    """
    if jobs <= 1 or not available():
        meanwhile()
        yield from map(work, tasks)
        return
    todo = enumerate(tasks)
    crew: list[_Worker] = []
    for _, task in todo:
        yield work(task)  # before there are others, so that they have what it had to learn
        break
    try:
        for _ in range(jobs - 1):
            crew.append(_hired(work, crew))
        for worker in [worker for _ in range(_AHEAD) for worker in crew]:
            worker.feed(todo)
        meanwhile()
        yield from _collected(crew, todo, work)
    finally:
        for worker in crew:
            worker.dismiss()


def _collected(
    crew: list[_Worker], todo: Iterator[tuple[int, Any]], work: Callable[[Any], Any]
) -> Iterator[Any]:
    """Results in the order of the tasks; between looks at the others this process works too."""
    done: dict[int, Any] = {}
    following, idle = 1, False
    with selectors.DefaultSelector() as ready:
        for worker in crew:
            ready.register(worker.results, selectors.EVENT_READ, worker)
        while True:
            for key, _ in ready.select(None if idle else 0):
                key.data.read()
            for worker in crew:
                for result in worker.received():
                    done[worker.waiting.popleft()] = result
                    worker.feed(todo)
            idle = True
            for number, task in todo if len(done) < _HELD else ():
                done[number] = work(task)
                idle = False
                break
            while following in done:
                yield done.pop(following)
                following += 1
            if idle and not any(worker.waiting for worker in crew):
                return


@dataclass(slots=True)
class _Worker:
    """One process, seen from here: `waiting` are the numbers of the tasks that it has."""

    pid: int
    tasks: int
    results: int
    waiting: deque[int] = field(default_factory=deque)
    _received: bytearray = field(default_factory=bytearray)

    def feed(self, todo: Iterator[tuple[int, Any]]) -> None:
        """Give it the next task, if there is one."""
        for number, task in todo:
            self._write(_packed(task))
            self.waiting.append(number)
            return

    def _write(self, data: bytes) -> None:
        """Write without ever waiting for a process that waits for us to take its results."""
        poll = select.poll()
        poll.register(self.tasks, select.POLLOUT)
        poll.register(self.results, select.POLLIN)
        view = memoryview(data)
        while view:
            for handle, _ in poll.poll():
                if handle == self.results:
                    self.read()
                else:
                    try:
                        view = view[os.write(self.tasks, view) :]
                    except BrokenPipeError as e:
                        raise self._dead() from e

    def read(self) -> None:
        """Take what has come of its results."""
        data = os.read(self.results, _READ)
        if not data:
            raise self._dead()
        self._received += data

    def received(self) -> Iterator[Any]:
        """The results that are complete."""
        while len(self._received) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._received)
            if len(self._received) < _LENGTH.size + length:
                return
            body = bytes(self._received[_LENGTH.size : _LENGTH.size + length])
            del self._received[: _LENGTH.size + length]
            is_result, value = pickle.loads(body)  # noqa: S301 - from a process that we forked
            if not is_result:
                raise value
            yield value

    def dismiss(self) -> None:
        """End the process, whatever it does."""
        os.close(self.tasks)
        os.close(self.results)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _dead(self) -> Unavailable:
        return Unavailable(
            "a process of this run was ended before it had finished its work",
            hint="memory may be short: try again with --jobs 1",
        )


def _hired(work: Callable[[Any], Any], others: list[_Worker]) -> _Worker:
    """Fork a process that works until there are no more tasks."""
    tasks_in, tasks_out = os.pipe()
    results_in, results_out = os.pipe()
    pid = os.fork()
    if pid:
        os.close(tasks_in)
        os.close(results_out)
        os.set_blocking(tasks_out, False)
        return _Worker(pid, tasks_out, results_in)
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for handle in (tasks_out, results_in, *(h for o in others for h in (o.tasks, o.results))):
            os.close(handle)
        _labour(work, tasks_in, results_out)
        status = 0
    finally:
        os._exit(status)  # nothing of the parent's is flushed or cleaned up here


def _labour(work: Callable[[Any], Any], tasks: int, results: int) -> None:
    gc.freeze()
    gc.set_threshold(_GARBAGE)  # values of documents hold no cycles
    with os.fdopen(tasks, "rb") as stream:
        while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
            task = pickle.loads(stream.read(*_LENGTH.unpack(head)))  # noqa: S301 - ours
            try:
                answer: tuple[bool, Any] = (True, work(task))
            except OcipackError as e:
                answer = (False, e)
            except Exception as e:  # noqa: BLE001 - told where somebody sees it
                answer = (False, RuntimeError(f"{type(e).__name__}: {e}"))
            _send(results, answer)


def _packed(value: Any) -> bytes:
    body = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


def _send(handle: int, value: Any) -> None:
    view = memoryview(_packed(value))
    while view:
        view = view[os.write(handle, view) :]
