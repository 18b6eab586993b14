"""Turn a name into proof, or refuse.

The name is resolved once and from then on only the digest is used; the subject's manifest is
always read and hashed. `gather` finds candidates, `judge` decides about each, and the verdict is:
the policy is satisfied, so Verified; else, if any place that could hold the answer could not be
read, StoreError; else Rejected. The search ends as soon as the policy is satisfied, so a refusal
has looked everywhere. docs/verification.md says what a green result proves and what it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError, NotFound, Rejected, StoreError
from ocipack.oci import store
from ocipack.oci.closure import closure
from ocipack.report import Finding, Report, Severity
from ocipack.verify import judge
from ocipack.verify.gather import Search

if TYPE_CHECKING:
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.reference import Reference
    from ocipack.oci.store import Source
    from ocipack.trust.keys import PublicKey
    from ocipack.trust.policy import Policy

CHECKS = 256
"""Signatures that one verification computes, each key tried on each candidate counted."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One accepted signature: by which key (its id), in which form, found where."""

    key: str
    form: str
    place: str


@dataclass(frozen=True, slots=True)
class Verified:
    """Proof that `reference`, pinned to a digest, met its policy. Only `verify` makes one.

    `manifest` is the subject's, whose bytes were hashed; `descriptor` describes it. `signers` has
    one entry for each key that counted; `report` tells of everything that was looked at.
    """

    reference: Reference
    descriptor: Descriptor
    manifest: Manifest
    signers: tuple[Signature, ...]
    report: Report


def verify(
    source: Source, reference: Reference, policy: Policy, *, content: bool = False
) -> Verified:
    """Prove `reference` against `policy`.

    `content` also reads and hashes everything below the manifest (a registry has checked that
    when it was pushed; a layout is a directory). Rejected, with a Report, if the answer is no;
    IntegrityError if content is not what it is said to be; StoreError if nothing can be known.
    """
    subject = source.resolve(reference.name)
    if reference.digest is not None and subject.digest != reference.digest:
        raise IntegrityError(f"{reference}: the source answered with {subject.digest}")
    pinned = reference.at(subject.digest)
    manifest = store.manifest(source, subject)
    search = Search(source, subject)
    trial = _Trial(policy, search)
    trial.run(subject)
    if not trial.satisfied:
        raise _refusal(pinned, trial, search)
    if content:
        _intact(source, subject)
    unread = (_unread(place, error) for place, error in search.unread)
    report = _report([*search.findings, *trial.findings, *unread], Severity.NOTE)
    return Verified(pinned, subject, manifest, tuple(trial.signers.values()), report)


class _Trial:
    """One verification under way: who signed so far, and what was refused."""

    def __init__(self, policy: Policy, search: Search) -> None:
        self.policy, self.search = policy, search
        self.signers: dict[str, Signature] = {}
        self.findings: list[Finding] = []
        self._checks = CHECKS

    @property
    def satisfied(self) -> bool:
        """Whether enough different keys have signed (13, 14 of `judge`)."""
        return len(self.signers) >= self.policy.threshold

    def run(self, subject: Descriptor) -> None:
        """Judge candidates until the policy is satisfied or there are no more."""
        for claim in self._claims(subject):
            if self._checks < len(self.policy.keys):
                error = StoreError(f"only {CHECKS} signatures are checked")
                self.search.unread.append((claim.place, error))
                return
            key = self._signer(claim)
            if key is None:
                self.findings.append(judge.stranger(claim))
                continue
            self.signers.setdefault(key.id, Signature(key.id, claim.form, claim.place))
            message = f"{claim.form}: signed by {key.algorithm} key {key.id}"
            self.findings.append(
                Finding("signature-good", message, Severity.NOTE, subject=claim.place)
            )
            if self.satisfied:
                return

    def _claims(self, subject: Descriptor) -> Iterator[judge.Claim]:
        """Claims worth a look; those whose hint names no key of ours wait until the end.

        A thousand bundles of strangers cost a thousand reads, but no computing, before ours.
        """
        later = []
        for candidate in self.search.candidates():
            claim = judge.claim(candidate, subject.digest)
            if isinstance(claim, Finding):
                self.findings.append(claim)
            elif judge.promising(claim, self.policy.keys):
                yield claim
            else:
                later.append(claim)
        yield from later

    def _signer(self, claim: judge.Claim) -> PublicKey | None:
        """Which trusted key made `claim`, if any (4, 12 of `judge`)."""
        for key in judge.order(claim, self.policy.keys):
            self._checks -= 1
            if key.verifies(claim.signature, claim.signed):
                return key
        return None


def _intact(source: Source, subject: Descriptor) -> None:
    """Read and hash all that `subject` needs; raises what is wrong with it."""
    for target, manifest in closure(source, subject):
        if manifest is None:
            for _ in target.check(source.fetch(target)):
                pass


def _refusal(pinned: Reference, trial: _Trial, search: Search) -> Exception:
    """Choose between "we could not find out" and "no"."""
    if search.unread:
        return _undecided(pinned, search)
    findings = [*search.findings, *trial.findings]
    signed, needed = len(trial.signers), trial.policy.threshold
    refused = {finding.rule for finding in findings if finding.severity is Severity.ERROR}
    hint = "sign it with `ocipack sign`"
    if signed:
        message = f"{signed} of the {needed} keys that must have signed did"
        hint = "it needs the signatures of other keys too"
    elif not refused:
        message = "no signature found"
    elif refused == {"signature-predicate"}:
        message = "no signature found, only attestations"
    else:
        message = "no signature by a trusted key"
        hint = "--explain shows what was found and why each was refused"
    findings.append(Finding("signature-missing", message, subject=str(pinned), hint=hint))
    return Rejected(f"{pinned}: {message}", report=_report(findings, Severity.ERROR), hint=hint)


def _undecided(pinned: Reference, search: Search) -> StoreError:
    place, first = search.unread[0]
    more = len(search.unread) - 1
    rest = f" (and {more} more place{'s' if more > 1 else ''})" if more else ""
    kind = StoreError if isinstance(first, NotFound) else type(first)
    error = kind(
        f"{pinned}: no trusted signature found, and {place} could not be read: {first}{rest}",
        hint=first.hint or "the answer may be there, so this is neither yes nor no",
    )
    error.__cause__ = first
    return error


def _unread(place: str, error: StoreError) -> Finding:
    message = f"could not be read: {error}"
    return Finding("signature-unread", message, Severity.NOTE, subject=place, hint=error.hint)


def _report(findings: list[Finding], refused: Severity) -> Report:
    """Collect `findings`; what was refused beside a good signature is only a note."""
    return Report.of(
        replace(finding, severity=refused) if finding.severity is Severity.ERROR else finding
        for finding in findings
    )
