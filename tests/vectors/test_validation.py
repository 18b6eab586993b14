"""What we say about 639 objects beside what a real API server said.

No accepted object may be called an error. Of the refused ones, at least 95 % are found in each
class that schemas and checks of single objects cover; what is not found is listed, so that a
change in either direction shows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from answers import Case, cases, errors

DECIDABLE = [case for case in cases() if case.decidable]
REFUSED = [case for case in DECIDABLE if case.refused]
ACCEPTED = [case for case in DECIDABLE if not case.refused]
COVERED = {"unknown-field", "type", "required", "enum", "format", "name", "size"}
LATER = {"cel", "other", "range", "reference", "semantic"}

MISSED = {
    "fmt-indexes": "counts the indexes of a list of ranges",
    "fmt-quantity-milli-memory": "compares a request with its limit",
    "null-quantity": "compares a request with its limit",
}
# the server speaks of its internal form there, or of a place beside the one that was changed
ELSEWHERE = {"enum-taint", "fmt-lb-range", "fmt-node-cidr", "name-template-label"}
SENTENCES = {"null-metadata-name", "req-metadata"}  # messages that do not begin with a path


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_no_accepted_object_is_called_an_error(case: Case) -> None:
    assert not [finding.message for finding in errors(case)]


@pytest.mark.parametrize("case", [c for c in REFUSED if c.kind in COVERED], ids=lambda c: c.id)
def test_refused_objects_are_found(case: Case) -> None:
    assert bool(errors(case)) is (case.id not in MISSED)


def share(kind: str) -> tuple[int, int]:
    """Found and all refused objects of a class."""
    refused = [case for case in REFUSED if case.kind == kind]
    return sum(bool(errors(case)) for case in refused), len(refused)


@pytest.mark.parametrize("kind", sorted(COVERED))
def test_each_class_is_covered(kind: str) -> None:
    found, refused = share(kind)
    assert refused
    assert found / refused >= 0.95


def names(path: str) -> list[str]:
    """The field names of a path; entries of lists are told apart by key there, by index here."""
    return [
        part for part in re.split(r"[.\[\]]+", re.sub(r"\[(\d+|[^\]]*=[^\]]*)\]", "", path)) if part
    ]


def near(a: list[str], b: list[str]) -> bool:
    """Whether one path is the other, or leads to it."""
    return a[: len(b)] == b or b[: len(a)] == a


@pytest.mark.parametrize(
    "case",
    [c for c in REFUSED if c.kind in COVERED and c.fields and c.id not in {*MISSED, *ELSEWHERE}],
    ids=lambda case: case.id,
)
def test_the_field_is_the_one_that_the_server_names(case: Case) -> None:
    if case.id in SENTENCES:
        return
    ours = [names(finding.message.partition(": ")[0]) for finding in errors(case)]
    assert any(near(a, names(b)) for a in ours for b in case.fields)


def table(kinds: Iterable[str]) -> str:
    """The agreement as Markdown, one line for each class."""
    accepted = Counter(case.kind for case in ACCEPTED)
    lines = ["| class | refused by the server | found | accepted, and called an error |"]
    lines.append("|---|---|---|---|")
    for kind in kinds:
        found, refused = share(kind)
        lines.append(f"| {kind} | {refused} | {found} | 0 of {accepted[kind]} |")
    return "\n".join(lines)


def test_the_documented_table_is_the_measured_one() -> None:
    text = (Path(__file__).parents[2] / "docs" / "validation-coverage.md").read_text()
    assert table(sorted({*COVERED, *LATER, "none"})) in text
    assert all(f"`{case}`" in text for case in MISSED)
