"""Work spread over processes: order, back-pressure, death."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from ocipack.errors import Unavailable
from ocipack.tools.workers import spread


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 100])
def test_results_come_in_the_order_of_the_tasks(jobs: int, count: int) -> None:
    assert list(spread(range(count), lambda n: n * n, jobs=jobs)) == [n * n for n in range(count)]


def test_tasks_and_results_larger_than_a_pipe_do_not_wait_for_each_other() -> None:
    tasks = [bytes([n]) * 1_000_000 for n in range(12)]
    assert list(spread(tasks, lambda data: data + data, jobs=3)) == [t + t for t in tasks]


def test_tasks_are_asked_for_as_they_are_needed() -> None:
    asked = 0

    def tasks() -> Iterator[int]:
        nonlocal asked
        for number in range(1000):
            asked += 1
            yield number

    results = spread(tasks(), lambda n: n, jobs=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    results.close()  # type: ignore[attr-defined]  # a generator
    assert asked < 100


def test_the_others_work_elsewhere_and_start_with_what_is_known_here() -> None:
    known = {"here": 7}
    found = list(spread(range(40), lambda _: (os.getpid(), known["here"]), jobs=2))
    assert {value for _, value in found} == {7}
    assert found[0][0] == os.getpid()


def test_something_else_is_done_here_meanwhile() -> None:
    done: list[int] = []
    assert list(spread([1, 2], lambda n: n, jobs=2, meanwhile=lambda: done.append(1))) == [1, 2]
    assert list(spread([1], lambda n: n, jobs=1, meanwhile=lambda: done.append(2))) == [1]
    assert done == [1, 2]


def elsewhere(parent: int) -> bool:
    return os.getpid() != parent


def test_a_process_that_dies_is_an_error_and_not_a_gap() -> None:
    parent = os.getpid()

    def work(number: int) -> int:
        if elsewhere(parent):
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(Unavailable, match="ended before it had finished"):
        list(spread(range(10), work, jobs=2))


def test_what_is_raised_elsewhere_is_raised_here() -> None:
    parent = os.getpid()

    def refuse(number: int) -> int:
        if elsewhere(parent):
            raise Unavailable("no", hint="wait")
        return number

    with pytest.raises(Unavailable, match=r"^no$") as caught:
        list(spread(range(10), refuse, jobs=2))
    assert caught.value.hint == "wait"

    def fail(number: int) -> int:
        if elsewhere(parent):
            raise ZeroDivisionError("why")
        return number

    with pytest.raises(RuntimeError, match="ZeroDivisionError: why"):
        list(spread(range(10), fail, jobs=2))


def test_no_process_is_left_behind() -> None:
    results = spread(iter(range(10**9)), lambda n: n, jobs=3)
    next(results)
    next(results)
    results.close()  # type: ignore[attr-defined]  # a generator
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_without_fork_everything_happens_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    assert set(spread(range(3), lambda _: os.getpid(), jobs=4)) == {os.getpid()}
