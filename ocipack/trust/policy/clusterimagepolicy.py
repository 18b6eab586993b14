"""ClusterImagePolicy of `policy.sigstore.dev/v1beta1`, read into our model.

Read is the subset that asks what we can check: names, keys written out, attestations by type, mode,
static decisions. Everything else that the format knows is refused by name: a policy that is read
without one of its demands is another, weaker policy. docs/policy.md has the table. What the format
leaves unsaid is read as sigstore/policy-controller acts on it: signatures and attestations are
looked for under the older tags alone (`signatureFormat: legacy`), and an authority with
attestations asks for no signature beside them.
"""

from __future__ import annotations

from typing import Final, NoReturn

from ocipack.k8s.yaml.nodes import Mapping, Node
from ocipack.k8s.yaml.strict import Reader
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy.model import (
    ENFORCE,
    FAIL,
    FORMS,
    PASS,
    WARN,
    Attestation,
    Authority,
    VerificationPolicy,
)
from ocipack.trust.policy.names import Glob

API: Final = "policy.sigstore.dev/v1beta1"
KIND: Final = "ClusterImagePolicy"

PREDICATES: Final = {
    "custom": "https://cosign.sigstore.dev/attestation/v1",
    "slsaprovenance": "https://slsa.dev/provenance/v0.2",
    "slsaprovenance02": "https://slsa.dev/provenance/v0.2",
    "slsaprovenance1": "https://slsa.dev/provenance/v1",
    "spdx": "https://spdx.dev/Document",
    "spdxjson": "https://spdx.dev/Document",
    "cyclonedx": "https://cyclonedx.org/bom",
    "link": "https://in-toto.io/Link/v1",
    "vuln": "https://cosign.sigstore.dev/attestation/vuln/v1",
    "openvex": "https://openvex.dev/ns",
}
"""The short names of predicate types (sigstore/cosign, `--type`)."""

_REFUSED: Final = {
    "match": "what a policy says must hold for every object; only images are looked at here",
    "policy": "CUE and Rego are not evaluated; conditions of a VerificationPolicy can ask for it",
    "keyless": "identities and certificates are not verified; keys are",
    "source": "signatures are looked for beside the image alone",
    "ctlog": "transparency logs are not asked when the key is given",
    "rfc3161timestamp": "timestamps are not checked when the key is given",
    "secretRef": "there is no cluster to read a Secret from; write the key out as data",
    "kms": "keys in a KMS are not read; write the public key out as data",
}
"""Fields of the format that we do not read, and why: each would ask for more than we check."""


def policy(reader: Reader, root: Mapping) -> VerificationPolicy:
    """The policy in the file's `root`; Misuse says what is wrong, or not read, and where."""
    reader.mapping(root, KIND, ("apiVersion", "kind", "metadata", "spec"), ("metadata", "spec"))
    called = name(reader, root)
    spec = _known(
        reader,
        root.get("spec"),
        "spec",
        ("images", "mode", "authorities", "match", "policy"),
        ("images", "authorities"),
    )
    authorities = reader.items(spec.get("authorities"), "authorities")
    images = tuple(_glob(reader, node) for node in reader.items(spec.get("images"), "images"))
    mode = reader.choice(spec.get("mode"), "mode", (ENFORCE, WARN))
    action, message = _static(reader, authorities)
    with reader.about(spec):
        if action:
            return VerificationPolicy(called, images, mode=mode, static=action, reason=message)
        found = tuple(_authority(reader, node, n) for n, node in enumerate(authorities))
        return VerificationPolicy(called, images, found, mode)


def name(reader: Reader, root: Mapping) -> str:
    """The object's name; labels and annotations are about the object, not about images."""
    fields = ("name", "labels", "annotations")
    metadata = root.get("metadata")
    assert metadata is not None
    return reader.text(reader.mapping(metadata, "metadata", fields, ("name",)).get("name"), "name")


def _known(
    reader: Reader,
    node: Node | None,
    what: str,
    fields: tuple[str, ...],
    needed: tuple[str, ...] = (),
) -> Mapping:
    assert node is not None
    found = reader.mapping(node, what, fields)
    for pair in found.pairs:
        if pair.key in _REFUSED:
            hint = _REFUSED[pair.key]
            reader.refuse(pair.place, f"{pair.key} of a {KIND} is not supported", hint)
    return reader.mapping(found, what, fields, needed)


def _glob(reader: Reader, node: Node) -> Glob:
    said = reader.mapping(node, "an image", ("glob",), ("glob",)).get("glob")
    assert said is not None
    with reader.about(said):
        return Glob(reader.text(said, "glob"), foreign=True)


def _static(reader: Reader, authorities: tuple[Node, ...]) -> tuple[str, str]:
    """What a static authority says, and why; empty if there is none."""
    for node in authorities:
        if not isinstance(node, Mapping) or node.get("static") is None:
            continue
        if len(authorities) > 1:
            reader.refuse(
                node.place,
                "a static authority leaves the other authorities without effect",
                "give it a policy of its own",
            )
        said = _known(reader, node, "a static authority", ("name", "static")).get("static")
        inner = _known(reader, said, "static", ("action", "message"), ("action",))
        action = reader.choice(inner.get("action"), "action", (PASS, FAIL))
        message = reader.text(inner.get("message"), "message")
        return action, message or f"static {action} in {reader.file}"
    return "", ""


def _authority(reader: Reader, node: Node, number: int) -> Authority:
    said = _known(
        reader,
        node,
        "an authority",
        (
            *("name", "key", "attestations", "signatureFormat"),
            *("keyless", "source", "ctlog", "rfc3161timestamp"),
        ),
        ("key",),
    )
    chosen = said.get("signatureFormat")
    if chosen is not None and reader.choice(chosen, "signatureFormat", FORMS) != FORMS[0]:
        _refuse_bundle(reader, chosen)
    keys = (_key(reader, said.get("key")),)
    attestations = tuple(
        _attestation(reader, one, keys)
        for one in reader.items(said.get("attestations"), "attestations")
    )
    with reader.about(said):
        return Authority(
            reader.text(said.get("name"), "name") or f"authority-{number}",
            keys,
            signature=not attestations,
            forms=FORMS[:1],
            attestations=attestations,
        )


def _refuse_bundle(reader: Reader, node: Node) -> NoReturn:
    reader.refuse(node.place, "signatureFormat bundle is for keyless authorities alone")


def _key(reader: Reader, node: Node | None) -> PublicKey:
    fields = ("data", "hashAlgorithm", "secretRef", "kms")
    said = _known(reader, node, "key", fields, ("data",))
    reader.choice(said.get("hashAlgorithm"), "hashAlgorithm", ("sha256",))
    data = said.get("data")
    assert data is not None
    with reader.about(data):
        return PublicKey.parse(reader.text(data, "data").encode())


def _attestation(reader: Reader, node: Node, keys: tuple[PublicKey, ...]) -> Attestation:
    fields = ("name", "predicateType", "policy")
    said = _known(reader, node, "an attestation", fields, ("name", "predicateType"))
    kind = reader.text(said.get("predicateType"), "predicateType")
    uri = PREDICATES.get(kind, kind)
    if "://" not in uri:
        found = said.get("predicateType")
        assert found is not None
        hint = f"a URI, or one of {', '.join(PREDICATES)}"
        reader.refuse(found.place, f"unknown predicateType {kind!r}", hint)
    with reader.about(said):
        return Attestation(reader.text(said.get("name"), "name"), uri, keys)
