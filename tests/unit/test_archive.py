"""The bytes of an archive: the same everywhere, and readable by everyone."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ocipack.errors import IntegrityError, Misuse, Rejected
from ocipack.tree.archive import Archive, Sums
from ocipack.tree.limits import LIMITS, Limits
from ocipack.tree.tree import File, Tree
from ocipack.tree.unarchive import read
from ocipack.tree.ustar import header

MiB = 1024 * 1024

GOLDEN = Tree(
    {
        "kustomization.yaml": File.of(b"resources: [apps/web.yaml]\n"),
        "apps/web.yaml": File.of(b"kind: ConfigMap\n" * 40),
        "apps/run.sh": File.of(b"#!/bin/sh\n", executable=True),
        "apps-b/empty": File.of(b""),
        "grüße.txt": File.of("schön\n".encode()),
        f"{'d' * 60}/{'e' * 60}/{'f' * 60}": File.of(b"prefix"),
        f"{'g' * 120}/h": File.of(b"prefix of one part"),
        "i" * 120: File.of(b"pax"),
    }
)


def written(
    tree: Tree, compression: str = "deflate", limits: Limits = LIMITS
) -> tuple[bytes, Sums]:
    archive = Archive(tree, compression=compression, limits=limits)
    return b"".join(archive), archive.sums


# Changing one of these changes the digest of everything that was ever packed: it is a change of
# format and needs a line in CHANGELOG.
TAR = "sha256:9ffa95f5d52fd11b8c1c0022b905a76cf7cda2c61f1415ecfd4d5aec898c5d7e"
LAYERS = {
    "deflate": "sha256:f8d951c52e76f877f72d181e82366e488aa18d21b1069c0531907ed3ef787679",
    "stored": "sha256:cdc9e47189a776c75d65f86f39a3d095a0e1546e219e32742666e383b0c00eb3",
}


@pytest.mark.parametrize("compression", LAYERS)
def test_golden(compression: str) -> None:
    data, sums = written(GOLDEN, compression)
    assert str(sums.diff_id) == TAR
    assert str(sums.digest) == LAYERS[compression]
    assert hashlib.sha256(data).hexdigest() == sums.digest.hex
    assert len(data) == sums.size
    tar = gzip.decompress(data)
    assert hashlib.sha256(tar).hexdigest() == sums.diff_id.hex
    assert len(tar) == sums.tar_size


def test_the_order_in_which_files_were_found_does_not_matter() -> None:
    backwards = Tree.of(reversed(list(GOLDEN.files.items())))
    assert written(backwards) == written(GOLDEN)


def test_what_the_tar_says_of_each_entry() -> None:
    data, _ = written(GOLDEN)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        assert tar.pax_headers == {}
    stored = [m.name + "/" * m.isdir() for m in members]
    assert stored == sorted(stored, key=str.encode)
    assert stored[:5] == ["apps-b/", "apps-b/empty", "apps/", "apps/run.sh", "apps/web.yaml"]
    for m in members:
        assert (m.uid, m.gid, m.uname, m.gname, m.mtime) == (0, 0, "", "", 0)
        assert (m.devmajor, m.devminor, m.linkname) == (0, 0, "")
        assert m.isdir() or m.isfile()
        assert m.mode == (0o755 if m.isdir() or m.name == "apps/run.sh" else 0o644)
    assert {m.name for m in members if m.pax_headers} == {
        *("grüße.txt", "g" * 120, "i" * 120)  # no slash to cut a long first part at
    }


def test_headers_are_those_of_go_s_archive_tar() -> None:
    """Made by Go 1.26's writer with a zero time: what Flux writes, but for modes and slashes."""
    go = {
        ("apps/run.sh", 10): "c398fcc13dbb68cf9ac65ae830ad1ca03def38226ec245b1a001a4c7f66712d1",
        ("apps/", 0): "96516244869a85f7139a960ff3f792241ff9133ece8f0388d9138de66dec6ec3",
        ("/".join(["d" * 60, "e" * 60, "f" * 60]), 6): (
            "b2241e7a2fcadf42770dd94fb691cb43f7e1b3e1dc3f5e7182394cd86693ec35"
        ),
    }
    for (name, size), digest in go.items():
        block = header(name, size=size, executable=name.endswith(".sh"))
        assert hashlib.sha256(block).hexdigest() == digest, name


def test_it_ends_with_two_blocks_of_zeros_and_nothing_more() -> None:
    tar = gzip.decompress(written(Tree({"a": File.of(b"x" * 512)}))[0])
    assert len(tar) == 512 + 512 + 1024
    assert tar[-1024:] == bytes(1024)


@pytest.mark.parametrize("compression", LAYERS)
def test_members_are_cut_at_8_mib_of_tar_whatever_the_chunks(compression: str) -> None:
    content = hashlib.shake_256(b"x").digest(1000) * (17 * 1024)

    def pieces(step: int) -> Iterator[bytes]:
        return (content[i : i + step] for i in range(0, len(content), step))

    def tree(step: int) -> Tree:
        return Tree({"big": File(len(content), executable=False, open=lambda: pieces(step))})

    data, sums = written(tree(len(content)), compression)
    assert written(tree(99_991), compression)[0] == data
    sizes, rest = [], data
    while rest:
        member = zlib.decompressobj(wbits=31)
        sizes.append(len(member.decompress(rest)))
        assert rest[:10] == bytes.fromhex("1f8b08000000000000ff")
        rest = member.unused_data
    assert sizes == [8 * MiB, 8 * MiB, sums.tar_size - 16 * MiB]


@pytest.mark.parametrize("size", [8 * MiB - 1536, 8 * MiB - 1535, 16 * MiB - 1536, 8 * MiB])
def test_a_member_that_ends_where_the_tar_does(size: int) -> None:
    data, sums = written(Tree({"big": File.of(bytes(size))}), "stored")
    rest, total = data, 0
    while rest:
        member = zlib.decompressobj(wbits=31)
        total += (length := len(member.decompress(rest)))
        assert 0 < length <= 8 * MiB
        rest = member.unused_data
    assert total == sums.tar_size


@pytest.mark.parametrize("compression", LAYERS)
def test_gnu_tar_and_python_read_several_members(compression: str, tmp_path: Path) -> None:
    content = hashlib.shake_256(b"y").digest(9 * MiB)
    tree = Tree({**GOLDEN.files, "big": File.of(content)})
    (tmp_path / "layer.tgz").write_bytes(written(tree, compression)[0])
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(["tar", "xzf", "../layer.tgz"], cwd=out, check=True)
    with tarfile.open(tmp_path / "layer.tgz") as tar:
        for name, file in tree.files.items():
            found = out / name
            assert found.read_bytes() == file.read(limit=10 * MiB)
            assert bool(found.stat().st_mode & 0o100) == file.executable
            member = tar.extractfile(name)
            assert member is not None
            assert member.read() == found.read_bytes()
    listed = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
    assert listed == set(tree.files)


def test_stored_bytes_contain_the_tar_as_it_is() -> None:
    data, sums = written(Tree({"a": File.of(b"\x01\x02" * 50_000)}), "stored")
    assert data.count(b"\x01\x02" * 32_000) == 1
    blocks = -(-sums.tar_size // 65535)
    assert sums.size == sums.tar_size + 18 + 5 * blocks


def test_a_tree_is_read_once() -> None:
    opened = []

    def content() -> Iterator[bytes]:
        opened.append(1)
        yield b"abc"

    archive = Archive(Tree({"a": File(3, executable=False, open=content)}))
    with pytest.raises(RuntimeError, match="not been read to its end"):
        _ = archive.sums
    b"".join(archive)
    assert opened == [1]
    with pytest.raises(RuntimeError, match="read once"):
        b"".join(archive)


@pytest.mark.parametrize("content", [b"", b"ab", b"abcd", b"abc" * 1000])
def test_content_that_is_not_its_size_is_noticed(content: bytes) -> None:
    tree = Tree({"a": File(3, executable=False, open=lambda: [content])})
    with pytest.raises(IntegrityError, match="'a': not the 3 bytes"):
        b"".join(Archive(tree))


def test_an_unknown_compression_is_misuse() -> None:
    with pytest.raises(Misuse, match="no such compression: 'zstd'") as e:
        Archive(GOLDEN, compression="zstd")
    assert "deflate or stored" in e.value.hint


def never() -> Iterator[bytes]:
    pytest.fail("read before it was refused")
    yield b""


def test_two_gigabytes_are_refused_before_anything_is_read() -> None:
    tree = Tree({"small": File.of(b"x"), "iso": File(2**31, executable=False, open=never)})
    with pytest.raises(Rejected, match=r"536870912 bytes.*'iso' with 2147483648 bytes"):
        Archive(tree)


def test_more_entries_than_reading_takes_are_refused() -> None:
    tree = Tree({f"d{i}/f": File.of(b"") for i in range(5)})
    assert written(tree, limits=Limits(entries=10))
    with pytest.raises(Rejected, match="10 files and directories, and at most 9"):
        Archive(tree, limits=Limits(entries=9))


def test_headers_count_towards_the_limit() -> None:
    tree = Tree({"a": File.of(b"x"), "b": File.of(b"x")})
    assert written(tree, limits=Limits(tar=3072))
    with pytest.raises(Rejected, match="longer than the 3071 bytes"):
        written(tree, limits=Limits(tar=3071))


def test_more_bytes_of_names_than_reading_takes_are_refused() -> None:
    tree = Tree({"aa/bb": File.of(b"")})
    assert written(tree, limits=Limits(names=7))
    with pytest.raises(Rejected, match="names alone"):
        Archive(tree, limits=Limits(names=6))


def test_what_looks_like_a_bomb_is_not_made() -> None:
    tree = Tree({"zeros": File.of(bytes(3 * MiB))})
    small = Limits(free=MiB)
    with pytest.raises(Rejected, match=r"compresses \d+ times, and more than 200") as e:
        written(tree, limits=small)
    assert "stored" in e.value.hint
    data, sums = written(tree, "stored", limits=small)
    assert sums.tar_size > MiB
    assert len(list(read([data], size=len(data), limits=small))) == 1


def test_what_is_made_is_read() -> None:
    for compression in LAYERS:
        data, sums = written(GOLDEN, compression)
        found = {
            e.name: (e.executable, e.size, b"".join(e.content))
            for e in read([data], size=len(data), diff_id=sums.diff_id)
        }
        assert found == {
            name: (file.executable, file.size, file.read(limit=1000))
            for name, file in GOLDEN.files.items()
        }
