"""Policies as files: `VerificationPolicy` of `ocipack.dev/v1alpha1`, described in docs/policy.md.

The same is said for machines by docs/schemas/policy-v1alpha1.json. Whatever is not described there
is Misuse that names file, line and column, and so is what would have no effect: a policy that is
read more kindly than it was meant is worse than none. Other formats have readers of their own.
"""

from __future__ import annotations

from collections.abc import Callable

from ocipack.k8s.yaml.nodes import Mapping, Node, Scalar
from ocipack.k8s.yaml.strict import API, Reader
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy import clusterimagepolicy
from ocipack.trust.policy.age import Floor, Version, moment
from ocipack.trust.policy.conditions import OPERATORS, Condition, Field
from ocipack.trust.policy.contents import Contents, Excused
from ocipack.trust.policy.model import (
    BINDINGS,
    ENFORCE,
    FAIL,
    FORMS,
    PASS,
    WARN,
    Attestation,
    Authority,
    Exemption,
    VerificationPolicy,
)
from ocipack.trust.policy.names import Glob
from ocipack.trust.policy.places import SourceGlob

KIND, LIST = "VerificationPolicy", "VerificationPolicyList"

EXAMPLE = (
    f"{{apiVersion: {API}, kind: {KIND}, metadata: {{name: ours}}, spec: "
    '{images: ["**"], authorities: [{keys: [{file: sign.pub}]}]}}'
)
"""The least that a policy says, on one line."""

FindKey = Callable[[str], PublicKey]
"""Reads the public key in a file that a policy names; Misuse if it cannot be read."""

_SPEC = (
    *("images", "mode", "authorities", "annotations", "bind", "notOlderThan", "exemptions"),
    *("static", "reason", "contents"),
)


def read(data: bytes, *, file: str, key: FindKey) -> tuple[VerificationPolicy, ...]:
    """The policies in the content of the file called `file`, whose keys `key` finds.

    The kind decides the format. Misuse says what is wrong, and where.
    """
    reader = Reader(file)
    root = reader.root(data, f"write {EXAMPLE}")
    version = reader.text(root.get("apiVersion"), "apiVersion")
    kind = reader.text(root.get("kind"), "kind")
    if (version, kind) == (clusterimagepolicy.API, clusterimagepolicy.KIND):
        return (clusterimagepolicy.policy(reader, root),)
    if version != API or kind not in (KIND, LIST):
        reader.refuse(
            root.place,
            f"this is no policy: kind is {kind or 'missing'}, apiVersion {version or 'missing'}",
            f"write {EXAMPLE}, or a {clusterimagepolicy.KIND} of {clusterimagepolicy.API}",
        )
    if kind == KIND:
        return (_policy(reader, root, key),)
    fields = ("apiVersion", "kind", "items")
    listed = reader.mapping(root, LIST, fields, ("items",)).get("items")
    return tuple(_item(reader, node, key) for node in reader.items(listed, "items"))


def _item(reader: Reader, node: Node, key: FindKey) -> VerificationPolicy:
    """A policy in a list, which may leave out what the list says already."""
    if isinstance(node, Mapping):
        for field, only in (("apiVersion", API), ("kind", KIND)):
            said = node.get(field)
            if said is not None and reader.text(said, field) != only:
                reader.refuse(said.place, f"{field} is not {only}")
    return _policy(reader, node, key)


def _policy(reader: Reader, node: Node, key: FindKey) -> VerificationPolicy:
    root = reader.mapping(
        node, KIND, ("apiVersion", "kind", "metadata", "spec"), ("metadata", "spec")
    )
    name = clusterimagepolicy.name(reader, root)
    spec = reader.mapping(_there(root, "spec"), "spec", _SPEC, ("images",))
    with reader.about(spec):
        return VerificationPolicy(
            name,
            _globs(reader, spec.get("images")),
            tuple(
                _authority(reader, one, number, key)
                for number, one in enumerate(reader.items(spec.get("authorities"), "authorities"))
            ),
            reader.choice(spec.get("mode"), "mode", (ENFORCE, WARN)),
            _annotations(reader, spec.get("annotations")),
            tuple(
                reader.choice(one, "bind", BINDINGS)
                for one in reader.items(spec.get("bind"), "bind")
            ),
            _floor(reader, spec.get("notOlderThan")),
            tuple(
                _exemption(reader, one)
                for one in reader.items(spec.get("exemptions"), "exemptions")
            ),
            reader.choice(spec.get("static"), "static", ("", PASS, FAIL)),
            reader.text(spec.get("reason"), "reason"),
            _contents(reader, spec.get("contents")),
        )


def _contents(reader: Reader, node: Node | None) -> Contents | None:
    if node is None:
        return None
    flags = ("requireDigest", "verified", "refuseUnseen")
    said = reader.mapping(node, "contents", ("images", "sources", "follow", *flags, "exemptions"))
    with reader.about(said):
        return Contents(
            _globs(reader, said.get("images")),
            _sources(reader, said.get("sources")),
            reader.flag(said.get("requireDigest"), "requireDigest", default=True),
            reader.flag(said.get("verified"), "verified", default=False),
            tuple(
                _excused(reader, one) for one in reader.items(said.get("exemptions"), "exemptions")
            ),
            _sources(reader, said.get("follow"), "follow"),
            reader.flag(said.get("refuseUnseen"), "refuseUnseen", default=False),
        )


def _excused(reader: Reader, node: Node) -> Excused:
    needed = ("owner", "reason", "until")
    said = reader.mapping(node, "an exemption", ("images", "sources", *needed), needed)
    with reader.about(said):
        return Excused(
            _globs(reader, said.get("images")),
            _sources(reader, said.get("sources")),
            reader.text(said.get("owner"), "owner"),
            reader.text(said.get("reason"), "reason"),
            reader.day(said.get("until")),
        )


def _sources(reader: Reader, node: Node | None, what: str = "sources") -> tuple[SourceGlob, ...]:
    found = []
    for item in reader.items(node, what):
        with reader.about(item):
            found.append(SourceGlob(reader.text(item, "a source")))
    return tuple(found)


def _globs(reader: Reader, node: Node | None) -> tuple[Glob, ...]:
    found = []
    for item in reader.items(node, "images"):
        with reader.about(item):
            found.append(Glob(reader.text(item, "an image")))
    return tuple(found)


def _authority(reader: Reader, node: Node, number: int, key: FindKey) -> Authority:
    fields = ("name", "keys", "threshold", "signature", "formats", "attestations")
    said = reader.mapping(node, "an authority", fields, ("keys",))
    keys = _keys(reader, said.get("keys"), key)
    formats = reader.items(said.get("formats"), "formats")
    with reader.about(said):
        return Authority(
            reader.text(said.get("name"), "name") or f"authority-{number}",
            keys,
            reader.whole(said.get("threshold"), "threshold", 1),
            reader.flag(said.get("signature"), "signature", default=True),
            tuple(reader.choice(one, "a format", FORMS) for one in formats) or FORMS,
            tuple(
                _attestation(reader, one, keys, key)
                for one in reader.items(said.get("attestations"), "attestations")
            ),
        )


def _keys(reader: Reader, node: Node | None, key: FindKey) -> tuple[PublicKey, ...]:
    found = []
    for item in reader.items(node, "keys"):
        said = reader.mapping(item, "a key", ("file", "data"))
        if len(said.pairs) != 1:
            reader.refuse(said.place, "a key has either file or data")
        with reader.about(said):
            if said.get("file") is not None:
                found.append(key(reader.text(said.get("file"), "file")))
            else:
                found.append(PublicKey.parse(reader.text(said.get("data"), "data").encode()))
    return tuple(found)


def _attestation(
    reader: Reader, node: Node, keys: tuple[PublicKey, ...], key: FindKey
) -> Attestation:
    fields = ("name", "predicateType", "keys", "threshold", "conditions")
    said = reader.mapping(node, "an attestation", fields, ("predicateType",))
    kind = reader.text(said.get("predicateType"), "predicateType")
    if "://" not in kind:
        hint = clusterimagepolicy.PREDICATES.get(kind, "")
        reader.refuse(_there(said, "predicateType").place, f"{kind!r} is no URI", hint)
    with reader.about(said):
        return Attestation(
            reader.text(said.get("name"), "name") or kind,
            kind,
            _keys(reader, said.get("keys"), key) or keys,
            reader.whole(said.get("threshold"), "threshold", 1),
            tuple(
                _field(reader, one) for one in reader.items(said.get("conditions"), "conditions")
            ),
        )


def _field(reader: Reader, node: Node) -> Field:
    said = reader.mapping(node, "a condition", ("field", *OPERATORS), ("field",))
    with reader.about(said):
        return Field(
            reader.text(said.get("field"), "field"),
            _condition(reader, said, [p.key for p in said.pairs if p.key != "field"]),
        )


def _condition(reader: Reader, said: Mapping, operators: list[str]) -> Condition:
    if len(operators) != 1:
        reader.refuse(said.place, "a condition says one of " + ", ".join(OPERATORS))
    operator = operators[0]
    node = _there(said, operator)
    with reader.about(node):
        if operator == "oneOf":
            many = tuple(reader.value(one, operator) for one in reader.items(node, operator))
            return Condition(operator, many)
        return Condition(operator, reader.value(node, operator))


def _annotations(reader: Reader, node: Node | None) -> tuple[tuple[str, Condition], ...]:
    """Each annotation with what it must be: a text alone means exactly that text."""
    if node is None:
        return ()
    if not isinstance(node, Mapping) or not node.pairs:
        reader.refuse(node.place, "annotations should be a mapping that says something")
    found = []
    for pair in node.pairs:
        if isinstance(pair.value, Scalar):
            condition = Condition("equals", reader.text(pair.value, pair.key))
        else:
            said = reader.mapping(pair.value, pair.key, ("oneOf", "like"))
            condition = _condition(reader, said, [inner.key for inner in said.pairs])
        found.append((pair.key, condition))
    return tuple(found)


def _floor(reader: Reader, node: Node | None) -> Floor | None:
    if node is None:
        return None
    said = reader.mapping(node, "notOlderThan", ("version", "created"))
    version, created = said.get("version"), said.get("created")
    with reader.about(version or said):
        oldest = Version.parse(reader.text(version, "version")) if version is not None else None
    with reader.about(created or said):
        # a time is text here although YAML has times: no reader agrees with another about them
        text = created.text if isinstance(created, Scalar) else ""
        since = moment(text) if created is not None else None
    with reader.about(said):
        return Floor(oldest, since)


def _exemption(reader: Reader, node: Node) -> Exemption:
    fields = ("images", "owner", "reason", "until")
    said = reader.mapping(node, "an exemption", fields, fields)
    last = reader.day(said.get("until"))
    with reader.about(said):
        return Exemption(
            _globs(reader, said.get("images")),
            reader.text(said.get("owner"), "owner"),
            reader.text(said.get("reason"), "reason"),
            last,
        )


def _there(node: Mapping, field: str) -> Node:
    """The value of a field that is known to be there."""
    found = node.get(field)
    assert found is not None
    return found
