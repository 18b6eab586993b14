"""`ocipack copy` between registries: what it brings, refuses and reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chain.conftest import Run
from content import image, put
from registry import Registry, Switches

from ocipack.copy import Transfers
from ocipack.oci.descriptor import INDEX, Descriptor
from ocipack.oci.reference import Reference
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry.registries import Registries

MISUSE, NO = 2, 1
ARM = "linux/arm64"


@pytest.fixture
def source() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.fixture
def target() -> Iterator[Registry]:
    with Registry(Switches(sparse=True)) as running:
        yield running


def index(store: MemoryStore, *platforms: str) -> tuple[Descriptor, dict[str, Descriptor]]:
    """An index with an image for each platform, and a `.sig` tag on each image."""
    images = {text: image(store, text.encode()) for text in platforms}
    entries = []
    for text, made in images.items():
        system, architecture = text.split("/")
        runs = {"os": system, "architecture": architecture}
        entries.append({**made.to_dict(), "platform": runs})
        store.tag(image(store, f"for {text}".encode()), f"sha256-{made.digest.hex}.sig")
    raw = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
    return put(store, raw, INDEX), images


def fill(registry: Registry, store: MemoryStore, root: Descriptor) -> str:
    """Bring it all to a registry under v1; return the place."""
    reference = Reference.parse(f"{registry.name}/team/app:v1")
    dest = Registries().store(reference, writes=True)
    with Transfers() as run:
        run.copy(store, dest, root, attached=True, tag="v1")
    return f"oci://{reference}"


def result(ocipack: Run, *command: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = ocipack(*command, "--output", "json")
    found: dict[str, Any] = json.loads(out)
    return code, found


def test_all_of_it_comes_along_and_is_counted(
    ocipack: Run, source: Registry, target: Registry
) -> None:
    store = MemoryStore()
    root, images = index(store, "linux/amd64", ARM)
    place = fill(source, store, root)
    there = f"oci://{target.name}/team/app"
    code, found = result(ocipack, "copy", place, there)
    assert code == 0
    assert found["artifact"] == {"place": f"{there}@{root.digest}", "digest": str(root.digest)}
    assert found["kinds"] == {
        "indexes": 1,
        "manifests": 2,
        "blobs": 8,
        "signatures": 2,
        "digest tags": 2,
    }
    assert found["copied"]["count"] == 13
    kept = target.repository("team/app").tags
    assert set(kept) == {f"sha256-{one.digest.hex}.sig" for one in images.values()}
    code, found = result(ocipack, "copy", place, there)
    assert (code, found["copied"]["count"]) == (0, 0)
    code, found = result(ocipack, "copy", place, f"oci://{source.name}/other", "--no-recursive")
    assert (code, found["kinds"]) == (0, {"indexes": 1, "manifests": 2, "blobs": 4})
    assert found["mounted"]["count"] == 4


def test_of_an_index_only_what_is_wanted(ocipack: Run, source: Registry, target: Registry) -> None:
    store = MemoryStore()
    root, images = index(store, "linux/amd64", ARM)
    place = fill(source, store, root)
    there = f"oci://{target.name}/team/app"
    code, found = result(ocipack, "copy", place, there, "--platform", ARM)
    assert (code, found["left_out"]) == (0, 1)
    assert found["artifact"]["digest"] == str(root.digest), "the index stays as it is"
    kept = target.repository("team/app")
    assert str(images[ARM].digest) in kept.manifests
    assert str(images["linux/amd64"].digest) not in kept.manifests
    assert set(kept.tags) == {f"sha256-{images[ARM].digest.hex}.sig"}


@pytest.mark.parametrize("platform", ["linux/riscv64", "windows/arm64"])
def test_a_platform_that_is_not_there(
    ocipack: Run, source: Registry, target: Registry, platform: str
) -> None:
    store = MemoryStore()
    place = fill(source, store, index(store, "linux/amd64", ARM)[0])
    command = ("copy", place, f"oci://{target.name}/team/app", "--platform", platform)
    code, _, err = ocipack(*command)
    assert code == NO
    assert f"no entry is for {platform}" in err
    code, _, err = ocipack(*command, "--platform", ARM)
    assert code == NO
    assert f"no entry is for {platform}" in err
    assert not target.lines("^(POST|PUT)")


def test_where_an_index_must_be_whole(ocipack: Run, source: Registry) -> None:
    store = MemoryStore()
    place = fill(source, store, index(store, "linux/amd64", ARM)[0])
    code, _, err = ocipack("copy", place, "ocidir://there", "--platform", ARM)
    assert code == MISUSE
    assert "a layout holds no index without all its entries" in err
    with Registry() as strict:
        there = f"oci://{strict.name}/team/app"
        code, _, err = ocipack("copy", place, there, "--platform", ARM)
        assert code not in (0, MISUSE)
        assert "the destination may take no index without all its entries" in err


def test_signatures_can_be_required(ocipack: Run, source: Registry, target: Registry) -> None:
    store = MemoryStore()
    root, _ = index(store, "linux/amd64", ARM)
    place = fill(source, store, root)
    command = ("copy", place, f"oci://{target.name}/team/app", "--require-signatures")
    code, _, err = ocipack(*command)
    assert code == NO
    assert f"{root.digest}: no signature is attached to it" in err
    assert not target.lines("^(POST|PUT)")
    store.tag(image(store, b"for all"), f"sha256-{root.digest.hex}.sig")
    fill(source, store, root)
    assert ocipack(*command)[0] == 0


def test_signatures_that_are_required_can_be_left_behind(
    ocipack: Run, source: Registry, target: Registry
) -> None:
    store = MemoryStore()
    root = image(store, b"1")
    store.tag(image(store, b"signature"), f"sha256-{root.digest.hex}.sig")
    place = fill(source, store, root)
    there = f"oci://{target.name}/team/app"
    code, found = result(ocipack, "copy", place, there, "--require-signatures", "--no-signatures")
    assert (code, found["kinds"]) == (0, {"manifests": 1, "blobs": 2})


def test_what_the_source_lists_and_does_not_have_is_said(ocipack: Run, target: Registry) -> None:
    store = MemoryStore()
    root = image(store, b"1")
    referrer = image(store, b"signature", subject=root)
    with Registry(Switches(referrers=False)) as old:
        place = fill(old, store, root)
        del old.repository("team/app").manifests[str(referrer.digest)]
        code, out, err = ocipack("copy", place, f"oci://{target.name}/team/app", "--output", "json")
        assert (code, json.loads(out)["gone"]) == (0, [str(referrer.digest)])
        assert f"warning: {referrer.digest} is listed as attached" in err
        mirror = {
            "apiVersion": "ocipack.dev/v1alpha1",
            "kind": "Mirror",
            "to": f"oci://{target.name}/mirror",
            "unsigned": True,
            "sources": [{"image": place.removeprefix("oci://")}],
        }
        Path("mirror.yaml").write_text(json.dumps(mirror))
        code, out, _ = ocipack("mirror", "--output", "json")
    (finding,) = json.loads(out)["findings"]
    assert (code, finding["rule"]) == (0, "mirror-gone")
    assert str(referrer.digest) in finding["message"]
