"""README's commands run as they stand, its links lead somewhere, generated pages are fresh."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_tour_runs(tmp_path: Path) -> None:
    assert len(BLOCKS) >= 6
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    script = "set -eux\n" + "".join(BLOCKS)
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "unchanged" in done.stderr
    assert (tmp_path / "site.tar").exists()
    assert (tmp_path / "unpacked/base/kustomization.yaml").exists()
    assert '"verified"' in (tmp_path / "verdict.json").read_text()


def test_the_demo_runs(tmp_path: Path) -> None:
    for name in ("examples", "keys-example"):
        shutil.copytree(ROOT / name, tmp_path / name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    done = subprocess.run(
        ["sh", "examples/demo.sh"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("content has the digest") == 2


def test_the_commands_of_the_fleet_run(tmp_path: Path) -> None:
    for name in ("examples", "keys-example"):
        shutil.copytree(ROOT / name, tmp_path / name)
    page = (ROOT / "examples/fleet/README.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    done = subprocess.run(
        ["sh", "-c", "set -eux\n" + "".join(blocks)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("@sha256:") == 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_generated_pages_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_locks_carry_hashes_and_no_index_address() -> None:
    for lock in ROOT.glob("requirements/*.lock"):
        text = lock.read_text()
        assert "--hash=sha256:" in text
        assert not re.search(r"--(index-url|extra-index-url|find-links)|https?://", text), lock
