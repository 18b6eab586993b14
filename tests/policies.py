"""Policies as text, evidence about a name, and what follows: tables for more than one test."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Anything
from pathlib import Path
from typing import Any

import jsonschema_rs
from world import key

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Mapping, Node, Sequence, compose
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy import VerificationPolicy
from ocipack.trust.policy.decision import Evidence
from ocipack.trust.policy.reader import read

DOCS = Path(__file__).parents[1] / "docs"
SCHEMA = jsonschema_rs.validator_for(
    json.loads((DOCS / "schemas/policy-v1alpha1.json").read_text()), validate_formats=True
)
HEAD = {"apiVersion": "ocipack.dev/v1alpha1", "kind": "VerificationPolicy"}


SIGN = "https://sigstore.dev/cosign/sign/v1"
SLSA = "https://slsa.dev/provenance/v1"


def find(name: str) -> PublicKey:
    if not name.endswith(".pub"):
        raise Misuse(f"{name}: no such key")
    return key(name.removesuffix(".pub")).public


def load(spec: str, file: str = "p.yaml") -> tuple[VerificationPolicy, ...]:
    """A policy with this spec, written flush left."""
    lines = "".join(f"  {line}\n" for line in spec.strip().splitlines())
    head = (
        "apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\nmetadata: {name: p}\nspec:\n"
    )
    return read((head + lines).encode(), file=file, key=find)


def plain(node: Node | None) -> Any:
    """A document as an editor sees it; dates and times are text there."""
    assert node is not None
    if isinstance(node, Mapping):
        return {pair.key: plain(pair.value) for pair in node.pairs}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    if node.is_text or re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*", node.text):
        return node.text
    words = {"true": True, "false": False}
    return words[node.text] if node.text in words else json.loads(node.text)


def spec(text: str) -> dict[str, Any]:
    found = compose(text.encode())
    assert not found.problems
    return HEAD | {"metadata": {"name": "p"}, "spec": plain(found.root)}


def signed(by: str, form: str = "bundle", **annotations: Any) -> Evidence:
    return Evidence(key(by).public.id, form, "here", SIGN, annotations, {})


def attested(
    by: str, predicate: Anything[str, Any], kind: str = SLSA, form: str = "bundle"
) -> Evidence:
    return Evidence(key(by).public.id, form, "here", kind, {}, predicate)


BASE = """
images: ["registry.example.com/**"]
authorities:
  - keys: [{file: alice.pub}, {file: bob.pub}]
"""
ATTESTED = """
images: ["**"]
authorities:
  - keys: [{file: alice.pub}]
    attestations:
      - predicateType: https://slsa.dev/provenance/v1
"""
ONLY = ATTESTED.replace("    attestations", "    signature: false\n    attestations")
SPLIT = """
images: ["**"]
authorities:
  - {keys: [{file: alice.pub}, {file: carol.pub}], threshold: 2}
  - {keys: [{file: bob.pub}, {file: carol.pub}], threshold: 2}
"""
CONDITION = (
    "{keys: [{file: alice.pub}], attestations: "
    f"[{{predicateType: '{SLSA}', conditions: [{{%s}}]}}]}}"
)
GOOD, BAD = {"builder": {"id": "https://ci.example.com", "level": 3}}, {"builder": {"id": "evil"}}

FLIPS: list[tuple[str, str, str, tuple[Evidence, ...], str, str]] = [
    # what is changed, the policy before and after, the evidence, the verdict before and after
    (
        "images",
        BASE,
        BASE.replace("example.com/**", "example.com/dev/**"),
        (signed("alice"),),
        "verified",
        "rejected",
    ),
    ("keys", BASE, BASE.replace("alice", "carol"), (signed("alice"),), "verified", "rejected"),
    (
        "keys data",
        BASE,
        BASE.replace(
            "{file: alice.pub}", f"{{data: {json.dumps(key('carol').public.pem.decode())}}}"
        ),
        (signed("alice"),),
        "verified",
        "rejected",
    ),
    ("threshold", BASE, BASE + "    threshold: 2", (signed("alice"),), "verified", "rejected"),
    (
        "threshold met",
        BASE,
        BASE + "    threshold: 2",
        (signed("alice"), signed("bob")),
        "verified",
        "verified",
    ),
    (
        "threshold, one key twice",
        BASE,
        BASE + "    threshold: 2",
        (signed("alice"), signed("alice", "legacy")),
        "verified",
        "rejected",
    ),
    ("formats", BASE, BASE + "    formats: [legacy]", (signed("alice"),), "verified", "rejected"),
    ("mode", BASE, BASE + "mode: warn", (signed("carol"),), "rejected", "exempted"),
    ("mode, met", BASE, BASE + "mode: warn", (signed("alice"),), "verified", "verified"),
    (
        "annotations",
        BASE,
        BASE + "annotations: {environment: production}",
        (signed("alice", environment="dev"),),
        "verified",
        "rejected",
    ),
    (
        "annotations, said by nobody",
        BASE,
        BASE + "annotations: {environment: production}",
        (signed("alice"),),
        "verified",
        "rejected",
    ),
    (
        "annotations, two signatures together",
        BASE + "annotations: {a: '1'}",
        BASE + "annotations: {a: '1', b: '2'}",
        (signed("alice", a="1"), signed("bob", b="2")),
        "verified",
        "rejected",
    ),
    (
        "annotations oneOf",
        BASE + "annotations: {environment: {oneOf: [dev, stage]}}",
        BASE + "annotations: {environment: {oneOf: [stage, prod]}}",
        (signed("alice", environment="dev"),),
        "verified",
        "rejected",
    ),
    (
        "annotations like",
        BASE + "annotations: {revision: {like: 'main@sha1:*'}}",
        BASE + "annotations: {revision: {like: 'release@sha1:*'}}",
        (signed("alice", revision="main@sha1:00"),),
        "verified",
        "rejected",
    ),
    (
        "bind tag",
        BASE,
        BASE + "bind: [tag]",
        (signed("alice", tag="v2"),),
        "verified",
        "rejected",
    ),
    (
        "bind repository",
        BASE,
        BASE + "bind: [repository]",
        (signed("alice", repository="registry.example.com/dev/app"),),
        "verified",
        "rejected",
    ),
    (
        "notOlderThan version",
        BASE + "notOlderThan: {version: 1.2.0}",
        BASE + "notOlderThan: {version: 1.3.0}",
        (signed("alice", version="1.2.9"),),
        "verified",
        "rejected",
    ),
    (
        "notOlderThan created",
        BASE + "notOlderThan: {created: 2026-01-01T00:00:00Z}",
        BASE + "notOlderThan: {created: 2026-03-01T00:00:00Z}",
        (signed("alice", created="2026-02-01T00:00:00Z"),),
        "verified",
        "rejected",
    ),
    (
        "exemptions",
        BASE,
        BASE + "exemptions: [{images: ['**'], owner: t, reason: r, until: 2026-11-30}]",
        (),
        "rejected",
        "exempted",
    ),
    (
        "exemptions until",
        BASE + "exemptions: [{images: ['**'], owner: t, reason: r, until: 2026-11-30}]",
        BASE + "exemptions: [{images: ['**'], owner: t, reason: r, until: 2026-11-29}]",
        (),
        "exempted",
        "rejected",
    ),
    (
        "exemptions images",
        BASE + "exemptions: [{images: ['**'], owner: t, reason: r, until: 2026-11-30}]",
        BASE + "exemptions: [{images: [localhost/x], owner: t, reason: r, until: 2026-11-30}]",
        (),
        "exempted",
        "rejected",
    ),
    ("static pass", BASE, "images: ['**']\nstatic: pass\nreason: r", (), "rejected", "exempted"),
    (
        "static fail",
        BASE,
        "images: ['**']\nstatic: fail\nreason: r",
        (signed("alice"),),
        "verified",
        "rejected",
    ),
    (
        "static fail, warned",
        "images: ['**']\nstatic: fail\nreason: r",
        "images: ['**']\nstatic: fail\nreason: r\nmode: warn",
        (),
        "rejected",
        "exempted",
    ),
    (
        "authorities are alternatives",
        BASE,
        BASE + "  - keys: [{file: carol.pub}]",
        (signed("carol"),),
        "rejected",
        "verified",
    ),
    (
        "authorities do not share keys",
        BASE.replace(
            "  - keys: [{file: alice.pub}, {file: bob.pub}]",
            "  - {keys: [{file: alice.pub}, {file: bob.pub}], threshold: 2}",
        ),
        SPLIT,
        (signed("alice"), signed("bob")),
        "verified",
        "rejected",
    ),
    (
        "attestations",
        BASE.replace(", {file: bob.pub}", ""),
        ATTESTED,
        (signed("alice"),),
        "verified",
        "rejected",
    ),
    (
        "attestations beside a signature",
        ATTESTED,
        ATTESTED,
        (signed("alice"), attested("alice", GOOD)),
        "verified",
        "verified",
    ),
    ("signature: false", ATTESTED, ONLY, (attested("alice", GOOD),), "rejected", "verified"),
    (
        "predicateType",
        ONLY,
        ONLY.replace("provenance/v1", "provenance/v0.2"),
        (attested("alice", GOOD),),
        "verified",
        "rejected",
    ),
    (
        "keys of an attestation",
        ONLY,
        ONLY + "        keys: [{file: bot.pub}]",
        (attested("alice", GOOD),),
        "verified",
        "rejected",
    ),
    (
        "keys of an attestation, met",
        ONLY,
        ONLY + "        keys: [{file: bot.pub}]",
        (attested("bot", GOOD),),
        "rejected",
        "verified",
    ),
    (
        "threshold of an attestation",
        ONLY + "        keys: [{file: alice.pub}, {file: bob.pub}]",
        ONLY + "        keys: [{file: alice.pub}, {file: bob.pub}]\n        threshold: 2",
        (attested("alice", GOOD),),
        "verified",
        "rejected",
    ),
    (
        "formats of an attestation",
        ONLY,
        ONLY.replace("    signature: false", "    signature: false\n    formats: [legacy]"),
        (attested("alice", GOOD),),
        "verified",
        "rejected",
    ),
    (
        "conditions",
        ONLY,
        ONLY + "        conditions: [{field: /builder/id, equals: 'https://ci.example.com'}]",
        (attested("alice", BAD),),
        "verified",
        "rejected",
    ),
    (
        "conditions of two statements together",
        ONLY + "        conditions: [{field: /a, equals: 1}]",
        ONLY + "        conditions: [{field: /a, equals: 1}, {field: /b, equals: 2}]",
        (attested("alice", {"a": 1}), attested("alice", {"b": 2})),
        "verified",
        "rejected",
    ),
    *(
        (
            f"condition {said}",
            ONLY + f"        conditions: [{{field: /builder/{said}}}]",
            ONLY + f"        conditions: [{{field: /builder/{other}}}]",
            (attested("alice", GOOD),),
            "verified",
            "rejected",
        )
        for said, other in (
            ("id, oneOf: [x, 'https://ci.example.com']", "id, oneOf: [x, z]"),
            ("id, like: 'https://*'", "id, like: 'http://*'"),
            ("level, atLeast: 3", "level, atLeast: 4"),
            ("level, atMost: 3", "level, atMost: 2"),
            ("level, equals: 3", "level, equals: '3'"),
        )
    ),
    (
        "condition contains",
        ONLY + "        conditions: [{field: /passed, contains: unit}]",
        ONLY + "        conditions: [{field: /passed, contains: e2e}]",
        (attested("alice", {"passed": ["unit"]}),),
        "verified",
        "rejected",
    ),
]


WRONG: list[tuple[str, str, str]] = [  # what is put into the spec, where it is refused, and why
    ("colour: red", "p.yaml:8:3:", "unknown field 'colour' in spec"),
    ("Mode: warn", "p.yaml:8:3:", "did you mean mode?"),
    ("mode: audit", "p.yaml:8:9:", "mode is one of enforce, warn"),
    ("mode: [warn]", "p.yaml:8:9:", "mode should be text"),
    ("annotations: {a: 1}", "p.yaml:8:20:", "not text to every reader"),
    ("annotations: {}", "p.yaml:8:16:", "says something"),
    ("annotations: {a: {is: b}}", "p.yaml:8:21:", "unknown field 'is'"),
    ("annotations: {a: {like: b, oneOf: [c]}}", "p.yaml:8:20:", "one of equals"),
    ("bind: [colour]", "p.yaml:8:10:", "bind is one of tag, repository"),
    ("bind: []", "p.yaml:8:9:", "bind is empty"),
    ("bind: tag", "p.yaml:8:9:", "bind should be a list"),
    ("notOlderThan: {}", "p.yaml:8:17:", "neither version nor created"),
    ("notOlderThan: {version: 1.2}", "p.yaml:8:27:", "not text to every reader"),
    ("notOlderThan: {version: '1.2'}", "p.yaml:8:27:", "not a version"),
    ("notOlderThan: {created: 2026-01-01}", "p.yaml:8:27:", "not a time"),
    ("exemptions: [{images: ['**'], owner: t, reason: r}]", "p.yaml:8:16:", "has no until"),
    ("exemptions: [{images: ['**'], owner: t, until: 2026-01-01}]", "p.yaml:8:16:", "no reason"),
    ("exemptions: [{images: ['**'], reason: t, until: 2026-01-01}]", "p.yaml:8:16:", "no owner"),
    ("exemptions: [{owner: t, reason: t, until: 2026-01-01}]", "p.yaml:8:16:", "no images"),
    (
        "exemptions: [{images: ['**'], owner: t, reason: r, until: soon}]",
        "p.yaml:8:61:",
        "'soon' is no date",
    ),
    (
        "exemptions: [{images: [app], owner: t, reason: r, until: 2026-01-01}]",
        "p.yaml:8:26:",
        "not a glob",
    ),
    ("static: pass", "p.yaml:5:3:", "needs a reason"),
    ("static: pass\nreason: r", "p.yaml:5:3:", "no effect"),
    ("static: allow\nreason: r", "p.yaml:8:11:", "static is one of pass, fail"),
    ("images: ['**']", "p.yaml:8:3:", "key 'images' given twice"),
    ("mode: &a warn", "p.yaml:8:9:", "an anchor"),
    ("mode: !!str warn", "p.yaml:8:9:", "a tag"),
    ("mode: yes", "p.yaml:8:9:", "not text to every reader"),
]


AUTHORITIES: list[tuple[str, str]] = [
    ("{}", "an authority has no keys"),
    ("{keys: []}", "keys is empty"),
    ("{keys: [{}]}", "either file or data"),
    ("{keys: [{file: alice.pub, data: x}]}", "either file or data"),
    ("{keys: [alice.pub]}", "a key should be a mapping"),
    ("{keys: [{file: alice}]}", "alice: no such key"),
    ("{keys: [{data: x}]}", "key"),
    ("{keys: [{kms: x}]}", "unknown field 'kms'"),
    ("{keys: [{file: alice.pub}], threshold: 2}", "cannot be asked of 1 different key"),
    ("{keys: [{file: alice.pub}], threshold: 0}", "cannot be asked"),
    ("{keys: [{file: alice.pub}], threshold: '1'}", "should be a whole number"),
    ("{keys: [{file: alice.pub}], threshold: 1.5}", "should be a whole number"),
    ("{keys: [{file: alice.pub}], threshold: true}", "should be a whole number"),
    ("{keys: [{file: alice.pub}], signature: false}", "neither signature nor attestation"),
    ("{keys: [{file: alice.pub}], signature: 'no'}", "should be true or false"),
    ("{keys: [{file: alice.pub}], formats: [sig]}", "a format is one of legacy, bundle"),
    ("{keys: [{file: alice.pub}], attestations: [{}]}", "has no predicateType"),
    ("{keys: [{file: alice.pub}], attestations: [{predicateType: vuln}]}", "is no URI"),
    (
        f"{{keys: [{{file: alice.pub}}], attestations: [{{predicateType: '{SIGN}'}}]}}",
        "is no attestation",
    ),
    *(
        (
            CONDITION % said,
            words,
        )
        for said, words in (
            ("equals: 1", "has no field"),
            ("field: /a", "a condition says one of"),
            ("field: /a, equals: 1, like: b", "a condition says one of"),
            ("field: a, equals: 1", "not a JSON pointer"),
            ("field: /a, matches: b", "unknown field 'matches'"),
            ("field: /a, equals: yes", "not the same to every reader"),
            ("field: /a, equals: .inf", "unsupported value"),
            ("field: /a, atLeast: b", "cannot be asked with"),
            ("field: /a, oneOf: []", "oneOf is empty"),
            ("field: /a, equals: {}", "should be a scalar"),
        )
    ),
]
