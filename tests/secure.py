"""Registries behind TLS, and what whoever runs one hands out."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from registry import Registry, Switches

from ocipack.errors import StoreError, Unavailable
from ocipack.stores.hosts import load
from ocipack.stores.http.host import Host
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.settings import Settings
from ocipack.stores.http.transport import Transport
from ocipack.stores.http.url import Url

NAME = "registry.corp.example"

_HANDSHAKE = b"\x16"  # TLS: ContentType.handshake
_NOT_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"


def hand_out(authority: trustme.CA, folder: Path) -> Path:
    """Put into `folder` what its users get: CA.crt, client.crt and client.key."""
    authority.cert_pem.write_to_path(folder / "CA.crt")
    ours = authority.issue_cert("deployer@corp.example")
    ours.cert_chain_pems[0].write_to_path(folder / "client.crt")
    ours.private_key_pem.write_to_path(folder / "client.key")
    return folder


def serve(
    certificate: trustme.LeafCert, *, wants: trustme.CA | None = None, **how: Any
) -> Registry:
    """A registry behind TLS; it `wants` certificates of that CA, else none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if wants is not None:
        wants.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    for name, value in how.items():
        setattr(context, name, value)
    running = Registry(Switches(), tls=context)
    running.static["/x"] = b"content"
    return running


def client(desk: Path, *hosts: Host, **settings: Any) -> Transport:
    file = str(desk / "registries.yaml")
    chosen = Settings(hosts={host.name: host for host in hosts}, file=file, **settings)
    return Transport(chosen, patience=Patience(4, 60, sleep=lambda _: None))


def get(transport: Transport, url: str) -> bytes:
    return transport.exchange("GET", Url.parse(url), headers={}).read(100)


def refused(transport: Transport, url: str) -> StoreError:
    with pytest.raises(StoreError) as caught:
        get(transport, url)
    assert caught.value.exit_code == 3
    assert not isinstance(caught.value, Unavailable), "another try does not help"
    return caught.value


def follow(hint: str, desk: Path) -> Transport:
    """Do what a hint says, to the letter: paste its one line into the file that it names."""
    place, _, rest = hint.removeprefix("write into ").partition(": ")
    assert Path(place).parent == desk
    Path(place).write_text(rest.split("; ")[0])
    return client(desk, *load(Path(place)))


@contextmanager
def door(server: Registry) -> Iterator[str]:
    """A port before `server` that answers plain HTTP as Go's net/http does; its `host:port`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_doorman, args=(listener, server.port), daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def _doorman(listener: socket.socket, port: int) -> None:
    with suppress(OSError):
        while True:
            near, _ = listener.accept()
            threading.Thread(target=_let_in, args=(near, port), daemon=True).start()


def _let_in(near: socket.socket, port: int) -> None:
    with near, suppress(OSError):
        if near.recv(1, socket.MSG_PEEK) != _HANDSHAKE:
            near.recv(65536)
            near.sendall(_NOT_TLS)
            return
        with socket.create_connection(("127.0.0.1", port)) as far:
            back = threading.Thread(target=relay, args=(far, near))
            back.start()
            relay(near, far)
            back.join()


def relay(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what comes until it ends."""
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
