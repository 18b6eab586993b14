"""The strict reading of our own files: what it takes, and what it says of the rest."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pytest

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Node
from ocipack.k8s.yaml.strict import Reader, day

READER = Reader("f.yaml")
HEAD = b"apiVersion: ocipack.dev/v1alpha1\nkind: Thing\n"


def node(text: str) -> Node:
    """The value of `v: text`."""
    found = READER.root(f"v: {text}".encode()).get("v")
    assert found is not None
    return found


def test_ours_is_the_version_the_kind_and_the_known_fields() -> None:
    root = READER.ours(HEAD + b"a: b\n", ("a", "c"), kind="Thing")
    assert READER.text(root.get("a"), "a") == "b"
    assert root.get("c") is None
    plain = HEAD.replace(b"kind: Thing\n", b"")
    assert READER.ours(plain, ()).get("apiVersion") is not None


@pytest.mark.parametrize(
    ("data", "words", "hint"),
    [
        (b"", "1:1: the file is empty", "apiVersion: ocipack.dev/v1alpha1, kind: Thing"),
        (b"[]", "1:1: the file should be a mapping", ""),
        (HEAD + b"abc: b\n", "3:1: unknown field 'abc' in the file", "did you mean ab?"),
        (HEAD + b"zz: b\n", "3:1: unknown field 'zz' in the file", "known: apiVersion, kind, ab"),
        (HEAD.replace(b"Thing", b"Other"), "2:7: kind is not Thing", ""),
        (b"kind: Thing\n", "1:1: apiVersion is missing", "write apiVersion:"),
        (HEAD[:33], "1:1: kind is missing", "write kind: Thing"),
        (HEAD + b"ab: *x\n", "3:5:", ""),
        (HEAD + b"#" * 1024 * 1024, "1:1: longer than 1048576 bytes", ""),
    ],
)
def test_what_is_not_ours_is_misuse(data: bytes, words: str, hint: str) -> None:
    with pytest.raises(Misuse) as caught:
        READER.ours(data, ("ab",), kind="Thing")
    assert str(caught.value).startswith(f"f.yaml:{words}")
    assert hint in caught.value.hint


def test_a_format_may_be_longer_or_shorter() -> None:
    with pytest.raises(Misuse, match="longer than 3 bytes"):
        Reader("f.yaml", 3).root(b"a: b")
    assert Reader("f.yaml", 4).root(b"a: b").pairs


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (lambda n: READER.text(n, "v"), "x", "x"),
        (lambda n: READER.text(n, "v"), "'1'", "1"),
        (lambda n: READER.text(n, "v", blank=True), "''", ""),
        (lambda n: READER.texts(n, "v", "one"), "[a, b]", ("a", "b")),
        (lambda n: READER.texts(n, "v", "one", empty=True), "[]", ()),
        (lambda n: READER.choice(n, "v", ("a", "b")), "b", "b"),
        (lambda n: READER.whole(n, "v", 1), "0", 0),
        (lambda n: READER.whole(n, "v", 1), "12", 12),
        (lambda n: READER.flag(n, "v", default=False), "true", True),
        (READER.day, "2027-01-31", date(2027, 1, 31)),
        (READER.day, "'2027-01-31'", date(2027, 1, 31)),
    ],
)
def test_values(read: Callable[[Node], object], text: str, value: object) -> None:
    assert read(node(text)) == value


@pytest.mark.parametrize(
    ("read", "text", "words"),
    [
        (lambda n: READER.text(n, "v"), "''", "v should be text"),
        (lambda n: READER.text(n, "v", blank=True), "", "v should be text"),
        (lambda n: READER.text(n, "v"), "1.10", "v is not text to every reader"),
        (lambda n: READER.text(n, "v"), "on", "v is not text to every reader"),
        (lambda n: READER.text(n, "v"), "[a]", "v should be text"),
        (lambda n: READER.texts(n, "v", "one"), "[a, a]", "one 'a' given twice"),
        (lambda n: READER.texts(n, "v", "one"), "[]", "v is empty"),
        (lambda n: READER.texts(n, "v", "one"), "a", "v should be a list"),
        (lambda n: READER.choice(n, "v", ("a", "b")), "c", "v is one of a, b"),
        (lambda n: READER.whole(n, "v", 1), "-1", "v should be a whole number"),
        (lambda n: READER.whole(n, "v", 1), "0x10", "v should be a whole number"),
        (lambda n: READER.whole(n, "v", 1), "010", "v should be a whole number"),
        (lambda n: READER.whole(n, "v", 1), "1_0", "v should be a whole number"),
        (lambda n: READER.whole(n, "v", 1), "'1'", "v should be a whole number"),
        (lambda n: READER.whole(n, "v", 1), "9" * 19, "v should be a whole number"),
        (lambda n: READER.whole(n, "v", 1), "[1]", "v should be a whole number"),
        (lambda n: READER.flag(n, "v", default=False), "yes", "v should be true or false"),
        (READER.day, "2027-02-30", "'2027-02-30' is no date"),
        (READER.day, "[a]", "'' is no date"),
    ],
)
def test_what_is_no_value_is_misuse(read: Callable[[Node], object], text: str, words: str) -> None:
    with pytest.raises(Misuse, match=r"^f\.yaml:1:") as caught:
        read(node(text))
    assert words in str(caught.value)


def test_what_is_absent_has_a_default() -> None:
    assert READER.text(None, "v") == ""
    assert READER.texts(None, "v", "one") == ()
    assert READER.choice(None, "v", ("a", "b")) == "a"
    assert READER.whole(None, "v", 7) == 7
    assert READER.flag(None, "v", default=True)


def test_a_misuse_of_a_noun_gets_its_place_once() -> None:
    with pytest.raises(Misuse, match=r"^f\.yaml:1:4: 'x' is no date$"), READER.about(node("x")):
        day("x")
    with (
        pytest.raises(Misuse, match=r"^f\.yaml:1:4: v should be a list$"),
        READER.about(READER.root(b"a: b")),
    ):
        READER.items(node("x"), "v")
