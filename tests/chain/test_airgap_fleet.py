"""The fleet over an air gap: artifacts, and the images and charts they name, all proven there.

Its images and charts are built here and signed by a vendor; the registries they are named after
are one registry on loopback, which is gone when the archive is loaded.
"""

from __future__ import annotations

import io
import json
import shutil
import socket
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import shelf
from chain.conftest import ROOT, Run
from registry import Registry

CHART_CONFIG = "application/vnd.cncf.helm.config.v1+json"
CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
ENVIRONMENT = "dev"
REPLACED = ("ghcr.io/stefanprodan/podinfo", "6.14.0")
"""What a manifest names and the kustomization above it replaces: no cluster will ask for it."""


@dataclass(frozen=True)
class Thing:
    """Something that the fleet names, and what stands for it here."""

    name: str
    tag: str
    digest: str
    is_chart: bool


def chart(registry: Registry, path: str, name: str, version: str) -> str:
    """A chart as `helm push` makes one; its digest."""
    meta = {"apiVersion": "v2", "name": name, "version": version.removeprefix("v")}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1) as archive:
        said = json.dumps(meta).encode()
        member = tarfile.TarInfo(f"{name}/Chart.yaml")
        member.size = len(said)
        archive.addfile(member, io.BytesIO(said))
    config = shelf.blob(registry, path, json.dumps(meta).encode(), CHART_CONFIG)
    layer = shelf.blob(registry, path, data.getvalue(), CHART)
    document = {"mediaType": shelf.MANIFEST, "config": config, "layers": [layer]}
    return str(shelf.put(registry, path, document, version)["digest"])


def stock(registry: Registry, ocipack: Run, fleet: Path) -> list[Thing]:
    """Put into `registry` what the fleet names, and let the fleet name that."""
    code, _, err = ocipack("pin", str(fleet), "--check", "--output", "json=named.json")
    assert code in {0, 1}, err
    digests: dict[str, str] = {}
    things = []
    for one in json.loads(Path("named.json").read_text())["images"]:
        if one["status"] != "pinned" or one["digest"] in digests:
            continue
        name, _, tag = one["reference"].rpartition(":")
        is_chart = one["place"] == "OCIRepository"
        if is_chart:
            digest = chart(registry, name, name.rpartition("/")[2], tag)
        else:
            made = shelf.index(registry, name, tag, "linux/amd64", "linux/arm64")
            digest = str(made["digest"])
        digests[one["digest"]] = digest
        things.append(Thing(name, tag, digest, is_chart))
    for path in fleet.rglob("*.yaml"):
        text = path.read_text()
        for old, new in digests.items():
            text = text.replace(old.removeprefix("sha256:"), new.removeprefix("sha256:"))
        path.write_text(text)
    return things


@pytest.fixture
def vendor(ocipack: Run) -> str:
    """The stem of the vendor's key pair."""
    assert ocipack("keys", "generate", "-o", "vendor")[0] == 0
    return "vendor"


@pytest.fixture
def far() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.fixture
def near() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def hosts(things: list[Thing]) -> list[str]:
    return sorted({one.name.partition("/")[0] for one in things})


def policies(folder: Path, things: list[Thing], near: Registry, public: str, vendor: str) -> Path:
    """Who must have signed what: us the artifacts, the vendor everything they name."""
    others = [f"{host}/**" for host in hosts(things)]
    ours = [
        "registry.example.com/fleet/**",
        f"{near.name}/base/registry.example.com/fleet/**",
    ]
    fleet: dict[str, Any] = {
        "metadata": {"name": "fleet"},
        "spec": {
            "images": ours,
            "annotations": {"environment": ENVIRONMENT},
            "authorities": [{"keys": [{"file": public}]}],
            "contents": {
                "images": ["**"],
                "sources": ["**"],
                "verified": True,
                "exemptions": [
                    {
                        "sources": ["oci://registry.example.com/**", "ssh://git.example.com/**"],
                        "owner": "platform",
                        "reason": "moved by each delivery and verified by itself, or written to",
                        "until": "2099-12-31",
                    }
                ],
            },
        },
    }
    theirs = {
        "metadata": {"name": "vendor"},
        "spec": {
            "images": others,
            "authorities": [{"keys": [{"file": f"{Path.cwd() / vendor}.pub"}]}],
        },
    }
    kind = {"apiVersion": "ocipack.dev/v1alpha1", "kind": "VerificationPolicy"}
    path = folder / "site-policy.yaml"
    documents = {**kind, "kind": "VerificationPolicyList", "items": [fleet, theirs]}
    path.write_text(json.dumps(documents))
    return path


@dataclass
class Fleet:
    """The fleet at home: what it names, what was shipped, and who is trusted."""

    things: list[Thing]
    shipped: set[str]
    trust: tuple[str, str]

    @property
    def built(self) -> list[Thing]:
        """What clusters will ask for."""
        return [one for one in self.things if (one.name, one.tag) != REPLACED]


@pytest.fixture
def fleet(
    ocipack: Run, far: Registry, near: Registry, key: str, public: str, vendor: str, tmp_path: Path
) -> Fleet:
    """Everything signed, shipped, and found by `map.yaml`."""
    tree = Path(shutil.copytree(ROOT / "examples/fleet", tmp_path / "fleet"))
    things = stock(far, ocipack, tree)
    for one in things:
        place = f"oci://{far.name}/{one.name}@{one.digest}"
        assert ocipack("sign", place, "--key", f"{vendor}.key", "--quiet")[0] == 0
    shutil.copyfile(public, tree / "policies/fleet.pub")
    project = tree / "ocipack.yaml"
    at_home = f"{far.name}/registry.example.com"
    project.write_text(project.read_text().replace("registry.example.com", at_home))
    code, out, err = ocipack("ship", str(tree), "--environment", ENVIRONMENT, "--key", key)
    assert code == 0, err
    names = [*hosts(things), "registry.example.com"]
    Path("map.yaml").write_text("".join(f'"{name}": "{far.name}/{name}"\n' for name in names))
    trust = ("--policy", str(policies(tmp_path, things, near, public, vendor)))
    return Fleet(things, {line.rpartition("@")[2] for line in out.splitlines()}, trust)


@pytest.fixture
def site(ocipack: Run, fleet: Fleet) -> str:
    """The archive of all that one cluster needs."""
    start = f"oci://registry.example.com/fleet/clusters/{ENVIRONMENT}:{ENVIRONMENT}"
    code, _, err = ocipack(
        *("airgap", "save", start, "--contents", "--map", "map.yaml", "-o", "site.tar"),
        *fleet.trust,
    )
    assert code == 0, err
    return "site.tar"


def test_the_archive_holds_all_that_a_cluster_needs(ocipack: Run, fleet: Fleet, site: str) -> None:
    charts = [one for one in fleet.things if one.is_chart]
    assert (len(charts), len(fleet.things) - len(charts)) == (4, 12)
    code, out, _ = ocipack("airgap", "list", site)
    assert code == 0
    saved = {line.split()[0] for line in out.splitlines()}
    assert {f"{one.name}:{one.tag}@{one.digest}" for one in fleet.built} <= saved
    ours = {name.rpartition("@")[2] for name in saved if name.startswith("registry.example.com/")}
    assert ours == fleet.shipped
    assert len(saved) == len(fleet.built) + len(fleet.shipped)


def test_the_fleet_crosses_the_gap_and_is_proven_there(
    ocipack: Run,
    far: Registry,
    near: Registry,
    fleet: Fleet,
    site: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    far.__exit__(None, None, None)
    connect = socket.socket.connect

    def connected(self: socket.socket, address: Any) -> None:
        assert address == ("127.0.0.1", int(near.name.rpartition(":")[2])), address
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connected)
    assert ocipack("airgap", "verify", site, *fleet.trust)[0] == 0
    load = ("airgap", "load", site, "--to", f"oci://{near.name}/base", "--map-out", "near.yaml")
    code, _, err = ocipack(*load, *fleet.trust)
    assert code == 0, err
    base = f"oci://{near.name}/base/registry.example.com/fleet"
    for artifact in (f"clusters/{ENVIRONMENT}", "tenants", "infra"):
        code, _, err = ocipack(
            *("verify", f"{base}/{artifact}:{ENVIRONMENT}", "--contents", "--map", "near.yaml"),
            *("--output", "json=verified.json", *fleet.trust),
        )
        assert code == 0, err
    (infra,) = json.loads(Path("verified.json").read_text())["artifacts"]
    assert infra["verdict"] == "verified"
    inside = [(one["kind"], one["verdict"]) for one in infra["contents"]["references"]]
    assert set(inside) == {("image", "allowed"), ("source", "allowed"), ("source", "exempted")}
    assert len(inside) == len(fleet.built) + 1  # and the repository that automation writes to

    taken = near.repository("base/ghcr.io/umami-software/umami")
    taken.manifests.clear()
    taken.tags.clear()
    place = f"{base}/infra:{ENVIRONMENT}"
    code, _, err = ocipack("verify", place, "--contents", "--map", "near.yaml", *fleet.trust)
    assert code == 3, "an image that is not there is noticed"
    assert "umami" in err
