"""TLS on real sockets: what is trusted, and that each failure says how to mend it.

A message is believed only if following it to the letter leads somewhere: see `secure.follow`.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme
from content import artifact
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings, strategies as st
from registry import Fault, Registry
from secure import NAME, client, follow, get, hand_out, refused, relay, serve

from ocipack.errors import IntegrityError, Misuse, Rejected, StoreError, Unavailable
from ocipack.oci.reference import Reference
from ocipack.stores.hosts import load
from ocipack.stores.http.host import Host
from ocipack.stores.http.settings import Proxies
from ocipack.stores.registry.registries import Registries
from ocipack.trust.presented import Presented


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(organization_name="Corp")


@pytest.fixture
def desk(tmp_path: Path, authority: trustme.CA) -> Path:
    return hand_out(authority, tmp_path)


# everything at once


def test_one_settings_file_reaches_a_registry_by_address_and_the_message_alone_leads_to_it(
    authority: trustme.CA, desk: Path
) -> None:
    """Private CA, other server name, odd port, client certificate: one message mends it all."""
    with serve(authority.issue_cert(NAME), wants=authority) as server:
        error = refused(client(desk), f"{server.url}/x")
        for part in ("issued by", "O=Corp", f"for {NAME}", "the system's CAs (", "'127.0.0.1'"):
            assert part in str(error)
        assert not server.requests
        assert get(follow(error.hint, desk), f"{server.url}/x") == b"content"


def test_with_tls_1_2_two_messages_lead_to_it(authority: trustme.CA, desk: Path) -> None:
    """A server that breaks off before its certificate can be read is asked for nothing more."""
    old = {"maximum_version": ssl.TLSVersion.TLSv1_2}
    with serve(authority.issue_cert(NAME), wants=authority, **old) as server:
        error = refused(client(desk), f"{server.url}/x")
        assert "clientCertificate: client.crt" in error.hint
        error = refused(follow(error.hint, desk), f"{server.url}/x")
        assert "it shows O" not in str(error)
        assert "is not for '127.0.0.1'" in str(error)
        assert "serverName: NAME" in error.hint
        (host,) = load(desk / "registries.yaml")
        mended = client(desk, replace(host, server_name=NAME))
        assert get(mended, f"{server.url}/x") == b"content"


# one thing at a time


def test_an_unknown_authority(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert("127.0.0.1")) as server:
        error = refused(client(desk), f"{server.url}/x")
        assert "signed by nobody that we trust" in str(error)
        assert "serverName" not in error.hint
        assert "clientCertificate" not in error.hint
        assert get(follow(error.hint, desk), f"{server.url}/x") == b"content"


def test_an_authority_of_one_registry_is_no_authority_of_another(
    authority: trustme.CA, desk: Path
) -> None:
    with (
        serve(authority.issue_cert("127.0.0.1")) as one,
        serve(authority.issue_cert("127.0.0.1")) as other,
    ):
        transport = client(desk, Host(one.name, authorities=str(desk / "CA.crt")))
        assert get(transport, f"{one.url}/x") == b"content"
        assert "signed by nobody" in str(refused(transport, f"{other.url}/x"))


def test_a_registry_with_an_authority_of_its_own_has_no_other(
    authority: trustme.CA, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the system's, any of which could issue a certificate for any name."""
    monkeypatch.setenv("SSL_CERT_FILE", str(desk / "CA.crt"))
    other = desk / "other.crt"
    trustme.CA().cert_pem.write_to_path(other)
    with serve(authority.issue_cert("127.0.0.1")) as server:
        assert get(client(desk), f"{server.url}/x") == b"content"
        error = refused(client(desk, Host(server.name, authorities=str(other))), f"{server.url}/x")
        assert f"(trusted: only {other})" in str(error)
        added = client(
            desk, Host(server.name, authorities=str(other)), ca_file=str(desk / "CA.crt")
        )
        assert get(added, f"{server.url}/x") == b"content"


@pytest.mark.parametrize(
    ("since", "until", "words"),
    [(-9, -1, "expired"), (1, 9, "not valid yet")],
)
def test_a_certificate_out_of_its_days(
    authority: trustme.CA, desk: Path, since: int, until: int, words: str
) -> None:
    now = datetime.now(UTC)
    first, last = now + timedelta(days=since), now + timedelta(days=until)
    certificate = authority.issue_cert("127.0.0.1", not_before=first, not_after=last)
    with serve(certificate) as server:
        error = refused(client(desk, ca_file=str(desk / "CA.crt")), f"{server.url}/x")
    assert f"is {words}" in str(error)
    assert f"valid {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC" in str(error)
    assert "clock of this machine" in error.hint


@pytest.mark.parametrize("name", [NAME, "127.0.0.9"])
def test_a_certificate_for_another_name(authority: trustme.CA, desk: Path, name: str) -> None:
    """A name, or an address that is not the one we went to: an IP SAN is missing."""
    with serve(authority.issue_cert(name)) as server:
        ca_file = str(desk / "CA.crt")
        error = refused(client(desk, ca_file=ca_file), f"{server.url}/x")
        assert "is not for '127.0.0.1', the name that we expected" in str(error)
        assert f"for {name}, valid" in str(error)
        assert "ca:" not in error.hint
        host = Host(server.name, server_name=name)
        assert get(client(desk, host, ca_file=ca_file), f"{server.url}/x") == b"content"
        wrong = Host(server.name, server_name="other.example", where="r.yaml:7")
        error = refused(client(desk, wrong, ca_file=ca_file), f"{server.url}/x")
        assert "is not for 'other.example'" in str(error)
        assert error.hint.startswith(f"add to the entry at r.yaml:7: serverName: {name}; ")


def test_a_certificate_without_any_name(desk: Path) -> None:
    certificate, key = self_signed(None)
    with serve_files(desk, certificate, key) as server:
        error = refused(client(desk, ca_file=str(desk / "server.crt")), f"{server.url}/x")
    assert "for no name at all" in str(error)
    assert "subjectAltName" in error.hint


def test_a_server_that_does_not_know_the_name(authority: trustme.CA, desk: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME).configure_cert(context)
    context.sni_callback = lambda _, name, __: (
        None if name == NAME else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
    )
    with Registry(tls=context) as server:
        server.static["/x"] = b"content"
        ca, where = str(desk / "CA.crt"), f"https://localhost:{server.port}/x"
        error = refused(client(desk, ca_file=ca), where)
        assert "it knows no server called 'localhost'" in str(error)
        assert "serverName: NAME" in error.hint
        host = Host(f"localhost:{server.port}", ca, server_name=NAME)
        assert get(client(desk, host), where) == b"content"


def test_a_certificate_that_signs_itself(desk: Path) -> None:
    certificate, key = self_signed("127.0.0.1")
    with serve_files(desk, certificate, key) as server:
        error = refused(client(desk), f"{server.url}/x")
        assert "issued by itself" in str(error)
        assert "CA.crt, beside it, is the certificate that it shows" in error.hint
        (desk / "CA.crt").write_bytes(certificate)
        assert get(follow(error.hint, desk), f"{server.url}/x") == b"content"


@pytest.mark.parametrize("login", ["", "me:s3cr3t@"])
def test_what_a_proxy_lets_us_see_is_shown(authority: trustme.CA, desk: Path, login: str) -> None:
    """Proxies that look into TLS show a certificate of their own: whose, is all that helps."""
    asked: list[bytes] = []

    def tunnel(listener: socket.socket, port: int) -> None:
        for _ in range(2):
            near, _address = listener.accept()
            request = b""
            while not request.endswith(b"\r\n\r\n"):
                request += near.recv(4096)
            asked.append(request)
            with near, socket.create_connection(("127.0.0.1", port)) as far:
                near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                back = threading.Thread(target=relay, args=(far, near))
                back.start()
                relay(near, far)
                back.join()

    with serve(authority.issue_cert(NAME)) as server, socket.create_server(("", 0)) as listener:
        thread = threading.Thread(target=tunnel, args=(listener, server.port))
        thread.start()
        proxies = Proxies(https=f"http://{login}127.0.0.1:{listener.getsockname()[1]}")
        error = refused(client(desk, proxies=proxies), f"https://{NAME}/x")
        thread.join()
    assert f"for {NAME}, valid" in str(error)
    assert "s3cr3t" not in str(error) + error.hint
    assert all(request.startswith(f"CONNECT {NAME}:443 ".encode()) for request in asked)
    assert all((b"Basic " in request) == bool(login) for request in asked)


def test_an_authority_need_not_be_a_root(authority: trustme.CA, desk: Path) -> None:
    """What is named is trusted, though its issuer is not here and the server sends no chain."""
    between = authority.create_child_ca()
    leaf = between.issue_cert("127.0.0.1")
    (desk / "leaf.pem").write_bytes(leaf.cert_chain_pems[0].bytes())
    (desk / "leaf.key").write_bytes(leaf.private_key_pem.bytes())
    (desk / "between.crt").write_bytes(between.cert_pem.bytes())
    with serve_files(desk, (desk / "leaf.pem").read_bytes(), (desk / "leaf.key").read_bytes()) as s:
        error = refused(client(desk), f"{s.url}/x")
        assert "unable to get local issuer certificate" in str(error)
        host = Host(s.name, authorities=str(desk / "between.crt"))
        assert get(client(desk, host), f"{s.url}/x") == b"content"


def test_the_server_name_is_what_the_handshake_asks_for(authority: trustme.CA, desk: Path) -> None:
    """Several registries behind one address are told apart by it."""
    asked: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME).configure_cert(context)
    context.sni_callback = lambda _, name, __: asked.append(name)
    with Registry(tls=context) as server:
        server.static["/x"] = b"content"
        host = Host(server.name, authorities=str(desk / "CA.crt"), server_name=NAME)
        assert get(client(desk, host), f"{server.url}/x") == b"content"
        assert server.requests[0].headers["host"] == server.name
    assert asked == [NAME]


def test_a_name_that_nobody_resolves_is_reached_by_its_address(
    authority: trustme.CA, desk: Path
) -> None:
    with serve(authority.issue_cert(NAME)) as server:
        host = Host(NAME, authorities=str(desk / "CA.crt"), connect=server.name)
        assert get(client(desk, host), f"https://{NAME}/x") == b"content"
        assert server.requests[0].headers["host"] == NAME
        plain = Host("other.example", plain=True, connect=server.name)
        assert "speaks TLS" in str(refused(client(desk, plain), "http://other.example/x"))


def test_an_address_to_connect_to_goes_past_the_proxy(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert(NAME)) as server:
        host = Host(NAME, authorities=str(desk / "CA.crt"), connect=server.name)
        proxies = Proxies(https="http://127.0.0.1:9")
        assert get(client(desk, host, proxies=proxies), f"https://{NAME}/x") == b"content"


def test_nothing_listens_at_the_address(desk: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(Unavailable, match=r"no connection: .*refused"):
        get(client(desk, Host(NAME, connect=place)), f"https://{NAME}/x")


def test_an_address_to_connect_to_is_held_against_the_list_of_allowed_registries(
    authority: trustme.CA, desk: Path
) -> None:
    with serve(authority.issue_cert(NAME)) as server:
        host = Host(NAME, authorities=str(desk / "CA.crt"), connect=server.name)
        transport = client(desk, host, allowed=("10.0.0.0/8",))
        with pytest.raises(Rejected, match=r"leads to 127\.0\.0\.1"):
            get(transport, f"https://{NAME}/x")
        assert not server.requests


# client certificates


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_certificate_is_wanted(
    authority: trustme.CA, desk: Path, version: ssl.TLSVersion
) -> None:
    """In TLS 1.3 the alert comes after the handshake, when the answer is read."""
    leaf = authority.issue_cert("127.0.0.1")
    with serve(leaf, wants=authority, maximum_version=version) as server:
        ca = str(desk / "CA.crt")
        error = refused(client(desk, Host(server.name, authorities=ca)), f"{server.url}/x")
        assert "want" in str(error)
        assert "client certificate" in str(error)
        assert "clientCertificate: client.crt, clientKey: client.key" in error.hint
        host = Host(server.name, ca, certificate=f"{desk}/client.crt", key=f"{desk}/client.key")
        assert get(client(desk, host), f"{server.url}/x") == b"content"


def test_a_client_certificate_that_the_server_does_not_accept(
    authority: trustme.CA, desk: Path
) -> None:
    with serve(authority.issue_cert("127.0.0.1"), wants=trustme.CA()) as server:
        host = Host(
            server.name,
            str(desk / "CA.crt"),
            certificate=f"{desk}/client.crt",
            key=f"{desk}/client.key",
        )
        error = refused(client(desk, host), f"{server.url}/x")
    assert f"does not accept our certificate {desk}/client.crt (tlsv1 alert unknown ca)" in str(
        error
    )
    assert f"-in {desk}/client.crt" in error.hint


def test_a_server_that_hangs_up_instead_of_saying_why(authority: trustme.CA, desk: Path) -> None:
    """The alert can be lost when a connection ends: then we look once more, and see it."""
    leaf = authority.issue_cert("127.0.0.1")
    ca, ours = str(desk / "CA.crt"), (f"{desk}/client.crt", f"{desk}/client.key")
    with serve(leaf, wants=authority) as server, serve(leaf, wants=trustme.CA()) as other:
        for _ in range(20):
            error = refused(client(desk, Host(server.name, ca)), f"{server.url}/x")
            assert "wants a client certificate" in str(error)
            error = refused(client(desk, Host(other.name, ca, *ours)), f"{other.url}/x")
            assert "does not accept our certificate" in str(error)


def test_keys_that_cannot_be_used(authority: trustme.CA, desk: Path) -> None:
    other = authority.issue_cert("somebody@corp.example")
    other.private_key_pem.write_to_path(desk / "other.key")
    (desk / "bad.crt").write_text("not a certificate")
    locked = serialization.load_pem_private_key((desk / "client.key").read_bytes(), None)
    (desk / "locked.key").write_bytes(
        locked.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    for certificate, key, words in (
        ("client.crt", "other.key", "other.key is not that of the certificate .*client.crt"),
        ("client.crt", "locked.key", "locked.key is encrypted"),
        ("client.crt", "missing.key", "missing.key cannot be read: No such file"),
        ("missing.crt", "client.key", "missing.crt cannot be read: No such file"),
        ("bad.crt", "client.key", "bad.crt and .*client.key cannot be used: they hold nothing in "),
    ):
        host = Host("r.example", certificate=f"{desk}/{certificate}", key=f"{desk}/{key}")
        with pytest.raises(Misuse, match=words):
            get(client(desk, host), "https://r.example/x")


def test_a_client_certificate_goes_to_its_registry_alone(authority: trustme.CA, desk: Path) -> None:
    leaf = authority.issue_cert("127.0.0.1")
    with serve(leaf, wants=authority) as one, serve(leaf, wants=authority) as other:
        ca = str(desk / "CA.crt")
        host = Host(one.name, ca, f"{desk}/client.crt", f"{desk}/client.key")
        transport = client(desk, host, ca_file=ca)
        one.switches.faults = [Fault("/x", 307, {"Location": f"{other.url}/x"})]
        assert "client certificate" in str(refused(transport, f"{one.url}/x"))
        assert not other.requests


# plain HTTP and TLS


def test_plain_http_is_spoken_where_the_file_says_so(desk: Path) -> None:
    with Registry() as server:
        error = refused(client(desk), f"https://{server.name}/x")
        assert "the server speaks plain HTTP" in str(error)
        assert f"--plain-http {server.name}" in error.hint
        transport = client(desk, Host("r.example:5000", plain=True))
        assert transport.base("r.example:5000").text == "http://r.example:5000/v2/"
        assert transport.base("r.example").scheme == "https"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_plain_http_to_a_server_that_speaks_tls(
    authority: trustme.CA, desk: Path, version: ssl.TLSVersion
) -> None:
    for wants in (None, authority):
        leaf = authority.issue_cert("127.0.0.1")
        with serve(leaf, wants=wants, maximum_version=version) as server:
            error = refused(client(desk), f"http://{server.name}/x")
            assert "asked by plain HTTP, and the server speaks TLS" in str(error)
            assert follow(error.hint, desk).base(server.name).scheme == "https"


@pytest.mark.parametrize(
    ("host", "scheme"),
    [
        (Host("localhost:5000"), "http"),
        (Host("localhost:5000", plain=False), "https"),
        (Host("localhost:5000", authorities="x"), "https"),
        (Host("localhost:5000", server_name="x.example"), "https"),
        (Host("localhost:5000", certificate="x", key="y"), "https"),
    ],
)
def test_loopback_speaks_tls_when_the_file_says_anything_of_it(host: Host, scheme: str) -> None:
    assert client(Path(), host).base("localhost:5000").scheme == scheme


def test_a_cut_after_the_first_answer_is_a_cut(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert("127.0.0.1")) as server:
        transport = client(desk, ca_file=str(desk / "CA.crt"))
        assert get(transport, f"{server.url}/x") == b"content"
        server.switches.faults = [Fault("/x", act="reset")]
        before = server.accepted
        with pytest.raises(Unavailable, match="was cut"):
            get(transport, f"{server.url}/x")
        assert server.accepted - before <= 1, "nobody looks for another reason then"


def test_an_old_version_of_tls(desk: Path) -> None:
    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"\x15\x03\x01\x00\x02\x02\x46")  # alert: protocol version

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/x"
        assert "no version of TLS that we do" in str(refused(client(desk), url))
        thread.join()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<title>400 No required SSL certificate was sent</title>", "clientCertificate"),
        (b"<title>400 The SSL certificate error</title>", "does not accept our"),
        (b"<title>400 The plain HTTP request was sent to HTTPS port</title>", "plainHTTP: false"),
        (b"Client sent an HTTP request to an HTTPS server.\n", "plainHTTP: false"),
    ],
)
def test_what_a_proxy_before_a_registry_says_by_a_page(body: bytes, words: str) -> None:
    """nginx lets the handshake pass, and answers 400 (ngx_http_special_response.c)."""
    with Registry() as server:
        server.switches.faults = [Fault("manifests", 400, {"Content-Type": "text/html"}, body)]
        store = Registries().store(Reference.parse(f"{server.name}/a:v1"))
        with pytest.raises(StoreError) as caught:
            store.resolve("v1")
    assert words in caught.value.hint


def test_a_registry_that_does_not_know_of_the_tls_before_it(
    authority: trustme.CA, desk: Path
) -> None:
    """It names where to upload by http://; that is read as the place where we reach it."""
    with serve(authority.issue_cert("127.0.0.1")) as server:
        server.switches.location = f"http://{server.name}"
        registries = Registries(client(desk, ca_file=str(desk / "CA.crt")))
        store = registries.store(Reference.parse(f"{server.name}/a"), writes=True)
        made = artifact(b"content")
        store.push(made.manifest.layers[0], made)
        assert server.lines("^PUT /v2/a/blobs/uploads/")


# certs.d


def test_certs_d_holds_authorities_and_our_certificate(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert("127.0.0.1"), wants=authority) as server:
        place = desk / "certs.d" / server.name
        place.mkdir(parents=True)
        (place / "corp.crt").write_bytes((desk / "CA.crt").read_bytes())
        certs = (str(desk / "certs.d"),)
        error = refused(client(desk, certs=certs), f"{server.url}/x")
        assert f"+ {place}/corp.crt)" in str(error)
        assert f"client.cert and client.key into {place}" in error.hint
        (place / "client.cert").write_bytes((desk / "client.crt").read_bytes())
        with pytest.raises(Misuse, match=r"client\.cert has no key beside it"):
            get(client(desk, certs=certs), f"{server.url}/x")
        (place / "client.key").write_bytes((desk / "client.key").read_bytes())
        assert get(client(desk, certs=certs), f"{server.url}/x") == b"content"
        (place / "client.cert").rename(place / "client.crt")
        with pytest.raises(Misuse, match=r"client\.key has no certificate beside it"):
            get(client(desk, certs=certs), f"{server.url}/x")


def test_the_settings_come_before_certs_d(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert("127.0.0.1")) as server:
        place = desk / "certs.d" / server.name
        place.mkdir(parents=True)
        (place / "ca.crt").write_bytes((desk / "CA.crt").read_bytes())
        trustme.CA().cert_pem.write_to_path(desk / "other.crt")
        host = Host(server.name, authorities=str(desk / "other.crt"))
        error = refused(client(desk, host, certs=(str(desk / "certs.d"),)), f"{server.url}/x")
        assert f"(trusted: only {desk}/other.crt)" in str(error)


# what a certificate says


def test_a_certificate_is_a_strangers_word() -> None:
    certificate, _ = self_signed("a.example", subject="evil\x1b[31m\u202e" + "x" * 40)
    found = Presented.parse(der(certificate))
    assert str(found).isprintable()
    (name,) = Presented.parse(der(self_signed("a." * 80 + "example")[0])).names
    assert len(name) == 121
    with pytest.raises(IntegrityError):
        Presented.parse(b"\x30\x00")


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=6))
@settings(max_examples=500, deadline=None)
def test_hostile_certificates_are_shown_or_are_none(changes: list[tuple[int, int]]) -> None:
    made = bytearray(CERTIFICATE)
    for place, value in changes:
        made[place % len(made)] = value
    try:
        said = str(Presented.parse(bytes(made)))
    except IntegrityError:
        return
    assert said.isprintable()
    assert len(said) < 2000


def test_versions_that_there_are_none_of() -> None:
    begin = CERTIFICATE.index(b"\xa0\x03\x02\x01\x02")  # [0] EXPLICIT INTEGER 2 (v3)
    with pytest.raises(IntegrityError):
        Presented.parse(CERTIFICATE[: begin + 4] + b"\x09" + CERTIFICATE[begin + 5 :])


@pytest.mark.parametrize(
    ("names", "name", "good"),
    [
        (("a.example",), "a.example", True),
        (("A.example",), "a.example", True),
        (("*.example",), "a.example", True),
        (("*.example",), "a.b.example", False),
        (("*.example",), "example", False),
        (("127.0.0.1",), "127.0.0.1", True),
        ((), "a.example", False),
    ],
)
def test_whom_a_certificate_is_for(names: tuple[str, ...], name: str, good: bool) -> None:  # noqa: FBT001 - a table of cases
    assert Presented("s", "i", names, "", "").is_for(name) == good


CERTIFICATE = x509.load_pem_x509_certificate(
    trustme.CA().issue_cert("a.example", "127.0.0.1", "::1").cert_chain_pems[0].bytes()
).public_bytes(serialization.Encoding.DER)


def der(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)


def self_signed(name: str | None, subject: str = "registry") -> tuple[bytes, bytes]:
    """A certificate that signs itself, and its key, in PEM form; without a SAN if no `name`."""
    key = ec.generate_private_key(ec.SECP256R1())
    whose = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject, _validate=False)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(whose, whose, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )
    if name is not None:
        general: x509.GeneralName
        try:
            general = x509.IPAddress(ip_address(name))
        except ValueError:
            general = x509.DNSName(name)
        builder = builder.add_extension(x509.SubjectAlternativeName([general]), critical=False)
    made = builder.sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


@contextmanager
def serve_files(desk: Path, certificate: bytes, key: bytes) -> Iterator[Registry]:
    (desk / "server.crt").write_bytes(certificate)
    (desk / "server.key").write_bytes(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(desk / "server.crt", desk / "server.key")
    with Registry(tls=context) as running:
        running.static["/x"] = b"content"
        yield running
