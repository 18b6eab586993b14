"""Go's expressions match the same texts after translation; what cannot be translated says so."""

from __future__ import annotations

import jsonschema_rs
import pytest

from ocipack.validate.goregex import Untranslatable, translate

SAME = [  # pattern, texts that Go matches, texts that it does not
    (r"(?i)^abc$", ["ABC", "abc"], ["x", "abc\n"]),
    (r"^(?P<n>a)$", ["a"], ["b"]),
    (r"^(?:a|b)$", ["a", "b"], ["ab"]),
    (r"^[[:alpha:]]+$", ["aZ"], ["1", "é"]),
    (r"^[[:^alpha:]]$", ["1", "é"], ["a"]),
    (r"^[[:word:]-]+$", ["a_1-"], ["é"]),
    (r"^\Qa.b\E$", ["a.b"], ["axb"]),
    (r"^\Qa+", ["a+"], ["aa"]),
    (r"\a\v", ["\x07\x0b"], ["a"]),
    (r"^[\d-z]+$", ["1-z"], ["y"]),
    (r"^\07$", ["\x07"], ["7"]),
    (r"^\123$", ["S"], ["123"]),
    (r"^\x41\x{42}$", ["AB"], ["ab"]),
    (r"^\s$", [" ", "\t"], ["\u00a0", "\v"]),
    (r"^[^\s]$", ["\u00a0", "a"], [" "]),
    (r"^[\S]$", ["\u00a0", "a", "\v"], [" ", "\n"]),
    (r"^[\D1]$", ["a", "1"], ["2"]),
    (r"^\w+$", ["a_1"], ["é"]),
    (r"^\d$", ["1"], ["\u0661"]),
    (r"^[a&&b]+$", ["a&b"], ["c"]),
    (r"^[a~~b&&c-]+$", ["~-&"], ["d"]),
    (r"^[]a]+$", ["]a"], ["b"]),
    (r"^[^]a]+$", ["b"], ["]"]),
    (r"^[a-]$", ["-", "a"], ["b"]),
    (r"^[[a]$", ["[", "a"], ["]"]),
    (r"^a{,3}$", ["a{,3}"], ["aa"]),
    (r"^a{1,2}$", ["a", "aa"], ["aaa"]),
    (r"^a\_b\<$", ["a_b<"], ["ab"]),
    (r"^[+\-*/]$", ["-", "*"], ["a"]),
    (r"^\pL\p{Greek}\P{L}$", ["a\u03c91"], ["1\u03c91"]),
    (r"^.$", ["a", "é", "\r", "\u2028"], ["\n"]),
    (r"(?s)^.$", ["\n"], []),
    (r"^(?s:.).$", ["\na"], ["a\n"]),
    (r"(?s)^((?-s).).$", ["a\n"], ["\na"]),
    (r"(?m)^a$", ["b\na"], ["b"]),
    (r"\bfoo\b", ["a foo b", "éfoo"], ["afoo"]),
    (r"\Aa\z", ["a"], ["a\n"]),
    (r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$", ["1h30m", "1.5s"], ["1d", ""]),
    (r"^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$", ["a`|~"], ["/"]),
]


@pytest.mark.parametrize(("pattern", "matched", "other"), SAME, ids=[row[0] for row in SAME])
def test_the_same_texts_match(pattern: str, matched: list[str], other: list[str]) -> None:
    validator = jsonschema_rs.Draft202012Validator(
        {"pattern": translate(pattern)}, pattern_options=jsonschema_rs.RegexOptions()
    )
    assert [text for text in matched if not validator.is_valid(text)] == []
    assert [text for text in other if validator.is_valid(text)] == []


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", "(?<!a)", r"\Z", "[a", "[[:alhpa:]]", "[[:d:]]", "a{1001}", r"\C", r"\1", "a\\"],
)
def test_what_go_does_not_know_is_refused(pattern: str) -> None:
    with pytest.raises(Untranslatable):
        translate(pattern)
