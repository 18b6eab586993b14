"""One kustomization file, or one file of plugin configurations: what it reads, what is refused."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping as MappingType
from dataclasses import dataclass, field
from typing import Final

from ocipack.k8s.kustomization.fields import (
    BUILTIN,
    KUSTOMIZATION,
    PATCH,
    PLUGINS,
    Each,
    Fields,
    Names,
    Open,
    Refused,
    Shape,
)
from ocipack.k8s.kustomization.paths import PathError, View, shown
from ocipack.k8s.yaml.documents import join, pieces
from ocipack.k8s.yaml.events import YamlError
from ocipack.k8s.yaml.nodes import Mapping, Node, Pair, Place, Scalar, Sequence, compose
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.report import Finding

BYTES: Final = 4 * 1024 * 1024
"""A kustomization or plugin configuration is at most this long."""

KINDS: Final = {
    "Kustomization": "kustomize.config.k8s.io/v1beta1",
    "Component": "kustomize.config.k8s.io/v1alpha1",
}
_START: Final = re.compile(r"\s*(?:---|#|\{|[A-Za-z]+:(?:\s|$)|\"[A-Za-z]+\":)")


@dataclass(frozen=True, slots=True)
class Use:
    """A path that a kustomization names: what it resolves to, and where it is written."""

    path: str
    names: Names
    file: str
    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """What one file names, and every reason not to hand it to kustomize."""

    kind: str
    uses: tuple[Use, ...]
    findings: tuple[Finding, ...]


def kustomization(file: str, data: bytes, view: View) -> Inspection:
    """Judge the kustomization `file` of the tree; paths count from its directory."""
    inspector = _Inspector(file, posixpath.dirname(file), view)
    root = inspector.compose(data)
    kind = "Kustomization"
    if isinstance(root, Mapping):
        kind = inspector.kind(root)
        inspector.visit(root, KUSTOMIZATION, ())
    elif root is not None and not (isinstance(root, Scalar) and root.is_null):
        inspector.refuse("kustomization-field", "a kustomization is a mapping", root.place, ())
    return inspector.inspection(kind)


def plugins(file: str, data: bytes, base: str, view: View) -> Inspection:
    """Judge a file of plugin configurations named by the kustomization in the directory `base`.

    kustomize resolves its paths from that directory, wherever the file stands.
    """
    inspector = _Inspector(file, base, view)
    inspector.plugin_documents(data, 0)
    return inspector.inspection("")


@dataclass(slots=True)
class _Inspector:
    file: str
    base: str
    view: View
    offset: int = 0  # lines of the file before the document that is being read
    uses: list[Use] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def inspection(self, kind: str) -> Inspection:
        return Inspection(kind, tuple(self.uses), tuple(self.findings))

    def refuse(
        self, rule: str, message: str, place: Place, path: tuple[str | int, ...], hint: str = ""
    ) -> None:
        self.findings.append(
            Finding(
                rule,
                message,
                file=self.file,
                line=place.line + self.offset,
                column=place.column,
                pointer=join(*path),
                hint=hint,
            )
        )

    def compose(self, data: bytes) -> Node | None:
        """Check 1: the file means the same to every reader."""
        if len(data) > BYTES:
            message = f"longer than {BYTES} bytes"
            self.refuse("kustomization-unreadable", message, Place(1, 1), ())
            return None
        composed = compose(data)
        for problem in composed.problems:
            unreadable = problem.message.startswith("not ")
            rule = "kustomization-unreadable" if unreadable else "kustomization-ambiguous"
            message = problem.message if unreadable else f"{problem.message} is refused here"
            hint = "write out what is meant: YAML readers differ on this, so no check could hold"
            self.refuse(rule, message, problem.place, (), "" if unreadable else hint)
        return composed.root

    def kind(self, root: Mapping) -> str:
        node = root.get("kind")
        kind = node.text if isinstance(node, Scalar) and node.text else "Kustomization"
        version = root.get("apiVersion")
        wanted = KINDS.get(kind)
        if wanted is None:
            place = node.place if node else root.place
            message = f"kind {shown(kind)} is neither Kustomization nor Component"
            self.refuse("kustomization-field", message, place, ("kind",))
        elif isinstance(version, Scalar) and version.text not in ("", wanted):
            message = f"apiVersion {shown(version.text)} of a {kind} should be {wanted}"
            self.refuse("kustomization-field", message, version.place, ("apiVersion",))
        return kind

    def visit(self, node: Node, shape: Shape, path: tuple[str | int, ...]) -> None:
        """Follow `shape` through `node`; where names stand, take them."""
        if isinstance(shape, Open) or (isinstance(node, Scalar) and node.is_null):
            return
        if isinstance(shape, Refused):
            self.refuse("kustomization-plugin", f"{path[-1]} {shape.reason}", node.place, path)
        elif isinstance(shape, Fields) and isinstance(node, Mapping):
            for pair in node.pairs:
                self._field(pair, shape.fields, path)
        elif isinstance(shape, Each) and isinstance(node, Sequence):
            for index, item in enumerate(node.items):
                self.visit(item, shape.shape, (*path, index))
        elif isinstance(shape, Names) and isinstance(node, Scalar):
            self._name(node, shape, path)
        else:
            self._misshapen(node, shape, path)

    def _misshapen(self, node: Node, shape: Shape, path: tuple[str | int, ...]) -> None:
        wanted = {Fields: "a mapping", Each: "a list"}.get(type(shape), "text")
        where = join(*path) or "the file"
        hint = ""
        if shape is PATCH and isinstance(node, Scalar):
            self._name(node, Names.PATCH, path)  # or else the patch would be judged as an object
            hint = "write `path:` before the name of the file; older kustomize took it as it is"
        self.refuse("kustomization-field", f"{where} should be {wanted}", node.place, path, hint)

    def _field(
        self, pair: Pair, fields: MappingType[str, Shape], path: tuple[str | int, ...]
    ) -> None:
        """Check 2: the field is known, in its own spelling."""
        shape = fields.get(pair.key)
        if shape is not None:
            self.visit(pair.value, shape, (*path, pair.key))
            return
        if pair.key == "<<":
            return  # reported as a merge key already
        folded = pair.key.casefold()
        near = next((name for name in fields if name.casefold() == folded), None)
        hint = f"write {near}: kustomize matches names in any case, others do not" if near else ""
        message = f"unknown field {shown(pair.key)}"
        self.refuse("kustomization-field", message, pair.place, (*path, pair.key), hint)

    def _name(self, node: Scalar, names: Names, path: tuple[str | int, ...]) -> None:
        if not node.is_text:
            message = f"{shown(node.text)} is not text to every reader"
            hint = "put it in quotes"
            self.refuse("kustomization-ambiguous", message, node.place, path, hint)
        elif names in (Names.PLUGIN, Names.PATCH) and _is_document(node.text):
            self._document(node, names, path)
        else:
            self._take(node, names, path)

    def _document(self, node: Scalar, names: Names, path: tuple[str | int, ...]) -> None:
        """Check 7: a document, which is harmless even if kustomize takes it for a path after all.

        It does so with whatever it cannot read as objects, for reasons that are its own (an alias
        to nothing, a list that is none, an object twice), and then cuts at `..` as with any path.
        """
        if self.view.is_outside(self.base, node.text):
            self.refuse(
                "kustomization-outside",
                f"{shown(node.text)} leads out of the tree, should kustomize take it for a path",
                node.place,
                path,
                "put the document into a file of its own",
            )
        elif names is Names.PLUGIN:
            self.plugin_documents(node.text.encode(), node.place.line)

    def _take(self, node: Scalar, names: Names, path: tuple[str | int, ...]) -> None:
        """Check 5: the path names what the tree holds."""
        try:
            text = _after_key(node.text) if names is Names.KEYED_DATA else node.text
            found = self._resolve(text, names)
        except PathError as e:
            self.refuse(e.rule, str(e), node.place, path, e.hint)
        else:
            place = Place(node.place.line + self.offset, node.place.column)
            self.uses.append(Use(found, names, self.file, place, node.text))

    def _resolve(self, text: str, names: Names) -> str:
        if names not in (Names.RESOURCE, Names.COMPONENT):
            return self.view.file(self.base, text)
        directory = self.view.directory(self.base, text)
        if directory is None:
            if names is Names.COMPONENT:
                message = f"{shown(text)} is a file; a component is a directory"
                raise PathError("kustomization-missing", message)
            return self.view.file(self.base, text)
        files = self.view.kustomizations(directory)
        if len(files) != 1:
            found = " and ".join(posixpath.basename(f) for f in files) or "no kustomization file"
            raise PathError("kustomization-missing", f"the directory {shown(text)} holds {found}")
        return directory

    def plugin_documents(self, data: bytes, line: int) -> None:
        """Check 6: plugin configurations, split as kustomize splits them.

        `line` is where the text stands when it is part of a kustomization, else 0.
        """
        try:
            found = list(pieces(data, Dialect.FLUX))
        except YamlError as e:
            place = Place(line or e.line, 1 if line else e.column)
            self.refuse("kustomization-unreadable", str(e), place, ())
            return
        before = self.offset
        for chunk, start in found:
            self.offset = before + line + start - 1
            root = self.compose(chunk)
            if isinstance(root, Mapping):
                self._plugin(root)
            elif root is not None and not (isinstance(root, Scalar) and root.is_null):
                message = "a plugin's configuration is a mapping"
                self.refuse("kustomization-plugin", message, root.place, ())
        self.offset = before

    def _plugin(self, root: Mapping) -> None:
        version, kind = root.get("apiVersion"), root.get("kind")
        name = kind.text if isinstance(kind, Scalar) else ""
        shape = PLUGINS.get(name)
        builtin = isinstance(version, Scalar) and version.text == BUILTIN
        if not builtin or shape is None:
            label = f"{version.text if isinstance(version, Scalar) else ''} {name}".strip()
            self.refuse(
                "kustomization-plugin",
                f"plugin {shown(label)} is not one that is compiled into kustomize",
                root.place,
                (),
                "programs, containers and functions are not run: commit what they would make",
            )
        elif isinstance(shape, Refused):
            self.refuse("kustomization-plugin", f"{name} {shape.reason}", root.place, ())
        else:
            self.visit(root, shape, ())


def _after_key(text: str) -> str:
    """The path of `key=path` (kustomize api/internal/generators, ParseFileSource)."""
    key, equals, path = text.partition("=")
    if not equals:
        return text
    if not key or not path or "=" in path:
        raise PathError("kustomization-field", f"{shown(text)} is neither a path nor key=path")
    return path


def _is_document(text: str) -> bool:
    """Check 7: whether kustomize takes this for a document rather than a path.

    It tries to read the string as objects, which have a kind and a name, and falls back to a path,
    or an address. So a document is only what it will surely accept, and begins like one.
    """
    if not _START.match(text):
        return False
    try:
        chunks = [chunk for chunk, _ in pieces(text.encode(), Dialect.FLUX)]
    except YamlError:
        return False
    roots = [root for root in (compose(chunk).root for chunk in chunks) if root is not None]
    return bool(roots) and all(_is_object(root) for root in roots)


def _is_object(root: Node) -> bool:
    if not isinstance(root, Mapping):
        return False
    kind, metadata = root.get("kind"), root.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return all(isinstance(n, Scalar) and n.is_text and n.text for n in (kind, name))
