"""What is known about one file or stream after it was read and judged."""

from __future__ import annotations

import enum
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from ocipack.errors import malformed
from ocipack.report import Finding, Severity


class Shape(enum.Enum):
    """What a file turned out to be."""

    MANIFEST = "manifest"
    EMPTY = "empty"
    """Comments and empty documents."""
    OTHER = "other"
    """Something that does not claim to be a Kubernetes object."""


class Known(NamedTuple):
    """An object: what makes it the same as another, its API version, and the line it begins on."""

    group: str
    kind: str
    namespace: str
    name: str
    api_version: str
    line: int

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}"


@dataclass(slots=True)
class Verdict:
    """The outcome for one file, or for a part of a large one.

    `findings` leave `file` empty: the same content has the same verdict under every name.
    `strays` are findings about other files, which definitions of custom kinds bring along.
    `count` is the number of objects, `missing` how many of each kind had no schema. `claims`
    counts the documents that claim to be objects; `held` is what was found in the others.
    With `endless` aliases multiplied without bound, and what stands behind is not looked at.
    """

    shape: Shape = Shape.EMPTY
    documents: int = 0
    count: int = 0
    objects: list[Known] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    strays: list[Finding] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    claims: int = 0
    held: list[Finding] = field(default_factory=list)
    endless: bool = False

    def settle(self, *, named: bool) -> None:
        """Decide what the file is, once all of it was judged.

        What is held against documents that do not claim to be objects counts if others in the
        file do, or if the user named the file; else it is no manifest.
        """
        if self.claims or (named and self.held):
            self.shape = Shape.MANIFEST
            self.findings += self.held
        elif self.held:
            self.shape, self.documents, self.count = Shape.OTHER, 0, 0
            self.objects, self.findings, self.missing = [], [], Counter()
        self.held = []

    def add(self, part: Verdict) -> None:
        """Add what was found in a later part of the same stream."""
        if self.endless:
            return
        self.endless = part.endless
        self.documents += part.documents
        self.count += part.count
        self.claims += part.claims
        self.objects += part.objects
        self.findings += part.findings
        self.strays += part.strays
        self.held += part.held
        self.missing.update(part.missing)

    def dump(self) -> bytes:
        """The verdict as JSON, for the cache; `strays` are not part of it."""
        return json.dumps(
            [
                self.shape.value,
                self.documents,
                self.count,
                self.objects,
                [finding.as_dict() for finding in self.findings],
                self.missing,
            ],
            separators=(",", ":"),
        ).encode()

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Read what `dump` wrote. IntegrityError if it did not write this."""
        with malformed("verdict"):
            shape, documents, count, objects, findings, missing = json.loads(data)
            return cls(
                Shape(shape),
                documents,
                count,
                [Known(*known) for known in objects],
                [_finding(found) for found in findings],
                [],
                Counter(missing),
            )


def _finding(found: dict[str, Any]) -> Finding:
    severity = Severity(found.pop("severity"))
    return replace(Finding(**found), severity=severity)
