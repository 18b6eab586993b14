"""Addresses of requests (RFC 3986), and how they may be shown."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Self
from urllib.parse import parse_qsl, quote, urlsplit

from ocipack.errors import StoreError

DEFAULT_PORTS = {"http": 80, "https": 443}

_HARMLESS = frozenset({"artifactType", "digest", "from", "last", "mount", "n", "scope", "service"})
"""Query members that may be shown; any other may be a presigned secret or upload state."""

_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9.])?|[0-9a-f:.]+")
_TARGET = re.compile(r"[\x21-\x7e]*")
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Url:
    """An absolute http or https address: lower-case `host` without brackets, explicit `port`.

    User information and fragments are not in the type, so they reach neither a wire nor a log.
    """

    scheme: str
    host: str
    port: int
    path: str = "/"
    query: str = ""

    def __post_init__(self) -> None:
        if self.scheme not in DEFAULT_PORTS or not _HOST.fullmatch(self.host):
            raise StoreError(f"not an address that we may ask: {self.shown[:_SHOWN]!r}")
        if not self.path.startswith("/") or not _TARGET.fullmatch(self.path + self.query):
            raise StoreError(f"not an address that we may ask: {self.shown[:_SHOWN]!r}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an absolute address; StoreError if it is malformed or carries credentials."""
        try:
            parts = urlsplit(text)
            port = parts.port
            host = parts.hostname or ""
        except ValueError as e:
            raise StoreError("a server named an address that cannot be read") from e
        if parts.username is not None or parts.password is not None:
            raise StoreError(f"an address with credentials in it is refused (host {host!r})")
        scheme = parts.scheme.lower()
        return cls(
            scheme,
            host.lower(),
            DEFAULT_PORTS.get(scheme, 0) if port is None else port,
            parts.path or "/",
            parts.query,
        )

    @classmethod
    def of(cls, scheme: str, registry: str, path: str, query: str = "") -> Self:
        """Name `path` at `registry`, which is `host` or `host:port` as references write it."""
        return cls.parse(f"{scheme}://{registry}{path}{'?' + query if query else ''}")

    def join(self, location: str) -> Self:
        """Read what a server answered as Location or Link, relative to this address."""
        if location.startswith("//"):
            location = f"{self.scheme}:{location}"
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", location):
            return type(self).parse(location)
        if not location.startswith(("/", "?")):
            location = self.path.rpartition("/")[0] + "/" + location
        if location.startswith("?"):
            location = self.path + location
        path, _, query = location.partition("#")[0].partition("?")
        return type(self)(self.scheme, self.host, self.port, path, query)

    def plus(self, name: str, value: str) -> Self:
        """Add one query member, whatever the query already holds."""
        member = f"{name}={quote(value, safe=':')}"
        query = f"{self.query}&{member}" if self.query else member
        return type(self)(self.scheme, self.host, self.port, self.path, query)

    @property
    def origin(self) -> tuple[str, str, int]:
        """What credentials and certificates belong to."""
        return (self.scheme, self.host, self.port)

    @property
    def netloc(self) -> str:
        """`host[:port]`, brackets round IPv6, without the scheme's own port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if DEFAULT_PORTS.get(self.scheme) == self.port else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        """What stands in the request line."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def text(self) -> str:
        """The whole address. It may hold a presigned query: for the wire only."""
        return f"{self.scheme}://{self.netloc}{self.target}"

    @property
    def shown(self) -> str:
        """The address for people: no query value that could be a secret."""
        pairs = parse_qsl(self.query, keep_blank_values=True)
        known = [f"{name}={value}" for name, value in pairs if name in _HARMLESS]
        hidden = ["…"] if len(known) < len(pairs) or (self.query and not pairs) else []
        query = "&".join([*known, *hidden])
        whole = f"{self.scheme}://{self.netloc}{self.path}{'?' + query if query else ''}"
        return printable(whole, _SHOWN)


def printable(text: str, limit: int) -> str:
    """Cut `text`, which a stranger wrote, and replace what could steer a terminal."""
    cut = text[:limit] + ("…" if len(text) > limit else "")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)


def is_loopback(host: str) -> bool:
    """Whether a name can only mean this machine: localhost, *.localhost, 127/8, ::1."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
