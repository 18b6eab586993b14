"""What a tree may hold."""

from __future__ import annotations

import pytest

from ocipack.errors import IntegrityError, Misuse
from ocipack.tree.tree import File, Tree, check_name

ONE = File.of(b"1")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty name"),
        ("/etc/passwd", "absolute"),
        ("..", "leads out"),
        ("../x", "leads out"),
        ("a/../b", "leads out"),
        ("a/..", "leads out"),
        (".", "'.' part"),
        ("./a", "'.' part"),
        ("a/./b", "'.' part"),
        ("a//b", "empty or"),
        ("a/", "empty or"),
        ("a\\b", "backslash"),
        ("a\0b", "control"),
        ("a\nb", "control"),
        ("a\x1b[2J", "control"),
        ("a\x7f", "control"),
        ("a\x85", "control"),
        ("caf\udce9", "not UTF-8"),
        ("a" * 256, "255 bytes"),
        ("é" * 128, "255 bytes"),
        ("/".join(["a" * 200] * 21), "longer"),
        ("a/" * 128 + "a", "longer or deeper"),
    ],
)
def test_names_that_are_refused(name: str, reason: str) -> None:
    with pytest.raises(Misuse, match=reason) as e:
        Tree({name: ONE})
    assert str(e.value).isprintable(), "a message must not carry control characters"


@pytest.mark.parametrize(
    "name", ["a", "...", "..a", "a..", ".a", "a b", "é/ü", "a" * 255, "a/" * 127 + "a", "~", "a:b"]
)
def test_names_that_are_fine(name: str) -> None:
    check_name(name)
    assert list(Tree({name: ONE}).files) == [name]


def test_a_name_cannot_be_a_file_and_a_directory() -> None:
    with pytest.raises(Misuse, match="both a file and a directory: 'a/b'"):
        Tree({"a/b/c/d": ONE, "a/b": ONE})


def test_a_name_cannot_come_twice() -> None:
    with pytest.raises(Misuse, match="there twice: 'a'"):
        Tree.of([("a", ONE), ("b", ONE), ("a", ONE)])


def test_order_is_bytewise_whatever_came_first() -> None:
    names = ["é", "z", "a/b", "a-b", "Z", "a.b"]
    assert list(Tree.of((name, ONE) for name in names).files) == [
        "Z",
        "a-b",
        "a.b",
        "a/b",
        "z",
        "é",
    ]


def test_directories_are_those_that_hold_something() -> None:
    assert Tree({"a/b/c": ONE, "a/d": ONE, "e": ONE}).directories == {"a", "a/b"}


def test_size_counts_contents() -> None:
    assert Tree({"a": File.of(b"12"), "b": File.of(b"345")}).size == 5


def test_a_size_is_not_negative() -> None:
    with pytest.raises(Misuse, match="not a size: -1"):
        File(-1, executable=False, open=lambda: ())


def test_reading_a_file_has_a_limit() -> None:
    assert File.of(b"123").read(limit=3) == b"123"
    with pytest.raises(IntegrityError, match="at most 2 are read"):
        File.of(b"123").read(limit=2)


def test_names_that_differ_in_case_only_are_warned_of_once() -> None:
    files = dict.fromkeys(["a/Config.yaml", "a/config.yaml", "B/x", "b/x", "c/y", "C.y"], ONE)
    report = Tree(files).case_clashes()
    assert report.ok
    assert [(f.rule, f.file) for f in report.findings] == [
        ("name-case", "a/config.yaml"),
        ("name-case", "b"),
    ]


def test_names_that_differ_in_unicode_form_only_are_warned_of() -> None:
    report = Tree({"caf\u00e9": ONE, "cafe\u0301": ONE}).case_clashes()
    assert [f.file for f in report.findings] == ["caf\u00e9"]
