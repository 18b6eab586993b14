"""The page beside this file says which test holds what; here the page is held to that."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (Path(__file__).parent / "README.md").read_text()

REGISTRIES = [
    *["Docker Hub", "Amazon ECR", "GHCR", "Azure ACR", "Quay", "GitLab", "Harbor", "Artifactory"],
    *["Nexus", "Google GAR, GCR", "zot", "distribution", "Pull-through caches"],
]
TOPICS = [str(number) for number in range(1, 18)]
PARTS = {"18": "b", "26": "bcde", "27": "bcd"}
FAILURES = [
    row
    for number in map(str, range(1, 39))
    for row in (number, *(f"{number}{part}" for part in PARTS.get(number, "")))
]
SECTIONS = {
    "By registry": REGISTRIES,
    "By topic": TOPICS,
    "By failure that users of other tools met": FAILURES,
}


def rows(section: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


FILES = {name: TESTS / path for name, path in rows("Names of files")}


@cache
def functions(path: Path) -> frozenset[str]:
    """The tests that a file defines."""
    found = ast.parse(path.read_text()).body
    return frozenset(one.name for one in found if isinstance(one, ast.FunctionDef))


@pytest.mark.parametrize("section", SECTIONS)
def test_every_row_is_there_in_its_order_and_says_what_we_do(section: str) -> None:
    table = rows(section)
    assert list(dict.fromkeys(row for row, *_ in table)) == SECTIONS[section]
    for row, what, do, tests in table:
        assert all((what, do, tests)), row


@pytest.mark.parametrize("section", SECTIONS)
def test_every_test_that_is_named_exists(section: str) -> None:
    missing: dict[str, list[str]] = defaultdict(list)
    for row, _, _, tests in rows(section):
        named = re.findall(r"`([a-z-]+)::([a-z0-9_]+)`", tests)
        assert len(named) == tests.count("`") / 2, f"{row}: {tests}"
        for name, test in named:
            if f"test_{test}" not in functions(FILES[name]):
                missing[row].append(f"{name}::{test}")
    assert not missing


def test_no_file_is_named_for_nothing() -> None:
    used = set(re.findall(r"`([a-z-]+)::", PAGE))
    assert used == set(FILES)
