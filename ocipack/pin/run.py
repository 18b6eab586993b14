"""One run: from what was found and answered to changed files, findings and a lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ocipack.errors import OcipackError, StoreError
from ocipack.lock import Entry, Lock
from ocipack.oci.descriptor import MANIFESTS
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.pin.locked import moved
from ocipack.pin.rewrite import rewrite
from ocipack.pin.scan import Found, Scan, Status
from ocipack.report import Finding, Severity

DIGEST = "image-digest"
UNRESOLVED = "image-unresolved"
REPLACED = "image-replaced"
PLATFORM = "image-platform"
MOVED = "image-moved"

Answers = Mapping[Reference, Entry | OcipackError]
"""What each reference resolved to, asked for with the digest that it has, or with its tag."""


@dataclass(slots=True)
class Pinned:
    """What a run comes to.

    `files` maps the names of changed files to their bytes before and after; `done` are the places
    that have a digest now, `already` those that had one, `refused` those where none can be
    written, with the reason; `failed` are references that could not be resolved.
    """

    files: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    done: list[tuple[Found, Digest]] = field(default_factory=list)
    already: list[tuple[Found, Digest]] = field(default_factory=list)
    refused: list[tuple[Found, str]] = field(default_factory=list)
    failed: dict[Reference, OcipackError] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def code(self) -> int:
        """0, or why something has no answer: 3 if a place could not say, else 1."""
        codes = {3 if isinstance(e, StoreError) else e.exit_code for e in self.failed.values()}
        return max(codes, default=0)


def wanted(made: Scan, *, everything: bool) -> dict[Reference, str]:
    """What has to be asked for, each once, and whether it is an image or an artifact.

    That is every reference without a digest; with `everything` those with one, too, by it.
    """
    found: dict[Reference, str] = {}
    for one in made.found:
        if one.reference is None or not one.counts:
            continue
        if one.status is Status.OPEN:
            found.setdefault(one.reference, one.site.kind)
        elif one.status is Status.PINNED and everything:
            found.setdefault(one.reference.at(_digest(one)), one.site.kind)
    return found


def pin(made: Scan, answers: Answers, before: Lock) -> Pinned:
    """Write the digests of `answers` wherever they are missing and belong.

    Each image stands by itself: one that could not be resolved keeps no other from being pinned.
    `before` is the lock of the last run, which is compared with the answers and decides nothing.
    """
    run = Pinned()
    run.failed = {key: a for key, a in answers.items() if isinstance(a, OcipackError)}
    digests: dict[str, dict[Found, Digest]] = {}
    for one in made.found:
        if not one.counts or one.reference is None:
            continue
        if one.status is Status.PINNED:
            run.already.append((one, _digest(one)))
        elif one.status is Status.OPEN:
            answer = answers.get(one.reference)
            if isinstance(answer, Entry):
                digests.setdefault(one.file, {})[one] = answer.content.digest
    for name, places in digests.items():
        page = made.pages[name]
        new = rewrite(page, places)
        if new.data != page.data:
            run.files[name] = (page.data, new.data)
        run.done += [(one, places[one]) for one in new.done]
        run.refused += new.refused
    run.findings = [*made.findings, *unresolved(made, run.refused)]
    run.findings += _about(made, answers, before)
    return run


def unresolved(made: Scan, refused: list[tuple[Found, str]]) -> Iterator[Finding]:
    """A finding for each place that gets no digest, and why."""
    for one in made.found:
        if one.status is Status.REPLACED:
            yield finding(REPLACED, f"{one.site.text}: {one.reason}", one, Severity.NOTE)
        elif one.status is Status.UNKNOWN:
            yield _unknown(one, one.reason)
        elif one.status is Status.OPEN and not one.counts:
            yield _unknown(one, "it may be an image, or not")
    for one, reason in refused:
        yield _unknown(one, reason)


def _unknown(one: Found, reason: str) -> Finding:
    severity = Severity.WARNING if one.counts else Severity.NOTE
    return finding(UNRESOLVED, f"{one.site.text or one.site.place}: {reason}", one, severity)


def checked(made: Scan) -> list[Finding]:
    """What keeps files from being pinned, as errors; no registry is asked.

    What nobody can say counts as not pinned: silence is no.
    """
    found = [replace(one, severity=Severity.ERROR) for one in made.findings]
    for one in made.found:
        if one.status is Status.OPEN and one.counts:
            hint = f"`ocipack pin {one.file}` writes it"
            message = f"{one.site.text} has no digest"
            found.append(finding(DIGEST, message, one, Severity.ERROR, hint))
    for said in unresolved(made, []):
        warns = said.severity is Severity.WARNING
        found.append(replace(said, severity=Severity.ERROR) if warns else said)
    return found


def _about(made: Scan, answers: Answers, before: Lock) -> Iterator[Finding]:
    """What the answers say that somebody should know: each once, where it is named first."""
    told: set[tuple[str, Reference]] = set()
    for one in made.found:
        if one.reference is None or not one.counts:
            continue
        answer = answers.get(one.reference)
        if not isinstance(answer, Entry):
            continue
        digest = answer.content.digest
        if one.status is Status.PINNED:
            if _digest(one) != digest:
                message = f"{one.reference} is {digest} now, and {_digest(one)} here"
                yield finding(MOVED, message, one, Severity.WARNING)
            continue
        for rule, message in _news(one, answer, before):
            if (rule, one.reference) not in told:
                told.add((rule, one.reference))
                yield finding(rule, message, one, Severity.WARNING)


def _news(one: Found, answer: Entry, before: Lock) -> Iterator[tuple[str, str]]:
    assert one.reference is not None  # it was asked for
    if one.site.kind == "image" and answer.content.media_type in MANIFESTS:
        yield PLATFORM, f"{one.reference} is made for one platform only"
    old = moved(before, one.reference, answer.content.digest)
    if old is not None:
        yield MOVED, f"{one.reference} is {answer.content.digest} now, and {old} in the lock"


def finding(rule: str, message: str, one: Found, severity: Severity, hint: str = "") -> Finding:
    """A finding about a place."""
    return Finding(
        rule,
        message,
        severity,
        one.file,
        one.line,
        one.column,
        one.pointer,
        one.site.place,
        hint,
    )


def _digest(one: Found) -> Digest:
    reference = one.site.reference
    assert reference is not None  # a pinned place names one
    assert reference.digest is not None
    return reference.digest
