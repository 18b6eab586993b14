"""Patches of a layer: what each would set at a place of an object, and where that is written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import Document, read as documents, split
from ocipack.k8s.yaml.nodes import Mapping, Scalar
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.validate.trace.layers import Layer, Stack, texts
from ocipack.validate.trace.spots import (
    ABSENT,
    IDENTITY,
    UNKNOWN,
    Said,
    Spot,
    Tokens,
    agrees,
    follow,
    names_item,
    pointer,
    same,
)


@dataclass(frozen=True, slots=True)
class Patch:
    """One document of a patch: in `file`, its lines moved by `offset` and `indent` columns."""

    document: Document
    file: str
    target: dict[str, str] | None
    offset: int = 0
    indent: int = 0
    exact: bool = True

    def spot(self, tokens: Tokens) -> Spot:
        """Where the value at `tokens` of the patch stands."""
        if not self.exact:
            return UNKNOWN
        line, column = self.document.locate(pointer(tokens))
        return Spot(self.file, line + self.offset, column + self.indent)


def patches(layer: Layer, stack: Stack) -> Iterator[Patch]:
    """Every patch document of `layer`."""
    for entry in layer.entries("patches", "patchesJson6902"):
        fields = texts(entry)
        node = entry.get("target")
        target = texts(node) if isinstance(node, Mapping) else None
        if inline := entry.get("patch"):
            if isinstance(inline, Scalar):
                yield from _inline(inline, layer, stack, target)
        elif file := stack.file(layer, fields.get("path", "")):
            yield from (Patch(one, file, target) for one in stack.documents(file))
    for text in layer.texts("patchesStrategicMerge"):
        file = stack.file(layer, text.text) if "\n" not in text.text else None
        if file:
            yield from (Patch(one, file, None) for one in stack.documents(file))
        else:
            yield from _inline(text, layer, stack, None)


def _inline(
    node: Scalar, layer: Layer, stack: Stack, target: dict[str, str] | None
) -> Iterator[Patch]:
    """A patch that is written in the kustomization: exact if its lines are lines of that file."""
    lines = stack.read(layer.file).decode(errors="replace").split("\n")
    indent = _indent(lines, node)
    try:
        for one in documents(node.text.encode(), Dialect.FLUX, strict=False):
            yield Patch(
                *(one, layer.file, target),
                offset=node.place.line,
                indent=max(indent, 0),
                exact=indent >= 0,
            )
    except IntegrityError:
        return


def _indent(lines: list[str], node: Scalar) -> int:
    """Columns before each line of a literal block, or -1 if `node` is none."""
    head = lines[node.place.line - 1][node.place.column - 1 :] if node.place.line else ""
    if not head.startswith("|"):
        return -1
    found = set()
    for number, text in enumerate(node.text.rstrip("\n").split("\n")):
        index = node.place.line + number
        line = lines[index].rstrip("\r") if index < len(lines) else ""
        if not text.strip():
            continue
        if not line.endswith(text) or line[: len(line) - len(text)].strip():
            return -1
        found.add(len(line) - len(text))
    return found.pop() if len(found) == 1 else -1


_SURE: Final = frozenset({"kind", "name"})


def may_apply(patch: Patch, resource: Resource, known: Collection[str]) -> bool:
    """Whether a patch may be about an object that is or was called one of `known`."""
    target = patch.target
    if target:
        kind, name = target.get("kind", ""), target.get("name", "")
        return _matches(kind, {resource.kind}) and _matches(name, known)
    value = patch.document.value
    if not isinstance(value, dict):
        return True
    metadata = value.get("metadata")
    called = metadata.get("name") if isinstance(metadata, dict) else None
    return value.get("kind") == resource.kind and called in known


def _matches(pattern: str, texts_: Collection[str]) -> bool:
    if not pattern:
        return True
    try:
        return any(re.fullmatch(pattern, text) for text in texts_)
    except re.error:
        return True  # Go's syntax: it may match


def sets(patch: Patch, rendered: Any, tokens: Tokens) -> Iterator[Said]:
    """Where `patch` says what is at `tokens` of the rendered object, if it does.

    What a patch names to say what it is about (an object, an item of a list) it does not decide.
    """
    value = patch.document.value
    surely = not (patch.target or {}).keys() - _SURE
    if isinstance(value, dict):
        if tokens in IDENTITY or follow(rendered, tokens) is ABSENT:
            return
        there = agrees(rendered, value, tokens)
        if there is not None:
            yield Said(patch.spot(there), surely and not names_item(tokens))
        return
    for index, operation in enumerate(value if isinstance(value, list) else ()):
        if isinstance(operation, dict):
            for spot in _operation(patch, index, operation, rendered, tokens):
                yield Said(spot, surely)


def _operation(
    patch: Patch, index: int, operation: dict[str, Any], rendered: Any, tokens: Tokens
) -> Iterator[Spot]:
    path = split(str(operation.get("path", "")))
    last = path[-1:] == ("-",)
    size = len(path)
    if tokens[: size - last] != path[: size - last] or len(tokens) < size:
        return
    if operation.get("op") in ("copy", "move"):
        yield UNKNOWN
        return
    rest = tokens[size:]
    value = operation.get("value", ABSENT)
    if last:
        there = agrees(follow(rendered, tokens[: size - 1]), [value], tokens[size - 1 :])
        if there is not None and follow([value], there) is not ABSENT:
            yield patch.spot((str(index), "value", *there[1:]))
    elif same(follow(value, rest), follow(rendered, tokens)):
        yield patch.spot((str(index), "value", *rest))
