"""A real Flux follows what we ship, and refuses what was tampered with.

    pytest tests/interop/real_flux.py

A run of its own, since it needs an API server that takes ten minutes to build: it is not collected
by `make test`. `peers.sh kube-apiserver source-controller kustomize-controller` builds what is
needed; etcd is Debian's etcd-server.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from interop import servers
from interop.cluster import NAMESPACE, Cluster, cluster
from interop.peers import Desk
from interop.wire import INDEX, MANIFEST, Repository, digest

FLUX_LAYER = "application/vnd.cncf.flux.content.v1.tar+gzip"
MODES = ("extract", "copy")
SHOP = Path(__file__).parents[2] / "examples" / "shop"


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
    """The digest of the shop, signed in both forms by alice under the tag `stable`."""
    return ship(
        desk, SHOP, f"{repository.place}:stable", keys["alice"], "--root", "overlays/production"
    )


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
    more = ("--root", "overlays/production", "--format", form)
    made = ship(desk, SHOP, f"{repository.place}:stable", keys["alice"], *more)
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


def swapped(repository: Repository) -> str:
    """Let `stable` name a manifest with another layer; its digest."""
    document = repository.manifest("stable")
    layer = repository.put_blob(repository.blob(document["layers"][0]["digest"]) + b"\0")
    document["layers"][0] |= layer
    return repository.put_manifest(document, "stable")


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
    path.write_bytes(foreign(path.stat().st_size))
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
