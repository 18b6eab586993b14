"""Laws of layouts: edits keep what is not theirs, and hostile bytes raise only what we say."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from content import image
from hypothesis import example, given, settings, strategies as st

from ocipack.copy import copy
from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.stores.layout import LayoutStore
from ocipack.stores.layout.index import Index
from ocipack.stores.memory import MemoryStore

REF_NAME = "org.opencontainers.image.ref.name"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"

names = st.sampled_from(["v1", "v2", "latest", "docker.io/library/x:1"])
digests = st.sampled_from([f"sha256:{c * 64}" for c in "0123"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
foreign = st.fixed_dictionaries(
    {"mediaType": st.just(MANIFEST), "digest": digests, "size": st.just(7)},
    optional={
        "annotations": st.dictionaries(st.just(REF_NAME), names)
        | st.dictionaries(st.text(max_size=9), st.text(max_size=5), max_size=3),
        "platform": json_values,
        "unknown": json_values,
    },
)


def target(digest: str) -> Descriptor:
    return Descriptor(MANIFEST, Digest.parse(digest), 7)


def nameless(entry: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in (entry.get("annotations") or {}).items() if k != REF_NAME}
    rest = {k: v for k, v in entry.items() if k != "annotations"}
    return {**rest, "annotations": kept} if kept else rest


@given(st.lists(foreign, max_size=8), st.lists(st.tuples(names, digests), max_size=6))
def test_tagging_keeps_what_is_not_its_own(
    before: list[dict[str, Any]], moves: list[tuple[str, str]]
) -> None:
    raw = json.dumps({"schemaVersion": 2, "x": [1.5, "ü"], "manifests": before}).encode()
    index = Index.parse(raw, "index.json")
    for name, digest in moves:
        index = index.with_tag(target(digest), name)
        assert index.named(name) == target(digest)
    after = json.loads(index.encode())
    moved = dict(moves)
    untouched = [
        e
        for e in before
        if (e.get("annotations") or {}).get(REF_NAME) not in moved and nameless(e) != e
    ]
    assert [e for e in after["manifests"] if e in untouched] == untouched
    assert {e["digest"] for e in before} <= {e["digest"] for e in after["manifests"]}
    assert after["x"] == [1.5, "ü"]
    for name, digest in moved.items():
        assert index.named(name) == target(digest)


@given(st.lists(st.tuples(names, digests), max_size=30))
def test_moving_tags_about_piles_nothing_up(moves: list[tuple[str, str]]) -> None:
    index = Index.empty("index.json")
    for name, digest in moves:
        index = index.with_tag(target(digest), name)
    assert len(index.entries) <= 4 + 4  # names, and digests that lost theirs


@given(st.lists(foreign, max_size=8))
def test_what_is_read_is_written(entries: list[dict[str, Any]]) -> None:
    raw = json.dumps({"manifests": entries, "schemaVersion": 2, "z": None}).encode()
    assert json.loads(Index.parse(raw, "x").encode()) == json.loads(raw)


def ask_everything(store: LayoutStore, subject: Descriptor) -> None:
    asks: list[Callable[[], object]] = [
        lambda: store.resolve("v1"),
        lambda: store.resolve(str(subject.digest)),
        lambda: list(store.fetch(subject)),
        lambda: list(store.tags()),
        lambda: list(store.referrers(subject)),
        lambda: store.exists(subject),
        lambda: store.tag(subject, "v2"),
        lambda: copy(store, MemoryStore(), subject),
    ]
    for ask in asks:
        try:
            ask()
        except (IntegrityError, NotFound, Rejected):
            continue


documents = st.binary(max_size=200) | st.builds(
    lambda value: json.dumps(value).encode(),
    json_values
    | st.fixed_dictionaries(
        {"manifests": st.lists(json_values | foreign, max_size=4)},
        optional={"mediaType": json_values, "schemaVersion": json_values},
    ),
)


@settings(deadline=None, max_examples=60)
@given(documents, documents)
@example(b"[" * 100_000, b"{}")
@example(b'{"manifests":' + b"[" * 100_000, b'{"imageLayoutVersion":"1.0.0"}')
@pytest.mark.parametrize("name", ["index.json", "oci-layout"])
def test_a_hostile_index_raises_only_what_we_say(name: str, first: bytes, second: bytes) -> None:
    origin = MemoryStore()
    root = image(origin, b"1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layout"
        copy(origin, LayoutStore(path), root, tag="v1")
        (path / name).write_bytes(first)
        ask_everything(LayoutStore(path), root)
        (path / "blobs" / "sha256" / root.digest.hex).write_bytes(second)
        ask_everything(LayoutStore(path), root)


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_a_hostile_tar_raises_only_what_we_say(data: st.DataObject) -> None:
    origin = MemoryStore()
    root = image(origin, b"1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layout.tar"
        with LayoutStore(path) as store:
            copy(origin, store, root, tag="v1")
        raw = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            # headers are where it hurts: the first hundred bytes and the fields of a block
            block = data.draw(st.integers(0, len(raw) // 512 - 1)) * 512
            raw[block + data.draw(st.integers(0, 511))] = data.draw(st.integers(0, 255))
        end = data.draw(st.integers(0, len(raw)) | st.just(len(raw)))
        path.write_bytes(raw[:end])
        with suppress(IntegrityError), LayoutStore(path) as store:
            ask_everything(store, root)


@given(st.text(max_size=130))
def test_a_tag_is_taken_or_misuse(name: str) -> None:
    origin = MemoryStore()
    root = image(origin, b"1")
    try:
        origin.tag(root, name)
    except Misuse:
        assert not list(origin.tags())
    else:
        assert list(origin.tags()) == [name]
        assert name.isascii()
        assert len(name) <= 128
