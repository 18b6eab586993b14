"""Forty-eight ClusterImagePolicies of v1beta1: good, odd and wrong, each with its reading.

Good ones are read; odd ones are read in a way that surprises; wrong ones are refused where the
reason stands. Each row says which part of the format it is about.

Each was compared with policy-controller's own sources, at 0.13.0 and 0.15.1: fields and their
validation in pkg/apis/policy/v1beta1, matching in pkg/apis/config, authorities in pkg/webhook.
tests/interop/test_policy_tester.py asks the program itself, and has what differs.
"""

from __future__ import annotations

import json

from world import key

from ocipack.trust.policy.decision import Evidence

SIGN = "https://sigstore.dev/cosign/sign/v1"
ALICE = json.dumps(key("alice").public.pem.decode())
BOB = json.dumps(key("bob").public.pem.decode())
HEAD = "apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\n"
APP, NGINX = "r.example.com/team/app:v1", "docker.io/library/nginx:1"


def signature(by: str, form: str = "legacy") -> Evidence:
    return Evidence(key(by).public.id, form, "here", SIGN, {}, {})


def statement(by: str, kind: str, form: str = "legacy") -> Evidence:
    return Evidence(key(by).public.id, form, "here", kind, {}, {})


ONE = f"images: [{{glob: 'r.example.com/team/*'}}]\nauthorities: [{{key: {{data: {ALICE}}}}}]"
ATTESTED = (
    "images: [{glob: '**'}]\nauthorities:\n"
    f"  - key: {{data: {ALICE}}}\n    attestations: [{{name: a, predicateType: %s}}]"
)


def globbed(glob: str) -> str:
    return ONE.replace("r.example.com/team/*", glob)


READ: list[tuple[str, str, str, tuple[Evidence, ...], str]] = [
    # what it is about, its spec, a name, evidence, and what follows
    ("1 one key", ONE, APP, (signature("alice"),), "verified"),
    ("2 nobody signed", ONE, APP, (), "rejected"),
    ("3 a stranger signed", ONE, APP, (signature("bob"),), "rejected"),
    ("4 another image", ONE, NGINX, (signature("alice"),), "rejected"),
    (
        "5 authorities are alternatives",
        f"{ONE[:-1]}, {{name: b, key: {{data: {BOB}}}}}]",
        APP,
        (signature("bob"),),
        "verified",
    ),
    (
        "6 several images are alternatives",
        ONE.replace("[{glob: ", "[{glob: x.example.com/a}, {glob: "),
        APP,
        (signature("alice"),),
        "verified",
    ),
    ("7 enforce is the default", f"{ONE}\nmode: enforce", APP, (), "rejected"),
    ("8 warn", f"{ONE}\nmode: warn", APP, (), "exempted"),
    ("9 warn, but signed", f"{ONE}\nmode: warn", APP, (signature("alice"),), "verified"),
    (
        "10 static pass",
        "images: [{glob: '**'}]\nauthorities: [{static: {action: pass}}]",
        APP,
        (),
        "exempted",
    ),
    (
        "11 static fail",
        "images: [{glob: '**'}]\nauthorities: [{static: {action: fail, message: withdrawn}}]",
        APP,
        (signature("alice"),),
        "rejected",
    ),
    (
        "12 an attestation by its short name",
        ATTESTED % "slsaprovenance1",
        APP,
        (statement("alice", "https://slsa.dev/provenance/v1"),),
        "verified",
    ),
    (
        "13 slsaprovenance is version 0.2",
        ATTESTED % "slsaprovenance",
        APP,
        (statement("alice", "https://slsa.dev/provenance/v1"),),
        "rejected",
    ),
    (
        "14 an attestation by its URI",
        ATTESTED % "https://example.com/scan/v1",
        APP,
        (statement("alice", "https://example.com/scan/v1"),),
        "verified",
    ),
    (
        "15 with attestations no signature is asked for, nor does one do",
        ATTESTED % "vuln",
        APP,
        (signature("alice"),),
        "rejected",
    ),
    (
        "16 all attestations are needed",
        (ATTESTED % "vuln").replace("vuln}", "vuln}, {name: b, predicateType: custom}"),
        APP,
        (statement("alice", "https://cosign.sigstore.dev/attestation/vuln/v1"),),
        "rejected",
    ),
    (
        "17 a bundle is not the format that is meant where none is said",
        ONE,
        APP,
        (signature("alice", "bundle"),),
        "rejected",
    ),
    (
        "18 the legacy format, said",
        ONE.replace("[{key", "[{signatureFormat: legacy, key"),
        APP,
        (signature("alice"),),
        "verified",
    ),
    (
        "19 the hash, said",
        ONE.replace("{data:", "{hashAlgorithm: sha256, data:"),
        APP,
        (signature("alice"),),
        "verified",
    ),
    ("20 * stops at /", globbed("r.example.com/*"), APP, (signature("alice"),), "rejected"),
    ("21 ** does not", globbed("r.example.com/**"), APP, (signature("alice"),), "verified"),
    (
        "22 * does not stop at :",
        globbed("r.example.com/team/a*"),
        "r.example.com/team/app:v1",
        (signature("alice"),),
        "verified",
    ),
    (
        "23 without a wildcard the tag must be named",
        globbed("r.example.com/team/app"),
        APP,
        (signature("alice"),),
        "rejected",
    ),
    ("24 * alone is Docker Hub's library", globbed("*"), NGINX, (signature("alice"),), "verified"),
    ("25 and nothing else", globbed("*"), APP, (signature("alice"),), "rejected"),
    (
        "26 Docker Hub by its old name",
        globbed("index.docker.io/library/*"),
        NGINX,
        (signature("alice"),),
        "verified",
    ),
]

KEYED = f"key: {{data: {ALICE}}}"

REFUSED: list[tuple[str, str, str]] = [
    # what it is about, the spec, and what is said
    (
        "27 keyless",
        "authorities: [{keyless: {url: 'https://a.b', identities: [{issuer: a, subject: b}]}}]",
        "keyless of a",
    ),
    ("28 a key in a Secret", "authorities: [{key: {secretRef: {name: a}}}]", "secretRef of a"),
    ("29 a key in a KMS", "authorities: [{key: {kms: 'gcpkms://a'}}]", "kms of a"),
    ("30 a transparency log", f"authorities: [{{{KEYED}, ctlog: {{url: a}}}}]", "ctlog of a"),
    ("31 timestamps", f"authorities: [{{{KEYED}, rfc3161timestamp: {{}}}}]", "rfc3161timestamp of"),
    (
        "32 another place",
        f"authorities: [{{{KEYED}, source: [{{oci: r.example.com/signatures}}]}}]",
        "source of a",
    ),
    ("33 a bundle", f"authorities: [{{{KEYED}, signatureFormat: bundle}}]", "keyless authorities"),
    (
        "34 CUE for an attestation",
        (ATTESTED % "vuln, policy: {type: cue, data: 'predicateType: string'}").partition("\n")[2],
        "policy of a",
    ),
    (
        "35 Rego for the policy",
        f"authorities: [{{{KEYED}}}]\npolicy: {{type: rego, data: 'package sigstore'}}",
        "policy of a",
    ),
    (
        "36 objects",
        f"authorities: [{{{KEYED}}}]\nmatch: [{{version: v1, resource: pods}}]",
        "match of a",
    ),
    ("37 no authorities", "authorities: []", "authorities is empty"),
    ("38 authorities not said", "mode: warn", "spec has no authorities"),
    (
        "39 a static authority beside others",
        f"authorities: [{{{KEYED}}}, {{static: {{action: pass}}}}]",
        "without effect",
    ),
    ("40 a misspelt field", f"authorities: [{{{KEYED}}}]\nmoed: warn", "did you mean mode?"),
    ("41 another mode", f"authorities: [{{{KEYED}}}]\nmode: audit", "mode is one of enforce, warn"),
    ("42 an unknown short name", (ATTESTED % "sbom").partition("\n")[2], "unknown predicateType"),
    (
        "43 another hash",
        f"authorities: [{{key: {{data: {ALICE}, hashAlgorithm: sha512}}}}]",
        "one of",
    ),
    ("44 a key that is none", "authorities: [{key: {data: x}}]", "key"),
    (
        "45 an attestation without a name",
        (ATTESTED % "vuln").partition("\n")[2].replace("name: a, ", ""),
        "an attestation has no name",
    ),
    ("46 static says nothing", "authorities: [{static: {}}]", "static has no action"),
    ("47 static warned", "authorities: [{static: {action: pass}}]\nmode: warn", "no effect"),
    ("48 a misspelt authority", f"authorities: [{{{KEYED}, ctLog: {{}}}}]", "did you mean ctlog?"),
]
