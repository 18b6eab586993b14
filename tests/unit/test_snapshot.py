"""A directory becomes a tree, or is refused with all its reasons."""

from __future__ import annotations

import os
import resource
import socket
from pathlib import Path

import pytest

from ocipack.errors import Denied, Misuse, Rejected, Unavailable
from ocipack.files.snapshot import Snapshot, snapshot
from ocipack.report import Severity
from ocipack.tree.ignore import defaults
from ocipack.tree.limits import Limits


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    place.mkdir()
    return place


def put(root: Path, *names: str, text: str = "x") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def taken(snap: Snapshot) -> dict[str, str]:
    return {n: f.read(limit=100).decode() for n, f in snap.tree.files.items()}


def refused(root: Path, **options: str) -> dict[str, str]:
    with pytest.raises(Rejected) as e:
        snapshot(str(root), **options)  # type: ignore[arg-type] # only symlinks is text
    assert e.value.report is not None
    assert e.value.hint
    for finding in e.value.report.findings:
        assert finding.file.isprintable()
    return {f.file: f.rule for f in e.value.report.findings}


def test_names_contents_and_the_executable_bit(root: Path) -> None:
    put(root, "a", "b/c/d", ".hidden")
    (root / "a").chmod(0o755)
    (root / "empty").mkdir()
    snap = snapshot(str(root))
    assert taken(snap) == {".hidden": "x", "a": "x", "b/c/d": "x"}
    assert [n for n, f in snap.tree.files.items() if f.executable] == ["a"]
    assert not snap.report.findings


@pytest.mark.parametrize("mode", [0o644, 0o664, 0o640, 0o654, 0o645])
def test_only_the_owners_bit_makes_executable(root: Path, mode: int) -> None:
    put(root, "a")
    (root / "a").chmod(mode)
    assert not snapshot(str(root)).tree.files["a"].executable


@pytest.mark.parametrize("size", [0, 1, 2**20 - 1, 2**20, 2**20 + 1, 2**21])
def test_contents_of_every_size(root: Path, size: int) -> None:
    (root / "a").write_bytes(b"x" * size)
    file = snapshot(str(root)).tree.files["a"]
    assert file.size == size
    assert b"".join(file.open()) == b"".join(file.open()) == b"x" * size
    with (root / "a").open("ab") as more:
        more.write(b"y")
    with pytest.raises(Unavailable, match="changed while"):
        b"".join(file.open())


def test_a_single_file(root: Path) -> None:
    put(root, "deploy.yaml")
    assert taken(snapshot(str(root / "deploy.yaml"))) == {"deploy.yaml": "x"}


def test_a_root_that_is_a_link_is_what_it_points_at(root: Path, tmp_path: Path) -> None:
    put(root, "a")
    (tmp_path / "link").symlink_to(root)
    assert taken(snapshot(str(tmp_path / "link"))) == {"a": "x"}


@pytest.mark.parametrize("name", ["missing", "pipe"])
def test_a_root_that_is_neither_is_misuse(root: Path, name: str) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(Misuse, match=name):
        snapshot(str(root / name))


def test_an_unknown_way_with_links_is_misuse(root: Path) -> None:
    with pytest.raises(Misuse, match="follow"):
        snapshot(str(root), symlinks="follow")


def test_patterns_leave_out_and_take_back(root: Path) -> None:
    put(root, "a.yaml", "logo.png", "x.png/inner", "docs/keep.png", ".gitignore", ".github/ci.yml")
    assert set(taken(snapshot(str(root), left_out=defaults()))) == {"a.yaml", ".github/ci.yml"}
    taking = defaults("!keep.png\n.github")
    assert set(taken(snapshot(str(root), left_out=taking))) == {"a.yaml", "docs/keep.png"}
    # a directory that is left out is looked into for what is taken back
    inner = defaults("docs/\n!keep.png")
    assert set(taken(snapshot(str(root), left_out=inner))) >= {"docs/keep.png"}


def test_git_is_never_packed_whatever_the_patterns_say(root: Path) -> None:
    put(root, ".git/config", "sub/.git", "sub/a")
    assert set(taken(snapshot(str(root)))) == {"sub/a"}
    assert set(taken(snapshot(str(root), left_out=defaults("!config\n!.git")))) == {"sub/a"}


def test_all_that_cannot_be_packed_is_named_at_once(root: Path) -> None:
    put(root, "ok", "back\\slash", "new\nline", "deep/ok")
    (root / "link").symlink_to("ok")
    (root / "deep/dir-link").symlink_to("..")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"caf\xe9")).write_text("x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "sock"))
        found = refused(root)
    assert found == {
        "back\\slash": "name",
        "new\\nline": "name",
        "caf\\xe9": "name",
        "link": "symlink",
        "deep/dir-link": "symlink",
        "pipe": "special-file",
        "sock": "special-file",
    }


def test_links_alone_get_the_hint_about_resolving(root: Path) -> None:
    for i in range(7):
        (root / f"l{i}").symlink_to("x")
    with pytest.raises(
        Rejected, match="links cannot be packed: l0, l1, l2, l3, l4 and 2 more"
    ) as e:
        snapshot(str(root))
    assert "--symlinks=resolve" in e.value.hint


def test_what_is_left_out_is_not_refused(root: Path) -> None:
    put(root, "a")
    (root / "link").symlink_to("a")
    os.mkfifo(root / "pipe")
    assert set(taken(snapshot(str(root), left_out=defaults("link\npipe")))) == {"a"}


# --- links, resolved inside the tree


def resolved(root: Path) -> dict[str, str]:
    return taken(snapshot(str(root), symlinks="resolve", left_out=defaults("secret/")))


def test_links_become_what_they_point_at(root: Path) -> None:
    put(root, "base/a", "base/sub/b")
    (root / "overlay").symlink_to("base/sub")
    (root / "again").symlink_to("overlay")
    (root / "file").symlink_to(root / "base/a")
    assert set(resolved(root)) == {"base/a", "base/sub/b", "overlay/b", "again/b", "file"}


def test_links_that_lead_nowhere_good_are_refused(root: Path, tmp_path: Path) -> None:
    put(root, "a", "secret/key", ".git/config", "d/e/f", "logo.png")
    put(tmp_path, "outside", "root-sibling/x")
    (root / "out").symlink_to("../outside")
    (root / "out-abs").symlink_to("/etc/passwd")
    (root / "sibling").symlink_to("../root-sibling")
    (root / "via").symlink_to("sibling/x")
    (root / "dangling").symlink_to("missing")
    (root / "loop").symlink_to("loop")
    (root / "d/e/up").symlink_to("../..")
    (root / "d/self").symlink_to(".")
    (root / "leak").symlink_to("secret/key")
    (root / "leak-dir").symlink_to("secret")
    (root / "token").symlink_to(".git/config")
    (root / "image").symlink_to("logo.png")
    with pytest.raises(Rejected) as e:
        resolved(root)
    assert e.value.report is not None
    assert {f.file: f.rule for f in e.value.report.findings} == {
        "out": "symlink-outside",
        "out-abs": "symlink-outside",
        "sibling": "symlink-outside",
        "via": "symlink-outside",
        "dangling": "symlink-dangling",
        "loop": "special-file",
        "d/e/up": "symlink-cycle",
        "d/self": "symlink-cycle",
        "leak": "symlink-left-out",
        "leak-dir": "symlink-left-out",
        "token": "symlink-left-out",
        "image": "symlink-left-out",
    }


def test_a_link_into_git_is_refused_even_without_patterns(root: Path) -> None:
    put(root, "a", ".git/config", "sub/.git/config")
    (root / "token").symlink_to(".git/config")
    (root / "dir").symlink_to("sub/.git")
    found = refused(root, symlinks="resolve")
    assert found == {"token": "symlink-left-out", "dir": "symlink-left-out"}


def test_what_is_left_out_by_its_own_name_does_not_come_in_by_a_links(root: Path) -> None:
    put(root, "base/private", "base/public")
    (root / "view").symlink_to("base")
    snap = snapshot(str(root), symlinks="resolve", left_out=defaults("/base/private"))
    assert set(taken(snap)) == {"base/public", "view/public"}


def test_links_that_multiply_end_at_the_limit(root: Path) -> None:
    for i in range(12):
        (root / f"d{i}").mkdir()
        put(root, f"d{i}/f")
        for k in "ab":
            (root / f"d{i}" / k).symlink_to(f"../d{i + 1}" if i < 11 else "f")
    with pytest.raises(Rejected, match="more than 500 files"):
        snapshot(str(root), symlinks="resolve", limits=Limits(entries=500))


# --- warnings


def test_modes_that_will_not_arrive_are_warned_of(root: Path) -> None:
    put(root, "private", "set-id", "plain")
    (root / "private").chmod(0o600)
    (root / "set-id").chmod(0o4755)
    report = snapshot(str(root)).report
    assert report.ok
    assert {(f.rule, f.file) for f in report.findings} == {
        ("private-mode", "private"),
        ("set-id-mode", "set-id"),
    }
    assert all(f.severity is Severity.WARNING for f in report.findings)


def test_a_private_umask_is_one_warning(root: Path) -> None:
    put(root, "a", "b")
    for name in "ab":
        (root / name).chmod(0o600)
    (finding,) = snapshot(str(root)).report.findings
    assert (finding.rule, finding.file) == ("private-mode", "")


def test_names_that_differ_in_case_only_are_warned_of(root: Path) -> None:
    put(root, "a", "A")
    assert [f.rule for f in snapshot(str(root)).report.findings] == ["name-case"]


def test_hard_links_are_files(root: Path) -> None:
    put(root, "a")
    (root / "b").hardlink_to(root / "a")
    assert taken(snapshot(str(root))) == {"a": "x", "b": "x"}


# --- what changes under our hands


def test_a_file_that_is_written_over_is_noticed(root: Path) -> None:
    """Git has compared what was there before: what is packed would not be what it knows."""
    put(root, "a", text="12345")
    file = snapshot(str(root)).tree.files["a"]
    before = (root / "a").stat()
    with (root / "a").open("r+") as same:
        same.write("54321")
    os.utime(root / "a", ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(Unavailable, match="a: changed while"):
        b"".join(file.open())


def test_a_file_that_changes_size_is_noticed(root: Path) -> None:
    put(root, "a", "b", text="12345")
    files = snapshot(str(root)).tree.files
    (root / "a").write_text("123456")
    (root / "b").write_text("1234")
    for name in "ab":
        with pytest.raises(Unavailable, match=f"{name}: changed while") as e:
            files[name].read(limit=10)
        assert e.value.exit_code == 3


def test_a_file_that_becomes_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    put(root, "a", "d/b", "p")
    put(tmp_path, "target", "else/b")
    files = snapshot(str(root)).tree.files
    (root / "a").unlink()
    (root / "a").symlink_to("../target")
    (root / "d").rename(root / "was")
    (root / "d").symlink_to("../else")
    (root / "p").unlink()
    os.mkfifo(root / "p")
    for name in ("a", "d/b", "p"):
        with pytest.raises(Unavailable):
            files[name].read(limit=10)


def test_a_file_that_is_gone_is_not_found(root: Path) -> None:
    put(root, "a")
    files = snapshot(str(root)).tree.files
    (root / "a").unlink()
    with pytest.raises(Exception, match="no such file") as e:
        files["a"].read(limit=10)
    assert getattr(e.value, "exit_code", None) == 3


def test_what_may_not_be_read_is_denied(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "a", "d/b")
    files = snapshot(str(root)).tree.files
    real = os.open

    def denying(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith(("/a", "d")):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", denying)
    with pytest.raises(Denied, match="/a: this user may not read"):
        files["a"].read(limit=10)
    with pytest.raises(Denied, match="/d: this user may not read"):
        snapshot(str(root))


# --- size


def test_more_files_than_are_packed_are_refused_early(root: Path) -> None:
    put(root, *(f"f{i}" for i in range(11)))
    with pytest.raises(Rejected, match="more than 10 files and directories"):
        snapshot(str(root), limits=Limits(entries=10))


def test_a_tree_too_deep_is_refused_not_a_crash(root: Path) -> None:
    here = root
    for _ in range(140):
        here /= "d"
        here.mkdir()
    put(here, "f")
    assert set(refused(root).values()) == {"name"}


def test_handles_are_given_back(root: Path) -> None:
    put(root, *(f"d{i}/f" for i in range(300)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken_already = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - numbers
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(taken_already + 100, soft), hard))
    try:
        assert len(taken(snapshot(str(root)))) == 300
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
