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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Mapping, Node
from ocipack.k8s.yaml.strict import API, Reader
from ocipack.k8s.yaml.writing import scalar
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference

KIND: Final = "Lock"

FILE: Final = "ocipack.lock"
"""How the file is called."""

BYTES: Final = 16 * 1024 * 1024
"""Bytes of a lock."""


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
        return cls(tuple(_entries(data, file)))

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
    yield f"- reference: {scalar(str(entry.reference))}"
    yield f"  kind: {scalar(entry.kind)}"
    yield f"  digest: {content.digest}"
    yield f"  mediaType: {scalar(content.media_type)}"
    if entry.artifact_type:
        yield f"  artifactType: {scalar(entry.artifact_type)}"
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
    said = {key: scalar(text) for key, text in found.items() if text}
    return {"digest": str(one.digest), "size": str(one.size), **said}


def _attached(one: Attached) -> dict[str, str]:
    found = {"name": one.name, "artifactType": one.artifact_type}
    said = {key: scalar(text) for key, text in found.items() if text}
    return {"via": one.via, "digest": str(one.digest), **said}


def _origin(one: Origin) -> dict[str, str]:
    return {
        "file": scalar(one.file),
        "document": str(one.document),
        "pointer": scalar(one.pointer),
        "style": scalar(one.style),
    }


def _entries(data: bytes, file: str) -> Iterator[Entry]:
    reader = Reader(file, BYTES)
    root = reader.ours(data, ("entries",), kind=KIND)
    for node in reader.items(root.get("entries"), "entries", empty=True):
        with reader.about(node):
            yield _read_entry(reader, node)


def _read_entry(reader: Reader, node: Node) -> Entry:
    needed = ("reference", "kind", "digest", "mediaType", "size")
    lists = ("platforms", "attached", "origins")
    said = reader.mapping(node, "an entry", (*needed, "artifactType", *lists), needed)
    platforms, attached, origins = (
        reader.items(said.get(name), name, empty=True) for name in lists
    )
    return Entry(
        Reference.parse(_text(reader, said, "reference")),
        Descriptor(
            _text(reader, said, "mediaType"), _digest(reader, said), _number(reader, said, "size")
        ),
        reader.choice(said.get("kind"), "kind", ("image", "artifact")),
        _text(reader, said, "artifactType"),
        tuple(_read_platform(reader, one) for one in platforms),
        tuple(_read_attached(reader, one) for one in attached),
        tuple(_read_origin(reader, one) for one in origins),
    )


def _read_platform(reader: Reader, node: Node) -> Platform:
    needed, names = ("digest", "size"), ("os", "architecture", "variant")
    said = reader.mapping(node, "a platform", (*needed, *names), needed)
    os, architecture, variant = (_text(reader, said, name) for name in names)
    return Platform(os, architecture, variant, _digest(reader, said), _number(reader, said, "size"))


def _read_attached(reader: Reader, node: Node) -> Attached:
    needed = ("via", "digest")
    said = reader.mapping(node, "what is attached", (*needed, "name", "artifactType"), needed)
    via = reader.choice(said.get("via"), "via", ("tag", "referrer"))
    name, artifact_type = (_text(reader, said, key) for key in ("name", "artifactType"))
    return Attached(via, name, artifact_type, _digest(reader, said))


def _read_origin(reader: Reader, node: Node) -> Origin:
    fields = ("file", "document", "pointer", "style")
    said = reader.mapping(node, "an origin", fields, fields)
    file, pointer, style = (_text(reader, said, name) for name in ("file", "pointer", "style"))
    return Origin(file, _number(reader, said, "document"), pointer, style)


def _text(reader: Reader, said: Mapping, name: str) -> str:
    return reader.text(said.get(name), name, blank=True)


def _number(reader: Reader, said: Mapping, name: str) -> int:
    return reader.whole(said.get(name), name, 0)


def _digest(reader: Reader, said: Mapping) -> Digest:
    with reader.about(said):
        return Digest.parse(_text(reader, said, "digest"))
