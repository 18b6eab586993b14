"""A private place to work in."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ocipack.errors import Denied, Misuse, NotFound, Rejected, Unavailable
from ocipack.files.placing import Placer
from ocipack.files.seam import printable, read_bytes, translated
from ocipack.files.workspace import Workspace
from ocipack.tree.tree import Entry, File, Tree

BIG = 1_500_000
"""Bytes that are too many to keep in memory."""


def one(name: str, data: bytes = b"x") -> Entry:
    return Entry(name, len(data), executable=False, content=iter([data]))


def test_it_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with Workspace(str(tmp_path)) as work:
        assert stat.S_IMODE(work.path.stat().st_mode) == 0o700
        assert work.path.parent == tmp_path
        work.extract([one("a/b")])
        work.spool([b"x" * BIG])
    assert not list(tmp_path.iterdir())


def test_it_is_made_when_it_is_needed(tmp_path: Path) -> None:
    with Workspace(str(tmp_path)) as work:
        again = work.spool([b"x"] * 1000)
        assert not list(tmp_path.iterdir())
        assert b"".join(again()) == b"".join(again()) == b"x" * 1000
        work.directory()
        assert len(list(tmp_path.iterdir())) == 1
    assert not list(tmp_path.iterdir())


def test_it_is_gone_after_a_failure_too(tmp_path: Path) -> None:
    def interrupted() -> Iterator[Entry]:
        yield one("a")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Workspace(str(tmp_path)) as work:
        work.extract(interrupted())
    assert not list(tmp_path.iterdir())


def test_a_parent_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with Workspace(str(tmp_path / "missing")) as work, pytest.raises(NotFound):
        work.directory()


def test_a_spool_can_be_opened_again_and_again() -> None:
    with Workspace() as work:
        first, second = work.spool([b"ab", b"", b"c"]), work.spool(iter([b"d" * 3_000_000]))
        assert b"".join(first()) == b"".join(first()) == b"abc"
        chunks = list(second())
        assert b"".join(chunks) == b"d" * 3_000_000
        assert max(map(len, chunks)) <= 1024 * 1024


def test_a_stream_that_fails_leaves_no_spool() -> None:
    def failing() -> Iterator[bytes]:
        yield b"x" * BIG
        raise Unavailable("cut")

    with Workspace() as work:
        with pytest.raises(Unavailable, match="cut"):
            work.spool(failing())
        assert not list(work.path.iterdir())


def test_a_full_disk_is_unavailable() -> None:
    """/dev/full is the kernel's own full disk."""
    with (
        Path("/dev/full").open("wb", buffering=0) as full,
        pytest.raises(Unavailable, match="/dev/full: no space left") as e,
        translated("/dev/full"),
    ):
        full.write(b"x")
    assert e.value.exit_code == 3


def test_a_spool_that_does_not_fit_leaves_nothing() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Workspace() as work:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, hard))
        try:
            with pytest.raises(Unavailable, match="blob-1: File too large"):
                work.spool(bytes(BIG) for _ in range(3))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not list(work.path.iterdir())


def test_a_spool_is_not_written_through_a_link(tmp_path: Path) -> None:
    with Workspace() as work:
        (work.path / "blob-1").symlink_to(tmp_path / "outside")
        with pytest.raises(Unavailable, match="exists"):
            work.spool([b"x" * BIG])
    assert not list(tmp_path.iterdir())


def test_extraction_gives_names_contents_and_modes() -> None:
    tree = Tree(
        {
            "a/b/c": File.of(b"1"),
            "a/b/d": File.of(b"2", executable=True),
            "a/e": File.of(b"3"),
            "f": File.of(b""),
        }
    )
    old = os.umask(0o022)
    try:
        with Workspace() as work:
            root = work.extract(tree.entries())
            found = {str(p.relative_to(root)): p for p in root.rglob("*")}
            modes = {name: stat.S_IMODE(p.stat().st_mode) for name, p in found.items()}
            assert modes == {
                "a": 0o755,
                "a/b": 0o755,
                "a/b/c": 0o644,
                "a/b/d": 0o755,
                "a/e": 0o644,
                "f": 0o644,
            }
            assert found["a/b/d"].read_bytes() == b"2"
    finally:
        os.umask(old)


def test_entries_come_in_any_order() -> None:
    with Workspace() as work:
        root = work.extract(map(one, ["a/x/1", "b/1", "a/x/2", "a/2", "b/c/d/e", "a/x/3"]))
        assert (root / "a/x/3").read_bytes() == b"x"
        assert sum(p.is_file() for p in root.rglob("*")) == 6


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\\b", ""])
def test_a_placer_judges_names_itself(name: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with Placer(str(root)) as placer, pytest.raises(Misuse):
        placer.put(one(name))
    assert [p.name for p in tmp_path.rglob("*")] == ["root"]


def test_links_are_neither_followed_nor_overwritten(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "dir").symlink_to(outside)
    (root / "file").symlink_to(outside / "made")
    (root / "there").write_text("mine")
    with Placer(str(root)) as placer:
        with pytest.raises(Unavailable, match="dir/x"):
            placer.put(one("dir/x"))
        for name in ("file", "there"):
            with pytest.raises(Rejected, match=f"{name}: this file system has that name already"):
                placer.put(one(name))
    assert not list(outside.iterdir())
    assert (root / "there").read_text() == "mine"


def test_a_directory_swapped_for_a_link_on_the_way_is_not_followed(tmp_path: Path) -> None:
    """Handles point at directories, not at names."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    with Placer(str(root)) as placer:
        placer.put(one("d/1"))
        (root / "d").rename(root / "was")
        (root / "d").symlink_to(outside)
        placer.put(one("d/2"))
    assert not list(outside.iterdir())
    assert {p.name for p in (root / "was").iterdir()} == {"1", "2"}


def test_a_root_that_is_a_link_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(Unavailable), Placer(str(tmp_path / "link")):
        pass


# --- the seam


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [
        (errno.EACCES, Denied, "may not read or write"),
        (errno.EPERM, Denied, "may not read or write"),
        (errno.ENOENT, NotFound, "no such file"),
        (errno.ENOSPC, Unavailable, "no space left"),
        (errno.EDQUOT, Unavailable, "no space left"),
        (errno.EIO, Unavailable, "Input/output error"),
        (errno.ELOOP, Unavailable, "symbolic links"),
    ],
)
def test_what_the_system_says_becomes_ours(number: int, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as e, translated("some/path"):
        raise OSError(number, os.strerror(number))
    assert str(e.value).startswith("some/path: ")


def test_paths_in_messages_are_printable() -> None:
    assert printable("plain/é") == "plain/é"
    assert printable("a\x1b[2J\nb") == "a\\x1b[2J\\nb"
    assert printable(os.fsdecode(b"caf\xe9")) == "caf\\xe9"


def test_reading_a_named_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(b"12345")
    assert read_bytes(str(path), limit=5) == b"12345"
    with pytest.raises(Misuse, match="more than the 4 bytes"):
        read_bytes(str(path), limit=4)
    with pytest.raises(Misuse, match="nothing: no such file"):
        read_bytes(str(tmp_path / "nothing"), limit=4)
    with pytest.raises(Misuse, match="a directory, and a file"):
        read_bytes(str(tmp_path), limit=4)


def test_a_file_that_fails_to_be_read_is_not_knowing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: str, mode: str) -> object:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path, mode)

    monkeypatch.setattr("builtins.open", broken)
    with pytest.raises(Unavailable, match="key: Input/output error"):
        read_bytes("key", limit=4)


def test_a_workspace_can_be_divided(tmp_path: Path) -> None:
    with Workspace(str(tmp_path)) as work:
        first, second = work.directory(), work.directory()
        assert first != second
        assert stat.S_IMODE(first.stat().st_mode) == 0o700


def test_reading_a_pipe_and_an_endless_device() -> None:
    here, there = os.pipe()
    os.write(there, b"secret")
    os.close(there)
    try:
        assert read_bytes(f"/dev/fd/{here}", limit=100) == b"secret"
    finally:
        os.close(here)
    with pytest.raises(Misuse, match="more than the 1000 bytes"):
        read_bytes("/dev/zero", limit=1000)
