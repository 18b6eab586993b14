"""Hostile bytes raise IntegrityError or Misuse and nothing else; what we write, we read."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from world import OCI_MANIFEST, REFERENCE, SIMPLE, World, key

from ocipack.errors import IntegrityError, Misuse, Rejected, StoreError
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.trust import bundle, cosign, dsse, statement
from ocipack.trust.bundle import Bundle
from ocipack.trust.keys import PrivateKey, PublicKey
from ocipack.trust.policy import Policy
from ocipack.trust.statement import Statement
from ocipack.verify import verify
from ocipack.verify.gather import Layer, Referrer
from ocipack.verify.judge import Claim, claim

ALICE = key("alice").public
DIGEST = Digest("sha256", "ab" * 32)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def seeds() -> list[bytes]:
    world = World()
    world.layer()
    return [
        world.payload(),
        world.statement(),
        json.dumps(world.document()).encode(),
        b"".join(world.store.fetch(world.attach())),
        b"".join(world.store.fetch(world.store.names[world.tag])),
    ]


SEEDS = seeds()


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """A document of the real kinds in which something is cut, changed, doubled or replaced."""
    raw = draw(st.sampled_from(SEEDS))
    if draw(st.booleans()):
        document = json.loads(raw)
        node = document
        while isinstance(node, dict) and node:
            name = draw(st.sampled_from(sorted(node)))
            if not isinstance(node[name], dict) or draw(st.booleans()):
                node[name] = draw(JSON)
                break
            node = node[name]
        return json.dumps(document).encode()
    start, end = sorted([draw(st.integers(0, len(raw))), draw(st.integers(0, len(raw)))])
    return raw[:start] + draw(st.binary(max_size=8)) + raw[end:]


HOSTILE = st.binary(max_size=64) | JSON.map(lambda v: json.dumps(v).encode()) | mangled()


@given(HOSTILE)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize(
    "read",
    [
        cosign.Claim.parse,
        Statement.parse,
        Bundle.parse,
        PublicKey.parse,
        PrivateKey.load,
        lambda raw: PrivateKey.open(raw, b"pw"),
        lambda raw: bundle.layer(Manifest(raw, OCI_MANIFEST)),
        lambda raw: cosign.payloads(Manifest(raw, OCI_MANIFEST)),
        lambda raw: cosign.append(Manifest(raw, OCI_MANIFEST), b"{}", b""),
    ],
    ids=["payload", "statement", "bundle", "spki", "plain", "sealed", "referrer", "sig", "append"],
)
def test_readers(read: Any, raw: bytes) -> None:
    try:
        read(raw)
    except (IntegrityError, Misuse):
        pass
    except Rejected as e:
        assert "signatures" in str(e)  # noqa: PT017 - a full or foreign tag is a refusal


@given(HOSTILE, st.binary(max_size=80))
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_hostile_becomes_a_signature(raw: bytes, proof: bytes) -> None:
    annotations = {"dev.cosignproject.cosign/signature": base64.b64encode(proof).decode()}
    layer = Descriptor.of(SIMPLE, raw, annotations)
    for candidate in (Layer("here", layer, raw), Referrer("here", DIGEST, raw)):
        found = claim(candidate, DIGEST)
        if isinstance(found, Claim):
            assert not ALICE.verifies(found.signature, found.signed)


@given(HOSTILE, HOSTILE)
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_verify_ends_in_a_verdict(first: bytes, second: bytes) -> None:
    world = World()
    world.layer(stored=first)
    world.attach(second)
    for junk in (first, second):
        world.listed(Descriptor.of(OCI_MANIFEST, junk))
        world.store.content[Digest.of(junk)] = junk
    try:
        verify(world.store, REFERENCE, Policy((ALICE,)))
    except StoreError as e:
        assert "could not be read" in str(e)  # noqa: PT017 - a mangled digest names nothing
    except Rejected as e:
        assert e.report is not None  # noqa: PT017 - any verdict is fine, with its reasons
    world.layer(world.payload(more=1))
    assert verify(world.store, REFERENCE, Policy((ALICE,))).signers


@given(st.binary(max_size=200), st.binary(max_size=100))
def test_no_bytes_are_a_signature(payload: bytes, signature: bytes) -> None:
    assert not ALICE.verifies(signature, payload)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(TEXT, TEXT, max_size=4), TEXT)
def test_what_is_written_is_read(annotations: dict[str, str], name: str) -> None:
    said = cosign.Claim.parse(cosign.payload(name, DIGEST, annotations))
    assert (said.digest, said.name, dict(said.annotations)) == (DIGEST, name, annotations)
    payload = statement.signing(DIGEST, annotations)
    subject = Statement.parse(payload).about(DIGEST)
    assert subject is not None
    assert dict(subject.annotations) == annotations
    envelope = dsse.Envelope(dsse.IN_TOTO, payload, (b"proof",))
    assert Bundle.parse(bundle.build(envelope, ALICE)).envelope == envelope


@given(st.binary(min_size=1, max_size=64), st.integers(0, 30))
@settings(max_examples=6, deadline=None)
def test_a_key_survives_its_file(secret: bytes, extra: int) -> None:
    made = PrivateKey.generate((int.from_bytes(secret) >> 200).to_bytes)
    random = iter([bytes([extra]) * 32, bytes([extra]) * 24])
    data = made.seal(secret, lambda _: next(random))
    assert PrivateKey.open(data, secret).public == made.public
