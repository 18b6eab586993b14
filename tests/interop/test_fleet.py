"""examples/fleet in real registries, and what others make of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from interop.peers import Desk, find
from interop.servers import Proxy
from interop.wire import Repository

from ocipack.k8s.schemas.catalog import Catalog

FLEET = Path(__file__).parents[2] / "examples" / "fleet"
REPOSITORIES = ("infra", "tenants", "clusters/dev", "clusters/stage", "clusters/prod")
WRITING = {"POST", "PUT", "PATCH", "DELETE"}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A copy of the fleet that no repository surrounds."""
    return Path(shutil.copytree(FLEET, tmp_path / "fleet"))


def ship(desk: Desk, fleet: Path, to: str, key: str) -> list[str]:
    """Ship the fleet; the digests in the order of the project file."""
    out = desk.ocipack("ship", str(fleet), "--to", to, "--key", f"{key}.key").expect()
    return [line.rpartition("@")[2] for line in out.splitlines()]


def test_the_same_digests_everywhere_and_nothing_written_twice(
    desk: Desk, proxy: Proxy, repository: Repository, keys: dict[str, str], fleet: Path
) -> None:
    there = f"oci://{proxy.host}/{repository.name}"
    expected = ship(desk, fleet, "ocidir://site", keys["alice"])
    assert len(expected) == len(REPOSITORIES)
    assert ship(desk, fleet, there, keys["alice"]) == expected
    for name, digest in zip(REPOSITORIES, expected, strict=True):
        delivered = Repository(repository.host, f"{repository.name}/{name}")
        assert delivered.digest("latest") == digest
        assert delivered.digest(f"latest-{digest[7:19]}") == digest
        assert delivered.forms(digest) == (0, 1)
        assert delivered.missing("latest") == []

    proxy.begin()
    assert ship(desk, fleet, there, keys["alice"]) == expected
    requests = proxy.seen()
    assert {one.method for one in requests}.isdisjoint(WRITING)
    assert len(requests) <= 7 * len(REPOSITORIES)


@pytest.mark.interop("cosign2", "cosign3")
def test_cosign_verifies_one_of_them(
    desk: Desk, repository: Repository, keys: dict[str, str], fleet: Path
) -> None:
    digest = ship(desk, fleet, repository.place, keys["alice"])[1]
    target = f"{repository}/tenants@{digest}"
    key = ("--key", f"{keys['alice']}.pub")
    root = ("--trusted-root", desk.root)
    desk.cosign(2, "verify", *key, "--new-bundle-format", *root, target).expect()
    desk.cosign(3, "verify", *key, target).expect()
    other = ("--key", f"{keys['carol']}.pub")
    assert desk.cosign(3, "verify", *other, target).code != 0


@pytest.mark.interop("kustomize")
def test_kustomize_itself_builds_the_same(desk: Desk, fleet: Path) -> None:
    embedded = desk.ocipack("render", str(fleet)).expect()
    path = str(Path(find("kustomize")).parent)
    assert (
        desk.ocipack("render", str(fleet), "--renderer", "kustomize", PATH=path).expect()
        == embedded
    )


@pytest.mark.interop("kubeconform")
def test_kubeconform_finds_nothing(desk: Desk, fleet: Path) -> None:
    """Kinds without a schema aside, and the Secret, whose `sops` only Flux takes off."""
    schemas(desk.folder / "schemas")
    rendered = desk.folder / "rendered.yaml"
    rendered.write_text(desk.ocipack("render", str(fleet)).expect())
    place = f"{desk.folder}/schemas/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    options = (
        "-strict",
        "-ignore-missing-schemas",
        "-skip",
        "Secret",
        "-output",
        "json",
        "-summary",
    )
    done = desk.tool("kubeconform", *options, "-schema-location", place, str(rendered))
    summary = json.loads(done.expect())["summary"]
    assert (summary["invalid"], summary["errors"]) == (0, 0)
    assert summary["valid"] >= 80
    assert summary["valid"] + summary["skipped"] == 168


def schemas(folder: Path) -> None:
    """Write the schemas of the built-in kinds as kubeconform looks for them."""
    folder.mkdir()
    catalog = Catalog.of("1.36")
    for api in catalog.api_versions():
        group, _, version = api.rpartition("/")
        middle = f"-{group.partition('.')[0]}" if group else ""
        for kind in catalog.served(api):
            document = catalog.document(catalog.find(api, kind))
            (folder / f"{kind.lower()}{middle}-{version}.json").write_text(document)
