"""What real cosign binaries signed and attested gets the verdict that their README asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from world import VECTORS, LayoutDouble, published

from ocipack.errors import Rejected
from ocipack.oci.reference import Reference
from ocipack.stores.layout import LayoutStore
from ocipack.trust.policy import Policy, VerificationPolicy
from ocipack.trust.policy.conditions import Condition, Field
from ocipack.trust.policy.model import Attestation, Authority
from ocipack.trust.policy.names import Glob
from ocipack.verify import Verified, verify

EXPECTED: dict[str, dict[str, Any]] = {
    entry["layout"]: entry for entry in json.loads((VECTORS / "expected.json").read_bytes())
}

YES: list[tuple[str, str, str]] = [  # layout, key, form
    ("v3-key-bundle", "alice", "bundle"),
    ("v3-key-legacy", "alice", "legacy"),
    ("v2-key-legacy", "alice", "legacy"),
    ("v2-key-bundle", "alice", "bundle"),
    ("both", "alice", "legacy"),
    ("index-recursive-bundle", "alice", "bundle"),
    ("index-recursive-legacy", "alice", "legacy"),
    ("two-keys-bundle", "alice", "bundle"),
    ("two-keys-bundle", "bob", "bundle"),
    ("two-keys-legacy", "alice", "legacy"),
    ("two-keys-legacy", "bob", "legacy"),
    ("same-key-twice-bundle", "alice", "bundle"),
    ("same-key-twice-legacy", "alice", "legacy"),
    ("annotated-bundle", "alice", "bundle"),
    ("annotated-legacy", "alice", "legacy"),
    ("key-p384", "p384", "legacy"),
    ("key-rsa2048", "rsa2048", "legacy"),
    ("key-ed25519", "ed25519", "legacy"),
    ("foreign-attestation", "alice", "legacy"),
    ("fallback-v3", "alice", "bundle"),
    ("fallback-v3", "bob", "bundle"),
    ("fallback-v2", "alice", "bundle"),
    ("fallback-v2", "bob", "bundle"),
    ("fallback-tag-is-subject", "alice", "legacy"),
]

NO: list[tuple[str, str, set[str]]] = [  # layout, key, why (rules of the report)
    ("v3-key-bundle", "bob", {"signature-foreign"}),
    ("v3-key-legacy", "bob", {"signature-foreign"}),
    ("v2-key-legacy", "bob", {"signature-foreign"}),
    ("v2-key-bundle", "bob", {"signature-foreign"}),
    ("both", "bob", {"signature-foreign"}),
    ("v3-attestations", "alice", {"signature-predicate"}),
    ("v2-att", "alice", set()),
    ("v3-att", "alice", set()),
    ("index-only", "alice", set()),
    ("key-p384", "alice", {"signature-foreign"}),
    ("legacy-as-referrer", "alice", set()),
    ("foreign-attestation", "bob", {"signature-foreign", "signature-predicate"}),
    ("attestation-is-no-signature", "alice", {"signature-predicate"}),
    ("wrong-digest-legacy", "alice", {"signature-digest"}),
    ("wrong-digest-bundle", "alice", {"signature-digest"}),
    ("fallback-subject-differs", "alice", {"signature-subject"}),
    ("fallback-subject-differs-statement-fits", "alice", {"signature-subject"}),
]


def place(layout: str) -> tuple[LayoutDouble, Reference]:
    entry = EXPECTED[layout]
    return LayoutDouble(VECTORS / layout), Reference.parse(
        f"{entry['repository']}@{entry['subject']}"
    )


@pytest.mark.parametrize(("layout", "key", "form"), YES)
def test_yes_in_a_layout(layout: str, key: str, form: str) -> None:
    reference = place(layout)[1]
    policy = Policy((published(key),), allow_example_keys=True)
    found = verify(LayoutStore(VECTORS / layout), reference, policy, content=True)
    assert [(one.key, one.form) for one in found.signers] == [(published(key).id, form)]


@pytest.mark.parametrize(("layout", "key", "why"), NO)
def test_no_in_a_layout(layout: str, key: str, why: set[str]) -> None:
    reference = place(layout)[1]
    policy = Policy((published(key),), allow_example_keys=True)
    with pytest.raises(Rejected) as caught:
        verify(LayoutStore(VECTORS / layout), reference, policy)
    assert caught.value.report is not None
    found = {f.rule for f in caught.value.report.findings if f.severity.rank == 0}
    # a layout does not list what names another subject
    assert found == {*why, "signature-missing"} - {"signature-subject"}


def ask(layout: str, *keys: str, threshold: int = 1) -> Verified:
    source, reference = place(layout)
    trusted = tuple(published(key) for key in keys)
    return verify(source, reference, Policy(trusted, threshold, allow_example_keys=True))


def test_every_layout_has_a_verdict() -> None:
    assert {layout for layout, *_ in [*YES, *NO]} == set(EXPECTED)
    assert len(EXPECTED) == 30


@pytest.mark.parametrize(("layout", "key", "form"), YES)
def test_yes(layout: str, key: str, form: str) -> None:
    found = ask(layout, key)
    assert [(one.key, one.form) for one in found.signers] == [(published(key).id, form)]
    assert str(found.reference).endswith(f"@{EXPECTED[layout]['subject']}")
    assert found.report.ok


@pytest.mark.parametrize(("layout", "key", "why"), NO)
def test_no(layout: str, key: str, why: set[str]) -> None:
    with pytest.raises(Rejected) as caught:
        ask(layout, key)
    assert caught.value.report is not None
    assert {
        finding.rule for finding in caught.value.report.findings if finding.severity.rank == 0
    } == {*why, "signature-missing"}


@pytest.mark.parametrize("layout", ["key-p384", "key-rsa2048", "key-ed25519"])
def test_the_bundles_of_rare_keys_are_good_too(layout: str) -> None:
    source, reference = place(layout)
    source.names = {name: at for name, at in source.names.items() if not name.endswith(".sig")}
    trusted = published(layout.removeprefix("key-"))
    found = verify(source, reference, Policy((trusted,), allow_example_keys=True))
    assert [one.form for one in found.signers] == ["bundle"]


@pytest.mark.parametrize("layout", ["two-keys-bundle", "two-keys-legacy", "fallback-v2"])
def test_two_of_two(layout: str) -> None:
    found = ask(layout, "alice", "bob", threshold=2)
    assert {one.key for one in found.signers} == {published("alice").id, published("bob").id}


@pytest.mark.parametrize("layout", ["same-key-twice-bundle", "same-key-twice-legacy", "both"])
def test_one_signer_is_one_however_often_it_signed(layout: str) -> None:
    with pytest.raises(Rejected, match="1 of the 2 keys"):
        ask(layout, "alice", "bob", threshold=2)


@pytest.mark.parametrize("layout", ["index-recursive-bundle", "index-recursive-legacy"])
def test_children_of_an_index_are_signed_for_themselves(layout: str) -> None:
    source, reference = place(layout)
    policy = Policy((published("alice"),), allow_example_keys=True)
    index = json.loads(b"".join(source.fetch(source.resolve(reference.name))))
    assert len(index["manifests"]) == 2
    for child in index["manifests"]:
        pinned = Reference.parse(f"{reference.bare}@{child['digest']}")
        assert verify(source, pinned, policy).descriptor.digest == pinned.digest


def test_the_index_above_an_unsigned_child_is_signed() -> None:
    source, _ = place("index-only")
    policy = Policy((published("alice"),), allow_example_keys=True)
    root = source.resolve("v1")
    pinned = Reference.parse(f"localhost:5803/team/index-only@{root.digest}")
    assert verify(source, pinned, policy).manifest.is_index


def test_a_stranger_s_bundle_hides_nothing() -> None:
    assert [one.form for one in ask("foreign-attestation", "alice").signers] == ["legacy"]


EVERY = (Glob("**"),)
TYPES = {
    "slsaprovenance1": "https://slsa.dev/provenance/v1",
    "custom": "https://cosign.sigstore.dev/attestation/v1",
    "spdxjson": "https://spdx.dev/Document",
    "cyclonedx": "https://cyclonedx.org/bom",
    "test-result": "https://in-toto.io/attestation/test-result/v0.1",
}
VULN = "https://cosign.sigstore.dev/attestation/vuln/v1"


def attested(layout: str, kind: str, by: str, *conditions: Field) -> Verified:
    source, reference = place(layout)
    keys = (published(by),)
    wanted = Attestation(kind, kind, keys, conditions=conditions)
    authority = Authority("a", keys, signature=False, attestations=(wanted,))
    policy = VerificationPolicy("p", EVERY, (authority,))
    return verify(source, reference, Policy(policies=(policy,), allow_example_keys=True))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("layout", ["v3-attestations", "v2-att", "v3-att"])
def test_attestations_of_each_type(layout: str, kind: str) -> None:
    [signer] = attested(layout, TYPES[kind], "alice").signers
    assert signer.predicate_type == TYPES[kind]
    assert signer.form == ("bundle" if layout == "v3-attestations" else "legacy")
    with pytest.raises(Rejected):
        attested(layout, TYPES[kind], "bob")


@pytest.mark.parametrize("layout", ["v3-attestations", "v2-att", "v3-att"])
def test_an_attestation_that_nobody_made(layout: str) -> None:
    with pytest.raises(Rejected, match="0 of the 1 keys that must have made it"):
        attested(layout, VULN, "alice")


@pytest.mark.parametrize("layout", ["v3-attestations", "v2-att", "v3-att"])
def test_conditions_of_what_cosign_attested(layout: str) -> None:
    predicate = json.loads((VECTORS / "predicates" / "test-result.json").read_bytes())
    said = predicate["result"]
    good, bad = (Field("/result", Condition("equals", value)) for value in (said, f"{said}?"))
    assert attested(layout, TYPES["test-result"], "alice", good).signers
    with pytest.raises(Rejected, match="/result is not"):
        attested(layout, TYPES["test-result"], "alice", bad)


@pytest.mark.parametrize("layout", ["attestation-is-no-signature", "v3-attestations"])
def test_a_provenance_is_an_attestation_though_no_signature(layout: str) -> None:
    assert attested(layout, TYPES["slsaprovenance1"], "alice").signers


@pytest.mark.parametrize("layout", ["annotated-bundle", "annotated-legacy"])
@pytest.mark.parametrize(("value", "good"), [("prod", True), ("dev", False)])
def test_signed_annotations(layout: str, value: str, good: bool) -> None:  # noqa: FBT001 - a table
    source, reference = place(layout)
    policy = VerificationPolicy(
        "p",
        EVERY,
        (Authority("a", (published("alice"),)),),
        annotations=(("env", Condition("equals", value)),),
    )
    trusted = Policy(policies=(policy,), allow_example_keys=True)
    if good:
        assert verify(source, reference, trusted).signers
        return
    with pytest.raises(Rejected, match="its signed annotation env says 'prod', not 'dev'"):
        verify(source, reference, trusted)
