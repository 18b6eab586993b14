"""Ten thousand tags take little more memory than a thousand.

The numbers are bounds, several times what was measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from registry import Registry
from shelf import image

pytestmark = pytest.mark.slow

MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(code)
"""
# a process begins with the peak of the one that it was forked from, and ours is large by now


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    """Repositories `few` and `many`, each with one image under 1,000 and 10,000 tags."""
    with Registry() as made:
        for name, count in (("few", 1_000), ("many", 10_000)):
            digest = image(made, name, "")["digest"]
            for place in (made.repository(name), made.repository(f"m/{name}")):
                place.tags = {f"v1.{number}.0": digest for number in range(count)}
                place.manifests = made.repository(name).manifests
        yield made


def used(registry: Registry, folder: Path, name: str, more: str, wanted: dict[str, int]) -> int:
    """MiB of a run over the repository `name`, which ends with these counts."""
    (folder / "mirror.yaml").write_text(
        "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\nunsigned: true\n"
        f"to: oci://{registry.name}/m\nrelocate: {{form: path}}\nsources:\n"
        f"- {{image: {registry.name}/{name}, select: {{semver: '>=1'}}{more}}}\n"
    )
    report = folder / "report.json"
    done = subprocess.run(
        [
            *(sys.executable, "-c", MEASURE, sys.executable, "-m", "ocipack", "mirror", "-q"),
            *("-f", str(folder / "mirror.yaml"), "--output", f"json={report}"),
            *("--output", f"text={folder / 'rows'}"),
        ],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(report.read_text())["counts"] == wanted
    return int(done.stdout.split()[-1])


def test_a_plan_for_ten_thousand_tags(registry: Registry, tmp_path: Path) -> None:
    """Tags that never move: nothing but planning and reporting is done."""
    few = used(registry, tmp_path, "few", ", immutableTags: 'v*'", {"skipped": 1_000})
    many = used(registry, tmp_path, "many", ", immutableTags: 'v*'", {"skipped": 10_000})

    assert many < few + 32


def test_a_run_over_ten_thousand_tags(registry: Registry, tmp_path: Path) -> None:
    """Two requests a tag."""
    few = used(registry, tmp_path, "few", "", {"skipped": 1_000})
    registry.requests.clear()
    many = used(registry, tmp_path, "many", "", {"skipped": 10_000})

    assert len(registry.lines("HEAD")) == 20_000
    assert len(registry.lines("GET .*/tags/list")) == len(registry.lines("GET")) <= 10, "pages"
    assert many < few + 48
