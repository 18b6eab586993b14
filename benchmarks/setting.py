"""What a benchmark finds ready: a registry, a proxy before it, keys, a tree, and our command."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from interop import servers
from interop.peers import IGNORE_LOG, NO_LOG, NO_LOG_2, Desk, environment, find
from interop.wire import Repository
from measure import Bench, Command

FILES = 2_000
_COUNT = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Setting:
    """One registry and all that is needed to work with it. Ours signs with `key`, as do peers."""

    bench: Bench
    server: servers.Server
    proxy: servers.Proxy
    desk: Desk
    site: Path

    @property
    def key(self) -> str:
        """The private key's file."""
        return str(self.desk.folder / "cosign.key")

    @property
    def pub(self) -> str:
        """The public key's file."""
        return str(self.desk.folder / "cosign.pub")

    def fresh(self, *, proxied: bool = False) -> Repository:
        """Name a repository that is still empty."""
        host = self.proxy.host if proxied else self.server.host
        return Repository(host, f"bench/{next(_COUNT)}")

    def subject(self, *, proxied: bool = False) -> str:
        """Push a small image into a new repository; return `host/repository@digest`."""
        there = self.fresh()
        made = there.put_image(there.name)["digest"]
        host = self.proxy.host if proxied else self.server.host
        return f"{host}/{there.name}@{made}"

    def signed(self, form: str) -> Repository:
        """Push a small image under v1 and sign it, in one form or in both; return where."""
        there = self.fresh()
        there.put_image(there.name, "v1")
        target = f"oci://{there}:v1"
        self.desk.ocipack("sign", target, "--key", self.key, "--format", form).expect()
        return there

    def count(self, command: Command) -> Counter[str]:
        """Count the requests of a command that talks to the proxy, by method and kind."""
        self.proxy.begin()
        self.bench.once(command)
        return Counter(f"{one.method} {kind(one.path)}" for one in self.proxy.seen())


def kind(path: str) -> str:
    """Name what a request is about."""
    for part in ("referrers", "uploads", "blobs", "manifests", "tags"):
        if f"/{part}/" in path or path.endswith(f"/{part}"):
            return part
    return "ping" if path in {"/v2", "/v2/"} else path


def ocipack(*arguments: str) -> list[str]:
    """Write our command: the installed script, as users run it."""
    return [str(Path(sys.executable).parent / "ocipack"), *arguments]


def cosign_sign(setting: Setting, form: str, target: str, version: int = 3) -> list[str]:
    """Write cosign's command to sign in one form, without public services."""
    new = f"--new-bundle-format={'true' if form == 'bundle' else 'false'}"
    offline = NO_LOG if version == 3 else NO_LOG_2  # noqa: PLR2004 - cosign's version
    return [find(f"cosign{version}"), "sign", "--key", setting.key, *offline, new, target]


def cosign_verify(setting: Setting, *targets: str) -> list[str]:
    """Write cosign's command to verify with a key, without public services."""
    return [find("cosign3"), "verify", "--key", setting.pub, IGNORE_LOG, *targets]


@contextmanager
def prepared(kind_: servers.Kind, folder: Path, rounds: int) -> Iterator[Setting]:
    """Start the servers, make keys, write the tree."""
    for name in ("registry", "work"):
        (folder / name).mkdir(parents=True)
    desk = Desk(folder / "work")
    desk.ocipack("keys", "generate").expect()
    site = folder / "site"
    write_tree(site, FILES)
    bench = Bench(desk.folder, environment(desk.folder), rounds)
    with (
        servers.registry(kind_, folder / "registry") as server,
        servers.counting(server.host, folder / "registry") as proxy,
    ):
        yield Setting(bench, server, proxy, desk, site)


def write_tree(folder: Path, files: int) -> None:
    """Write so many manifests, one hundred to a directory; the same in every run."""
    dice = Random(7)  # noqa: S311 - reproducible noise
    for number in range(files):
        path = folder / f"team-{number // 100:02}" / f"app-{number:04}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            _DEPLOYMENT.format(
                name=f"app-{number:04}",
                replicas=dice.randint(1, 9),
                digest=f"{dice.getrandbits(256):064x}",
            )
        )


_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {name}
  namespace: shop
  labels:
    app.kubernetes.io/name: {name}
    app.kubernetes.io/part-of: shop
spec:
  replicas: {replicas}
  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {name}
    spec:
      serviceAccountName: {name}
      securityContext:
        runAsNonRoot: true
      containers:
        - name: main
          image: registry.example.com/shop/{name}@sha256:{digest}
          args: ["--port=8080"]
          ports:
            - name: http
              containerPort: 8080
          resources:
            requests: {{cpu: 10m, memory: 32Mi}}
            limits: {{memory: 64Mi}}
"""
