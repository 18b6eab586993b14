"""Patterns: what fits, what groups hold, what is refused, and that none takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings, strategies as st

from ocipack.errors import Misuse
from ocipack.mirror.expression import DEPTH, LONGEST, SIZE
from ocipack.mirror.pattern import MEMO, Pattern


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("", "", True),
        ("", "a", False),
        ("1.25", "1x25", True),
        (r"1\.25", "1x25", False),
        ("v1", "v1.0", False),  # all of it, or nothing
        ("^v1$", "v1", True),
        ("a^b", "ab", False),
        ("a$b", "ab", False),
        ("(^a|b)", "a", True),
        ("a($|b)", "a", True),
        (r"v?\d+(\.\d+)*", "v1.20.3", True),
        (r"v?\d+(\.\d+)*", "v1.20.", False),
        ("[^a-c]+", "xyz", True),
        ("[^a-c]+", "xbz", False),
        ("[]a]+", "]a]", True),
        ("[a-]+", "a-a", True),
        (r"[\d.-]+", "1.2-3", True),
        ("a{2,3}", "aaaa", False),
        ("a{2,}", "aaaa", True),
        ("a{2}b?", "aab", True),
        ("a{,2}", "a{,2}", True),  # no count: the characters themselves
        ("(?:main|release)-.*", "release-7", True),
        ("a|b|", "", True),
        (r"\W\D\S", ".a.", True),
    ],
)
def test_what_fits(pattern: str, text: str, fits: bool) -> None:  # noqa: FBT001 - a table of cases
    made = Pattern(pattern)

    assert made.fits(text) is fits
    assert (made.groups(text) is not None) is fits


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "a ) is missing"),
        (")", "a ) too many"),
        ("[a", "a ] is missing"),
        ("[", "a ] is missing"),
        ("*a", "nothing stands before"),
        ("a**", "a repetition of a repetition"),
        ("a{3,2}", "ends before it begins"),
        ("[b-a]", "a range goes from"),
        (r"[a-\d]", "a range goes from"),
        ("(?i)a", "no flags"),
        ("(?=a)", "no flags"),
        (r"(a)\1", r"there is no escape \\1"),
        (r"\b", r"there is no escape \\b"),
        ("\\", "there is no escape"),
        ("[[:alpha:]]", "no classes by name"),
        ("(?P<a>x)(?P<a>y)", "two groups are called a"),
        ("é", "ASCII"),
        ("a" * (LONGEST + 1), "more than 512 characters"),
        ("(" * (DEPTH + 1) + ")" * (DEPTH + 1), "more than 50 groups in groups"),
        ("(a{100}){100}", f"more than {SIZE} steps"),
        ("((a{0}){9999}){9999}", f"more than {SIZE} steps"),
        ("(?:(?:(?:){9999}){9999}){9999}", "more than 8000 parts"),
    ],
)
def test_what_is_no_pattern_says_why(pattern: str, why: str) -> None:
    with pytest.raises(Misuse, match=re.escape(why) if "\\" not in why else why):
        Pattern(pattern)


def test_groups_fill_a_template() -> None:
    pattern = Pattern(r"(?P<branch>[a-z]+)-[0-9a-f]{7}-(\d+)")

    assert pattern.fill("$2", "main-0a1b2c3-1700") == "1700"
    assert pattern.fill("${branch}x$$$1", "main-0a1b2c3-1700") == "mainx$main"
    assert pattern.fill("$0", "main-0a1b2c3-1700") == "main-0a1b2c3-1700"
    assert pattern.fill("$1", "main") is None


def test_a_group_that_took_no_part_is_empty() -> None:
    assert Pattern("(a)?b").fill("<$1>", "b") == "<>"


def test_the_first_way_that_fits_is_taken_and_lazy_ones_take_less() -> None:
    assert Pattern("(a+)(a*)").fill("$1,$2", "aaa") == "aaa,"
    assert Pattern("(a+?)(a*)").fill("$1,$2", "aaa") == "a,aa"
    assert Pattern("(a|ab)(c|bcd)(d*)").fill("$1,$2,$3", "abcd") == "a,bcd,"


@pytest.mark.parametrize("template", ["$3", "$name", "$", "${1", "$1x"])
def test_a_template_names_groups_that_there_are(template: str) -> None:
    with pytest.raises(Misuse, match="names a group"):
        Pattern("(a)(b)").check(template)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*", "(a*)*b", "(.*.*.*.*)*x", "(a?){60}a{60}"])
def test_no_pattern_keeps_us_busy(pattern: str) -> None:
    """A backtracking engine would need longer than the sun has left: this test just ends."""
    text = "a" * 128 + "!"

    assert not Pattern(pattern).fits(text)
    assert Pattern(pattern).groups(text) is None


def test_a_pattern_remembers_a_bounded_number_of_moves() -> None:
    pattern = Pattern("(a|b)*a(a|b){9}")  # one state for each text of ten characters
    for number in range(4 * MEMO):
        text = f"{number:012b}".translate({48: "a", 49: "b"})
        assert pattern.fits(text) is (text[-10] == "a")
    assert len(pattern._moves) <= MEMO


LEAVES = st.sampled_from(
    ["a", "b", "1", r"\.", "-", ".", "[ab]", "[^a]", r"\d", r"\w", "[a-b1]", "^", "$"]
)
PATTERNS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        inner.map(lambda one: f"({one})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "??", "{2}", "{1,2}", "{0,}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(PATTERNS, st.text("ab1.-", max_size=7))
def test_another_engine_says_the_same(pattern: str, text: str) -> None:
    theirs = re.compile(pattern, re.ASCII).fullmatch(text)
    made = Pattern(pattern)

    assert made.fits(text) is (theirs is not None)
    assert (made.groups(text) is not None) is (theirs is not None)
