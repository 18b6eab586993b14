"""SARIF 2.1.0 (OASIS, 2020), for code scanning and editors.

An ignored finding keeps its level and carries a suppression. A finding without a file is placed at
the tree itself, since code scanning takes no result without a physical location. Fingerprints are
made of rule, file, object and pointer, so that they survive edits elsewhere in a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ocipack import __version__
from ocipack.cli.console import plain
from ocipack.cli.formats.json_document import serialise
from ocipack.report import Excuse, Finding, Severity
from ocipack.rules import RULES
from ocipack.rules.rule import Rule

if TYPE_CHECKING:
    from ocipack.cli.outcome import Result
    from ocipack.errors import OcipackError

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def write(result: Result) -> str:
    """A log with one run."""
    return serialise(log(result))


def log(result: Result) -> dict[str, Any]:
    """What is written, before it is text."""
    findings = result.report.findings
    names = sorted({finding.rule for finding in findings})
    index = {name: number for number, name in enumerate(names)}
    driver = {
        "name": "ocipack",
        "version": __version__,
        "rules": [_rule(name, RULES.get(name)) for name in names],
    }
    invocation = {
        "executionSuccessful": not any(_undecided(error) for _, error in result.failures),
        "exitCode": result.outcome.code,
        "toolExecutionNotifications": [_notification(*failure) for failure in result.failures],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, index, result.path(finding)) for finding in findings],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _undecided(error: OcipackError) -> bool:
    return error.exit_code != 1


def _notification(name: str, error: OcipackError) -> dict[str, Any]:
    text = f"{name}: {error}" + (f" (hint: {error.hint})" if error.hint else "")
    return {
        "level": "error",
        "message": {"text": plain(text)},
        "descriptor": {"id": type(error).__name__},
    }


def _rule(name: str, rule: Rule | None) -> dict[str, Any]:
    if rule is None:  # a finding of a foreign rule is still a finding
        return {"id": name}
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.summary}."},
        "fullDescription": {"text": f"{rule.summary}: {rule.why}."},
        "help": {"text": f"{rule.mend}."},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"source": rule.source, "ignorable": rule.ignorable},
    }


def _result(finding: Finding, index: Mapping[str, int], path: str) -> dict[str, Any]:
    severity = finding.ignored.severity if finding.ignored else finding.severity
    text = finding.message + (f" (hint: {finding.hint})" if finding.hint else "")
    found: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": severity.value,
        "message": {"text": plain(text)},
        "locations": [_location(finding, path)],
        "partialFingerprints": {"ocipack/v1": _fingerprint(finding)},
    }
    if severity is Severity.NOTE:
        found["kind"] = "informational"
        found["level"] = "none"  # 3.27.10: the level of what is not a failure
    if finding.ignored is not None:
        found["suppressions"] = [_suppression(finding.ignored)]
    return found


def _location(finding: Finding, path: str) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(path or ".", errors="replace")}}
    if finding.line:
        column = {"startColumn": finding.column} if finding.column else {}
        physical["region"] = {"startLine": finding.line, **column}
    found: dict[str, Any] = {"physicalLocation": physical}
    if finding.subject or finding.pointer:
        name = plain(" ".join(part for part in (finding.subject, finding.pointer) if part))
        found["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "resource"}]
    return found


def _suppression(excuse: Excuse) -> dict[str, Any]:
    text = f"{excuse.reason} ({excuse.owner}, until {excuse.until}; {excuse.place})"
    return {
        "kind": "inSource" if excuse.in_source else "external",
        "status": "accepted",
        "justification": plain(text),
        "properties": {"owner": excuse.owner, "until": excuse.until, "place": excuse.place},
    }


def _fingerprint(finding: Finding) -> str:
    parts = (finding.rule, finding.file, finding.subject, finding.pointer)
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]
