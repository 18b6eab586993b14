"""Runs that are killed, interrupted, crowded or large: never a tag on something half-made."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL

import pytest

Run = Callable[..., tuple[int, str, str]]

OCIPACK = [sys.executable, "-m", "ocipack"]
REF_NAME = "org.opencontainers.image.ref.name"


def at_once(commands: Iterable[tuple[str, ...]]) -> list[tuple[int, str]]:
    """Run all commands at the same time; their exit codes and what they said."""

    def one(arguments: tuple[str, ...]) -> tuple[int, str]:
        done = subprocess.run([*OCIPACK, *arguments], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, commands))


def tags(site: Path) -> set[str]:
    """The names that a person would use: no signatures, no listings of referrers."""
    if not (site / "index.json").exists():
        return set()
    entries = json.loads((site / "index.json").read_text())["manifests"]
    names = {entry.get("annotations", {}).get(REF_NAME, "sha256-") for entry in entries}
    return {name for name in names if not name.startswith("sha256-")}


def assert_sound(ocipack: Run, site: Path, public: str) -> set[str]:
    """Every tag names something complete and signed (verify hashes the whole closure)."""
    found = tags(site)
    for name in found:
        code, _, err = ocipack("verify", f"ocidir://{site}:{name}", "--key", public)
        assert code == 0, f"{name}: {err}"
    return found


def test_sigkill_at_twenty_moments(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    chance = random.Random(20)
    site = tmp_path / "site"
    ship = ("ship", str(hello), "--to", f"ocidir://{site}:v1", "--key", key)
    assert ocipack(*ship)[0] == 0
    began = time.monotonic()
    (hello / "settings.yaml").write_text((hello / "settings.yaml").read_text() + "# again\n")
    assert subprocess.run([*OCIPACK, *ship], capture_output=True, check=False).returncode == 0
    whole = time.monotonic() - began
    died = turn = 0
    while died < 20:
        turn += 1
        assert turn < 100, f"only {died} of {turn} runs were killed before they had ended"
        (hello / "settings.yaml").write_text(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello-settings, namespace: hello}\n"
            f"data: {{turn: 'number {turn}'}}\n"
        )
        with subprocess.Popen([*OCIPACK, *ship], stdout=DEVNULL, stderr=DEVNULL) as process:
            try:
                process.wait(chance.uniform(0, whole))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                died += 1
        assert "v1" in assert_sound(ocipack, site, public)
        code, _, err = ocipack(*ship)
        assert code == 0, err
        assert_sound(ocipack, site, public)
    assert not list(site.rglob("*.partial*"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing_half_made(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path, number: int, code: int
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(
        [*OCIPACK, "ship", str(hello), "--to", "ocidir://site:v1", "--key", key],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = "start"
        while line and not line.startswith("pack"):
            line = process.stderr.readline()
        process.send_signal(number)
        process.stderr.read()
    assert process.returncode in {code, 0}
    # tempfile itself writes and removes a file to see whether it can; only our directories count
    assert [entry for entry in scratch.iterdir() if entry.is_dir()] == []
    assert_sound(ocipack, tmp_path / "site", public)


def test_eight_at_once_keep_eight_tags(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    runs = []
    for number in range(8):
        tree = Path(shutil.copytree(hello, tmp_path / f"tree-{number}"))
        (tree / "settings.yaml").write_text((tree / "settings.yaml").read_text() + f"# {number}\n")
        runs.append(("ship", str(tree), "--to", f"ocidir://site:v{number}", "--key", key))
    ended = at_once(runs)
    assert [code for code, _ in ended] == [0] * 8, ended
    found = assert_sound(ocipack, tmp_path / "site", public)
    assert {f"v{number}" for number in range(8)} <= found
    assert len(found) == 16


def test_of_eight_that_want_one_tag_for_different_content_one_wins(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    runs = []
    for number in range(8):
        tree = Path(shutil.copytree(hello, tmp_path / f"tree-{number}"))
        (tree / "settings.yaml").write_text((tree / "settings.yaml").read_text() + f"# {number}\n")
        runs.append(("ship", str(tree), "--to", "ocidir://site:v1", "--key", key))
    ended = at_once(runs)
    codes = sorted(code for code, _ in ended)
    assert codes[0] == 0
    assert set(codes) <= {0, 1}, ended
    assert_sound(ocipack, tmp_path / "site", public)
    for code, err in ended:
        assert code == 0 or "moved" in err or "points at" in err or "is at" in err


def test_of_eight_that_want_one_tag_for_the_same_content_none_is_refused(
    ocipack: Run, hello: Path, key: str, public: str, tmp_path: Path
) -> None:
    ended = at_once([("ship", str(hello), "--to", "ocidir://site:v1", "--key", key)] * 8)
    assert [code for code, _ in ended] == [0] * 8, ended
    assert_sound(ocipack, tmp_path / "site", public)


SETTINGS = [
    {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "umask": "0077"},
    {"TZ": "America/New_York", "LC_ALL": "C.UTF-8", "umask": "0002"},
]


def test_two_clones_under_other_settings_are_one_digest(
    shop: Path, key: str, tmp_path: Path
) -> None:
    def git(*arguments: str, **settings: str) -> None:
        subprocess.run(
            ["git", *arguments], check=True, capture_output=True, env={**os.environ, **settings}
        )

    git("-C", str(shop), "init", "-q", "-b", "main")
    git("-C", str(shop), "add", ".")
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com"}
    who |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}
    git("-C", str(shop), "commit", "-q", "-m", "x", **who)
    places = []
    for number, settings in enumerate(SETTINGS):
        clone, umask = tmp_path / f"clone-{number}", int(settings["umask"], 8)
        before = os.umask(umask)
        git("clone", "-q", str(shop), str(clone))
        os.umask(before)
        for path in clone.rglob("*"):
            os.utime(path, (10**9 + number, 10**9 + number))
        done = subprocess.run(
            [
                *(*OCIPACK, "ship", str(clone), "--to", f"ocidir://{tmp_path}/site:v1"),
                *("--key", key, "--source", "https://git.example.com/shop"),
            ],
            env={**os.environ, **settings},
            umask=umask,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert ("unchanged" in done.stderr) == (number > 0)
        places.append(done.stdout)
    assert places[0] == places[1]


def peak(*arguments: str) -> int:
    """Run a command in a process of its own and return its peak memory in MiB."""
    script = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *OCIPACK, *arguments, "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
def test_memory_is_flat_with_size(ocipack: Run, key: str, public: str, tmp_path: Path) -> None:
    """Packing, signing, verifying and pulling 400 MiB take no more memory than 40 MiB do."""
    peaks = {}
    for mebibytes in (40, 400):
        tree = tmp_path / f"tree-{mebibytes}"
        tree.mkdir()
        block = random.Random(1).randbytes(1 << 20)
        for number in range(4):
            with (tree / f"{number}.bin").open("wb") as file:
                for _ in range(mebibytes // 4):
                    file.write(block)
        site = f"ocidir://{tmp_path}/site-{mebibytes}"
        place = ocipack("pack", str(tree), "--to", site)[1].strip()
        shutil.rmtree(tmp_path / f"site-{mebibytes}")
        peaks[mebibytes] = {
            "pack": peak("pack", str(tree), "--to", site),
            "sign": peak("sign", place, "--key", key),
            "verify": peak("verify", place, "--key", public),
            "pull": peak("pull", place, "--key", public, "-o", str(tmp_path / f"out-{mebibytes}")),
        }
        shutil.rmtree(tree)
        shutil.rmtree(tmp_path / f"out-{mebibytes}")
    print(peaks)
    for name, small in peaks[40].items():
        assert peaks[400][name] <= small + 8, peaks
