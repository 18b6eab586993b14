"""in-toto statements (in-toto/attestation, spec/v1/statement.md; v0.1 before it)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ocipack.errors import IntegrityError, malformed
from ocipack.oci import jsontext
from ocipack.oci.digest import Digest
from ocipack.trust import wire

V1 = "https://in-toto.io/Statement/v1"
V0_1 = "https://in-toto.io/Statement/v0.1"
SIGN = "https://sigstore.dev/cosign/sign/v1"
"""The predicate type of a plain signature; every other statement is an attestation."""

BINDABLE = ("tag", "repository", "environment", "source", "revision", "created", "version")
"""What a signature can bind its subject to: the annotations that we sign have these names."""

_SUBJECTS, _DIGESTS = 1024, 32
_SUBJECT: wire.Shape = {
    "name": wire.TEXT,
    "digest!": wire.OBJECT,
    "annotations": wire.OBJECT,
    "uri": wire.TEXT,
    "content": wire.BASE64,
    "downloadLocation": wire.TEXT,
    "mediaType": wire.TEXT,
}
_MEMBERS = frozenset({"_type", "subject", "predicateType", "predicate"})


@dataclass(frozen=True, slots=True)
class Subject:
    """What a statement speaks about: digests by algorithm, a name if it gives one."""

    digests: Mapping[str, str]
    name: str
    annotations: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim of type `predicate_type` about `subjects`; true only if its signature is."""

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: Mapping[str, Any]

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Read strictly; IntegrityError for an unknown, repeated or missing member.

        `predicate` may be missing or null, since cosign before 3.0.5 wrote none.
        """
        with malformed("signed statement"):
            document = jsontext.decode(raw)
            if not isinstance(document, dict):
                raise IntegrityError("signed statement: not a JSON object")
            unknown = sorted(set(document) - _MEMBERS)
            if unknown:
                raise IntegrityError(f"signed statement: unknown member {unknown[0][:60]!r}")
            if document["_type"] not in (V1, V0_1):
                said = str(document["_type"])[:80]
                raise IntegrityError(f"signed statement: its _type is {said!r}")
            wire.check(document["subject"], [_SUBJECT, _SUBJECTS], "subject")
            wire.check(document["predicateType"], wire.TEXT, "predicateType")
            predicate = document.get("predicate")
            if predicate is not None:
                wire.check(predicate, wire.OBJECT, "predicate")
            subjects = tuple(_subject(node) for node in document["subject"])
            return cls(subjects, document["predicateType"], predicate or {})

    def about(self, digest: Digest) -> Subject | None:
        """Find the subject that is `digest`, compared as text: upper case is another digest."""
        return next(
            (s for s in self.subjects if s.digests.get(digest.algorithm) == digest.hex), None
        )


def _subject(node: Mapping[str, Any]) -> Subject:
    digests = node["digest"]
    if len(digests) > _DIGESTS or not all(isinstance(hex_, str) for hex_ in digests.values()):
        raise IntegrityError("signed statement: a subject's digests must be text, and few")
    return Subject(digests, node.get("name", ""), node.get("annotations", {}))


def signing(digest: Digest, annotations: Mapping[str, str]) -> bytes:
    """Build the statement of a plain signature, as cosign 3 does."""
    subject = {
        "digest": {digest.algorithm: digest.hex},
        "annotations": dict(sorted(annotations.items(), key=lambda item: item[0].encode())),
    }
    return jsontext.encode(
        {"_type": V1, "subject": [subject], "predicateType": SIGN, "predicate": {}}
    )
