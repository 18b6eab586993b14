"""An OCI layout in a tar: what is written, when it is seen, and which tars are refused."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from content import LAYER, blob, image, index, put

from ocipack.copy import copy
from ocipack.errors import IntegrityError, NotFound, Unavailable
from ocipack.oci.descriptor import Descriptor
from ocipack.stores.layout import LayoutStore, tarball
from ocipack.stores.memory import MemoryStore


@pytest.fixture
def origin() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "layout.tar"


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}  # type: ignore[union-attr] # a plain file has content


def write(path: Path, origin: MemoryStore, root: Descriptor, tag: str = "v1") -> None:
    with LayoutStore(path) as store:
        copy(origin, store, root, tag=tag)


# writing


def test_the_tar_holds_a_layout_and_nothing_is_left_beside_it(
    path: Path, tmp_path: Path, origin: MemoryStore
) -> None:
    root = image(origin, b"layer")
    write(path, origin, root)
    found = members(path)
    assert list(found)[:2] == ["oci-layout", "index.json"]
    assert list(found)[2:] == sorted(f"blobs/sha256/{digest.hex}" for digest in origin.content)
    assert found["oci-layout"] == b'{"imageLayoutVersion":"1.0.0"}'
    assert [one.name for one in tmp_path.iterdir()] == ["layout.tar"]


def test_the_same_content_has_the_same_bytes(tmp_path: Path, origin: MemoryStore) -> None:
    roots = [image(origin, b"%d" % n) for n in range(3)]
    hashes = set()
    for name in ("a.tar", "b.tar"):
        for n, root in enumerate(roots):
            write(tmp_path / name, origin, root, f"v{n}")
        hashes.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(hashes) == 1
    with tarfile.open(tmp_path / "a.tar") as archive:
        said = {(m.uid, m.gid, m.uname, m.gname, m.mtime, m.mode) for m in archive}
    assert said == {(0, 0, "", "", 0, 0o644)}


def test_a_name_that_ustar_cannot_hold(path: Path, origin: MemoryStore) -> None:
    target = put(origin, b"layer", LAYER, "sha512")
    with LayoutStore(path) as store:
        store.push(target, origin)
    assert members(path)[f"blobs/sha512/{target.digest.hex}"] == b"layer"
    assert b"".join(LayoutStore(path).fetch(target)) == b"layer"


def test_nobody_sees_a_change_before_the_end(path: Path, origin: MemoryStore) -> None:
    one, two = image(origin, b"1"), image(origin, b"2")
    write(path, origin, one)
    before = path.read_bytes()
    with LayoutStore(path) as store:
        copy(origin, store, two, tag="v1")
        assert store.resolve("v1") == two
        assert path.read_bytes() == before
        assert LayoutStore(path).resolve("v1") == one
    assert LayoutStore(path).resolve("v1") == two
    assert LayoutStore(path).exists(one)


def fail_late(path: Path, origin: MemoryStore, root: Descriptor) -> None:
    with LayoutStore(path) as store:
        copy(origin, store, root, tag="v1")
        store.resolve("a tag that is not there")


def test_a_failure_drops_what_was_written(path: Path, tmp_path: Path, origin: MemoryStore) -> None:
    one, two = image(origin, b"1"), image(origin, b"2")
    write(path, origin, one)
    before = path.read_bytes()
    with pytest.raises(NotFound):
        fail_late(path, origin, two)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["layout.tar"]


def test_a_failure_before_there_was_a_tar_leaves_none(tmp_path: Path, origin: MemoryStore) -> None:
    with pytest.raises(NotFound):
        fail_late(tmp_path / "x.tar", origin, image(origin, b"1"))
    assert not list(tmp_path.iterdir())


def test_a_second_copy_writes_nothing(path: Path, origin: MemoryStore) -> None:
    root = image(origin, b"1")
    write(path, origin, root)
    before = path.stat()
    write(path, origin, root)
    assert path.stat() == before


def test_a_store_can_be_used_after_it_was_closed(path: Path, origin: MemoryStore) -> None:
    store = LayoutStore(path)
    for n in range(2):
        copy(origin, store, image(origin, b"%d" % n), tag=f"v{n}")
        store.close()
    assert list(LayoutStore(path).tags()) == ["v0", "v1"]


def test_a_writer_that_is_never_closed_is_told(path: Path, origin: MemoryStore) -> None:
    def forget() -> None:
        copy(origin, LayoutStore(path), image(origin, b"1"), tag="v1")

    with pytest.warns(ResourceWarning, match="never closed"):
        forget()
    assert not path.exists()
    write(path, origin, image(origin, b"2"))


def test_what_a_killed_writer_left_is_removed(
    path: Path, tmp_path: Path, origin: MemoryStore
) -> None:
    (tmp_path / ".layout.tar.staging" / "blobs").mkdir(parents=True)
    (tmp_path / ".layout.tar.staging" / "index.json").write_text("{half")
    (tmp_path / ".layout.tar.partial").write_text("half")
    (tmp_path / ".layout.tar.lock").touch()
    write(path, origin, image(origin, b"1"))
    assert [one.name for one in tmp_path.iterdir()] == ["layout.tar"]
    assert list(LayoutStore(path).tags()) == ["v1"]


def test_a_second_writer_waits_and_says_so_when_it_gives_up(
    path: Path, origin: MemoryStore
) -> None:
    root = image(origin, b"1")
    with LayoutStore(path) as store:
        copy(origin, store, root, tag="v1")
        with pytest.raises(Unavailable, match="another process"):
            LayoutStore(path, patience=0).push(put(origin, b"x", LAYER), origin)
    with LayoutStore(path, patience=0) as store:
        store.tag(root, "v2")
    assert list(LayoutStore(path).tags()) == ["v1", "v2"]


def test_a_link_to_the_tar_stays_a_link(path: Path, tmp_path: Path, origin: MemoryStore) -> None:
    (tmp_path / "real").mkdir()
    path.symlink_to(tmp_path / "real" / "real.tar")
    write(path, origin, image(origin, b"1"))
    assert path.is_symlink()
    assert list(LayoutStore(tmp_path / "real" / "real.tar").tags()) == ["v1"]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize("when", ["staging", "closing"])
def test_a_full_disk_leaves_the_old_tar(
    tmp_path: Path, origin: MemoryStore, monkeypatch: pytest.MonkeyPatch, call: str, when: str
) -> None:
    path = tmp_path / "layout.tar"
    write(path, origin, image(origin, b"1"))
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def fill_up(patch: pytest.MonkeyPatch) -> None:
        with LayoutStore(path) as store:
            if when == "staging":
                patch.setattr(os, call, fail)
            copy(origin, store, image(origin, b"2"), tag="v1")
            patch.setattr(Path if call == "replace" else os, call, fail)

    with monkeypatch.context() as patch, pytest.raises(Unavailable) as caught:
        fill_up(patch)
    assert "make room" in caught.value.hint
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["layout.tar"]


# reading


def handmade(path: Path, *entries: tuple[tarfile.TarInfo, bytes], format_: int) -> None:
    with tarfile.open(path, "w", format=format_) as archive:
        for info, data in entries:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def plain(origin: MemoryStore, path: Path, prefix: str = "") -> list[tuple[tarfile.TarInfo, bytes]]:
    """The members of a good layout with the tag v1, written by someone else."""
    write(path.with_name("good.tar"), origin, index(origin, image(origin, b"1")))
    return [
        (tarfile.TarInfo(prefix + n), d) for n, d in members(path.with_name("good.tar")).items()
    ]


@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("prefix", ["", "./"])
def test_tars_of_others_are_read(
    path: Path, origin: MemoryStore, prefix: str, format_: int
) -> None:
    folders = [tarfile.TarInfo(prefix + name) for name in ("blobs", "blobs/sha256", "blobs")]
    for folder in folders:
        folder.type = tarfile.DIRTYPE
    good = plain(origin, path, prefix)
    handmade(path, *((f, b"") for f in folders), *reversed(good), format_=format_)
    store = LayoutStore(path)
    back = MemoryStore()
    copy(store, back, store.resolve("v1"))
    assert back.content == origin.content


def _linked(name: str, kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "evil",
    [
        _linked("blobs/sha256/" + "0" * 64, tarfile.SYMTYPE),
        _linked("blobs/sha256/" + "0" * 64, tarfile.LNKTYPE, "index.json"),
        _linked("x", tarfile.FIFOTYPE),
        _linked("x", tarfile.CHRTYPE),
        _linked("x", tarfile.BLKTYPE),
        tarfile.TarInfo("../x"),
        tarfile.TarInfo("blobs/../../x"),
        tarfile.TarInfo("/etc/passwd"),
        tarfile.TarInfo("index.json"),
        tarfile.TarInfo("./index.json"),
        _linked("index.json", tarfile.DIRTYPE),
    ],
    ids=lambda info: f"{info.name[:20]} {info.type!r}",
)
def test_a_hostile_member_is_refused(
    path: Path, origin: MemoryStore, evil: tarfile.TarInfo
) -> None:
    handmade(path, *plain(origin, path), (evil, b""), format_=tarfile.PAX_FORMAT)
    with pytest.raises(IntegrityError):
        LayoutStore(path).resolve("v1")


def _truncate(data: bytes) -> bytes:
    return data[: len(data) // 2 + 100]


@pytest.mark.parametrize(
    "spoil", [_truncate, lambda _: b"", lambda _: b"no tar" * 200, lambda d: d[:100]]
)
def test_what_is_no_tar_is_refused(
    path: Path, origin: MemoryStore, spoil: Callable[[bytes], bytes]
) -> None:
    write(path, origin, image(origin, b"1" * 5000))
    path.write_bytes(spoil(path.read_bytes()))
    store = LayoutStore(path)
    with pytest.raises(IntegrityError):
        copy(store, MemoryStore(), store.resolve("v1"))


def test_a_damaged_header_in_the_middle_is_not_the_end(path: Path, origin: MemoryStore) -> None:
    write(path, origin, image(origin, b"1"))
    data = bytearray(path.read_bytes())
    with tarfile.open(path) as archive:
        third = archive.getmembers()[2].offset
    data[third] ^= 1
    path.write_bytes(data)
    with pytest.raises(IntegrityError, match="damaged header"):
        LayoutStore(path).resolve("v1")


def test_a_compressed_tar_is_named(path: Path, origin: MemoryStore) -> None:
    import gzip  # noqa: PLC0415 - here alone

    write(path, origin, image(origin, b"1"))
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(IntegrityError) as caught:
        LayoutStore(path).resolve("v1")
    assert "compressed" in caught.value.hint


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_asks_for_memory_is_refused(path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 1 << 40
    with path.open("wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.truncate(1 << 41)
    with pytest.raises(IntegrityError, match="at most 65536"):
        LayoutStore(path).resolve("v1")


def test_a_sparse_member_is_refused(path: Path, origin: MemoryStore) -> None:
    info = tarfile.TarInfo("x")
    info.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": "1", "GNU.sparse.major": "0"}
    handmade(path, *plain(origin, path), (info, b"1"), format_=tarfile.PAX_FORMAT)
    with pytest.raises(IntegrityError):
        LayoutStore(path).resolve("v1")


def test_the_number_of_members_is_limited(
    path: Path, origin: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tarball.MEMBERS == 100_000
    write(path, origin, image(origin, b"1"))  # two files, three blobs
    monkeypatch.setattr(tarball, "MEMBERS", 5)
    assert list(LayoutStore(path).tags()) == ["v1"]
    monkeypatch.setattr(tarball, "MEMBERS", 4)
    with pytest.raises(IntegrityError, match="more than 4 members"):
        LayoutStore(path).resolve("v1")


def test_an_altered_blob_is_noticed(path: Path, origin: MemoryStore) -> None:
    root = image(origin, b"the layer")
    write(path, origin, root)
    path.write_bytes(path.read_bytes().replace(b"the layer", b"THE LAYER"))
    store = LayoutStore(path)
    assert not store.exists(root)
    with pytest.raises(IntegrityError):
        b"".join(store.fetch(blob(b"the layer")))
    write(path, origin, root)
    assert LayoutStore(path).exists(root)


def test_a_tar_that_is_replaced_is_read_anew(path: Path, origin: MemoryStore) -> None:
    one, two = image(origin, b"1"), image(origin, b"2")
    write(path, origin, one)
    store = LayoutStore(path)
    assert store.resolve("v1") == one
    write(path, origin, two)
    assert store.resolve("v1") == two


def test_a_fifo_is_no_tar(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(IntegrityError):
        LayoutStore(path).resolve("v1")
