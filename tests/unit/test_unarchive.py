"""Reading archives that strangers made."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tars import entry, layer, pax, record

from ocipack.errors import IntegrityError
from ocipack.oci.digest import Digest
from ocipack.tree.limits import LIMITS, Limits
from ocipack.tree.tree import Entry
from ocipack.tree.unarchive import read

MiB = 1024 * 1024
FILE = entry("a", b"hello")


def content(
    data: bytes, limits: Limits = LIMITS, diff_id: Digest | None = None
) -> dict[str, bytes]:
    entries = read([data], size=len(data), limits=limits, diff_id=diff_id)
    return {e.name: b"".join(e.content) for e in entries}


# --- what is accepted


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (layer(FILE), {"a": b"hello"}),
        (layer(), {}),
        (layer(entry("a", b"x", kind=b"\0", magic=bytes(8))), {"a": b"x"}),
        (layer(entry("a", b"x", magic=b"ustar  \0")), {"a": b"x"}),
        (layer(entry("a", b"x", mode=b"100644 \0")), {"a": b"x"}),
        (layer(entry("a", b"x", size=b"         1 \0")), {"a": b"x"}),
        (layer(entry("./", kind=b"5"), entry("./a", b"x")), {"a": b"x"}),
        (layer(entry(".", kind=b"5"), entry("d", kind=b"5"), entry("d/a", b"x")), {"d/a": b"x"}),
        (layer(entry("d/a", b"x"), entry("d/", kind=b"5")), {"d/a": b"x"}),
        (layer(entry("d/", kind=b"5"), entry("d/", kind=b"5", mode=b"40755  \0")), {}),
        (layer(entry("c", b"x", prefix=b"a/b")), {"a/b/c": b"x"}),
        (layer(pax(("path", "é/ü")), entry("stand-in", b"x")), {"é/ü": b"x"}),
        (layer(pax(("mtime", "1.5"), ("path", "b"), ("uid", "7")), FILE), {"b": b"hello"}),
        (layer(pax(("mtime", "1.5")), FILE), {"a": b"hello"}),
        (layer(pax(("SCHILY.xattr.user.x", b"\0\xff\n")), FILE), {"a": b"hello"}),
        (layer(pax(("comment", "0" * 40), kind=b"g"), FILE), {"a": b"hello"}),
        (layer(entry("././@LongLink", b"l" * 150 + b"\0", kind=b"L"), FILE), {"l" * 150: b"hello"}),
        (layer(FILE, end=bytes(10240)), {"a": b"hello"}),
        (gzip.compress(FILE[:100]) + gzip.compress(FILE[100:] + bytes(1024)), {"a": b"hello"}),
    ],
    ids=range(19),
)
def test_accepted(data: bytes, found: dict[str, bytes]) -> None:
    assert content(data) == found


def test_executable_is_any_execute_bit() -> None:
    modes = {b"0000644\0": False, b"0000600\0": False, b"0000755\0": True, b"0000010\0": True}
    modes |= {b"0004755\0": True, b"0000000\0": False}
    data = layer(*(entry(f"f{i}", b"x", mode=mode) for i, mode in enumerate(modes)))
    assert [e.executable for e in read([data], size=len(data))] == list(modes.values())


@pytest.mark.parametrize("form", ["gnu", "ustar", "pax", "v7", "oldgnu"])
def test_what_gnu_tar_writes(form: str, tmp_path: Path) -> None:
    root = tmp_path / "tree"
    names = ["x.yaml", "deep/er/y.yaml"]
    names += [] if form in {"v7", "ustar"} else ["long/" + "n" * 120, "ü/" + "é" * 60]
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "x.yaml").chmod(0o755)
    done = subprocess.run(
        ["tar", f"--format={form}", "-czf", "-", "."], cwd=root, check=True, capture_output=True
    )
    assert content(done.stdout) == {name: name.encode() for name in names}
    entries = {e.name: e for e in read([done.stdout], size=len(done.stdout))}
    assert [name for name in names if entries[name].executable] == ["x.yaml"]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_what_python_writes(form: int) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=form) as tar:
        for name in ["a", "b/" + "c" * 150, "é" * 80]:
            info = tarfile.TarInfo(name)
            info.size, info.mtime = 3, 1.5
            tar.addfile(info, io.BytesIO(b"xyz"))
    assert content(out.getvalue()) == dict.fromkeys(["a", "b/" + "c" * 150, "é" * 80], b"xyz")


# --- what is refused, by name


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        # (1) kinds
        (layer(entry("a", kind=b"1", linkname=b"b")), "'a' is a hard link"),
        (layer(entry("a", kind=b"2", linkname=b"/etc")), "'a' is a symbolic link"),
        (layer(entry("a", kind=b"3")), "a character device"),
        (layer(entry("a", kind=b"4")), "a block device"),
        (layer(entry("a", kind=b"6")), "a fifo"),
        (layer(entry("a", kind=b"7")), "unknown kind b'7'"),
        (layer(entry("a", kind=b"S")), "a sparse file"),
        (layer(entry("a", b"b\0", kind=b"K"), FILE), "a link with a long name"),
        (layer(entry("a", kind=b"D")), "unknown kind b'D'"),
        (layer(entry("a", b"x", mode=b"120644 \0")), "mode and kind of 'a' contradict"),
        (layer(entry("a", b"x", mode=b"040755 \0")), "mode and kind of 'a' contradict"),
        (layer(entry("a/", kind=b"5", mode=b"100755 \0")), "mode and kind"),
        (layer(entry("d", b"x", kind=b"5")), "the directory 'd' has content"),
        (layer(entry("d/", b"x")), "empty or"),
        (layer(entry("d/", b"x", kind=b"\0", magic=bytes(8))), "empty or"),
        # (2) names
        (layer(entry("", b"x")), "an empty name"),
        (layer(entry("/etc/passwd", b"x")), "an absolute name"),
        (layer(entry("etc/passwd", b"x", prefix=b"/")), "an absolute name"),
        (layer(entry("../x", b"x")), "leads out"),
        (layer(entry("a/../../x", b"x")), "leads out"),
        (layer(entry("..", kind=b"5")), "leads out"),
        (layer(entry("x", b"x", prefix=b"..")), "leads out"),
        (layer(entry("././a", b"x")), "'.' part"),
        (layer(entry(".", b"x")), "'.' part"),
        (layer(entry("d//", kind=b"5")), "'.' part"),
        (layer(entry("a\\b", b"x")), "a backslash"),
        (layer(entry("a\nb", b"x")), "control characters"),
        (layer(entry(b"caf\xe9", b"x")), "caf.*utf-8"),
        (layer(pax(("path", b"caf\xe9")), FILE), "caf.*utf-8"),
        (layer(pax(("path", "../x")), FILE), "leads out"),
        (layer(pax(("path", "a\0b")), FILE), "control characters"),
        (layer(pax(("path", "")), FILE), "an empty name"),
        (layer(entry("L", b"../x\0", kind=b"L"), FILE), "leads out"),
        (layer(entry("L", b"a\0b\0", kind=b"L"), FILE), "control characters"),
        (layer(pax(("path", "p/" * 3000 + "p")), FILE), "longer or deeper"),
        # (3) twice
        (layer(FILE, FILE), "there twice: 'a'"),
        (layer(FILE, entry("./a", b"y")), "there twice: 'a'"),
        (layer(FILE, pax(("path", "a")), entry("b", b"y")), "there twice: 'a'"),
        (layer(FILE, entry("a/", kind=b"5")), "there twice: 'a'"),
        (layer(entry("a/", kind=b"5"), FILE), "there twice: 'a'"),
        (layer(FILE, entry("a/b", b"x")), "both a file and a directory: 'a'"),
        (layer(entry("a/b/c", b"x"), entry("a/b", b"x")), "there twice: 'a/b'"),
        # (5) the end
        (layer(FILE, end=b""), "cut short"),
        (layer(FILE, end=bytes(512)), "cut short"),
        (layer(FILE, end=bytes(1023)), "cut short"),
        (layer(FILE, end=bytes(512) + FILE + bytes(1024)), "no end where it should be"),
        (layer(FILE, end=bytes(1024) + b"x"), "something after the end"),
        (layer(FILE, end=bytes(1024) + entry("b", b"x") + bytes(1024)), "something after the end"),
        (layer(FILE[:-1], end=b""), "cut short"),
        (layer(FILE[:600], end=b""), "cut short"),
        (layer(FILE[:300], end=b""), "cut short"),
        (layer(FILE)[:-1], "cut short"),
        (layer(FILE)[:-9], "cut short"),
        (layer(FILE) + b"\0", "cut short"),
        (layer(FILE) + b"garbage", "not gzip, or something after its end"),
        (layer(FILE) + layer(entry("b", b"x")), "something after the end"),
        (b"", "cut short"),
        (FILE + bytes(1024), "not gzip"),
        (b"\x28\xb5\x2f\xfd" + bytes(100), "not gzip"),
        (layer(FILE)[:-8] + bytes(8), "incorrect data check"),
        (layer(FILE)[:-4] + bytes(4), "incorrect length check"),
        # headers that readers disagree about
        (layer(entry("a", b"x", checksum=1)), "wrong checksum of 'a'"),
        (layer(entry("a", b"x", magic=b"ustar\x0001")), "not a header: 'a'"),
        (layer(entry("a", b"x", magic=b"USTAR\x0000")), "not a header: 'a'"),
        (layer(entry("a", b"x", magic=b"ustar  \0", prefix=b"b")), "a dialect"),
        (layer(entry("a", b"x", magic=bytes(8), prefix=b"b")), "a dialect"),
        (layer(entry("a", b"x", tail=b"\0" * 8 + b"tar\0")), "a dialect"),
        (layer(entry("a", b"x", size=b"\x80" + bytes(10) + b"\x01")), "not a number"),
        (layer(entry("a", b"x", size=b"-1\0")), "not a number"),
        (layer(entry("a", b"x", size=b"0x1\0")), "not a number"),
        (layer(entry("a", b"x", size=b"1\x000\0")), "not a number"),
        (layer(entry("a", b"x", size=b"\0" * 12)), "not a number"),
        (layer(entry("a", b"x", mode=b"rw-r--r-")), "not a number"),
        (layer(pax(("size", "1")), FILE), "a pax record that we do not read: b'size'"),
        (layer(pax(("linkpath", "b")), FILE), "b'linkpath'"),
        (layer(pax(("GNU.sparse.major", "1")), FILE), "b'GNU.sparse.major'"),
        (layer(pax(("SCHILY.realsize", "1")), FILE), "b'SCHILY.realsize'"),
        (layer(pax(("hdrcharset", "BINARY")), FILE), "b'hdrcharset'"),
        (layer(pax(("path", "b"), ("path", "c")), FILE), "the pax record b'path' twice"),
        (layer(pax(("path", "b"), kind=b"g"), FILE), "global pax header"),
        (layer(pax(("path", "b")), pax(("comment", ""), kind=b"g"), FILE), "global pax header"),
        (layer(pax(("path", "b")), pax(("path", "c")), FILE), "two long names"),
        (layer(pax(("path", "b")), entry("L", b"c\0", kind=b"L"), FILE), "two long names"),
        (layer(entry("L", b"c\0", kind=b"L"), pax(("mtime", "1")), FILE), "two long names"),
        (layer(pax(("path", "b"))), "a long name without an entry"),
        (layer(entry("x", record("path", "b")[:-1], kind=b"x"), FILE), "malformed pax"),
        (layer(entry("x", b"9 path=b\n" + b"x", kind=b"x"), FILE), "malformed pax"),
        (layer(entry("x", b"0 path=b\n", kind=b"x"), FILE), "malformed pax"),
        (layer(entry("x", b"99 path=b\n", kind=b"x"), FILE), "malformed pax"),
        (layer(entry("x", b"6 path=b\n", kind=b"x"), FILE), "malformed pax"),
        (layer(entry("x", b"\0" * 100, kind=b"x"), FILE), "malformed pax"),
        (layer(entry("x", b"x" * 70_000, kind=b"x"), FILE), "an extended header of 70000 bytes"),
        (layer(entry("x", b"x" * 70_000, kind=b"L"), FILE), "an extended header of 70000 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refused(data: bytes, reason: str) -> None:
    with pytest.raises(IntegrityError, match=reason) as e:
        content(data)
    assert str(e.value).isprintable()


# --- (4) budgets


@pytest.mark.parametrize("name", [".git/config", "a/.git/hooks/x", ".GIT/config", "a/.Git"])
def test_a_git_repository_is_refused(name: str) -> None:
    with pytest.raises(IntegrityError, match="git repository"):
        content(layer(entry(name, b"x")))


@pytest.mark.parametrize("name", [".gitignore", "a.git/x", ".github/x"])
def test_what_only_looks_like_git_is_not(name: str) -> None:
    assert content(layer(entry(name, b"x"))) == {name: b"x"}


def test_a_bomb_goes_off_at_its_limit() -> None:
    seen: list[int] = []
    bomb = layer(entry("zeros", bytes(80 * MiB)))
    zeros = next(read([bomb], size=len(bomb)))
    with pytest.raises(IntegrityError, match="more than the 67108864 bytes"):
        seen.extend(len(chunk) for chunk in zeros.content)
    assert 63 * MiB < sum(seen) <= 64 * MiB


def test_a_longer_layer_may_turn_into_more_but_not_without_end() -> None:
    assert LIMITS.uncompressed(1) == 64 * MiB
    assert LIMITS.uncompressed(MiB) == 200 * MiB
    assert LIMITS.uncompressed(100 * MiB) == 512 * MiB


def test_endless_members_end() -> None:
    def endless() -> Iterator[bytes]:
        yield gzip.compress(entry("a", size=b"77777777777\0"))
        while True:
            yield gzip.compress(bytes(MiB))

    with pytest.raises(IntegrityError, match="gzip: more than the"):
        list(read(endless(), size=1000))


def test_too_many_entries() -> None:
    files = [entry(f"f{i}") for i in range(4)]
    assert len(content(layer(*files), Limits(entries=4))) == 4
    with pytest.raises(IntegrityError, match="more than 3 files and directories"):
        content(layer(*files), Limits(entries=3))


def test_directories_count_whether_they_are_listed_or_not() -> None:
    assert content(layer(entry("a/b/c/d")), Limits(entries=4))
    with pytest.raises(IntegrityError, match="more than 3 files and directories"):
        content(layer(entry("a/b/c/d")), Limits(entries=3))
    with pytest.raises(IntegrityError, match="more than 1 files and directories"):
        content(layer(entry("a", kind=b"5"), entry("b", kind=b"5")), Limits(entries=1))


def test_names_have_a_budget_too() -> None:
    assert content(layer(entry("aa/bb"), entry("aa/c")), Limits(names=2 + 5 + 4))
    with pytest.raises(IntegrityError, match="more than 10 bytes of names"):
        content(layer(entry("aa/bb"), entry("aa/c")), Limits(names=10))


# --- (6) the content digest


def test_the_content_digest_is_compared() -> None:
    tar = FILE + bytes(10240)
    data = gzip.compress(tar)
    assert content(data, diff_id=Digest.of(tar)) == {"a": b"hello"}
    with pytest.raises(IntegrityError, match="its config says sha256:2cf24dba5fb0"):
        content(data, diff_id=Digest.of(b"hello"))
    sha512 = Digest("sha512", hashlib.sha512(tar).hexdigest())
    assert content(data, diff_id=sha512) == {"a": b"hello"}


# --- streaming


def test_chunks_of_any_size() -> None:
    data = layer(FILE, pax(("path", "b" * 200)), entry("b", b"x" * 3000))
    for step in (1, 7, 512, len(data)):
        chunks = [data[i : i + step] for i in range(0, len(data), step)]
        entries = read([b"", *chunks, b""], size=len(data))
        found = {e.name: b"".join(e.content) for e in entries}
        assert found == {"a": b"hello", "b" * 200: b"x" * 3000}


def test_content_that_nobody_takes_is_skipped() -> None:
    data = layer(entry("a", b"x" * 5000), entry("b", b"y" * 700_000), entry("c", b"z"))
    names = []
    for e in read([data], size=len(data)):
        names.append(e.name)
        if e.name == "b":
            next(e.content)
    assert names == ["a", "b", "c"]


def test_content_that_was_begun_and_closed_is_skipped() -> None:
    data = layer(entry("a", b"x" * 700_000), entry("b", b"y"))
    entries = read([data], size=len(data))
    first = next(entries).content
    next(first)
    first.close()  # type: ignore[attr-defined] # what a consumer that fails does to a generator
    assert [e.name for e in entries] == ["b"]


def test_the_stream_has_its_say_before_the_end() -> None:
    """A source raises at the end if the bytes were wrong: the reader must get that far."""

    def checked() -> Iterator[bytes]:
        yield layer(FILE)
        raise IntegrityError("the digest is another")

    taken: list[Entry] = []
    with pytest.raises(IntegrityError, match="the digest is another"):
        taken.extend(read(checked(), size=1000))
    assert [e.name for e in taken] == ["a"]


def test_memory_stays_flat_in_the_size_of_a_file() -> None:
    def tar() -> Iterator[bytes]:
        yield entry("big", size=b"%011o\0" % (48 * MiB))
        yield from (bytes(MiB) for _ in range(48))
        yield bytes(1024)

    def zipped() -> Iterator[bytes]:
        packer = zlib.compressobj(wbits=31)
        yield from (packer.compress(chunk) for chunk in tar())
        yield packer.flush()

    (big,) = _sizes(read(zipped(), size=MiB))
    assert big == (48 * MiB, True)


def _sizes(entries: Iterable[Entry]) -> Iterator[tuple[int, bool]]:
    for e in entries:
        lengths = [len(chunk) for chunk in e.content]
        yield sum(lengths), max(lengths) <= 256 * 1024
