"""What one registry needs that others do not: an entry of registries.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Self

from ocipack.errors import Misuse, StoreError
from ocipack.stores.http.url import Url

HUB = "docker.io"
HUB_NAMES = frozenset({HUB, "index.docker.io", "registry-1.docker.io"})
"""Docker Hub by any of its names: one registry, whose API is at the last of them."""

MOST = 64
"""Requests that one registry may be asked at once, and mirrors that one may have."""

FASTEST = 10_000
"""Requests a second that a limit may say: more is none."""

_PATH = r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
_NAME = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"


def place(registry: str) -> str:
    """One spelling for each registry: lower case, no port 443, Docker Hub by its first name.

    Misuse if it is no `host[:port]`.
    """
    try:
        url = Url.of("https", registry, "/")
    except StoreError:
        url = None
    if url is None or url.path != "/" or url.query or "/" in registry or "#" in registry:
        raise Misuse(f"not a registry: {registry[:200]!r}", hint="write host or host:port")
    return HUB if url.netloc in HUB_NAMES else url.netloc


@dataclass(frozen=True, slots=True)
class Mirror:
    """Where a registry's content may be read first: `registry`, below `prefix` there.

    With `tags` it is believed about what tags point at, and without only about content, which
    its digest proves.
    """

    registry: str
    prefix: str = ""
    tags: bool = False

    def __post_init__(self) -> None:
        if self.prefix and not re.fullmatch(_PATH, self.prefix):
            raise Misuse(f"not a path of repositories: {self.prefix[:200]!r}")

    @classmethod
    def parse(cls, text: str, *, tags: bool = False) -> Self:
        """Read `host[:port][/prefix]`."""
        registry, slash, prefix = text.partition("/")
        if slash and not prefix:
            raise Misuse(f"not a mirror: {text[:200]!r}", hint="write host[:port] or a path below")
        return cls(place(registry), prefix, tags)

    def repository(self, name: str) -> str:
        """What the repository `name` is called there."""
        return f"{self.prefix}/{name}" if self.prefix else name


@dataclass(frozen=True, slots=True)
class Host:
    """How one registry is reached; what is empty is as for any other.

    `name` is spelt as `place` does. `authorities` is a file of CA certificates, the only ones
    that are believed there; `certificate` and `key` are files with our own. `plain` says plain
    HTTP, or, if false, TLS even on loopback. `connect` is the address (`IP[:port]`) to connect
    to instead of looking `name` up, `server_name` what its certificate must be for and what the
    handshake asks for. `mirrors` are read before it. At most `concurrency` requests are made at
    once, and `rate` a second; 0 is no limit. `realms` are token hosts (`host[:port]`) that may
    have its credentials. `where` says where the entry stands, and `lines` where its fields do.
    """

    name: str
    authorities: str = ""
    certificate: str = ""
    key: str = ""
    plain: bool | None = None
    connect: str = ""
    server_name: str = ""
    mirrors: tuple[Mirror, ...] = ()
    concurrency: int = 0
    rate: int = 0
    realms: frozenset[str] = frozenset()
    where: str = ""
    lines: tuple[tuple[str, int], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if self.name != place(self.name):
            raise Misuse(f"write {place(self.name)} for {self.name}")
        if bool(self.certificate) != bool(self.key):
            lacking = "clientKey" if self.certificate else "clientCertificate"
            raise Misuse(f"{self.name} has no {lacking}", hint="the two go together")
        if self.plain and (self.authorities or self.certificate or self.server_name):
            raise Misuse(
                f"{self.name} is asked by plain HTTP, where no certificate is of any use",
                hint="take plainHTTP out, or ca, clientCertificate, clientKey and serverName",
            )
        if self.connect:
            _split(self.connect)
        if self.server_name and not _is_server_name(self.server_name):
            raise Misuse(
                f"not the name of a server: {self.server_name[:200]!r}",
                hint="write a name or address as the certificate has it, in lower case, no port",
            )
        if any(mirror.registry == self.name and not mirror.prefix for mirror in self.mirrors):
            raise Misuse(f"{self.name} cannot be a mirror of itself")
        if not 0 <= self.concurrency <= MOST or len(self.mirrors) > MOST:
            raise Misuse(f"{self.name}: at most {MOST} requests at once, and {MOST} mirrors")
        if not 0 <= self.rate <= FASTEST:
            raise Misuse(f"{self.name}: at most {FASTEST} requests a second")

    @property
    def is_secure(self) -> bool:
        """Whether it is said that TLS is spoken there."""
        said = self.authorities or self.certificate or self.server_name
        return self.plain is False or bool(said)

    def dialled(self, port: int) -> tuple[str, int] | None:
        """The address and port to connect to for `port`; None to look the name up.

        Misuse if `connect` is malformed.
        """
        if not self.connect:
            return None
        address, said = _split(self.connect)
        return address, said or port


def _split(text: str) -> tuple[str, int]:
    """Read `IP[:port]`, `[IP]:port`; port 0 if there is none."""
    match = re.fullmatch(r"\[([^\[\]]*)\](?::([0-9]{1,5}))?|([^:]*)(?::([0-9]{1,5}))?", text)
    address, port = (match[1] or match[3], match[2] or match[4]) if match else (text, None)
    try:
        found = str(ip_address(address))
        if port is None or 0 < int(port) < 1 << 16:
            return found, int(port or 0)
    except ValueError:
        pass
    raise Misuse(
        f"not an address to connect to: {text[:200]!r}",
        hint="write IP or IP:port, [IP]:port for IPv6; names are looked up as ever",
    )


def _is_server_name(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return len(text) < 254 and re.fullmatch(_NAME, text) is not None  # noqa: PLR2004 - RFC 1035
    return True
