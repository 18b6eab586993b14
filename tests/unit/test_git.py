"""What git says about a directory, whatever the repository and the caller's environment try."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ocipack.errors import Denied, Rejected, Unavailable
from ocipack.flux.origin import Checkout
from ocipack.tools import git

Run = Callable[..., str]
EMPTY = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": "/"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / "home"
    place.mkdir()
    return place


@pytest.fixture
def environment(home: Path, tmp_path: Path) -> dict[str, str]:
    return EMPTY | {"HOME": str(home), "GIT_CEILING_DIRECTORIES": str(tmp_path)}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    place = tmp_path / "repo"
    place.mkdir()
    return place


@pytest.fixture
def run(repo: Path, home: Path) -> Run:
    def run(*arguments: str, **more: str) -> str:
        said = {
            **EMPTY,
            "HOME": str(home),
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.com",
            "GIT_AUTHOR_DATE": "1600000000 +0900",
            "GIT_COMMITTER_NAME": "c",
            "GIT_COMMITTER_EMAIL": "c@example.com",
            "GIT_COMMITTER_DATE": "1700000000 -0500",
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=repo,
            env=said | more,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    return run


@pytest.fixture
def committed(repo: Path, run: Run) -> str:
    run("init", "-q", "-b", "main")
    (repo / "apps").mkdir()
    (repo / "apps/a.yaml").write_text("a")
    (repo / "b.yaml").write_text("b")
    (repo / ".gitignore").write_text("*.log\nbuild/\n")
    run("add", ".")
    run("commit", "-q", "-m", "one")
    return run("rev-parse", "HEAD")


def look(path: Path, environment: dict[str, str]) -> Checkout:
    found = git.look(str(path), environment=environment)
    assert found.checkout is not None
    assert not found.report.findings
    return found.checkout


def reason(path: Path, environment: dict[str, str]) -> str:
    found = git.look(str(path), environment=environment)
    assert found.checkout is None
    (finding,) = found.report.findings
    assert finding.rule == "no-git"
    assert found.report.ok
    return finding.message


def test_commit_time_branch_and_a_clean_tree(
    repo: Path, committed: str, environment: dict[str, str]
) -> None:
    here = look(repo, environment)
    assert here == Checkout(committed, 1700000000, branch="main")


def test_git_may_be_above_the_directory(
    repo: Path, committed: str, environment: dict[str, str]
) -> None:
    (repo / "b.yaml").write_text("changed, but not below apps")
    (repo / "apps/new.yaml").write_text("x")
    here = look(repo / "apps", environment)
    assert (here.commit, here.changed) == (committed, ("new.yaml",))


def test_every_kind_of_change_is_seen(
    repo: Path, run: Run, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    (repo / "apps/a.yaml").write_text("modified")
    (repo / "b.yaml").unlink()
    (repo / "staged").write_text("x")
    run("add", "staged")
    (repo / "new dir/é").mkdir(parents=True)
    (repo / "new dir/é/ü\n.yaml").write_text("x")
    # git ignores these, but packing would take them
    (repo / "debug.log").write_text("x")
    (repo / "build").mkdir()
    (repo / "build/out.yaml").write_text("x")
    assert look(repo, environment).changed == (
        *("apps/a.yaml", "b.yaml", "build/out.yaml", "debug.log", "new dir/é/ü\n.yaml", "staged"),
    )


def test_files_are_compared_when_whoever_packs_has_looked_at_them(
    repo: Path, committed: str, environment: dict[str, str]
) -> None:
    assert committed

    def ready() -> None:
        (repo / "b.yaml").write_text("changed at the last moment")

    found = git.look(str(repo), environment=environment, ready=ready)
    assert found.checkout is not None
    assert found.checkout.changed == ("b.yaml",)


def test_a_rename_is_two_changes(
    repo: Path, run: Run, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    run("mv", "b.yaml", "c.yaml")
    assert look(repo, environment).changed == ("b.yaml", "c.yaml")


def test_an_exact_tag_and_only_that(
    repo: Path, run: Run, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    run("tag", "v1.0.0")
    assert look(repo, environment).tag == "v1.0.0"
    run("tag", "-a", "-m", "annotated", "v1.0.1")
    assert look(repo, environment).tag == "v1.0.1"
    run("commit", "-q", "--allow-empty", "-m", "two")
    assert look(repo, environment).tag == ""


def test_a_detached_head_has_no_branch(
    repo: Path, run: Run, committed: str, environment: dict[str, str]
) -> None:
    run("checkout", "-q", "--detach")
    assert look(repo, environment) == Checkout(committed, 1700000000)


def test_a_repository_of_sha256(repo: Path, run: Run, environment: dict[str, str]) -> None:
    run("init", "-q", "-b", "main", "--object-format=sha256")
    run("commit", "-q", "--allow-empty", "-m", "one")
    here = look(repo, environment)
    assert (len(here.commit), here.algorithm) == (64, "sha256")


def test_the_remote_is_origin_or_the_only_one(
    repo: Path, run: Run, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    run("remote", "add", "upstream", "git@h.example:o/upstream.git")
    assert look(repo, environment).remote == "git@h.example:o/upstream.git"
    run("remote", "add", "fork", "git@h.example:o/fork.git")
    assert look(repo, environment).remote == ""
    run("remote", "add", "origin", "https://h.example/o/r.git")
    assert look(repo, environment).remote == "https://h.example/o/r.git"


def test_a_token_that_the_user_substitutes_does_not_get_in(
    repo: Path, run: Run, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    run("remote", "add", "origin", "https://h.example/o/r.git")
    run("config", "--global", "url.https://x:secret@h.example/.insteadOf", "https://h.example/")
    assert run("remote", "get-url", "origin").startswith("https://x:secret@")
    assert look(repo, environment).remote == "https://h.example/o/r.git"


# --- nothing to say


def test_outside_of_a_repository(repo: Path, environment: dict[str, str]) -> None:
    assert "not a git work tree" in reason(repo, environment)


def test_where_no_repository_can_be_git_is_not_run(
    repo: Path, home: Path, environment: dict[str, str]
) -> None:
    trap = fake(home, f'touch "{home}/sprung"; exit 128', environment)
    assert "not a git work tree" in reason(repo, trap)
    assert not (home / "sprung").exists()
    (repo / ".git").symlink_to("nowhere")
    with pytest.raises(Unavailable):
        git.look(str(repo), environment=trap)
    assert (home / "sprung").exists()


def test_no_question_outlives_the_look(
    repo: Path, home: Path, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    script = f'echo $$ >>"{home}/pids"; case "$*" in *is-inside*) exit 1;; esac; exec sleep 60'
    with pytest.raises(Unavailable):
        git.look(str(repo), environment=fake(home, script, environment))
    for pid in (home / "pids").read_text().split():
        assert not Path(f"/proc/{pid}").exists()


def test_a_bare_repository(repo: Path, run: Run, environment: dict[str, str]) -> None:
    run("init", "-q", "--bare")
    assert "not a git work tree" in reason(repo, environment)


def test_inside_of_git_itself(repo: Path, committed: str, environment: dict[str, str]) -> None:
    assert committed
    assert "not a git work tree" in reason(repo / ".git", environment)


def test_before_the_first_commit(repo: Path, run: Run, environment: dict[str, str]) -> None:
    run("init", "-q")
    assert "no commit" in reason(repo, environment)


def test_without_git(repo: Path, committed: str, environment: dict[str, str]) -> None:
    assert committed
    assert "not installed" in reason(repo, environment | {"PATH": "/nowhere"})


# --- trouble


def test_a_repository_of_someone_else_is_denied_with_the_way_out(
    repo: Path, committed: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert committed
    # git's own switch for its tests: it takes everything for someone else's
    monkeypatch.setitem(git._FIXED, "GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(Denied, match="belongs to someone else") as e:
        git.look(str(repo), environment=environment)
    assert "safe.directory" in e.value.hint
    assert "--revision" in e.value.hint


def test_a_broken_repository_is_not_knowing(
    repo: Path, committed: str, environment: dict[str, str]
) -> None:
    shutil.rmtree(repo / ".git/objects" / committed[:2])
    with pytest.raises(Unavailable, match="failed"):
        git.look(str(repo), environment=environment)


def fake(home: Path, script: str, environment: dict[str, str]) -> dict[str, str]:
    (home / "bin").mkdir()
    program = home / "bin/git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return environment | {"PATH": f"{home}/bin:{environment['PATH']}"}


def test_a_git_that_hangs_is_not_knowing(
    repo: Path, home: Path, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    hanging = fake(home, "exec sleep 60", environment)
    with pytest.raises(Unavailable, match=r"git rev-parse: no answer in 0\.2 s"):
        git.look(str(repo), environment=hanging, timeout=0.2)


def test_a_git_that_cannot_be_run_is_denied(
    repo: Path, home: Path, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    broken = fake(home, "true", environment)
    (home / "bin/git").write_text("#!/nonexistent/interpreter\n")
    (home / "bin/git").chmod(0o644)
    with pytest.raises(Denied, match="cannot be run"):
        git.look(str(repo), environment=broken | {"PATH": f"{home}/bin"})


# --- what must not run, nor get through


def test_nothing_that_a_repository_configures_runs(
    repo: Path, home: Path, run: Run, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    trap = home / "trap"
    trap.write_text(f'#!/bin/sh\ntouch "{home}/sprung"\n')
    trap.chmod(0o755)
    for name in ("post-index-change", "post-checkout", "reference-transaction"):
        shutil.copy(trap, repo / ".git/hooks" / name)
    for key in ("core.fsmonitor", "core.pager", "pager.status", "core.editor", "core.askPass"):
        run("config", key, str(trap))
    run("config", "alias.status", f"!{trap}")
    (repo / "b.yaml").touch()
    look(repo, environment)
    assert not (home / "sprung").exists()


def test_a_repository_that_the_tree_brings_along_runs_nothing(
    repo: Path, home: Path, run: Run, committed: str, environment: dict[str, str]
) -> None:
    assert committed
    bare, sub = repo / "deploy", repo / "deploy/apps"
    run("init", "-q", "--bare", str(bare))
    sub.mkdir()
    (sub / ".gitattributes").write_text("*.yaml filter=x\n")
    (sub / "a.yaml").write_text("a")
    here = ("-C", "deploy", "--git-dir=.", "--work-tree=.")
    run(*here, "add", "apps")
    run(*here, "commit", "-q", "-m", "one")
    with (bare / "config").open("a") as config:
        config.write(f'[core]\nbare = false\nworktree = "{bare}"\n')
        config.write(f'[filter "x"]\nclean = touch "{home}/sprung"; cat\n')
    os.utime(sub / "a.yaml", (1, 1))  # as after a checkout: git looks at the content again
    for place in (bare, sub):
        with pytest.raises(Rejected, match="can run programs"):
            git.look(str(place), environment=environment)
    assert not (home / "sprung").exists()


def test_a_file_called_head(repo: Path, committed: str, environment: dict[str, str]) -> None:
    (repo / "HEAD").write_text("no reference")
    found = look(repo, environment)
    assert (found.commit, found.changed) == (committed, ("HEAD",))


def test_the_index_is_not_written(repo: Path, committed: str, environment: dict[str, str]) -> None:
    assert committed
    os.utime(repo / "b.yaml", (1, 1))
    before = (repo / ".git/index").stat().st_mtime_ns
    assert look(repo, environment).changed == ()
    assert (repo / ".git/index").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "name",
    [
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"),
        *("GIT_CONFIG_GLOBAL", "GIT_EXTERNAL_DIFF", "GIT_TRACE", "LC_ALL", "GIT_CONFIG_COUNT"),
    ],
)
def test_what_the_caller_set_for_git_is_not_honoured(
    repo: Path, committed: str, environment: dict[str, str], name: str
) -> None:
    here = look(repo, environment | {name: "/nonexistent"})
    assert here == Checkout(committed, 1700000000, branch="main")
