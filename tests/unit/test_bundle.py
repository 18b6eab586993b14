"""Envelopes, statements, bundles and simple signing, against vectors written down elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from world import VECTORS, LayoutDouble, published

from ocipack.errors import IntegrityError, Misuse, Rejected
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.trust import bundle, cosign, dsse, statement
from ocipack.trust.keys import PublicKey

SPKI = base64.b64decode(
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAErpDwJwewocduJN5dFl295N8bnDbQ1oMFR18oXHKfP/GYzlTLuOPW"
    "vvph9KI/Xhue+KJVu5S6AVGjCLG4ktPD9Q=="
)
LEGACY = (
    "MEUCIQCftmAS6wbCUqcOkViU+nV/PKUa5r2YdkyHixE3QAIsjAIgN/Zz6FpuBxWVBk+NWVzzpVxETpoDbB4jeLvK"
    "B+A8AF8="
)
BUNDLED = (
    "MEYCIQCK8kEJ96sVJlEdnWhJo3QOKrEUTuj0y72n5dBKs3B/tQIhAJXkVp7IX8ki872Ijlja17G9FaeFKiOfC3QX"
    "D9ckqCFA"
)
DIGEST = Digest("sha256", "ab" * 32)
NAME = "registry.example.com/team/app"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# simple signing


def test_payload() -> None:
    plain = cosign.payload(NAME, DIGEST, {})
    assert (len(plain), sha(plain)) == (
        245,
        "0b4745425e96ba23fef7ca5d080f554472fcee535b341fe4a5c275a345268e0d",
    )
    annotated = cosign.payload(NAME, DIGEST, {"tag": "v1", "a": "x<y"})
    assert (len(annotated), sha(annotated)) == (
        268,
        "bd57c8e955a0dc3182a7aa449770a906e97a8c35d889dd0cb17fc59c9dc1e4c9",
    )
    assert b'"optional":{"a":"x\\u003cy","tag":"v1"}' in annotated
    claim = cosign.Claim.parse(annotated)
    assert (claim.digest, claim.name, claim.annotations) == (
        DIGEST,
        NAME,
        {"a": "x<y", "tag": "v1"},
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"docker-reference":"registry.example.com/team/app"', '"docker-reference":1'),
        ('"optional":null', '"optional":[1]'),
        ('"optional":null', '"optional":"x"'),
        ('"critical":', '"critica":'),
        ("sha256:", "sha257:"),
        ('"type":"cosign', '"type":"Cosign'),
    ],
)
def test_what_is_no_payload(old: str, new: str) -> None:
    raw = cosign.payload(NAME, DIGEST, {}).decode()
    with pytest.raises(IntegrityError, match="signed payload"):
        cosign.Claim.parse(raw.replace(old, new).encode())


def test_tag_and_name() -> None:
    assert cosign.tag(DIGEST) == f"sha256-{'ab' * 32}.sig"
    with pytest.raises(Misuse, match="only a sha256"):
        cosign.tag(Digest("sha512", "ab" * 64))
    assert cosign.docker_reference("docker.io/library/nginx") == "index.docker.io/library/nginx"
    assert cosign.docker_reference("quay.io/docker.io/x") == "quay.io/docker.io/x"
    assert cosign.docker_reference(NAME) == NAME


def test_a_first_signature() -> None:
    raw = cosign.payload(NAME, DIGEST, {})
    artifact = cosign.append(None, raw, base64.b64decode(LEGACY))
    manifest = artifact.manifest
    assert (len(manifest.raw), sha(manifest.raw)) == (
        558,
        "9accaf94548ab10eaf4a4abe609f9d1f0501544e273e58e8a7c7797b1e9d006b",
    )
    config = artifact.blobs[manifest.config.digest]
    assert isinstance(config, bytes)
    assert (len(config), sha(config)) == (
        233,
        "e9c0175363fac2522cfd29c717262a7925d08c09370548a388abfcf51b6f94f5",
    )
    assert artifact.blobs[manifest.layers[0].digest] == raw


def test_a_second_signature_leaves_the_first_as_it_was() -> None:
    source = LayoutDouble(VECTORS / "two-keys-legacy")
    root = next(d for name, d in source.names.items() if name.endswith(".sig"))
    theirs = Manifest(source.content[root.digest], root.media_type)
    extra = json.loads(theirs.raw)
    extra["layers"][0] = {"size": extra["layers"][0]["size"]} | extra["layers"][0] | {"x": [1]}
    extra["annotations"] = {"kept": "yes"}
    existing = Manifest(json.dumps(extra).encode(), MANIFEST)
    artifact = cosign.append(existing, b"{}", b"proof")
    made = json.loads(artifact.manifest.raw)
    assert list(made) == ["schemaVersion", "mediaType", "config", "layers", "annotations"]
    assert [list(node) for node in made["layers"][:2]] == [list(n) for n in extra["layers"]]
    assert made["layers"][:2] == extra["layers"]
    assert len(made["layers"]) == 3
    config = artifact.blobs[artifact.manifest.config.digest]
    assert isinstance(config, bytes)
    assert len(json.loads(config)["rootfs"]["diff_ids"]) == 3
    assert set(artifact.blobs) == {Digest.of(config), Digest.of(b"{}")}


def test_two_layers_as_cosign_writes_them() -> None:
    """What cosign 2 made of two signatures is what we make of the first one and the second."""
    source = LayoutDouble(VECTORS / "two-keys-legacy")
    root = next(d for name, d in source.names.items() if name.endswith(".sig"))
    theirs = json.loads(source.content[root.digest])
    first, second = theirs["layers"]
    payload = source.content[Digest.parse(second["digest"])]
    one = dict(theirs, layers=[first])
    existing = Manifest(json.dumps(one, separators=(",", ":")).encode(), MANIFEST)
    proof = base64.b64decode(second["annotations"]["dev.cosignproject.cosign/signature"])
    assert cosign.append(existing, payload, proof).manifest.raw == source.content[root.digest]


@pytest.mark.parametrize(
    "document",
    [
        {"mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []},
        {"mediaType": MANIFEST, "config": Descriptor.of("x", b"").to_dict(), "layers": []},
    ],
)
def test_a_tag_that_holds_something_else_is_not_replaced(document: dict[str, Any]) -> None:
    existing = Manifest(json.dumps(document).encode(), document["mediaType"])
    with pytest.raises(Rejected, match="no manifest of signatures") as caught:
        cosign.append(existing, b"{}", b"")
    assert "--format bundle" in caught.value.hint


def test_a_full_tag_is_not_made_unreadable_for_cosign() -> None:
    layer = Descriptor.of("x", b"").to_dict()
    document = {"mediaType": MANIFEST, "config": layer, "layers": [layer] * 999}
    room = Manifest(json.dumps(document).encode(), MANIFEST)
    full = cosign.append(room, b"{}", b"").manifest
    with pytest.raises(Rejected, match="1000 signatures"):
        cosign.append(full, b"{}", b"")


# DSSE


def test_pre_authentication_encoding() -> None:
    # the example of the specification, protocol.md
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert dsse.pae("é", b"\x00") == b"DSSEv1 2 \xc3\xa9 1 \x00"


GOOD_ENVELOPE: dict[str, Any] = {
    "payload": "eA==",
    "payloadType": "t",
    "signatures": [{"sig": "eA=="}],
}


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"more": 1}, "unknown member 'more'"),
        ({"payload": "eA"}, "payload must be base64"),
        ({"payload": "eA=\u00e9"}, "payload must be base64"),
        ({"payload": b"x"}, "payload must be base64"),
        ({"payloadType": None}, "payloadType must be text"),
        ({"signatures": {}}, "signatures must be a list"),
        ({"signatures": [1]}, r"signatures\[0\] must be an object"),
        ({"signatures": [{"keyid": "k"}]}, "has no 'sig'"),
        ({"signatures": [{"sig": "eA==", "keyid": 1}]}, "keyid must be text"),
        ({"signatures": [{"sig": "eA=="}] * 33}, "33 elements"),
    ],
)
def test_an_envelope_is_read_strictly(members: dict[str, Any], why: str) -> None:
    assert dsse.Envelope.from_dict(GOOD_ENVELOPE).signatures == (b"x",)
    with pytest.raises(ValueError, match=why):
        dsse.Envelope.from_dict(GOOD_ENVELOPE | members)
    missing = dict(GOOD_ENVELOPE)
    del missing["payload"]
    wrong: list[Any] = [missing, [], None]
    for raw in wrong:
        with pytest.raises(ValueError, match="dsseEnvelope"):
            dsse.Envelope.from_dict(raw)


# statements and bundles


def test_statement() -> None:
    raw = statement.signing(DIGEST, {})
    assert (len(raw), sha(raw)) == (
        230,
        "1f7afedc67f7cef9b0dd1d58cf510b6245c9dfd281f874700a2e3836e575bf38",
    )
    pae = dsse.pae(dsse.IN_TOTO, raw)
    assert (len(pae), sha(pae)) == (
        273,
        "a17600548857ec05c6a6b6f32200718516e33c9595092692582d2da2ac62ad47",
    )
    found = statement.Statement.parse(raw)
    assert found.predicate_type == "https://sigstore.dev/cosign/sign/v1"
    assert found.about(DIGEST) is not None
    assert found.about(Digest("sha256", "00" * 32)) is None
    annotated = statement.Statement.parse(statement.signing(DIGEST, {"b": "1", "a": "2"}))
    subject = annotated.about(DIGEST)
    assert subject is not None
    assert list(subject.annotations.items()) == [("a", "2"), ("b", "1")]


@pytest.mark.parametrize("raw", [b"[]", b"null", b'"x"', b"{}", b'{"_type":[]}'])
def test_what_is_no_statement(raw: bytes) -> None:
    with pytest.raises(IntegrityError, match="signed statement"):
        statement.Statement.parse(raw)


def test_statement_limits() -> None:
    def parse(subjects: list[Any]) -> statement.Statement:
        document = {"_type": statement.V1, "subject": subjects, "predicateType": "x"}
        return statement.Statement.parse(json.dumps(document).encode())

    assert len(parse([{"digest": {}}] * 1024).subjects) == 1024
    assert parse([{"digest": {f"a{i}": "" for i in range(32)}}]).subjects
    with pytest.raises(IntegrityError, match="1025 elements"):
        parse([{"digest": {}}] * 1025)
    with pytest.raises(IntegrityError, match="and few"):
        parse([{"digest": {f"a{i}": "" for i in range(33)}}])


def vector() -> bytes:
    envelope = dsse.Envelope(
        dsse.IN_TOTO, statement.signing(DIGEST, {}), (base64.b64decode(BUNDLED),)
    )
    return bundle.build(envelope, PublicKey(SPKI))


def test_bundle() -> None:
    raw = vector()
    assert (len(raw), sha(raw)) == (
        659,
        "8f9523def54135b79f57a9398c61a885c6a4c953d628bb3d4dadb62acdf52e26",
    )
    found = bundle.Bundle.parse(raw)
    assert found.hint == "GXa9PfY09+kwqvGioEVlKojH/9QVr9IEGAK4kHCfOxo="
    assert (found.certificate, found.log_entries, found.timestamps) == (None, (), ())
    assert PublicKey(SPKI).verifies(found.signature, found.envelope.signed)


def test_referrer_manifest() -> None:
    subject = Descriptor(MANIFEST, DIGEST, 634, {"dropped": "yes"}, "application/x")
    artifact = bundle.artifact(subject, vector(), statement.SIGN, "2026-11-30T12:00:00Z")
    document = json.loads(artifact.manifest.raw)
    assert list(document) == [
        *["schemaVersion", "mediaType", "config", "layers", "annotations", "subject"],
        "artifactType",
    ]
    kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
    empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert document == {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "size": 2,
            "digest": f"sha256:{empty}",
        },
        "layers": [{"mediaType": kind, "size": 659, "digest": f"sha256:{sha(vector())}"}],
        "annotations": {
            "dev.sigstore.bundle.content": "dsse-envelope",
            "dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1",
            "org.opencontainers.image.created": "2026-11-30T12:00:00Z",
        },
        "subject": {"mediaType": MANIFEST, "size": 634, "digest": str(DIGEST)},
        "artifactType": kind,
    }
    assert artifact.blobs[Digest("sha256", empty)] == b"{}"
    timeless = bundle.artifact(subject, vector(), statement.SIGN, None)
    assert "created" not in timeless.manifest.raw.decode()


def test_our_referrer_is_cosign_s_but_for_its_odd_config() -> None:
    source = LayoutDouble(VECTORS / "v3-key-bundle")
    theirs = next(
        Manifest(source.content[d.digest], d.media_type)
        for d in source.manifests.values()
        if b"sigstore.bundle" in source.content[d.digest]
    )
    assert theirs.subject is not None
    raw = source.content[theirs.layers[0].digest]
    created = theirs.annotations["org.opencontainers.image.created"]
    made = bundle.artifact(theirs.subject, raw, statement.SIGN, created)
    document = json.loads(theirs.raw)
    del document["config"]["artifactType"]
    assert json.loads(made.manifest.raw) == document
    assert list(json.loads(made.manifest.raw)) == list(document)


def test_numbers_may_be_digits_and_logs_are_kept() -> None:
    document = json.loads(vector())
    entry = {"logIndex": "123", "integratedTime": 5, "logId": {"keyId": "AAAA"}}
    document["verificationMaterial"]["tlogEntries"] = [entry]
    document["verificationMaterial"]["timestampVerificationData"] = {
        "rfc3161Timestamps": [{"signedTimestamp": "AAAA"}]
    }
    found = bundle.Bundle.parse(json.dumps(document).encode())
    assert found.log_entries == (entry,)
    assert found.timestamps == (b"\x00\x00\x00",)
    for wrong in ("", "1.5", "x", "1" * 20, True, None, "\u0661"):
        entry["logIndex"] = wrong
        with pytest.raises(IntegrityError, match="logIndex must be integer"):
            bundle.Bundle.parse(json.dumps(document).encode())


def test_a_certificate_bundle_is_read_as_one() -> None:
    document = json.loads(vector())
    document["verificationMaterial"] = {"certificate": {"rawBytes": "MAA="}}
    found = bundle.Bundle.parse(json.dumps(document).encode())
    assert (found.hint, found.certificate) == (None, b"0\x00")


def test_hints_of_real_bundles_name_their_keys() -> None:
    source = LayoutDouble(VECTORS / "two-keys-bundle")
    hints = {
        bundle.Bundle.parse(raw).hint
        for raw in source.content.values()
        if b'"verificationMaterial"' in raw
    }
    assert hints == {published("alice").hint, published("bob").hint}
