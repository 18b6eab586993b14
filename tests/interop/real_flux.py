"""A real Flux follows what we ship, and refuses what was tampered with.

    pytest tests/interop/real_flux.py

A run of its own, since it needs an API server that takes ten minutes to build: it is not collected
by `make test`. `peers.sh kube-apiserver source-controller kustomize-controller` builds what is
needed; etcd is Debian's etcd-server.
"""

from __future__ import annotations

import base64
import io
import json
import shutil
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from interop import servers
from interop.cluster import NAMESPACE, Cluster, cluster, definitions
from interop.peers import Desk
from interop.wire import INDEX, MANIFEST, Repository, digest

FLUX_LAYER = "application/vnd.cncf.flux.content.v1.tar+gzip"
MODES = ("extract", "copy")
EXAMPLES = Path(__file__).parents[2] / "examples"
FLEET = EXAMPLES / "fleet"
TENANTS = FLEET / "tenants"
AGE = EXAMPLES.parent / "keys-example" / "fleet.agekey"
HELM = ("helm-controller", "v1.6.1")


@pytest.fixture(scope="session")
def flux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster of all tests."""
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def storage(server: servers.Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where docker-registry keeps its blobs."""
    return next(tmp_path_factory.getbasetemp().glob(f"{server.kind}*")) / "storage"


def secret(name: str, public: str) -> dict[str, Any]:
    """A Secret with the public keys that an OCIRepository trusts."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {"cosign.pub": Path(f"{public}.pub").read_text()},
    }


def source(name: str, repository: Repository, tag: str, trusts: str) -> dict[str, Any]:
    """An OCIRepository that verifies with the keys in the Secret `trusts`."""
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "OCIRepository",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "interval": "1h",
            "url": f"oci://{repository}",
            "insecure": True,
            "ref": {"tag": tag},
            "verify": {"provider": "cosign", "secretRef": {"name": trusts}},
        },
    }


def name_of(repository: Repository) -> str:
    """A name for objects about a repository."""
    return repository.name.replace("/", "-")


def ship(desk: Desk, folder: Path, place: str, key: str, *more: str) -> str:
    """Ship with a key; the digest."""
    args = ("ship", str(folder), "--to", place, "--key", f"{key}.key", *more)
    return desk.ocipack(*args).expect().rpartition("@")[2]


@pytest.fixture
def shipped(desk: Desk, repository: Repository, keys: dict[str, str]) -> str:
    """The digest of the fleet's tenants, signed in both forms by alice under the tag `stable`."""
    return ship(desk, TENANTS, f"{repository.place}:stable", keys["alice"])


def accepted(flux: Cluster, name: str) -> dict[str, Any]:
    """What Flux took from a source, verified."""
    flux.await_condition("ocirepository", name, "Ready", "True")
    assert flux.condition("ocirepository", name, "SourceVerified")["status"] == "True"
    found: dict[str, Any] = flux.get("ocirepository", name)["status"]["artifact"]
    return found


def refused(flux: Cluster, name: str) -> dict[str, str]:
    """Why Flux took nothing from a source."""
    why = flux.await_condition("ocirepository", name, "Ready", "False")
    assert "artifact" not in flux.get("ocirepository", name)["status"]
    return why


@pytest.mark.parametrize("form", ["legacy", "bundle", "both"])
def test_each_form_of_signature_is_verified(
    flux: Cluster, desk: Desk, repository: Repository, keys: dict[str, str], form: str
) -> None:
    made = ship(desk, TENANTS, f"{repository.place}:stable", keys["alice"], "--format", form)
    name = name_of(repository)
    flux.apply(secret(name, keys["alice"]), source(name, repository, "stable", name))
    found = accepted(flux, name)
    assert found["revision"] == f"stable@{made}"
    assert repository.forms(made) == (int(form != "bundle"), int(form != "legacy"))


def test_unsigned(
    flux: Cluster, desk: Desk, repository: Repository, keys: dict[str, str], shipped: str
) -> None:
    name = name_of(repository)
    bare = Repository(repository.host, f"{repository.name}/bare")
    desk.tool("crane", "copy", "--insecure", f"{repository}:stable", f"{bare}:stable").expect()
    assert bare.digest("stable") == shipped
    assert bare.forms(shipped) == (0, 0)
    flux.apply(secret(name, keys["alice"]), source(name, bare, "stable", name))
    assert refused(flux, name)["reason"] == "VerificationError"


def test_signed_by_another(
    flux: Cluster, repository: Repository, keys: dict[str, str], shipped: str
) -> None:
    name = name_of(repository)
    assert repository.forms(shipped) == (1, 1)
    flux.apply(secret(name, keys["carol"]), source(name, repository, "stable", name))
    assert refused(flux, name)["reason"] == "VerificationError"


def swapped(repository: Repository, tag: str = "stable") -> str:
    """Let the tag name a manifest with another layer; its digest."""
    document = repository.manifest(tag)
    layer = repository.put_blob(repository.blob(document["layers"][0]["digest"]) + b"\0")
    document["layers"][0] |= layer
    return repository.put_manifest(document, tag)


def replay_bundles(repository: Repository, shipped: str, other: str) -> None:
    """Attach the bundles of one manifest to another, as they are."""
    listed = []
    for one in referrers(repository, shipped):
        one["subject"] |= {"digest": other, "size": len(repository.raw(other) or b"")}
        made = repository.put_manifest(one)
        size = len(repository.raw(made) or b"")
        listed.append({"mediaType": MANIFEST, "digest": made, "size": size})
        listed[-1]["artifactType"] = one["artifactType"]
    if not repository.bundles(other):  # no referrers API
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": listed}
        repository.put_manifest(index, other.replace(":", "-"))
    assert repository.bundles(other) == 1


def replay_legacy(repository: Repository, shipped: str, other: str) -> None:
    """Attach the legacy signatures of one manifest to another, as they are."""
    repository.put_manifest(
        repository.manifest(f"{shipped.replace(':', '-')}.sig"), f"{other.replace(':', '-')}.sig"
    )
    assert repository.legacy(other) == 1


def test_another_layer_without_signature(
    flux: Cluster, repository: Repository, keys: dict[str, str], shipped: str
) -> None:
    name = name_of(repository)
    assert swapped(repository) != shipped
    flux.apply(secret(name, keys["alice"]), source(name, repository, "stable", name))
    assert refused(flux, name)["reason"] == "VerificationError"


def test_another_layer_under_the_bundle_of_the_old_one(
    flux: Cluster, repository: Repository, keys: dict[str, str], shipped: str
) -> None:
    name = name_of(repository)
    replay_bundles(repository, shipped, swapped(repository))
    flux.apply(secret(name, keys["alice"]), source(name, repository, "stable", name))
    assert refused(flux, name)["reason"] == "VerificationError"


def test_another_layer_under_the_legacy_signature_of_the_old_one(
    flux: Cluster, desk: Desk, repository: Repository, keys: dict[str, str], shipped: str
) -> None:
    """Flux does not compare what a legacy signature is of: docs/verification.md says what to do.

    Everybody else does. Should this fail since Flux refuses, that page is to be changed.
    """
    name = name_of(repository)
    other = swapped(repository)
    replay_legacy(repository, shipped, other)
    flux.apply(secret(name, keys["alice"]), source(name, repository, "stable", name))
    assert accepted(flux, name)["revision"] == f"stable@{other}"
    public = ("--key", f"{keys['alice']}.pub")
    desk.ocipack("verify", f"{repository.place}:stable", *public).expect(1)
    for version in (2, 3):
        assert desk.cosign(version, "verify", *public, f"{repository}:stable").code != 0

    pinned = source(name, repository, "stable", name)
    pinned["spec"]["ref"] = {"digest": shipped}
    flux.apply(pinned)
    assert accepted(flux, name)["revision"] == shipped


def test_other_bytes_under_the_digest_of_the_layer(
    request: pytest.FixtureRequest,
    flux: Cluster,
    server: servers.Server,
    storage: Path,
    desk: Desk,
    repository: Repository,
    keys: dict[str, str],
    shipped: str,
) -> None:
    """Whoever has the registry's disk can serve other bytes.

    Flux reads a layer that it extracts only to the end of the tar, and its digest is compared at
    the end of the stream: so it notices only where it copies. See docs/verification.md.
    """
    if server.kind != "docker-registry":
        pytest.skip("keeps blobs in memory")
    name = name_of(repository)
    layer = repository.manifest("stable")["layers"][0]["digest"].removeprefix("sha256:")
    path = storage / f"docker/registry/v2/blobs/sha256/{layer[:2]}/{layer}/data"
    true = path.read_bytes()
    request.addfinalizer(lambda: path.write_bytes(true))  # other repositories share it
    path.write_bytes(foreign(len(true)))
    assert digest(path.read_bytes()) != f"sha256:{layer}"

    extracted, copied = (source(f"{name}-{how}", repository, "stable", name) for how in MODES)
    copied["spec"]["layerSelector"] = {"mediaType": FLUX_LAYER, "operation": "copy"}
    flux.apply(secret(name, keys["alice"]), extracted, copied)
    assert "checksum" in refused(flux, f"{name}-copy")["message"]
    assert accepted(flux, f"{name}-extract")["revision"] == f"stable@{shipped}"
    public = ("--key", f"{keys['alice']}.pub")
    desk.ocipack("pull", f"{repository.place}:stable", *public, "-o", "out").expect(1)
    desk.ocipack("verify", f"{repository.place}:stable", *public, "--content").expect(1)


def foreign(size: int) -> bytes:
    """A layer of so many bytes with a tar that is not ours."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: foreign}\n"
        info = tarfile.TarInfo("foreign.yaml")
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
    return packed.getvalue().ljust(size, b"\0")


def referrers(repository: Repository, subject: str) -> list[dict[str, Any]]:
    """The manifests that are listed as referring to `subject`."""
    status, body, _ = repository.ask("GET", f"referrers/{subject}")
    if status != 200:
        body = repository.raw(subject.replace(":", "-")) or b"{}"
    return [repository.manifest(one["digest"]) for one in json.loads(body)["manifests"]]


KUSTOMIZATION = "kustomization.kustomize.toolkit.fluxcd.io"
READY = (
    "fleet",
    "crds-platform",
    "crds-vendored",
    "security",
    "secrets",
    "nodes",
    "tenant-juniper",
    "tenant-orchid",
)
"""Kustomizations that need no other controllers than these."""

APPLIED = (
    ("deployment", "podinfo", "web"),
    ("deployment", "umami", "data"),
    ("helmrelease", "cert-manager", "cert-manager"),
)
"""What waits for controllers that are not there, from three more Kustomizations."""


@pytest.fixture
def fleet(tmp_path: Path, keys: dict[str, str]) -> Path:
    """A copy of the fleet that trusts alice's key, not the example one."""
    folder = tmp_path / "fleet"
    shutil.copytree(FLEET, folder)
    shutil.copy(f"{keys['alice']}.pub", folder / "policies" / "fleet.pub")
    return folder


def deliver(desk: Desk, fleet: Path, repository: Repository, key: str) -> dict[str, str]:
    """Ship what the dev cluster gets; digests by the name of the repository below the fleet's."""
    to = ("--environment", "dev", "--to", repository.place)
    printed = desk.ocipack("ship", str(fleet), *to, "--key", f"{key}.key").expect()
    places = [line.removeprefix(f"{repository.place}/") for line in printed.splitlines()]
    return dict(place.split(":dev@") for place in places)


def bootstrap(fleet: Path, repository: Repository) -> list[dict[str, Any]]:
    """What the cluster gets by hand, for a registry on loopback without TLS."""
    text = (fleet / "bootstrap.yaml").read_text().replace("${CLUSTER}", "dev")
    made: list[dict[str, Any]] = list(yaml.safe_load_all(text))
    local = f"oci://{repository}"
    for one in made:
        if one["kind"] == "OCIRepository":
            one["spec"]["url"] = one["spec"]["url"].replace(
                "oci://registry.example.com/fleet", local
            )
            one["spec"]["insecure"] = True
        else:
            one["spec"]["patches"] = [
                {"target": {"kind": "OCIRepository", "name": name}, "patch": json.dumps(patch)}
                for name in ("infra", "tenants")
                for patch in [
                    [
                        {"op": "replace", "path": "/spec/url", "value": f"{local}/{name}"},
                        {"op": "add", "path": "/spec/insecure", "value": True},
                    ]
                ]
            ]
    return made


def test_the_fleet(
    flux: Cluster, desk: Desk, repository: Repository, keys: dict[str, str], fleet: Path
) -> None:
    """Flux verifies and applies the fleet, follows a second version, and no forged one."""
    first = deliver(desk, fleet, repository, keys["alice"])
    assert set(first) == {"infra", "tenants", "clusters/dev"}
    flux.kubectl("apply", "--server-side", "-f", str(definitions(*HELM)))
    sops = secret("sops-age", keys["alice"])
    sops["stringData"] = {"age.agekey": AGE.read_text()}
    flux.apply(secret("fleet-keys", keys["alice"]), sops, *bootstrap(fleet, repository))
    for name, place in (("fleet", "clusters/dev"), ("infra", "infra"), ("tenants", "tenants")):
        assert accepted(flux, name)["revision"] == f"dev@{first[place]}"
    for name in READY:
        flux.await_condition(KUSTOMIZATION, name, "Ready", "True")
    for one in APPLIED:
        flux.wait(" ".join(one), partial(flux.has, *one), lambda: flux.get(KUSTOMIZATION)["items"])
    opened = flux.get("secret", "umami-database", namespace="data")
    assert "sops" not in opened
    assert b"postgres" in base64.b64decode(opened["data"]["DATABASE_URL"])

    quota = fleet / "tenants" / "juniper" / "quota.yaml"
    quota.write_text(quota.read_text().replace("12Gi", "14Gi"))
    second = deliver(desk, fleet, repository, keys["alice"])
    assert {name for name in first if first[name] != second[name]} == {"tenants"}
    flux.reconcile("ocirepository", "tenants")
    flux.wait("the new quota", lambda: memory(flux) == "14Gi", lambda: memory(flux))
    assert accepted(flux, "tenants")["revision"] == f"dev@{second['tenants']}"

    forged = swapped(Repository(repository.host, f"{repository.name}/tenants"), "dev")
    flux.reconcile("ocirepository", "tenants")
    flux.await_condition("ocirepository", "tenants", "SourceVerified", "False")
    assert forged != second["tenants"]
    assert flux.get("ocirepository", "tenants")["status"]["artifact"]["revision"].endswith(
        second["tenants"]
    )
    assert memory(flux) == "14Gi"


def memory(flux: Cluster) -> str:
    """How much memory the tenant juniper may ask for."""
    found = flux.get("resourcequota", "tenant", namespace="juniper")
    return str(found["spec"]["hard"]["requests.memory"])
