"""cosign's older form: simple signing (sigstore/cosign, specs/SIGNATURE_SPEC.md).

What is signed is a small JSON payload that names the digest. All signatures of one digest are
layers of one manifest under the tag `sha256-<hex>.sig` of the same repository; the signature is an
annotation of its layer. Nothing here is verified: claims are true only if their signature is.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ocipack.errors import IntegrityError, Misuse, Rejected, malformed
from ocipack.oci import jsontext
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import MANIFEST, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest

PAYLOAD = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE = "dev.cosignproject.cosign/signature"
CONFIG = "application/vnd.oci.image.config.v1+json"
KIND = "cosign container image signature"

SIGNATURES, ATTESTATIONS = "sig", "att"
"""How the tags end that hold the signatures of a digest, and the attestations."""

ENVELOPE = "application/vnd.dsse.envelope.v1+json"
"""A layer under an `.att` tag: one attestation."""

LAYERS = 1000
"""Layers of a `.sig` manifest that cosign reads; with more it refuses all of them."""

_NEVER = "0001-01-01T00:00:00Z"


def tag(digest: Digest, ending: str = SIGNATURES) -> str:
    """Name the tag that holds what is attached to `digest`; Misuse unless it is a sha256."""
    if digest.algorithm != "sha256":
        raise Misuse(
            f"{digest}: only a sha256 digest can be signed",
            hint="no verifier looks for signatures of other digests",
        )
    return f"{digest.tag}.{ending}"


def docker_reference(bare: str) -> str:
    """Name a repository as cosign does: Docker Hub by its old name, every other as it is."""
    hub, _, path = bare.partition("docker.io/")
    return f"index.docker.io/{path}" if not hub and path else bare


def payload(name: str, digest: Digest, annotations: Mapping[str, str]) -> bytes:
    """Build what is signed: `name` is the docker-reference, a repository without tag or digest."""
    critical = {
        "identity": {"docker-reference": name},
        "image": {"docker-manifest-digest": str(digest)},
        "type": KIND,
    }
    optional = dict(sorted(annotations.items(), key=lambda item: item[0].encode())) or None
    return jsontext.encode({"critical": critical, "optional": optional})


@dataclass(frozen=True, slots=True)
class Claim:
    """What a payload says: `digest` was signed as `name`, with `annotations` (any JSON values)."""

    digest: Digest
    name: str
    annotations: Mapping[str, Any]

    @classmethod
    def parse(cls, raw: bytes) -> Self:
        """Read a payload strictly; IntegrityError if it is no simple signing."""
        with malformed("signed payload"):
            document = jsontext.decode(raw)
            critical = document["critical"]
            if critical["type"] != KIND:
                raise IntegrityError(f"signed payload: its type is {str(critical['type'])[:80]!r}")
            name = critical["identity"]["docker-reference"]
            optional = document.get("optional") or {}
            if not isinstance(name, str) or not isinstance(optional, dict):
                raise IntegrityError("signed payload: not what simple signing looks like")
            return cls(Digest.parse(critical["image"]["docker-manifest-digest"]), name, optional)


def signature(layer: Descriptor) -> bytes:
    """Read the signature beside a payload; IntegrityError if there is none, or not in base64."""
    text = layer.annotations.get(SIGNATURE)
    if not text:
        raise IntegrityError(f"{layer.digest}: the layer carries no {SIGNATURE}")
    with malformed(f"{layer.digest}: {SIGNATURE}"):
        return base64.b64decode(text, validate=True)


def payloads(manifest: Manifest) -> tuple[Descriptor, ...]:
    """List the layers that can be signatures, in order."""
    return tuple(layer for layer in manifest.layers if layer.media_type == PAYLOAD)


def append(existing: Manifest | None, raw: bytes, proof: bytes) -> Artifact:
    """Add the payload `raw` and its signature `proof` to a `.sig` manifest, or start one.

    Layers of others stay as they are, member for member; the config, which nobody signs and cosign
    writes as if this were an image, is made anew. Its blobs are those that we bring: the others'
    are where `existing` is. Rejected if the place is taken by something else, or full.
    """
    layer = Descriptor.of(PAYLOAD, raw, {SIGNATURE: base64.b64encode(proof).decode()})
    document: dict[str, Any] = {"schemaVersion": 2, "mediaType": MANIFEST}
    layers, config_type = [layer.to_dict()], CONFIG
    if existing is not None:
        _refuse_foreign(existing)
        document = dict(existing.document)
        layers = [*document["layers"], *layers]
        config_type = existing.config.media_type
    config = _config([node["digest"] for node in layers])
    document["config"] = Descriptor.of(config_type, config).to_dict()
    document["layers"] = layers
    media_type = existing.media_type if existing is not None else MANIFEST
    manifest = Manifest(jsontext.encode(document), media_type)
    return Artifact(manifest, {manifest.config.digest: config, layer.digest: raw})


def _refuse_foreign(existing: Manifest) -> None:
    digest = existing.descriptor.digest
    if existing.is_index or not existing.layers:
        raise Rejected(
            f"the .sig tag holds {digest}, which is no manifest of signatures",
            hint="remove that tag, or sign with --format bundle",
        )
    if len(existing.layers) >= LAYERS:
        raise Rejected(
            f"the .sig tag holds {len(existing.layers)} signatures; cosign reads at most {LAYERS}",
            hint="remove old ones, or sign with --format bundle",
        )


def _config(diff_ids: list[str]) -> bytes:
    return jsontext.encode(
        {
            "architecture": "",
            "created": _NEVER,
            "history": [{"created": _NEVER} for _ in diff_ids],
            "os": "",
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "config": {},
        }
    )
