"""The tree of errors, and the shape of every judgement."""

from __future__ import annotations

import pytest

from ocipack import errors
from ocipack.errors import IntegrityError, Misuse, malformed
from ocipack.report import Finding, Report, Severity

CODES = {
    "Misuse": 2,
    "Rejected": 1,
    "IntegrityError": 1,
    "StoreError": 3,
    "NotFound": 3,
    "Denied": 3,
    "Unavailable": 3,
}


def family(kind: type[errors.OcipackError]) -> list[type[errors.OcipackError]]:
    return [kind, *(grandchild for child in kind.__subclasses__() for grandchild in family(child))]


def test_every_error_has_the_code_that_the_tree_draws() -> None:
    public = [
        kind for kind in family(errors.OcipackError)[1:] if kind.__module__ == errors.__name__
    ]
    assert {kind.__name__: kind.exit_code for kind in public} == CODES
    drawn = errors.__doc__ or ""
    assert all(name in drawn for name in CODES)


def test_an_error_carries_a_hint_and_a_refusal_its_report() -> None:
    report = Report((Finding("r", "m"),))
    assert errors.Rejected("no", report=report, hint="do").report is report
    assert errors.Rejected("no").hint == ""
    assert Misuse("x", hint="do").hint == "do"


def test_a_reason_that_quotes_all_of_the_content_is_cut() -> None:
    with pytest.raises(IntegrityError) as caught, malformed("the index"):
        raise ValueError("x" * 1_000_000)
    assert str(caught.value) == f"the index: {'x' * 300}…"


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (Misuse("bad digest"), "the index: bad digest"),
        (ValueError("bad text"), "the index: bad text"),
        (KeyError("size"), "the index: 'size' is missing"),
        (TypeError("no"), "the index: no"),
        (AttributeError("no"), "the index: no"),
        (RecursionError("deep"), "the index: deep"),
    ],
)
def test_what_parsing_raises_becomes_an_integrity_error(raised: Exception, words: str) -> None:
    with pytest.raises(IntegrityError) as caught, malformed("the index"):
        raise raised
    assert str(caught.value) == words


def test_what_is_no_parse_error_stays_what_it_is() -> None:
    for raised in (OSError("disk"), errors.NotFound("gone"), AssertionError("bug")):
        with pytest.raises(type(raised)), malformed("the index"):
            raise raised


def test_a_report_is_sorted_by_place_and_holds_each_finding_once() -> None:
    first = Finding("b", "second line", file="a.yaml", line=2)
    second = Finding("a", "tenth line", file="a.yaml", line=10)
    note = Finding("z", "no place", severity=Severity.NOTE)
    report = Report.of([second, first, note, first])
    assert report.findings == (note, first, second)
    assert not report.ok
    assert report.count(Severity.ERROR) == 2
    assert (Report.of([note]) + Report.of([note])).findings == (note,)


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.NOTE])
def test_only_an_error_makes_a_report_bad(severity: Severity) -> None:
    assert Report.of([Finding("r", "m", severity=severity)]).ok
    assert Report().ok


def test_a_finding_says_where_as_far_as_it_knows() -> None:
    assert Finding("r", "m").place == ""
    assert Finding("r", "m", file="a").place == "a"
    assert Finding("r", "m", file="a", line=3).place == "a:3"
    assert Finding("r", "m", file="a", line=3, column=7).place == "a:3:7"
    assert Finding("r", "m", Severity.WARNING, file="a", line=3).as_dict() == {
        "rule": "r",
        "message": "m",
        "severity": "warning",
        "file": "a",
        "line": 3,
    }
