"""Compare `ocipack validate` with kubeconform, on the same schemas, offline; gates nothing.

    python benchmarks/validate.py [--rounds N] [--stream MIB]

1. verdicts on 2,000 generated documents, a fifth of them broken: the same, or why not
2. wall and processor time: 500 files with 2,000 documents, cold, and with a cache
3. standard input, of the same documents and of many mebibytes: time and memory
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import manifests
from interop.peers import find
from measure import Bench, Command, table

_LOCATION = "{{.ResourceKind}}{{.KindSuffix}}.json"
Key = tuple[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=11, help="default: %(default)s")
    parser.add_argument("--stream", type=int, default=40, metavar="MIB", help="default: 40")
    asked = parser.parse_args()
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    print(f"{now}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", end=", ")
    print(f"Python {platform.python_version()}")
    with tempfile.TemporaryDirectory(prefix="ocipack-bench-") as folder:
        place = _Place(Path(folder).resolve())
        works = (
            place.verdicts(),
            place.files(asked.rounds),
            place.streams(max(asked.rounds // 3, 2), asked.stream),
        )
        for work in works:
            for line in work:
                print(line, flush=True)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


class _Place:
    """A directory with everything that is compared."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        manifests.write_schemas(folder / "schemas")
        (folder / "crd.yaml").write_text(manifests.CRD)
        manifests.write(folder / "good")
        manifests.write(folder / "bad", manifests.spoiled)
        self.ours = [
            *(str(Path(sys.executable).parent / "ocipack"), "validate", "--quiet"),
            *("--crd", str(folder / "crd.yaml")),
        ]
        location = f"{folder}/schemas/{_LOCATION}"
        self.peer = [find("kubeconform"), "-strict", "-schema-location", location]

    def verdicts(self) -> Iterator[str]:
        """Compare what both say of each document."""
        yield "\n## verdicts\n"
        theirs = self._theirs()
        ours, rules = self._ours()
        names: dict[Key, str] = {}
        dice = Random(7)  # noqa: S311 - reproducible noise
        for number in range(manifests.FILES * manifests.EACH):
            what, _ = manifests.fault(number, manifests.document(number, dice))
            names[f"f{number // manifests.EACH:04}.yaml", str(number)] = what
        tally = Counter(
            (what, key in theirs, key in ours, ", ".join(sorted(rules.get(key, ()))))
            for key, what in names.items()
        )
        same = sum(n for (_, a, b, _), n in tally.items() if a == b)
        yield f"same verdict on {same:,} of {len(names):,} documents\n"
        yield "| what is wrong | kubeconform | ocipack | documents | rules |"
        yield "|---|---|---|---|---|"
        for (what, a, b, why), count in sorted(tally.items()):
            said = ["refuses" if refused else "passes" for refused in (a, b)]
            yield f"| {what or 'nothing'} | {said[0]} | {said[1]} | {count} | {why} |"

    def _theirs(self) -> set[Key]:
        command = [*self.peer, "-output", "json", str(self.folder / "bad")]
        run = subprocess.run(command, capture_output=True, check=False)
        refused: set[Key] = set()
        for one in json.loads(run.stdout)["resources"]:
            file = Path(one["filename"]).name
            number = _number(one.get("name") or "") or self._unnamed(file, one)
            refused.add((file, number))
        return refused

    def _unnamed(self, file: str, one: dict[str, str]) -> str:
        """The document that the peer does not name: the one that is broken in that file."""
        first = int(file[1:5]) * manifests.EACH
        broken = [n for n in range(first, first + manifests.EACH) if n % 5 == 0]
        return str(broken[0]) if broken else f"? {one}"

    def _ours(self) -> tuple[set[Key], dict[Key, set[str]]]:
        command = [*self.ours, "--output", "json", str(self.folder / "bad")]
        run = subprocess.run(command, capture_output=True, check=False)
        refused: set[Key] = set()
        rules: dict[Key, set[str]] = {}
        for one in json.loads(run.stdout)["findings"]:
            if one["severity"] != "error":
                continue
            file = one["file"]
            lines = (self.folder / "bad" / file).read_text().split("\n")[: one["line"]]
            place = sum(line.rstrip() == "---" for line in lines)
            key = file, str(int(file[1:5]) * manifests.EACH + place)
            refused.add(key)
            rules.setdefault(key, set()).add(one["rule"])
        return refused, rules

    def files(self, rounds: int) -> Iterator[str]:
        """Time 2,000 documents in 500 files."""
        yield "\n## 2,000 documents in 500 files\n"
        good = str(self.folder / "good")
        warm = ["--cache", str(self.folder / "cache")]
        contestants: dict[str, Command] = {
            "kubeconform": [*self.peer, good],
            "kubeconform -n 2": [*self.peer, "-n", "2", good],
            "ocipack": [*self.ours, good],
            "ocipack --jobs 1": [*self.ours, "--jobs", "1", good],
            "ocipack --cache, unchanged": [*self.ours, *warm, good],
            "python -c 'import click'": [sys.executable, "-c", "import click"],
        }
        bench = Bench(self.folder, os.environ, rounds)
        yield from table(bench.compare(contestants), "kubeconform")

    def streams(self, rounds: int, size: int) -> Iterator[str]:
        """Time standard input."""
        for mib in (1, size):
            stream = self.folder / f"{mib}.yaml"
            manifests.write_stream(stream, mib * 1024 * 1024)
            yield f"\n## standard input of {mib} MiB\n"
            contestants: dict[str, Command] = {
                "kubeconform": _piped([*self.peer, "-"], stream),
                "ocipack": _piped([*self.ours, "-"], stream),
                "ocipack --jobs 1": _piped([*self.ours, "--jobs", "1", "-"], stream),
            }
            bench = Bench(self.folder, os.environ, rounds)
            try:
                yield from table(bench.compare(contestants), "kubeconform")
            except RuntimeError as e:  # the peer's verdict on large streams is not always right
                yield f"a contestant failed: {str(e).splitlines()[0]}"
                del contestants["kubeconform"]
                yield from table(bench.compare(contestants), "ocipack")
            for name, command in contestants.items():
                yield f"{name}: at most {_memory(command)} MiB resident in one process"


def _piped(command: Command, stream: Path) -> list[str]:
    quoted = " ".join(f"'{part}'" for part in command)
    return ["sh", "-c", f"exec {quoted} < '{stream}'"]


def _memory(command: Command) -> int:
    """The most memory that one process of a run had, in MiB."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], capture_output=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    )
    return int(run.stdout) // 1024


def _number(name: str) -> str:
    return name.rpartition("-")[2] if name.startswith("app-") else name.removeprefix("App_")


if __name__ == "__main__":
    main()
