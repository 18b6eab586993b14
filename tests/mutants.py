"""Plant faults, one at a time, and see a test fail for each.

`python tests/mutants.py [NAME...]` takes the lists `mutants_NAME.py` beside it (all unless named).
Such a module has TESTS, the files that must catch its faults, quick ones first, and FAULTS: (file,
what stands there, what to put in its place). A fault is planted in a private copy of the
repository, so nothing here changes. Exits with 1 if a fault survives, does not stand in exactly
one place, or if the tests fail without any.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parents[1]
TIMEOUT = 600
"""Seconds after which a run counts as caught: a fault that makes a test hang is noticed."""


@dataclass(frozen=True)
class Fault:
    """One fault: in which list and file, what it replaces by what, which tests must notice."""

    group: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        short = " ".join(f"{self.old} → {self.new or 'nothing'}".split())
        return f"{self.group}: {self.file}: {short[:110]}"


def names() -> list[str]:
    """The lists there are."""
    return sorted(
        p.stem.removeprefix("mutants_") for p in Path(__file__).parent.glob("mutants_*.py")
    )


def faults(chosen: Sequence[str]) -> Iterator[Fault]:
    """Read the chosen lists."""
    for name in chosen:
        module = import_module(f"mutants_{name}")
        tests = tuple(
            sorted({str(p.relative_to(ROOT)) for t in module.TESTS for p in ROOT.glob(t)})
        )
        for file, old, new in module.FAULTS:
            yield Fault(name, file, old, new, tests)


def stale(fault: Fault) -> bool:
    """Whether what the fault replaces does not stand in exactly one place."""
    return (ROOT / fault.file).read_text().count(fault.old) != 1


def copy() -> Path:
    """Make a private copy of what git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    place = Path(tempfile.mkdtemp(prefix="mutants-"))
    for name in listed:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name, follow_symlinks=False)
    return place


def passes(place: Path, tests: Sequence[str]) -> bool:
    """Whether `tests` pass in the copy at `place`."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def caught(place: Path, fault: Fault) -> bool:
    """Plant `fault` in the copy, run its tests, take it out again."""
    file = place / fault.file
    text = file.read_text()
    try:
        file.write_text(text.replace(fault.old, fault.new))
        return not passes(place, fault.tests)
    finally:
        file.write_text(text)


def main() -> int:
    """Plant the chosen faults."""
    parser = argparse.ArgumentParser(description="Plant faults and see a test fail for each.")
    parser.add_argument(
        "names", nargs="*", default=names(), metavar="NAME", help=", ".join(names())
    )
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    wanted = list(faults(chosen.names))
    bad = [f"stale: {fault}" for fault in wanted if stale(fault)]
    places: Queue[Path] = Queue()
    for _ in range(chosen.jobs):
        places.put(copy())
    try:
        first = places.get()
        groups = sorted({fault.tests for fault in wanted})
        failing = (tests for tests in groups if not passes(first, tests))
        bad += [f"fails without any fault: {' '.join(tests)}" for tests in failing]
        places.put(first)

        def judge(fault: Fault) -> str:
            place = places.get()
            try:
                word = "caught" if caught(place, fault) else "SURVIVED"
            finally:
                places.put(place)
            print(f"{word:<9} {fault}", flush=True)
            return "" if word == "caught" else f"survived: {fault}"

        if not bad:
            with ThreadPoolExecutor(chosen.jobs) as pool:
                bad += filter(None, pool.map(judge, wanted))
    finally:
        while not places.empty():
            shutil.rmtree(places.get())
    print(f"{len(wanted)} faults, {len(bad)} problems")
    print("\n".join(bad))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
