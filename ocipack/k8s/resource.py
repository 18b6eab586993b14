"""One Kubernetes object and where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from ocipack.errors import IntegrityError
from ocipack.k8s.yaml.documents import Document, join
from ocipack.k8s.yaml.scalars import Dialect

MAPS: Final = (dict, Mapping)
"""What is a mapping; asking for dict first is ten times faster than asking for Mapping."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object stands: `file` in the tree, `line` from 1 (0: unknown), `document` from 0.

    `pointer` is the RFC 6901 pointer from the document to the object: empty unless the object is
    an item of a List. `root` is the directory it was rendered from, empty if it was not; of a
    rendered object `file` is the root's kustomization, and line and document count in the output.
    """

    file: str = ""
    line: int = 0
    document: int = 0
    pointer: str = ""
    root: str = ""


class Identity(NamedTuple):
    """What makes two objects the same to the API: the version is not part of it."""

    group: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Resource:
    """An object as it was read; its fields may be missing or of any type, which rules report.

    Raises IntegrityError if the value is not a mapping. The value is shared with its document
    (aliases make one value appear twice) and must not be changed.

    What every rule asks for is looked up once: `kind`, `api_version`, `name` and `namespace` are
    empty if there is no text there, `metadata` if there is no mapping; `group` is the API group,
    empty for the core group (`v1`).
    """

    value: Mapping[str, Any]
    origin: Origin = Origin()
    kind: str = field(init=False, repr=False, compare=False)
    api_version: str = field(init=False, repr=False, compare=False)
    group: str = field(init=False, repr=False, compare=False)
    name: str = field(init=False, repr=False, compare=False)
    namespace: str = field(init=False, repr=False, compare=False)
    metadata: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.value, MAPS):
            found = "a list" if isinstance(self.value, list) else "a scalar"
            raise IntegrityError(f"{self.place}: a Kubernetes object is a mapping, not {found}")
        keep = object.__setattr__
        metadata = self.value.get("metadata")
        metadata = metadata if isinstance(metadata, MAPS) else {}
        api_version = _text(self.value, "apiVersion")
        keep(self, "kind", _text(self.value, "kind"))
        keep(self, "api_version", api_version)
        keep(self, "group", api_version.rpartition("/")[0])
        keep(self, "metadata", metadata)
        keep(self, "name", _text(metadata, "name"))
        keep(self, "namespace", _text(metadata, "namespace"))

    @property
    def place(self) -> str:
        """`file:line` as far as it is known."""
        line = f":{self.origin.line}" if self.origin.line else ""
        return f"{self.origin.file or 'document ' + str(self.origin.document)}{line}"

    @property
    def identity(self) -> Identity:
        """Group, kind, namespace and name."""
        return Identity(self.group, self.kind, self.namespace, self.name)

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind or 'object'} {name or '(no name)'}"


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def resources(
    documents: Iterable[Document], dialect: Dialect, *, file: str = "", root: str = ""
) -> Iterator[Resource]:
    """The objects of `documents`, with Lists unrolled as the dialect's tool unrolls them.

    kustomize unrolls Lists inside Lists, kubectl refuses them; kubectl gives the items of a typed
    list (`ConfigMapList`) its kind. Raises IntegrityError for documents that are no objects.
    """
    for document in documents:
        origin = Origin(file, document.line, document.index, root=root)
        found = Resource(document.value, origin)
        for resource in _unrolled(found, dialect):
            yield resource if dialect is Dialect.KUBECTL else _as_text(resource, document)


def _unrolled(resource: Resource, dialect: Dialect, *, inside: bool = False) -> Iterator[Resource]:
    items = resource.value.get("items")
    if not resource.kind.endswith("List") or not isinstance(items, list):
        yield resource
        return
    if inside and dialect is Dialect.KUBECTL:
        raise IntegrityError(f"{resource.place}: kubectl does not read a List inside a List")
    for index, item in enumerate(items):
        pointer = resource.origin.pointer + join("items", index)
        value = item
        if dialect is Dialect.KUBECTL and isinstance(item, dict) and resource.kind != "List":
            frame = {"apiVersion": resource.api_version, "kind": resource.kind[: -len("List")]}
            value = {**frame, **item}
        found = Resource(value, replace(resource.origin, pointer=pointer))
        yield from _unrolled(found, dialect, inside=True)


def _as_text(resource: Resource, document: Document) -> Resource:
    """Annotations as kustomize writes them: the text of each scalar, whatever its type."""
    found = resource.metadata.get("annotations")
    if not isinstance(found, MAPS) or all(_stays(value) for value in found.values()):
        return resource
    texts = {
        key: value
        if _stays(value)
        else document.text(resource.origin.pointer + join("metadata", "annotations", key)) or ""
        for key, value in found.items()
    }
    metadata = {**resource.metadata, "annotations": texts}
    return replace(resource, value={**resource.value, "metadata": metadata})


def _stays(value: object) -> bool:
    """Whether an annotation is text already: a date was text, and was changed by being read."""
    return isinstance(value, str) and not value.endswith("T00:00:00Z")
