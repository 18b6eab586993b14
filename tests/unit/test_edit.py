"""Single scalars of a file change, and not one byte besides."""

from __future__ import annotations

import pytest

from ocipack.errors import Misuse
from ocipack.k8s import edit
from ocipack.k8s.edit import MISSING, Edit, Path, Uneditable
from ocipack.k8s.yaml.events import YamlError

TAIL = "@sha256:0011"


def appended(data: bytes, path: Path, document: int = 0) -> bytes:
    sheets = {sheet.document.index: sheet for sheet in edit.sheets(data)}
    return edit.apply(data, [edit.append(sheets[document], path, TAIL)])


A: Path = ("a",)


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        (b"a: x:1\n", A, b"a: x:1@sha256:0011\n"),
        (b"a: x:1", A, b"a: x:1@sha256:0011"),
        (b"a:   x:1   # why\n", A, b"a:   x:1@sha256:0011   # why\n"),
        (b"a: 'x:1'\n", A, b"a: 'x:1@sha256:0011'\n"),
        (b'a: "x:1"  \n', A, b'a: "x:1@sha256:0011"  \n'),
        (b"a: x:1\r\nb: 2\r\n", A, b"a: x:1@sha256:0011\r\nb: 2\r\n"),
        (b"\xef\xbb\xbfa: x:1\n", A, b"\xef\xbb\xbfa: x:1@sha256:0011\n"),
        ("\ufeff# ä€𐍈\nü: é\na: x:1 # ö\n".encode(), A, None),
        (b"{a: x:1, b: [1]}", A, b"{a: x:1@sha256:0011, b: [1]}"),
        (b'{"a":"x:1"}', A, b'{"a":"x:1@sha256:0011"}'),
        (b"b: [q, x:1]\n", ("b", "1"), b"b: [q, x:1@sha256:0011]\n"),
        (b"b:\n- q\n- x:1\n", ("b", "1"), b"b:\n- q\n- x:1@sha256:0011\n"),
        (b"a: &i x:1\n", A, b"a: &i x:1@sha256:0011\n"),
        (b"a: &i  'x:1'\n", A, b"a: &i  'x:1@sha256:0011'\n"),
        (b"a: !!str x:1\n", A, b"a: !!str x:1@sha256:0011\n"),
        (b"a: !!str &i x:1\n", A, b"a: !!str &i x:1@sha256:0011\n"),
        (b"a: &i !!str x:1\n", A, b"a: &i !!str x:1@sha256:0011\n"),
        (b"a:\n  x:1\n\n\nb: 1\n", A, b"a:\n  x:1@sha256:0011\n\n\nb: 1\n"),
        (b"? a\n: x:1\n", A, b"? a\n: x:1@sha256:0011\n"),
        (b'"a": x:1\n', A, b'"a": x:1@sha256:0011\n'),
        (b"a: 706798e8\n", A, b'a: "706798e8@sha256:0011"\n'),
        (b"a: 1.10 # keep\n", A, b'a: "1.10@sha256:0011" # keep\n'),
        (b"a: on\n", A, b'a: "on@sha256:0011"\n'),
        (b"a: 2024-01-01\n", A, b'a: "2024-01-01@sha256:0011"\n'),
        (b"a: 0x1F\n", A, b'a: "0x1F@sha256:0011"\n'),
        (b"a: '706798e8'\n", A, b"a: '706798e8@sha256:0011'\n"),
    ],
)
def test_append_changes_the_scalar_alone(before: bytes, path: Path, after: bytes | None) -> None:
    expected = after if after is not None else before.replace(b"x:1", b"x:1@sha256:0011")
    assert appended(before, path) == expected
    (sheet,) = edit.sheets(expected)
    now = edit.value_at(sheet.document.value, path)
    assert isinstance(now, str)
    assert now.endswith(TAIL)


def test_the_right_document_of_several_changes() -> None:
    data = "# é\r\na: x:1\r\n---\r\n# only a comment\r\n---\r\nb: ö\r\na: x:1\r\n---\r\na: x:1\r\n"
    raw = data.encode()
    found = [sheet.document.index for sheet in edit.sheets(raw)]
    assert len(found) == 3
    changed = appended(raw, ("a",), found[1])
    head, _, tail = changed.partition(b"@sha256:0011")
    assert head + tail == raw
    assert head.endswith("b: ö\r\na: x:1".encode())


@pytest.mark.parametrize(
    ("data", "path", "why"),
    [
        (b"a: |\n  x:1\n", A, "block"),
        (b"a: >-\n  x:1\n", A, "block"),
        (b"a: x\n  y\n", A, "several lines"),
        (b'a: "x\n  y"\n', A, "several lines"),
        (b"b: &i x:1\na: *i\n", A, "alias"),
        (b"a: {b: 1}\n", A, "no scalar"),
        (b"b: 1\n", A, "no scalar"),
        (b"<<: {a: x:1}\n", A, "no scalar"),
    ],
)
def test_what_cannot_be_changed_in_place_is_refused(data: bytes, path: Path, why: str) -> None:
    with pytest.raises(Uneditable, match=why):
        appended(data, path)


@pytest.mark.parametrize("tail", ["'", '"', "\\", " x", "\n", "é", "\u2028"])
def test_what_would_need_escapes_is_never_written(tail: str) -> None:
    (sheet,) = edit.sheets(b"a: x:1\n")
    with pytest.raises(Uneditable, match="ASCII"):
        edit.append(sheet, A, tail)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"r:\n  tag: v1\n", b"r:\n  tag: v1\n  digest: sha256:00\n"),
        (b"r:\n  tag: v1", b"r:\n  tag: v1\n  digest: sha256:00"),
        (b"r:\r\n  tag: v1", b"r:\r\n  tag: v1\r\n  digest: sha256:00"),
        (
            b"r:\r\n    tag: 'v1' # x\r\n    b: 1\r\n",
            b"r:\r\n    tag: 'v1' # x\r\n    digest: sha256:00\r\n    b: 1\r\n",
        ),
        (b"r: {tag: v1}\n", b"r: {tag: v1, digest: sha256:00}\n"),
        (b"r: {tag: v1, b: 1}\n", b"r: {tag: v1, digest: sha256:00, b: 1}\n"),
        (b'{"r":{"tag":"v1"}}', b'{"r":{"tag":"v1", "digest": "sha256:00"}}'),
        (
            b"r:\n  b: 1\n  tag: v1\n\n\nc: 1\n",
            b"r:\n  b: 1\n  tag: v1\n  digest: sha256:00\n\n\nc: 1\n",
        ),
    ],
)
def test_a_key_is_added_beside_another(before: bytes, after: bytes) -> None:
    (sheet,) = edit.sheets(before)
    made = edit.apply(before, [edit.follow(sheet, ("r", "tag"), "digest", "sha256:00")])
    assert made == after
    path: Path = ("r", "digest")
    intended = {(sheet.document.index, path): "sha256:00"}
    assert edit.strays([sheet], made, intended) == []
    assert edit.strays([sheet], made, {}) == [(sheet.document.index, path)]


def test_a_key_is_not_added_where_there_is_no_line_for_it() -> None:
    (sheet,) = edit.sheets(b"? tag\n: v1\n")
    made = edit.apply(b"? tag\n: v1\n", [edit.follow(sheet, ("tag",), "digest", "sha256:00")])
    assert edit.strays([sheet], made, {(0, ("digest",)): "sha256:00"}) != []


@pytest.mark.parametrize(
    "data",
    [
        *(b'd: ""\n', b"d: ''\n", b'{"d":""}', b"d:\n", b"d:", b"d:  # x\n", b"{d: }\n"),
        b"d:\r\n",
    ],
)
def test_what_is_empty_is_filled(data: bytes) -> None:
    (sheet,) = edit.sheets(data)
    made = edit.apply(data, [edit.fill(sheet, ("d",), "sha256:00")])
    assert edit.sheets(made)[0].document.value == {"d": "sha256:00"}


def test_digits_alone_are_quoted_where_nothing_was_written() -> None:
    (sheet,) = edit.sheets(b"d: # x\n")
    made = edit.apply(b"d: # x\n", [edit.fill(sheet, ("d",), "12345e67")])
    assert made == b'd: "12345e67" # x\n'


@pytest.mark.parametrize("data", [b"d: ~\n", b"d: 'x'\n", b"d: x\n"])
def test_nothing_else_is_filled(data: bytes) -> None:
    (sheet,) = edit.sheets(data)
    with pytest.raises(Uneditable):
        edit.fill(sheet, ("d",), "sha256:00")


def test_digits_alone_are_quoted_where_a_key_is_added() -> None:
    (sheet,) = edit.sheets(b"tag: v1\n")
    made = edit.apply(b"tag: v1\n", [edit.follow(sheet, ("tag",), "sha", "12345e67")])
    assert made == b'tag: v1\nsha: "12345e67"\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a: x:1 # why\r\n", b"a: m.io/y:2 # why\r\n"),
        (b"a: 'x:1'\n", b"a: 'm.io/y:2'\n"),
        (b'{a: "x:1"}', b'{a: "m.io/y:2"}'),
        (b"a: &i x:1\n", b"a: &i m.io/y:2\n"),
        (b"a: 1.10\n", b"a: m.io/y:2\n"),
    ],
)
def test_a_scalar_is_replaced_between_its_quotes(before: bytes, after: bytes) -> None:
    (sheet,) = edit.sheets(before)

    assert edit.apply(before, [edit.replace(sheet, A, "m.io/y:2")]) == after


def test_what_stands_in_the_place_of_another_is_quoted_if_it_would_be_no_text() -> None:
    (sheet,) = edit.sheets(b"a: x\n")

    assert edit.apply(b"a: x\n", [edit.replace(sheet, A, "1e3")]) == b'a: "1e3"\n'


def test_edits_that_overlap_are_misuse_and_equal_ones_are_one() -> None:
    with pytest.raises(Misuse):
        edit.apply(b"abc", [Edit(0, 2, b"x"), Edit(1, 3, b"y")])
    with pytest.raises(Misuse):
        edit.apply(b"abc", [Edit(1, 1, b"x"), Edit(1, 1, b"y")])
    with pytest.raises(Misuse):
        edit.apply(b"abc", [Edit(4, 4, b"x")])
    with pytest.raises(Misuse):
        Edit(2, 1, b"")
    assert edit.apply(b"abc", [Edit(3, 3, b"z"), Edit(1, 1, b"x"), Edit(1, 1, b"x")]) == b"axbcz"
    assert edit.apply(b"abc", []) == b"abc"


@pytest.mark.parametrize(
    ("before", "after", "bad"),
    [
        (b"a: 1\n", b"a: '1'\n", [(0, ("a",))]),
        (b"a: 1\n", b"a: 1.0\n", []),  # Go's JSON has one kind of number
        (b"a: 1\n", b"a: true\n", [(0, ("a",))]),
        (b"a: [1, 2]\n", b"a: [1]\n", [(0, ("a",))]),
        (b"a: 1\n", b"a: 1\nb: 2\n", [(0, ("b",))]),
        (b"a: 1\nb: 2\n", b"a: 1\n", [(0, ("b",))]),
        (b"a: 1\n", b"a: 1\n---\nb: 1\n", [(0, ())]),
        (b"a: 1\n", b"a: [\n", [(0, ())]),
        (b"a: &x 1\nb: *x\n", b"a: &x 2\nb: *x\n", [(0, ("a",)), (0, ("b",))]),
    ],
)
def test_strays_are_every_other_difference(
    before: bytes, after: bytes, bad: list[tuple[int, Path]]
) -> None:
    assert edit.strays(edit.sheets(before), after, {}) == bad


def test_what_is_not_utf_8_has_no_places() -> None:
    with pytest.raises(YamlError):
        edit.sheets("a: x:1\n".encode("utf-16"))
    with pytest.raises(YamlError):
        edit.sheets(b"a: \xff\n")


def test_values_are_found_by_path() -> None:
    value = {"a": [{"b": 1}], "0": None}
    assert edit.value_at(value, ("a", "0", "b")) == 1
    assert edit.value_at(value, ("0",)) is None
    for path in (("a", "1"), ("a", "x"), ("b",), ("a", "0", "b", "c")):
        assert edit.value_at(value, path) is MISSING
