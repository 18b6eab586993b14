"""What the command line decides about connections; read-only from then on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from ocipack import __version__
from ocipack.errors import Misuse
from ocipack.stores.http.host import HUB, HUB_NAMES, Host
from ocipack.stores.http.url import Url, is_loopback

_DOCKER_HUB_API = "registry-1.docker.io"
_NO_HOST = Host("localhost:0")


@dataclass(frozen=True, slots=True)
class Proxies:
    """The values of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, as the environment spells them.

    Loopback is never proxied. `none` is a comma list of `*`, names (with what is below them),
    addresses and networks, each with or without a port.
    """

    http: str = field(default="", repr=False)
    https: str = field(default="", repr=False)
    none: str = ""

    def choose(self, scheme: str, host: str, port: int) -> str:
        """Name the proxy for a request, or nothing."""
        chosen = self.https if scheme == "https" else self.http
        if not chosen or is_loopback(host):
            return ""
        entries = [entry.strip().lower() for entry in self.none.split(",") if entry.strip()]
        if any(_covers(entry, host, port) for entry in entries):
            return ""
        return chosen if "://" in chosen else f"http://{chosen}"


def _covers(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return ip_address(host) in ip_network(entry, strict=False)
        except ValueError:
            return False
    name, _, wanted = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    if wanted.isdigit() and int(wanted) != port:
        return False
    name = name.strip("[]").removeprefix("*").removeprefix(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


@dataclass(frozen=True, slots=True)
class Settings:
    """Where we may connect, how, and how long we wait (seconds).

    `certs` are the `certs.d` directories to look into, the most particular first. `plain` lists
    registries (`host[:port]`) that speak plain HTTP. `allowed` lists what may be contacted at all
    (`host`, `host:port`, `*.domain`, or a network such as `10.0.0.0/8`); empty means anything.
    `mirrors` may be contacted besides, though not by their own names: only for those they mirror.
    `realms` are token hosts that may have any registry's credentials though their name is
    unrelated. `hosts` says by name what single registries need, and `file` where a person can
    write more of that.
    """

    connect_timeout: float = 10.0
    idle_timeout: float = 60.0
    tries: int = 4
    patience: float = 60.0
    connections: int = 64
    ca_file: str = ""
    certs: tuple[str, ...] = ()
    plain: frozenset[str] = frozenset()
    proxies: Proxies = field(default_factory=Proxies)
    allowed: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    realms: frozenset[str] = frozenset()
    hosts: Mapping[str, Host] = field(default_factory=dict)
    file: str = "registries.yaml"
    user_agent: str = f"ocipack/{__version__}"

    def __post_init__(self) -> None:
        if self.connect_timeout <= 0 or self.idle_timeout <= 0 or self.tries < 1:
            raise Misuse("time-outs must be positive and there must be at least one try")

    def host(self, registry: str) -> Host:
        """What is said of `registry` (`host[:port]`); an entry that says nothing if there is none.

        The API of Docker Hub is not at its name, and port 443 needs not be said.
        """
        name = registry.lower().removesuffix(":443")
        name = HUB if name in HUB_NAMES else name
        return self.hosts.get(name, _NO_HOST)

    def near(self, registry: str) -> Host | None:
        """An entry that `registry` may have been meant by, though its name is another one.

        That is the same host at another port, or the same port of this machine by another name.
        """
        url = Url.of("https", registry, "/")
        for host in self.hosts.values():
            other = Url.of("https", host.name, "/")
            own = is_loopback(other.host) and is_loopback(url.host)
            if other.host == url.host or (own and other.port == url.port):
                return host
        return None

    def headers(self) -> Mapping[str, str]:
        """What every request carries; a body in another coding would not have its digest."""
        return {"User-Agent": self.user_agent, "Accept-Encoding": "identity"}


def api_host(registry: str) -> str:
    """Where the API of `registry` answers: Docker Hub's is not at its name."""
    return _DOCKER_HUB_API if registry == HUB else registry
