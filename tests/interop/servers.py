"""Real registries on loopback, each with a port and a storage of its own."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from interop.peers import environment, find

Kind = Literal["docker-registry", "refregd"]
KINDS: tuple[Kind, ...] = ("docker-registry", "refregd")
"""Debian's registry, which has no referrers API, and go-containerregistry's, which has it."""

LOOPBACK = "127.0.0.1"
_CONFIG = """\
version: 0.1
log: {{level: info, formatter: json, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {storage}}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:0", secret: of-no-use, tls: {tls}}}
"""
_PATIENCE = 30.0


class Died(Exception):
    """A server did not come up."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request that a server answered, or is answering (status 0)."""

    method: str
    path: str
    query: str
    status: int
    sent: int = 0
    got: int = 0

    def __str__(self) -> str:
        return f"{self.method} {self.path}{'?' if self.query else ''}{self.query} {self.status}"


@dataclass(frozen=True, slots=True)
class Server:
    """A registry that runs."""

    kind: Kind
    host: str

    @property
    def has_referrers(self) -> bool:
        """Whether it has the referrers API."""
        return self.kind == "refregd"

    @property
    def mounts(self) -> bool:
        """Whether it mounts blobs, from the same repository too."""
        return self.kind == "docker-registry"


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy before a registry: it remembers requests, and can be slow."""

    host: str

    def begin(self, wait: str = "0s") -> None:
        """Forget what was seen; from now on wait so long before each request is passed on."""
        url = f"http://{self.host}/_begin?wait={wait}"
        urllib.request.urlopen(urllib.request.Request(url, method="POST")).close()

    def seen(self) -> list[Request]:
        """List the requests since then, in the order of their arrival."""
        with urllib.request.urlopen(f"http://{self.host}/_seen") as answer:
            return [Request(**one) for one in json.load(answer)]


@contextmanager
def registry(
    kind: Kind,
    folder: Path,
    *,
    tls: Mapping[str, object] | None = None,
    auth: Mapping[str, object] | None = None,
    proxy: Mapping[str, object] | None = None,
) -> Iterator[Server]:
    """Run a registry in `folder`, which must exist, until the end of the block.

    `tls`, `auth` and `proxy` are what the configuration of docker-registry says under those names.
    """
    if kind == "refregd":
        with running((find("refregd"), f"{LOOPBACK}:0"), folder / "refregd.log") as process:
            yield Server(kind, _address(process, folder / "refregd.log", str.strip))
        return
    config = folder / "config.yml"
    text = _CONFIG.format(storage=folder / "storage", tls=json.dumps(tls or {}))
    more = {name: said for name, said in (("auth", auth), ("proxy", proxy)) if said}
    config.write_text(text + "".join(f"{k}: {json.dumps(v)}\n" for k, v in more.items()))
    command = (find("docker-registry"), "serve", str(config))
    with running(command, folder / "registry.log") as process:
        yield Server(kind, _address(process, folder / "registry.log", _listening))


@contextmanager
def counting(target: str, folder: Path) -> Iterator[Proxy]:
    """Run a counting proxy before the registry `target`."""
    log = folder / "countproxy.log"
    with running((find("countproxy"), f"{LOOPBACK}:0", target), log) as process:
        yield Proxy(_address(process, log, str.strip))


@contextmanager
def running(
    command: tuple[str, ...],
    log: Path,
    folder: Path | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the end of the block; what it says goes to `log`.

    In `folder`, if given, with that as its home, nothing of ours in its environment but `more`.
    """
    env = {**environment(folder), **more} if folder else None
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=folder,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _listening(line: str) -> str:
    entry: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
    return str(entry.get("msg", "")).partition("listening on ")[2].removesuffix(", tls")


def _address(process: subprocess.Popen[bytes], log: Path, read: Any) -> str:
    """Wait until a server says where it listens."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and process.poll() is None:
        for line in log.read_text().splitlines(keepends=True):
            address: str = read(line) if line.endswith("\n") else ""
            if address.startswith(f"{LOOPBACK}:"):
                return address
        time.sleep(0.01)
    raise Died(f"{process.args!r} does not listen: {log.read_text()[-2000:]}")
