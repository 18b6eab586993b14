"""An OCI layout in a directory: what is on disk, what others wrote, what is hostile."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from content import CONFIG, INDEX, LAYER, MANIFEST, blob, document, image, index, put

from ocipack.copy import copy
from ocipack.errors import (
    Denied,
    IntegrityError,
    Misuse,
    NotFound,
    OcipackError,
    Rejected,
    StoreError,
    Unavailable,
)
from ocipack.oci import closure as closure_module
from ocipack.oci.closure import closure
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.store import manifest
from ocipack.stores.layout import LayoutStore, index as index_module, locks
from ocipack.stores.memory import MemoryStore

REF_NAME = "org.opencontainers.image.ref.name"


@pytest.fixture
def origin() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "layout"


def entries(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((path / "index.json").read_bytes())["manifests"]
    return found


def by_hand(path: Path, origin: MemoryStore, *listed: dict[str, Any], **members: Any) -> None:
    """Write a layout as another tool would: all of `origin`, and these entries."""
    (path / "blobs" / "sha256").mkdir(parents=True)
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}\n')
    for digest, data in origin.content.items():
        (path / "blobs" / "sha256" / digest.hex).write_bytes(data)
    index = {"schemaVersion": 2, **members, "manifests": list(listed)}
    (path / "index.json").write_text(json.dumps(index, indent=1))


def entry(target: Descriptor, tag: str | None = None, **members: Any) -> dict[str, Any]:
    made = {"mediaType": target.media_type, "digest": str(target.digest), "size": target.size}
    annotations = {REF_NAME: tag} if tag is not None else {}
    return {**made, **({"annotations": annotations} if annotations else {}), **members}


def snapshot(path: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(one.relative_to(path)): (
            one.stat().st_mtime_ns,
            one.read_bytes() if one.is_file() else b"",
        )
        for one in [path, *path.rglob("*")]
    }


# what is on disk


def test_the_files_are_those_of_the_specification(path: Path, origin: MemoryStore) -> None:
    root = image(origin, b"layer")
    copy(origin, LayoutStore(path), root, tag="v1")
    assert json.loads((path / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    assert json.loads((path / "index.json").read_bytes()) == {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [
            {
                "mediaType": MANIFEST,
                "size": root.size,
                "digest": str(root.digest),
                "annotations": {REF_NAME: "v1"},
            }
        ],
    }
    kept = {one.name: one.read_bytes() for one in (path / "blobs" / "sha256").iterdir()}
    assert kept == {digest.hex: data for digest, data in origin.content.items()}


def test_a_sha512_blob_has_its_own_folder(path: Path, origin: MemoryStore) -> None:
    target = put(origin, b"layer", LAYER, "sha512")
    LayoutStore(path).push(target, origin)
    assert (path / "blobs" / "sha512" / target.digest.hex).read_bytes() == b"layer"


def test_reading_does_not_make_a_layout(path: Path) -> None:
    store = LayoutStore(path)
    asks: list[Callable[[], object]] = [
        lambda: store.resolve("v1"),
        lambda: store.resolve("sha256:" + "0" * 64),
        lambda: list(store.fetch(blob(b""))),
        lambda: list(store.tags()),
        lambda: list(store.referrers(blob(b""))),
    ]
    for ask in asks:
        with pytest.raises(NotFound):
            ask()
    assert not store.exists(blob(b""))
    assert not path.exists()


def test_missing_folders_above_are_made(tmp_path: Path, origin: MemoryStore) -> None:
    copy(origin, LayoutStore(tmp_path / "a" / "b" / "c"), image(origin, b"1"), tag="v1")
    assert list(LayoutStore(tmp_path / "a" / "b" / "c").tags()) == ["v1"]


def test_a_directory_with_other_things_is_left_alone(path: Path, origin: MemoryStore) -> None:
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")
    with pytest.raises(Rejected, match=r"thesis\.tex"):
        copy(origin, LayoutStore(path), image(origin, b"1"), tag="v1")
    assert [one.name for one in path.iterdir()] == ["thesis.tex"]


def test_a_second_copy_writes_nothing(path: Path, origin: MemoryStore) -> None:
    subject = image(origin, b"1")
    signature = image(origin, b"2", subject=subject)
    copy(origin, LayoutStore(path), subject, tag="v1")
    copy(origin, LayoutStore(path), signature)
    before = snapshot(path)
    copy(origin, LayoutStore(path), subject, tag="v1")
    copy(origin, LayoutStore(path), signature)
    assert snapshot(path) == before


def test_umask_decides_the_mode(path: Path, origin: MemoryStore) -> None:
    old = os.umask(0o022)
    try:
        copy(origin, LayoutStore(path), image(origin, b"1"), tag="v1")
    finally:
        os.umask(old)
    modes = {one.stat().st_mode & 0o777 for one in path.rglob("*") if one.is_file()}
    assert modes == {0o644}


def test_writes_are_synced_before_they_are_seen(
    path: Path, origin: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, then name, then folder: the order that survives a power cut."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def record_sync(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def record_name(*args: Any, **kwargs: Any) -> None:
        done.append("rename")
        replace(*args, **kwargs)

    store = LayoutStore(path)
    store.push(put(origin, b"first", LAYER), origin)
    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", record_name)
    store.push(put(origin, b"second", LAYER), origin)
    assert done == ["file", "rename", "folder"]


# damage


@pytest.mark.parametrize("damage", ["truncated", "altered", "longer", "missing", "empty"])
@pytest.mark.parametrize("which", ["layer", "config", "child", "root"])
def test_damage_is_noticed_and_mended_by_the_next_copy(
    path: Path, origin: MemoryStore, damage: str, which: str
) -> None:
    child = image(origin, b"the layer")
    root = index(origin, child)
    copy(origin, LayoutStore(path), root, tag="v1")
    parts = {"layer": blob(b"the layer"), "child": child, "root": root}
    parts["config"] = next(node for node, _ in closure(origin, root) if node.media_type == CONFIG)
    target = parts[which]
    file = path / "blobs" / "sha256" / target.digest.hex
    data = file.read_bytes()
    bad = {
        "truncated": data[:-1],
        "altered": data[:-1] + bytes([data[-1] ^ 1]),
        "longer": data + b" ",
        "empty": b"",
    }
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(bad[damage])
    store = LayoutStore(path)
    with pytest.raises((IntegrityError, NotFound)):
        b"".join(store.fetch(target))
    assert not store.exists(target)
    assert not store.exists(root)
    copy(origin, store, root, tag="v1")
    assert store.exists(root)
    assert file.read_bytes() == data


def test_exists_looks_again_when_a_file_has_changed(path: Path, origin: MemoryStore) -> None:
    target = put(origin, b"the layer", LAYER)
    store = LayoutStore(path)
    store.push(target, origin)
    assert store.exists(target)
    file = path / "blobs" / "sha256" / target.digest.hex
    times = file.stat()
    file.write_bytes(b"THE LAYER")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # its size and mtime are the same
    file.chmod(0o600)
    assert not store.exists(target)


def test_a_tag_whose_manifest_is_missing_is_not_a_tag_that_is_missing(
    path: Path, origin: MemoryStore
) -> None:
    root = image(origin, b"1")
    copy(origin, LayoutStore(path), root, tag="v1")
    (path / "blobs" / "sha256" / root.digest.hex).unlink()
    with pytest.raises(StoreError, match=str(root.digest)) as caught:
        LayoutStore(path).resolve("v1")
    assert not isinstance(caught.value, NotFound)


def test_an_altered_manifest_is_refused_by_digest_too(path: Path, origin: MemoryStore) -> None:
    root = image(origin, b"1")
    copy(origin, LayoutStore(path), root)
    file = path / "blobs" / "sha256" / root.digest.hex
    file.write_bytes(file.read_bytes().replace(b"2", b"3", 1))
    store = LayoutStore(path)
    with pytest.raises(IntegrityError, match=root.digest.hex):
        manifest(store, store.resolve(str(root.digest)))


def test_a_manifest_without_a_tag_is_found_through_index_json(
    path: Path, origin: MemoryStore
) -> None:
    root = image(origin, b"1")
    copy(origin, LayoutStore(path), root)
    copy(origin, LayoutStore(path), root)
    assert json.loads((path / "index.json").read_text())["manifests"] == [root.to_dict()]
    copy(origin, LayoutStore(path), root, tag="v1")
    names = [
        e.get("annotations") for e in json.loads((path / "index.json").read_text())["manifests"]
    ]
    assert names == [{"org.opencontainers.image.ref.name": "v1"}]
    again = image(origin, b"2")
    copy(origin, LayoutStore(path), again)
    entries = json.loads((path / "index.json").read_text())["manifests"]
    assert [e["digest"] for e in entries] == [str(root.digest), str(again.digest)]


def test_the_children_of_an_index_are_found_through_it(path: Path, origin: MemoryStore) -> None:
    children = [image(origin, b"1"), image(origin, b"2")]
    root = index(origin, *children)
    copy(origin, LayoutStore(path), root)
    assert json.loads((path / "index.json").read_text())["manifests"] == [root.to_dict()]


def test_an_entry_that_lies_about_a_size_is_refused(path: Path, origin: MemoryStore) -> None:
    root = image(origin, b"1")
    by_hand(path, origin, {**entry(root, "v1"), "size": root.size - 1})
    store = LayoutStore(path)
    with pytest.raises(IntegrityError):
        copy(store, MemoryStore(), store.resolve("v1"))


# what others wrote


def test_what_we_do_not_know_stays(path: Path, origin: MemoryStore) -> None:
    one, two = image(origin, b"1"), image(origin, b"2")
    strange = {"mediaType": "text/x", "digest": "blake3:00", "size": 1, "z": [1, {"y": None}]}
    theirs = entry(
        one,
        "theirs",
        platform={"architecture": "arm64", "os": "linux", "os.features": ["x"]},
        urls=["https://example.org/"],
        unknown={"b": 1, "a": [True, None, "ü<>&"]},
    )
    theirs["annotations"]["io.containerd.image.name"] = "docker.io/library/x:1"
    by_hand(path, origin, theirs, strange, annotations={"k": "v"}, extra=[1])
    store = LayoutStore(path)
    store.tag(two, "ours")
    copy(origin, store, image(origin, b"3", subject=one))
    document = json.loads((path / "index.json").read_bytes())
    assert document["manifests"][:2] == [theirs, strange]
    assert list(document["manifests"][0]) == list(theirs)
    assert document["annotations"] == {"k": "v"}
    assert document["extra"] == [1]
    assert "mediaType" not in document
    assert store.resolve("theirs") == one
    assert store.resolve("ours") == two


def test_a_tag_that_moves_away_leaves_the_old_entry_listed(path: Path, origin: MemoryStore) -> None:
    one, two = image(origin, b"1"), image(origin, b"2")
    by_hand(path, origin, entry(one, "v1", platform={"os": "linux"}))
    store = LayoutStore(path)
    store.tag(two, "v1")
    plain = entry(one)
    assert entries(path)[0] == {**plain, "platform": {"os": "linux"}}
    store.tag(one, "v1")
    store.tag(two, "v1")
    assert len(entries(path)) == 2


def test_a_name_for_two_things_is_ambiguous(path: Path, origin: MemoryStore) -> None:
    one, two = image(origin, b"1"), image(origin, b"2")
    by_hand(path, origin, entry(one, "latest"), entry(two, "latest"), entry(one, "v1"))
    store = LayoutStore(path)
    with pytest.raises(IntegrityError, match="ambiguous"):
        store.resolve("latest")
    assert store.resolve("v1") == one
    assert store.resolve(str(two.digest)) == two
    with pytest.raises(IntegrityError, match="ambiguous"):
        store.tag(one, "latest", was=one.digest)
    store.tag(one, "latest")
    assert store.resolve("latest") == one
    assert str(two.digest) in {e["digest"] for e in entries(path)}


def test_the_same_entry_twice_is_one_thing(path: Path, origin: MemoryStore) -> None:
    root = image(origin, b"1")
    by_hand(path, origin, entry(root, "v1"), entry(root, "v1", platform={"os": "linux"}))
    assert LayoutStore(path).resolve("v1") == root
    assert list(LayoutStore(path).tags()) == ["v1"]


def test_names_that_are_no_tags_are_not_listed(path: Path, origin: MemoryStore) -> None:
    root = image(origin, b"1")
    names = ["docker.io/library/x:1", "v1", "\x1b[31m", "a" * 129]
    by_hand(path, origin, *(entry(root, name) for name in names), entry(root))
    assert list(LayoutStore(path).tags()) == ["v1"]


def test_a_manifest_that_no_entry_lists_resolves_by_digest(path: Path, origin: MemoryStore) -> None:
    one = image(origin, b"1")
    config = put(origin, b"{}", CONFIG)
    bare = put(origin, document(config=config.to_dict(), layers=[]), MANIFEST)
    bare_index = put(origin, document(manifests=[one.to_dict()]), INDEX)
    by_hand(path, origin)
    store = LayoutStore(path)
    for target in (one, bare, bare_index):
        assert store.resolve(str(target.digest)) == target
    other = [put(origin, raw, LAYER) for raw in (b"\x00", b"[]", b"{}", b'{"mediaType":"a/b"}')]
    for target in [*other, put(origin, b" " * (4 * 1024 * 1024 + 1), LAYER)]:
        store.push(target, origin)
        with pytest.raises(NotFound, match="no manifest"):
            store.resolve(str(target.digest))


def test_a_tag_on_something_else_is_refused(path: Path, origin: MemoryStore) -> None:
    by_hand(path, origin, entry(put(origin, b"x", LAYER), "v1"))
    with pytest.raises(IntegrityError):
        LayoutStore(path).resolve("v1")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"manifests":{}}', '{"manifests":[1]}', '{"mediaType":"a/b"}', "\xff"],
)
def test_an_index_that_is_none_is_refused(path: Path, origin: MemoryStore, text: str) -> None:
    by_hand(path, origin)
    (path / "index.json").write_text(text, encoding="latin-1")
    with pytest.raises(IntegrityError, match=r"index\.json"):
        LayoutStore(path).resolve("v1")


@pytest.mark.parametrize("member", [{"digest": 1}, {"digest": "sha256:0"}, {"size": "1"}])
def test_a_bad_entry_spoils_only_its_own_tag(
    path: Path, origin: MemoryStore, member: dict[str, Any]
) -> None:
    root = image(origin, b"1")
    by_hand(path, origin, {**entry(root, "bad"), **member}, entry(root, "good"))
    store = LayoutStore(path)
    assert store.resolve("good") == root
    assert list(store.referrers(root)) == []
    with pytest.raises(IntegrityError, match="bad"):
        store.resolve("bad")


@pytest.mark.parametrize("version", [None, "{}", "2", '{"imageLayoutVersion":"2.0.0"}'])
def test_another_layout_version_is_refused(
    path: Path, origin: MemoryStore, version: str | None
) -> None:
    by_hand(path, origin, entry(image(origin, b"1"), "v1"))
    (path / "oci-layout").unlink()
    if version is not None:
        (path / "oci-layout").write_text(version)
    with pytest.raises((IntegrityError, NotFound), match="oci-layout"):
        LayoutStore(path).resolve("v1")


def test_ten_thousand_entries_are_read_and_one_more_is_not(
    path: Path, origin: MemoryStore, tmp_path: Path
) -> None:
    assert index_module.ENTRIES == 10_000
    root = image(origin, b"1")
    by_hand(path, origin, *(entry(root, f"v{n}") for n in range(10_000)))
    store = LayoutStore(path)
    assert len(list(store.tags())) == 10_000
    before = (path / "index.json").read_bytes()
    with pytest.raises(Rejected, match="10001 entries"):
        store.tag(root, "one-more")
    assert (path / "index.json").read_bytes() == before
    by_hand(tmp_path / "more", origin, *(entry(root, f"v{n}") for n in range(10_001)))
    with pytest.raises(IntegrityError, match="10001 entries"):
        LayoutStore(tmp_path / "more").resolve("v1")


def test_an_index_beyond_eight_mebibytes_is_refused(path: Path, origin: MemoryStore) -> None:
    assert index_module.BYTES == 8 * 1024 * 1024
    by_hand(path, origin, entry(image(origin, b"1"), "v1"))
    with (path / "index.json").open("ab") as file:
        file.truncate(8 * 1024 * 1024 + 1)
    with pytest.raises(IntegrityError, match="8388608"):
        LayoutStore(path).resolve("v1")


# hostile files


@pytest.mark.parametrize(
    "name", ["blobs", "blobs/sha256", "blobs/sha256/{hex}", "index.json", "oci-layout"]
)
def test_links_are_not_followed(path: Path, tmp_path: Path, origin: MemoryStore, name: str) -> None:
    root = image(origin, b"1")
    copy(origin, LayoutStore(path), root, tag="v1")
    place = path / name.format(hex=root.digest.hex)
    elsewhere = tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    store = LayoutStore(path)
    with pytest.raises(IntegrityError, match="links are not followed"):
        copy(store, MemoryStore(), store.resolve("v1"))


def test_nothing_is_written_through_a_link(path: Path, tmp_path: Path, origin: MemoryStore) -> None:
    (tmp_path / "elsewhere").mkdir()
    by_hand(path, origin)
    (path / "blobs" / "sha256").rmdir()
    (path / "blobs" / "sha256").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IntegrityError, match="links are not followed"):
        LayoutStore(path).push(put(origin, b"1", LAYER), origin)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_link_in_place_of_a_blob_is_replaced_not_followed(
    path: Path, tmp_path: Path, origin: MemoryStore
) -> None:
    by_hand(path, origin)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    target = put(origin, b"1", LAYER)
    (path / "blobs" / "sha256" / target.digest.hex).symlink_to(victim)
    LayoutStore(path).push(target, origin)
    assert victim.read_text() == "precious"
    assert b"".join(LayoutStore(path).fetch(target)) == b"1"


def test_a_lock_that_is_a_link_is_refused(path: Path, tmp_path: Path, origin: MemoryStore) -> None:
    by_hand(path, origin, entry(image(origin, b"1"), "v1"))
    for name in (".ocipack-index.lock", ".ocipack-write.lock"):
        (path / name).symlink_to(tmp_path / "made")
    with pytest.raises(IntegrityError):
        LayoutStore(path).push(put(origin, b"x", LAYER), origin)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_fifo_or_a_folder_is_no_blob(
    path: Path, origin: MemoryStore, make: Callable[[Path], None]
) -> None:
    root = image(origin, b"1")
    copy(origin, LayoutStore(path), root, tag="v1")
    file = path / "blobs" / "sha256" / root.digest.hex
    file.unlink()
    make(file)
    with pytest.raises(IntegrityError, match="not a regular file"):
        copy(LayoutStore(path), MemoryStore(), root)


# failures of the system


@pytest.mark.parametrize(
    ("code", "kind", "hint"),
    [
        (errno.EACCES, Denied, "owner and mode"),
        (errno.EROFS, Denied, "mount"),
        (errno.ENOSPC, Unavailable, "make room"),
        (errno.EDQUOT, Unavailable, "make room"),
        (errno.EIO, Unavailable, ""),
    ],
)
@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_write_that_fails_is_said_and_leaves_nothing(
    path: Path,
    origin: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    code: int,
    kind: type[OcipackError],
    hint: str,
) -> None:
    store = LayoutStore(path)
    copy(origin, store, image(origin, b"1"), tag="v1")
    root = image(origin, b"2")
    before = set(path.rglob("*"))

    def fail(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(kind) as caught:
            copy(origin, store, root, tag="v1")
    assert str(path) in str(caught.value)
    assert os.strerror(code) in str(caught.value)
    assert hint in caught.value.hint
    assert set(path.rglob("*")) == before
    copy(origin, LayoutStore(path), root, tag="v1")
    assert LayoutStore(path).exists(root)


def test_the_system_may_take_less_at_a_time(
    path: Path, origin: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:7]))
    root = image(origin, b"a layer that is longer than seven bytes")
    copy(origin, LayoutStore(path), root, tag="v1")
    assert LayoutStore(path).exists(root)


def test_a_read_that_fails_is_unavailable(
    path: Path, origin: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = image(origin, b"1")
    copy(origin, LayoutStore(path), root, tag="v1")

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(Unavailable):
        LayoutStore(path).resolve("v1")


def test_what_a_killed_writer_left_is_removed(path: Path, origin: MemoryStore) -> None:
    copy(origin, LayoutStore(path), image(origin, b"1"), tag="v1")
    left = [
        path / ".ocipack-partial-0011223344556677",
        path / "blobs" / "sha256" / ".ocipack-partial-0011223344556677",
    ]
    for file in left:
        file.write_bytes(b"half")
    copy(origin, LayoutStore(path), image(origin, b"2"), tag="v2")
    assert not any(file.exists() for file in left)


def test_what_a_living_writer_has_begun_is_not_removed(path: Path, origin: MemoryStore) -> None:
    big, small = put(origin, bytes(3_000_000), LAYER), put(origin, b"small", LAYER)
    LayoutStore(path).push(put(origin, b"0", LAYER), origin)

    class Interrupted(MemoryStore):
        def fetch(self, target: Descriptor) -> Any:  # noqa: ARG002 - the protocol
            yield bytes(1_000_000)
            yield bytes(1_000_000)
            LayoutStore(path).push(small, origin)
            yield bytes(1_000_000)

    LayoutStore(path).push(big, Interrupted())
    assert LayoutStore(path).exists(big)
    assert LayoutStore(path).exists(small)


def test_patience_ends(path: Path, origin: MemoryStore) -> None:
    root = image(origin, b"1")
    store = LayoutStore(path)
    copy(origin, store, root, tag="v1")
    with store._files.lock(), pytest.raises(Unavailable, match="another process"):
        LayoutStore(path, patience=0).tag(root, "v2")
    LayoutStore(path, patience=0).tag(root, "v2")


def test_a_lock_that_its_holder_removed_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, removed = tmp_path / "lock", locks._try, [False]

    def late(handle: int, mode: int, name: str) -> bool:
        if not removed[0]:  # the last holder removes the file between our open and our lock
            path.unlink()
            removed[0] = True
        return real(handle, mode, name)

    monkeypatch.setattr(locks, "_try", late)
    handle = locks.acquire(str(path), patience=5)
    try:
        assert os.path.samestat(os.fstat(handle), path.stat())
    finally:
        os.close(handle)


# referrers


def fallback(subject: Descriptor) -> str:
    return f"sha256-{subject.digest.hex}"


def test_referrers_are_written_in_both_places(path: Path, origin: MemoryStore) -> None:
    subject = image(origin, b"1")
    one = image(origin, b"2", subject=subject, artifactType="application/x", annotations={"a": "b"})
    two = image(origin, b"3", subject=subject)
    store = LayoutStore(path)
    for root in (one, two):
        copy(origin, store, root)
    assert entries(path)[:-1] == [
        {
            "mediaType": MANIFEST,
            "size": one.size,
            "digest": str(one.digest),
            "artifactType": "application/x",
        },
        {
            "mediaType": MANIFEST,
            "size": two.size,
            "digest": str(two.digest),
            "artifactType": CONFIG,
        },
    ]
    listing = store.resolve(fallback(subject))
    assert listing.media_type == INDEX
    document = json.loads(b"".join(store.fetch(listing)))
    assert document["manifests"][0] == {
        "mediaType": MANIFEST,
        "size": one.size,
        "digest": str(one.digest),
        "annotations": {"a": "b"},
        "artifactType": "application/x",
    }
    assert [e["digest"] for e in document["manifests"]] == [str(one.digest), str(two.digest)]


def test_the_fallback_tag_of_a_long_digest_is_cut(path: Path, origin: MemoryStore) -> None:
    subject = image(origin, b"1", algorithm="sha512")
    copy(origin, LayoutStore(path), image(origin, b"2", subject=subject))
    assert list(LayoutStore(path).tags()) == [f"sha512-{subject.digest.hex[:64]}"]


@pytest.mark.parametrize("where", ["entry", "fallback", "both"])
def test_referrers_of_others_are_read_from_both_places_once(
    path: Path, origin: MemoryStore, where: str
) -> None:
    subject = image(origin, b"1")
    referrer = image(origin, b"2", subject=subject, annotations={"a": "b"})
    listed = [entry(subject, "v1")]
    if where in ("entry", "both"):
        listed.append(entry(referrer))
    if where in ("fallback", "both"):
        listed.append(entry(index(origin, referrer), fallback(subject)))
    by_hand(path, origin, *listed)
    found = list(LayoutStore(path).referrers(subject))
    assert [one.digest for one in found] == [referrer.digest]
    assert found[0].annotations == {"a": "b"}


def test_a_referrer_with_a_tag_is_one_too(path: Path, origin: MemoryStore) -> None:
    subject = image(origin, b"1")
    referrer = image(origin, b"2", subject=subject)
    by_hand(path, origin, entry(subject, "v1"), entry(referrer, "signed"))
    assert [one.plain for one in LayoutStore(path).referrers(subject)] == [referrer]


def test_a_fallback_tag_that_holds_the_subject_is_ignored(path: Path, origin: MemoryStore) -> None:
    child = image(origin, b"1")
    for subject in (child, index(origin, child)):
        place = path / subject.digest.short
        by_hand(place, origin, entry(subject, "v1"), entry(subject, fallback(subject)))
        store = LayoutStore(place)
        assert list(store.referrers(subject)) == []
        referrer = image(origin, b"2", subject=subject)
        copy(origin, store, referrer)
        assert [one.plain for one in store.referrers(subject)] == [referrer]
        listing = json.loads(b"".join(store.fetch(store.resolve(fallback(subject)))))
        assert [one["digest"] for one in listing["manifests"]] == [str(referrer.digest)]


def test_a_listed_referrer_of_something_else_is_dropped(path: Path, origin: MemoryStore) -> None:
    subject, other = image(origin, b"1"), image(origin, b"2")
    stray, none = image(origin, b"3", subject=other), image(origin, b"4")
    listing = index(origin, stray, none)
    by_hand(path, origin, entry(subject, "v1"), entry(listing, fallback(subject)))
    assert list(LayoutStore(path).referrers(subject)) == []


def test_a_listed_referrer_that_cannot_be_read_is_passed_on(
    path: Path, origin: MemoryStore
) -> None:
    """Whoever asks for signatures must learn that one is broken, not that there is none."""
    subject = image(origin, b"1")
    referrer = image(origin, b"2", subject=subject)
    copy(origin, LayoutStore(path), subject, tag="v1")
    copy(origin, LayoutStore(path), referrer)
    (path / "blobs" / "sha256" / referrer.digest.hex).write_bytes(b"{}")
    store = LayoutStore(path)
    assert [one.digest for one in store.referrers(subject)] == [referrer.digest]
    with pytest.raises(IntegrityError):
        list(store.fetch(referrer))


def test_a_lying_entry_does_not_hide_a_true_one(path: Path, origin: MemoryStore) -> None:
    subject = image(origin, b"1")
    referrer = image(origin, b"2", subject=subject)
    lie = {**entry(referrer), "size": 1}
    by_hand(path, origin, lie, entry(index(origin, referrer), fallback(subject)))
    assert [one.plain for one in LayoutStore(path).referrers(subject)] == [referrer]


def test_looking_for_referrers_reads_so_much_and_no_more(
    path: Path, origin: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = [image(origin, b"%d" % n) for n in range(4)]
    by_hand(path, origin, *(entry(one) for one in images))
    room = sum(one.size for one in images)
    monkeypatch.setattr(closure_module, "HELD", room)
    assert list(LayoutStore(path).referrers(images[0])) == []
    monkeypatch.setattr(closure_module, "HELD", room - 1)
    with pytest.raises(IntegrityError, match="together"):
        list(LayoutStore(path).referrers(images[0]))


def test_entries_of_others_in_a_fallback_listing_stay(path: Path, origin: MemoryStore) -> None:
    subject = image(origin, b"1")
    theirs = image(origin, b"2", subject=subject)
    strange = {**entry(theirs), "unknown": [1], "data": "e30="}
    listing = put(
        origin, document(mediaType=INDEX, manifests=[strange], annotations={"k": "v"}), INDEX
    )
    by_hand(path, origin, entry(listing, fallback(subject)))
    store = LayoutStore(path)
    ours = image(origin, b"3", subject=subject)
    copy(origin, store, ours)
    found = json.loads(b"".join(store.fetch(store.resolve(fallback(subject)))))
    assert found["manifests"][0] == strange
    assert found["annotations"] == {"k": "v"}
    assert len(list(store.referrers(subject))) == 2


def test_a_referrer_that_lost_a_listing_does_not_exist(path: Path, origin: MemoryStore) -> None:
    """A kill between the manifest and its listing must not make the next copy skip it."""
    subject = image(origin, b"1")
    referrer = image(origin, b"2", subject=subject)
    store = LayoutStore(path)
    copy(origin, store, referrer)
    whole = (path / "index.json").read_bytes()
    for kept in (0, 1):
        index_document = json.loads(whole)
        index_document["manifests"] = index_document["manifests"][kept : kept + 1]
        (path / "index.json").write_text(json.dumps(index_document))
        assert not store.exists(referrer)
        copy(origin, store, referrer)
        assert sorted(e["digest"] for e in entries(path)) == sorted(
            e["digest"] for e in json.loads(whole)["manifests"]
        )


def test_names_of_files_are_not_names_of_content(path: Path) -> None:
    with pytest.raises(Misuse):
        LayoutStore(path).tag(Descriptor(MANIFEST, Digest.of(b""), 0), "../../etc/passwd")
