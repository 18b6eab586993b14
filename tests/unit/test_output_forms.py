"""The forms of output: what each says, and that hostile text stays text in every one of them."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from ocipack.cli import app as frame
from ocipack.cli.app import run
from ocipack.cli.command import App, command
from ocipack.cli.console import Console, plain
from ocipack.cli.formats import github, json_document, junit, markdown, plain_text, sarif
from ocipack.cli.outcome import FORMATS, Outcome, Result
from ocipack.errors import IntegrityError, Misuse, NotFound, OcipackError, Rejected
from ocipack.report import Excuse, Finding, Report, Severity

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = jsonschema_rs.validator_for(json.loads((DOCS / "schemas/result-v1.json").read_text()))

EXCUSE = Excuse("team-x", "not yet", "2027-01-31", "ocipack.yaml:5:7", Severity.ERROR)
HOSTILE = [
    "a\n::set-output name=x::y",
    "\r\n::error::x",
    "##[add-mask]x",
    "##vso[task.setvariable variable=x]y",
    "]]><failure/>",
    "<script>alert(1)</script>",
    "</code></td><img src=x onerror=alert(1)>",
    "a | b \\| c \\\\| d",
    "`` ` ``` **x** _y_ [l](http://x) ![i](http://x) @user #1 www.example.com",
    "\x00\x1b[31mred\x07\x7f\x9b",
    "\u202egnp.exe\u2066",
    "\ud800 \ufffe \uffff",
    "%0A::error::x %25 100%",
    "\"quoted\" 'single' & &amp; &#10;",
    "a,b:c=d::e",
    "é 世界 🎉",
]


def full(text: str = "x", **more: Any) -> Finding:
    return Finding(
        "image-digest", text, Severity.ERROR, text, 3, 7, f"/a/{text}", text, text, **more
    )


def reported(*findings: Finding, code: int = 0, **more: Any) -> Result:
    return Result("validate", Outcome("data", {}, Report.of(findings), code, **more))


def failed(error: OcipackError) -> Result:
    return Result.failed("ship", error)


# text and the console


def test_text_is_the_data_alone() -> None:
    assert plain_text.write(reported(full())) == "data\n"
    assert plain_text.write(failed(Misuse("x"))) == ""


@pytest.mark.parametrize("text", HOSTILE)
def test_standard_error_speaks_no_commands_of_runners(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console = Console(sys.stderr)
    console.findings(Report.of([full(text), Finding(text, text)]))
    console.error(text, text)
    shown = capsys.readouterr().err
    assert not [line for line in shown.split("\n") if line.lstrip().startswith("::")]
    assert "##[" not in shown
    assert "##vso[" not in shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)


# json


@pytest.mark.parametrize("text", ["x", *HOSTILE])
def test_json_is_one_document_that_its_schema_describes(text: str) -> None:
    for result in (
        reported(full(text), full(text, ignored=EXCUSE)),
        failed(Rejected(text, report=Report.of([full(text)]), hint=text)),
        failed(NotFound(text)),
    ):
        written = json_document.write(result)
        SCHEMA.validate(json.loads(written.encode()))


def test_json_says_what_is_known_and_who_excused_it() -> None:
    document = json.loads(json_document.write(reported(full(ignored=EXCUSE))))
    assert document["schema"] == "ocipack.dev/result/v1"
    assert document["findings"][0]["ignored"] == {
        "owner": "team-x",
        "reason": "not yet",
        "until": "2027-01-31",
        "place": "ocipack.yaml:5:7",
        "severity": "error",
        "by": "project",
    }
    error = json.loads(json_document.write(failed(NotFound("gone", hint="look"))))
    assert error["exitCode"] == 3
    assert error["error"] == {"kind": "NotFound", "message": "gone", "hint": "look"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"exitCode": 70},
        {"findings": [{"rule": "A B", "message": "x", "severity": "error"}]},
        {"findings": [{"rule": "a", "message": "x", "severity": "fatal"}]},
        {"findings": [{"rule": "a", "message": "x", "severity": "note", "line": 1}]},
        {"findings": [{"rule": "a", "message": "x", "severity": "note", "more": 1}]},
        {"error": {"kind": "Misuse"}},
        {"error": {"kind": "Misuse", "message": "x"}, "exitCode": 0},
    ],
)
def test_the_schema_refuses_what_is_not_so(wrong: dict[str, Any]) -> None:
    document = json.loads(json_document.write(reported()))
    assert SCHEMA.is_valid(document)
    assert not SCHEMA.is_valid(document | wrong)


# junit; elements and attributes are those of junit-10.xsd

JUNIT = {
    "testsuites": {"name", "time", "tests", "failures", "disabled", "errors"},
    "testsuite": {
        *("name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp"),
        *("hostname", "id", "package"),
    },
    "testcase": {"name", "assertions", "time", "classname", "status"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "system-out": set[str](),
}
ORDER = ["skipped", "error", "failure", "system-out", "system-err"]


def suite(result: Result) -> ET.Element:
    """The one test suite, after a look at its shape."""
    root = ET.fromstring(junit.write(result).encode())
    assert root.tag == "testsuites"
    (found,) = root
    for element in root.iter():
        assert set(element.attrib) <= JUNIT[element.tag]
        if element.tag == "testcase":
            assert element.attrib["name"]
            places = [ORDER.index(child.tag) for child in element]
            assert places == sorted(places)
    cases = found.findall("testcase")
    assert found.attrib["tests"] == root.attrib["tests"] == str(len(cases))
    for kind, tag in (("failures", "failure"), ("errors", "error")):
        count = sum(case.find(tag) is not None for case in cases)
        assert found.attrib[kind] == root.attrib[kind] == str(count)
    return found


def test_junit_has_a_case_for_each_object_good_or_bad() -> None:
    bad = Finding("r", "bad", subject="Pod b", file="b.yaml", line=3)
    meh = Finding("w", "meh", Severity.WARNING, subject="Pod c", file="c.yaml")
    own = Finding("f", "file", file="d.yaml")
    checked = ["Pod a", "Pod b", "Pod c"]
    cases = suite(reported(bad, meh, own, checked=checked)).findall("testcase")
    names = [case.attrib["name"] for case in cases]
    assert names == [*checked, "d.yaml"]
    assert [[child.tag for child in case] for case in cases] == [
        *([], ["failure"], ["system-out"], ["failure"])
    ]
    assert cases[1][0].attrib == {"type": "r", "message": "bad"}
    assert "b.yaml:3: error[r] bad" in (cases[1][0].text or "")


def test_junit_tells_no_from_not_knowing() -> None:
    (case,) = suite(failed(NotFound("gone"))).findall("testcase")
    assert [child.tag for child in case] == ["error"]
    (case,) = suite(failed(Rejected("no"))).findall("testcase")
    assert [child.tag for child in case] == ["failure"]
    refusal = Rejected("no", report=Report.of([full()]))
    assert [child.tag for case in suite(failed(refusal)) for child in case] == ["failure"]


def test_junit_is_never_empty() -> None:
    assert [case.attrib["name"] for case in suite(reported())] == ["ocipack validate"]


@pytest.mark.parametrize("text", HOSTILE)
def test_junit_holds_hostile_text_as_text(text: str) -> None:
    found = suite(reported(full(text), Finding("w", text, Severity.NOTE, ignored=EXCUSE)))
    assert len(found) == 2
    for result in (failed(NotFound(text)), failed(IntegrityError(text, hint=text))):
        assert len(suite(result)) == 1


def test_junit_keeps_what_xml_can_say() -> None:
    (case,) = suite(reported(Finding("r", 'a <b> & "c"\n]]>', subject="é")))
    assert case[0].attrib["message"] == 'a <b> & "c"\n]]>'
    assert 'a <b> & "c"\n]]>' in (case[0].text or "")


# sarif 2.1.0


def test_sarif_has_what_the_standard_requires() -> None:
    warning = Finding("name-case", "w", Severity.WARNING, file="a b/é.yaml", line=2)
    note = Finding("signature-good", "n", Severity.NOTE, subject="oci://x/y")
    log = json.loads(sarif.write(reported(full(), warning, note, Finding("foreign", "f"))))
    assert log["version"] == "2.1.0"
    (one,) = log["runs"]
    rules = one["tool"]["driver"]["rules"]
    assert one["tool"]["driver"]["name"] == "ocipack"
    assert [rule["id"] for rule in rules] == sorted({r["ruleId"] for r in one["results"]})
    for result in one["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert re.fullmatch("[0-9a-f]{32}", result["partialFingerprints"]["ocipack/v1"])
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    located = {r["ruleId"]: r["locations"][0]["physicalLocation"] for r in one["results"]}
    assert located["name-case"]["artifactLocation"]["uri"] == "a%20b/%C3%A9.yaml"
    assert located["name-case"]["region"] == {"startLine": 2}
    assert located["image-digest"]["region"] == {"startLine": 3, "startColumn": 7}
    assert located["signature-good"] == {"artifactLocation": {"uri": "."}}


def test_sarif_fingerprints_outlive_edits_elsewhere_in_the_file() -> None:
    def prints(*findings: Finding) -> set[str]:
        log = json.loads(sarif.write(reported(*findings)))
        return {r["partialFingerprints"]["ocipack/v1"] for r in log["runs"][0]["results"]}

    here = Finding("r", "m", file="a.yaml", line=3, subject="Pod a", pointer="/spec")
    assert prints(here) == prints(replace(here, line=9))
    assert len(prints(here, replace(here, pointer="/x"))) == 2


def test_sarif_shows_an_ignored_finding_as_suppressed() -> None:
    ignored = Finding("image-digest", "m", Severity.NOTE, file="a", ignored=EXCUSE)
    (result,) = json.loads(sarif.write(reported(ignored)))["runs"][0]["results"]
    assert result["level"] == "error"
    (suppression,) = result["suppressions"]
    assert suppression["kind"] == "external"
    assert suppression["status"] == "accepted"
    assert "not yet" in suppression["justification"]
    assert suppression["properties"]["until"] == "2027-01-31"


def test_sarif_tells_no_from_not_knowing() -> None:
    def invocation(error: OcipackError) -> Any:
        return json.loads(sarif.write(failed(error)))["runs"][0]["invocations"][0]

    assert invocation(Rejected("no"))["executionSuccessful"] is True
    assert invocation(NotFound("gone"))["executionSuccessful"] is False
    assert invocation(NotFound("gone"))["exitCode"] == 3
    (said,) = invocation(NotFound("gone", hint="look"))["toolExecutionNotifications"]
    assert said["message"]["text"] == "ocipack ship: gone (hint: look)"
    assert said["descriptor"]["id"] == "NotFound"


@pytest.mark.parametrize("text", HOSTILE)
def test_sarif_holds_hostile_text_as_text(text: str) -> None:
    written = sarif.write(reported(full(text))).encode()
    (result,) = json.loads(written)["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"[\w./~%-]+", uri, re.ASCII)
    assert not re.search(r"[\x00-\x08\x1b\x7f]", result["message"]["text"])


# github

COMMAND = re.compile(r"::(error|warning) ([^:]*)::(.*)")


def commands(result: Result) -> Iterator[tuple[str, dict[str, str], str]]:
    """What the runner would read of it, unescaped as it does."""
    for line in github.write(result).splitlines():
        match = COMMAND.fullmatch(line)
        assert match, line
        pairs = dict(part.split("=", 1) for part in match[2].split(",") if part)
        for key, value in pairs.items():
            pairs[key] = _unescaped(value.replace("%3A", ":").replace("%2C", ","))
        yield match[1], pairs, _unescaped(match[3])


def _unescaped(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def test_github_annotates_the_line() -> None:
    finding = Finding("r", "50%: a", file="b,c.yaml", line=3, column=7, subject="Pod a", hint="do")
    (found,) = commands(reported(finding))
    known = {"file": "b,c.yaml", "line": "3", "col": "7", "title": "r"}
    assert found == ("error", known, "50%: a (Pod a)\ndo")


def test_github_counts_files_from_where_the_command_ran() -> None:
    outcome = Outcome(report=Report.of([Finding("r", "m", file="a.yaml")]))
    (found,) = commands(Result("validate", outcome, base="./deploy/prod/"))
    assert found[1]["file"] == "deploy/prod/a.yaml"


def test_github_leaves_notes_out_and_says_why_a_command_failed() -> None:
    assert list(commands(reported(Finding("r", "m", Severity.NOTE)))) == []
    (found,) = commands(failed(NotFound("gone", hint="look")))
    assert found == ("error", {"title": "ocipack ship"}, "gone\nlook")


@pytest.mark.parametrize("text", HOSTILE)
def test_github_holds_hostile_text_as_text(text: str) -> None:
    result = reported(full(text), Finding(text, text))
    assert len(list(commands(result))) == 2
    assert len(list(commands(failed(NotFound(text, hint=text))))) == 1
    assert plain(text) in next(commands(reported(Finding("r", text))))[2]


# markdown


def cells(text: str) -> list[list[str]]:
    """The rows of the one table in `text`, markup taken off; anything but code fails."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        if token.type != "inline":
            assert token.type.partition("_")[0] in {
                *("heading", "paragraph", "table", "thead", "tbody", "tr", "td", "th")
            }, token
            continue
        for child in token.children or ():
            assert child.type in {"text", "html_inline", "text_special"}, child
            if child.type == "html_inline":
                assert child.content in {"<code>", "</code>", "<br>"}
        if rows and token.level > 2:
            rows[-1].append("".join(c.content for c in token.children or () if "text" in c.type))
    return rows


def test_markdown_is_a_table_with_the_worst_first() -> None:
    warning = Finding("name-case", "w", Severity.WARNING, file="a.yaml")
    text = markdown.write(reported(warning, full("x|y"), code=1))
    assert text.startswith("### ocipack <code>validate</code>: failed (exit code 1)\n")
    header, first, second = cells(text)
    assert header == ["", "rule", "place", "finding"]
    assert first[:3] == ["❌ error", "image-digest", "x|y:3:7"]
    assert second[:3] == ["⚠️ warning", "name-case", "a.yaml"]
    assert "1 error, 1 warning." in text


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_holds_hostile_text_as_text(text: str) -> None:
    result = reported(full(text), full(text, ignored=EXCUSE), Finding(text, text))
    assert [len(row) for row in cells(markdown.write(result))] == [4, 4, 4, 4]
    assert cells(markdown.write(failed(NotFound(text, hint=text)))) == []


@given(st.text(alphabet=st.characters() | st.sampled_from("|\\`<>&@#*_[]()!:\n"), max_size=60))
def test_markdown_says_what_it_was_told(text: str) -> None:
    shown = " ".join(plain(text).split())
    found = cells(markdown.write(reported(Finding("r", text or "x", subject="s"))))
    assert found[1][3].strip() == (shown or ("" if text else "x")).strip()


def test_markdown_is_bounded() -> None:
    many = [Finding("r", "<" * 1000, file=f"{n:05}.yaml") for n in range(2000)]
    text = markdown.write(reported(*many))
    assert len(text) <= 65_536
    assert re.search(r"… and 1,\d+ more findings\.\n$", text)
    (_, row) = cells(markdown.write(reported(Finding("r", "a" * 1000))))
    assert row[3] == "a" * 299 + "…"


# all of them through a command


def attach(monkeypatch: pytest.MonkeyPatch, error: OcipackError | None) -> None:
    def probe(_: App) -> Outcome:
        """Probe."""
        if error is not None:
            raise error
        return Outcome("data", {"a": 1}, Report.of([full()]))

    monkeypatch.setattr(frame.Commands, "get_command", lambda *_: command(probe))


@pytest.mark.parametrize("error", [None, Rejected("no", report=Report.of([full()])), NotFound("x")])
def test_every_form_is_written_in_one_run_also_on_failure(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: OcipackError | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    attach(monkeypatch, error)
    monkeypatch.chdir(tmp_path)
    assert run(["probe", *(f"--output={name}=out.{name}" for name in FORMATS)]) == (
        error.exit_code if error else 0
    )
    for name in FORMATS:
        text = (tmp_path / f"out.{name}").read_text()
        assert bool(text) == (name != "text" or error is None)
    SCHEMA.validate(json.loads((tmp_path / "out.json").read_text()))
    assert capsys.readouterr().out == ("" if error else "data\n")


def test_a_form_that_cannot_be_written_does_not_hide_why_the_command_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attach(monkeypatch, Rejected("no"))
    assert run(["probe", f"--output=junit={tmp_path}/absent/x", "--output=json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["error"]["message"] == "no"
    assert "absent/x" in captured.err
    assert "error: no" in captured.err
    attach(monkeypatch, None)
    assert run(["probe", f"--output=junit={tmp_path}/absent/x"]) == 3


# what many objects get from one line


def test_one_line_is_said_once_however_many_objects_have_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = Finding("r", "m", file="base/a.yaml", line=3, subject="Pod a/x", pointer="/spec")
    many = [one, replace(one, subject="Pod b/x"), replace(one, subject="Pod c/x")]
    apart = [replace(one, line=4), replace(one, message="n"), replace(one, line=0)]
    result = reported(*many, *apart)
    assert [more for _, more in result.report.groups()] == [0, 2, 0, 0]
    Console(sys.stderr).findings(Report.of(many))
    said = capsys.readouterr().err
    assert said == "base/a.yaml:3: error[r] m (Pod a/x and 2 more objects, /spec)\n"
    assert len(list(commands(result))) == 4
    assert "Pod a/x</code> and 2 more objects" in markdown.write(result)
    assert len(cells(markdown.write(result))) == 5
    assert len(suite(result)) == 3
    assert len(json.loads(sarif.write(result))["runs"][0]["results"]) == 6


def test_markdown_shows_the_summary() -> None:
    rows = [("digest", "sha256:|<b>"), ("tags", "")]
    text = markdown.write(Result("ship", Outcome(summary=rows)))
    assert "- <code>digest</code>: <code>sha256&#58;&#124;&#60;b&#62;</code>" in text
    assert "tags" not in text


@pytest.mark.parametrize(
    ("workspace", "base", "path"),
    [
        (None, "tree", "tree/a.yaml"),
        (None, "{here}/tree", "tree/a.yaml"),
        (None, "", "a.yaml"),
        (None, "{here}/../outside", "{here}/../outside/a.yaml"),
        ("{here}/..", "tree", "work/tree/a.yaml"),
        ("{here}/..", "../other", "other/a.yaml"),
        ("{here}", "tree", "tree/a.yaml"),
        ("/nowhere", "tree", "tree/a.yaml"),
        ("relative", "tree", "tree/a.yaml"),
        ("", "tree", "tree/a.yaml"),
    ],
)
def test_annotations_count_from_the_workspace_or_from_here(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    workspace: str | None,
    base: str,
    path: str,
) -> None:
    here = tmp_path / "work"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    if workspace is not None:
        top = os.path.normpath(workspace.format(here=here)) if "{" in workspace else workspace
        monkeypatch.setenv("GITHUB_WORKSPACE", top)

    def probe(app: App) -> Outcome:
        """Probe."""
        app.base = base.format(here=here)
        return Outcome(report=Report.of([Finding("r", "m", file="a.yaml")]))

    monkeypatch.setattr(frame.Commands, "get_command", lambda *_: command(probe))
    assert run(["probe", "--output=github=out"]) == 0
    wanted = os.path.normpath(path.format(here=here))
    assert (here / "out").read_text() == f"::error file={wanted},title=r::m\n"
