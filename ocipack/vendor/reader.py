"""The vendor file, read strictly.

    apiVersion: ocipack.dev/v1alpha1
    kind: Vendor
    vendor:
    - into: base/podinfo
      git: https://github.com/stefanprodan/podinfo
      ref: 6.7.0
      path: kustomize

The same is said for machines by docs/schemas/vendor-v1alpha1.json.
"""

from __future__ import annotations

from typing import Final

from ocipack.k8s.yaml.nodes import Mapping, Node
from ocipack.k8s.yaml.strict import Reader
from ocipack.vendor.model import CHART, GIT, KINDS, URL, Item, Vendor

KIND: Final = "Vendor"

ITEMS: Final = 1000
"""Entries of a vendor file."""

_PINS: Final = {URL: "sha256", GIT: "commit", CHART: "digest"}
_FIELDS: Final = {
    URL: ("sha256", "name"),
    GIT: ("ref", "commit"),
    CHART: ("repository", "digest"),
}
_ALL: Final = ("into", "path", "include", "exclude")


def read(data: bytes, *, file: str) -> Vendor:
    """What the content of `file` says; Misuse says what is wrong, and where."""
    reader = Reader(file)
    root = reader.ours(data, ("vendor",), kind=KIND)
    nodes = reader.items(root.get("vendor"), "vendor")
    if not nodes:
        reader.refuse(root.place, "vendor is missing", "say what is to be vendored")
    if len(nodes) > ITEMS:
        reader.refuse(root.place, f"more than {ITEMS} entries")
    with reader.about(root):
        return Vendor(tuple(_item(reader, node) for node in nodes))


def _item(reader: Reader, node: Node) -> Item:
    every = {name for names in _FIELDS.values() for name in names}
    loose = reader.mapping(node, "an entry", (*_ALL, *KINDS, *sorted(every)), ("into",))
    kinds = [kind for kind in KINDS if loose.get(kind) is not None]
    if len(kinds) != 1:
        hint = f"an entry is one of {', '.join(KINDS)}"
        reader.refuse(node.place, "the entry does not say what it is", hint)
    kind = kinds[0]
    said = reader.mapping(node, f"a {kind} entry", (*_ALL, kind, *_FIELDS[kind]))
    with reader.about(said):
        return Item(
            into=reader.text(said.get("into"), "into"),
            kind=kind,
            address=_address(reader, said, kind),
            ref=reader.text(said.get("ref"), "ref"),
            pin=reader.text(said.get(_PINS[kind]), _PINS[kind]),
            name=reader.text(said.get("name"), "name"),
            path=reader.text(said.get("path"), "path"),
            include=reader.texts(said.get("include"), "include", "glob"),
            exclude=reader.texts(said.get("exclude"), "exclude", "glob"),
            place=f"{reader.file}:{node.place.line}:{node.place.column}",
        )


def _address(reader: Reader, said: Mapping, kind: str) -> str:
    """The address; of a chart its place, as the command line writes it."""
    text, node = reader.text(said.get(kind), kind), said.get("repository")
    if kind != CHART:
        return text
    if node is None:
        return text if text.startswith("oci://") else f"oci://{text}"
    repository = reader.text(node, "repository")
    if not repository.startswith(("https://", "http://")) or "/" in text:
        hint = "chart: NAME:VERSION, repository: https://…; one in a registry is chart: oci://…"
        reader.refuse(node.place, "repository is the address of a classic Helm repository", hint)
    return f"helm+{repository.rstrip('/')}/{text}"
