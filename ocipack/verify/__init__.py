"""Turn a name into proof, or refuse.

The name is resolved once and from then on only the digest is used; the subject's manifest is
always read and hashed. `gather` finds candidates, `judge` decides about each, the policy decides
about what they prove together, and the verdict is: every policy that covers the name is satisfied,
so Verified; else, if any place that could hold the answer could not be read, StoreError; else
Rejected. What a policy waives makes an Exempted, which is no proof. The search ends as soon as the
policy is satisfied, so a refusal has looked everywhere; what no evidence can change is refused
before anything is fetched. docs/verification.md says what a green result proves and what it does
not, docs/policy.md how policies are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError, NotFound, Rejected, StoreError
from ocipack.oci import store
from ocipack.oci.closure import closure
from ocipack.report import Finding, Report, Severity
from ocipack.trust.policy import decision
from ocipack.trust.policy.model import ENFORCE
from ocipack.verify import judge
from ocipack.verify.gather import Search
from ocipack.verify.proof import Exempted, Signature, Verified

if TYPE_CHECKING:
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.reference import Reference
    from ocipack.oci.store import Source
    from ocipack.trust.keys import PublicKey
    from ocipack.trust.policy import Policy
    from ocipack.trust.policy.decision import Evidence, Opinion, Question
    from ocipack.trust.policy.model import VerificationPolicy

__all__ = ["CHECKS", "EXPLAIN", "Exempted", "Signature", "Verified", "decide", "verify"]

EXPLAIN = "--explain shows what was found and why each was refused"
KEY_OF_A_FILE = (
    "`openssl pkey -pubin -in FILE -outform DER | sha256sum` says which key a file holds"
)

_IDS = 3

CHECKS = 256
"""Signatures that one verification computes, each key tried on each candidate counted."""


def verify(
    source: Source, reference: Reference, policy: Policy, *, content: bool = False
) -> Verified:
    """Prove `reference` against `policy`; as `decide`, but what is merely exempted is Rejected."""
    proof = decide(source, reference, policy, content=content)
    if isinstance(proof, Exempted):
        first = proof.waivers[0]
        raise Rejected(
            f"{proof.reference}: it is exempted, not proven: policy {first.policy}: {first}",
            report=proof.report,
            hint="--allow-exempted takes what its policy lets through without proof",
        )
    return proof


def decide(
    source: Source, reference: Reference, policy: Policy, *, content: bool = False
) -> Verified | Exempted:
    """Decide about `reference` under `policy`.

    `content` also reads and hashes everything below the manifest (a registry has checked that
    when it was pushed; a layout is a directory). Rejected, with a Report, if the answer is no;
    IntegrityError if content is not what it is said to be; StoreError if nothing can be known.
    """
    question = decision.ask(policy, reference)
    if question.refusals:  # (20)
        raise _refused(question)
    subject = source.resolve(reference.name)
    if reference.digest is not None and subject.digest != reference.digest:
        raise IntegrityError(f"{reference}: the source answered with {subject.digest}")
    pinned = reference.at(subject.digest)
    manifest = store.manifest(source, subject)
    search = Search(
        source,
        subject,
        signatures=question.signatures,
        attestations=bool(question.predicate_types),
    )
    trial = _Trial(question, search)
    if question.asked:
        trial.run(subject)
    if not trial.satisfied:
        raise _refusal(pinned, trial, search)
    if content:
        _intact(source, subject)
    return _result(pinned, subject, manifest, trial, search)


class _Trial:
    """One verification under way: what was proven so far, and what was refused."""

    def __init__(self, question: Question, search: Search) -> None:
        self.question, self.search = question, search
        self.keys = question.keys
        self.evidence: list[Evidence] = []
        self.findings: list[Finding] = list(question.notes)
        self._checks = CHECKS

    def opinions(self) -> list[Opinion]:
        """What each policy that was asked says now (13, 14, 18, 19)."""
        return [
            decision.opinion(policy, self.question.reference, self.evidence)
            for policy in self.question.asked
        ]

    @property
    def satisfied(self) -> bool:
        """Whether every policy that refuses anything is met (20)."""
        return all(one.met for one in self.opinions() if one.policy.mode == ENFORCE)

    @property
    def settled(self) -> bool:
        """Whether every policy is met, so that nothing more needs to be read."""
        return all(one.met for one in self.opinions())

    def complaints(self) -> Iterator[Finding]:
        """Why evidence by trusted keys did not count."""
        question = self.question
        return decision.complaints(question.asked, question.reference, self.evidence)

    def run(self, subject: Descriptor) -> None:
        """Judge candidates until the policy is satisfied or there are no more."""
        for claim in self._claims(subject):
            if self._checks < len(self.keys):
                error = StoreError(f"only {CHECKS} signatures are checked")
                self.search.unread.append((claim.place, error))
                return
            key = self._signer(claim)
            if key is None:
                self.findings.append(judge.stranger(claim))
                continue
            self.evidence.append(claim.evidence(key))
            self.findings.append(judge.good(claim, key))
            if self.settled:
                return

    def _claims(self, subject: Descriptor) -> Iterator[judge.Claim]:
        """Claims worth a look; those whose hint names no key of ours wait until the end.

        A thousand bundles of strangers cost a thousand reads, but no computing, before ours.
        """
        later = []
        wanted = self.question.predicate_types
        for candidate in self.search.candidates():
            claim = judge.claim(candidate, subject.digest, wanted)
            if isinstance(claim, Finding):
                self.findings.append(claim)
            elif judge.promising(claim, self.keys):
                yield claim
            else:
                later.append(claim)
        yield from later

    def _signer(self, claim: judge.Claim) -> PublicKey | None:
        """Which trusted key made `claim`, if any (4, 12, 17 of `judge`)."""
        for key in judge.order(claim, self.keys):
            self._checks -= 1
            if key.verifies(claim.signature, claim.signed):
                return key
        return None


def _result(
    pinned: Reference, subject: Descriptor, manifest: Manifest, trial: _Trial, search: Search
) -> Verified | Exempted:
    """The proof, unless something was waived."""
    opinions = trial.opinions()
    counted = dict.fromkeys(
        Signature(one.key, one.form, one.place, one.predicate_type)
        for opinion in opinions
        for one in opinion.counted
    )
    waivers = list(trial.question.waivers)
    for opinion in opinions:
        if not opinion.met:
            why = "; ".join(opinion.missing)
            if search.unread:
                why += f"; {search.unread[0][0]} could not be read"
            waivers.append(decision.Waiver(opinion.policy.name, "warned", why))
    unread = (_unread(place, error) for place, error in search.unread)
    unfit = trial.complaints()
    findings = [*search.findings, *trial.findings, *unread, *unfit]
    if not waivers:
        report = _report(findings, Severity.NOTE)
        return Verified(pinned, subject, manifest, tuple(counted), report)
    report = _report(findings, Severity.NOTE) + Report.of(
        Finding(
            "policy-waived",
            f"policy {waiver.policy} does not count: {waiver}",
            Severity.WARNING,
            subject=str(pinned),
        )
        for waiver in waivers
    )
    return Exempted(pinned, subject, manifest, tuple(counted), tuple(waivers), report)


def _intact(source: Source, subject: Descriptor) -> None:
    """Read and hash all that `subject` needs; raises what is wrong with it."""
    for target, manifest in closure(source, subject):
        if manifest is None:
            for _ in target.check(source.fetch(target)):
                pass


def _refused(question: Question) -> Rejected:
    """What no evidence can change."""
    first = question.refusals[0]
    report = Report.of((*question.refusals, *question.notes))
    return Rejected(f"{question.reference}: {first.message}", report=report, hint=first.hint)


def _refusal(pinned: Reference, trial: _Trial, search: Search) -> Exception:
    """Choose between "we could not find out" and "no"."""
    if search.unread:
        return _undecided(pinned, search)
    unmet = [one for one in trial.opinions() if not one.met and one.policy.mode == ENFORCE]
    findings = [*search.findings, *trial.findings, *trial.complaints()]
    unfit = list(decision.complaints([unmet[0].policy], trial.question.reference, trial.evidence))
    refused = {finding.rule for finding in findings if finding.severity is Severity.ERROR}
    message, hint = _words(unmet[0], refused, unfit)
    if len(trial.question.asked) > 1:
        message = f"policy {unmet[0].policy.name}: {message}"
    findings.append(Finding("signature-missing", message, subject=str(pinned), hint=hint))
    return Rejected(f"{pinned}: {message}", report=_report(findings, Severity.ERROR), hint=hint)


def _words(opinion: Opinion, refused: set[str], unfit: list[Finding]) -> tuple[str, str]:
    """What is missing, and what to do about it."""
    authorities = opinion.policy.authorities
    if unfit:
        return unfit[0].message, EXPLAIN
    if opinion.signed and not any(one.attestations for one in authorities):
        message = f"{opinion.signed} of the {opinion.needed} keys that must have signed did"
        return message, "it needs the signatures of other keys too"
    if any(one.attestations for one in authorities):
        return "; ".join(opinion.missing), EXPLAIN
    hint = "sign it with `ocipack sign`"
    if not refused:
        return "no signature found", hint
    if refused == {"signature-predicate"}:
        return "no signature found, only attestations", hint
    return f"no signature by a trusted key (trusted: {_ids(opinion.policy)})", KEY_OF_A_FILE


def _ids(policy: VerificationPolicy) -> str:
    keys = [key.id for key in policy.keys]
    more = f" and {len(keys) - _IDS} more" if len(keys) > _IDS else ""
    return ", ".join(keys[:_IDS]) + more


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
