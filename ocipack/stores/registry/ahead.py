"""Reading ahead of whoever sends: two registries are waited for at once, not in turn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Empty, Queue

WORTH = 8 * 1024 * 1024
"""Bytes from which on a thread of its own pays."""

PIECES = 4
"""Pieces that are held at most between the two; each is a quarter of a MiB."""

_Item = bytes | BaseException | None


def ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pass `pieces` on, read by a thread that is a little ahead.

    What reading raises is raised where it would have been. A consumer that stops early stops the
    thread after the piece that it is at.
    """
    queue: Queue[_Item] = Queue(PIECES)
    stopped = threading.Event()
    thread = threading.Thread(
        target=_read, args=(pieces, queue, stopped), name="read-ahead", daemon=True
    )
    thread.start()
    try:
        while (item := queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        _drain(queue)  # and no waiting for it: it may be waiting for a server


def _read(pieces: Iterator[bytes], queue: Queue[_Item], stopped: threading.Event) -> None:
    last: BaseException | None = None
    try:
        for piece in pieces:
            queue.put(piece)
            if stopped.is_set():
                return
    except BaseException as e:  # noqa: BLE001 - raised again by whoever takes the pieces
        last = e
    finally:
        queue.put(last)


def _drain(queue: Queue[_Item]) -> None:
    """Make room, so that the thread is not stuck: it puts at most one piece and its end now."""
    try:
        while True:
            queue.get_nowait()
    except Empty:
        return
