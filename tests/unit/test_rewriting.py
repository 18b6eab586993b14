"""Files are replaced where they stand: whole, with their mode, and never through a link."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ocipack.errors import Denied, Misuse, Rejected, StoreError, Unavailable
from ocipack.files import rewriting
from ocipack.files.rewriting import Place, create, manifests


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (
        "a.yaml",
        "d/b.yml",
        "d/e/Kustomization",
        "d/c.txt",
        ".git/x.yaml",
        ".github/w.yaml",
    ):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("old\n")
    return tmp_path / "tree"


def test_manifests_are_found_below_a_directory_but_not_in_git(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {".github/w.yaml", "a.yaml", "d/b.yml", "d/e/Kustomization"}
    assert manifests(str(tree)).keys() == {f"{tree}/{name}" for name in found}
    monkeypatch.chdir(tree)
    assert manifests(".").keys() == found
    assert manifests("./d//").keys() == {"d/b.yml", "d/e/Kustomization"}
    assert manifests("d/c.txt").keys() == {"d/c.txt"}
    assert manifests("a.yaml")["a.yaml"].read() == b"old\n"


def test_a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it(tree: Path) -> None:
    path = tree / "d/b.yml"
    path.chmod(0o604)
    Place(str(tree), ("d", "b.yml")).replace(b"old\n", b"new\n")
    assert path.read_bytes() == b"new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert sorted(p.name for p in path.parent.iterdir()) == ["b.yml", "c.txt", "e"]


def test_a_file_that_somebody_else_changed_is_left_alone(tree: Path) -> None:
    with pytest.raises(Rejected, match="changed while"):
        Place(str(tree), ("a.yaml",)).replace(b"older\n", b"new\n")
    assert (tree / "a.yaml").read_text() == "old\n"


def test_links_are_never_followed(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.yaml").write_text("old\n")
    (tree / "link").symlink_to(outside)
    (tree / "x.yaml").symlink_to(outside / "x.yaml")
    (tree / "round").symlink_to(tree)
    assert not [name for name in manifests(str(tree)) if "x.yaml" in name.replace(".git", "")]
    for parts in (("link", "x.yaml"), ("x.yaml",)):
        place = Place(str(tree), parts)
        with pytest.raises(StoreError):
            place.read()
        with pytest.raises(StoreError):
            place.replace(b"old\n", b"new\n")
    with pytest.raises(Misuse, match="a link"):
        manifests(str(tree / "x.yaml"))
    assert (outside / "x.yaml").read_text() == "old\n"
    assert (tree / "x.yaml").is_symlink()


def test_a_directory_that_became_a_link_is_not_followed(tree: Path, tmp_path: Path) -> None:
    place = manifests(str(tree))[f"{tree}/d/b.yml"]
    (tree / "d").rename(tmp_path / "moved")
    (tree / "d").symlink_to(tmp_path / "moved")
    with pytest.raises(StoreError):
        place.replace(b"old\n", b"new\n")
    assert (tmp_path / "moved/b.yml").read_text() == "old\n"


def test_what_is_no_plain_file_is_not_read(tree: Path) -> None:
    os.mkfifo(tree / "pipe.yaml")
    assert f"{tree}/pipe.yaml" not in manifests(str(tree))
    with pytest.raises(Unavailable, match="not a plain file"):
        Place(str(tree), ("pipe.yaml",)).read()


def test_a_failure_leaves_the_old_file_and_nothing_else(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unavailable, match="no space"):
        Place(str(tree), ("a.yaml",)).replace(b"old\n", b"new\n")
    assert (tree / "a.yaml").read_text() == "old\n"
    assert sorted(p.name for p in tree.iterdir()) == [".git", ".github", "a.yaml", "d"]


def test_bounds(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewriting, "BYTES", 3)
    with pytest.raises(Rejected, match="more than 3 bytes"):
        Place(str(tree), ("a.yaml",)).read()
    monkeypatch.setattr(rewriting, "LIMIT", 3)
    with pytest.raises(Rejected, match="more than 3 files"):
        manifests(str(tree))


def test_what_is_not_there_is_misuse(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="no such file"):
        manifests(str(tmp_path / "x"))


def test_a_new_file_is_never_written_over_another(tmp_path: Path) -> None:
    create(str(tmp_path / "x"), b"one")
    assert (tmp_path / "x").read_bytes() == b"one"
    with pytest.raises(StoreError):
        create(str(tmp_path / "x"), b"two")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(StoreError):
        create(str(tmp_path / "link"), b"two")
    assert not (tmp_path / "target").exists()
    with pytest.raises((StoreError, Denied)):
        create(str(tmp_path / "no/x"), b"two")
