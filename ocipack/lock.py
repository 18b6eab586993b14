"""The lock, `ocipack.lock`: what every reference resolved to, and where it is named.

    apiVersion: ocipack.dev/v1alpha1
    kind: Lock
    entries:
    - reference: docker.io/library/nginx:1.25
      kind: image
      digest: sha256:…
      …

Text that changes only where a fact did: sorted, one fact a line, no times, no line numbers. The
same is said for machines by docs/schemas/lock-v1alpha1.json. It is a record, not an authority: it
answers only where nobody else can (`pin --offline`), and `lock check` asks the registries again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NoReturn

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Mapping, Node, Place, Scalar, Sequence, compose
from ocipack.k8s.yaml.scalars import Dialect, ScalarError, plain
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference

API: Final = "ocipack.dev/v1alpha1"
"""The version of the file's format."""

KIND: Final = "Lock"

FILE: Final = "ocipack.lock"
"""How the file is called."""

BYTES: Final = 16 * 1024 * 1024
"""Bytes of a lock."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._/@:+*~-]*")
_CONTROL: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True, order=True)
class Platform:
    """One entry of an index: what it runs on (empty: not said), its digest, its size in bytes."""

    os: str
    architecture: str
    variant: str
    digest: Digest
    size: int


@dataclass(frozen=True, slots=True, order=True)
class Attached:
    """Something attached to the image: `via` is `tag` (then `name` is the tag) or `referrer`."""

    via: str
    name: str
    artifact_type: str
    digest: Digest


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where the reference is named: file, document from 0, RFC 6901 pointer, and in what form."""

    file: str
    document: int
    pointer: str
    style: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What `reference` (with its tag if it has one, without digest) resolved to.

    `content` is the index, or the manifest if there is no index; everything else is sorted and
    each once. Raises Misuse for a reference with a digest.
    """

    reference: Reference
    content: Descriptor
    kind: str = "image"
    artifact_type: str = ""
    platforms: tuple[Platform, ...] = ()
    attached: tuple[Attached, ...] = ()
    origins: tuple[Origin, ...] = ()

    def __post_init__(self) -> None:
        if self.reference.digest is not None:
            raise Misuse(f"a lock's reference has no digest of its own: {self.reference}")
        for name in ("platforms", "attached", "origins"):
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))

    @property
    def key(self) -> tuple[str, str]:
        """What no two entries share."""
        return str(self.reference), str(self.content.digest)


@dataclass(frozen=True, slots=True)
class Lock:
    """All entries, sorted. Raises Misuse if two have the same reference and digest."""

    entries: tuple[Entry, ...] = ()

    def __post_init__(self) -> None:
        found = tuple(sorted(self.entries, key=lambda entry: entry.key))
        object.__setattr__(self, "entries", found)
        keys = [entry.key for entry in found]
        for one, other in pairwise(keys):
            if one == other:
                raise Misuse(f"two entries for {one[0]} at {one[1]}")

    @classmethod
    def parse(cls, data: bytes, *, file: str = FILE) -> Lock:
        """Read a lock; Misuse says what is wrong, and where."""
        return cls(tuple(_Reader(file).entries(data)))

    def find(self, reference: Reference) -> tuple[Entry, ...]:
        """The entries for `reference`, its digest left aside: several if several are in use."""
        bare = str(Reference(reference.registry, reference.repository, reference.tag))
        return tuple(entry for entry in self.entries if str(entry.reference) == bare)

    def __str__(self) -> str:
        """The file's text."""
        lines = [f"apiVersion: {API}", f"kind: {KIND}"]
        lines.append("entries:" if self.entries else "entries: []")
        for entry in self.entries:
            lines += _entry(entry)
        return "\n".join(lines) + "\n"


def _entry(entry: Entry) -> Iterator[str]:
    content = entry.content
    yield f"- reference: {_scalar(str(entry.reference))}"
    yield f"  kind: {_scalar(entry.kind)}"
    yield f"  digest: {content.digest}"
    yield f"  mediaType: {_scalar(content.media_type)}"
    if entry.artifact_type:
        yield f"  artifactType: {_scalar(entry.artifact_type)}"
    yield f"  size: {content.size}"
    yield from _list("platforms", (_platform(one) for one in entry.platforms))
    yield from _list("attached", (_attached(one) for one in entry.attached))
    yield from _list("origins", (_origin(one) for one in entry.origins))


def _list(name: str, items: Iterable[dict[str, str]]) -> Iterator[str]:
    first = True
    for item in items:
        if first:
            yield f"  {name}:"
            first = False
        for number, (key, value) in enumerate(item.items()):
            yield f"  {'  ' if number else '- '}{key}: {value}"


def _platform(one: Platform) -> dict[str, str]:
    found = {"os": one.os, "architecture": one.architecture, "variant": one.variant}
    said = {key: _scalar(text) for key, text in found.items() if text}
    return {"digest": str(one.digest), "size": str(one.size), **said}


def _attached(one: Attached) -> dict[str, str]:
    found = {"name": one.name, "artifactType": one.artifact_type}
    said = {key: _scalar(text) for key, text in found.items() if text}
    return {"via": one.via, "digest": str(one.digest), **said}


def _origin(one: Origin) -> dict[str, str]:
    return {
        "file": _scalar(one.file),
        "document": str(one.document),
        "pointer": _scalar(one.pointer),
        "style": _scalar(one.style),
    }


def _scalar(text: str) -> str:
    """`text` on one line, in quotes where a reader could take it for something else."""
    if _PLAIN.fullmatch(text) and not text.endswith(":") and _is_text(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _is_text(text: str) -> bool:
    try:
        return all(plain(text, dialect) == text for dialect in Dialect)
    except ScalarError:
        return False


@dataclass(frozen=True, slots=True)
class _Reader:
    file: str

    def refuse(self, place: Place, message: str, hint: str = "") -> NoReturn:
        raise Misuse(f"{self.file}:{place.line}:{place.column}: {message}", hint=hint)

    def entries(self, data: bytes) -> Iterator[Entry]:
        if len(data) > BYTES:
            self.refuse(Place(1, 1), f"longer than {BYTES} bytes")
        composed = compose(data)
        for problem in composed.problems:
            self.refuse(problem.place, problem.message)
        if composed.root is None:
            self.refuse(Place(1, 1), "the file is empty", "`ocipack pin --lock FILE` writes one")
        root = self.mapping(composed.root, ("apiVersion", "kind", "entries"))
        for field, wanted in (("apiVersion", API), ("kind", KIND)):
            if self.text(root, field) != wanted:
                self.refuse(root.place, f"{field} is not {wanted}")
        for node in self.items(root, "entries"):
            yield self.entry(node)

    def entry(self, node: Node) -> Entry:
        known = ("reference", "kind", "digest", "mediaType", "artifactType", "size")
        found = self.mapping(node, (*known, "platforms", "attached", "origins"))
        kind = self.text(found, "kind")
        if kind not in ("image", "artifact"):
            self.refuse(found.place, "kind is neither image nor artifact")
        try:
            content = Descriptor(
                self.text(found, "mediaType"), self.digest(found), self.number(found, "size")
            )
            return Entry(
                Reference.parse(self.text(found, "reference")),
                content,
                kind,
                self.text(found, "artifactType", optional=True),
                tuple(self.platform(one) for one in self.items(found, "platforms")),
                tuple(self.one_attached(one) for one in self.items(found, "attached")),
                tuple(self.origin(one) for one in self.items(found, "origins")),
            )
        except Misuse as e:
            if str(e).startswith(f"{self.file}:"):
                raise
            self.refuse(found.place, str(e), e.hint)

    def platform(self, node: Node) -> Platform:
        found = self.mapping(node, ("digest", "size", "os", "architecture", "variant"))
        os, architecture, variant = (
            self.text(found, key, optional=True) for key in ("os", "architecture", "variant")
        )
        size = self.number(found, "size")
        return Platform(os, architecture, variant, self.digest(found), size)

    def one_attached(self, node: Node) -> Attached:
        found = self.mapping(node, ("via", "digest", "name", "artifactType"))
        via = self.text(found, "via")
        if via not in ("tag", "referrer"):
            self.refuse(found.place, "via is neither tag nor referrer")
        name, type_ = (self.text(found, k, optional=True) for k in ("name", "artifactType"))
        return Attached(via, name, type_, self.digest(found))

    def origin(self, node: Node) -> Origin:
        found = self.mapping(node, ("file", "document", "pointer", "style"))
        file, pointer, style = (self.text(found, key) for key in ("file", "pointer", "style"))
        return Origin(file, self.number(found, "document"), pointer, style)

    def mapping(self, node: Node, fields: Iterable[str]) -> Mapping:
        if not isinstance(node, Mapping):
            self.refuse(node.place, "this should be a mapping")
        for pair in node.pairs:
            if pair.key not in fields:
                self.refuse(pair.place, f"unknown field {pair.key[:60]!r}")
        return node

    def items(self, node: Mapping, field: str) -> tuple[Node, ...]:
        found = node.get(field)
        if found is None:
            return ()
        if not isinstance(found, Sequence):
            self.refuse(found.place, f"{field} should be a list")
        return found.items

    def text(self, node: Mapping, field: str, *, optional: bool = False) -> str:
        found = node.get(field)
        if found is None:
            if optional:
                return ""
            self.refuse(node.place, f"{field} is missing")
        if not isinstance(found, Scalar) or not found.is_text:
            self.refuse(found.place, f"{field} should be text")
        return found.text

    def number(self, node: Mapping, field: str) -> int:
        found = node.get(field)
        value: Any = found.text if isinstance(found, Scalar) and not found.is_text else ""
        if not re.fullmatch(r"0|[1-9][0-9]{0,17}", value):
            place = found.place if found is not None else node.place
            self.refuse(place, f"{field} should be a whole number")
        return int(value)

    def digest(self, node: Mapping) -> Digest:
        try:
            return Digest.parse(self.text(node, "digest"))
        except Misuse as e:
            if str(e).startswith(f"{self.file}:"):
                raise
            self.refuse(node.place, str(e), e.hint)
