"""What a newcomer is told: one message leads to a registry, and what is there is changed."""

from __future__ import annotations

import secrets
import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from registry import Fault, Registry, Switches
from secure import NAME, client, door, follow, get, hand_out, refused, serve

from ocipack.errors import Misuse, StoreError
from ocipack.stores.auth.config import Credentials
from ocipack.stores.hosts import load
from ocipack.stores.http.host import Host
from ocipack.stores.http.settings import Proxies
from ocipack.stores.http.transport import Transport
from ocipack.stores.registry.client import Client
from ocipack.stores.registry.probe import Outcome, reading
from ocipack.trust.keys import PrivateKey

HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistries:\n"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA(organization_name="Corp")


@pytest.fixture
def desk(tmp_path: Path, authority: trustme.CA) -> Path:
    return hand_out(authority, tmp_path)


def settled(desk: Path, *lines: str) -> Transport:
    """A client whose settings file has these lines about registries, from line 4 on."""
    file = desk / "registries.yaml"
    file.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return client(desk, *load(file))


# plain HTTP where TLS is spoken


def test_one_message_leads_from_plain_http_to_a_registry(authority: trustme.CA, desk: Path) -> None:
    """Loopback is asked by plain HTTP; Go's servers answer 400, and others hang up."""
    with serve(authority.issue_cert(NAME), wants=authority) as server, door(server) as name:
        for where in (name, server.name):
            (desk / "registries.yaml").unlink(missing_ok=True)
            error = refused(client(desk), f"http://{where}/x")
            assert str(error).startswith(
                f"GET http://{where}/x: asked by plain HTTP, and the server speaks TLS: "
            )
            assert f"for {NAME}, valid" in str(error)
            mended = follow(error.hint, desk)
            assert get(mended, f"{mended.base(where).scheme}://{where}/x") == b"content"
            assert "plainHTTP" not in error.hint, "the rest says it already"
            assert "--plain-http" not in error.hint, "nobody gave it"


def test_a_server_whose_certificate_is_believed_needs_one_word(
    authority: trustme.CA, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(desk / "CA.crt"))
    with serve(authority.issue_cert("127.0.0.1")) as server, door(server) as name:
        error = refused(client(desk), f"http://{name}/x")
        assert str(error).endswith("asked by plain HTTP, and the server speaks TLS")
        mended = follow(error.hint, desk)
        assert mended.base(name).scheme == "https"
        assert get(mended, f"https://{name}/x") == b"content"
        said = refused(client(desk, plain=frozenset({name})), f"http://{name}/x")
        assert said.hint.endswith(f"; leave out --plain-http {name}")


def test_an_entry_that_says_plain_http_is_changed(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert("127.0.0.1")) as server, door(server) as name:
        transport = settled(desk, f"- host: {name}", "  plainHTTP: true")
        error = refused(transport, f"http://{name}/x")
        file = desk / "registries.yaml"
        assert error.hint.startswith(
            f"in {file} change plainHTTP to false (line 5); "
            f"add to the entry at {file}:4: ca: CA.crt; "
        )
        mended = settled(desk, f"- host: {name}", "  plainHTTP: false", "  ca: CA.crt")
        assert get(mended, f"https://{name}/x") == b"content"


def test_only_a_handshake_is_sent_to_find_that_out(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert("127.0.0.1")) as server, door(server) as name:
        refused(client(desk), f"http://{name}/x")
        assert not server.requests


def test_a_registry_that_speaks_plain_http_may_answer_400(desk: Path) -> None:
    with Registry(Switches(faults=[Fault("/x", 400, {}, b"no", times=2)])) as server:
        server.static["/x"] = b"content"
        transport = client(desk)
        assert get(transport, f"{server.url}/x") == b"no"
        before = server.accepted
        assert get(transport, f"{server.url}/x") == b"no"
        assert server.accepted == before, "it has answered: nobody looks for another reason"
        assert get(transport, f"{server.url}/x") == b"content"


def test_a_port_that_may_not_be_contacted_is_not_looked_at(
    authority: trustme.CA, desk: Path
) -> None:
    """By TLS the usual port is another one; the list of allowed registries holds there, too."""
    with serve(authority.issue_cert(NAME)) as server, door(server) as name:
        plain = Host(NAME, plain=True, connect=name)
        for allowed, seen in (((f"{NAME}:80",), 0), ((NAME,), 1)):
            transport = client(desk, plain, allowed=allowed)
            try:
                said = get(transport, f"http://{NAME}/x").decode()
            except StoreError as e:
                said = str(e)
            assert "HTTPS server" in said if not seen else "the server speaks TLS" in said
            assert bool(server.accepted) == bool(seen)


@pytest.mark.parametrize(("allowed", "looks"), [(f"{NAME}:80", False), (NAME, True)])
def test_nor_is_a_proxy_asked_for_it(desk: Path, allowed: str, looks: bool) -> None:  # noqa: FBT001 - a table of cases
    """Behind a proxy no address is seen that could be refused, so that the name has to be."""
    asked: list[bytes] = []

    def answer(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                with near:
                    asked.append(near.recv(65536).split(b" ")[0])
                    near.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
        transport = client(desk, proxies=Proxies(proxy, proxy), allowed=(allowed,))
        assert get(transport, f"http://{NAME}/x") == b""
        listener.shutdown(socket.SHUT_RDWR)
    assert (b"CONNECT" in asked) == looks


def test_a_check_of_a_registry_says_the_same(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert(NAME)) as server, door(server) as name:
        (found,) = reading(Client(client(desk), Credentials(), name))
        assert (found.name, found.outcome) == ("connection", Outcome.NO)
        assert "asked by plain HTTP, and the server speaks TLS" in found.detail
        assert follow(found.hint, desk).base(name).scheme == "https"


# what is in the file already


@pytest.mark.parametrize(
    "entry", ["127.0.0.1", "localhost:{port}", "127.0.0.1:9", "LOCALHOST:{port}"]
)
def test_an_entry_that_was_meant_is_named(authority: trustme.CA, desk: Path, entry: str) -> None:
    with serve(authority.issue_cert("127.0.0.1")) as server, door(server) as name:
        port = name.partition(":")[2]
        said = entry.format(port=port).lower()
        transport = settled(desk, f'- host: "{entry.format(port=port)}"', "  ca: CA.crt")
        error = refused(transport, f"http://{name}/x")
        file = desk / "registries.yaml"
        assert error.hint.startswith(
            f'the entry at {file}:4 is for {said}: make it host: "{name}", or add to '
            f'registries in {file}: - {{host: "{name}", ca: CA.crt}}; '
        )
        mended = settled(desk, f'- host: "{name}"', "  ca: CA.crt")
        assert get(mended, f"https://{name}/x") == b"content"


def test_an_entry_of_another_host_was_not_meant(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert("127.0.0.1")) as server:
        transport = settled(desk, "- host: other.example", "  ca: CA.crt")
        error = refused(transport, f"http://{server.name}/x")
        assert error.hint.startswith(f"add to registries in {desk}/registries.yaml: - {{host: ")


def test_fields_that_are_there_are_changed(authority: trustme.CA, desk: Path) -> None:
    """Added once more, they would be refused: a key given twice."""
    trustme.CA().cert_pem.write_to_path(desk / "other.crt")
    with serve(authority.issue_cert(NAME)) as server:
        lines = (f'- host: "{server.name}"', "  serverName: x.example", "  ca: other.crt")
        error = refused(settled(desk, *lines), f"{server.url}/x")
        assert error.hint.startswith(
            f"in {desk}/registries.yaml change ca to CA.crt (line 6) and "
            f"serverName to {NAME} (line 5); "
        )
        mended = settled(desk, lines[0], f"  serverName: {NAME}", "  ca: CA.crt")
        assert get(mended, f"{server.url}/x") == b"content"
        error = refused(settled(desk, lines[0], lines[1], "  ca: CA.crt"), f"{server.url}/x")
        assert error.hint.startswith(
            f"in {desk}/registries.yaml change serverName to {NAME} (line 5); "
        )


# what a CA file holds


def test_what_a_wrong_ca_file_holds_is_said(authority: trustme.CA, desk: Path) -> None:
    with serve(authority.issue_cert("127.0.0.1")) as server:
        for name, words in held(desk, authority).items():
            transport = settled(desk, f'- host: "{server.name}"', f"  ca: {name}")
            assert f"; {desk}/{name} holds {words}" in str(refused(transport, f"{server.url}/x"))
            given = client(desk, ca_file=str(desk / name))
            assert f"{name} holds {words}" in str(refused(given, f"{server.url}/x"))


def held(desk: Path, authority: trustme.CA) -> dict[str, str]:
    """Files that do not hold the CA, and what is said of each."""
    foreign, leaf = trustme.CA(), authority.issue_cert("me@corp.example")
    twin = namesake(authority)
    foreign.cert_pem.write_to_path(desk / "foreign.crt")
    (desk / "twin.crt").write_bytes(twin)
    leaf.cert_chain_pems[0].write_to_path(desk / "leaf.crt")
    (desk / "both.crt").write_bytes(foreign.cert_pem.bytes() + twin)
    (desk / "many.crt").write_bytes(foreign.cert_pem.bytes() * 5)
    same = f"{subject(twin)}, of the same name with another key ("
    other = subject(foreign.cert_pem.bytes())
    return {
        "foreign.crt": f"{other} (",
        "twin.crt": same,
        "leaf.crt": f"{subject(leaf.cert_chain_pems[0].bytes())}, which is no CA (",
        "both.crt": f"{other}, {same}",
        "many.crt": f"{other}, {other}, {other} and 2 more (",
    }


def subject(pem: bytes) -> str:
    return x509.load_pem_x509_certificate(pem).subject.rfc4514_string()


def namesake(authority: trustme.CA) -> bytes:
    """A CA of the same name with another key."""
    whose = x509.load_pem_x509_certificate(authority.cert_pem.bytes()).subject
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(whose, whose, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


# files that the settings name


def misuse(desk: Path, *lines: str) -> Misuse:
    with pytest.raises(Misuse) as caught:
        get(settled(desk, "- host: r.example", *lines), "https://r.example/x")
    return caught.value


@pytest.mark.parametrize("name", ["none.pem", "~/CA.crt"])
def test_a_file_that_is_not_there_is_named_where_it_is_named(desk: Path, name: str) -> None:
    file = desk / "registries.yaml"
    for lines, field, line in (
        ((f"  ca: {name}",), "ca", 5),
        (("  clientCertificate: client.crt", f"  clientKey: {name}"), "clientKey", 6),
        (("  clientKey: client.key", f"  clientCertificate: {name}"), "clientCertificate", 6),
    ):
        error = misuse(desk, *lines)
        assert f"{desk}/{name}" in str(error)
        assert "No such file or directory" in str(error)
        assert error.hint == (
            f"{field} at {file}:{line} names it; paths count from that file, and ~ is not expanded"
        )


@pytest.mark.parametrize(
    ("certificate", "key", "words", "hint"),
    [
        ("client.key", "client.crt", "a private key, and a certificate", "the wrong way round"),
        ("client.crt", "sign.key", "a certificate, and a key for signatures", "in PEM form"),
        ("client.crt", "client.crt", "a certificate, and a certificate", "in PEM form"),
        ("client.key", "client.key", "a private key, and a private key", "in PEM form"),
        ("both.pem", "sign.pub", "a certificate and a private key, and a public key", "PEM"),
    ],
)
def test_certificates_and_keys_that_are_something_else(
    desk: Path, certificate: str, key: str, words: str, hint: str
) -> None:
    hold(desk)
    error = misuse(desk, f"  clientCertificate: {certificate}", f"  clientKey: {key}")
    assert f"cannot be used: they hold {words}" in str(error)
    assert hint in error.hint
    assert "PEM lib" not in str(error)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("client.key", "a private key"),
        ("sign.key", "a key for signatures of content"),
        ("sign.pub", "a public key"),
        ("empty", "nothing in PEM form"),
    ],
)
def test_authorities_that_are_something_else(desk: Path, name: str, words: str) -> None:
    hold(desk)
    error = misuse(desk, f"  ca: {name}")
    assert str(error).endswith(f"/{name}: it holds {words}")
    assert "one or more certificates" in error.hint


def hold(desk: Path) -> None:
    """Files that are at hand beside those that are meant."""
    key = PrivateKey.generate(secrets.token_bytes)
    (desk / "sign.pub").write_bytes(key.public.pem)
    sealed = b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n"
    (desk / "sign.key").write_bytes(sealed + b"-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n")
    both = (desk / "client.crt").read_bytes() + (desk / "client.key").read_bytes()
    (desk / "both.pem").write_bytes(both)
    (desk / "empty").write_bytes(b"")
