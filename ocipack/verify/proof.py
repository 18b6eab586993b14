"""What verification gives back. Only this package makes either: a test reads the source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.trust.statement import SIGN

if TYPE_CHECKING:
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.reference import Reference
    from ocipack.report import Report
    from ocipack.trust.policy.decision import Waiver


@dataclass(frozen=True, slots=True)
class Signature:
    """One accepted signature: by which key (its id), in which form, found where.

    An attestation says its `predicate_type`.
    """

    key: str
    form: str
    place: str
    predicate_type: str = SIGN


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


@dataclass(frozen=True, slots=True)
class Exempted:
    """No proof: `reference` was let through although nothing, or not all, was shown.

    `waivers` say by whom and why: an exemption, a policy that passes everything, or one that only
    warns and is not met. Whatever is asked of the name beside them holds. Like proof it names a
    digest, whose manifest was read and hashed; who delivers must ask before taking it for proof.
    """

    reference: Reference
    descriptor: Descriptor
    manifest: Manifest
    signers: tuple[Signature, ...]
    waivers: tuple[Waiver, ...]
    report: Report
