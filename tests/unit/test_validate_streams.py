"""Streams are cut as the whole text is, and unportable text is found where it stands."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from ocipack.k8s.yaml import limits
from ocipack.k8s.yaml.pieces import Piece, cut
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.k8s.yaml.unportable import folded, unportable
from ocipack.k8s.yaml.values import Reader

KUBECTL, FLUX = Dialect.KUBECTL, Dialect.FLUX
SEPARATOR = {
    KUBECTL: re.compile(rb"^---([^\n]*)\n?", re.MULTILINE),
    FLUX: re.compile(rb"(?<=\n)---([^\n]*)\n?"),
}
TOKENS = st.sampled_from([b"\n", b"---", b"-", b"a", b" ", b"#", b"\r", b"---\n", b"b: c\n"])


def at_once(data: bytes, dialect: Dialect) -> list[tuple[bytes, int, int]]:
    """What the separators of the whole text make of it: chunk, line, line of a bad separator."""
    start, line, found = 0, 1, []
    for match in SEPARATOR[dialect].finditer(data):
        chunk = data[start : match.start()]
        end = line + chunk.count(b"\n")
        behind = match[1].strip()
        bad = bool(behind) and not behind.startswith(b"#")
        found.append((chunk, line, end if bad else 0))
        start, line = match.end(), end + 1
    return [*found, (data[start:], line, 0)]


@given(
    data=st.lists(TOKENS, max_size=20).map(b"".join),
    cuts=st.lists(st.integers(0, 80), max_size=12),
    dialect=st.sampled_from(Dialect),
)
def test_where_the_blocks_end_does_not_matter(
    data: bytes, cuts: list[int], dialect: Dialect
) -> None:
    edges = sorted({0, len(data), *(c for c in cuts if c < len(data))})
    blocks = [data[a:b] for a, b in pairwise(edges)]
    found = [(piece.chunk, piece.line, piece.fault_line) for piece in cut(blocks, dialect)]
    assert found == at_once(data, dialect)


def test_utf_16_is_never_cut() -> None:
    data = "a: 1\n---\nb: 2\n".encode("utf-16")
    assert list(cut([data[:1], data[1:9], data[9:]], FLUX)) == [Piece(data, 1)]


def test_a_document_that_is_too_large_is_named_and_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PIECE", 1000)
    large = [b"a: 1\n---\n", *[b"x: " + b"y" * 60_000 + b"\n"] * 40, b"---\nb: 2\n"]
    first, second, third = cut(large, FLUX)
    assert first == Piece(b"a: 1\n", 1)
    assert (second.chunk, second.line > 2) == (b"", True)
    assert second.fault == "a document of more than 1000 bytes"
    assert third == Piece(b"b: 2\n", 44)


def test_a_line_without_end_behind_a_separator_is_a_fault_and_not_waited_for() -> None:
    pieces = list(cut([b"a: 1\n---x", *[b"y" * 1000] * 10], FLUX))
    assert pieces[0].fault.startswith("not a document separator: '---xy")
    assert len(pieces) == 2


def odd(text: str, dialect: Dialect = FLUX) -> bool:
    reader = Reader(dialect, strict=False)
    before = reader.odd
    reader.read(text)
    return reader.odd != before


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: yes", True),
        ("a: 'yes'", False),
        ("y: 1", True),
        ("a: {b: [Off]}", True),
        ("a: true", False),
        ("a: 2024-01-02", True),
        ("a: 2024-13-02", False),
        ("a: 2024-01-02T00:00:00Z", False),
        ("a: 0644", False),
        ("a: noon", False),
    ],
)
def test_reading_notices_each_time_what_the_other_reader_takes_otherwise(
    text: str, *, expected: bool, dialect: Dialect
) -> None:
    for _ in range(3):
        assert odd(text, dialect) is expected


def found(text: str) -> list[tuple[str, int, int, str]]:
    return [(u.pointer, u.line, u.column, u.message) for u in unportable(text.encode())]


def test_unportable_text_is_found_where_it_stands() -> None:
    text = "a:\n  b: [x, yes]\n  on: 1\n  d: 2024-1-2\n  e: 'no'\n"
    assert found(text) == [
        ("/a/b/1", 2, 10, "yes is true to kubectl and text to kustomize"),
        ("/a/on", 3, 3, "on is true to kubectl and text to kustomize"),
        ("/a/d", 4, 6, "2024-1-2 is text to kubectl and text (2024-01-02T00:00:00Z) to kustomize"),
    ]


def test_annotations_keep_dates_and_are_made_text_by_kustomize_alone() -> None:
    text = (
        "metadata:\n  annotations:\n    a: 2024-01-02\n    b: 5\n    c: yes\n    d: ~\n    e: x\n"
    )
    assert [(pointer.rpartition("/")[2], message) for pointer, _, _, message in found(text)] == [
        ("b", "kubectl refuses the annotation 5, which is a number; kustomize makes it text"),
        ("c", "kubectl refuses the annotation yes, which is true; kustomize makes it text"),
        ("d", "kubectl refuses the annotation ~, which is null; kustomize makes it text"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: >\n  x\n    y\n  z\n", True),
        ("a: >-\n  x\n  y\n", False),
        ("- >+ # why\n  x\n   y\n", True),
        ("a: >+\n  x\n\n", True),
        ("a: >\n  x\n\n", False),
        ("a: &b >\n  x\n   y\n", True),
        ("a: |\n  x\n   y\n", False),
        ("a: 'b > c'\n", False),
    ],
)
def test_folded_text_with_deeper_lines(text: str, *, expected: bool) -> None:
    assert bool(found(text)) is expected
    assert not expected or folded(text.encode())
