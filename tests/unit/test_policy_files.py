"""Policies as files: each field flips a verdict, and what is not understood is refused by place."""

from __future__ import annotations

from datetime import date

import pytest
from policies import ATTESTED, AUTHORITIES, BASE, FLIPS, ONLY, SLSA, WRONG, find, load, signed
from world import key

from ocipack.errors import Misuse
from ocipack.oci.reference import Reference
from ocipack.trust.policy import Policy
from ocipack.trust.policy.decision import Evidence, ask, verdict
from ocipack.trust.policy.reader import read
from ocipack.trust.policy.words import demands

NAME = Reference.parse("registry.example.com/prod/app:v1")
TODAY = date(2026, 11, 30)


def decide(
    spec: str, *evidence: Evidence, name: Reference = NAME, today: date | None = TODAY
) -> str:
    return verdict(ask(Policy(policies=load(spec), today=today), name), evidence)


@pytest.mark.parametrize(
    ("one", "other", "evidence", "before", "after"),
    [flip[1:] for flip in FLIPS],
    ids=[flip[0] for flip in FLIPS],
)
def test_each_field_decides(
    one: str, other: str, evidence: tuple[Evidence, ...], before: str, after: str
) -> None:
    assert decide(one, *evidence) == before
    assert decide(other, *evidence) == after


def test_no_exemption_holds_for_who_does_not_know_the_day() -> None:
    spec = BASE + "exemptions: [{images: ['**'], owner: t, reason: r, until: 2999-01-01}]"
    assert decide(spec, today=TODAY) == "exempted"
    assert decide(spec, today=None) == "rejected"


def test_what_no_policy_covers_is_refused() -> None:
    elsewhere = Reference.parse("ghcr.example.org/prod/app:v1")
    assert decide(BASE, signed("alice"), name=elsewhere) == "rejected"
    [finding] = ask(Policy(policies=load(BASE)), elsewhere).refusals
    assert finding.rule == "policy-unmatched"


def test_a_list_of_policies_all_of_which_must_be_met() -> None:
    text = """
apiVersion: ocipack.dev/v1alpha1
kind: VerificationPolicyList
items:
  - metadata: {name: everywhere}
    spec: {images: ["**"], authorities: [{keys: [{file: alice.pub}]}]}
  - apiVersion: ocipack.dev/v1alpha1
    kind: VerificationPolicy
    metadata: {name: production}
    spec: {images: ["registry.example.com/prod/*"], authorities: [{keys: [{file: bob.pub}]}]}
"""
    policies = read(text.encode(), file="l.yaml", key=find)
    assert [one.name for one in policies] == ["everywhere", "production"]
    question = ask(Policy(policies=policies), NAME)
    assert verdict(question, [signed("alice")]) == "rejected"
    assert verdict(question, [signed("bob")]) == "rejected"
    assert verdict(question, [signed("alice"), signed("bob")]) == "verified"
    beside = ask(Policy(policies=policies), Reference.parse("registry.example.com/app:v1"))
    assert verdict(beside, [signed("alice")]) == "verified"


@pytest.mark.parametrize(("line", "where", "words"), WRONG)
def test_what_is_wrong_is_refused_where_it_stands(line: str, where: str, words: str) -> None:
    with pytest.raises(Misuse) as caught:
        load(BASE + line)
    said = f"{caught.value} {caught.value.hint}"
    assert said.startswith(where), said
    assert words in said


@pytest.mark.parametrize(("authority", "words"), AUTHORITIES)
def test_what_is_no_authority(authority: str, words: str) -> None:
    with pytest.raises(Misuse) as caught:
        load(f"images: ['**']\nauthorities:\n  - {authority}")
    assert str(caught.value).startswith("p.yaml:")
    assert words in str(caught.value)


FILES: list[tuple[str, str]] = [
    ("", "the file is empty"),
    ("[]", "should be a mapping"),
    ("a: b", "this is no policy: kind is missing, apiVersion missing"),
    ("apiVersion: ocipack.dev/v1\nkind: VerificationPolicy", "is no policy"),
    ("apiVersion: ocipack.dev/v1alpha1\nkind: Policy", "is no policy"),
    ("apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy", "has no metadata"),
    ("apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicyList", "has no items"),
    ("apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicyList\nitems: []", "is empty"),
    ("apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicyList\nitems: [{kind: A}]", "kind"),
    ("apiVersion: a\n---\napiVersion: b", "a second document"),
    ("apiVersion: \xa0\u2028", "U+2028"),
    ("a: " + "x" * (1024 * 1024), "longer than"),
]


@pytest.mark.parametrize(("text", "words"), FILES)
def test_what_is_no_policy_file(text: str, words: str) -> None:
    with pytest.raises(Misuse, match=r"^p.yaml:[0-9]+:[0-9]+: ") as caught:
        read(text.encode(), file="p.yaml", key=find)
    assert words in str(caught.value)


def test_what_signatures_say_cannot_be_asked_of_who_signs_nothing() -> None:
    for line in ("annotations: {a: b}", "bind: [tag]", "notOlderThan: {version: 1.0.0}"):
        with pytest.raises(Misuse, match="an authority that needs none"):
            load(ONLY + line)


def test_a_policy_in_words_leaves_nothing_out() -> None:
    spec = (
        ATTESTED
        + "        conditions: [{field: /builder/level, atLeast: 3}]\n"
        + "mode: warn\nannotations: {environment: {oneOf: [a, b]}}\nbind: [tag]\n"
        + "notOlderThan: {version: 1.0.0, created: 2026-01-01T00:00:00Z}\n"
        + "exemptions: [{images: [localhost/x], owner: team, reason: why, until: 2026-01-01}]\n"
    )
    said = "\n".join(demands(load(spec)[0]))
    for words in (
        *("only warns", "environment one of 'a', 'b'", "says tag", "1.0.0", "2026-01-01T00:00:00"),
        *(
            "authority authority-0",
            key("alice").public.id[:12],
            SLSA,
            "/builder/level",
            "atLeast 3",
        ),
        *("localhost/x", "team", "why", "until 2026-01-01"),
    ):
        assert words in said
    for static in ("pass", "fail"):
        [line] = demands(load(f"images: ['**']\nstatic: {static}\nreason: because")[0])
        assert "because" in line
