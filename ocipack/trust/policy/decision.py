"""From what was proven about a name to a decision. Pure: no store, no signature, no clock.

`ask` finds out what a policy wants to know about one name; `opinion` says whether evidence meets
one policy. Evidence is what a signature has been checked for already: that is the work of `verify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ocipack.report import Finding, Severity
from ocipack.trust.policy.conditions import ABSENT
from ocipack.trust.policy.model import ENFORCE, FAIL, PASS
from ocipack.trust.statement import SIGN

if TYPE_CHECKING:
    from ocipack.oci.reference import Reference
    from ocipack.trust.keys import PublicKey
    from ocipack.trust.policy.model import (
        Attestation,
        Authority,
        Policy,
        VerificationPolicy,
    )

SHOWN = 80

VERIFIED, EXEMPTED, REJECTED = "verified", "exempted", "rejected"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something that the key `key` (its id) has signed about the subject.

    `predicate_type` is SIGN for a plain signature, which says `annotations`; an attestation of any
    other type says `predicate`. `form` is how it is kept, `place` where it was found.
    """

    key: str
    form: str
    place: str
    predicate_type: str
    annotations: Mapping[str, Any]
    predicate: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Waiver:
    """Why a policy was not asked, or did not count: `kind` is exempted, static or warned.

    `owner` and `until` (an ISO date) are an exemption's.
    """

    policy: str
    kind: str
    reason: str
    owner: str = ""
    until: str = ""

    def __str__(self) -> str:
        if self.kind == "exempted":
            return f"{self.owner} exempts it until {self.until}: {self.reason}"
        if self.kind == "static":
            return f"it passes everything: {self.reason}"
        return f"it only warns: {self.reason}"


@dataclass(frozen=True, slots=True)
class Question:
    """What a policy asks about `reference`.

    `asked` must be met with evidence; `waivers` are those that need none. `refusals` are findings
    that no evidence can change; with one of them nothing needs to be fetched. `notes` are
    findings without a say.
    """

    reference: Reference
    asked: tuple[VerificationPolicy, ...]
    waivers: tuple[Waiver, ...]
    refusals: tuple[Finding, ...]
    notes: tuple[Finding, ...]

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """The keys whose evidence matters, each once."""
        return tuple(dict.fromkeys(key for policy in self.asked for key in policy.keys))

    @property
    def signatures(self) -> bool:
        """Whether plain signatures matter."""
        return any(one.signature for policy in self.asked for one in policy.authorities)

    @property
    def predicate_types(self) -> frozenset[str]:
        """The types of attestations that matter."""
        return frozenset(
            attestation.predicate_type
            for policy in self.asked
            for authority in policy.authorities
            for attestation in authority.attestations
        )


@dataclass(frozen=True, slots=True)
class Opinion:
    """Whether a policy is met: by which evidence, else what is missing of which authority.

    `signed` and `needed` count the signatures of the authority that came closest.
    """

    policy: VerificationPolicy
    met: bool
    counted: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    signed: int = 0
    needed: int = 0


def ask(policy: Policy, reference: Reference) -> Question:
    """What `policy` asks about `reference`; that nothing covers it is a refusal."""
    asked: list[VerificationPolicy] = []
    waivers: list[Waiver] = []
    refusals: list[Finding] = []
    notes: list[Finding] = []
    covering = [p for p in policy.policies if any(g.covers(reference) for g in p.images)]
    for one in covering:
        waiver = _exempted(one, policy, reference, notes)
        if waiver is None and one.static == PASS:
            waiver = Waiver(one.name, "static", one.reason)
        if waiver is None and one.static == FAIL:
            message = f"policy {one.name} refuses it: {one.reason}"
            if one.mode == ENFORCE:
                refusals.append(Finding("policy-static", message, subject=str(reference)))
            else:
                waiver = Waiver(one.name, "warned", message)
        if waiver is not None:
            waivers.append(waiver)
        elif not one.static:
            asked.append(one)
    if not covering:
        message = f"no policy covers {reference}"
        hint = "what no policy covers is refused; name it in the images of one"
        refusals.append(Finding("policy-unmatched", message, subject=str(reference), hint=hint))
    return Question(reference, tuple(asked), tuple(waivers), tuple(refusals), tuple(notes))


def _exempted(
    one: VerificationPolicy, policy: Policy, reference: Reference, notes: list[Finding]
) -> Waiver | None:
    for exemption in one.exemptions:
        if not any(glob.covers(reference) for glob in exemption.images):
            continue
        until = exemption.until.isoformat()
        if policy.today is not None and policy.today <= exemption.until:
            return Waiver(one.name, "exempted", exemption.reason, exemption.owner, until)
        message = f"policy {one.name}: the exemption by {exemption.owner} ended on {until}"
        notes.append(Finding("policy-expired", message, Severity.NOTE, subject=str(reference)))
    return None


def opinion(
    policy: VerificationPolicy, reference: Reference, evidence: Sequence[Evidence]
) -> Opinion:
    """Whether `evidence` about `reference` meets `policy`.

    Annotations are looked at one signature at a time: what two of them say together counts for
    nothing, and a signature that does not say what is asked for is no signature here.
    """
    best = Opinion(policy, met=False)
    missing: list[str] = []
    for authority in policy.authorities:
        counted, gaps, signed = _authority(policy, authority, reference, evidence)
        if not gaps:
            return Opinion(policy, met=True, counted=counted)
        missing += gaps
        needed = authority.threshold if authority.signature else 0
        if not best.needed or signed > best.signed:
            best = Opinion(policy, met=False, signed=signed, needed=needed)
    return replace(best, missing=tuple(missing))


def verdict(question: Question, evidence: Sequence[Evidence]) -> str:
    """What follows from `evidence` and nothing else: verified, exempted or rejected."""
    if question.refusals:
        return REJECTED
    opinions = [opinion(policy, question.reference, evidence) for policy in question.asked]
    if not all(one.met for one in opinions if one.policy.mode == ENFORCE):
        return REJECTED
    met = all(one.met for one in opinions)
    return VERIFIED if met and not question.waivers else EXEMPTED


def _authority(
    policy: VerificationPolicy,
    authority: Authority,
    reference: Reference,
    evidence: Sequence[Evidence],
) -> tuple[tuple[Evidence, ...], list[str], int]:
    """What counts, what is missing, and how many keys signed."""
    known = [one for one in evidence if one.form in authority.forms]
    counted: dict[tuple[str, str], Evidence] = {}
    gaps: list[str] = []
    signed: dict[str, Evidence] = {}
    if authority.signature:
        trusted = {key.id for key in authority.keys}
        for one in known:
            wrong = one.predicate_type != SIGN or one.key not in trusted
            if not wrong and not complaint(policy, reference, one.annotations):
                signed.setdefault(one.key, one)
        if len(signed) < authority.threshold:
            gaps.append(
                f"authority {authority.name}: {len(signed)} of the {authority.threshold} keys "
                "that must have signed did"
            )
        counted |= {(key, SIGN): one for key, one in signed.items()}
    for wanted in authority.attestations:
        stated = _stated(wanted, known)
        if len(stated) < wanted.threshold:
            gaps.append(
                f"authority {authority.name}: attestation {wanted.name}: {len(stated)} of the "
                f"{wanted.threshold} keys that must have made it did"
            )
        counted |= {(key, wanted.name): one for key, one in stated.items()}
    return tuple(counted.values()), gaps, len(signed)


def _stated(wanted: Attestation, evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    """By key: the evidence that is this attestation, all its conditions met by each."""
    trusted = {key.id for key in wanted.keys}
    found: dict[str, Evidence] = {}
    for one in evidence:
        known = one.predicate_type == wanted.predicate_type and one.key in trusted
        if known and all(field.holds(one.predicate) for field in wanted.conditions):
            found.setdefault(one.key, one)
    return found


def complaint(
    policy: VerificationPolicy, reference: Reference, annotations: Mapping[str, Any]
) -> str:
    """Why a signature that says `annotations` does not count for `policy`; empty if it does."""
    for name, condition in policy.annotations:
        found = annotations.get(name, ABSENT)
        if not condition.holds(found):
            said = "nothing" if found is ABSENT else repr(found)[:SHOWN]
            return f"its signed annotation {name} says {said}, not {condition}"
    for name in policy.bind:
        wanted = bound(reference, name)
        found = annotations.get(name, ABSENT)
        if wanted is None or found != wanted:
            said = "nothing" if found is ABSENT else repr(found)[:SHOWN]
            asked = "no tag" if wanted is None else repr(wanted)
            return f"its signed annotation {name} says {said}, and {asked} was asked for"
    if policy.not_older_than is not None:
        return policy.not_older_than.complaint(annotations)
    return ""


def bound(reference: Reference, name: str) -> str | None:
    """What the signed annotation `name`, one of BINDINGS, must say; None if nothing can be right.

    Asked for by digest alone, content has no tag that a signature could be compared with.
    """
    if name == "repository":
        return reference.bare
    return reference.tag or (None if reference.digest is not None else "latest")


def complaints(
    policies: Iterable[VerificationPolicy], reference: Reference, evidence: Sequence[Evidence]
) -> Iterator[Finding]:
    """Say of each piece of evidence by a trusted key why one of `policies` did not count it."""
    for policy in policies:
        for authority in policy.authorities:
            for one in evidence:
                message = _complaint(policy, authority, reference, one)
                if message and one.predicate_type == SIGN:
                    yield Finding("signature-unfit", message, subject=one.place)
                elif message:
                    yield Finding("attestation-unfit", message, subject=one.place)


def _complaint(
    policy: VerificationPolicy, authority: Authority, reference: Reference, one: Evidence
) -> str:
    if one.predicate_type == SIGN:
        if not authority.signature or one.key not in {key.id for key in authority.keys}:
            return ""
        if one.form not in authority.forms:
            return f"authority {authority.name} takes no {one.form} form"
        return complaint(policy, reference, one.annotations)
    for wanted in authority.attestations:
        if wanted.predicate_type == one.predicate_type and one.key in {k.id for k in wanted.keys}:
            if one.form not in authority.forms:
                return f"authority {authority.name} takes no {one.form} form"
            for field in wanted.conditions:
                if not field.holds(one.predicate):
                    return f"attestation {wanted.name}: {field.pointer} is not {field.condition}"
    return ""
