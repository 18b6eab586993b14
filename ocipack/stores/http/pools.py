"""Pools of connections to one host: where they lead, by which name, and what is looked at first."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError
from urllib3.util import connection as sockets

from ocipack.errors import Misuse, OcipackError
from ocipack.stores.http.faults import FOREIGN
from ocipack.stores.http.mistrust import Shown
from ocipack.stores.http.url import Url

Pool = HTTPConnectionPool | urllib3.ProxyManager

LOOK = 0.5
"""Seconds that a server has to refuse us for lack of a certificate, once we look at its own."""

_PROXY_PORT = 80
_PROXY_HINT = "HTTP_PROXY and HTTPS_PROXY hold http:// or https:// addresses"


class Route:
    """How a host is reached.

    `dialled` is the address and port to connect to, None to look the name up; `server_name` the
    name that the handshake asks for and the certificate must have, empty for the host's own.
    Without `context` plain HTTP is spoken. `check` is called with the address of each connection
    before a byte leaves; a `proxy` (an address that may hold credentials) finds the host itself.
    """

    def __init__(
        self,
        url: Url,
        context: ssl.SSLContext | None,
        check: Callable[[str], None],
        waits: urllib3.Timeout,
        *,
        proxy: str = "",
        dialled: tuple[str, int] | None = None,
        server_name: str = "",
    ) -> None:
        self.url = url
        self.context = context
        self.check = check
        self.waits = waits
        self.proxy = proxy
        self.dialled = dialled
        self.server_name = server_name

    @property
    def secure(self) -> dict[str, Any]:
        """What only TLS needs."""
        named = {"server_hostname": self.server_name} if self.server_name else {}
        return {"ssl_context": self.context, **named} if self.context is not None else {}


class _Checked:
    """A connection that looks at the address it got before a byte leaves."""

    def __init__(
        self,
        *args: Any,
        check: Callable[[str], None],
        dialled: tuple[str, int] | None,
        **kw: Any,
    ) -> None:
        self._check = check
        self._dialled = dialled
        super().__init__(*args, **kw)

    def _new_conn(self) -> socket.socket:
        made = _dial(self, self._dialled) if self._dialled is not None else self._named()
        try:
            self._check(made.getpeername()[0])
        except BaseException:
            made.close()
            raise
        return made

    def _named(self) -> socket.socket:
        made: socket.socket = super()._new_conn()  # type: ignore[misc] # the mixed-in class has it
        return made


def _dial(self: Any, place: tuple[str, int]) -> socket.socket:
    """Connect to an address instead of the host's name, failing as urllib3 itself would."""
    try:
        return sockets.create_connection(
            place, self.timeout, self.source_address, self.socket_options
        )
    except TimeoutError as e:
        raise ConnectTimeoutError(self, "timed out") from e
    except OSError as e:
        raise NewConnectionError(self, f"{place[0]}:{place[1]}: {e}") from e


class _Plain(_Checked, HTTPConnection):
    pass


class _Secure(_Checked, HTTPSConnection):
    pass


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _Secure


def pool(route: Route, count: int) -> Pool:
    """Make a pool that keeps at most `count` connections; Misuse for a proxy that is none."""
    if route.proxy:
        return _proxied(route.proxy, timeout=route.waits, maxsize=count, **route.secure)
    kind = _SecurePool if route.context is not None else _PlainPool
    return kind(
        route.url.host,
        route.url.port,
        timeout=route.waits,
        maxsize=count,
        check=route.check,
        dialled=route.dialled,
        **route.secure,
    )


def _proxied(proxy: str, **settings: Any) -> urllib3.ProxyManager:
    """Connect through a proxy, with the credentials of its address; it resolves the names."""
    try:
        parts, headers = _proxy(proxy)
        bare = parts._replace(auth=None).url
        return urllib3.ProxyManager(bare, proxy_headers=headers, **settings)
    except urllib3.exceptions.HTTPError:
        raise Misuse("the address of the proxy cannot be used", hint=_PROXY_HINT) from None


def _proxy(proxy: str) -> tuple[urllib3.util.Url, dict[str, str] | None]:
    """The address of a proxy, and what logs in there."""
    parts = urllib3.util.parse_url(proxy)
    headers = urllib3.make_headers(proxy_basic_auth=parts.auth) if parts.auth else None
    return parts, dict(headers) if headers is not None else None


def look(route: Route, *, ours: bool) -> Shown | None:
    """Connect by TLS only to see what a server shows.

    In earnest with `ours`: with our certificate, and believing only whom we trust. Else as
    nobody, believing all: what is seen then is for a message. Nothing but the handshake is sent.
    None if it shows nothing.
    """
    connection = _single(route, (route.context if ours else None) or _believing())
    try:
        connection.connect()
        made = connection.sock
        assert isinstance(made, ssl.SSLSocket)
        version = made.version() or ""
        return Shown(made.getpeercert(binary_form=True) or b"", _alert(made), version)
    except ssl.SSLCertVerificationError as e:
        return Shown(error=e)
    except ssl.SSLError as e:
        reason = e.reason or ""
        return Shown(b"", reason) if "ALERT" in reason else None
    except (*FOREIGN, OcipackError):
        return None
    finally:
        connection.close()


def _single(route: Route, context: ssl.SSLContext) -> HTTPSConnection:
    """One connection that belongs to no pool, through the proxy if there is one."""
    how: dict[str, Any] = {
        "timeout": route.waits.connect_timeout,
        "ssl_context": context,
        "server_hostname": route.server_name or None,
    }
    if not route.proxy:
        how |= {"check": route.check, "dialled": route.dialled}
        return _Secure(route.url.host, route.url.port, **how)
    proxy, headers = _proxy(route.proxy)
    made = HTTPSConnection(proxy.host or "", proxy.port or _PROXY_PORT, **how)
    made.set_tunnel(route.url.host, route.url.port, headers=headers, scheme=proxy.scheme or "http")
    return made


def _believing() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _alert(made: ssl.SSLSocket) -> str:
    """What a server says after the handshake, as TLS 1.3 does for lack of a certificate.

    One that waits for a request says nothing, which takes as long as we wait.
    """
    made.settimeout(LOOK)
    try:
        made.recv(1)
    except ssl.SSLError as e:
        return e.reason or ""
    except OSError:
        return ""
    return ""
