"""What is hostile or just large costs bounded time and memory, and ends with the right code.

The numbers are bounds, several times what was measured; minutes or gigabytes fail here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{0}}}\n"
BODY = "data:\n" + "".join(f"  key-{n}: some value that is not very long\n" for n in range(16))


class Ended(NamedTuple):
    code: int
    objects: int
    rules: set[str]
    mib: int
    cpu: float


def ended(path: Path, *arguments: str, stdin: bool = False) -> Ended:
    """Run the command in a process of its own; memory is that of its largest process."""
    report = path.with_suffix(".report")
    place = "-" if stdin else str(path)
    command = [sys.executable, "-m", "ocipack", "validate", place, *arguments, "-q"]
    with path.open("rb") if stdin and path.is_file() else open(os.devnull, "rb") as source:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, *command, "--output", f"json={report}"],
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    mib, cpu = json.loads(done.stdout)
    result = json.loads(report.read_text())
    rules = {one["rule"] for one in result["findings"]}
    return Ended(done.returncode, result["objects"], rules, mib, cpu)


MEASURE = """
import json, resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_maxrss // 1024, used.ru_utime + used.ru_stime]))
sys.exit(code)
"""
# a process begins with the peak of the one that it was forked from, and ours is large by now


def stream(path: Path, documents: int) -> Path:
    with path.open("w") as file:
        for number in range(documents):
            file.write(HEAD.format(number) + BODY + "---\n")
    return path


@pytest.mark.parametrize("stdin", [True, False])
def test_many_documents_take_no_more_memory_than_few(tmp_path: Path, stdin: bool) -> None:  # noqa: FBT001 - a parameter
    few = ended(stream(tmp_path / "few.yaml", 1_000), stdin=stdin)
    many = ended(stream(tmp_path / "many.yaml", 10_000), stdin=stdin)
    assert (few.code, many.code, many.objects) == (0, 0, 10_000)
    assert many.mib < few.mib + 24


def test_fifty_thousand_documents(tmp_path: Path) -> None:
    path = stream(tmp_path / "many.yaml", 50_000)
    assert path.stat().st_size > 35_000_000
    found = ended(path, stdin=True)
    assert (found.code, found.objects) == (0, 50_000)
    assert found.mib < 160
    assert found.cpu < 120


def test_a_list_of_many_objects_takes_linear_time(tmp_path: Path) -> None:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x" * 400}}
    items = [item | {"metadata": {"name": f"a{n}"}} for n in range(20_000)]
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert path.stat().st_size > 9_000_000
    found = ended(path)
    assert (found.code, found.objects) == (0, 20_000)
    assert found.mib < 400
    assert found.cpu < 30


def test_a_document_of_a_hundred_megabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("w") as file:
        file.write(HEAD.format(1) + "data:\n")
        for number in range(1_600_000):
            file.write(f"  key-{number:07}: {'x' * 48}\n")
    assert path.stat().st_size > 100_000_000
    found = ended(path)
    assert (found.code, found.rules) == (1, {"yaml-unreadable"})
    assert found.mib < 300
    assert found.cpu < 30


def layers(count: int, indent: str = "") -> str:
    """Each is nine times the one before."""
    nine = [", ".join([f"*a{n - 1}"] * 9) for n in range(1, count + 1)]
    return "".join(f"{indent}a{n}: &a{n} [{one}]\n" for n, one in enumerate(nine, 1))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("deep", "a: " + "[" * 100_000),
        ("deep-block", "".join("  " * n + f"a{n}:\n" for n in range(3_000))),
        ("itself", "a: &a [*a]\n"),
        ("bomb", "a0: &a0 [x]\n" + layers(11)),
        ("wide", "a: {" + "[" * 50_000),
    ],
)
def test_bombs(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.yaml"
    path.write_text(HEAD.format(1) + text)
    found = ended(path)
    assert (found.code, found.rules) == (1, {"yaml-unreadable"})
    assert found.mib < 200
    assert found.cpu < 20


def test_many_small_bombs_share_a_budget(tmp_path: Path) -> None:
    bomb = "spec:\n  a0: &a0 [x]\n" + layers(5, "  ")
    one = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {{name: a{0}}}\n" + bomb
    path = tmp_path / "bombs.yaml"
    path.write_text("---\n".join(one.format(n) for n in range(100_000)))
    assert path.stat().st_size > 20_000_000
    found = ended(path)
    assert found.code == 1
    assert found.mib < 300
    assert found.cpu < 120


def test_a_tree_of_links_and_pipes_ends(tmp_path: Path) -> None:
    top = tmp_path / "tree"
    here = top
    for number in range(60):
        here = here / f"d{number}"
        here.mkdir(parents=True)
        (here / "up").symlink_to(top)
        (here / "self").symlink_to("self")
        os.mkfifo(here / "x.yaml")
    (here / "a.yaml").write_text(HEAD.format(1))
    found = ended(top)
    assert (found.code, found.objects) == (1, 1)
    assert found.rules == {"special-file", "file-unreadable"}
