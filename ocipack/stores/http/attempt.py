"""What was being tried: enough to explain a failure, and no secret."""

from __future__ import annotations

from dataclasses import dataclass

from ocipack.stores.http.url import Url


@dataclass(frozen=True, slots=True)
class Places:
    """Where a person can say more about a host.

    `file` is registries.yaml, there already if `exists`; `entry` its line about this host, if
    there is one, and `lines` those of its fields; `near` is the name of a host that may have been
    meant for this one, whose entry is at `near_at`; `certs` the certs.d directory of this host
    that is looked into first. `listed` says that plain HTTP was asked for by --plain-http.
    """

    file: str = "registries.yaml"
    exists: bool = False
    entry: str = ""
    certs: str = ""
    lines: tuple[tuple[str, int], ...] = ()
    near: str = ""
    near_at: str = ""
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request: to `url`, with these CAs, waiting so long (seconds).

    `expected` is the name that the certificate must have, if it is not the host's own, and
    `certificate` the file of ours that was shown, if there was one. `files` are the CA files that
    somebody named. `plain_first` is the address that was asked by plain HTTP before.
    """

    method: str
    url: Url
    authorities: str
    connect_timeout: float
    idle_timeout: float
    proxied: bool = False
    server_name: str = ""
    certificate: str = ""
    places: Places = Places()
    files: tuple[str, ...] = ()
    plain_first: Url | None = None

    @property
    def what(self) -> str:
        """Method and address, as every message begins."""
        asked = f"{self.method} {(self.plain_first or self.url).shown}"
        if self.plain_first is not None:
            return f"{asked}: asked by plain HTTP, and the server speaks TLS"
        return asked

    @property
    def expected(self) -> str:
        """The name that the server's certificate must have."""
        return self.server_name or self.url.host
