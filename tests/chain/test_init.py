"""`ocipack init`: a project file that the other commands can go on with."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ocipack.project.reader import read

Run = Callable[..., tuple[int, str, str]]
ROOT = Path(__file__).parents[2]


def git(directory: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments],
        cwd=directory,
        env={"PATH": "/usr/bin:/bin", "HOME": str(directory.parent)},
        capture_output=True,
        check=True,
    )


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A copy of examples/fleet without its project file, committed."""
    top = tmp_path / "fleet"
    shutil.copytree(ROOT / "examples/fleet", top)
    (top / "ocipack.yaml").unlink()
    git(top, "init", "-q", "-b", "main")
    git(top, "remote", "add", "origin", "git@git.example.com:platform/fleet.git")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "x")
    return top


def test_a_fleet_is_found_to_be_what_it_is(fleet: Path, ocipack: Run, key: str) -> None:
    code, out, err = ocipack("init", str(fleet))
    assert (code, out) == (0, f"{fleet}/ocipack.yaml\n"), err
    found = read((fleet / "ocipack.yaml").read_bytes())
    mine = read((ROOT / "examples/fleet/ocipack.yaml").read_bytes())
    assert {one.root for one in found.artifacts} == {one.root for one in mine.artifacts}
    assert found.source == "https://git.example.com/platform/fleet"
    assert "infra  OCIRepository infra: apps/bundles/data, " in err
    assert "elsewhere       " in err
    code, out, err = ocipack(
        *("ship", str(fleet), "--to", "ocidir://out", "--key", key, "--dry-run"),
        *("--output", "json"),
    )
    states = {one["name"]: one["state"] for one in json.loads(out)["artifacts"]}
    assert states == {
        "infra": "refused",  # its sealed Secret is for a person to excuse
        "tenants": "would-ship",
        "clusters-dev": "would-ship",
        "clusters-prod": "would-ship",
        "clusters-stage": "would-ship",
    }
    assert {line.partition("[")[2].partition("]")[0] for line in err.splitlines()} >= {
        "secret-ciphertext"
    }


def test_what_is_there_already_stays(fleet: Path, ocipack: Run) -> None:
    (fleet / "ocipack.yaml").write_text("mine\n")
    code, out, err = ocipack("init", str(fleet))
    assert (code, out) == (2, "")
    assert "give --force to replace it" in err
    assert (fleet / "ocipack.yaml").read_text() == "mine\n"
    assert ocipack("init", str(fleet), "--force")[0] == 0
    read((fleet / "ocipack.yaml").read_bytes())


def test_a_link_is_not_written_through(fleet: Path, ocipack: Run, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other\n")
    (fleet / "ocipack.yaml").symlink_to(tmp_path / "other")
    for more in ((), ("--force",)):
        assert ocipack("init", str(fleet), *more)[0] == 2
    assert (tmp_path / "other").read_text() == "other\n"


def test_nothing_is_written_where_there_is_nothing(ocipack: Run, tmp_path: Path) -> None:
    (tmp_path / "empty/.github").mkdir(parents=True)
    (tmp_path / "empty/.github/ci.yaml").write_text("a: b\n")
    code, _, err = ocipack("init", "empty")
    assert code == 1
    assert "no manifests" in err
    assert not (tmp_path / "empty/ocipack.yaml").exists()
    assert ocipack("init", "nowhere")[0] == 2
    (tmp_path / "a.yaml").write_text("a: b\n")
    assert ocipack("init", "a.yaml")[0] == 2


def test_here_is_the_default(hello: Path, ocipack: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hello)
    code, out, err = ocipack("init", "--output", "json")
    assert code == 0
    said = json.loads(out)
    assert (said["file"], said["artifacts"][0]["root"]) == ("ocipack.yaml", ".")
    assert "there is no remote with a network address" in err
    assert ocipack("render", ".")[0] == 0
