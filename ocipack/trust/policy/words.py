"""A policy in words, for people who ask what it wants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ocipack.trust.policy.model import FAIL, FORMS, PASS, WARN

if TYPE_CHECKING:
    from ocipack.trust.keys import PublicKey
    from ocipack.trust.policy.contents import Contents
    from ocipack.trust.policy.model import Attestation, Authority, VerificationPolicy

_KEY = 12  # digits of a key's id


def demands(policy: VerificationPolicy) -> Iterator[str]:
    """What `policy` asks, a line each."""
    if policy.static == PASS:
        yield f"passes everything, which is an exemption: {policy.reason}"
    elif policy.static == FAIL:
        yield f"refuses everything: {policy.reason}"
    if policy.mode == WARN:
        yield "only warns: what does not meet it is exempted"
    yield from _signed(policy)
    for authority in policy.authorities:
        lead = "or " if authority is not policy.authorities[0] else ""
        yield f"{lead}authority {authority.name}:"
        for line in _authority(authority):
            yield f"  {line}"
    if policy.contents is not None:
        yield from _contents(policy.contents)
    for exemption in policy.exemptions:
        names = ", ".join(glob.text for glob in exemption.images)
        yield (
            f"except {names} until {exemption.until.isoformat()}, "
            f"by {exemption.owner}: {exemption.reason}"
        )


def _contents(contents: Contents) -> Iterator[str]:
    yield "what is named inside:"
    yield f"  images: {', '.join(glob.text for glob in contents.images) or 'none'}"
    yield f"  sources: {', '.join(glob.text for glob in contents.sources) or 'none'}"
    if contents.follow:
        yield f"  followed: {', '.join(glob.text for glob in contents.follow)}"
    if contents.require_digest:
        yield f"  each{' other' if contents.follow else ''} is pinned"
    if contents.verified:
        yield "  each image, and each source in a registry, is verified by its own name"
    if contents.refuse_unseen:
        yield "  nothing may change or hide images where nobody looks"
    for one in contents.exemptions:
        names = ", ".join([*(g.text for g in one.images), *(g.text for g in one.sources)])
        yield (f"  except {names} until {one.until.isoformat()}, by {one.owner}: {one.reason}")


def _signed(policy: VerificationPolicy) -> Iterator[str]:
    for name, condition in policy.annotations:
        yield f"each signature says {name} {condition}"
    for name in policy.bind:
        yield f"each signature says {name}, and it is the {name} that was asked for"
    if policy.not_older_than is not None:
        floor = policy.not_older_than
        if floor.version is not None:
            yield f"each signature says a version of {floor.version.text} or later"
        if floor.created is not None:
            yield f"each signature says it was created at {floor.created.isoformat()} or later"


def _authority(authority: Authority) -> Iterator[str]:
    if authority.signature:
        yield f"signed by {_of(authority.threshold, authority.keys)}"
    for attestation in authority.attestations:
        yield from _attestation(attestation)
    if set(authority.forms) != set(FORMS):
        yield f"in the form {' or '.join(authority.forms)} alone"


def _attestation(attestation: Attestation) -> Iterator[str]:
    keys = _of(attestation.threshold, attestation.keys)
    yield f"attestation {attestation.name} ({attestation.predicate_type}) by {keys}"
    for field in attestation.conditions:
        yield f"  {field.pointer} is {field.condition}"


def _of(threshold: int, keys: tuple[PublicKey, ...]) -> str:
    names = ", ".join(key.id[:_KEY] for key in keys)
    return f"key {names}" if len(keys) == 1 else f"{threshold} of {len(keys)} keys ({names})"
