"""Connections: one pool a host, what may go over them, and where a redirect may lead."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

import urllib3

from ocipack.errors import OcipackError, StoreError
from ocipack.stores.http import mistrust, pools, tls
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.attempt import Attempt, Places
from ocipack.stores.http.faults import FOREIGN, translate
from ocipack.stores.http.gate import Gate, is_inner, outward
from ocipack.stores.http.host import Host
from ocipack.stores.http.mistrust import Shown
from ocipack.stores.http.pace import Pace
from ocipack.stores.http.patience import Patience, retry_after
from ocipack.stores.http.pools import Route
from ocipack.stores.http.settings import Settings, api_host
from ocipack.stores.http.url import Url, is_loopback

if TYPE_CHECKING:
    from ocipack.stores.http.tally import Tally

REDIRECTS: Final = 3
"""Redirects that one request follows."""
_BAD = 400
_MOVED = frozenset({301, 302, 303, 307, 308})

Body = bytes | Callable[[], Iterable[bytes]]
"""A request's body: at hand, or a stream that can be opened again for another try."""


class Transport:
    """Every exchange of a run goes through one of these; safe for threads.

    `debug` is called with one line per exchange: method, address without secrets, status,
    milliseconds until the headers came, bytes sent and announced. `sent` is called with the
    number of bytes of each piece of a streamed body that is handed on, from any thread. `tally`
    counts.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        patience: Patience | None = None,
        debug: Callable[[str], None] | None = None,
        sent: Callable[[int], None] | None = None,
        tally: Tally | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self._sent = sent
        self._tally = tally
        self.patience = patience or Patience(
            self.settings.tries,
            self.settings.patience,
            retried=tally.retried if tally is not None else bool,
        )
        self._debug = debug
        listed = self.settings.allowed
        self._named = Gate(listed)
        self._gate = Gate((*listed, *self.settings.mirrors)) if listed else self._named
        self._lock = threading.Lock()
        self._ways: dict[tuple[object, ...], _Way] = {}
        self._peers: dict[tuple[str, str, int], str] = {}
        self._paces: dict[str, Pace] = {}
        self._trust = cache(tls.trust)

    def base(self, registry: str) -> Url:
        """Where the API of `registry` (`host[:port]`) begins, with the scheme it is spoken in.

        Plain HTTP is for registries listed as plain, and for loopback ones unless a CA was given
        for them; there is no falling back from one to the other.
        """
        host = api_host(registry)
        secure, said = Url.of("https", host, "/v2/"), self.settings.host(registry)
        if registry in self.settings.plain or said.plain:
            return Url.of("http", host, "/v2/")
        known = bool(said.is_secure or self.settings.ca_file)
        known = known or tls.directory(self.settings.certs, host) is not None
        return Url.of("http", host, "/v2/") if is_loopback(secure.host) and not known else secure

    def admit(self, url: Url) -> None:
        """Refuse a host that the list of allowed registries does not name, before it is asked.

        A mirror is refused by its own name, too: it stands for others alone.
        """
        self._named.name(url.host, url.port)

    def look(self, url: Url) -> Shown | None:
        """Connect by TLS only to see what the server shows; None if it shows nothing."""
        self._gate.name(url.host, url.port)
        if url.scheme != "https":
            return None
        return pools.look(self._way(url, confined=False).route, ours=True)

    def exchange(
        self,
        method: str,
        url: Url,
        *,
        headers: Mapping[str, str],
        body: Body | None = None,
        size: int = 0,
        elsewhere: bool = True,
        sent_by: Url | None = None,
    ) -> Answer:
        """Make one request, following at most three redirects of a GET or HEAD.

        Checks of a redirect, numbered in the code:

        1. what changes something (POST, PUT) is not redirected: the answer is returned as it is;
        2. https does not become http;
        3. a public host does not send us to an inner address, by name or by lookup, unless the
           allow-list names that very host;
        4. Authorization goes to the host it was meant for, and comes back no more.

        With `elsewhere=False` a redirect to another host is returned like any other answer.
        `sent_by` names the address whose server told us to ask `url` (an upload's Location): the
        rules of a redirect from there hold.
        """
        start = sent_by or url
        if sent_by is not None:
            self._may_lead(sent_by, url)
        for _ in range(REDIRECTS + 1):
            confined = self._is_confined(url, start)
            answer = self._once(method, url, headers, body, size, confined=confined)
            try:
                target = self._redirect(answer, method, url)  # (1)
            except StoreError:
                answer.drop()
                raise
            if target is None or (not elsewhere and target.origin != url.origin):
                return answer
            answer.finish()
            self._may_lead(url, target)
            if target.origin != url.origin:  # (4)
                headers = {k: v for k, v in headers.items() if k.lower() != "authorization"}
            url = target
        raise StoreError(f"{method} {start.shown}: more than {REDIRECTS} redirects")

    @staticmethod
    def _redirect(answer: Answer, method: str, url: Url) -> Url | None:
        location = answer.header("Location")
        if answer.status not in _MOVED or method not in {"GET", "HEAD"} or not location:
            return None
        return url.join(location)

    def _may_lead(self, url: Url, target: Url) -> None:
        if url.scheme == "https" and target.scheme != "https":  # (2)
            raise StoreError(
                f"{url.shown} sends us on to plain HTTP ({target.shown}), which is refused",
                hint="the registry's external address is probably configured as http://",
            )
        if self._is_confined(target, url):  # (3)
            outward(target.host, target.host)

    def _is_confined(self, target: Url, start: Url) -> bool:
        """Whether `target` was named by a public server and may only be public itself."""
        if target.origin == start.origin or self._gate.vouches(target.host, target.port):
            return False
        return not self._is_inner(start)

    def _is_inner(self, url: Url) -> bool:
        return is_inner(url.host) or is_inner(self._peers.get(url.origin, ""))

    def _once(
        self,
        method: str,
        url: Url,
        headers: Mapping[str, str],
        body: Body | None,
        size: int,
        *,
        confined: bool,
    ) -> Answer:
        self._gate.name(url.host, url.port)
        way = self._way(url, confined=confined)
        at = self._attempt(method, url, way)
        sent = {**self.settings.headers(), **headers}
        if body is not None:
            size = len(body) if isinstance(body, bytes) else size
            sent["Content-Length"] = str(size)
        content = self._counted(body, at)
        began = self.patience.monotonic()
        try:
            with way.pace.turn():
                began = self.patience.monotonic()
                response = way.pool.urlopen(
                    method,
                    url.text if at.proxied else url.target,
                    body=content,
                    headers=sent,
                    redirect=False,
                    retries=False,
                    assert_same_host=False,
                    preload_content=False,
                    decode_content=False,
                )
        except FOREIGN as e:
            failure = translate(e, at, way.look, why=self._why(at, way, confined=confined))
            self._note(at, "failed", began, size, None)
            raise failure from e
        except OcipackError:
            self._note(at, "stopped", began, size, None)
            raise
        received = self._tally.received if self._tally is not None else None
        answer = Answer(response, at, clock=self.patience.monotonic, received=received)
        self._note(at, str(answer.status), began, size, answer.length)
        way.pace.heard(answer.status, began, retry_after(answer))
        return self._heard(answer, way, confined=confined)

    def _heard(self, answer: Answer, way: _Way, *, confined: bool) -> Answer:
        """Give the answer on, unless it is what servers of TLS say to plain HTTP."""
        why = self._why(answer.at, way, confined=confined)
        if answer.at.url.scheme == "http" and answer.status == _BAD and why is not None:
            told = why()
            if told is not None:
                answer.drop()
                raise told
        way.answered = True
        return answer

    def _why(
        self, at: Attempt, way: _Way, *, confined: bool
    ) -> Callable[[], StoreError | None] | None:
        """What finds out why a server does not do as it should; None if it ever did."""
        if way.answered:
            return None
        if at.url.scheme == "https":
            return lambda: mistrust.broken_off(at, way.look)
        url = Url.of("https", at.url.netloc, at.url.path, at.url.query)

        def secure() -> StoreError | None:
            try:
                self._gate.name(url.host, url.port)
                other = self._way(url, confined=confined)
            except OcipackError:
                return None  # what is wrong with files for TLS is nothing to plain HTTP
            there = replace(self._attempt(at.method, url, other), plain_first=at.url)
            return mistrust.speaks_tls(there, other.look)

        return secure

    def _counted(self, body: Body | None, at: Attempt) -> Iterable[bytes] | None:
        """Open a body; its bytes are counted as they go."""
        tally = self._tally
        if body is None or isinstance(body, bytes):
            if body and tally is not None:
                tally.sent(at, len(body))
            return body  # type: ignore[return-value] # urllib3 sends bytes whole
        pieces = body()
        if tally is not None:
            pieces = _telling(pieces, lambda count: tally.sent(at, count))
        return pieces if self._sent is None else _telling(pieces, self._sent)

    def _note(self, at: Attempt, how: str, began: float, out: int, back: int | None) -> None:
        took = self.patience.monotonic() - began
        if self._tally is not None:
            self._tally.ended(at, how, took)
        if self._debug is not None:
            received = "?" if back is None else str(back)
            self._debug(f"{at.what} {how} {took * 1000:.0f} ms out={out} in={received}")

    def _way(self, url: Url, *, confined: bool) -> _Way:
        """Find or make what leads to a host; a confined way refuses inner addresses."""
        key = (*url.origin, confined)
        with self._lock:
            if key not in self._ways:
                self._ways[key] = self._make(url, confined=confined)
            return self._ways[key]

    def _make(self, url: Url, *, confined: bool) -> _Way:
        settings, said = self.settings, self.settings.host(url.netloc)
        proxy = settings.proxies.choose(url.scheme, url.host, url.port)
        own = self._authority(url, said) if url.scheme == "https" else None
        waits = urllib3.Timeout(connect=settings.connect_timeout, read=settings.idle_timeout)

        # no `self` below: urllib3 keeps a pool's connections until the pool goes, and connections
        # that led back to the pool would keep both, and their sockets, until the process ends
        gate, peers, origin = self._gate, self._peers, url.origin

        def check(address: str) -> None:
            gate.address(url.host, url.port, address)
            if confined:
                outward(url.host, address)
            peers[origin] = address

        route = Route(
            url,
            own.context if own is not None else None,
            check,
            waits,
            proxy="" if said.connect else proxy,
            dialled=said.dialled(url.port),
            server_name=said.server_name,
        )
        places, pace = self._places(url, said), self._pace(url, said)
        return _Way(route, settings.connections, own, places, pace)

    def _pace(self, url: Url, said: Host) -> Pace:
        """The limits of a host, however it is reached; called under the lock."""
        if url.netloc not in self._paces:
            self._paces[url.netloc] = Pace(
                said.concurrency,
                said.rate,
                sleep=self.patience.sleep,
                monotonic=self.patience.monotonic,
                longest=self.patience.limit,
            )
        return self._paces[url.netloc]

    def _authority(self, url: Url, said: Host) -> tls.Trust:
        place = tls.directory(self.settings.certs, url.netloc)
        if place is None and url.port == 443:  # noqa: PLR2004 - https, which netloc leaves out
            place = tls.directory(self.settings.certs, f"{url.netloc}:443")
        return self._trust(self.settings.ca_file, place, said)

    def _places(self, url: Url, said: Host) -> Places:
        settings = self.settings
        certs = f"{settings.certs[0]}/{url.netloc}" if settings.certs else ""
        near = None if said.where else settings.near(url.netloc)
        return Places(
            settings.file,
            bool(settings.hosts),
            said.where,
            certs,
            said.lines,
            near=near.name if near is not None else "",
            near_at=near.where if near is not None else "",
            listed=url.netloc in settings.plain,
        )

    def _attempt(self, method: str, url: Url, way: _Way) -> Attempt:
        own = way.trust
        return Attempt(
            method,
            url,
            own.authorities if own is not None else "none: plain HTTP",
            self.settings.connect_timeout,
            self.settings.idle_timeout,
            proxied=bool(way.route.proxy),
            server_name=way.route.server_name,
            certificate=own.certificate if own is not None else "",
            places=way.places,
            files=own.files if own is not None else (),
        )


class _Way:
    """What leads to one host; `answered` once something came back from there."""

    answered = False

    def __init__(
        self, route: Route, count: int, trust: tls.Trust | None, places: Places, pace: Pace
    ) -> None:
        self.pool = pools.pool(route, count)
        self.route = route
        self.trust = trust
        self.places = places
        self.pace = pace

    def look(self, ours: bool) -> Shown | None:  # noqa: FBT001 - see Look
        """Ask the host only to see what it shows."""
        return pools.look(self.route, ours=ours)


def _telling(pieces: Iterable[bytes], sent: Callable[[int], None]) -> Iterator[bytes]:
    """Pass `pieces` on, saying how many bytes each has once the next one is asked for."""
    for piece in pieces:
        yield piece
        sent(len(piece))
