"""How registries are reached: the options, the environment, and what a run shares."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import click

from ocipack.errors import Misuse

if TYPE_CHECKING:
    from pathlib import Path

    from ocipack.oci.location import Location
    from ocipack.oci.reference import Reference
    from ocipack.stores.auth.credential import Credential
    from ocipack.stores.auth.keeping import Keeper
    from ocipack.stores.charts import ChartRepository, ChartStore
    from ocipack.stores.downloads import Downloads
    from ocipack.stores.http.host import Host
    from ocipack.stores.http.settings import Proxies
    from ocipack.stores.http.tally import Tally
    from ocipack.stores.http.transport import Transport
    from ocipack.stores.http.url import Url
    from ocipack.stores.registry.client import Client
    from ocipack.stores.registry.registries import Registries
    from ocipack.stores.registry.store import RegistryStore

CERTIFICATES = ("/etc/containers/certs.d", "/etc/docker/certs.d")
"""Where the container tools of a machine keep `HOST[:PORT]/ca.crt`, after the user's own."""

_DOCKER_HUB = ("registry-1.docker.io", "auth.docker.io", "production.cloudflare.docker.com")


def options() -> list[click.Option]:
    """The options of every command that may talk to a registry."""
    return [
        click.Option(
            ["--ca-file"],
            default="",
            metavar="FILE",
            help="Trust these CA certificates (PEM) beside the system's. Else certs.d, as docker "
            "and podman have it.",
        ),
        click.Option(
            ["--plain-http"],
            multiple=True,
            metavar="HOST[:PORT]",
            help="Speak plain HTTP to this registry, as to loopback unless settings or --ca-file "
            "are for TLS.",
        ),
        click.Option(
            ["--registries", "settings_file"],
            default="",
            metavar="FILE",
            help="Settings for single registries: CA, client certificate, address, mirrors. Else "
            "OCIPACK_REGISTRIES, else registries.yaml in ~/.config/ocipack.",
        ),
        click.Option(
            ["--debug-http"], is_flag=True, help="Print one line a request, without secrets."
        ),
        click.Option(
            ["--metrics"],
            default="",
            metavar="FILE",
            help="Write counts of requests, bytes and retries for Prometheus, however it ends.",
        ),
    ]


@dataclass
class Connections:
    """What the options say, and the stores of this run; nothing is loaded before one is opened."""

    ca_file: str = ""
    plain_http: tuple[str, ...] = ()
    debug_http: bool = False
    settings_file: str = ""
    metrics: str = ""
    sent: Callable[[int], None] | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    allowed: tuple[str, ...] = ()
    _charts: dict[str, ChartRepository] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def confine(self, registries: tuple[str, ...]) -> None:
        """From here on contact none but these `registries`, if there are any (`Settings.allowed`).

        Docker Hub's name stands for the hosts that it consists of. Called before a store is open.
        """
        assert "_transport" not in self.__dict__, "a registry has been contacted already"
        hub = _DOCKER_HUB if "docker.io" in registries else ()
        self.allowed = (*registries, *hub)

    def store(self, reference: Reference, *, write: bool, prefetch: bool = True) -> RegistryStore:
        """The repository of `reference`; without `prefetch` names are resolved by HEAD."""
        return self._registries.store(reference, writes=write, prefetch=prefetch)

    def downloads(self) -> Downloads:
        """What fetches files by their addresses."""
        from ocipack.stores.downloads import Downloads  # noqa: PLC0415 - start-up

        return Downloads(self._registries.transport, self._registries.credentials)

    def known(self, url: Url) -> tuple[Host, Credential]:
        """What is said of the host of `url`, and who we are there, for a program that asks it.

        Rejected if it is not among those that may be contacted.
        """
        self._registries.transport.admit(url)
        host = self._registries.transport.settings.host(url.netloc)
        return host, self._registries.credentials.find(url.netloc, "")

    def chart(self, where: Location, hints: Collection[str] = ()) -> ChartStore:
        """A chart of a classic Helm repository, whose index is read once in a run.

        `hints` are tags under which digests are looked for, beside the one of `where`.
        """
        from ocipack.stores.charts import ChartRepository, ChartStore  # noqa: PLC0415 - start-up

        address, name = where.chart
        shared = self._registries
        with self._lock:
            if address not in self._charts:
                self._charts[address] = ChartRepository(
                    shared.transport, shared.credentials, address
                )
        own = (where.reference.tag,) if where.reference.tag is not None else ()
        return ChartStore(self._charts[address], name, (*own, *hints))

    def client(self, registry: str) -> Client:
        """What talks to `registry` (`host[:port]`), below any repository."""
        return self._registries.client(registry)

    def trial(self, registry: str, given: Credential) -> Client:
        """What talks to `registry` with this credential and no other."""
        from ocipack.stores.auth.config import Credentials  # noqa: PLC0415 - start-up
        from ocipack.stores.registry.client import Client  # noqa: PLC0415 - start-up

        return Client(self._transport, Credentials(given={registry: given}), registry)

    def keeper(self) -> Keeper:
        """Where credentials are kept: the first file that they are looked for in."""
        from ocipack.files.replacing import replace  # noqa: PLC0415 - start-up
        from ocipack.stores.auth.helper import Helpers  # noqa: PLC0415 - start-up
        from ocipack.stores.auth.keeping import Keeper  # noqa: PLC0415 - start-up

        files = self._files()
        if not files:
            raise Misuse("there is nowhere to keep credentials", hint="set HOME or DOCKER_CONFIG")

        def write(path: Path, data: bytes) -> None:
            replace(str(path), data, mode=0o600, parents=0o700)

        return Keeper(files[0], Helpers(dict(self.environment)), write)

    @cached_property
    def _registries(self) -> Registries:
        from ocipack.stores.auth.config import Credentials  # noqa: PLC0415 - start-up
        from ocipack.stores.auth.helper import Helpers  # noqa: PLC0415 - start-up
        from ocipack.stores.registry.registries import Registries  # noqa: PLC0415 - start-up

        credentials = Credentials(self._files(), Helpers(dict(self.environment)))
        return Registries(self._transport, credentials)

    @cached_property
    def _transport(self) -> Transport:
        from pathlib import Path  # noqa: PLC0415 - start-up

        from ocipack.stores.http.settings import Settings  # noqa: PLC0415 - start-up
        from ocipack.stores.http.transport import Transport  # noqa: PLC0415 - start-up

        if self.ca_file and not Path(self.ca_file).is_file():
            raise Misuse(f"--ca-file {self.ca_file}: there is no such file")
        file, hosts = self._hosts()
        mirrors = {mirror.registry for host in hosts for mirror in host.mirrors}
        settings = Settings(
            ca_file=self.ca_file,
            certs=self._certificates(),
            plain=frozenset(self.plain_http),
            proxies=self._proxies(),
            allowed=self.allowed,
            mirrors=tuple(sorted(mirrors)),
            hosts={host.name: host for host in hosts},
            file=file,
        )
        debug = (lambda line: print(line, file=sys.stderr)) if self.debug_http else None
        tally = self.tally if self.metrics else None
        return Transport(settings, debug=debug, sent=self.sent, tally=tally)

    @cached_property
    def tally(self) -> Tally:
        """What was asked of registries so far, counted if there are to be metrics."""
        from ocipack.stores.http.tally import Tally  # noqa: PLC0415 - start-up

        return Tally()

    def _hosts(self) -> tuple[str, tuple[Host, ...]]:
        """The file of settings and what it says; a file that nobody named need not be there."""
        from pathlib import Path  # noqa: PLC0415 - start-up

        said, home = self.environment, self._home()
        named = self.settings_file or said.get("OCIPACK_REGISTRIES", "")
        config = said.get("XDG_CONFIG_HOME") or (str(home / ".config") if home else "")
        usual = Path(config) / "ocipack/registries.yaml" if config else Path("registries.yaml")
        path = Path(named) if named else usual
        if not named and not (config and os.path.exists(path)):  # noqa: PTH110 - no error if it may not be looked for
            return str(path), ()
        from ocipack.stores.hosts import load  # noqa: PLC0415 - start-up

        return str(path), load(path)

    def _home(self) -> Path | None:
        from pathlib import Path  # noqa: PLC0415 - start-up

        home = self.environment.get("HOME")
        return Path(home) if home else None

    def _certificates(self) -> tuple[str, ...]:
        home = self._home()
        names = (".config/containers/certs.d", ".config/docker/certs.d", ".docker/certs.d")
        own = [home / name for name in names] if home else []
        return (*map(str, own), *CERTIFICATES)

    def _files(self) -> list[Path]:
        """The files that may hold credentials, in the order of docker's and podman's tools."""
        from pathlib import Path  # noqa: PLC0415 - start-up

        said, home = self.environment, self._home()
        found = [Path(said["DOCKER_CONFIG"]) / "config.json"] if said.get("DOCKER_CONFIG") else []
        if not found and home:
            found = [home / ".docker/config.json"]
        if said.get("REGISTRY_AUTH_FILE"):
            return [*found, Path(said["REGISTRY_AUTH_FILE"])]
        if said.get("XDG_RUNTIME_DIR"):
            found.append(Path(said["XDG_RUNTIME_DIR"]) / "containers/auth.json")
        config = said.get("XDG_CONFIG_HOME") or (str(home / ".config") if home else "")
        return [*found, Path(config) / "containers/auth.json"] if config else found

    def _proxies(self) -> Proxies:
        from ocipack.stores.http.settings import Proxies  # noqa: PLC0415 - start-up

        def said(name: str) -> str:
            return self.environment.get(name.lower()) or self.environment.get(name) or ""

        return Proxies(said("HTTP_PROXY"), said("HTTPS_PROXY"), said("NO_PROXY"))
