"""What was being tried: enough to explain a failure, and no secret."""

from __future__ import annotations

from dataclasses import dataclass

from ocipack.stores.http.url import Url


@dataclass(frozen=True, slots=True)
class Places:
    """Where a person can say more about a host.

    `file` is registries.yaml, there already if `exists`; `entry` its line about this host, if
    there is one; `certs` the certs.d directory of this host that is looked into first.
    """

    file: str = "registries.yaml"
    exists: bool = False
    entry: str = ""
    certs: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request: to `url`, with these CAs, waiting so long (seconds).

    `expected` is the name that the certificate must have, if it is not the host's own, and
    `certificate` the file of ours that was shown, if there was one.
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

    @property
    def what(self) -> str:
        """Method and address, as every message begins."""
        return f"{self.method} {self.url.shown}"

    @property
    def expected(self) -> str:
        """The name that the server's certificate must have."""
        return self.server_name or self.url.host
