"""What became of each item of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ocipack import errors
from ocipack.copy.count import Copied
from ocipack.copy.plan import Kind
from ocipack.errors import OcipackError, Rejected
from ocipack.mirror.model import Source
from ocipack.mirror.plan import Item
from ocipack.mirror.relocate import digest_tag
from ocipack.oci.digest import Digest
from ocipack.report import Finding, Severity

DIGEST_TAGGED = "digest tags"
_NOTHING = {"count": 0, "bytes": 0}
_IDLE = Copied()


class Outcome(StrEnum):
    """What became of an item; a dry run has WOULD_COPY and WOULD_OVERWRITE in their place."""

    COPIED = "copied"
    OVERWRITTEN = "overwritten"
    SKIPPED = "skipped"
    DRIFTED = "drifted"
    FAILED = "failed"
    WOULD_COPY = "would-copy"
    WOULD_OVERWRITE = "would-overwrite"


PLACED = frozenset({Outcome.COPIED, Outcome.OVERWRITTEN, Outcome.SKIPPED})
"""Outcomes after which the target has what the source has."""


@dataclass(frozen=True, slots=True)
class Result:
    """One item and its outcome.

    `digest` is what the source is, None if that was not found out, or not asked for; `before` is
    what the tag at the target named. `proof` is `verified`, `exempted`, `unsigned` if nothing need
    be proven, or empty if it was not looked into. `done` is what moved, or would. `left_out` are
    entries of indexes that were not wanted, `lacking` platforms that an index does not have.
    `moved` is what the tag of a lock's entry is at the source now, if that is something else.
    `gone` is what the source lists as attached, and does not have.
    """

    item: Item
    outcome: Outcome
    digest: Digest | None = None
    before: Digest | None = None
    proof: str = ""
    done: Copied = _IDLE
    left_out: int = 0
    lacking: tuple[str, ...] = ()
    moved: Digest | None = None
    gone: tuple[Digest, ...] = ()
    error: OcipackError | None = None

    @property
    def name(self) -> str:
        """The tag at the target; empty if it is made of a digest that is not known."""
        return self.item.name or (digest_tag(self.digest) if self.digest is not None else "")

    @property
    def place(self) -> str:
        """Where it is at the target, as a place on the command line, with the digest there."""
        there = self.before if self.outcome is Outcome.DRIFTED else self.digest
        tag = f":{self.name}" if self.name else ""
        digest = f"@{there}" if there is not None else ""
        return f"oci://{self.item.target}{tag}{digest}"

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: what says something."""
        said: dict[str, Any] = {
            "source": str(self.item.reference),
            "kind": self.item.source.kind,
            "target": f"oci://{self.item.target}" + (f":{self.name}" if self.name else ""),
            "outcome": str(self.outcome),
            "digest": str(self.digest or ""),
            "before": str(self.before or ""),
            "proof": self.proof,
            "moved": {"count": self.done.copied, "bytes": self.done.copied_bytes},
            "mounted": {"count": self.done.mounted, "bytes": self.done.mounted_bytes},
            "there": {"count": self.done.skipped, "bytes": self.done.skipped_bytes},
            "kinds": dict(self.done.kinds),
            "leftOut": self.left_out,
            "lackingPlatforms": list(self.lacking),
            "sourceTagMovedTo": str(self.moved or ""),
            "gone": list(map(str, self.gone)),
        }
        if self.error is not None:
            said["error"] = _failure(self.error)
        return {key: value for key, value in said.items() if value and value != _NOTHING}

    def findings(self) -> Iterable[Finding]:
        """What somebody may have to look at, where the mirror file says it."""
        subject = str(self.item.reference)
        where = _where(self.item.source)
        if self.outcome is Outcome.DRIFTED:
            yield Finding(
                "mirror-drifted",
                f"{self.item.target}:{self.name} is at {self.before}, and the source is at "
                f"{self.digest}",
                subject=subject,
                hint="look who moved which of them; overwrite: true, or --overwrite, follows the "
                "source",
                **where,
            )
        if self.left_out:
            yield Finding(
                "mirror-sparse",
                f"entries left out of the index: {self.left_out}; its bytes are as they were",
                Severity.NOTE,
                subject=subject,
                **where,
            )
        if self.lacking:
            yield Finding(
                "mirror-platform",
                f"it is not built for {', '.join(self.lacking)}",
                Severity.WARNING,
                subject=subject,
                **where,
            )
        for digest in self.gone:
            yield Finding(
                "mirror-gone",
                f"{digest} is listed as attached to it, and is not there",
                Severity.WARNING,
                subject=subject,
                **where,
            )
        if self.moved is not None:
            yield Finding(
                "image-moved",
                f"the tag is at {self.moved} now; {self.digest}, which the lock says, was taken",
                Severity.WARNING,
                subject=subject,
                **where,
            )


def _where(source: Source) -> dict[str, Any]:
    file, line, column = source.place.rsplit(":", 2) if source.place else ("", "0", "0")
    return {"file": file, "line": int(line), "column": int(column)}


def failed(error: OcipackError) -> dict[str, Any]:
    """The JSON form of a source that could not be planned: why."""
    return {"outcome": str(Outcome.FAILED), "error": _failure(error)}


def _failure(error: OcipackError) -> dict[str, str]:
    public = next(kind for kind in type(error).__mro__ if kind.__module__ == errors.__name__)
    said = {"kind": public.__name__, "message": str(error), "hint": error.hint}
    return {key: value for key, value in said.items() if value}


def counts(results: Iterable[Result]) -> dict[str, int]:
    """How many items had which outcome, in the order of `Outcome`; those that happened."""
    found = dict.fromkeys(Outcome, 0)
    for one in results:
        found[one.outcome] += 1
    return {str(outcome): count for outcome, count in found.items() if count}


def kinds(results: Iterable[Result]) -> dict[str, int]:
    """How much of each kind belongs to what was looked into, in the order of the counts."""
    found: Counter[str] = Counter()
    for one in results:
        found.update(one.done.kinds)
    return {name: found[name] for name in (*map(str, Kind), DIGEST_TAGGED) if found[name]}


def code(results: Iterable[Result], errors: Iterable[OcipackError]) -> int:
    """The exit code: 1 if something was refused or drifted, which running again does not mend.

    Else 3 if something could not be found out or done, else 0.
    """
    failures = [*errors]
    drifted = False
    for one in results:
        drifted = drifted or one.outcome is Outcome.DRIFTED
        failures += [one.error] if one.error is not None else []
    if drifted or any(isinstance(error, Rejected) for error in failures):
        return Rejected.exit_code
    return max((error.exit_code for error in failures), default=0)
