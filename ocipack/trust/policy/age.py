"""Not older than: what a policy asks so that a signed version of the past cannot come back.

Older is said by the signer alone, in annotations that the signature covers: `version` (Semantic
Versioning 2.0.0, §11; a leading `v` is dropped) and `created` (RFC 3339). A tag, a listing or the
time of an upload is up to whoever writes to the registry, so they say nothing here. A signature
that does not say, or says it unreadably, is old.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from ocipack.errors import Misuse

VERSION, CREATED = "version", "created"
"""The signed annotations that are compared."""

_NUMBER = r"(0|[1-9][0-9]{0,17})"
_VERSION = re.compile(
    rf"v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)
_PART = re.compile(r"0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*", re.ASCII)
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_MICROSECONDS = re.compile(r"(\.[0-9]{6})[0-9]+")
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version, ready to be compared; `text` as written."""

    text: str
    order: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]; Misuse if it is something else."""
        match = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
        parts = match[4].split(".") if match is not None and match[4] else []
        if match is None or not all(_PART.fullmatch(part) for part in parts):
            raise Misuse(
                f"not a version: {text[:80]!r}", hint="MAJOR.MINOR.PATCH[-PRERELEASE] (semver.org)"
            )
        order = (
            *(int(match[i]) for i in (1, 2, 3)),
            not parts,  # a prerelease comes before its release
            tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in parts),
        )
        return cls(text, order)


def moment(text: str) -> datetime:
    """Read an RFC 3339 time; Misuse if it is none."""
    try:
        if _TIME.fullmatch(text):
            return datetime.fromisoformat(_MICROSECONDS.sub(r"\1", text))
    except ValueError:
        pass
    raise Misuse(f"not a time: {text[:80]!r}", hint="write YYYY-MM-DDTHH:MM:SSZ (RFC 3339)")


@dataclass(frozen=True, slots=True)
class Floor:
    """The oldest that is accepted, by version, time or both; what equals it is not older.

    Misuse if neither is given.
    """

    version: Version | None = None
    created: datetime | None = None

    def __post_init__(self) -> None:
        if self.version is None and self.created is None:
            raise Misuse("notOlderThan says neither version nor created")

    def complaint(self, annotations: Mapping[str, Any]) -> str:
        """Why signed `annotations` are too old, or do not say; empty if they are not."""
        if self.version is not None:
            said = annotations.get(VERSION)
            try:
                if Version.parse(_text(said)).order < self.version.order:
                    return f"version {said!r} is older than {self.version.text}"
            except Misuse:
                return f"it says no readable version: {str(said)[:80]!r}"
        if self.created is not None:
            said = annotations.get(CREATED)
            try:
                if moment(_text(said)) < self.created:
                    return f"created {said} is older than {self.created.isoformat()}"
            except Misuse:
                return f"it says no readable time of creation: {str(said)[:80]!r}"
        return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
