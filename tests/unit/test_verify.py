"""The argument of `verify`, check by check: each row falls when its check is taken away."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from world import BUNDLE, OCI_INDEX, REFERENCE, SIGN, SIMPLE, ZERO, World, compact, key, text

from ocipack.errors import (
    Denied,
    IntegrityError,
    NotFound,
    Rejected,
    StoreError,
    Unavailable,
)
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.report import Severity
from ocipack.trust.policy import Policy
from ocipack.verify import Verified, verify

Arrange = Callable[[World], Any]


def ask(world: World, *names: str, threshold: int = 1, content: bool = False) -> Verified:
    policy = Policy(tuple(key(name).public for name in names or ("alice",)), threshold)
    return verify(world.store, REFERENCE, policy, content=content)


def rules(error: Rejected) -> set[str]:
    assert error.report is not None
    return {f.rule for f in error.report.findings if f.severity is Severity.ERROR}


def order(r: int, s: int) -> bytes:
    """ASN.1 DER of an ECDSA signature."""
    numbers = b"".join(
        b"\x02%c%b" % (len(raw), raw)
        for raw in (n.to_bytes(n.bit_length() // 8 + 1) for n in (r, s))
    )
    return b"\x30%c%b" % (len(numbers), numbers)


def split(signature: bytes) -> tuple[int, int]:
    first = 4 + signature[3]
    return int.from_bytes(signature[4:first]), int.from_bytes(signature[first + 2 :])


def raw_form(signature: bytes) -> bytes:
    r, s = split(signature)
    return r.to_bytes(32) + s.to_bytes(32)


def twin(signature: bytes) -> bytes:
    r, s = split(signature)
    n = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    return order(r, n - s)


def proof(world: World, statement: bytes = b"") -> bytes:
    payload = statement or world.statement()
    return key("alice").sign(
        b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(payload), payload)
    )


def twice(raw: bytes, member: bytes) -> bytes:
    """Name a member a second time, at the end of a JSON object."""
    return raw[:-1] + b"," + member + b"}"


def two_layers(world: World) -> None:
    world.layer(by="bob")
    world.layer()


def subject(world: World, **members: Any) -> list[dict[str, Any]]:
    return [{"digest": {"sha256": world.subject.digest.hex}} | members]


def material(world: World, **members: Any) -> dict[str, Any]:
    document = world.document()
    document["verificationMaterial"] |= members
    return document


def hint(world: World, value: Any) -> dict[str, Any]:
    document = world.document()
    document["verificationMaterial"]["publicKey"] = value
    return document


def enveloped(world: World, **members: Any) -> dict[str, Any]:
    return world.document(world.envelope() | members)


def versioned(kind: str | None) -> Arrange:
    return lambda w: w.attach(w.document() | {"mediaType": kind})


GOOD: dict[str, Arrange] = {
    "sig/plain": lambda w: w.layer(),
    "sig/payload with spaces": lambda w: w.layer(w.payload().replace(b'":', b'" : ')),
    "sig/optional absent": lambda w: w.layer(w.payload().replace(b',"optional":null', b"")),
    "sig/optional {}": lambda w: w.layer(w.payload(optional={})),
    "sig/creator and timestamp": lambda w: w.layer(w.payload(optional={"timestamp": 1})),
    "sig/extra member at top": lambda w: w.layer(w.payload(more=1)),
    "sig/docker-reference of another repository": lambda w: w.layer(
        w.payload().replace(b"team/app", b"team/other")
    ),
    "sig/bad layer then good layer": two_layers,
    "sig/layer without signature annotation then good layer": lambda w: (
        w.layer(proof=None),
        w.layer(),
    ),
    "sig/ten layers by ten keys, the last is ours": lambda w: (
        [w.layer(by=f"stranger {i}") for i in range(9)],
        w.layer(),
    ),
    "sig/high-s twin": lambda w: w.layer(proof=text(twin(key("alice").sign(w.payload())))),
    "bundle/plain": lambda w: w.attach(),
    "bundle/keyid empty": lambda w: w.attach(
        enveloped(w, signatures=[{"sig": text(proof(w)), "keyid": ""}])
    ),
    "bundle/statement with name": lambda w: w.sign(w.statement(subject=subject(w, name="app"))),
    "bundle/statement subject only digest": lambda w: w.sign(w.statement(subject=subject(w))),
    "bundle/predicate absent": lambda w: w.sign(w.statement(without=("predicate",))),
    "bundle/predicate null": lambda w: w.sign(w.statement(predicate=None)),
    "bundle/_type v0.1": lambda w: w.sign(w.statement(_type="https://in-toto.io/Statement/v0.1")),
    "bundle/subject second of two": lambda w: w.sign(
        w.statement(subject=[{"digest": {"sha256": "0" * 64}}, *subject(w)])
    ),
    "bundle/subject gitCommit key beside": lambda w: w.sign(
        w.statement(subject=[{"digest": {"gitCommit": "a", "sha256": w.subject.digest.hex}}])
    ),
    "bundle/statement indented": lambda w: w.sign(w.statement().replace(b",", b",\n  ")),
    "bundle/hint absent": lambda w: w.attach(hint(w, {})),
    "bundle/hint wrong": lambda w: w.attach(hint(w, {"hint": "d3Jvbmc="})),
    "bundle/hint empty": lambda w: w.attach(hint(w, {"hint": ""})),
    "bundle/hint of bob, signature of alice": lambda w: w.attach(
        w.document(w.envelope(), by="bob")
    ),
    "bundle/tlogEntries empty list": lambda w: w.attach(material(w, tlogEntries=[])),
    "bundle/;version=0.3": lambda w: w.attach(
        w.document() | {"mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.3"}
    ),
    "bundle/layer media type bundle;version=0.1": lambda w: w.attach(
        layer_type="application/vnd.dev.sigstore.bundle+json;version=0.1"
    ),
    "bundle/artifactType absent": lambda w: w.attach(more={"artifactType": None}),
    "bundle/artifactType other": lambda w: w.attach(more={"artifactType": "application/x"}),
    "bundle/annotations absent": lambda w: w.attach(more={"annotations": None}),
    "bundle/predicateType annotation other": lambda w: w.attach(
        more={"annotations": {"dev.sigstore.bundle.predicateType": "https://slsa.dev/x"}}
    ),
    "bundle/subject size wrong": lambda w: w.attach(
        more={"subject": w.subject.to_dict() | {"size": 1}}
    ),
    "bundle/high-s twin": lambda w: w.attach(w.document(w.envelope(proofs=[twin(proof(w))]))),
    "bundle/bad one by bob and a good one": lambda w: (w.attach(by="bob"), w.attach()),
    "bundle/unparsable one and a good one": lambda w: (w.attach(b"{"), w.attach()),
    "both/sig by bob, bundle good": lambda w: (w.layer(by="bob"), w.attach()),
    "both/sig good, bundle by bob": lambda w: (w.layer(), w.attach(by="bob")),
    "both/sig good, junk bundle": lambda w: (w.layer(), w.attach(b"junk")),
    "both/sig is an index, bundle good": lambda w: (
        w.put({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []}, tag=w.tag),
        w.attach(),
    ),
    "referrers/subject itself listed too": lambda w: (
        w.listed(w.subject),
        w.attach(),
    ),
    "referrers/one that is no bundle": lambda w: (w.attach(layer_type="text/plain"), w.attach()),
    "referrers/a wrong size listed first": lambda w: (
        w.listed(replace(w.listed(w.unlisted(w.attach())), size=5)),
        w.listed(w.store.hearsay.pop(0)),
    ),
    "referrers/one listed twice": lambda w: w.listed(w.attach()),
}

BAD: dict[str, tuple[str, Arrange]] = {
    "sig/other key": ("signature-foreign", lambda w: w.layer(by="bob")),
    "sig/names another digest (3)": ("signature-digest", lambda w: w.layer(w.payload(ZERO))),
    "sig/names another digest, good one by bob": (
        "signature-digest",
        lambda w: (w.layer(w.payload(ZERO)), w.layer(by="bob")),
    ),
    "sig/signature of another payload (4)": (
        "signature-foreign",
        lambda w: w.layer(proof=text(key("alice").sign(w.payload(ZERO)))),
    ),
    "sig/stored payload tampered (4)": (
        "signature-foreign",
        lambda w: w.layer(stored=w.payload().replace(b"team/app", b"team/apq")),
    ),
    "sig/raw r‖s (4)": (
        "signature-foreign",
        lambda w: w.layer(proof=text(raw_form(key("alice").sign(w.payload())))),
    ),
    "sig/critical.type other (2)": (
        "signature-malformed",
        lambda w: w.layer(w.payload().replace(b"cosign container image signature", b"x")),
    ),
    "sig/duplicate critical (2)": (
        "signature-malformed",
        lambda w: w.layer(twice(w.payload(ZERO), w.payload()[1:].partition(b',"opt')[0])),
    ),
    "sig/not JSON (2)": ("signature-malformed", lambda w: w.layer(b"junk")),
    "sig/critical a list (2)": ("signature-malformed", lambda w: w.layer(b'{"critical":[]}')),
    "sig/digest upper case (3)": (
        "signature-malformed",
        lambda w: w.layer(w.payload("sha256:" + w.subject.digest.hex.upper())),
    ),
    "sig/no annotation (1)": ("signature-malformed", lambda w: w.layer(proof=None)),
    "sig/base64 truncated (1)": (
        "signature-malformed",
        lambda w: w.layer(proof=text(key("alice").sign(w.payload()))[:-3]),
    ),
    "sig/base64 with blanks (1)": (
        "signature-malformed",
        lambda w: w.layer(proof=text(key("alice").sign(w.payload())) + "\n"),
    ),
    "sig/DSSE signature beside a simple payload (4)": (
        "signature-foreign",
        lambda w: w.layer(proof=text(proof(w))),
    ),
    "bundle/other key": ("signature-foreign", lambda w: w.attach(by="bob")),
    "bundle/hint of alice on a signature of bob": (
        "signature-foreign",
        lambda w: w.attach(w.document(w.envelope(by="bob"), by="alice")),
    ),
    "bundle/statement names another digest (11)": (
        "signature-digest",
        lambda w: w.sign(w.statement(subject=[{"digest": {"sha256": "0" * 64}}])),
    ),
    "bundle/no subject (11)": ("signature-digest", lambda w: w.sign(w.statement(subject=[]))),
    "bundle/subject sha512 only (11)": (
        "signature-digest",
        lambda w: w.sign(w.statement(subject=[{"digest": {"sha512": w.subject.digest.hex}}])),
    ),
    "bundle/subject digest upper case (11)": (
        "signature-digest",
        lambda w: w.sign(
            w.statement(subject=[{"digest": {"sha256": w.subject.digest.hex.upper()}}])
        ),
    ),
    "bundle/subject null (9)": (
        "signature-malformed",
        lambda w: w.sign(w.statement(subject=[None])),
    ),
    "bundle/digest a number (9)": (
        "signature-malformed",
        lambda w: w.sign(w.statement(subject=[{"digest": {"sha256": 1}}])),
    ),
    "bundle/stored payload tampered (12)": (
        "signature-foreign",
        lambda w: w.attach(enveloped(w, payload=text(w.statement().replace(b":{}}", b": {}}")))),
    ),
    "bundle/signature over the payload, not its encoding (12)": (
        "signature-foreign",
        lambda w: w.attach(w.document(w.envelope(proofs=[key("alice").sign(w.statement())]))),
    ),
    "bundle/raw r‖s (12)": (
        "signature-foreign",
        lambda w: w.attach(w.document(w.envelope(proofs=[raw_form(proof(w))]))),
    ),
    "bundle/two signatures, both good (6)": (
        "signature-malformed",
        lambda w: w.attach(w.document(w.envelope(proofs=[proof(w), proof(w)]))),
    ),
    "bundle/no signatures (6)": (
        "signature-malformed",
        lambda w: w.attach(w.document(w.envelope(proofs=[]))),
    ),
    "bundle/payloadType application/json (8)": (
        "signature-malformed",
        lambda w: w.attach(w.document(w.envelope(kind="application/json"))),
    ),
    "bundle/payloadType changed after signing (8)": (
        "signature-malformed",
        lambda w: w.attach(enveloped(w, payloadType="application/vnd.in-toto+JSON")),
    ),
    "bundle/predicate a string (9)": (
        "signature-malformed",
        lambda w: w.sign(w.statement(predicate="x")),
    ),
    "bundle/predicate a list (9)": (
        "signature-malformed",
        lambda w: w.sign(w.statement(predicate=[])),
    ),
    "bundle/predicateType absent (9)": (
        "signature-malformed",
        lambda w: w.sign(w.statement(without=("predicateType",))),
    ),
    "bundle/predicateType empty (10)": (
        "signature-predicate",
        lambda w: w.sign(w.statement(predicateType="")),
    ),
    "bundle/predicateType of an attestation (10)": (
        "signature-predicate",
        lambda w: w.sign(w.statement(predicateType="https://slsa.dev/provenance/v1")),
    ),
    "bundle/predicateType longer than cosign's (10)": (
        "signature-predicate",
        lambda w: w.sign(w.statement(predicateType=SIGN + "/")),
    ),
    "bundle/_type nonsense (9)": ("signature-malformed", lambda w: w.sign(w.statement(_type="x"))),
    "bundle/_type absent (9)": (
        "signature-malformed",
        lambda w: w.sign(w.statement(without=("_type",))),
    ),
    "bundle/unknown member in statement (9)": (
        "signature-malformed",
        lambda w: w.sign(w.statement(more=1)),
    ),
    "bundle/unknown member in subject (9)": (
        "signature-malformed",
        lambda w: w.sign(w.statement(subject=subject(w, more=1))),
    ),
    "bundle/duplicate member in statement (9)": (
        "signature-malformed",
        lambda w: w.sign(twice(w.statement(), b'"predicate":{}')),
    ),
    "bundle/statement not JSON (9)": ("signature-malformed", lambda w: w.sign(b"junk")),
    "bundle/unknown member in bundle (6)": (
        "signature-malformed",
        lambda w: w.attach(w.document() | {"more": 1}),
    ),
    "bundle/unknown member in verificationMaterial (6)": (
        "signature-malformed",
        lambda w: w.attach(material(w, more=1)),
    ),
    "bundle/unknown member in a log entry (6)": (
        "signature-malformed",
        lambda w: w.attach(material(w, tlogEntries=[{"more": 1}])),
    ),
    "bundle/33 log entries (6)": (
        "signature-malformed",
        lambda w: w.attach(material(w, tlogEntries=[{}] * 33)),
    ),
    "bundle/duplicate member in bundle (6)": (
        "signature-malformed",
        lambda w: w.attach(twice(compact(w.document()), b'"mediaType":"' + BUNDLE.encode() + b'"')),
    ),
    "bundle/snake_case members (6)": (
        "signature-malformed",
        lambda w: w.attach(
            compact(w.document()).replace(b"verificationMaterial", b"verification_material")
        ),
    ),
    "bundle/certificate beside publicKey (6)": (
        "signature-malformed",
        lambda w: w.attach(material(w, certificate={"rawBytes": ""})),
    ),
    "bundle/certificate instead of publicKey (7)": (
        "signature-certificate",
        lambda w: w.attach(
            w.document() | {"verificationMaterial": {"certificate": {"rawBytes": "MAA="}}}
        ),
    ),
    "bundle/certificate chain (6)": (
        "signature-malformed",
        lambda w: w.attach(
            w.document() | {"verificationMaterial": {"x509CertificateChain": {"certificates": []}}}
        ),
    ),
    "bundle/no signer named (6)": (
        "signature-malformed",
        lambda w: w.attach(w.document() | {"verificationMaterial": {}}),
    ),
    **{
        f"bundle/mediaType {kind} (6)": ("signature-malformed", versioned(kind))
        for kind in [
            "application/vnd.dev.sigstore.bundle+json;version=0.1",
            "application/vnd.dev.sigstore.bundle+json;version=0.2",
            "application/vnd.dev.sigstore.bundle.v0.4+json",
            "application/json",
            None,
        ]
    },
    "bundle/two layers in the manifest (6)": (
        "signature-malformed",
        lambda w: w.attach(layers=2),
    ),
    "bundle/messageSignature over the manifest (6)": (
        "signature-malformed",
        lambda w: w.attach(
            {
                "mediaType": BUNDLE,
                "verificationMaterial": w.document()["verificationMaterial"],
                "messageSignature": {"signature": text(key("alice").sign(b"x"))},
            }
        ),
    ),
    "bundle/messageSignature beside the envelope (6)": (
        "signature-malformed",
        lambda w: w.attach(w.document() | {"messageSignature": {"signature": "MAA="}}),
    ),
    "referrers/its own subject is another digest (5)": (
        "signature-subject",
        lambda w: w.attach(to=w.image("v2")),
    ),
    "referrers/copied: statement of v1 under v2 (11)": (
        "signature-digest",
        lambda w: w.sign(w.statement(subject=[{"digest": {"sha256": w.image("v2").digest.hex}}])),
    ),
    "referrers/wrong size listed": (
        "signature-malformed",
        lambda w: w.listed(replace(w.unlisted(w.attach()), size=5)),
    ),
}

NOTHING: dict[str, Arrange] = {
    "nothing": lambda _: None,
    "sig/layer media type other": lambda w: w.layer(media_type="application/json"),
    "bundle/layer media type application/json": lambda w: w.attach(layer_type="application/json"),
    "sig/of another artifact": lambda w: w.put(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": w.blob(SIMPLE, b"{}"),
            "layers": [],
        },
        tag=f"sha256-{'0' * 64}.sig",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_good(name: str) -> None:
    world = World()
    GOOD[name](world)
    found = ask(world)
    assert found.descriptor == world.subject
    assert found.reference.digest == world.subject.digest
    assert [one.key for one in found.signers] == [key("alice").public.id]
    assert found.report.ok


@pytest.mark.parametrize("name", BAD)
def test_bad(name: str) -> None:
    rule, arrange = BAD[name]
    world = World()
    arrange(world)
    with pytest.raises(Rejected) as caught:
        ask(world)
    assert rule in rules(caught.value), name


@pytest.mark.parametrize("name", BAD)
def test_what_is_bad_is_no_veto(name: str) -> None:
    """Junk beside a good signature changes nothing, whichever stands first."""
    world = World()
    BAD[name][1](world)
    world.store.hearsay.append(world.attach())
    assert ask(world).signers
    world = World()
    world.layer()
    BAD[name][1](world)
    assert ask(world).signers


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_there_is_a_refusal(name: str) -> None:
    world = World()
    NOTHING[name](world)
    with pytest.raises(Rejected, match="no signature found") as caught:
        ask(world)
    assert rules(caught.value) == {"signature-missing"}


def test_only_an_attestation_is_said_to_be_one() -> None:
    world = World()
    world.sign(world.statement(predicateType="https://slsa.dev/provenance/v1"))
    with pytest.raises(Rejected, match="only attestations"):
        ask(world)


def test_the_raw_form_is_named_in_the_refusal() -> None:
    world = World()
    world.layer(proof=text(raw_form(key("alice").sign(world.payload()))))
    with pytest.raises(Rejected) as caught:
        ask(world)
    assert caught.value.report is not None
    assert any("r‖s" in f.message for f in caught.value.report.findings)


# 13 and 14: each key once, and enough of them


def test_one_key_counts_once_in_all_forms_and_places() -> None:
    world = World()
    world.layer()
    world.layer(world.payload(optional={"a": "b"}))
    world.attach()
    world.sign(world.statement(predicate=None))
    with pytest.raises(Rejected, match="1 of the 2 keys that must have signed did"):
        ask(world, "alice", "bob", threshold=2)


def test_signatures_of_two_keys_add_up_across_forms() -> None:
    world = World()
    world.layer(by="bob")
    world.attach()
    found = ask(world, "alice", "bob", "carol", threshold=2)
    assert [(one.key, one.form) for one in found.signers] == [
        (key("bob").public.id, "legacy"),
        (key("alice").public.id, "bundle"),
    ]
    with pytest.raises(Rejected, match="2 of the 3"):
        ask(world, "alice", "bob", "carol", threshold=3)


# places that cannot be read

FAILURES = [Denied("no"), Unavailable("later"), StoreError("odd"), NotFound("gone")]


@pytest.mark.parametrize("error", FAILURES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    "what", ["referrers", "bundle manifest", "bundle", "payload", "sig manifest"]
)
def test_unreadable_places_make_it_unknown_but_no_veto(what: str, error: StoreError) -> None:
    world = World()
    world.layer(by="bob")
    attached = world.attach(by="bob")
    sig = world.store.names[world.tag]
    at = {
        "referrers": "referrers",
        "bundle manifest": str(attached.digest),
        "bundle": str(Digest.of(compact(world.document(by="bob")))),
        "payload": str(Digest.of(world.payload())),
        "sig manifest": f"fetch {sig.digest}",
    }[what]
    raw = b"".join(world.store.fetch(attached))
    digest = raw.partition(b'"layers":[')[2].partition(b'"digest":"')[2][:71].decode()
    world.store.broken[digest if what == "bundle" else at] = error
    with pytest.raises(StoreError) as caught:
        ask(world)
    assert str(error) in str(caught.value)
    assert caught.value.exit_code == 3
    assert not isinstance(caught.value, NotFound)
    if what in ("payload", "sig manifest"):
        world.attach()
    else:
        world.layer(world.payload(optional={"by": "alice"}))
    report = ask(world).report
    assert report.ok
    read_it = what in ("payload", "sig manifest")
    assert any(f.rule == "signature-unread" for f in report.findings) == read_it


def test_a_listing_that_is_none_is_no_empty_one() -> None:
    """It could have named the signature: nobody decides on what cannot be understood."""
    world = World()
    world.store.broken["referrers"] = IntegrityError("not a listing of referrers")
    with pytest.raises(StoreError, match="not a listing of referrers") as caught:
        ask(world)
    assert caught.value.exit_code == 3
    world.layer()
    assert ask(world).report.ok


@pytest.mark.parametrize("error", [Denied("no"), Unavailable("later")])
def test_an_unreadable_sig_tag_makes_it_unknown(error: StoreError) -> None:
    world = World()
    world.store.broken[world.tag] = error
    with pytest.raises(type(error), match=r"could not be read"):
        ask(world)
    world.attach()
    assert ask(world).signers


def test_altered_content_is_a_refusal() -> None:
    world = World()
    world.layer()
    world.store.content[Digest.of(world.payload())] = world.payload(ZERO)
    with pytest.raises(Rejected) as caught:
        ask(world)
    assert "signature-malformed" in rules(caught.value)


# the name is resolved once


def test_a_tag_that_moves_between_resolve_and_verify_moves_nothing() -> None:
    world = World()
    world.layer()
    other = world.image("v2")
    resolve = world.store.resolve

    def moving(name: str) -> Descriptor:
        found = resolve(name)
        world.store.names["v1"] = other
        return found

    world.store.resolve = moving  # type: ignore[method-assign] # the double misbehaves
    found = ask(world)
    assert found.descriptor.digest == world.subject.digest
    assert str(found.reference) == f"{REFERENCE}@{world.subject.digest}"
    with pytest.raises(Rejected):
        ask(world)


def test_a_source_that_answers_with_another_digest_is_refused() -> None:
    world = World()
    world.layer()
    asked = REFERENCE.at(world.image("v2").digest)
    world.store.resolve = lambda name: world.subject  # type: ignore[method-assign] # noqa: ARG005 - misbehaves
    with pytest.raises(IntegrityError, match="answered with"):
        verify(world.store, asked, Policy((key("alice").public,)))


def test_the_subject_s_manifest_is_always_hashed() -> None:
    world = World()
    world.layer()
    raw = world.store.content[world.subject.digest]
    world.store.content[world.subject.digest] = raw.replace(b"octet", b"octeT")
    with pytest.raises(IntegrityError, match="has the digest"):
        ask(world)


def test_no_such_tag_is_not_knowing() -> None:
    world = World()
    del world.store.names["v1"]
    with pytest.raises(NotFound):
        ask(world)


@pytest.mark.parametrize("damage", [b"content of v2", b"content"])
def test_content_is_read_on_demand(damage: bytes) -> None:
    world = World()
    world.layer()
    ask(world, content=True)
    world.store.content[Digest.of(b"content of v1")] = damage
    ask(world)
    with pytest.raises(IntegrityError):
        ask(world, content=True)
    del world.store.content[Digest.of(b"content of v1")]
    with pytest.raises(NotFound):
        ask(world, content=True)


# budgets


def test_a_thousand_layers_are_looked_at_and_the_rest_is_unknown() -> None:
    world = World()
    payload = world.payload()
    node = world.blob(SIMPLE, payload)
    junk = node | {"annotations": {"dev.cosignproject.cosign/signature": "MAA"}}
    world.layers = [junk] * 999
    world.layer()
    assert ask(world).signers
    world.layers = [junk] * 1000
    world.layer()
    with pytest.raises(StoreError, match="only the first 1000"):
        ask(world)


def test_a_thousand_referrers_are_looked_at_and_the_rest_is_unknown() -> None:
    world = World()
    referrer = world.attach(layer_type="text/plain")
    world.store.hearsay = [
        Descriptor(referrer.media_type, Digest.of(b"%d" % i), 1) for i in range(999)
    ]
    for listed in world.store.hearsay:
        world.store.broken[str(listed.digest)] = IntegrityError("junk")
    with pytest.raises(Rejected):
        ask(world)
    world.store.hearsay.append(Descriptor(referrer.media_type, Digest.of(b"more"), 1))
    with pytest.raises(StoreError, match="only the first 1000"):
        ask(world)


def test_an_endless_listing_ends() -> None:
    world = World()

    def endless(subject: Descriptor) -> Any:  # noqa: ARG001 - the protocol's name
        number = 0
        while True:
            number += 1
            yield Descriptor("application/json", Digest.of(b"%d" % number), 1)

    world.store.referrers = endless  # type: ignore[method-assign] # the double misbehaves
    with pytest.raises(StoreError, match="only the first 1000"):
        ask(world)


def test_strangers_cannot_make_us_compute_and_cannot_hide_ours() -> None:
    world = World()
    for i in range(300):
        world.sign(world.statement(predicate={"n": i}), by="bob")
    with pytest.raises(StoreError, match="only 256 signatures are checked"):
        ask(world)
    world.attach()
    assert ask(world).signers


def test_what_is_too_big_for_a_signature_is_never_fetched() -> None:
    world = World()
    big = world.attach(b" " * (1024 * 1024 + 1))
    with pytest.raises(Rejected) as caught:
        ask(world)
    assert "signature-malformed" in rules(caught.value)
    blob = hashlib.sha256(b" " * (1024 * 1024 + 1)).hexdigest()
    assert f"fetch {big.digest}" in world.store.log
    assert f"fetch sha256:{blob}" not in world.store.log


def test_at_most_32_mib_are_fetched() -> None:
    world = World()
    for i in range(33):
        world.attach(b"%04d" % i + b" " * (1024 * 1024 - 4))
    with pytest.raises(StoreError, match="33554432 bytes"):
        ask(world)
    fetched = [line for line in world.store.log if line.startswith("fetch")]
    assert len(fetched) <= 1 + 33 + 32
    world.layer()
    assert ask(world).signers


# what is asked of a store


def test_a_legacy_signature_takes_five_questions_and_a_bundle_six() -> None:
    world = World()
    world.layer()
    world.attach()
    ask(world)
    sig = world.store.names[world.tag]
    assert world.store.log == [
        "resolve v1",
        f"fetch {world.subject.digest}",
        f"resolve {world.tag}",
        f"fetch {sig.digest}",
        f"fetch {Digest.of(world.payload())}",
    ]
    world = World()
    world.attach()
    ask(world)
    assert [line.split()[0] for line in world.store.log] == [
        *["resolve", "fetch", "resolve", "referrers", "fetch", "fetch"]
    ]


def test_nothing_is_fetched_twice() -> None:
    world = World()
    for name in ("bob", "carol", "alice"):
        world.layer(by=name)
    world.listed(world.subject)
    with pytest.raises(Rejected):
        ask(world, "dave")
    fetched = [line for line in world.store.log if line.startswith("fetch")]
    assert len(fetched) == len(set(fetched)) == 3


def test_likely_signatures_are_read_before_attestations() -> None:
    world = World()
    world.attach(
        world.document(world.envelope(world.statement(predicateType="https://spdx.dev/Document"))),
        more={"annotations": {"dev.sigstore.bundle.predicateType": "https://spdx.dev/Document"}},
    )
    world.attach()
    found = ask(world)
    assert len([line for line in world.store.log if line.startswith("fetch")]) == 3
    assert found.signers


def test_a_sha512_subject_is_looked_for_among_referrers_only() -> None:
    world = World()
    digest = Digest("sha512", hashlib.sha512(world.store.content[world.subject.digest]).hexdigest())
    world.store.content[digest] = world.store.content[world.subject.digest]
    big = Descriptor(world.subject.media_type, digest, world.subject.size)
    world.store.names["v1"] = world.store.manifests[digest] = big
    world.sign(world.statement(subject=[{"digest": {"sha512": digest.hex}}]))
    with pytest.raises(Rejected):
        ask(world)
    world.subject = big
    world.sign(world.statement(subject=[{"digest": {"sha512": digest.hex}}]))
    assert ask(world).signers
