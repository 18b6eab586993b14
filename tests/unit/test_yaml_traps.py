"""Every YAML trap, read as kubectl 1.37 and its kustomize read it (tests/vectors/traps).

`truth.json` holds what the tools printed, with the frame of the object (`apiVersion`, `kind:
ConfigMap`, `metadata: {name: t}`) left out and floats marked. What the tools do after reading
(typed decoding of metadata by kubectl) is acted out here, not in the reader.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import resources
from ocipack.k8s.yaml.documents import read
from ocipack.k8s.yaml.scalars import Dialect

TRAPS = Path(__file__).parent.parent / "vectors" / "traps"
TRUTH: dict[str, dict[str, str]] = json.loads((TRAPS / "truth.json").read_text())


def go_number(value: float) -> float | str:
    """A float as Go prints it into JSON, read back; the truth marks those that stay floats."""
    if abs(value) < 1e21 and value.is_integer():
        digits = f"{value!r}"
        mantissa, _, exponent = digits.partition("e")
        whole, _, fraction = mantissa.partition(".")
        return int((whole + fraction.rstrip("0")).ljust(len(whole) + int(exponent or 0), "0"))
    return f"<float>{value!r}"


def printed(value: Any) -> Any:
    if isinstance(value, float):
        return go_number(value)
    if isinstance(value, Mapping):
        return {k: printed(v) for k, v in value.items()}
    return [printed(v) for v in value] if isinstance(value, list) else value


def typed(value: dict[str, Any]) -> None:
    """ObjectMeta's maps of strings, as Go decodes them: null is empty, a number is an error."""
    for field in ("labels", "annotations"):
        found = value.get("metadata", {}).get(field) or {}
        for key, text in found.items():
            if text is not None and not isinstance(text, str):
                raise IntegrityError(f"{field}: not text: {key}")
            found[key] = text or ""


def outcome(name: str, dialect: Dialect) -> str:
    path = next(TRAPS.glob(f"{name}.*"))
    try:
        found = list(resources(read(path.read_bytes(), dialect, strict=False), dialect))
        assert all(r.kind and r.api_version for r in found), "kind or apiVersion is missing"
        values = [dict(r.value) for r in found]
        if dialect is Dialect.KUBECTL:
            for value in values:
                typed(value)
    except (IntegrityError, AssertionError) as e:
        return f"ERR {e}"
    for value in values:
        value.pop("apiVersion")
        if value["kind"] == "ConfigMap":
            value.pop("kind")
        if value.get("metadata") == {"name": "t"}:
            value.pop("metadata")
        if value.get("kind") == "Pod":
            value.pop("metadata", None)
    return json.dumps([printed(v) for v in values], sort_keys=True)


@pytest.mark.parametrize("name", sorted(TRUTH))
@pytest.mark.parametrize("dialect", list(Dialect), ids=lambda d: d.value)
def test_read_as_the_tool_reads(name: str, dialect: Dialect) -> None:
    wanted = TRUTH[name]["kubectl" if dialect is Dialect.KUBECTL else "kustomize"]
    found = outcome(name, dialect)
    if wanted.startswith("ERR"):
        assert found.startswith("ERR"), found
    else:
        assert json.loads(found) == json.loads(wanted)
