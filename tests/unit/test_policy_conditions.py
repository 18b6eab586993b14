"""What may be asked of signed values, and how age is told."""

from __future__ import annotations

from typing import Any

import pytest

from ocipack.errors import Misuse
from ocipack.trust.policy.age import Floor, Version, moment
from ocipack.trust.policy.conditions import ABSENT, Condition, Field, at
from ocipack.trust.policy.wildcards import Pattern, literal, star

DOCUMENT = {"a": {"b/c": [1, {"~": True}]}, "list": ["x", 2], "": 0, "text": "v1", "null": None}

HOLDS: list[tuple[str, Any, Any, bool]] = [
    ("equals", "v1", "v1", True),
    ("equals", "v1", "v10", False),
    ("equals", 1, 1, True),
    ("equals", 1, 1.0, True),
    ("equals", 1, "1", False),
    ("equals", 1, True, False),
    ("equals", True, 1, False),
    ("equals", True, True, True),
    ("equals", 0, False, False),
    ("equals", None, None, True),
    ("equals", None, ABSENT, False),
    ("equals", "", ABSENT, False),
    ("equals", "x", ["x"], False),
    ("oneOf", ("a", "b"), "b", True),
    ("oneOf", ("a", "b"), "c", False),
    ("oneOf", (1,), True, False),
    ("like", "main@sha1:*", "main@sha1:00ff", True),
    ("like", "main@sha1:*", "xmain@sha1:00ff", False),
    ("like", "https://git.example.com/*", "https://git.example.com/a/b", False),
    ("like", "https://git.example.com/**", "https://git.example.com/a/b", True),
    ("like", "https://git.example.com/*", "https://gitxexample.com/a", False),
    ("like", "**", "", True),
    ("like", "**", 1, False),
    ("like", "*", "a\nb", True),
    ("like", "**", "x" * 5000, False),
    ("contains", "x", ["x", 2], True),
    ("contains", 2, ["x", 2], True),
    ("contains", True, [1], False),
    ("contains", "x", "x", False),
    ("contains", "x", {"x": 1}, False),
    ("atLeast", 2, 2, True),
    ("atLeast", 2, 1.9, False),
    ("atLeast", 0, True, False),
    ("atLeast", 2, "3", False),
    ("atMost", 2, 2, True),
    ("atMost", 2, 3, False),
    ("atMost", 2, False, False),
    ("atMost", 2, ABSENT, False),
]


@pytest.mark.parametrize(("operator", "operand", "found", "holds"), HOLDS)
def test_a_condition(operator: str, operand: Any, found: object, holds: bool) -> None:  # noqa: FBT001 - a table
    assert Condition(operator, operand).holds(found) is holds


@pytest.mark.parametrize(
    ("operator", "operand"),
    [
        ("matches", "x"),
        ("equals", ["x"]),
        ("equals", {}),
        ("oneOf", ()),
        ("oneOf", ["a"]),
        ("oneOf", ("a", ())),
        ("like", ""),
        ("like", 1),
        ("atLeast", "1"),
        ("atLeast", True),
        ("atMost", None),
        ("contains", ["x"]),
    ],
)
def test_what_is_no_condition(operator: str, operand: Any) -> None:
    with pytest.raises(Misuse):
        Condition(operator, operand)


@pytest.mark.parametrize(
    ("pointer", "found"),
    [
        ("/a/b~1c/0", 1),
        ("/a/b~1c/1/~0", True),
        ("/list/1", 2),
        ("/", 0),
        ("/null", None),
        ("/list/2", ABSENT),
        ("/list/-", ABSENT),
        ("/list/01", ABSENT),
        ("/list/-1", ABSENT),
        ("/text/0", ABSENT),
        ("/a/x", ABSENT),
        ("/null/x", ABSENT),
    ],
)
def test_a_pointer(pointer: str, found: object) -> None:
    assert at(DOCUMENT, pointer) is found or at(DOCUMENT, pointer) == found
    assert (at(DOCUMENT, pointer) is ABSENT) is (found is ABSENT)


@pytest.mark.parametrize("pointer", ["", "a", "/a~2", "/a~", "a/b", "/" + "x" * 1000])
def test_what_is_no_pointer(pointer: str) -> None:
    with pytest.raises(Misuse, match="not a JSON pointer"):
        Field(pointer, Condition("equals", 1))


def test_what_is_remembered_of_characters_is_bounded() -> None:
    pattern = Pattern([*literal("a"), *star("/")])
    assert pattern.matches("a" + "".join(map(chr, range(256, 2256))))
    assert len(pattern._moves) <= 256


ORDER = [  # semver.org, 2.0.0, §11, and its own examples
    *("0.0.1", "0.2.0", "0.10.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta"),
    *("1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "2.0.0"),
]


def test_versions_are_in_the_order_of_their_specification() -> None:
    found = [Version.parse(text).order for text in ORDER]
    assert found == sorted(found)
    assert len(set(found)) == len(found)
    assert Version.parse("1.0.0+a").order == Version.parse("v1.0.0+b").order


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.0",
        "1.0.0.0",
        "01.0.0",
        "1.0.0-01",
        "1.0.0-",
        "1.0.0-a..b",
        "1.0.0\n",
        "x",
        "1.0.0-" + "a" * 300,
        "\uff11.0.0",
    ],
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(Misuse, match="not a version"):
        Version.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00Z\n",
        "1767225600",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(Misuse, match="not a time"):
        moment(text)


AGES: list[tuple[dict[str, Any], str]] = [
    ({"version": "1.2.0", "created": "2026-01-01T00:00:00Z"}, ""),
    ({"version": "v1.2.1", "created": "2026-01-01T00:00:00.5Z"}, ""),
    ({"version": "1.10.0", "created": "2026-01-01T01:00:00+01:00"}, ""),
    ({"version": "1.2.0-rc.1", "created": "2026-01-01T00:00:00Z"}, "older"),
    ({"version": "1.1.9", "created": "2026-01-01T00:00:00Z"}, "older"),
    ({"version": "1.2.0", "created": "2025-12-31T23:59:59Z"}, "older"),
    ({"version": "1.2.0", "created": "2026-01-01T00:00:00+01:00"}, "older"),
    ({"version": "1.2.0"}, "no readable time"),
    ({"created": "2026-01-01T00:00:00Z"}, "no readable version"),
    ({"version": 2, "created": "2026-01-01T00:00:00Z"}, "no readable version"),
    ({"version": "1.2", "created": "2026-01-01T00:00:00Z"}, "no readable version"),
    ({"version": "1.2.0", "created": "yesterday"}, "no readable time"),
    ({}, "no readable"),
]


@pytest.mark.parametrize(("annotations", "words"), AGES)
def test_what_is_old(annotations: dict[str, Any], words: str) -> None:
    floor = Floor(Version.parse("1.2.0"), moment("2026-01-01T00:00:00Z"))
    found = floor.complaint(annotations)
    assert bool(found) is bool(words)
    assert words in found


def test_each_part_of_a_floor_is_asked_alone() -> None:
    assert not Floor(Version.parse("1.2.0")).complaint({"version": "1.2.0"})
    assert not Floor(None, moment("2026-01-01T00:00:00Z")).complaint(
        {"created": "2026-01-01T00:00:00Z"}
    )
    with pytest.raises(Misuse, match="neither version nor created"):
        Floor()
