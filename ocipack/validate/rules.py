"""Findings of validation by the table of rules (ocipack/rules): severity, place and words."""

from __future__ import annotations

from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import join
from ocipack.report import Finding, Severity
from ocipack.rules.objects import OBJECTS as RULES
from ocipack.validate.objects import finding

Path = tuple[str | int, ...]

__all__ = ["RULES", "Path", "found", "spell"]


def spell(path: Path) -> str:
    """`path` as the API server writes it: `spec.containers[0].name`, `metadata.labels[a/b]`."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif part.replace("_", "a").replace("-", "a").replace("$", "a").isalnum():
            out += f".{part}" if out else part
        else:
            out += f"[{part}]"
    return out or "(root)"


def found(
    rule: str,
    resource: Resource,
    message: str,
    path: Path = (),
    *,
    hint: str = "",
    severity: Severity | None = None,
) -> Finding:
    """A finding of `rule` about the value at `path` of `resource`."""
    return finding(
        rule,
        message,
        resource,
        pointer=join(*path),
        severity=severity or RULES[rule].severity,
        hint=hint,
    )
