"""The transport: addresses, gates, redirects, TLS, patience, one seam for foreign exceptions."""

from __future__ import annotations

import gc
import inspect
import io
import itertools
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
import trustme
import urllib3.exceptions
from hypothesis import given, strategies as st
from registry import Fault, Registry, Switches

from ocipack.errors import IntegrityError, Misuse, OcipackError, Rejected, StoreError, Unavailable
from ocipack.stores.http import faults
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.attempt import Attempt
from ocipack.stores.http.gate import Gate, is_inner
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.settings import Proxies, Settings
from ocipack.stores.http.transport import Transport
from ocipack.stores.http.url import Url, is_loopback, printable

SECRET = "s3cr3t"


def transport(
    *, debug: list[str] | None = None, pauses: list[float] | None = None, **settings: Any
) -> Transport:
    waits = pauses if pauses is not None else []
    chosen = Settings(**settings)
    patience = Patience(chosen.tries, chosen.patience, sleep=waits.append, random=lambda: 1.0)
    return Transport(chosen, patience=patience, debug=debug.append if debug is not None else None)


def get(client: Transport, url: str, **headers: str) -> bytes:
    answer = client.exchange("GET", Url.parse(url), headers=headers)
    assert answer.status == 200
    return answer.read(1 << 20)


@pytest.fixture
def server() -> Iterator[Registry]:
    with Registry() as running:
        running.static["/x"] = b"content"
        yield running


@pytest.fixture
def other() -> Iterator[Registry]:
    with Registry(host="127.0.0.2") as running:
        running.static["/x"] = b"elsewhere"
        yield running


# addresses


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("https://h.example/v2/", ("https", "h.example", 443), "/v2/"),
        ("HTTP://H.Example:5000", ("http", "h.example", 5000), "/"),
        ("https://[::1]:5000/a?b=c#d", ("https", "::1", 5000), "/a?b=c"),
    ],
)
def test_an_address_is_read(text: str, origin: tuple[str, str, int], target: str) -> None:
    url = Url.parse(text)
    assert url.origin == origin
    assert url.target == target


@pytest.mark.parametrize(
    "text",
    [
        "ftp://h/x",
        "file:///etc/passwd",
        "h.example/x",
        "https:///x",
        "https://h:99999/",
        "https://h:x/",
        "https://h/a b",
        "https://h/a\r\nX: y",
        "https://h/\x00",
        "https://ü.example/",
        "https://[::1/",
        "https://h_@evil/",
        "",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(StoreError):
        Url.parse(text)


def test_credentials_in_an_address_are_refused_and_not_shown() -> None:
    with pytest.raises(StoreError) as caught:
        Url.parse(f"https://user:{SECRET}@h.example/x")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("/v2/up/1", "https://h.example:5000/v2/up/1"),
        ("2?_state=a%2Fb", "https://h.example:5000/v2/a/2?_state=a%2Fb"),
        ("?last=x", "https://h.example:5000/v2/a/b?last=x"),
        ("https://other.example/y?z=1", "https://other.example/y?z=1"),
        ("//other.example/y", "https://other.example/y"),
    ],
)
def test_a_location_is_joined(location: str, text: str) -> None:
    assert Url.parse("https://h.example:5000/v2/a/b?n=1").join(location).text == text


def test_a_port_that_is_the_schemes_own_says_nothing() -> None:
    """Proxies add it to what a registry calls itself."""
    base = Url.parse("https://h.example/v2/")
    named = base.join("https://h.example:443/v2/up")
    assert named.origin == base.origin
    assert named.text == "https://h.example/v2/up"


def test_a_query_member_is_added_to_whatever_is_there() -> None:
    digest = "sha256:" + "a" * 64
    url = Url.parse("https://h/up")
    assert url.plus("digest", digest).target == f"/up?digest={digest}"
    assert url.join("?_state=x%3D").plus("digest", digest).query == f"_state=x%3D&digest={digest}"
    assert url.plus("from", "a/b&c=d").query == "from=a%2Fb%26c%3Dd"


def test_an_address_is_shown_without_what_could_be_secret() -> None:
    url = Url.parse(f"https://h.example/x?X-Amz-Signature={SECRET}&digest=sha256:ab&sig={SECRET}")
    assert url.shown == "https://h.example/x?digest=sha256:ab&…"
    assert Url.parse(f"https://h.example/x?{SECRET}").shown == "https://h.example/x?…"


@given(st.text(max_size=80))
def test_hostile_addresses_raise_only_store_errors(text: str) -> None:
    base = Url.parse("https://h.example/v2/")
    for read in (Url.parse, base.join):
        try:
            url = read(text)
        except StoreError:
            continue
        assert url.scheme in {"http", "https"}
        assert not set(url.target) & set(" \r\n\x00")
        assert url.shown.isprintable()


def test_strangers_words_are_made_printable() -> None:
    assert printable("a\x1b[31mb\nc\u202ed", 20) == "a\ufffd[31mb\ufffdc\ufffdd"
    assert printable("x" * 10, 4) == "xxxx…"


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback_names(host: str) -> None:
    assert is_loopback(host)
    assert is_inner(host)


@pytest.mark.parametrize("host", ["localhost.example", "128.0.0.1", "registry", "127.0.0.1.nip.io"])
def test_names_that_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)
    assert not is_inner(host) or host == "registry"


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "fe80::1",
     "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::", "224.0.0.1"],
)  # fmt: skip
def test_inner_addresses(address: str) -> None:
    assert is_inner(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "registry.example"])
def test_outer_addresses(address: str) -> None:
    assert not is_inner(address)


# which hosts


def test_without_a_list_any_host_may_be_asked_but_names_of_metadata_services() -> None:
    gate = Gate()
    gate.name("anything.example", 443)
    gate.address("anything.example", 443, "10.0.0.1")
    for address in ("169.254.169.254", "fe80::1", "0.0.0.0", "::ffff:169.254.169.254"):
        with pytest.raises(Rejected, match=r"anything\.example leads to"):
            gate.address("anything.example", 443, address)


def test_a_list_names_what_may_be_asked() -> None:
    gate = Gate(("registry.example", "other.example:5000", "*.corp.example"))
    for host, port in (
        ("registry.example", 443),
        ("registry.example", 5000),
        ("other.example", 5000),
        ("a.corp.example", 443),
    ):
        gate.name(host, port)
        gate.address(host, port, "10.1.1.1")
    for host, port in (
        ("evil.example", 443),
        ("other.example", 443),
        ("corp.example", 443),
        ("evilcorp.example", 443),
        ("10.1.1.1", 443),
    ):
        with pytest.raises(Rejected, match="may contact"):
            gate.name(host, port)
    gate.address("registry.example", 443, "127.0.0.1")
    with pytest.raises(Rejected, match="leads to 127"):
        gate.address("a.corp.example", 443, "127.0.0.1")


def test_a_network_is_checked_after_the_name_is_resolved() -> None:
    gate = Gate(("10.0.0.0/8",))
    gate.name("anything.example", 443)
    gate.address("anything.example", 443, "10.1.1.1")
    with pytest.raises(Rejected, match=r"leads to 192\.168\.0\.1"):
        gate.address("anything.example", 443, "192.168.0.1")
    gate.name("10.2.3.4", 443)
    with pytest.raises(Rejected):
        gate.name("192.168.0.1", 443)
    with pytest.raises(Misuse):
        Gate(("10.0.0.0/99",))


def test_nothing_is_sent_to_an_address_that_the_list_refuses(server: Registry) -> None:
    client = transport(allowed=("192.168.0.0/16",), plain=frozenset({f"localhost:{server.port}"}))
    with pytest.raises(Rejected, match="leads to"):
        get(client, f"http://localhost:{server.port}/x")
    assert not server.requests
    with pytest.raises(Rejected):
        get(transport(allowed=("registry.example",)), f"{server.url}/x")
    assert get(transport(allowed=(server.name,)), f"{server.url}/x") == b"content"


# proxies


@pytest.mark.parametrize(
    ("none", "host", "port", "direct"),
    [
        ("", "r.example", 443, False),
        ("*", "r.example", 443, True),
        ("example", "r.example", 443, True),
        (".example", "r.example", 443, True),
        ("*.example", "r.example", 443, True),
        ("r.example", "r.example", 443, True),
        ("r.example", "evilr.example", 443, False),
        ("r.example:5000", "r.example", 443, False),
        ("r.example:443, x", "r.example", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "r.example", 443, False),
        ("", "127.0.0.1", 443, True),
        ("[2001:db8::1]", "2001:db8::1", 443, True),
        (" , ", "r.example", 443, False),
    ],
)
def test_what_is_not_proxied(none: str, host: str, port: int, *, direct: bool) -> None:
    proxies = Proxies(http="http://p:3128", https="p:3129", none=none)
    assert proxies.choose("https", host, port) == ("" if direct else "http://p:3129")
    assert proxies.choose("http", host, port) == ("" if direct else "http://p:3128")


@pytest.mark.parametrize("proxy", ["socks5://p:1", "ftp://p", "http://[", "http://p:99999"])
def test_a_proxy_that_cannot_be_used(proxy: str) -> None:
    with pytest.raises(Misuse, match="proxy"):
        get(transport(proxies=Proxies(http=proxy)), "http://r.example/x")


def test_requests_go_through_the_proxy_with_its_credentials(server: Registry) -> None:
    server.static["http://r.example:80/x"] = b""
    client = transport(proxies=Proxies(http=f"http://me:{SECRET}@{server.name}"))
    answer = client.exchange("GET", Url.parse("http://r.example/x"), headers={})
    answer.finish()
    (seen,) = server.requests
    assert seen.target == "http://r.example/x"
    assert seen.headers["proxy-authorization"].startswith("Basic ")
    assert SECRET not in repr(client.settings)


class Tunnel:
    """A proxy that answers CONNECT with a connection to `port` on this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.name = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.join()
        self.listener.close()

    def serve(self) -> None:
        client, _ = self.listener.accept()
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            request += client.recv(4096)
        self.asked.append(request)
        with client, socket.create_connection(("127.0.0.1", self.port)) as server:
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=self.relay, args=(server, client))
            back.start()
            self.relay(client, server)
            back.join()

    @staticmethod
    def relay(source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


def test_https_goes_through_a_proxy_end_to_end(authority: trustme.CA, ca_file: str) -> None:
    """The proxy resolves the name, and sees neither what is asked nor with which credentials."""
    with secured(authority.issue_cert("registry.test")) as server, Tunnel(server.port) as tunnel:
        client = transport(ca_file=ca_file, proxies=Proxies(https=f"http://{tunnel.name}"))
        url = f"https://registry.test:{server.port}/x"
        assert get(client, url, Authorization=f"Bearer {SECRET}") == b"content"
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        del client
        gc.collect()  # ends the connection, and with it the tunnel
    (asked,) = tunnel.asked
    assert asked.startswith(f"CONNECT registry.test:{server.port} ".encode())
    assert SECRET.encode() not in asked


def test_a_proxy_that_is_down() -> None:
    for scheme in ("http", "https"):
        proxies = Proxies(*[f"http://127.0.0.1:{_closed_port()}"] * 2)
        with pytest.raises(Unavailable, match=f"GET {scheme}://r.test/x: the proxy failed"):
            get(transport(proxies=proxies), f"{scheme}://r.test/x")


# exchanges


def test_what_every_request_carries(server: Registry) -> None:
    assert get(transport(), f"{server.url}/x") == b"content"
    (seen,) = server.requests
    assert seen.headers["user-agent"].startswith("ocipack/")
    assert seen.headers["accept-encoding"] == "identity"
    assert seen.headers["host"] == server.name


def test_a_connection_is_used_again(server: Registry) -> None:
    client = transport()
    for _ in range(5):
        get(client, f"{server.url}/x")
    client.exchange("HEAD", Url.parse(f"{server.url}/x"), headers={}).finish()
    answer = client.exchange("GET", Url.parse(f"{server.url}/v2/a/b/c"), headers={})
    answer.finish()
    get(client, f"{server.url}/x")
    assert server.accepted == 1


def test_debug_says_one_line_a_request_and_no_secret(server: Registry) -> None:
    lines: list[str] = []
    client = transport(debug=lines)
    get(client, f"{server.url}/x?token={SECRET}", Authorization=f"Bearer {SECRET}")
    with pytest.raises(Unavailable):
        get(client, f"http://127.0.0.1:{_closed_port()}/x?sig={SECRET}")
    first, second = lines
    assert first.startswith(f"GET {server.url}/x?… 200 ")
    assert first.endswith(" ms out=0 in=7")
    assert "failed" in second
    assert SECRET not in "".join(lines)


def test_every_byte_of_a_streamed_body_is_told_as_it_is_sent(server: Registry) -> None:
    told: list[int] = []
    client = Transport(Settings(), sent=told.append)
    answer = client.exchange(
        "POST", Url.parse(f"{server.url}/v2/"), headers={}, body=lambda: [b"abc", b"de"], size=5
    )
    answer.finish()
    assert told == [3, 2]


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def test_a_registry_that_is_down() -> None:
    with pytest.raises(Unavailable, match=r"GET http://127.0.0.1:\d+/x: no connection: .*refused"):
        get(transport(), f"http://127.0.0.1:{_closed_port()}/x")


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(Unavailable, match=r"'nowhere\.invalid' cannot be resolved"):
        get(transport(), "http://nowhere.invalid/x")


@pytest.mark.parametrize("said", ["9" * 5000, "-1", "+3", "3 3", "", "three", "\u0663"])
def test_a_length_that_is_none(said: str) -> None:
    response = urllib3.HTTPResponse(b"", headers={"Content-Length": said}, preload_content=False)
    at = Attempt("GET", Url.parse("https://h.example/"), "", 1, 2)
    assert Answer(response, at).length is None


class Dripping(io.RawIOBase):
    """A body that comes one byte at a time, never idle for long, and never ends."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        buffer[:1] = b"x"
        return 1


def test_a_body_that_drips_for_ever_is_dropped() -> None:
    seconds = itertools.count(step=10.0)
    body = io.BufferedReader(Dripping(), buffer_size=1)
    response = urllib3.HTTPResponse(body, preload_content=False)
    at = Attempt("GET", Url.parse("https://h.example/x"), "", 1, 2)
    with pytest.raises(Unavailable, match=r"GET https://h.example/x: .* within 120 seconds"):
        Answer(response, at, clock=lambda: next(seconds)).read(1 << 20)
    assert next(seconds) < 200
    excerpt = Answer(response, at, clock=lambda: next(seconds)).excerpt()
    assert len(excerpt) < 100


def test_silence_ends_after_the_idle_time(server: Registry) -> None:
    server.switches.faults = [Fault("/x", act="silence")]
    with pytest.raises(Unavailable, match=r"nothing came for 0\.1 s") as caught:
        get(transport(idle_timeout=0.1), f"{server.url}/x")
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("act", ["reset", "half"])
def test_a_connection_that_is_cut(server: Registry, act: str) -> None:
    server.switches.faults = [Fault("/x", act=act)]
    with pytest.raises(Unavailable, match="the connection was cut"):
        get(transport(), f"{server.url}/x")


def test_a_body_without_end_is_cut_at_its_limit(server: Registry) -> None:
    server.switches.faults = [Fault("/x", act="endless")]
    with pytest.raises(IntegrityError, match="longer than 1048576 bytes"):
        get(transport(), f"{server.url}/x")
    answer = transport().exchange("GET", Url.parse(f"{server.url}/x"), headers={})
    assert len(answer.excerpt()) == 64 * 1024
    assert server.endless < 30 << 20, "each of the two is 32 MiB to whoever takes all of it"


def test_a_length_beyond_the_limit_is_refused_unread(server: Registry) -> None:
    server.static["/x"] = bytes(2 << 20)
    with pytest.raises(IntegrityError, match="longer"):
        get(transport(), f"{server.url}/x")


def test_what_is_not_http_is_said_to_be_cut() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"220 mail.example ESMTP\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StoreError):
            get(transport(), url)
        thread.join()


# redirects


def redirect(server: Registry, location: str, status: int = 307, **more: Any) -> None:
    server.switches.faults = [Fault("^[A-Z]+ /x", status, {"Location": location}, **more)]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_followed_and_credentials_stay(
    server: Registry, other: Registry, status: int
) -> None:
    redirect(server, f"{other.url}/x?sig={SECRET}", status)
    found = get(transport(), f"{server.url}/x", Authorization="Bearer t", Accept="a/b")
    assert found == b"elsewhere"
    assert server.requests[0].headers["authorization"] == "Bearer t"
    assert "authorization" not in other.requests[0].headers
    assert other.requests[0].headers["accept"] == "a/b"


def test_credentials_follow_on_the_same_host_and_do_not_come_back(
    server: Registry, other: Registry
) -> None:
    server.static["/y"] = b"content"
    redirect(server, "/y")
    get(transport(), f"{server.url}/x", Authorization="Bearer t")
    assert [seen.headers.get("authorization") for seen in server.requests] == ["Bearer t"] * 2
    server.requests.clear()
    redirect(server, f"{other.url}/back")
    other.switches.faults = [Fault("/back", 307, {"Location": f"{server.url}/y"})]
    get(transport(), f"{server.url}/x", Authorization="Bearer t")
    assert [seen.headers.get("authorization") for seen in server.requests] == ["Bearer t", None]


def test_another_port_is_another_host(server: Registry) -> None:
    with Registry() as second:
        second.static["/x"] = b"second"
        redirect(server, f"{second.url}/x")
        get(transport(), f"{server.url}/x", Authorization="Bearer t")
        assert "authorization" not in second.requests[0].headers


def test_three_redirects_are_followed_and_no_more(server: Registry) -> None:
    redirect(server, "/x", times=3)
    assert get(transport(), f"{server.url}/x") == b"content"
    redirect(server, "/x")
    server.requests.clear()
    with pytest.raises(StoreError, match="more than 3 redirects"):
        get(transport(), f"{server.url}/x")
    assert len(server.requests) == 4


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_what_changes_something_is_not_redirected(
    server: Registry, other: Registry, method: str
) -> None:
    redirect(server, f"{other.url}/x")
    url = Url.parse(f"{server.url}/x")
    answer = transport().exchange(method, url, headers={}, body=b"body")
    assert answer.status == 307
    answer.finish()
    assert not other.requests


def test_a_redirect_elsewhere_can_be_left_alone(server: Registry, other: Registry) -> None:
    redirect(server, f"{other.url}/x")
    url = Url.parse(f"{server.url}/x")
    answer = transport().exchange("GET", url, headers={}, elsewhere=False)
    assert answer.status == 307
    answer.finish()
    assert not other.requests


@pytest.mark.parametrize(
    "location",
    ["http://169.254.169.254/latest", "https://127.0.0.1/x", "https://localhost/x", "https://[::1]/",
     "https://10.0.0.1/", "https://192.168.0.1/", "https://[::ffff:10.0.0.1]/"],
)  # fmt: skip
def test_a_public_host_does_not_send_us_inside(
    server: Registry, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    client = transport()
    _pretend_public(client, server, monkeypatch)
    redirect(server, location)
    with pytest.raises(StoreError, match="inner address"):
        get(client, f"{server.url}/x")


def test_a_public_host_does_not_send_us_inside_by_a_name(
    server: Registry, other: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name says nothing; the address that it leads to decides, before a byte is sent."""
    client = transport()
    _pretend_public(client, server, monkeypatch)
    monkeypatch.setattr(
        "urllib3.util.connection.socket.getaddrinfo",
        lambda host, port, *_: [
            (
                socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                ("127.0.0.2" if host == "inner.example" else host, port),
            )
        ],
    )
    redirect(server, f"http://inner.example:{other.port}/x")
    with pytest.raises(StoreError, match=r"inner\.example \(127\.0\.0\.2\)"):
        get(client, f"{server.url}/x")
    assert not other.requests


def test_an_inner_host_that_the_list_names_may_be_sent_to(
    server: Registry, other: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = transport(allowed=(server.name, other.name))
    _pretend_public(client, server, monkeypatch)
    redirect(server, f"{other.url}/x")
    assert get(client, f"{server.url}/x") == b"elsewhere"


def test_a_redirect_to_nowhere(server: Registry) -> None:
    redirect(server, "http://[")
    with pytest.raises(StoreError):
        get(transport(), f"{server.url}/x")


@pytest.mark.parametrize("location", ["http://10.0.0.1/up", "http://169.254.169.254/up"])
def test_an_upload_is_not_sent_inside_by_a_public_host(
    server: Registry, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    client = transport()
    _pretend_public(client, server, monkeypatch)
    start = Url.parse(f"{server.url}/x")
    client.exchange("GET", start, headers={}).finish()
    with pytest.raises(StoreError, match="inner address"):
        client.exchange("PUT", Url.parse(location), headers={}, body=b"x", sent_by=start)


def test_an_upload_is_not_sent_on_over_plain_http(other: Registry) -> None:
    start = Url.parse("https://r.example/v2/")
    url = Url.parse(f"{other.url}/up")
    with pytest.raises(StoreError, match="plain HTTP"):
        transport().exchange("PUT", url, headers={}, body=b"x", sent_by=start)
    assert not other.requests


def _pretend_public(client: Transport, server: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_inner_but_not_ours(address: str) -> bool:
        return address not in {server.host, ""} and is_inner(address)

    monkeypatch.setattr("ocipack.stores.http.transport.is_inner", is_inner_but_not_ours)
    assert client is not None


# TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def secured(certificate: trustme.LeafCert, **switches: Any) -> Registry:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    running = Registry(Switches(**switches), tls=context)
    running.static["/x"] = b"content"
    return running


def test_a_private_ca_is_trusted_when_it_is_given(authority: trustme.CA, ca_file: str) -> None:
    with secured(authority.issue_cert("127.0.0.1")) as server:
        assert get(transport(ca_file=ca_file), f"{server.url}/x") == b"content"


def test_a_private_ca_by_the_convention_of_docker(authority: trustme.CA, tmp_path: Path) -> None:
    with secured(authority.issue_cert("127.0.0.1")) as server:
        place = tmp_path / "certs.d" / server.name
        place.mkdir(parents=True)
        authority.cert_pem.write_to_path(place / "ca.crt")
        client = transport(certs=(str(tmp_path / "none"), str(tmp_path / "certs.d")))
        assert client.base(server.name).scheme == "https"
        assert get(client, f"{server.url}/x") == b"content"


def test_a_client_certificate_goes_to_its_host_alone(
    authority: trustme.CA, ca_file: str, tmp_path: Path
) -> None:
    def mutual() -> Registry:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        running = Registry(tls=context)
        running.static["/x"] = b"content"
        return running

    with mutual() as server, mutual() as other:
        place = tmp_path / server.name
        place.mkdir()
        ours = authority.issue_cert("client@example.org")
        ours.cert_chain_pems[0].write_to_path(place / "client.cert")
        ours.private_key_pem.write_to_path(place / "client.key")
        client = transport(ca_file=ca_file, certs=(str(tmp_path),))
        assert get(client, f"{server.url}/x") == b"content"
        redirect(server, f"{other.url}/x")
        with pytest.raises(StoreError):
            get(client, f"{server.url}/x")
        assert not other.requests


def test_a_certificate_of_nobody_we_trust(authority: trustme.CA) -> None:
    with secured(authority.issue_cert("127.0.0.1")) as server, pytest.raises(StoreError) as caught:
        get(transport(), f"{server.url}/x")
    text = str(caught.value)
    assert text.startswith(
        f"GET {server.url}/x: its certificate for '127.0.0.1' is signed by nobody"
    )
    assert "(trusted: the system's CAs (" in text
    assert "--ca-file CA.crt" in caught.value.hint
    assert caught.value.exit_code == 3
    assert not isinstance(caught.value, Unavailable), "another try does not help"


def test_a_certificate_that_is_expired(authority: trustme.CA, ca_file: str) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    certificate = authority.issue_cert(
        "127.0.0.1", not_before=past - timedelta(days=9), not_after=past
    )
    with secured(certificate) as server, pytest.raises(StoreError) as caught:
        get(transport(ca_file=ca_file), f"{server.url}/x")
    assert "its certificate, or one that it rests on, is expired" in str(caught.value)
    assert f" + {ca_file})" in str(caught.value)
    assert "renew" in caught.value.hint


@pytest.mark.parametrize("name", ["registry.example", "127.0.0.9"])
def test_a_certificate_for_another_name(authority: trustme.CA, ca_file: str, name: str) -> None:
    with secured(authority.issue_cert(name)) as server, pytest.raises(StoreError) as caught:
        get(transport(ca_file=ca_file), f"{server.url}/x")
    assert "its certificate is not for '127.0.0.1', the name that we expected" in str(caught.value)


def test_https_against_plain_http(server: Registry) -> None:
    with pytest.raises(StoreError, match="TLS failed") as caught:
        get(transport(), f"https://{server.name}/x")
    assert f"--plain-http {server.name}" in caught.value.hint


def test_https_does_not_become_http(authority: trustme.CA, ca_file: str, other: Registry) -> None:
    with secured(authority.issue_cert("127.0.0.1")) as server:
        redirect(server, f"{other.url}/x")
        with pytest.raises(StoreError, match=r"plain HTTP .*, which is refused"):
            get(transport(ca_file=ca_file), f"{server.url}/x")
    assert not other.requests


def test_files_of_certificates_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("not a certificate")
    (tmp_path / "h.example").mkdir()
    (tmp_path / "h.example" / "client.cert").write_text("x")
    url = "https://h.example/x"
    for settings, words in (
        ({"ca_file": str(tmp_path / "bad.pem")}, r"bad\.pem"),
        ({"ca_file": str(tmp_path / "missing.pem")}, r"missing\.pem: No such file"),
        ({"certs": (str(tmp_path),)}, r"client\.key is missing"),
    ):
        with pytest.raises(Misuse, match=words):
            get(transport(**settings), url)


def test_plain_http_is_for_loopback_and_for_what_is_listed(tmp_path: Path) -> None:
    client = transport(plain=frozenset({"plain.example:5000"}))
    assert client.base("localhost:5000").text == "http://localhost:5000/v2/"
    assert client.base("[::1]:5000").scheme == "http"
    assert client.base("plain.example:5000").scheme == "http"
    assert client.base("plain.example").scheme == "https"
    assert client.base("10.0.0.1:5000").scheme == "https"
    assert client.base("docker.io").text == "https://registry-1.docker.io/v2/"
    assert transport(ca_file=str(tmp_path)).base("localhost:5000").scheme == "https"


# patience


def test_what_may_pass_is_tried_again_with_growing_pauses() -> None:
    pauses: list[float] = []
    patience = Patience(4, 60, sleep=pauses.append, random=lambda: 1.0)
    calls = iter([1, 2, 3])

    def call() -> str:
        if next(calls, None) is not None:
            raise faults.Transient("not yet")
        return "done"

    assert patience.retry(call) == "done"
    assert pauses == [0.25, 0.5, 1.0]


def test_patience_ends() -> None:
    pauses: list[float] = []
    tried = []

    def call() -> None:
        tried.append(1)
        raise faults.Transient("never")

    with pytest.raises(Unavailable, match="never"):
        Patience(3, sleep=pauses.append).retry(call)
    assert len(tried) == 3
    assert len(pauses) == 2


def test_the_server_says_how_long_to_wait_up_to_a_limit() -> None:
    pauses: list[float] = []
    afters = iter([7.0, 0.0])

    def call() -> str:
        after = next(afters, None)
        if after is not None:
            raise faults.Transient("later", after=after)
        return "done"

    assert Patience(4, 60, sleep=pauses.append).retry(call) == "done"
    assert pauses == [7.0, 0.0]

    def forever() -> None:
        raise faults.Transient("much later", after=61)

    with pytest.raises(Unavailable, match="much later"):
        Patience(4, 60, sleep=pauses.append).retry(forever)
    assert pauses == [7.0, 0.0]


def test_other_errors_are_not_tried_again() -> None:
    tried = []

    def call() -> None:
        tried.append(1)
        raise StoreError("no")

    with pytest.raises(StoreError):
        Patience(4).retry(call)
    assert len(tried) == 1


def test_settings_make_sense() -> None:
    for bad in ({"connect_timeout": 0.0}, {"idle_timeout": -1.0}, {"tries": 0}):
        with pytest.raises(Misuse):
            Settings(**bad)


# the seam


FOREIGN_CLASSES = [
    cls
    for _, cls in inspect.getmembers(urllib3.exceptions, inspect.isclass)
    if issubclass(cls, Exception)
    and not issubclass(cls, Warning)
    and cls.__module__ == "urllib3.exceptions"
]


@pytest.mark.parametrize("cls", FOREIGN_CLASSES)
def test_every_exception_of_urllib3_has_a_meaning(cls: type[Exception]) -> None:
    """Chosen for it or for something more particular than the root of them all."""
    if cls in {urllib3.exceptions.HTTPError, urllib3.exceptions.RequestError}:
        return
    assert issubclass(cls, faults.FOREIGN)
    assert any(parent in faults.KINDS for parent in cls.__mro__)


def test_every_meaning_becomes_one_of_our_errors() -> None:
    url = Url.parse(f"https://h.example/x?sig={SECRET}")
    at = Attempt("GET", url, "the system's CAs", 1, 2)
    errors: list[Exception] = []
    for cls in faults.KINDS:
        made = cls.__new__(cls)
        made.partial, made.expected = 1, 2  # type: ignore[attr-defined] # what one of them shows
        made.length, made.response = 3, made  # type: ignore[attr-defined] # and another
        errors.append(made)
    errors += [OSError(104, "Connection reset by peer"), TimeoutError(), ssl.SSLError("x")]
    for error in errors:
        found = faults.translate(error, at)
        assert isinstance(found, OcipackError)
        assert found.exit_code == 3
        assert str(found).startswith("GET https://h.example/x?…: ")
        assert SECRET not in str(found) + found.hint
