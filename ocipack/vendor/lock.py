"""The lock beside a vendor file: what was asked for, what it was, and every file of it.

    apiVersion: ocipack.dev/v1alpha1
    kind: VendorLock
    vendored:
    - into: base/podinfo
      git: https://github.com/stefanprodan/podinfo
      ref: 6.7.0
      path: kustomize
      commit: 0b1481aa8ed0a6c34af84f779824a74200d5c1d6
      files:
      - sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
        name: deployment.yaml

Text that changes only where a fact did: sorted, one fact a line, no times. The same is said for
machines by docs/schemas/vendor-lock-v1alpha1.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Node
from ocipack.k8s.yaml.strict import API, Reader
from ocipack.k8s.yaml.writing import scalar
from ocipack.tree.tree import check_name
from ocipack.vendor.model import KINDS, Item

KIND: Final = "VendorLock"

BYTES: Final = 64 * 1024 * 1024
"""Bytes of a lock."""

RESOLVED: Final = ("sha256", "commit", "digest")
"""What something was: of an address, of a git repository, of a chart."""

_REQUEST: Final = (*KINDS, "ref", "name", "path")
_LISTS: Final = ("include", "exclude")
_HEX: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class Held:
    """A file: its name below the directory, its sha256 (hex), and whether it is executable."""

    name: str
    sha256: str
    executable: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        if not _HEX.fullmatch(self.sha256):
            raise Misuse(f"{self.name}: not a sha256: {self.sha256[:80]!r}")


@dataclass(frozen=True, slots=True)
class Vendored:
    """What is in the directory `into`: what was asked for, what that was, and the files of it."""

    into: str
    request: Mapping[str, str | tuple[str, ...]]
    resolved: str
    files: tuple[Held, ...]

    def __post_init__(self) -> None:
        check_name(self.into)
        object.__setattr__(self, "files", tuple(sorted(self.files)))

    def answers(self, item: Item) -> bool:
        """Whether this is what `item` asks for."""
        return dict(self.request) == dict(item.request) and item.pin in ("", self.resolved)

    @property
    def named(self) -> str:
        """Which of RESOLVED the content is known by."""
        kind = next(kind for kind in KINDS if kind in self.request)
        return RESOLVED[KINDS.index(kind)]


@dataclass(frozen=True, slots=True)
class VendorLock:
    """All entries, by their directories."""

    entries: Mapping[str, Vendored]

    @classmethod
    def parse(cls, data: bytes, *, file: str) -> VendorLock:
        """Read a lock; Misuse says what is wrong, and where."""
        reader = Reader(file, BYTES)
        root = reader.ours(data, ("vendored",), kind=KIND)
        found: dict[str, Vendored] = {}
        for node in reader.items(root.get("vendored"), "vendored", empty=True):
            with reader.about(node):
                one = _vendored(reader, node)
            if one.into in found:
                reader.refuse(node.place, f"two entries for {one.into}")
            found[one.into] = one
        return cls(found)

    def __str__(self) -> str:
        """The file's text."""
        lines = [f"apiVersion: {API}", f"kind: {KIND}"]
        lines.append("vendored:" if self.entries else "vendored: []")
        for _, one in sorted(self.entries.items()):
            lines += _lines(one)
        return "\n".join(lines) + "\n"


def _lines(one: Vendored) -> Iterator[str]:
    yield f"- into: {scalar(one.into)}"
    for name in (*_REQUEST, *_LISTS):
        said = one.request.get(name)
        if isinstance(said, str):
            yield f"  {name}: {scalar(said)}"
        elif said:
            yield f"  {name}:"
            yield from (f"  - {scalar(text)}" for text in said)
    yield f"  {one.named}: {scalar(one.resolved)}"
    yield "  files:"
    for held in one.files:
        yield f"  - sha256: {scalar(held.sha256)}"
        yield f"    name: {scalar(held.name)}"
        if held.executable:
            yield "    executable: true"


def _vendored(reader: Reader, node: Node) -> Vendored:
    fields = ("into", *_REQUEST, *_LISTS, *RESOLVED, "files")
    said = reader.mapping(node, "an entry", fields, ("into", "files"))
    request: dict[str, str | tuple[str, ...]] = {
        name: reader.text(said.get(name), name) for name in _REQUEST if said.get(name) is not None
    }
    for name in _LISTS:
        if (found := reader.texts(said.get(name), name, "glob")) != ():
            request[name] = found
    kinds = [kind for kind in KINDS if kind in request]
    known = [name for name in RESOLVED if said.get(name) is not None]
    if len(kinds) != 1 or known != [RESOLVED[KINDS.index(kinds[0])]]:
        reader.refuse(node.place, "an entry has one of url, git, chart, and what that was")
    files = [_held(reader, one) for one in reader.items(said.get("files"), "files")]
    into, resolved = (
        reader.text(said.get("into"), "into"),
        reader.text(said.get(known[0]), known[0]),
    )
    return Vendored(into, request, resolved, tuple(files))


def _held(reader: Reader, node: Node) -> Held:
    said = reader.mapping(node, "a file", ("sha256", "name", "executable"), ("sha256", "name"))
    with reader.about(said):
        return Held(
            reader.text(said.get("name"), "name"),
            reader.text(said.get("sha256"), "sha256"),
            reader.flag(said.get("executable"), "executable", default=False),
        )
