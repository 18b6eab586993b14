"""The table of rules: it holds what the source can emit, and the source emits what it holds."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ocipack
from ocipack.cli.app import run
from ocipack.report import Severity
from ocipack.rules import RULES
from ocipack.rules.objects import OBJECTS

ROOT = Path(ocipack.__file__).parent
NAME = re.compile(r"[a-z]+(-[a-z]+)*")


def sources() -> Iterator[ast.Module]:
    for file in ROOT.rglob("*.py"):
        if file.parent.name != "rules":
            yield ast.parse(file.read_text())


def texts(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def emitters() -> dict[str, set[int]]:
    """What takes a rule's id: functions and classes by name, and at which position."""
    found: dict[str, set[int]] = {}
    for module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                fields = [n.target for n in node.body if isinstance(n, ast.AnnAssign)]
                names = [f.id for f in fields if isinstance(f, ast.Name)]
                for function in node.body:
                    if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                        names = [argument.arg for argument in function.args.args[1:]]
            elif isinstance(node, ast.FunctionDef):
                names = [a.arg for a in node.args.args if a.arg not in ("self", "cls")]
            else:
                continue
            if "rule" in names:
                found.setdefault(node.name, set()).add(names.index("rule"))
    return found


def emitted() -> Iterator[str]:
    """The rule that each call which makes a finding names, directly or by a constant."""
    known = emitters()
    for module in sources():
        constants = {
            target.id: node.value.value
            for node in module.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value.value, str)
        }
        for call in ast.walk(module):
            if not isinstance(call, ast.Call):
                continue
            name = ast.unparse(call.func).rpartition(".")[2]
            given = [call.args[n] for n in known.get(name, ()) if n < len(call.args)]
            given += [k.value for k in call.keywords if k.arg == "rule" and name in known]
            for argument in given:
                if isinstance(argument, ast.Name):
                    yield from filter(None, [constants.get(argument.id, "")])
                elif isinstance(argument, ast.Constant | ast.IfExp):
                    yield from (text for text in texts(argument) if NAME.fullmatch(text))


def test_what_the_source_emits_is_in_the_table() -> None:
    found = set(emitted())
    assert {"image-digest", "kustomization-outside", "symlink", "signature-digest"} <= found
    assert found - RULES.keys() == set()


def test_what_is_in_the_table_is_emitted_by_the_source() -> None:
    said = {text for module in sources() for text in texts(module)}
    assert RULES.keys() - said == set()


def test_each_rule_says_all_there_is_to_say() -> None:
    for id_, rule in RULES.items():
        assert rule.id == id_
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", id_)
        assert rule.severity in Severity
        for text in (rule.summary, rule.why, rule.mend, rule.source):
            assert text == text.strip() != ""
            assert not text.endswith(".")
            assert "\n" not in text


def test_confinement_integrity_and_signatures_cannot_be_ignored() -> None:
    ignorable = {rule.id for rule in RULES.values() if rule.ignorable}
    assert ignorable == OBJECTS.keys() - {"nothing-to-validate", "file-unreadable"}


def test_the_list_shows_every_rule(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "list"]) == 0
    shown = {line.split()[0] for line in capfd.readouterr().out.splitlines() if line[:2] == "  "}
    assert shown == RULES.keys()
    assert run(["rules", "list", "--output", "json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert [rule["id"] for rule in document["rules"]] == list(RULES)


def test_an_explanation_has_all_its_parts(capfd: pytest.CaptureFixture[str]) -> None:
    for rule in RULES.values():
        assert run(["rules", "explain", rule.id]) == 0
        shown = " ".join(capfd.readouterr().out.split())
        for text in (rule.id, rule.severity.value, rule.summary, rule.why, rule.mend, rule.source):
            assert " ".join(text.split()) in shown


def test_an_unknown_rule_is_misuse_and_the_nearest_is_named(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["rules", "explain", "image-digets"]) == 2
    assert "did you mean image-digest?" in capfd.readouterr().err
