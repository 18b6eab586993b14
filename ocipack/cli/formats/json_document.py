"""JSON form: one document, described by docs/schemas/result-v1.json."""

from __future__ import annotations

import json
import re
from typing import Any

from ocipack.cli.outcome import Result, failed

SCHEMA = "ocipack.dev/result/v1"

_HALVES = re.compile("[\ud800-\udfff]")


def write(result: Result) -> str:
    """The document, indented, members in their order."""
    return serialise(document(result))


def serialise(value: Any) -> str:
    """JSON for people and machines alike.

    Halves of characters, which not every reader takes, are shown by number.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _HALVES.sub(lambda m: f"\\\\u{ord(m[0]):04x}", text) + "\n"


def document(result: Result) -> dict[str, Any]:
    """What is written, before it is text."""
    outcome, error = result.outcome, result.error
    return {
        "schema": SCHEMA,
        "command": result.command,
        "exitCode": outcome.code,
        **outcome.data,
        **(failed(error) if error is not None else {}),
        "findings": [finding.as_dict() for finding in outcome.report.findings],
    }
