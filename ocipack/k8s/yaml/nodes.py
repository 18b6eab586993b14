"""The careful reading of a file that must mean one thing to everyone.

A security decision about YAML is only as good as its agreement with the program that acts on it.
So this reader does not resolve what readers disagree on; it refuses it by name: anchors, aliases,
tags, merge keys, keys given twice, keys that are not text, directives, further documents, and the
characters that some readers take for line breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from ocipack.k8s.yaml import limits
from ocipack.k8s.yaml.events import YamlError, at, events
from ocipack.k8s.yaml.scalars import Dialect, ScalarError, plain

_BOM: Final = b"\xef\xbb\xbf"
_BREAKS: Final = re.compile("[\x85\u2028\u2029\ufeff]")


@dataclass(frozen=True, slots=True)
class Place:
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar as written; `is_text` if every reader takes it for this very text."""

    text: str
    is_text: bool
    place: Place

    @property
    def is_null(self) -> bool:
        """Whether every reader takes this for nothing."""
        return not self.is_text and self.text in ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Pair:
    """A key, where it stands, and its value."""

    key: str
    place: Place
    value: Node


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping in the order of the file."""

    pairs: tuple[Pair, ...]
    place: Place

    def get(self, key: str) -> Node | None:
        """The value of `key`, or None."""
        return next((pair.value for pair in self.pairs if pair.key == key), None)


Node: TypeAlias = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that readers disagree on."""

    message: str
    place: Place


@dataclass(frozen=True, slots=True)
class Composed:
    """A document's root (None: empty) and everything in it that is not plain to all."""

    root: Node | None
    problems: tuple[Problem, ...]


def compose(data: bytes) -> Composed:
    """Read one document. Whatever cannot be read at all becomes a problem too; nothing raises."""
    composer = _Composer()
    try:
        text = data.removeprefix(_BOM).decode()
        composer.check_characters(text)
        return Composed(composer.document(events(text)), tuple(composer.problems))
    except UnicodeDecodeError as e:
        before = data[: e.start]
        column = len(before) - before.rfind(b"\n")
        place = Place(before.count(b"\n") + 1, column)
        return Composed(None, (Problem("not UTF-8", place),))
    except YamlError as e:
        found = Problem(str(e), Place(e.line, e.column))
        return Composed(None, (*composer.problems, found))


@dataclass(slots=True)
class _Composer:
    problems: list[Problem] = field(default_factory=list)

    def check_characters(self, text: str) -> None:
        for match in _BREAKS.finditer(text):
            before = text[: match.start()]
            place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"))
            self._refuse(f"character U+{ord(match[0]):04X}", place)

    def document(self, source: Iterator[Event]) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in source:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if event.version or event.tags:
                    self._refuse("a YAML directive", _place(event))
                if documents > 1:
                    self._refuse("a second document", _place(event))
            elif isinstance(event, NodeEvent):
                node = self._node(event, source, 0)
                root = node if documents == 1 else root
        return root

    def _refuse(self, message: str, place: Place) -> None:
        self.problems.append(Problem(message, place))

    def _node(self, event: NodeEvent, source: Iterator[Event], depth: int) -> Node:
        place = _place(event)
        if isinstance(event, AliasEvent):
            self._refuse(f"an alias (*{event.anchor})", place)
            return Scalar("", is_text=False, place=place)
        if event.anchor:
            self._refuse(f"an anchor (&{event.anchor})", place)
        if isinstance(event, ScalarEvent | MappingStartEvent | SequenceStartEvent) and event.tag:
            self._refuse(f"a tag ({event.tag.replace('tag:yaml.org,2002:', '!!')})", place)
        if depth > limits.DEPTH:
            raise YamlError(f"nested deeper than {limits.DEPTH} levels", place.line, place.column)
        if isinstance(event, MappingStartEvent):
            return self._mapping(source, place, depth + 1)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(source, place, depth + 1)
        assert isinstance(event, ScalarEvent)
        return Scalar(event.value, is_text=_is_text(event), place=place)

    def _sequence(self, source: Iterator[Event], place: Place, depth: int) -> Sequence:
        items: list[Node] = []
        for event in source:
            if isinstance(event, SequenceEndEvent):
                break
            assert isinstance(event, NodeEvent)
            items.append(self._node(event, source, depth))
        return Sequence(tuple(items), place)

    def _mapping(self, source: Iterator[Event], place: Place, depth: int) -> Mapping:
        pairs: list[Pair] = []
        seen: set[str] = set()
        for event in source:
            if isinstance(event, MappingEndEvent):
                break
            assert isinstance(event, NodeEvent)
            key = self._key(event, source, depth)
            value = next(source)
            assert isinstance(value, NodeEvent)
            if key in seen:
                self._refuse(f"key {key!r} given twice", _place(event))
            seen.add(key)
            pairs.append(Pair(key, _place(event), self._node(value, source, depth)))
        return Mapping(tuple(pairs), place)

    def _key(self, event: NodeEvent, source: Iterator[Event], depth: int) -> str:
        node = self._node(event, source, depth)
        if isinstance(node, Scalar) and node.text == "<<":
            self._refuse("a merge key (<<)", node.place)
        elif isinstance(node, Scalar) and not node.is_text and not isinstance(event, AliasEvent):
            self._refuse(f"key {node.text!r}, which is not text to every reader", node.place)
        elif not isinstance(node, Scalar):
            self._refuse("a key that is a collection", node.place)
            return ""
        return node.text


def _place(event: Event) -> Place:
    return Place(*at(event))


def _is_text(event: ScalarEvent) -> bool:
    if event.tag is not None or not event.implicit[0]:
        return True  # quoted; a tag has been refused already
    try:
        return all(plain(event.value, dialect) == event.value for dialect in Dialect)
    except ScalarError:
        return False
