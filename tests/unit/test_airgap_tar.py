"""The tar of an archive: one stream, volumes, going on after a cut; and which tars are refused."""

from __future__ import annotations

import errno
import hashlib
import io
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tars

from ocipack.errors import IntegrityError, Misuse, NotFound, OcipackError, Rejected, Unavailable
from ocipack.oci.digest import Digest
from ocipack.oci.layout import Member, blob_path
from ocipack.stores.layout import archive as archive_module, volumes as volumes_module
from ocipack.stores.layout.archive import Archive
from ocipack.stores.layout.stream import Stream
from ocipack.stores.layout.volumes import Checksums, Parts, Sink
from ocipack.tree import ustar

MiB = 1024 * 1024
VERSION = b'{"imageLayoutVersion":"1.0.0"}'
INDEX = b'{"schemaVersion":2,"manifests":[]}'


class Cut(Exception):
    """What a run is cut short by."""


def member(name: str, content: bytes) -> Member:
    return Member(name, Digest.of(content), len(content))


def blob(content: bytes) -> tuple[str, bytes]:
    return blob_path(Digest.of(content)), content


BLOBS = dict(sorted(blob(bytes([n]) * (600_000 + n)) for n in range(7)))
CONTENT = {"oci-layout": VERSION, "index.json": INDEX, **BLOBS}
MEMBERS = [member(name, content) for name, content in CONTENT.items()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "site.tar"


def write(path: Path, content: dict[str, bytes] = CONTENT, *, volume: int = 0) -> Stream:
    with Stream(path, volume=volume) as out:
        members = [member(name, data) for name, data in content.items()]
        for data in list(content.values())[out.begin(members) :]:
            out.put([data[:1000], data[1000:]])
    return out


def names(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


def whole(path: Path) -> bytes:
    return b"".join(found.read_bytes() for found in volumes_module.volumes(path)[0])


# writing


def test_the_stream_is_the_tar_that_tarfile_reads(path: Path) -> None:
    out = write(path)
    with tarfile.open(path) as archive:
        found = {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr] # all are files
        said = {(m.uid, m.gid, m.uname, m.gname, m.mtime, m.mode, m.type) for m in archive}
    assert found == CONTENT
    assert said == {(0, 0, "", "", 0, 0o644, b"0")}
    raw = path.read_bytes()
    assert (out.size, out.checksums) == (len(raw), (hashlib.sha256(raw).hexdigest(),))
    assert raw.endswith(bytes(1024))
    assert names(path) == ["site.tar"]


def test_volumes_are_the_same_bytes_and_a_list_that_sha256sum_reads(path: Path) -> None:
    write(path.with_name("one.tar"))
    out = write(path, volume=MiB)
    assert names(path) == [
        *("one.tar", "site.tar.001", "site.tar.002", "site.tar.003", "site.tar.004"),
        *("site.tar.005", "site.tar.sha256"),
    ]
    sizes = [path.with_name(f"site.tar.00{n}").stat().st_size for n in range(1, 6)]
    assert sizes[:4] == [MiB] * 4
    assert 0 < sizes[4] < MiB
    assert whole(path) == path.with_name("one.tar").read_bytes()
    assert [one.name for one in out.files] == [f"site.tar.00{n}" for n in range(1, 6)]
    subprocess.run(["sha256sum", "--strict", "-c", "site.tar.sha256"], cwd=path.parent, check=True)


def test_volumes_that_come_out_even(path: Path) -> None:
    filler = MiB - 4 * 512 - 1024  # with three headers and the end exactly one volume
    content = {"oci-layout": VERSION, "index.json": INDEX, **dict([blob(bytes(filler - 512))])}
    write(path, content, volume=MiB)
    assert names(path) == ["site.tar.001", "site.tar.sha256"]
    with Archive(path) as archive:
        archive.check()


@pytest.mark.parametrize("volume", [0, MiB])
@pytest.mark.parametrize("after", range(len(MEMBERS)))
@pytest.mark.parametrize("part", [0, 1000])
def test_a_run_that_was_cut_goes_on(path: Path, volume: int, after: int, part: int) -> None:
    write(path.with_name("one.tar"))

    def content(data: bytes) -> Iterator[bytes]:
        yield data[:part]
        raise Cut

    def cut() -> None:
        with Stream(path, volume=volume) as out:
            assert out.begin(MEMBERS) == 0
            for data in list(CONTENT.values())[:after]:
                out.put([data])
            out.put(content(list(CONTENT.values())[after]))

    with pytest.raises(Cut):
        cut()
    assert not volumes_module.finished(path)
    with pytest.raises(NotFound):
        Archive(path)
    with Stream(path, volume=volume) as out:
        assert out.begin(MEMBERS) == after
        for data in list(CONTENT.values())[after:]:
            out.put([data])
    assert whole(path) == path.with_name("one.tar").read_bytes()
    assert [one for one in names(path) if one.startswith(".")] == []


def left(path: Path, volume: int = 0) -> None:
    """Leave an archive that only lacks its end."""

    def run() -> None:
        with Stream(path, volume=volume) as out:
            out.begin(MEMBERS)
            for data in CONTENT.values():
                out.put([data])
            raise Cut

    with pytest.raises(Cut):
        run()


@pytest.mark.parametrize("at", [0, 600, 2000, 700_000, 3_000_000])
def test_what_was_left_is_hashed_before_it_is_taken_for_written(path: Path, at: int) -> None:
    write(path.with_name("one.tar"))
    left(path)
    partial = path.with_name(".site.tar.partial")
    raw = bytearray(partial.read_bytes())
    raw[at] ^= 1
    partial.write_bytes(raw)
    write(path)
    assert path.read_bytes() == path.with_name("one.tar").read_bytes()


def test_what_was_left_of_another_archive_is_no_part_of_this(path: Path) -> None:
    left(path)
    other = {**CONTENT, "index.json": b"{}"}
    with Stream(path) as out:
        members = [member(name, data) for name, data in other.items()]
        assert out.begin(members) == 1
        for data in list(other.values())[1:]:
            out.put([data])
    with tarfile.open(path) as archive:
        assert archive.extractfile("index.json").read() == b"{}"  # type: ignore[union-attr] # it is there
        assert len(archive.getnames()) == len(MEMBERS)


@pytest.mark.parametrize("before", [0, 2 * MiB, 1_500_000])
def test_volumes_of_another_size_are_begun_anew(path: Path, before: int) -> None:
    write(path.with_name("one.tar"))
    left(path, before)
    write(path, volume=MiB)
    assert [one for one in names(path) if one.startswith(".")] == []
    assert whole(path) == path.with_name("one.tar").read_bytes()
    with Archive(path) as archive:
        archive.check()


def test_an_archive_is_replaced_only_if_it_may_be(path: Path) -> None:
    write(path, volume=MiB)
    before = names(path)
    with pytest.raises(Rejected, match=r"site\.tar\.sha256: there is an archive already"):
        write(path)
    assert names(path) == before
    with Stream(path, replace=True) as out:
        out.begin(MEMBERS)
        for data in CONTENT.values():
            out.put([data])
        assert names(path) == sorted([*before, ".site.tar.lock", ".site.tar.partial"])
    assert names(path) == ["site.tar"]


def test_more_members_than_are_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocipack.stores.layout.stream.MEMBERS", len(MEMBERS) - 1)
    with pytest.raises(Rejected, match="9 files, and at most 8 are read again"):
        write(path)
    assert names(path) == []


def test_a_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, f"no room for {len(data)} bytes")

    monkeypatch.setattr(volumes_module, "write_all", full)
    with pytest.raises(Unavailable) as raised:
        write(path)
    assert raised.value.hint == "make room, and run again: it goes on where it was"


def test_two_writers_of_one_archive(path: Path) -> None:
    with Stream(path) as out:
        out.begin([])
        with (
            pytest.raises(Unavailable, match="another process has been writing"),
            Stream(path, patience=0),
        ):
            pass


def test_an_archive_that_is_left_before_its_end_is_none(path: Path) -> None:
    def run() -> None:
        with Stream(path) as out:
            out.begin(MEMBERS)
            out.put([VERSION])

    with pytest.raises(RuntimeError, match="before its end"):
        run()
    assert names(path) == [".site.tar.partial"]


@pytest.mark.parametrize("data", [VERSION[:-1], VERSION + b"x"])
def test_a_member_of_another_length_than_its_header_says(path: Path, data: bytes) -> None:
    def run() -> None:
        with Stream(path) as out:
            out.begin(MEMBERS)
            out.put([data])

    with pytest.raises(RuntimeError, match="bytes for a header that says 30"):
        run()


def test_there_are_at_most_so_many_volumes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert volumes_module.VOLUMES == 999
    monkeypatch.setattr(volumes_module, "VOLUMES", 2)
    with pytest.raises(Misuse, match="more than 2 volumes"):
        write(path, volume=MiB)
    assert not volumes_module.finished(path)


def test_a_file_of_8_gib_has_a_header_that_tarfile_reads() -> None:
    size = 8**11
    raw = ustar.header("blobs/sha256/" + "0" * 64, size=size, executable=False)
    with tarfile.open(fileobj=io.BytesIO(raw + bytes(1024))) as archive:
        found = archive.next()
    assert found is not None
    assert (found.name, found.size) == ("blobs/sha256/" + "0" * 64, size)
    small = ustar.header("blobs/sha256/" + "0" * 64, size=size - 1, executable=False)
    assert len(small) == 512


def test_a_file_of_8_gib_is_read_again(path: Path) -> None:
    name = "blobs/sha256/" + "0" * 64
    size = 8**11 + 5
    with path.open("wb") as file:
        for one, data in (("oci-layout", VERSION), ("index.json", INDEX)):
            file.write(tars.entry(one, data))
        file.write(ustar.header(name, size=size, executable=False))
        file.seek(size + -size % 512, 1)  # a hole: nothing is on the disk
        file.write(bytes(1024))
    with Archive(path) as archive:
        assert archive.blobs == {Digest("sha256", "0" * 64): size}


def test_checksums_know_their_volumes() -> None:
    data = bytes(range(256)) * 10
    sums = Checksums(1000)
    for start in range(0, len(data), 333):
        sums.update(data[start : start + 333])
    parts = [data[0:1000], data[1000:2000], data[2000:]]
    assert sums.all() == [hashlib.sha256(part).hexdigest() for part in parts]
    assert Checksums(1000).all() == [hashlib.sha256(b"").hexdigest()]
    even = Checksums(1280)
    even.update(data)
    assert len(even.all()) == 2


# reading


def tar(*entries: bytes, end: bytes = bytes(1024)) -> bytes:
    start = tars.entry("oci-layout", VERSION) + tars.entry("index.json", INDEX)
    return start + b"".join(entries) + end


HEX = "ab" * 32
BLOB = f"blobs/sha256/{HEX}"

REFUSED: dict[str, tuple[bytes, str]] = {
    "another file": (tar(tars.entry("manifest.json", b"[]")), "no part of an OCI layout"),
    "a blob in a folder below": (tar(tars.entry(f"{BLOB}/x")), "no part of an OCI layout"),
    "another algorithm": (tar(tars.entry("blobs/md5/ab")), "no part of an OCI layout"),
    "upper case": (tar(tars.entry(BLOB.upper())), "no part of an OCI layout"),
    "an absolute name": (tar(tars.entry(f"/{BLOB}")), "no part of an OCI layout"),
    "a name that leads out": (tar(tars.entry(f"../{BLOB}")), "no part of an OCI layout"),
    "a name in disguise": (tar(tars.entry(f"blobs/../{BLOB}")), "no part of an OCI layout"),
    "bytes that are no text": (tar(tars.entry(b"blobs/\xff\xfe")), "no part of an OCI layout"),
    "another directory": (tar(tars.entry("etc/", kind=b"5")), "no part of an OCI layout"),
    "a directory called as a blob": (tar(tars.entry(BLOB, kind=b"5")), "no part of an OCI layout"),
    "a symbolic link": (tar(tars.entry(BLOB, kind=b"2", linkname=b"x")), "symbolic link"),
    "a hard link": (tar(tars.entry(BLOB, kind=b"1", linkname=b"x")), "hard link"),
    "a device": (tar(tars.entry(BLOB, kind=b"3")), "character device"),
    "a fifo": (tar(tars.entry(BLOB, kind=b"6")), "fifo"),
    "a sparse file of GNU": (tar(tars.entry(BLOB, kind=b"S")), "sparse file"),
    "a sparse file of pax": (
        tar(tars.pax(("GNU.sparse.major", "1")), tars.entry(BLOB)),
        "a pax record that we do not read",
    ),
    "a size in base 256": (
        tar(tars.entry(BLOB, size=b"\x80" + bytes(10) + b"\x01")),
        "not a number",
    ),
    "a size of pax that needs none": (
        tar(tars.pax(("size", "3")), tars.entry(BLOB, b"abc")),
        "not a size that needs a pax record",
    ),
    "a size of pax and in all of them": (
        tar(tars.pax(("size", "9999999999"), kind=b"g"), tars.entry(BLOB)),
        "a pax record that we do not read",
    ),
    "a name for all": (tar(tars.pax(("path", BLOB), kind=b"g")), "global pax header"),
    "two long headers": (
        tar(tars.pax(("path", BLOB)), tars.pax(("path", BLOB)), tars.entry("x")),
        "two long headers",
    ),
    "a long header for nothing": (tar(tars.pax(("path", BLOB))), "without a member"),
    "a long header that is too long": (
        tar(tars.entry("x", bytes(archive_module.HEADER + 1), kind=b"x")),
        "an extended header of 65537 bytes",
    ),
    "a blob twice": (tar(tars.entry(BLOB), tars.entry(BLOB)), "there twice"),
    "the index twice": (tar(tars.entry("index.json", b"{}")), "there twice"),
    "the index twice, once from here": (tar(tars.entry("./index.json", b"{}")), "there twice"),
    "a directory twice": (tar(tars.entry("blobs/", kind=b"5") * 2), "there twice"),
    "a wrong checksum": (tar(tars.entry(BLOB, checksum=1)), "wrong checksum"),
    "no header": (tar(b"x" * 512), "not a header"),
    "no end": (tar(end=b""), "cut short"),
    "half an end": (tar(end=bytes(512)), "cut short"),
    "a member that is cut short": (tar(tars.entry(BLOB, bytes(5000))[:3000], end=b""), "cut short"),
    "something after the end": (tar(end=bytes(1024) + b"x" * 512), "after the end"),
    "a second archive after the end": (tar() + tar(), "after the end"),
    "too many zeros": (tar(end=bytes(1024 + archive_module.TAIL)), "after the end"),
    "no index": (tars.entry("oci-layout", VERSION) + bytes(1024), "it has no index.json"),
    "no version": (tars.entry("index.json", INDEX) + bytes(1024), "it has no oci-layout"),
    "nothing": (b"", "cut short"),
    "only an end": (bytes(1024), "it has no oci-layout"),
    "a compressed one": (b"\x1f\x8b" + b"x" * 600, r"site\.tar: tar: not a header"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tar_that_is_refused(path: Path, case: str) -> None:
    raw, why = REFUSED[case]
    path.write_bytes(raw)
    with pytest.raises(IntegrityError, match=why):
        Archive(path)


def test_what_is_cut_short_says_what_to_do(path: Path) -> None:
    write(path)
    path.write_bytes(path.read_bytes()[:700_000])
    with pytest.raises(IntegrityError, match=r"site\.tar: cut short at byte 700000") as raised:
        Archive(path)
    assert raised.value.hint == "the archive was not carried over whole: bring it again"


ACCEPTED: dict[str, bytes] = {
    "plain": tar(tars.entry(BLOB, b"abc")),
    "from here": b"".join(
        [
            tars.entry("./", kind=b"5"),
            tars.entry("./oci-layout", VERSION),
            tars.entry("./index.json", INDEX),
            tars.entry("./blobs/", kind=b"5"),
            tars.entry("./blobs/sha256/", kind=b"5"),
            tars.entry(f"./{BLOB}", b"abc"),
            bytes(10240),
        ]
    ),
    "times of pax": tar(tars.pax(("mtime", "1.5"), ("path", BLOB)), tars.entry("x", b"abc")),
    "times for all": tar(tars.pax(("mtime", "1.5"), kind=b"g"), tars.entry(BLOB, b"abc")),
    "a long name of GNU": tar(
        tars.entry("././@LongLink", BLOB.encode() + b"\0", kind=b"L"), tars.entry("x", b"abc")
    ),
    "the seventh edition": tar(tars.entry(BLOB, b"abc", magic=bytes(8))),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_tar_of_other_writers(path: Path, case: str) -> None:
    path.write_bytes(ACCEPTED[case])
    with Archive(path) as archive:
        assert archive.blobs == {Digest("sha256", HEX): 3}
        assert b"".join(archive.read(BLOB)) == b"abc"
        assert archive.has("index.json") == len(INDEX)


@pytest.mark.parametrize("maker", ["tar", "tarfile"])
def test_what_was_unpacked_and_packed_again_is_read(path: Path, tmp_path: Path, maker: str) -> None:
    long = hashlib.sha512(b"long").hexdigest()
    content = {**CONTENT, f"blobs/sha512/{long}": b"long"}
    members = [member(name, data) for name, data in CONTENT.items()]
    members.append(Member(f"blobs/sha512/{long}", Digest("sha512", long), 4))
    with Stream(path) as out:
        out.begin(members)
        for data in content.values():
            out.put([data])
    folder = tmp_path / "unpacked"
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    again = tmp_path / "again.tar"
    if maker == "tar":
        subprocess.run(["tar", "cf", again, "-C", folder, "."], check=True)
    else:
        with tarfile.open(again, "w", format=tarfile.PAX_FORMAT) as archive:
            archive.add(folder, arcname="")
    for one in (path, again):
        with Archive(one) as found:
            found.check()
            assert len(found.blobs) == len(content) - 2


def test_members_are_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert volumes_module.MEMBERS == 200_000
    write(path)
    monkeypatch.setattr(archive_module, "MEMBERS", len(MEMBERS))
    Archive(path).close()
    monkeypatch.setattr(archive_module, "MEMBERS", len(MEMBERS) - 1)
    with pytest.raises(IntegrityError, match="more than 8 members"):
        Archive(path)


def test_a_directory_is_no_archive(path: Path) -> None:
    path.mkdir()
    with pytest.raises(Misuse, match="a directory"):
        write(path)
    with pytest.raises(IntegrityError, match="not a regular file"):
        Archive(path)


def damaged(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize("position", range(len(BLOBS)))
def test_every_blob_is_hashed(path: Path, position: int) -> None:
    write(path)
    name = list(BLOBS)[position]
    at = path.read_bytes().index(BLOBS[name])
    damaged(path, at + 300_000)
    with Archive(path) as archive, pytest.raises(IntegrityError, match=name):
        archive.check()


@pytest.mark.parametrize("number", range(1, 6))
def test_a_damaged_volume_is_named(path: Path, number: int) -> None:
    write(path, volume=MiB)
    damaged(path.with_name(f"site.tar.00{number}"), 1000)
    with Archive(path) as archive, pytest.raises(IntegrityError, match=rf"tar\.00{number}: its ch"):
        archive.check()


Harm = Callable[[Path], None]


def _put(path: Path, number: int, content: bytes) -> None:
    path.with_name(f"site.tar.00{number}").write_bytes(content)


def _swap(path: Path) -> None:
    two, three = path.with_name("site.tar.002"), path.with_name("site.tar.003")
    raw = two.read_bytes()
    two.write_bytes(three.read_bytes())
    three.write_bytes(raw)


def _edit(path: Path, old: str, new: str) -> None:
    listed = path.with_name("site.tar.sha256")
    text = listed.read_text()
    assert old in text
    listed.write_text(text.replace(old, new))


def _lines(path: Path, edit: Callable[[list[str]], list[str]]) -> None:
    listed = path.with_name("site.tar.sha256")
    listed.write_text("".join(edit(listed.read_text().splitlines(keepends=True))))


HARMS: dict[str, tuple[Harm, type[OcipackError], str]] = {
    "a volume is missing": (
        lambda path: path.with_name("site.tar.003").unlink(),
        NotFound,
        r"site\.tar\.003: volume 3 of 5 is missing",
    ),
    "the last volume is missing": (
        lambda path: path.with_name("site.tar.005").unlink(),
        NotFound,
        "volume 5 of 5 is missing",
    ),
    "two volumes are swapped": (_swap, IntegrityError, r"tar\.00[23]|checksum|header"),
    "a volume is cut short": (
        lambda path: _put(path, 2, bytes(5)),
        IntegrityError,
        r"site\.tar\.002: 5 bytes, and site\.tar\.001 has 1048576",
    ),
    "the last volume is cut short": (
        lambda path: _put(path, 5, path.with_name("site.tar.005").read_bytes()[:-600]),
        IntegrityError,
        "cut short",
    ),
    "the first volume is cut short": (
        lambda path: _put(path, 1, bytes(5)),
        IntegrityError,
        r"site\.tar\.002",
    ),
    "a volume is empty": (
        lambda path: _put(path, 5, b""),
        IntegrityError,
        r"site\.tar\.005: 0 bytes",
    ),
    "a volume has grown": (
        lambda path: _put(path, 4, bytes(MiB + 1)),
        IntegrityError,
        r"site\.tar\.004",
    ),
    "there is no list": (
        lambda path: path.with_name("site.tar.sha256").unlink(),
        NotFound,
        "there is no archive",
    ),
    "the list is cut short": (
        lambda path: _lines(path, lambda lines: lines[:-1]),
        IntegrityError,
        "cut short",
    ),
    "the list has another order": (
        lambda path: _lines(path, lambda lines: lines[::-1]),
        IntegrityError,
        "it does not list",
    ),
    "the list lacks the first": (
        lambda path: _lines(path, lambda lines: lines[1:]),
        IntegrityError,
        "it does not list",
    ),
    "the list names something else": (
        lambda path: _edit(path, "site.tar.003", "../../etc/x"),
        IntegrityError,
        "it does not list",
    ),
    "the list says something else": (
        lambda path: _lines(path, lambda lines: [*lines, "# a comment\n"]),
        IntegrityError,
        "it does not list",
    ),
    "the list is empty": (
        lambda path: _lines(path, lambda _: []),
        IntegrityError,
        "it does not list",
    ),
    "the list is endless": (
        lambda path: _lines(path, lambda lines: lines * 400),
        IntegrityError,
        "more than 131072 bytes",
    ),
    "the list has another checksum": (
        lambda path: _lines(path, lambda lines: [("0" * 64) + lines[0][64:], *lines[1:]]),
        IntegrityError,
        r"site\.tar\.001: its checksum is",
    ),
}


@pytest.mark.parametrize("case", HARMS)
def test_volumes_that_are_refused(path: Path, case: str) -> None:
    write(path, volume=MiB)
    harm, error, why = HARMS[case]
    harm(path)

    def read() -> None:
        with Archive(path) as archive:
            archive.check()

    with pytest.raises(error, match=why):
        read()


def test_volumes_without_their_list_are_said_to_be_unfinished(path: Path) -> None:
    write(path, volume=MiB)
    path.with_name("site.tar.sha256").unlink()
    with pytest.raises(NotFound) as raised:
        Archive(path)
    assert raised.value.hint == "there are volumes, but not site.tar.sha256, with which a save ends"


def test_the_list_names_the_archive_as_well(path: Path) -> None:
    write(path, volume=MiB)
    with Archive(path.with_name("site.tar.sha256")) as archive:
        archive.check()


def test_reading_over_the_edges_of_files(tmp_path: Path) -> None:
    data = bytes(range(100))
    paths = [tmp_path / name for name in "abc"]
    for one, part in zip(paths, (data[:30], data[30:60], data[60:]), strict=True):
        one.write_bytes(part)
    with Parts(paths) as parts:
        for start in range(100):
            for size in (0, 1, 31, 100 - start):
                count = min(size, 100 - start)
                assert parts.take(start, count) == data[start : start + count]
        with pytest.raises(IntegrityError, match="cut short: 1 more bytes"):
            parts.take(90, 11)


def test_nothing_but_our_own_leftovers_is_removed(path: Path) -> None:
    others = [".other.tar.partial", ".site.tar.0001.partial", "site.tar.partial", ".site.tar.x"]
    ours = [".site.tar.partial", ".site.tar.003.partial", ".site.tar.sha256.partial"]
    for name in [*others, *ours]:
        path.with_name(name).write_text("x")
    Sink(path, Checksums(MiB))
    assert names(path) == sorted(others)
