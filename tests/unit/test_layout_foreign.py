"""Layouts that other tools wrote (tests/vectors), read, copied through every kind of place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from content import image

from ocipack.copy import copy
from ocipack.errors import OcipackError
from ocipack.oci.closure import closure
from ocipack.stores.layout import LayoutStore
from ocipack.stores.memory import MemoryStore

VECTORS = Path(__file__).parent.parent / "vectors"
INDEX = "sha256:88c0e4dc4bcb251f427f4acc927f0fedc240072f684af0bedc6acef7c15ebd9f"
REFERRERS = [
    "sha256:13ffbac98322783a8c4295dc6839b1469f50d6e8f99b16ee17ffa93243a86522",
    "sha256:225d8eb3efe5e9ff81ef2f9cc3d0a2928964e2966d568b8131e2fb5843b810b6",
    "sha256:9a4eb80ec9610af3a305049a06e35daf6fa2edf33521d596d12840d5fabedde6",
]


@pytest.mark.parametrize(
    ("name", "root", "referrers"),
    [
        ("oras", INDEX, REFERRERS),
        ("regctl", INDEX, REFERRERS),
        ("regctl-export.tar", INDEX, []),
        (
            "skopeo.tar",
            "sha256:8bcd48faf42d75447c8c470094d95d7561d1f7cd3a6132b1559841c457ac51c6",
            [],
        ),
    ],
)
def test_layouts_of_other_tools(name: str, root: str, referrers: list[str], tmp_path: Path) -> None:
    source = LayoutStore(VECTORS / "layouts" / name)
    found = source.resolve("v1")
    assert str(found.digest) == root
    assert sorted(str(one.digest) for one in source.referrers(found)) == referrers
    for dest in (LayoutStore(tmp_path / "copy"), LayoutStore(tmp_path / "copy.tar")):
        with dest:
            copy(source, dest, found, tag="v1")
            for referrer in source.referrers(found):
                copy(source, dest, referrer)
            assert dest.exists(found)
            assert sorted(str(one.digest) for one in dest.referrers(found)) == referrers


@pytest.mark.parametrize("name", ["oras", "regctl", "regctl-export.tar", "skopeo.tar"])
def test_layouts_of_other_tools_are_written_to(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name.endswith(".tar"):
        shutil.copy(VECTORS / "layouts" / name, path)
    else:
        shutil.copytree(VECTORS / "layouts" / name, path)
    origin = MemoryStore()
    with LayoutStore(path) as store:
        before = store.resolve("v1")
        listed = {one.digest for one in store.referrers(before)}
        ours = image(origin, b"ours", subject=before)
        copy(origin, store, ours, tag="ours")
    store = LayoutStore(path)
    assert store.resolve("v1") == before
    assert {one.digest for one in store.referrers(before)} == {*listed, ours.digest}


COSIGN = sorted(one.parent.name for one in (VECTORS / "cosign").glob("*/index.json"))


@pytest.mark.parametrize("name", COSIGN)
def test_every_signed_layout_is_read_whole(name: str) -> None:
    store = LayoutStore(VECTORS / "cosign" / name)
    back = MemoryStore()
    for tag in store.tags():
        root = store.resolve(tag)
        for node, _ in closure(store, root):
            for _ in store.fetch(node):
                pass
        copy(store, back, root, tag=tag)
        for referrer in store.referrers(root):
            copy(store, back, referrer)
    assert list(back.tags()) == list(store.tags())


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("v3-key-bundle", 1),
        ("both", 1),
        ("fallback-v2", 3),
        ("fallback-v3", 3),
        ("fallback-tag-is-subject", 0),
        ("fallback-subject-differs", 0),
        ("fallback-subject-differs-statement-fits", 0),
        ("v3-attestations", 5),
        ("two-keys-bundle", 2),
    ],
)
def test_how_many_referrers_are_true(name: str, count: int) -> None:
    store = LayoutStore(VECTORS / "cosign" / name)
    assert len(list(store.referrers(store.resolve("v1")))) == count


def test_a_blob_that_no_index_lists_is_no_referrer(tmp_path: Path) -> None:
    """`cosign save` leaves bundles so; any blob of a hostile layout could say the same."""
    origin = MemoryStore()
    subject = image(origin, b"1")
    with LayoutStore(tmp_path / "layout") as store:
        copy(origin, store, subject, tag="v1")
    unlisted = image(origin, b"2", subject=subject)
    file = tmp_path / "layout" / "blobs" / "sha256" / unlisted.digest.hex
    file.write_bytes(origin.content[unlisted.digest])
    assert list(store.referrers(subject)) == []


def test_a_directory_that_is_no_layout(tmp_path: Path) -> None:
    with pytest.raises(OcipackError, match="no OCI layout"):
        LayoutStore(tmp_path).resolve("v1")
