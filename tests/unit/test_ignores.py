"""Excuses: by the project file and by comments; what they need to say, and when they are over."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st

from ocipack.errors import Misuse
from ocipack.project import Project
from ocipack.project.ignore import Ignore, fits
from ocipack.project.reader import read as read_project
from ocipack.report import Finding, Report, Severity
from ocipack.rules import RULES
from ocipack.validate.ignores import Comment, Ignores, comments

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = jsonschema_rs.validator_for(
    json.loads((DOCS / "schemas/project-v1alpha1.json").read_text()), validate_formats=True
)
TODAY = date(2026, 11, 30)
GOOD = """\
apiVersion: ocipack.dev/v1alpha1
validate:
  ignore:
    - rule: image-digest
      path: apps/**
      object: Deployment shop/*
      owner: team-shop
      reason: the registry rewrites digests
      until: 2027-01-31
"""
FINDING = Finding(
    "image-digest", "no digest", file="apps/web/a.yaml", line=4, subject="Deployment shop/web"
)


def project(text: str = GOOD) -> Project:
    return read_project(text.encode())


def ignored(text: str = GOOD) -> Ignores:
    return Ignores.of(project(text), (), lambda _: b"")


# the project file


def test_a_project_file_is_read() -> None:
    (ignore,) = project().ignores
    assert ignore == Ignore(
        rule="image-digest",
        path="apps/**",
        object="Deployment shop/*",
        owner="team-shop",
        reason="the registry rewrites digests",
        until=date(2027, 1, 31),
        file="ocipack.yaml",
        line=4,
        column=7,
    )
    assert ignore.place == "ocipack.yaml:4:7"
    assert project("apiVersion: ocipack.dev/v1alpha1\n").ignores == ()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("apiVersion: ocipack.dev/v1alpha1", "{}", "1:"),
        ("v1alpha1", "v1", "1:13: apiVersion is not ocipack.dev/v1alpha1"),
        ("apiVersion: ocipack.dev/v1alpha1\n", "", "1:1: apiVersion is missing"),
        ("validate:", "valdate:", "2:1: unknown field 'valdate'"),
        ("ignore:", "ignores:", "3:3: unknown field 'ignores'"),
        ("object:", "objects:", "6:7: unknown field 'objects'"),
        ("image-digest", "image-digets", "4:13: there is no rule 'image-digets'"),
        ("image-digest", "kustomization-outside", "4:13: rule kustomization-outside cannot be"),
        ("2027-01-31", "31.1.2027", "9:14: '31.1.2027' is no date"),
        ("2027-01-31", "2027-02-30", "9:14: '2027-02-30' is no date"),
        ("2027-01-31", "20270131", "9:14: '20270131' is no date"),
        ("until: 2027-01-31", "", "4:7: the ignore has no until"),
        ("owner: team-shop", "", "4:7: the ignore has no owner"),
        ("reason: the registry rewrites digests", "", "4:7: the ignore has no reason"),
        ("rule: image-digest\n      ", "", "4:7: the ignore has no rule"),
        ("team-shop", "", "7:13: owner should be text"),
        ("team-shop", "12", "7:14: owner is not text to every reader"),
        ("team-shop", "yes", "7:14: owner is not text to every reader"),
        ("team-shop", '" "', "7:14: owner should be text"),
        ("team-shop", "[a]", "7:14: owner should be text"),
        ("team-shop", "&a b", "7:14: an anchor (&a)"),
        ("owner: team-shop", "owner: a\n      owner: b", "8:7: key 'owner' given twice"),
        ("apps/**", "a" * 501, "5:13: path is longer than 500"),
        ("  ignore:", "  ignore: []\n  more:", "4:3: unknown field 'more'"),
        ("    - rule", "      rule", "4:7: ignore should be a list"),
        ("validate:\n", "validate: []\nx:\n", "3:1: unknown field 'x'"),
        ("\n", "\n---\n", "a second document"),
    ],
)
def test_a_project_file_is_read_strictly(old: str, new: str, words: str) -> None:
    with pytest.raises(Misuse, match=r"^ocipack\.yaml:") as caught:
        project(GOOD.replace(old, new, 1))
    assert words in str(caught.value)


def test_an_ignore_names_a_path_or_an_object() -> None:
    lines = GOOD.splitlines(keepends=True)
    assert len(project("".join(lines[:4] + lines[5:])).ignores) == 1
    assert len(project("".join(lines[:5] + lines[6:])).ignores) == 1
    with pytest.raises(Misuse, match="neither path nor object"):
        project("".join(lines[:4] + lines[6:]))


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"a", b"a: [", b"x" * (1024 * 1024 + 1)])
def test_what_is_no_project_file_is_misuse(data: bytes) -> None:
    with pytest.raises(Misuse, match=r"^ocipack\.yaml:[12]:1:"):
        read_project(data)


def test_a_project_file_is_bounded() -> None:
    with pytest.raises(Misuse, match="longer than 1048576 bytes"):
        project(GOOD + "#" * 1024 * 1024)


@given(st.binary(max_size=200) | st.text(max_size=80).map(lambda t: (GOOD + t).encode()))
def test_hostile_project_files_are_misuse_or_read(data: bytes) -> None:
    said = "ocipack.yaml:"
    try:
        read_project(data)
    except Misuse as e:
        said = str(e)
    assert said.startswith("ocipack.yaml:")


ENTRY = {
    "rule": "image-digest",
    "path": "a",
    "owner": "o",
    "reason": "r",
    "until": "2027-01-31",
}


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"path": None, "object": "Pod a/*"}, True),
        ({"path": None}, False),
        ({"owner": None}, False),
        ({"reason": None}, False),
        ({"until": None}, False),
        ({"rule": None}, False),
        ({"rule": "No Rule"}, False),
        ({"until": "2027-02-30"}, False),
        ({"until": "tomorrow"}, False),
        ({"owner": " "}, False),
        ({"more": "x"}, False),
        ({"path": "x" * 501}, False),
    ],
)
def test_the_schema_and_the_reader_agree(change: dict[str, Any], good: bool) -> None:  # noqa: FBT001 - a table of cases
    entry = {key: value for key, value in (ENTRY | change).items() if value is not None}
    document = {"apiVersion": "ocipack.dev/v1alpha1", "validate": {"ignore": [entry]}}
    assert SCHEMA.is_valid(document) == good
    try:
        project(json.dumps(document))
    except Misuse:
        assert not good
    else:
        assert good


@pytest.mark.parametrize(
    ("glob", "text", "good"),
    [
        ("a.yaml", "a.yaml", True),
        ("a.yaml", "b/a.yaml", False),
        ("a.yaml", "axyaml", False),
        ("*.yaml", "a.yaml", True),
        ("*.yaml", "b/a.yaml", False),
        ("**/*.yaml", "b/c/a.yaml", True),
        ("**/*.yaml", "a.yaml", True),
        ("b/**", "b/c/a.yaml", True),
        ("b/**", "bc/a.yaml", False),
        ("b/**/a.yaml", "b/a.yaml", True),
        ("?.yaml", "a.yaml", True),
        ("?.yaml", "/.yaml", False),
        ("Deployment shop/*", "Deployment shop/web", True),
        ("Deployment shop/*", "Deployment shop-2/web", False),
        ("* shop/web", "Deployment shop/web", True),
        ("[a]+", "[a]+", True),
        ("", "anything", True),
        ("**", "", True),
    ],
)
def test_globs(glob: str, text: str, good: bool) -> None:  # noqa: FBT001 - a table of cases
    assert fits(glob, text) == good


# what an excuse does


def test_an_excused_finding_is_a_note_that_says_by_whom_and_until_when() -> None:
    (found,) = ignored().apply(Report.of([FINDING]), today=TODAY).findings
    assert found.severity is Severity.NOTE
    assert found.message == "no digest"
    excuse = found.ignored
    assert excuse is not None
    assert excuse.as_dict() == {
        "owner": "team-shop",
        "reason": "the registry rewrites digests",
        "until": "2027-01-31",
        "place": "ocipack.yaml:4:7",
        "severity": "error",
        "by": "project",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"rule": "wrong-type"},
        {"file": "base/a.yaml"},
        {"subject": "StatefulSet shop/web"},
        {"subject": ""},
    ],
)
def test_an_excuse_covers_no_other_finding(change: dict[str, str]) -> None:
    other = replace(FINDING, **change)  # type: ignore[arg-type]  # names and values of a table
    report = ignored().apply(Report.of([other]), today=TODAY)
    assert other in report.findings
    assert [f.rule for f in report.findings if f != other] == ["ignore-unused"]


def test_the_last_day_counts_and_the_next_does_not() -> None:
    report = Report.of([FINDING])
    (last,) = ignored().apply(report, today=date(2027, 1, 31)).findings
    assert last.ignored is not None
    late = ignored().apply(report, today=date(2027, 2, 1))
    assert FINDING in late.findings
    assert not late.ok
    (said,) = [f for f in late.findings if f.rule == "ignore-expired"]
    assert (said.place, said.severity) == ("ocipack.yaml:4:7", Severity.WARNING)
    assert "until 2027-01-31" in said.message


def test_an_expired_excuse_is_said_to_be_so_even_if_nothing_needed_it() -> None:
    late = ignored().apply(Report(), today=date(2027, 2, 1))
    assert [f.rule for f in late.findings] == ["ignore-expired"]


def test_an_unused_excuse_is_a_warning_unless_only_a_part_was_looked_at() -> None:
    (unused,) = ignored().apply(Report(), today=TODAY).findings
    assert (unused.rule, unused.severity) == ("ignore-unused", Severity.WARNING)
    assert ignored().apply(Report(), today=TODAY, whole=False).findings == ()


def test_a_note_is_not_excused_and_its_ignore_is_not_unused() -> None:
    """What is a note here may be an error to another command."""
    note = replace(FINDING, severity=Severity.NOTE)
    assert ignored().apply(Report.of([note]), today=TODAY).findings == (note,)


@pytest.mark.parametrize("rule", sorted(r.id for r in RULES.values() if not r.ignorable))
def test_what_may_not_be_ignored_is_not(rule: str) -> None:
    """Even if an Ignore could be made of such a rule: both doors are shut."""
    with pytest.raises(Misuse, match="cannot be ignored"):
        Ignore(rule, "o", "r", date(2027, 1, 31))
    forged = object.__new__(Ignore)
    for name in Ignore.__slots__:
        object.__setattr__(forged, name, getattr(project().ignores[0], name))
    object.__setattr__(forged, "rule", rule)
    finding = replace(FINDING, rule=rule)
    assert finding in Ignores(project=(forged,)).apply(Report.of([finding]), today=TODAY).findings


# comments


def read(text: str, name: str = "a.yaml") -> list[Comment | Finding]:
    return list(comments(name, text.encode()))


SAYS = "ocipack:ignore image-digest until=2027-01-31 owner=team-x it is so"


@pytest.mark.parametrize(
    ("text", "line", "target"),
    [
        (f"a: 1 # {SAYS}\n", 1, 1),
        (f"# {SAYS}\na: 1\n", 1, 2),
        (f"#{SAYS}\na: 1\n", 1, 2),
        (f"# {SAYS}\n# more\n\na: 1\n", 1, 4),
        (f"x: y\n---\nb:\n  - c  # {SAYS}\n", 4, 4),
        (f"x: y\r\nb: c  # {SAYS}\r\n", 2, 2),
        (f"x: |\n  text\n# {SAYS}\nb: 1\n", 3, 4),
        (f"x: |\n  text\n\n\n# {SAYS}\nb: 1\n", 5, 6),
        (f"x: 'a # b' # {SAYS}\n", 1, 1),
        (f"[{{a: 1}}, # {SAYS}\n 2]\n", 1, 1),
        (f"- a\n# {SAYS}\n", 2, 2),
        (f"a: [\n---\nb: 1 # {SAYS}\n", 3, 3),
    ],
)
def test_a_comment_is_about_its_line_or_the_next(text: str, line: int, target: int) -> None:
    (found,) = read(text)
    assert isinstance(found, Comment)
    assert found.target == target
    assert found.ignore.line == line
    assert found.ignore.owner == "team-x"
    assert found.ignore.reason == "it is so"
    assert text.splitlines()[line - 1][found.ignore.column - 1 :].startswith("#")


@pytest.mark.parametrize(
    "text",
    [
        f"x: |\n  # {SAYS}\n",
        f"x: >-\n  a\n  # {SAYS}\n  b\ny: 1\n",
        f"x: 'a # {SAYS}'\n",
        f'x: "a # {SAYS}"\n',
        f"x: 'a\n  # {SAYS}\n  b'\n",
        f"x: a#{SAYS}\n",
        f"x: [ # {SAYS}\n",
        "# ocipack:ignored nothing\n",
        "# ocipack:ignore-file\n",
    ],
)
def test_text_that_looks_like_a_comment_is_none(text: str) -> None:
    assert read(text) == []


def test_bytes_that_are_no_text_hold_no_comments() -> None:
    assert list(comments("a.yaml", b"# ocipack:ignore x\n\xff")) == []


@pytest.mark.parametrize(
    ("comment", "rule", "words"),
    [
        ("ocipack:ignore", "ignore-malformed", "there is no rule ''"),
        ("ocipack:ignore image-digets until=2027-01-31 owner=x y", "ignore-malformed", "no rule"),
        ("ocipack:ignore image-digest owner=x y", "ignore-malformed", "is no date"),
        ("ocipack:ignore image-digest until=2027-13-01 owner=x y", "ignore-malformed", "no date"),
        ("ocipack:ignore image-digest until=2027-01-31 y", "ignore-malformed", "owner"),
        ("ocipack:ignore image-digest until=2027-01-31 owner=x", "ignore-malformed", "reason"),
        ("ocipack:ignore ignore-unused until=2027-01-31 owner=x y", "ignore-refused", "cannot"),
        ("ocipack:ignore signature-missing until=2027-01-31 owner=x y", "ignore-refused", "cannot"),
    ],
)
def test_a_comment_says_all_it_must(comment: str, rule: str, words: str) -> None:
    (found,) = read(f"a: 1\nb: 2 # {comment}\n")
    assert isinstance(found, Finding)
    assert (found.rule, found.place, found.severity) == (rule, "a.yaml:2:6", Severity.ERROR)
    assert words in found.message


def ignores(files: dict[str, str]) -> Ignores:
    reader: Callable[[str], bytes] = lambda name: files[name].encode()  # noqa: E731 - one line
    return Ignores.of(Project(), files, reader)


def test_a_comment_excuses_the_finding_on_its_line_alone() -> None:
    found = ignores({"a.yaml": f"a: 1\nb: 2 # {SAYS}\n", "b.yaml": "a: 1\n", "c.txt": f"# {SAYS}"})
    here = Finding("image-digest", "m", file="a.yaml", line=2)
    others = [
        replace(here, line=1),
        replace(here, file="b.yaml"),
        replace(here, rule="wrong-type"),
        replace(here, line=0),
    ]
    report = found.apply(Report.of([here, *others]), today=TODAY)
    assert [f.severity for f in report.findings].count(Severity.ERROR) == 4
    (note,) = [f for f in report.findings if f.severity is Severity.NOTE]
    assert note.ignored is not None
    assert note.ignored.in_source
    assert note.ignored.place == "a.yaml:2:6"
    unused = ignores({"a.yaml": f"b: 2 # {SAYS}\n"}).apply(Report(), today=TODAY)
    assert [(f.rule, f.place) for f in unused.findings] == [("ignore-unused", "a.yaml:1:6")]


def test_a_comment_that_is_wrong_is_reported_with_the_rest() -> None:
    found = ignores({"a.yaml": "a: 1 # ocipack:ignore image-digest\n"})
    report = found.apply(Report(), today=TODAY)
    assert [f.rule for f in report.findings] == ["ignore-malformed"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_hostile_comments_never_raise(before: str, after: str) -> None:
    for found in comments("a.yaml", f"{before}# ocipack:ignore {after}".encode()):
        assert isinstance(found, Comment | Finding)
