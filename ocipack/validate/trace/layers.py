"""What a kustomization does to objects, as far as a place can be named for it.

A layer is one kustomization. Its objects come from its resources, then its components work on
them and add theirs, then it makes its own, then it changes all of them (kustomize, KustTarget).
So every object has a list of layers that it went through, the innermost first.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ocipack.errors import IntegrityError
from ocipack.k8s.kustomization.paths import PathError, View
from ocipack.k8s.resource import Resource, resources
from ocipack.k8s.yaml.documents import Document, read as documents
from ocipack.k8s.yaml.nodes import Mapping, Node, Scalar, Sequence, compose
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.validate.trace.spots import Spot

Read = Callable[[str], bytes]

LIMIT = 20_000
"""Objects that are looked at for one root."""


@dataclass
class Layer:
    """The kustomization of one directory."""

    directory: str
    file: str
    root: Mapping

    def text(self, name: str) -> str:
        """The scalar field `name`, or empty."""
        node = self.root.get(name)
        return node.text if isinstance(node, Scalar) and not node.is_null else ""

    def texts(self, *names: str) -> list[Scalar]:
        """The scalars of the lists called `names`."""
        return [n for name in names for n in items(self.root.get(name)) if isinstance(n, Scalar)]

    def entries(self, *names: str) -> list[Mapping]:
        """The mappings of the lists called `names`."""
        return [n for name in names for n in items(self.root.get(name)) if isinstance(n, Mapping)]

    def spot(self, node: Node) -> Spot:
        """Where `node` stands."""
        return Spot(self.file, node.place.line, node.place.column)

    def is_opaque(self, kind: str) -> bool:
        """Whether it changes objects of `kind` in ways that are not followed here."""
        if items(self.root.get("transformers")):
            return True
        for entry in self.entries("replacements"):
            if entry.get("path"):
                return True
            for target in items(entry.get("targets")):
                select = target.get("select") if isinstance(target, Mapping) else None
                if _kind(select) in ("", kind):
                    return True
        return False


def _kind(select: Node | None) -> str:
    return texts(select).get("kind", "") if isinstance(select, Mapping) else ""


def items(node: Node | None) -> tuple[Node, ...]:
    """The items of a list; none if it is no list."""
    return node.items if isinstance(node, Sequence) else ()


def texts(entry: Mapping) -> dict[str, str]:
    """The scalar fields of `entry`."""
    return {p.key: p.value.text for p in entry.pairs if isinstance(p.value, Scalar)}


GENERATORS = {"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"}
"""Fields that make objects, and the kind of those."""

_HASH = re.compile(r"-[0-9a-z]{10}")


@dataclass(frozen=True, slots=True)
class Source:
    """An object before any kustomization changed it, and the `layers` that it goes through.

    It stands in a `document` of a file as `resource`, or is made by the first of its layers.
    """

    group: str
    kind: str
    namespace: str
    name: str
    document: Document | None = None
    resource: Resource | None = None
    layers: tuple[Layer, ...] = ()

    @property
    def called(self) -> list[str]:
        """How it is called: at first, and after each layer.

        Every kustomization may add a prefix and a suffix, or leave the kind alone; the namespace
        that is set renames Namespaces. The names on the way count, since patches know those.
        """
        found = [self.name]
        for layer in self.layers:
            found.append(f"{layer.text('namePrefix')}{found[-1]}{layer.text('nameSuffix')}")
        own = self.imposed
        return [*found, own] if self.kind == "Namespace" and own else found

    @property
    def imposed(self) -> str:
        """The namespace that the outermost layer sets, or empty."""
        layers = reversed(self.layers)
        return next((text for layer in layers if (text := layer.text("namespace"))), "")

    def becomes(self, resource: Resource) -> bool:
        """Whether `resource` may be what became of it."""
        known, name = self.called, resource.name
        if self.document is None and (match := _HASH.search(name, max(len(name) - 11, 0))):
            name = name[: match.start()] if name not in known else name
        if name not in (known[0], known[-1], known[len(self.layers)]):
            return False
        wanted = self.imposed or self.namespace
        return resource.namespace in (wanted, "" if self.imposed else wanted)


@dataclass(slots=True)
class Stack:
    """The sources and layers of a tree; every file is read once."""

    view: View
    read: Read
    _layers: dict[str, Layer | None] = field(default_factory=dict)
    _documents: dict[str, list[Document]] = field(default_factory=dict)

    def sources(self, directory: str, resources_: tuple[str, ...] | None) -> list[Source]:
        """What the root at `directory` is made of; `resources_` are those of a generated one."""
        if resources_ is None:
            return self._gather(directory)
        found: list[Source] = []
        for path in resources_:
            found += self._gather(path) if path in self.view.directories else self._file(path)
        return found

    def layer(self, directory: str) -> Layer | None:
        """The kustomization of a directory, or None if it has none that can be read."""
        if directory not in self._layers:
            files = self.view.kustomizations(directory)
            root = compose(self.read(files[0])).root if len(files) == 1 else None
            made = Layer(directory, files[0], root) if isinstance(root, Mapping) else None
            self._layers[directory] = made
        return self._layers[directory]

    def documents(self, file: str) -> list[Document]:
        """The documents of a file; none if kustomize would not read it."""
        if file not in self._documents:
            try:
                found = list(documents(self.read(file), Dialect.FLUX, strict=False))
            except IntegrityError:
                found = []
            self._documents[file] = found
        return self._documents[file]

    def _gather(self, directory: str) -> list[Source]:
        layer = self.layer(directory)
        found: list[Source] = []
        if layer is None:
            return found
        for path in self._paths(layer, "resources", "bases"):
            found += self._gather(path) if path in self.view.directories else self._file(path)
            del found[LIMIT:]
        for path in self._paths(layer, "components"):
            over = tuple(self._closure(path))
            found = [replace(one, layers=(*one.layers, *over)) for one in found]
            found += self._gather(path)
        found += _generated(layer)
        return [replace(one, layers=(*one.layers, layer)) for one in found]

    def _closure(self, directory: str) -> Iterator[Layer]:
        """A component, the components in it before it: what else works on an object with it."""
        layer = self.layer(directory)
        if layer is not None:
            for path in self._paths(layer, "components"):
                yield from self._closure(path)
            yield layer

    def _file(self, path: str) -> list[Source]:
        found = []
        for document in self.documents(path):
            try:
                objects = list(resources([document], Dialect.FLUX, file=path))
            except IntegrityError:
                continue
            found += [
                Source(one.group, one.kind, one.namespace, one.name, document, one)
                for one in objects
            ]
        return found

    def _paths(self, layer: Layer, *fields: str) -> Iterator[str]:
        for node in layer.texts(*fields):
            try:
                path = self.view.directory(layer.directory, node.text)
                yield self.view.file(layer.directory, node.text) if path is None else path
            except PathError:
                continue

    def file(self, layer: Layer, text: str) -> str | None:
        """The file that `text` names in a layer."""
        try:
            return self.view.file(layer.directory, text)
        except PathError:
            return None


def creates(entry: Mapping) -> bool:
    """Whether a generator makes an object, rather than changing one that is there."""
    return texts(entry).get("behavior", "create") in ("", "create")


def _generated(layer: Layer) -> Iterator[Source]:
    for field_, kind in GENERATORS.items():
        for entry in layer.entries(field_):
            said = texts(entry)
            if creates(entry) and said.get("name"):
                yield Source("", kind, said.get("namespace", ""), said["name"])


def basename(path: str) -> str:
    """The key under which a generator keeps a file."""
    return posixpath.basename(path)
