"""What belongs to some content: every manifest and blob, what it is, and where it is attached."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from ocipack.oci.descriptor import INDEXES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.digest import Digest
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source


class Kind(StrEnum):
    """What a part is for; the value is how many of them are called."""

    INDEX = "indexes"
    MANIFEST = "manifests"
    BLOB = "blobs"
    SIGNATURE = "signatures"
    ATTESTATION = "attestations"
    SBOM = "sboms"
    REFERRER = "other referrers"


TAGGED = {".sig": Kind.SIGNATURE, ".att": Kind.ATTESTATION, ".sbom": Kind.SBOM}

_BUNDLE = "application/vnd.dev.sigstore.bundle"
_PREDICATE = "dev.sigstore.bundle.predicateType"
_CONTENT = "dev.sigstore.bundle.content"
_SIGNED = "https://sigstore.dev/cosign/sign/"
_TYPES = (
    ("application/vnd.cncf.notary.signature", Kind.SIGNATURE),
    ("application/vnd.dev.cosign.artifact.sig.", Kind.SIGNATURE),
    ("application/vnd.dev.cosign.artifact.att.", Kind.ATTESTATION),
    ("application/vnd.dev.cosign.artifact.sbom.", Kind.SBOM),
    ("application/vnd.in-toto", Kind.ATTESTATION),
    ("application/vnd.dsse.", Kind.ATTESTATION),
    ("application/vnd.dev.cosign.simplesigning.", Kind.SIGNATURE),
    ("application/spdx", Kind.SBOM),
    ("text/spdx", Kind.SBOM),
    ("application/vnd.cyclonedx", Kind.SBOM),
    ("application/vnd.syft", Kind.SBOM),
)
_BUILDKIT = "vnd.docker.reference.type"


def attached_kind(entry: Descriptor) -> Kind:
    """What a referrer says that it is, by artifact type and annotations: for reports only.

    A Sigstore bundle is a signature if it says so (cosign 3's predicate, or a bare message
    signature), else an attestation.
    """
    if entry.artifact_type.startswith(_BUNDLE):
        said = entry.annotations
        signs = said.get(_PREDICATE, "").startswith(_SIGNED)
        bare = said.get(_CONTENT) == "message-signature"
        return Kind.SIGNATURE if signs or bare else Kind.ATTESTATION
    for prefix, kind in _TYPES:
        if entry.artifact_type.startswith(prefix):
            return kind
    return Kind.REFERRER


def child_kind(entry: Descriptor) -> Kind:
    """What an entry of a manifest or index is; BuildKit lists attestations beside its images."""
    if not entry.is_manifest:
        return Kind.BLOB
    if entry.annotations.get(_BUILDKIT) == "attestation-manifest":
        return Kind.ATTESTATION
    return Kind.INDEX if entry.media_type in INDEXES else Kind.MANIFEST


@dataclass(frozen=True, slots=True)
class Part:
    """One manifest or blob that belongs to what is copied.

    `subject` is what a referrer refers to, `name` the digest tag of what is attached by one.
    `here`: the destination had it, with its blobs, when the plan was made.
    """

    target: Descriptor
    kind: Kind
    subject: Descriptor | None = None
    name: str = ""
    here: bool = False

    @property
    def is_attached(self) -> bool:
        """Whether this is attached to something, rather than a part of it."""
        return bool(self.name) or self.subject is not None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a copy of `root` comes to: made once, before anything is written.

    With `attached`, what is attached to each manifest belongs to it too. `parts` holds each once
    for every place where it is attached, sorted by kind and digest; below a manifest that the
    destination has, blobs are not listed. `manifests` are those that were read, `present` those
    that the destination has, `left_out` the entries of indexes that are not wanted, `gone`
    referrers that the source lists and does not have, and `standing` what digest tags name at the
    destination (None: nothing), for those that had to be asked for.
    """

    source: Source
    root: Descriptor
    attached: bool
    parts: tuple[Part, ...]
    manifests: Mapping[Descriptor, Manifest] = field(default_factory=dict, hash=False)
    present: frozenset[Digest] = frozenset()
    left_out: frozenset[Digest] = frozenset()
    gone: frozenset[Digest] = frozenset()
    standing: Mapping[str, Digest | None] = field(default_factory=dict, hash=False)

    @property
    def missing(self) -> tuple[Part, ...]:
        """What has to move."""
        return tuple(part for part in self.parts if not part.here)

    @property
    def kinds(self) -> dict[str, int]:
        """Count the parts by the names of their kinds, each digest once; and the digest tags."""
        kinds = {part.target.digest: str(part.kind) for part in self.parts}
        found = Counter(kinds.values())
        found["digest tags"] = len({part.name for part in self.parts if part.name})
        return {name: found[name] for name in (*map(str, Kind), "digest tags") if found[name]}

    @property
    def signatures(self) -> tuple[Part, ...]:
        """The signatures of the root itself, in either form."""
        own = f"{self.root.digest.tag}."
        return tuple(
            part
            for part in self.parts
            if part.kind is Kind.SIGNATURE
            and (
                part.name.startswith(own)
                or (part.subject is not None and part.subject.digest == self.root.digest)
            )
        )
