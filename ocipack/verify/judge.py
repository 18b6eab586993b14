"""Decide what a candidate is worth. Pure: bytes in, a claim or a refusal out.

A signature of digest D by a trusted key K is accepted when all of this holds, in this order. The
cheap checks stand first so that strangers cannot make us compute; what is parsed is exactly the
bytes that are then verified.

A layer of the `.sig` manifest:

1. carries a signature, in base64
2. its payload is simple signing, read strictly: no member twice, the `type` that cosign writes
3. the payload names D
4. K made the signature, over the payload as stored

A referrer:

5. names D as its own subject, whatever the listing says
6. holds a bundle v0.3, read strictly: no unknown member, none twice, one DSSE signature
7. the bundle says that a key made it, not a certificate
8. the envelope holds an in-toto statement
9. the statement is of version 1 or 0.1, read strictly
10. its predicate type is cosign's plain signature: an attestation is no signature
11. one of its subjects is D
12. K made the signature, over the pre-authentication encoding of the payload as stored

An attestation of type T, where a policy asks for one. A layer of the `.att` manifest

15. is an envelope, read strictly: no unknown member, none twice, one signature

and a referrer passes 5, 6 and 7. For both 8, 9 and 11 hold as above, and

16. its predicate type is exactly T, which is never the plain signature's
17. K made the signature, over the pre-authentication encoding of the payload as stored

And for all of them together (`ocipack.trust.policy.decision`):

13. each key counts once, in however many forms and places it signed
14. at least as many keys as the threshold of the authority, or of the attestation
18. a signature counts only if its own signed annotations are what the policy asks for, equal the
    name that was asked for where they are bound to it, and are not older than allowed
19. an attestation counts only if all conditions hold of the predicate in the bytes verified
20. every policy that covers the name is met by one of its authorities alone, and one does cover it
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ocipack.errors import IntegrityError, malformed
from ocipack.oci import jsontext
from ocipack.report import Finding, Severity
from ocipack.trust import cosign, dsse
from ocipack.trust.bundle import Bundle
from ocipack.trust.policy.decision import Evidence
from ocipack.trust.statement import SIGN, Statement, Subject
from ocipack.verify.gather import Attached, Candidate, Layer, Referrer

if TYPE_CHECKING:
    from ocipack.oci.digest import Digest
    from ocipack.trust.keys import PublicKey

LEGACY, BUNDLE = "legacy", "bundle"

_HASH = 32
_SHOWN = 120
_RAW = frozenset({64, 96, 132})
_SEQUENCE = 0x30


@dataclass(frozen=True, slots=True)
class Claim:
    """A candidate that says the right thing; only its signature is still to be checked.

    `signed` is what `signature` must cover. `hint` names the key in a bundle (untrusted).
    `annotations` are the signed ones; an attestation has the type and content of its predicate.
    """

    form: str
    place: str
    signed: bytes
    signature: bytes
    hint: str
    annotations: Mapping[str, Any]
    predicate_type: str = SIGN
    predicate: Mapping[str, Any] = field(default_factory=dict)

    def evidence(self, key: PublicKey) -> Evidence:
        """What this is once `key` is known to have made it."""
        return Evidence(
            key.id, self.form, self.place, self.predicate_type, self.annotations, self.predicate
        )


class _No(Exception):
    """A check failed; `rule` says which kind."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


def claim(
    candidate: Candidate, digest: Digest, predicate_types: frozenset[str] = frozenset()
) -> Claim | Finding:
    """Check everything about `candidate` but its signature (1-3, 5-11, 15, 16).

    `predicate_types` are the attestations asked for, beside plain signatures.
    """
    try:
        if isinstance(candidate, Layer):
            return _layer(candidate, digest)
        if isinstance(candidate, Attached):
            return _attached(candidate, digest, predicate_types - {SIGN})
        return _referrer(candidate, digest, predicate_types | {SIGN})
    except _No as e:
        return Finding(e.rule, str(e), subject=candidate.place)
    except IntegrityError as e:
        return Finding("signature-malformed", str(e), subject=candidate.place)


def order(claim: Claim, keys: Iterable[PublicKey]) -> list[PublicKey]:
    """Put the key that the hint names first. Order only: every key is tried."""
    return sorted(keys, key=lambda key: key.hint != claim.hint)


def promising(claim: Claim, keys: Iterable[PublicKey]) -> bool:
    """Whether to try `claim` at once, rather than after all others: its hint is one of ours."""
    return claim.form == LEGACY or any(key.hint == claim.hint for key in keys)


def good(claim: Claim, key: PublicKey) -> Finding:
    """Say that `key` made `claim`."""
    by = f"signed by {key.algorithm} key {key.id}"
    if claim.predicate_type == SIGN:
        message = f"{claim.form}: {by}"
        return Finding("signature-good", message, Severity.NOTE, subject=claim.place)
    message = f"{claim.form}: attestation {claim.predicate_type[:_SHOWN]!r} {by}"
    return Finding("attestation-good", message, Severity.NOTE, subject=claim.place)


def stranger(claim: Claim) -> Finding:
    """Say that no trusted key made `claim` (4, 12)."""
    message = f"{claim.form}: no trusted key made this signature"
    if (key := _named(claim.hint)) is not None:
        message += f"; it names the key {key}"
    size = len(claim.signature)
    if size in _RAW and claim.signature[:2] != bytes([_SEQUENCE, size - 2]):
        message += "; it may be in the raw form r‖s, and only ASN.1 DER is read"
    return Finding("signature-foreign", message, subject=claim.place)


def _named(hint: str) -> str | None:
    """The id of the key that a bundle names, if it does so as cosign and we do."""
    try:
        found = base64.b64decode(hint, validate=True)
    except ValueError:
        return None
    return found.hex() if len(found) == _HASH else None


def _layer(found: Layer, digest: Digest) -> Claim:
    signature = cosign.signature(found.layer)  # (1)
    said = cosign.Claim.parse(found.payload)  # (2)
    if said.digest != digest:  # (3)
        raise _No("signature-digest", f"legacy: it signs another digest, {said.digest}")
    return Claim(LEGACY, found.place, found.payload, signature, "", said.annotations)


def _attached(found: Attached, digest: Digest, wanted: frozenset[str]) -> Claim:
    with malformed("attestation"):
        envelope = dsse.Envelope.from_dict(jsontext.decode(found.envelope))  # (15)
    if len(envelope.signatures) != 1:  # (15)
        count = len(envelope.signatures)
        raise _No("signature-malformed", f"attestation: exactly one signature, not {count}")
    said, _ = _stated("attestation", envelope, digest, wanted)
    return Claim(
        LEGACY,
        found.place,
        envelope.signed,
        envelope.signatures[0],
        "",
        {},
        said.predicate_type,
        said.predicate,
    )


def _referrer(found: Referrer, digest: Digest, wanted: frozenset[str]) -> Claim:
    if found.subject != digest:  # (5)
        raise _No("signature-subject", f"bundle: it is attached to {found.subject or 'nothing'}")
    bundle = Bundle.parse(found.bundle)  # (6)
    if bundle.hint is None:  # (7)
        raise _No("signature-certificate", "bundle: made with a certificate, not with a key")
    said, subject = _stated("bundle", bundle.envelope, digest, wanted)
    return Claim(
        BUNDLE,
        found.place,
        bundle.envelope.signed,
        bundle.signature,
        bundle.hint,
        subject.annotations,
        said.predicate_type,
        said.predicate,
    )


def _stated(
    what: str, envelope: dsse.Envelope, digest: Digest, wanted: frozenset[str]
) -> tuple[Statement, Subject]:
    """The statement in `envelope`, which is about `digest` and of a type that is `wanted`."""
    if envelope.payload_type != dsse.IN_TOTO:  # (8)
        said = envelope.payload_type[:_SHOWN]
        raise _No("signature-malformed", f"{what}: its payload is {said!r}, not {dsse.IN_TOTO}")
    statement = Statement.parse(envelope.payload)  # (9)
    if statement.predicate_type not in wanted:  # (10, 16)
        said = statement.predicate_type[:_SHOWN]
        if said == SIGN:
            raise _No("signature-predicate", f"{what}: a plain signature is no attestation")
        raise _No("signature-predicate", f"{what}: an attestation ({said!r}) is no signature")
    subject = statement.about(digest)
    if subject is None:  # (11)
        raise _No("signature-digest", f"{what}: it signs another digest")
    return statement, subject
