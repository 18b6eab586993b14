"""Whoever writes to the registry as enemy: whatever is changed there, nobody says yes wrongly."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from registry import Registry, Repository, Switches

from ocipack.copy import copy

Run = Callable[..., tuple[int, str, str]]

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
NO, MISUSE = 1, 2


@pytest.fixture(params=[True, False], ids=["referrers API", "fallback tag"])
def server(request: pytest.FixtureRequest) -> Iterator[Registry]:
    with Registry(Switches(referrers=request.param)) as running:
        yield running


class Site:
    """A repository to which `hello` was shipped, and an enemy who may write what he likes."""

    def __init__(self, ocipack: Run, server: Registry, tree: Path, key: str, public: str) -> None:
        self.ocipack, self.tree, self.key, self.public = ocipack, tree, key, public
        self.server = server
        self.place = f"oci://{server.name}/team/hello:stable"
        self.digest = self.ship()

    @property
    def repository(self) -> Repository:
        return self.server.repository("team/hello")

    def ship(self) -> str:
        code, out, err = self.ocipack("ship", str(self.tree), "--to", self.place, "--key", self.key)
        assert code == 0, err
        return out.strip().partition("@")[2]

    def verify(self, *more: str) -> int:
        return self.ocipack("verify", self.place, "--key", self.public, *more)[0]

    def put(self, document: Any, media_type: str = MANIFEST) -> str:
        raw = json.dumps(document).encode()
        digest = f"sha256:{hashlib.sha256(raw).hexdigest()}"
        self.repository.manifests[digest] = (media_type, raw)
        return digest

    def document(self, digest: str) -> Any:
        return json.loads(self.repository.manifests[digest][1])

    @property
    def signature_tag(self) -> str:
        return f"sha256-{self.digest[7:]}.sig"


@pytest.fixture
def site(ocipack: Run, server: Registry, hello: Path, key: str, public: str) -> Site:
    return Site(ocipack, server, hello, key, public)


def test_unchanged_and_yes_while_nobody_meddles(site: Site) -> None:
    before = len(site.server.lines("^(PUT|POST|PATCH)"))
    assert site.ship() == site.digest
    assert len(site.server.lines("^(PUT|POST|PATCH)")) == before
    assert site.verify() == 0


def test_another_annotation_is_another_digest_which_nobody_signed(site: Site) -> None:
    document = site.document(site.digest)
    document["annotations"] = {**document.get("annotations", {}), "evil": "yes"}
    site.repository.tags["stable"] = site.put(document)
    assert site.verify() == NO
    assert site.ship() == site.digest
    assert site.repository.tags["stable"] == site.digest


def test_a_tag_moved_to_unsigned_content_with_the_same_layer(site: Site) -> None:
    document = site.document(site.digest)
    document.pop("annotations", None)
    document["mediaType"] = MANIFEST
    twin = site.put({**document, "annotations": {"org.opencontainers.image.revision": "x"}})
    site.repository.tags["stable"] = twin
    code, _, err = site.ocipack("ship", str(site.tree), "--to", site.place, "--key", site.key)
    assert code == 0
    assert "unchanged" not in err
    assert site.repository.tags["stable"] == site.digest


def test_signatures_taken_away_are_missed(site: Site) -> None:
    site.repository.tags.pop(site.signature_tag)
    for digest, (_, raw) in list(site.repository.manifests.items()):
        if b"sigstore.bundle" in raw:
            site.repository.manifests.pop(digest)
    site.repository.tags.pop(f"sha256-{site.digest[7:]}", None)
    assert site.verify() == NO
    code, _, err = site.ocipack("ship", str(site.tree), "--to", site.place, "--key", site.key)
    assert code == 0
    assert "unchanged" not in err
    assert site.verify() == 0


def test_junk_beside_the_signatures_vetoes_nothing(site: Site) -> None:
    signatures = site.document(site.repository.tags[site.signature_tag])
    junk = {**signatures["layers"][0], "annotations": {"dev.cosignproject.cosign/signature": "!"}}
    huge = {**signatures["layers"][0], "digest": "sha256:" + "1" * 64, "size": 90_000_000}
    huge["mediaType"] = "application/octet-stream"
    signatures["layers"] = [junk, huge, *signatures["layers"]]
    site.repository.tags[site.signature_tag] = site.put(signatures)
    site.put({"schemaVersion": 2, "mediaType": MANIFEST, "subject": {"digest": site.digest}})
    assert site.verify() == 0
    assert not site.server.lines("blobs/sha256:" + "1" * 64)
    assert site.ship() == site.digest


def test_a_signature_of_something_else_under_our_tag_is_none(
    site: Site, ocipack: Run, hello: Path
) -> None:
    old = site.repository.tags[site.signature_tag]
    settings = hello / "settings.yaml"
    settings.write_text(settings.read_text() + "# evil\n")
    evil = ocipack("pack", str(hello), "--to", f"oci://{site.server.name}/team/hello")[1].strip()
    digest = evil.partition("@")[2]
    site.repository.tags[f"sha256-{digest[7:]}.sig"] = old
    site.repository.tags["stable"] = digest
    listing = {"schemaVersion": 2, "mediaType": INDEX, "manifests": []}
    for one, (media_type, raw) in list(site.repository.manifests.items()):
        if b"sigstore.bundle" in raw:
            node = {"mediaType": media_type, "digest": one, "size": len(raw)}
            listing["manifests"] = [node]
    site.repository.tags[f"sha256-{digest[7:]}"] = site.put(listing, INDEX)
    assert site.verify() == NO


def test_another_layer_under_a_signed_manifest_is_noticed(site: Site) -> None:
    layer = site.document(site.digest)["layers"][0]["digest"]
    site.server.blobs[layer] = site.server.blobs[layer][:-1] + b"\x7f"
    assert site.verify("--content") == NO
    code, _, _ = site.ocipack("pull", site.place, "--key", site.public, "-o", "out")
    assert code == NO
    assert not Path("out").exists()


def test_an_old_signed_digest_put_under_the_tag_during_a_run_is_not_overwritten(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = site.digest
    settings = site.tree / "settings.yaml"
    settings.write_text(settings.read_text() + "# second\n")
    site.digest = site.ship()
    settings.write_text(settings.read_text() + "# third\n")

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        site.repository.tags["stable"] = old
        return copy(*arguments, **options)

    monkeypatch.setattr("ocipack.ship.copy", meanwhile)
    code, _, err = site.ocipack("ship", str(site.tree), "--to", site.place, "--key", site.key)
    assert code == NO
    assert old in err
    assert site.repository.tags["stable"] == old


def test_a_registry_that_lies_about_digests_is_refused(site: Site) -> None:
    media_type, raw = site.repository.manifests[site.digest]
    site.repository.manifests[site.digest] = (media_type, raw.replace(b"layers", b"Layers"))
    assert site.verify() == NO


def test_no_artifact_is_shipped_under_a_name_that_verifiers_look_under(site: Site) -> None:
    for name in (site.signature_tag, f"sha256-{site.digest[7:]}"):
        place = f"oci://{site.server.name}/team/hello:{name}"
        code, _, _ = site.ocipack("ship", str(site.tree), "--to", place, "--key", site.key)
        assert code == MISUSE
    assert site.verify() == 0
