"""Attestations, annotations and several policies against real signatures, check by check."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from world import OCI_MANIFEST, REFERENCE, SIGN, ZERO, World, compact, key, text

from ocipack.errors import Misuse, Rejected, StoreError, Unavailable
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.reference import Reference
from ocipack.report import Severity
from ocipack.trust.policy import Policy, VerificationPolicy
from ocipack.trust.policy.conditions import Condition, Field
from ocipack.trust.policy.model import Attestation, Authority, Exemption
from ocipack.trust.policy.names import Glob
from ocipack.verify import Exempted, Verified, decide, verify

TYPE = "https://example.com/scan/v1"
ENVELOPE = "application/vnd.dsse.envelope.v1+json"
EVERY = (Glob("**"),)
PASSED = (Field("/result", Condition("equals", "PASSED")),)

Arrange = Callable[[World], Any]


def attested(
    *names: str, threshold: int = 1, conditions: tuple[Field, ...] = PASSED, **more: Any
) -> VerificationPolicy:
    """Ask for an attestation by some of these keys, and for nothing else."""
    keys = tuple(key(name).public for name in names or ("alice",))
    wanted = Attestation("scan", TYPE, keys, threshold, conditions)
    authority = Authority("a", keys, signature=False, attestations=(wanted,))
    return VerificationPolicy(more.pop("name", "p"), EVERY, (authority,), **more)


def signed(*names: str, **more: Any) -> VerificationPolicy:
    keys = tuple(key(name).public for name in names or ("alice",))
    return VerificationPolicy(more.pop("name", "p"), EVERY, (Authority("a", keys),), **more)


def ask(world: World, *policies: VerificationPolicy, **more: Any) -> Verified | Exempted:
    name = more.pop("name", REFERENCE)
    return decide(world.store, name, Policy(policies=policies, **more))


def statement(world: World, **members: Any) -> bytes:
    said = {"predicateType": TYPE, "predicate": {"result": "PASSED"}}
    return world.statement(**(said | members))


def layer(world: World, said: bytes = b"", /, *, by: str = "alice", **members: Any) -> Descriptor:
    """Add an envelope to the `.att` manifest."""
    envelope = world.envelope(said or statement(world), by=by) | members
    node = world.blob(ENVELOPE, compact(envelope))
    node["annotations"] = {"dev.cosignproject.cosign/signature": "", "predicateType": TYPE}
    tag = f"sha256-{world.subject.digest.hex}.att"
    layers = world.layers = [*world.layers, node]
    config = world.blob("application/vnd.oci.image.config.v1+json", b"{}")
    document = {"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": layers}
    return world.put(document, tag=tag)


def other() -> list[dict[str, Any]]:
    return [{"digest": {"sha256": ZERO[7:]}}]


GOOD: dict[str, Arrange] = {
    "bundle": lambda w: w.sign(statement(w)),
    "bundle, v0.1": lambda w: w.sign(statement(w, _type="https://in-toto.io/Statement/v0.1")),
    "bundle, beside a plain signature": lambda w: (w.attach(), w.sign(statement(w))),
    "bundle, after a bad one": lambda w: (
        w.sign(statement(w, predicate={"result": "FAILED"})),
        w.sign(statement(w)),
    ),
    "att": layer,
    "att, v0.1": lambda w: layer(w, statement(w, _type="https://in-toto.io/Statement/v0.1")),
    "att, after junk": lambda w: (layer(w, payload="x"), layer(w)),
    "att, after a stranger's": lambda w: (layer(w, by="mallory"), layer(w)),
    "att, second of two subjects": lambda w: layer(
        w, statement(w, subject=[*other(), {"digest": {"sha256": w.subject.digest.hex}}])
    ),
}

BAD: dict[str, tuple[Arrange, set[str]]] = {
    "nothing": (lambda _: None, set()),
    "a plain signature": (lambda w: w.attach(), set()),
    "(5) attached to something else": (
        lambda w: w.attach(w.document(w.envelope(statement(w))), to=w.image("v0")),
        {"signature-subject"},
    ),
    "(6) a member that is not known": (
        lambda w: w.sign(statement(w), more=1),
        {"signature-malformed"},
    ),
    "(8) not in-toto": (
        lambda w: w.attach(w.document(w.envelope(statement(w), kind="text/plain"))),
        {"signature-malformed"},
    ),
    "(8) att, not in-toto": (
        lambda w: layer(w, **w.envelope(statement(w), kind="text/plain")),
        {"signature-malformed"},
    ),
    "(9) an unknown version": (
        lambda w: w.sign(statement(w, _type="https://in-toto.io/Statement/v2")),
        {"signature-malformed"},
    ),
    "(9) att, a member twice": (
        lambda w: layer(w, statement(w)[:-1] + b',"predicate":{"result":"PASSED"}}'),
        {"signature-malformed"},
    ),
    "(11) another digest": (
        lambda w: w.sign(statement(w, subject=other())),
        {"signature-digest"},
    ),
    "(11) att, another digest": (
        lambda w: layer(w, statement(w, subject=other())),
        {"signature-digest"},
    ),
    "(15) att, an unknown member": (lambda w: layer(w, extra=1), {"signature-malformed"}),
    "(15) att, no signature": (lambda w: layer(w, signatures=[]), {"signature-malformed"}),
    "(15) att, two signatures": (
        lambda w: layer(w, signatures=w.envelope(statement(w))["signatures"] * 2),
        {"signature-malformed"},
    ),
    "(16) another type": (
        lambda w: w.sign(statement(w, predicateType=TYPE + "/x")),
        {"signature-predicate"},
    ),
    "(16) att, another type": (
        lambda w: layer(w, statement(w, predicateType=TYPE.upper())),
        {"signature-predicate"},
    ),
    "(16) att, a plain signature": (
        lambda w: layer(w, statement(w, predicateType=SIGN)),
        {"signature-predicate"},
    ),
    "(17) a stranger": (lambda w: w.sign(statement(w), by="mallory"), {"signature-foreign"}),
    "(17) att, a stranger": (lambda w: layer(w, by="mallory"), {"signature-foreign"}),
    "(17) att, the payload changed": (
        lambda w: layer(w, payload=text(statement(w, predicate={"result": "PASSED", "a": 1}))),
        {"signature-foreign"},
    ),
    "(17) att, signed without the encoding": (
        lambda w: layer(w, signatures=[{"sig": text(key("alice").sign(statement(w)))}]),
        {"signature-foreign"},
    ),
    "(19) a condition": (
        lambda w: w.sign(statement(w, predicate={"result": "FAILED"})),
        {"attestation-unfit"},
    ),
    "(19) att, no predicate": (
        lambda w: layer(w, w.statement(predicateType=TYPE, without=("predicate",))),
        {"attestation-unfit"},
    ),
}


@pytest.mark.parametrize("arrange", GOOD.values(), ids=GOOD)
def test_a_good_attestation(arrange: Arrange) -> None:
    world = World()
    arrange(world)
    found = ask(world, attested())
    assert isinstance(found, Verified)
    assert [(one.key, one.predicate_type) for one in found.signers] == [
        (key("alice").public.id, TYPE)
    ]
    assert found.report.ok


@pytest.mark.parametrize(("arrange", "why"), BAD.values(), ids=BAD)
def test_a_bad_attestation(arrange: Arrange, why: set[str]) -> None:
    world = World()
    arrange(world)
    with pytest.raises(Rejected) as caught:
        ask(world, attested())
    assert caught.value.report is not None
    assert {one.rule for one in caught.value.report.findings if one.severity is Severity.ERROR} == {
        *why,
        "signature-missing",
    }


@pytest.mark.parametrize("kind", [TYPE, "https://slsa.dev/provenance/v1"])
def test_an_attestation_is_no_signature_even_where_it_is_asked_for(kind: str) -> None:
    world = World()
    world.sign(statement(world, predicateType=kind))
    wanted = Attestation("scan", TYPE, (key("alice").public,))
    both = Authority("a", (key("alice").public,), attestations=(wanted,))
    policy = VerificationPolicy("p", EVERY, (both,))
    with pytest.raises(Rejected, match="0 of the 1 keys that must have signed"):
        ask(world, policy)
    world.attach()
    if kind == TYPE:
        assert isinstance(ask(world, policy), Verified)
    else:
        with pytest.raises(Rejected, match="attestation scan"):
            ask(world, policy)


def test_each_key_attests_once_and_the_threshold_counts_keys() -> None:
    world = World()
    world.sign(statement(world))
    layer(world)
    with pytest.raises(Rejected, match="1 of the 2 keys that must have made it"):
        ask(world, attested("alice", "bob", threshold=2))
    world.sign(statement(world), by="bob")
    assert len(ask(world, attested("alice", "bob", threshold=2)).signers) == 2


def test_the_att_tag_is_read_only_where_attestations_are_asked_for() -> None:
    world = World()
    world.layer()
    ask(world, signed())
    assert not [line for line in world.store.log if ".att" in line]
    other_world = World()
    other_world.sign(statement(other_world))
    ask(other_world, attested())
    assert not [line for line in other_world.store.log if ".sig" in line]


def test_a_long_attestation_is_read_and_a_longer_one_is_not() -> None:
    world = World()
    world.sign(statement(world, predicate={"result": "PASSED", "sbom": "x" * (2 << 20)}))
    assert isinstance(ask(world, attested()), Verified)
    longer = World()
    longer.sign(statement(longer, predicate={"result": "PASSED", "sbom": "x" * (13 << 20)}))
    with pytest.raises(Rejected):
        ask(longer, attested())


def test_a_place_that_cannot_be_read_leaves_it_open() -> None:
    world = World()
    world.store.broken[f"sha256-{world.subject.digest.hex}.att"] = Unavailable("no answer")
    with pytest.raises(StoreError, match=r"\.att could not be read: no answer"):
        ask(world, attested())
    found = ask(world, attested(mode="warn"))
    assert isinstance(found, Exempted)
    assert "could not be read" in str(found.waivers[0])
    world.sign(statement(world))
    assert isinstance(ask(world, attested()), Verified)


# signed annotations

ANNOTATED: dict[str, Callable[[World, dict[str, Any]], Any]] = {
    "legacy": lambda w, said: w.layer(w.payload(optional=said)),
    "bundle": lambda w, said: w.sign(
        w.statement(subject=[{"digest": {"sha256": w.subject.digest.hex}, "annotations": said}])
    ),
}
PROD = (("environment", Condition("equals", "production")),)


@pytest.mark.parametrize("sign", ANNOTATED.values(), ids=ANNOTATED)
@pytest.mark.parametrize(
    ("said", "good"),
    [
        ({"environment": "production"}, True),
        ({"environment": "production", "more": 1}, True),
        ({"environment": "dev"}, False),
        ({"environment": ["production"]}, False),
        ({"Environment": "production"}, False),
        ({}, False),
    ],
)
def test_annotations_must_be_signed(
    sign: Callable[[World, dict[str, Any]], Any],
    said: dict[str, Any],
    good: bool,  # noqa: FBT001 - a table
) -> None:
    world = World()
    sign(world, said)
    policy = signed(annotations=PROD)
    if good:
        assert isinstance(ask(world, policy), Verified)
        return
    with pytest.raises(Rejected, match="its signed annotation environment says") as caught:
        ask(world, policy)
    assert caught.value.report is not None
    assert "signature-unfit" in {one.rule for one in caught.value.report.findings}


def test_annotations_of_another_subject_of_the_statement_do_not_count() -> None:
    world = World()
    world.sign(
        world.statement(
            subject=[
                {"digest": {"sha256": ZERO[7:]}, "annotations": {"environment": "production"}},
                {"digest": {"sha256": world.subject.digest.hex}},
            ]
        )
    )
    with pytest.raises(Rejected, match="says nothing"):
        ask(world, signed(annotations=PROD))


def test_annotations_of_an_attestation_do_not_count() -> None:
    world = World()
    said = [
        {
            "digest": {"sha256": world.subject.digest.hex},
            "annotations": {"environment": "production"},
        }
    ]
    world.sign(statement(world, subject=said))
    world.attach()
    wanted = Attestation("scan", TYPE, (key("alice").public,))
    both = Authority("a", (key("alice").public,), attestations=(wanted,))
    with pytest.raises(Rejected, match="says nothing"):
        ask(world, VerificationPolicy("p", EVERY, (both,), annotations=PROD))


def test_the_tag_that_was_asked_for_must_be_the_one_that_was_signed() -> None:
    world = World()
    world.layer(world.payload(optional={"tag": "v1"}))
    policy = signed(bind=("tag",))
    assert isinstance(ask(world, policy), Verified)
    world.store.names["v2"] = world.subject
    with pytest.raises(Rejected, match="says 'v1', and 'v2' was asked for"):
        ask(world, policy, name=Reference.parse("registry.example.com/team/app:v2"))
    with pytest.raises(Rejected, match="no tag was asked for"):
        ask(
            world,
            policy,
            name=Reference.parse(f"registry.example.com/team/app@{world.subject.digest}"),
        )


# policies together, and what needs no proof


def test_every_policy_must_be_met_and_the_search_goes_on_until_they_are() -> None:
    world = World()
    world.layer()
    one, two = signed("alice", name="one"), signed("bob", name="two")
    with pytest.raises(Rejected, match="policy two: no signature"):
        ask(world, one, two)
    world.attach(by="bob")
    found = ask(world, one, two)
    assert {signer.key for signer in found.signers} == {
        key("alice").public.id,
        key("bob").public.id,
    }


def test_a_refusal_and_silence_fetch_nothing() -> None:
    world = World()
    world.layer()
    elsewhere = VerificationPolicy(
        "p", (Glob("localhost/x"),), (Authority("a", (key("alice").public,)),)
    )
    with pytest.raises(Rejected, match="no policy covers"):
        ask(world, elsewhere)
    never = VerificationPolicy("p", EVERY, static="fail", reason="withdrawn")
    with pytest.raises(Rejected, match="withdrawn"):
        ask(world, signed(name="q"), never)
    assert world.store.log == []


def test_a_static_pass_and_an_exemption_look_for_no_signature() -> None:
    world = World()
    always = VerificationPolicy("p", EVERY, static="pass", reason="vendor")
    until = Exemption(EVERY, "team", "legacy", date(2026, 12, 1))
    exempt = signed(exemptions=(until,))
    for policy, kind in ((always, "static"), (exempt, "exempted")):
        world.store.log.clear()
        found = ask(world, policy, today=date(2026, 12, 1))
        assert isinstance(found, Exempted)
        assert [waiver.kind for waiver in found.waivers] == [kind]
        assert found.descriptor == world.subject
        assert {line.split()[0] for line in world.store.log} == {"resolve", "fetch"}
        assert found.report.count(Severity.WARNING) == 1
        with pytest.raises(Rejected, match="it is exempted, not proven"):
            verify(world.store, REFERENCE, Policy(policies=(policy,), today=date(2026, 12, 1)))
    with pytest.raises(Rejected, match="no signature found") as caught:
        ask(world, exempt, today=date(2026, 12, 2))
    assert caught.value.report is not None
    assert "policy-expired" in {one.rule for one in caught.value.report.findings}


def test_an_exemption_from_one_policy_is_none_from_another() -> None:
    world = World()
    until = Exemption(EVERY, "team", "legacy", date(2026, 12, 1))
    exempt = signed("bob", name="exempt", exemptions=(until,))
    with pytest.raises(Rejected, match="no signature found"):
        ask(world, exempt, signed(name="strict"), today=date(2026, 12, 1))
    world.layer()
    found = ask(world, exempt, signed(name="strict"), today=date(2026, 12, 1))
    assert isinstance(found, Exempted)
    assert len(found.signers) == 1


def test_a_policy_that_warns_is_met_or_waived() -> None:
    world = World()
    world.layer()
    assert isinstance(ask(world, signed(mode="warn")), Verified)
    assert isinstance(ask(world, signed("bob", mode="warn")), Exempted)
    both = World()
    both.layer()
    both.attach(by="bob")  # found only if the search does not stop at what refuses
    policies = signed(name="strict"), signed("bob", name="lax", mode="warn")
    assert isinstance(ask(both, *policies), Verified)
    found = ask(world, signed(name="strict"), signed("bob", name="lax", mode="warn"))
    assert isinstance(found, Exempted)
    with pytest.raises(Rejected):
        ask(world, signed("bob", name="strict"), signed(name="lax", mode="warn"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: VerificationPolicy("p", (), ()), "covers no image"),
        (lambda: VerificationPolicy("p", EVERY), "would refuse everything"),
        (lambda: signed(mode="audit"), "the mode is"),
        (lambda: signed(bind=("environment",)), "can be bound"),
        (lambda: signed(static="pass", reason="r"), "no effect"),
        (lambda: VerificationPolicy("p", EVERY, static="maybe", reason="r"), "static is"),
        (lambda: VerificationPolicy("p", EVERY, static="pass"), "needs a reason"),
        (lambda: attested(annotations=PROD), "needs none"),
        (lambda: attested(bind=("tag",)), "needs none"),
        (lambda: Attestation("a", SIGN, (key("alice").public,)), "is no attestation"),
        (lambda: Authority("a", (key("alice").public,), signature=False), "neither"),
        (lambda: Authority("a", (key("alice").public,), forms=()), "the forms are"),
        (lambda: Exemption((), "o", "r", date(2026, 1, 1)), "needs images"),
        (lambda: Exemption(EVERY, " ", "r", date(2026, 1, 1)), "an owner"),
        (lambda: Exemption(EVERY, "o", "", date(2026, 1, 1)), "a reason"),
        (lambda: Policy(policies=(signed(), signed("bob"))), "two policies have the name 'p'"),
    ],
)
def test_what_is_no_policy(make: Callable[[], object], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        make()


def test_the_budget_counts_keys_of_policies_that_ask() -> None:
    world = World()
    for number in range(5):
        world.layer(by=f"stranger {number}")
    many = [signed(*(f"k{n}-{i}" for i in range(30)), name=f"p{n}") for n in range(2)]
    with pytest.raises(StoreError, match="only 256 signatures are checked"):
        ask(world, *many)
