"""kustomize as a subprocess: hung, killed, crashed, refused, too long; and what it may not see."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from ocipack.errors import Misuse, Rejected, Unavailable
from ocipack.k8s.kustomization.walk import Root
from ocipack.tools.kustomize import Kustomize, Program

APP = Root("app")


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Kustomize]:
    """A kustomize that is a shell script; the copy of the tree is `top`, with `app` in it."""
    (tmp_path / "top" / "app").mkdir(parents=True)
    (tmp_path / "private").mkdir()

    def make(script: str, *, timeout: float = 60, limit: int = 1 << 20) -> Kustomize:
        path = tmp_path / "kustomize"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        program = Program(str(path), is_kubectl=False)
        return Kustomize(
            program, tmp_path / "top", tmp_path / "private", timeout=timeout, limit=limit
        )

    return make


def test_output_and_arguments(fake: Callable[..., Kustomize], tmp_path: Path) -> None:
    out = fake('printf "%s\\n" "$@"').build(APP).decode().split()
    wanted = ["build", "--load-restrictor", "LoadRestrictionsNone", str(tmp_path / "top" / "app")]
    assert out == wanted


def test_the_environment_is_empty(
    fake: Callable[..., Kustomize], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_RUNNER", "hunter2")
    out = fake("/usr/bin/env; pwd").build(APP).decode()
    names = {line.partition("=")[0] for line in out.splitlines() if "=" in line}
    assert names - {"PWD", "_", "SHLVL", "OLDPWD"} == {
        *("HOME", "TMPDIR", "http_proxy", "https_proxy", "all_proxy"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
    }
    assert f"HOME={tmp_path}/private" in out
    assert "http_proxy=http://127.0.0.1:9" in out
    assert out.splitlines()[-1] == str(tmp_path / "private")


def test_one_that_hangs_is_killed_with_its_children(
    fake: Callable[..., Kustomize], tmp_path: Path
) -> None:
    kustomize = fake(f"/bin/sleep 600 & echo $! > {tmp_path}/child; exec /bin/sleep 600", timeout=1)
    with pytest.raises(Unavailable, match=r"did not finish app within 1 seconds") as caught:
        kustomize.build(APP)
    assert caught.value.exit_code == 3
    status = Path(f"/proc/{int((tmp_path / 'child').read_text())}/stat")
    assert any(_has_ended(status) for _ in range(10_000))  # a signal takes a moment to arrive


def _has_ended(status: Path) -> bool:
    try:
        return status.read_text().split()[2] in "ZX"
    except OSError:
        return True


def test_one_that_closes_its_pipes_and_stays(fake: Callable[..., Kustomize]) -> None:
    with pytest.raises(Unavailable, match="did not finish"):
        fake("exec >&- 2>&-; exec /bin/sleep 600", timeout=0.3).build(APP)


def test_one_that_leaves_a_child_with_its_pipes(fake: Callable[..., Kustomize]) -> None:
    with pytest.raises(Unavailable, match="did not finish"):
        fake("/bin/sleep 600 & exit 0", timeout=0.3).build(APP)


def test_one_that_is_killed(fake: Callable[..., Kustomize]) -> None:
    with pytest.raises(Unavailable, match="killed by SIGKILL while it built app"):
        fake("kill -9 $$").build(APP)


@pytest.mark.parametrize(
    "words", ["fatal error: out of memory", "runtime: goroutine stack exceeds"]
)
def test_one_that_crashes(fake: Callable[..., Kustomize], words: str) -> None:
    with pytest.raises(Unavailable, match=f"crashed while it built app: {words}"):
        fake(f"echo '# Warning: x' >&2; echo '{words}' >&2; exit 2").build(APP)


def test_a_no_is_passed_on_in_its_own_words(fake: Callable[..., Kustomize], tmp_path: Path) -> None:
    top = tmp_path / "top"
    script = f"echo '# Warning: old' >&2; echo 'Error: no {top}/app/x.yaml in {top}' >&2; exit 1"
    with pytest.raises(Rejected) as caught:
        fake(script).build(APP)
    assert str(caught.value) == "kustomize refuses app: no app/x.yaml in ."
    assert caught.value.exit_code == 1
    assert "kubectl kustomize" in caught.value.hint
    with pytest.raises(Rejected, match="no reason given"):
        fake("exit 1").build(APP)


def test_literals_of_secrets_are_not_repeated(fake: Callable[..., Kustomize]) -> None:
    words = "invalid literal source PASSWORD:hunter2, expected key=value"
    with pytest.raises(Rejected) as caught:
        fake(f"echo 'Error: {words}' >&2; exit 1").build(APP)
    assert str(caught.value) == "kustomize refuses app: invalid literal source ***"


def test_a_panic_is_a_no(fake: Callable[..., Kustomize]) -> None:
    script = "echo 'panic: nil pointer' >&2; echo 'goroutine 1 [running]:' >&2; exit 2"
    with pytest.raises(Rejected, match=r"refuses app: panic: nil pointer$"):
        fake(script).build(APP)


def test_endless_output(fake: Callable[..., Kustomize]) -> None:
    with pytest.raises(Rejected, match="more than 1000 bytes"):
        fake("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", limit=1000).build(APP)
    assert len(fake("printf '%01000d' 0", limit=1000).build(APP)) == 1000


def test_endless_complaints_are_cut(fake: Callable[..., Kustomize]) -> None:
    script = "i=0; while [ $i -lt 3000 ]; do echo error-error-error >&2; i=$((i+1)); done; exit 1"
    with pytest.raises(Rejected) as caught:
        fake(script).build(APP)
    assert len(str(caught.value)) < 2100


def test_a_program_that_cannot_start(tmp_path: Path) -> None:
    kustomize = Kustomize(Program("/nowhere/kustomize", is_kubectl=False), tmp_path, tmp_path)
    with pytest.raises(Unavailable, match="cannot start /nowhere/kustomize"):
        kustomize.build(APP)


def test_closing_stops_what_comes_after(fake: Callable[..., Kustomize]) -> None:
    with fake("exit 0") as kustomize:
        assert kustomize.build(APP) == b""
    with pytest.raises(Unavailable, match="interrupted"):
        kustomize.build(APP)


def test_a_generated_kustomization_is_written_elsewhere(
    fake: Callable[..., Kustomize], tmp_path: Path
) -> None:
    root = Root("app", ("app/a.yaml", "app/sub"))
    out = fake('/bin/cat "$4/kustomization.yaml"').build(root).decode()
    assert '"resources": ["../../top/app/a.yaml", "../../top/app/sub"]' in out
    assert not list((tmp_path / "top" / "app").iterdir())
    script = 'echo "Error: bad ../../top/app/a.yaml in $4" >&2; exit 1'
    with pytest.raises(Rejected, match=r"refuses app: bad app/a.yaml in app$"):
        fake(script).build(root)


def test_finding_the_program(tmp_path: Path) -> None:
    embedded = Program.find("embedded", "")
    assert embedded.is_kubectl
    assert os.access(embedded.path, os.X_OK)
    with pytest.raises(Misuse, match="unknown renderer 'helm'"):
        Program.find("helm", "")
    with pytest.raises(Misuse, match="kustomize is not installed"):
        Program.find("kustomize", str(tmp_path))
    found = tmp_path / "kustomize"
    found.write_text("#!/bin/sh\necho v9.9.9")
    found.chmod(found.stat().st_mode | stat.S_IXUSR)
    program = Program.find("kustomize", str(tmp_path))
    assert program == Program(str(found), is_kubectl=False)
    assert Kustomize(program, tmp_path, tmp_path).version() == "kustomize v9.9.9"


def test_the_version_of_the_embedded_one(tmp_path: Path) -> None:
    version = Kustomize(Program.find("embedded", ""), tmp_path, tmp_path).version()
    assert version.startswith("kubectl v1.")
    assert "(kustomize v5." in version
