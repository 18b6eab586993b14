"""Cases that a policy is tried on: what was signed about a name, and what should follow.

A case is evidence as if every signature in it had been checked, so that a policy can be tested
without a registry and without private keys. docs/policy.md describes the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from ocipack.k8s.yaml.nodes import Mapping, Node, Place, Sequence
from ocipack.k8s.yaml.strict import API, Reader
from ocipack.oci.reference import Reference
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy.clusterimagepolicy import PREDICATES
from ocipack.trust.policy.decision import EXEMPTED, REJECTED, VERIFIED, Evidence
from ocipack.trust.policy.model import FORMS
from ocipack.trust.policy.reader import FindKey
from ocipack.trust.statement import SIGN

KIND: Final = "PolicyTest"
VERDICTS: Final = (VERIFIED, EXEMPTED, REJECTED)


@dataclass(frozen=True, slots=True)
class Case:
    """One case: `expect`, one of VERDICTS, should follow from `evidence` about `reference`."""

    name: str
    reference: Reference
    evidence: tuple[Evidence, ...]
    expect: str
    place: Place


@dataclass(frozen=True, slots=True)
class Cases:
    """What a file of cases says; `today` is None where it names no day."""

    cases: tuple[Case, ...]
    today: date | None


def read(data: bytes, *, file: str, key: FindKey) -> Cases:
    """The cases in the content of the file called `file`; Misuse says what is wrong, and where.

    A file without cases is Misuse: it would prove nothing, and pass.
    """
    reader = Reader(file)
    fields = ("apiVersion", "kind", "today", "cases")
    root = reader.mapping(reader.root(data), KIND, fields, ("apiVersion", "kind", "cases"))
    for field, only in (("apiVersion", API), ("kind", KIND)):
        if reader.text(root.get(field), field) != only:
            reader.refuse(root.place, f"{field} is not {only}")
    today = root.get("today")
    when = reader.day(today) if today is not None else None
    listed = reader.items(root.get("cases"), "cases")
    return Cases(tuple(_case(reader, node, key) for node in listed), when)


def _case(reader: Reader, node: Node, key: FindKey) -> Case:
    fields = ("name", "image", "signatures", "attestations", "expect")
    said = reader.mapping(node, "a case", fields, ("image", "expect"))
    image = reader.text(said.get("image"), "image")
    with reader.about(said):
        reference = Reference.familiar(image)
    evidence = [
        *(
            _signature(reader, one, key)
            for one in reader.items(said.get("signatures"), "signatures")
        ),
        *(
            _attestation(reader, one, key)
            for one in reader.items(said.get("attestations"), "attestations")
        ),
    ]
    return Case(
        reader.text(said.get("name"), "name") or image,
        reference,
        tuple(evidence),
        reader.choice(said.get("expect"), "expect", VERDICTS),
        said.place,
    )


def _signature(reader: Reader, node: Node, key: FindKey) -> Evidence:
    said = reader.mapping(node, "a signature", ("key", "format", "annotations"), ("key",))
    annotations = said.get("annotations")
    found = {} if annotations is None else _json(reader, annotations)
    if not isinstance(found, dict):
        reader.refuse(node.place, "annotations should be a mapping")
    form = reader.choice(said.get("format"), "format", FORMS)
    return Evidence(_key(reader, said, key).id, form, reader.file, SIGN, found, {})


def _attestation(reader: Reader, node: Node, key: FindKey) -> Evidence:
    fields = ("key", "format", "predicateType", "predicate")
    said = reader.mapping(node, "an attestation", fields, ("key", "predicateType"))
    predicate = said.get("predicate")
    found = {} if predicate is None else _json(reader, predicate)
    if not isinstance(found, dict):
        reader.refuse(node.place, "a predicate should be a mapping")
    kind = reader.text(said.get("predicateType"), "predicateType")
    form = reader.choice(said.get("format"), "format", FORMS)
    uri = PREDICATES.get(kind, kind)
    return Evidence(_key(reader, said, key).id, form, reader.file, uri, {}, found)


def _key(reader: Reader, said: Mapping, key: FindKey) -> PublicKey:
    node = said.get("key")
    assert node is not None
    with reader.about(node):
        return key(reader.text(node, "key"))


def _json(reader: Reader, node: Node) -> Any:
    """The value of `node` as JSON would have it."""
    if isinstance(node, Mapping):
        return {pair.key: _json(reader, pair.value) for pair in node.pairs}
    if isinstance(node, Sequence):
        return [_json(reader, item) for item in node.items]
    return reader.value(node, "a value")
