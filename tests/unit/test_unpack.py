"""A directory appears whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ocipack.errors import IntegrityError, Misuse, Unavailable
from ocipack.files import unpack
from ocipack.files.unpack import write_tree
from ocipack.tree.tree import Entry, File, Tree

TREE = Tree({"a": File.of(b"new"), "d/b": File.of(b"2", executable=True)})
WHOLE = {"a": "new", "d/b": "2"}


def found(root: Path) -> dict[str, str]:
    return {str(p.relative_to(root)): p.read_text() for p in root.rglob("*") if p.is_file()}


def failing(error: BaseException) -> Iterator[Entry]:
    yield from TREE.entries()
    raise error


def test_a_new_directory_and_its_parents(tmp_path: Path) -> None:
    write_tree(TREE.entries(), str(tmp_path / "x/y/out"))
    assert found(tmp_path) == {"x/y/out/a": "new", "x/y/out/d/b": "2"}


def test_modes_follow_the_umask_and_nothing_else(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_tree(TREE.entries(), str(tmp_path / "out"))
    finally:
        os.umask(old)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*")}
    assert modes == {"out": 0o750, "a": 0o640, "d": 0o750, "b": 0o750}


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_tree(TREE.entries(), str(tmp_path / "out"))
    assert found(tmp_path / "out") == WHOLE
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("mine")

    def unread() -> Iterator[Entry]:
        pytest.fail("asked before it was refused")
        yield from ()

    with pytest.raises(Misuse, match="not empty") as e:
        write_tree(unread(), str(tmp_path / "out"))
    assert "--force" in e.value.hint
    assert found(tmp_path) == {"out/mine": "mine"}


def test_a_file_in_the_way_is_misuse_even_with_force(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    for force in (False, True):
        with pytest.raises(Misuse, match="not a directory"):
            write_tree(TREE.entries(), str(tmp_path / "out"), force=force)


def test_force_replaces_the_whole(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/stale").write_text("stale")
    write_tree(TREE.entries(), str(tmp_path / "out"), force=True)
    assert found(tmp_path) == {"out/a": "new", "out/d/b": "2"}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_force_does_not_take_a_repository_or_the_root(tmp_path: Path) -> None:
    (tmp_path / "out/.git").mkdir(parents=True)
    for destination in (tmp_path / "out", Path("/")):
        with pytest.raises(Misuse, match="never replaced"):
            write_tree(TREE.entries(), str(destination), force=True)
    assert not found(tmp_path)


def test_a_destination_that_is_a_link_is_where_it_points(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "current").symlink_to("real")
    write_tree(TREE.entries(), str(tmp_path / "current"))
    assert (tmp_path / "current").is_symlink()
    assert found(tmp_path / "real") == WHOLE


@pytest.mark.parametrize("error", [IntegrityError("digest"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", ["missing", "parents", "empty", "full", "here"])
def test_nothing_is_left_of_a_failure(
    tmp_path: Path, error: BaseException, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / ("x/y" if before == "parents" else "out")
    if before in {"empty", "full", "here"}:
        out.mkdir()
    if before in {"full", "here"}:
        (out / "mine").write_text("mine")
    if before == "here":
        monkeypatch.chdir(out)
    names = sorted(tmp_path.rglob("*"))
    with pytest.raises(type(error)):
        write_tree(failing(error), str(out), force=True)
    assert sorted(tmp_path.rglob("*")) == names


def test_the_working_directory_stays_the_directory_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "d").write_text("stale")
    monkeypatch.chdir(out)
    inode = out.stat().st_ino
    write_tree(TREE.entries(), ".", force=True)
    assert out.stat().st_ino == inode
    assert found(out) == WHOLE
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_mount_point_is_filled_from_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "volume"
    out.mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path == out)
    inode = out.stat().st_ino
    write_tree(TREE.entries(), str(out))
    assert (out.stat().st_ino, found(out)) == (inode, WHOLE)


def test_a_last_step_that_fails_on_a_new_directory_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(Unavailable, match="no space left"):
        write_tree(TREE.entries(), str(tmp_path / "x/out"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("inside", [False, True])
def test_a_step_that_fails_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, inside: bool
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("a", "mine"):
        (out / name).write_text("mine")
    monkeypatch.setattr(unpack, "_fixed", lambda _: inside)
    real, left = Path.rename, [2 if inside else 1]

    def full(self: Path, target: Path) -> Path:
        if left[0] == 0:
            left[0] = 99
            raise OSError(28, "No space left on device")
        left[0] -= 1
        return real(self, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(Unavailable, match="no space left"):
        write_tree(TREE.entries(), str(out), force=True)
    assert found(tmp_path) == {"out/a": "mine", "out/mine": "mine"}
