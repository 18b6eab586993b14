"""The one seam where urllib3's, ssl's and the socket's exceptions become ours.

`KINDS` says for every class of urllib3.exceptions what it means; a test walks that module, so a
class that a new release adds fails the build instead of reaching a user as a traceback.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable

from urllib3 import exceptions as u

from ocipack.errors import StoreError, Unavailable
from ocipack.stores.http import mistrust
from ocipack.stores.http.attempt import Attempt
from ocipack.stores.http.mistrust import Look
from ocipack.stores.http.url import printable

FOREIGN = (u.HTTPError, u.ProxySchemeUnsupported, http.client.HTTPException, OSError)
"""Everything that an exchange can raise and that is not ours."""

KINDS: dict[type[Exception], str] = {
    u.NameResolutionError: "name",
    u.NewConnectionError: "connect",
    u.ConnectTimeoutError: "connect-timeout",
    u.ReadTimeoutError: "silence",
    u.TimeoutError: "silence",
    u.TimeoutStateError: "cut",
    u.IncompleteRead: "cut",
    u.InvalidChunkLength: "cut",
    u.ProtocolError: "cut",
    u.BodyNotHttplibCompatible: "cut",
    u.SSLError: "tls",
    u.ProxyError: "proxy",
    u.ProxySchemeUnknown: "address",
    u.ProxySchemeUnsupported: "address",
    u.LocationValueError: "address",
    u.URLSchemeUnknown: "address",
    u.InvalidHeader: "answer",
    u.HeaderParsingError: "answer",
    u.ResponseError: "answer",
    u.ResponseNotChunked: "answer",
    u.DecodeError: "answer",
    u.UnrewindableBodyError: "cut",
    u.HostChangedError: "address",
    u.MaxRetryError: "cut",
    u.PoolError: "pool",
}


_BROKEN_OFF = frozenset({"cut", "answer", "tls"})
"""What a server does that was not spoken to as it should be ("tls": it hung up in a handshake)."""


class Transient(Unavailable):
    """What another try may mend. `after` is how many seconds the server asked us to wait."""

    def __init__(self, message: str, *, hint: str = "", after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.after = after


class Silent(Unavailable):
    """Nothing came for as long as we wait: another try would wait as long again."""


def kind(error: Exception) -> str:
    """Classify a foreign exception; the most particular class decides."""
    for cls in type(error).__mro__:
        if cls in KINDS:
            return KINDS[cls]
    if isinstance(error, ssl.SSLError):
        return "tls"
    if isinstance(error, TimeoutError):
        return "silence"
    return "cut"


def translate(
    error: Exception,
    at: Attempt,
    look: Look = lambda _: None,
    *,
    why: Callable[[], StoreError | None] | None = None,
) -> StoreError:
    """Say in our words what went wrong in `at`.

    `look` asks to see the server's certificate. `why` is there if this server has not answered
    yet, and finds out what is the matter with it: what is cut then may be no accident.
    """
    if (secure := _tls_cause(error)) is not None:
        return mistrust.explain(secure, at, look)
    found = kind(error)
    told = why() if why is not None and found in _BROKEN_OFF else None
    if told is not None:
        return told
    reason = printable(_reason(error), 200)
    simple = {
        "name": f"the name {at.url.host!r} cannot be resolved",
        "connect": f"no connection: {reason}",
        "connect-timeout": f"no connection within {at.connect_timeout:g} s",
        "silence": f"nothing came for {at.idle_timeout:g} s",
        "proxy": f"the proxy failed: {reason}",
        "pool": "the connection was already closed",
    }
    if found in simple:
        hint = "check the name and port of the registry, the network and the proxy settings"
        failed = Silent if found == "silence" else Unavailable
        return failed(f"{at.what}: {simple[found]}", hint=hint)
    if found == "address":
        return StoreError(f"{at.what}: not an address or proxy that can be used: {reason}")
    if found == "answer":
        return StoreError(f"{at.what}: the answer is not HTTP as it should be: {reason}")
    return Transient(f"{at.what}: the connection was cut: {reason}")


def _tls_cause(error: BaseException) -> BaseException | None:
    """Find the TLS failure inside what urllib3 wraps around it."""
    seen: set[int] = set()
    stack: list[BaseException] = [error]
    while stack:
        one = stack.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return None  # the peer hung up: a cut like any other
        if isinstance(one, ssl.SSLError):
            return one
        inner = [one.__cause__, one.__context__, *one.args]
        stack += [e for e in inner if isinstance(e, BaseException)]
    return error if isinstance(error, u.SSLError) else None


def _reason(error: BaseException) -> str:
    """The innermost plain reason; urllib3's texts begin with objects' addresses."""
    for inner in (error.__cause__, error.__context__, *error.args):
        if isinstance(inner, BaseException) and inner is not error:
            return _reason(inner)
    text = getattr(error, "strerror", None) or str(error)
    return str(text).rpartition(">: ")[2] or type(error).__name__
