"""A proxy that cuts connections, or does something else, once so many bytes have gone by."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER without time: closing sends a reset."""


class Cutter:
    """Passes connections on to `target`; counts the bytes that clients send.

    `arm` says what happens after how many of them. Whoever connects while it is `dead` is reset.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._after, self._action = -1, self.cut
        self.sent = 0
        self.dead = False

    @property
    def host(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def arm(self, after: int, action: Callable[[], None]) -> None:
        """Begin to count; do `action` once, before the byte number `after` is passed on."""
        with self._lock:
            self.sent, self._after, self._action, self.dead = 0, after, action, False

    def cut(self) -> None:
        """Reset every connection."""
        with self._lock:
            for one in self._open:
                with contextlib.suppress(OSError):  # it was closed meanwhile
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    one.shutdown(socket.SHUT_RDWR)

    def die(self) -> None:
        """Reset every connection, and those to come."""
        self.dead = True
        self.cut()

    def serve(self) -> None:
        """Accept connections until the listener is closed."""
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            if self.dead:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                client.close()
                continue
            server = socket.create_connection(self._target)
            with self._lock:
                self._open |= {client, server}
            for way in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, counted: bool) -> None:  # noqa: FBT001 - a thread's argument
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if counted:
                    self._count(len(data))
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            first = one in self._open and other in self._open
            self._open -= {one}
            gone = other not in self._open
        if gone and not first:
            one.close()
            other.close()

    def _count(self, size: int) -> None:
        with self._lock:
            self.sent += size
            due = 0 <= self._after <= self.sent
            if due:
                self._after = -1
        if due:
            self._action()

    def close(self) -> None:
        """Stop."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()


@contextmanager
def cutting(target: str) -> Iterator[Cutter]:
    """Run a cutter before `target` until the end of the block."""
    cutter = Cutter(target)
    thread = threading.Thread(target=cutter.serve, daemon=True)
    thread.start()
    try:
        yield cutter
    finally:
        cutter.close()
        thread.join()
