"""Whether what a lock says still holds: each reference is asked for again.

A lock is text that anybody can edit. So nothing that it says is taken for an answer here: the tag,
the digest and what is attached are looked up where the image is.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ocipack.errors import NotFound, OcipackError
from ocipack.lock import Attached, Entry, Lock
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source
from ocipack.pin.resolve import JOBS, Open, each


class Standing(enum.Enum):
    """What became of an entry; GONE and MOVED say more than LOST, UNDECIDED says nothing."""

    UNCHANGED = "unchanged"
    MOVED = "moved"
    GONE = "gone"
    LOST = "signature lost"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One entry and its standing.

    `now` is what the tag points at now, None if nothing or not known; `lost` is what was attached
    and is not any more; `error` is why nothing could be decided.
    """

    entry: Entry
    standing: Standing
    now: Digest | None = None
    lost: tuple[Attached, ...] = ()
    error: OcipackError | None = None


def check(lock: Lock, opened: Open, *, jobs: int = JOBS) -> list[Verdict]:
    """The standing of every entry, in the lock's order; `opened` opens a repository to read."""
    by_key = {entry.reference.at(entry.content.digest): entry for entry in lock.entries}
    answers: Mapping[Reference, Verdict | OcipackError] = each(
        by_key, lambda key: stands(opened(key), by_key[key]), jobs=jobs
    )
    found = []
    for key, entry in by_key.items():
        answer = answers[key]
        if isinstance(answer, OcipackError):
            answer = Verdict(entry, Standing.UNDECIDED, error=answer)
        found.append(answer)
    return found


def stands(source: Source, entry: Entry) -> Verdict:
    """The standing of one entry whose repository is `source`.

    1. The digest is asked for unless the tag still points at it: GONE without it.
    2. The tag points at the digest, else MOVED.
    3. What was attached is attached, else LOST. Tags that are appended to may have another
       digest now.
    """
    digest = entry.content.digest
    now = _resolved(source, entry.reference.tag) if entry.reference.tag else digest
    if entry.reference.tag is None or now != digest:
        there = _resolved(source, str(digest))
        if there is None:
            return Verdict(entry, Standing.GONE, now if entry.reference.tag else None)
    if now != digest:
        return Verdict(entry, Standing.MOVED, now)
    lost = _lost(source, entry)
    verdict = Verdict(entry, Standing.UNCHANGED, digest)
    return replace(verdict, standing=Standing.LOST, lost=lost) if lost else verdict


def _resolved(source: Source, name: str) -> Digest | None:
    try:
        return source.resolve(name).digest
    except NotFound:
        return None


def _lost(source: Source, entry: Entry) -> tuple[Attached, ...]:
    lost = [one for one in entry.attached if one.via == "tag" and not _resolved(source, one.name)]
    referrers = {one.digest: one for one in entry.attached if one.via == "referrer"}
    if referrers:
        here = {found.digest for found in source.referrers(entry.content)}
        lost += [one for digest, one in referrers.items() if digest not in here]
    return tuple(sorted(lost))
