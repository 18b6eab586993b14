"""Sigstore bundles v0.3 and how they hang on an artifact.

Sources: sigstore/protobuf-specs, protos/sigstore_bundle.proto; sigstore/cosign,
specs/BUNDLE_SPEC.md. A bundle is one JSON document: an envelope, and what is needed to verify it.
It is the only layer of a manifest whose subject is the artifact.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ocipack.errors import IntegrityError, malformed
from ocipack.oci import jsontext
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import EMPTY, MANIFEST, Descriptor
from ocipack.oci.manifest import Manifest
from ocipack.trust import dsse, wire
from ocipack.trust.dsse import Envelope
from ocipack.trust.keys import PublicKey
from ocipack.trust.statement import SIGN

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
FAMILY = "application/vnd.dev.sigstore.bundle"
"""How the media type of every bundle begins, of whatever version."""

CONTENT = "dev.sigstore.bundle.content"
PREDICATE_TYPE = "dev.sigstore.bundle.predicateType"
CREATED = "org.opencontainers.image.created"

_READ = frozenset({BUNDLE, "application/vnd.dev.sigstore.bundle+json;version=0.3"})
_MOST = 32

_LOG_ENTRY: wire.Shape = {
    "logIndex": wire.INTEGER,
    "logId": {"keyId": wire.BASE64},
    "kindVersion": {"kind": wire.TEXT, "version": wire.TEXT},
    "integratedTime": wire.INTEGER,
    "inclusionPromise": {"signedEntryTimestamp": wire.BASE64},
    "inclusionProof": {
        "logIndex": wire.INTEGER,
        "rootHash": wire.BASE64,
        "treeSize": wire.INTEGER,
        "hashes": [wire.BASE64, 64],
        "checkpoint": {"envelope": wire.TEXT},
    },
    "canonicalizedBody": wire.BASE64,
}
_CERTIFICATE: wire.Shape = {"rawBytes!": wire.BASE64}
_SHAPE: wire.Shape = {
    "mediaType!": wire.TEXT,
    "verificationMaterial!": {
        "publicKey": {"hint": wire.TEXT},
        "certificate": _CERTIFICATE,
        "x509CertificateChain": {"certificates!": [_CERTIFICATE, _MOST]},
        "tlogEntries": [_LOG_ENTRY, _MOST],
        "timestampVerificationData": {
            "rfc3161Timestamps": [{"signedTimestamp!": wire.BASE64}, _MOST]
        },
    },
    "dsseEnvelope": dsse.SHAPE,
    "messageSignature": {
        "messageDigest": {"algorithm": wire.TEXT, "digest": wire.BASE64},
        "signature!": wire.BASE64,
    },
}
_SIGNERS = ("publicKey", "certificate", "x509CertificateChain")


@dataclass(frozen=True, slots=True)
class Bundle:
    """An envelope with exactly one signature, made by a key (`hint`) or by a `certificate`.

    `hint` is what the bundle calls its key, None if it was made by a certificate (DER). Nothing is
    verified; log entries and timestamps are kept as they were read.
    """

    envelope: Envelope
    hint: str | None
    certificate: bytes | None = None
    log_entries: tuple[Mapping[str, Any], ...] = ()
    timestamps: tuple[bytes, ...] = ()

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Read strictly, as Go's readers do; IntegrityError says what is wrong with it."""
        with malformed("bundle"):
            document = jsontext.decode(raw)
            version = document.get("mediaType") if isinstance(document, dict) else None
            if version not in _READ:
                raise IntegrityError(f"bundle: its mediaType is {str(version)[:80]!r}, not v0.3")
            wire.check(document, _SHAPE)
            if "dsseEnvelope" not in document or "messageSignature" in document:
                raise IntegrityError("bundle: it holds no DSSE envelope, or not that alone")
            envelope = Envelope.from_dict(document["dsseEnvelope"])
            if len(envelope.signatures) != 1:
                count = len(envelope.signatures)
                raise IntegrityError(f"bundle: exactly one signature is required, not {count}")
            return cls._of(envelope, document["verificationMaterial"])

    @classmethod
    def _of(cls, envelope: Envelope, material: Mapping[str, Any]) -> Self:
        signers = [name for name in _SIGNERS if name in material]
        if len(signers) != 1 or signers == ["x509CertificateChain"]:
            raise IntegrityError("bundle: it must name one public key or one certificate")
        key, certificate = material.get("publicKey"), material.get("certificate")
        times = material.get("timestampVerificationData", {}).get("rfc3161Timestamps", ())
        return cls(
            envelope,
            None if key is None else key.get("hint", ""),
            None if certificate is None else base64.b64decode(certificate["rawBytes"]),
            tuple(material.get("tlogEntries", ())),
            tuple(base64.b64decode(time["signedTimestamp"]) for time in times),
        )

    @property
    def signature(self) -> bytes:
        """The one signature, over `envelope.signed`."""
        return self.envelope.signatures[0]


def build(envelope: Envelope, key: PublicKey) -> bytes:
    """Write the bundle of an envelope that `key` signed, without log entry or timestamp."""
    return jsontext.encode(
        {
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": key.hint}},
            "dsseEnvelope": envelope.to_dict(),
        }
    )


def artifact(subject: Descriptor, raw: bytes, predicate_type: str, created: str | None) -> Artifact:
    """Wrap the bundle `raw` in a manifest that refers to `subject`.

    `created` is an RFC 3339 time in UTC, to the second; None leaves it out.
    """
    annotations = {CONTENT: "dsse-envelope", PREDICATE_TYPE: predicate_type}
    if created is not None:
        annotations[CREATED] = created
    config, layer = Descriptor.of(EMPTY, b"{}"), Descriptor.of(BUNDLE, raw)
    manifest = Manifest.build(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.to_dict(),
            "layers": [layer.to_dict()],
            "annotations": annotations,
            "subject": subject.plain.to_dict(),
            "artifactType": BUNDLE,
        }
    )
    return Artifact(manifest, {config.digest: b"{}", layer.digest: raw})


def layer(manifest: Manifest) -> Descriptor | None:
    """Find the bundle in a referrer's manifest; None if it is a referrer of another kind.

    A manifest with a bundle among several layers is not one: IntegrityError.
    """
    found = [entry for entry in manifest.layers if entry.media_type.startswith(FAMILY)]
    if not found:
        return None
    if len(manifest.layers) != 1:
        digest = manifest.descriptor.digest
        raise IntegrityError(f"{digest}: a bundle must be the only layer of its manifest")
    return found[0]


def likely(listed: Descriptor) -> bool:
    """Whether a listing of referrers makes this look like a signature.

    Hearsay, good for the order of reading and nothing else: older writers put the type of the
    empty config there, or nothing.
    """
    kind, said = listed.artifact_type, listed.annotations.get(PREDICATE_TYPE, SIGN)
    return said == SIGN and (kind in ("", EMPTY) or kind.startswith(FAMILY))
