"""What came back: a status, headers, and a body that is read under a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError, OcipackError, Unavailable
from ocipack.stores.http.attempt import Attempt
from ocipack.stores.http.coding import NotGzip, gunzip
from ocipack.stores.http.faults import FOREIGN, Transient, translate

if TYPE_CHECKING:
    from urllib3.response import BaseHTTPResponse

PIECE = 256 * 1024
"""Bytes of a streamed body that are held at once."""

ERROR_LIMIT = 64 * 1024
"""Bytes read of a body that only explains a failure."""

SLOWEST = 120.0
"""Seconds that a body which is read whole may take: one that drips would hold us for ever."""

_DIGITS = 19  # of an int64; int() itself refuses some thousand of them by an exception


class Answer:
    """One response; whoever got it reads it to the end or drops it.

    A body that is not read to the end costs its connection, which is what an endless one deserves.
    """

    def __init__(
        self,
        response: BaseHTTPResponse,
        at: Attempt,
        *,
        clock: Callable[[], float] = time.monotonic,
        received: Callable[[Attempt, int], None] | None = None,
    ) -> None:
        self._response = response
        self._received = received
        self._clock = clock
        self.at = at
        self.status = response.status

    def header(self, name: str) -> str:
        """One header, whatever the case of its name; empty if it is missing."""
        return self._response.headers.get(name, "")

    def headers(self, name: str) -> list[str]:
        """Every header of that name, each as it was sent."""
        return self._response.headers.getlist(name)

    @property
    def fields(self) -> dict[str, str]:
        """Every header by name; one that came more than once is joined by commas."""
        return dict(self._response.headers.itermerged())

    @property
    def media_type(self) -> str:
        """The content type without its parameters."""
        return self.header("Content-Type").partition(";")[0].strip().lower()

    @property
    def length(self) -> int | None:
        """How long the body is said to be, in bytes; None if nothing sane is said."""
        text = self.header("Content-Length")
        sane = text.isascii() and text.isdigit() and len(text) <= _DIGITS
        return int(text) if sane else None

    @property
    def is_delimited(self) -> bool:
        """Whether a cut would be noticed by HTTP itself."""
        return self.length is not None or "chunked" in self.header("Transfer-Encoding").lower()

    @property
    def is_gzipped(self) -> bool:
        """Whether the body comes compressed, which we never ask for."""
        return self.header("Content-Encoding").strip().lower() in {"gzip", "x-gzip"}

    def chunks(self, *, gunzipped: bool = False) -> Iterator[bytes]:
        """Stream the body, without its coding if told so; Transient if it is cut."""
        pieces = self._pieces()
        return self._bare(pieces) if gunzipped else pieces

    def _pieces(self) -> Iterator[bytes]:
        try:
            for piece in self._response.stream(PIECE, decode_content=False):
                self._count(piece)
                yield piece
        except FOREIGN as e:
            raise translate(e, self.at) from e
        finally:
            self.drop()

    def _count(self, piece: bytes) -> None:
        if self._received is not None:
            self._received(self.at, len(piece))

    def _bare(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from gunzip(pieces, PIECE)
        except NotGzip as e:
            raise Transient(f"{self.at.what}: the answer is said to be gzip: {e}") from e
        finally:
            self.drop()

    def _soon(self) -> Iterator[bytes]:
        """Stream a short body in whatever pieces come; Unavailable when it takes too long."""
        pieces = self._in_time()
        return self._bare(pieces) if self.is_gzipped else pieces

    def _in_time(self) -> Iterator[bytes]:
        until = self._clock() + SLOWEST
        try:
            while piece := self._response.read1(PIECE, decode_content=False):
                self._count(piece)
                yield piece
                if self._clock() > until:
                    raise Unavailable(
                        f"{self.at.what}: the answer did not end within {SLOWEST:g} seconds",
                        hint="the server sends it drop by drop",
                    )
        except FOREIGN as e:
            raise translate(e, self.at) from e
        finally:
            self.drop()

    def read(self, limit: int) -> bytes:
        """Read the body whole.

        IntegrityError when it is longer than `limit` bytes, Unavailable when it is cut or takes
        longer than SLOWEST.
        """
        if (self.length or 0) > limit:
            self.drop()
            raise self._too_long(limit)
        pieces, total = [], 0
        for piece in self._soon():
            total += len(piece)
            if total > limit:
                self.drop()
                raise self._too_long(limit)
            pieces.append(piece)
        return b"".join(pieces)

    def _too_long(self, limit: int) -> IntegrityError:
        return IntegrityError(f"{self.at.what}: the answer is longer than {limit} bytes")

    def excerpt(self) -> bytes:
        """Read what explains a failure, at most ERROR_LIMIT bytes, whatever happens to the rest."""
        found = b""
        try:
            for piece in self._soon():
                found += piece
                if len(found) > ERROR_LIMIT:
                    break
        except OcipackError:
            pass  # half an explanation is better than another failure
        finally:
            self.drop()
        return found[:ERROR_LIMIT]

    def finish(self) -> None:
        """Take a body that says nothing of interest, so that the connection can be used again."""
        self.excerpt()

    def drop(self) -> None:
        """Let go; the connection goes back to its pool if the body was read, else it is closed."""
        if not self._response.closed:
            self._response.close()
        self._response.release_conn()
