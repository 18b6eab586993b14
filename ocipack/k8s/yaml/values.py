"""From libyaml's events to values: one document of one chunk, in one pass.

The hot loop is `_mapping`: Kubernetes objects are maps of plain scalars, whose meaning is looked
up in a memo rather than resolved again. Positions are not kept while reading, since nearly all of
them are never asked for; `events.steps` finds one by a second pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from yaml.error import MarkedYAMLError, YAMLError
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
    StreamEndEvent,
)

from ocipack.k8s.yaml import limits, scalars
from ocipack.k8s.yaml.events import Endless, YamlError, at, first, parser, unreadable
from ocipack.k8s.yaml.scalars import Dialect, ScalarError

_MERGE: Final = "\0<<"  # compared by identity: a quoted key may spell the same
_ODD: Final = frozenset(("<<", _MERGE))
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"
_TEXT_TAG: Final = "tag:yaml.org,2002:str"


class Reading(NamedTuple):
    """One chunk's document: its value, and the line on which a second one starts (0: none)."""

    value: Any
    more: int


class _Values(dict[str, Any]):
    """Memo of plain scalars: what each text resolves to in one dialect.

    A text that the other dialect reads differently is counted in `odd` and never remembered, so
    that it is counted each time, at no cost for all others.
    """

    __slots__ = ("dialect", "odd")

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self.dialect = dialect
        self.odd = 0

    def __missing__(self, text: str) -> Any:
        value = scalars.plain(text, self.dialect)
        if not scalars.portable(text):
            self.odd += 1
            return value
        if len(self) >= limits.MEMO:
            self.clear()
        self[text] = value
        return value


class _Keys(dict[str, str]):
    """Memo of plain keys; odd ones are counted as in `_Values`."""

    __slots__ = ("dialect", "odd")

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self.dialect = dialect
        self.odd = 0

    def __missing__(self, text: str) -> str:
        found = _MERGE if text == "<<" else self._resolve(text)
        if found is not _MERGE and not scalars.portable(text):
            self.odd += 1
            return found
        if len(self) >= limits.MEMO:
            self.clear()
        self[text] = found
        return found

    def _resolve(self, text: str) -> str:
        value = scalars.plain(text, self.dialect) if text[:1] != "." else _dotted(text)
        if self.dialect is Dialect.KUBECTL:
            return scalars.key(value, text)
        if text in ("", value):
            return text
        raise ScalarError(text, f"map key {text!r} is not text to kustomize: quote it")


def _dotted(text: str) -> Any:
    """A key that begins with a dot: kubectl writes infinities back as they were."""
    try:
        return scalars.plain(text, Dialect.KUBECTL)
    except ScalarError:
        return text.lower().replace("+", "")


_MEMOS: Final = {dialect: (_Values(dialect), _Keys(dialect)) for dialect in Dialect}
"""What a scalar means never changes, so that every stream and thread shares the memos."""


class Reader:
    """Reads chunks of one stream in one dialect.

    `strict` refuses what the real reader would lose without a word (keys given twice, where
    kubectl takes the last).
    """

    __slots__ = (
        "_anchors",
        "_flux",
        "_gained",
        "_get",
        "_keys",
        "_open",
        "_total",
        "_unique",
        "_values",
        "_whole",
    )

    def __init__(self, dialect: Dialect, *, strict: bool = True) -> None:
        self._flux = dialect is Dialect.FLUX
        self._unique = strict or self._flux
        self._whole = strict
        self._values, self._keys = _MEMOS[dialect]
        self._get: Callable[[], Any]
        self._gained = self._total = 0
        self._reset()

    def _reset(self) -> None:
        self._anchors: dict[str, Any] = {}
        self._open: set[str] = set()
        self._total += self._gained
        self._gained = 0

    @property
    def odd(self) -> int:
        """How many scalars the other dialect's reader would have taken for something else.

        Counted over all readers of the dialect: a difference says that it is worth a second look.
        """
        return self._values.odd + self._keys.odd

    def read(self, chunk: bytes | str) -> Reading | None:
        """The first document of `chunk`, or None if it holds none. Raises YamlError."""
        self._reset()
        self._get = parser(chunk).get_event
        try:
            return self._document()
        except YAMLError as e:
            raise unreadable(e, chunk) from e
        except ScalarError as e:
            line, column = first(chunk, e.text)
            raise YamlError(str(e), line, column) from e
        except RecursionError as e:
            raise YamlError("nested too deeply", 1, 1) from e

    def _document(self) -> Reading | None:
        get = self._get
        while True:
            event = get()
            if isinstance(event, StreamEndEvent):
                return None
            if isinstance(event, DocumentStartEvent) and (event.version or event.tags):
                raise YamlError("YAML directives are not understood", *at(event))
            if isinstance(event, NodeEvent):
                value = self._node(event, 0, flow=False)
                get()  # its DocumentEndEvent
                return Reading(value, self._more() if self._whole else 0)

    def _more(self) -> int:
        """The line of whatever stands behind the document, readable or not; 0 if nothing does."""
        try:
            event = self._get()
        except MarkedYAMLError as e:
            return e.problem_mark.line + 1 if e.problem_mark else 1
        return 0 if isinstance(event, StreamEndEvent) else at(event)[0]

    def _node(self, event: Event, depth: int, *, flow: bool) -> Any:
        kind = type(event)
        if kind is MappingStartEvent or kind is SequenceStartEvent:
            return self._collection(event, depth, flow=flow)
        if isinstance(event, AliasEvent):
            return self._alias(event)
        assert isinstance(event, ScalarEvent)  # nothing else is a node
        value = self._scalar(event)
        if flow and self._flux and value is None and event.value == "" and event.tag is None:
            value = ""  # kyaml writes an empty plain scalar inside {} or [] as quotes
        if event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _scalar(self, event: ScalarEvent) -> Any:
        if event.tag is None:
            return self._values[event.value] if event.implicit[0] else event.value
        dialect = Dialect.FLUX if self._flux else Dialect.KUBECTL
        return scalars.tagged(event.value, event.tag, quoted=bool(event.style), dialect=dialect)

    def _collection(self, event: Any, depth: int, *, flow: bool) -> Any:
        """A mapping or sequence, whose start `event` is."""
        if depth >= limits.DEPTH:
            raise YamlError(f"nested deeper than {limits.DEPTH} levels", *at(event))
        anchor = event.anchor
        if anchor:
            self._open.add(anchor)
            self._anchors.pop(anchor, None)
        read = self._mapping if type(event) is MappingStartEvent else self._sequence
        value = read(depth + 1, flow=flow or bool(event.flow_style))
        if anchor:
            self._open.discard(anchor)
            self._anchors[anchor] = value
        return value

    def _sequence(self, depth: int, *, flow: bool) -> list[Any]:
        get, values, node = self._get, self._values, self._node
        found: list[Any] = []
        while True:
            event: Any = get()
            kind = type(event)
            if kind is ScalarEvent and event.tag is None and event.anchor is None:
                value = values[event.value] if event.implicit[0] else event.value
                if value is None and flow:
                    value = node(event, depth, flow=flow)
                found.append(value)
            elif kind is SequenceEndEvent:
                return found
            else:
                found.append(node(event, depth, flow=flow))

    def _mapping(self, depth: int, *, flow: bool) -> dict[str, Any]:
        get, values, keys, node = self._get, self._values, self._keys, self._node
        found: dict[str, Any] = {}
        merges: list[Any] = []
        while True:
            start: Any = get()
            kind = type(start)
            if kind is ScalarEvent and start.tag is None and start.anchor is None:
                key = keys[start.value] if start.implicit[0] else start.value
            elif kind is MappingEndEvent:
                return self._merged(found, merges) if merges else found
            else:
                key = self._odd_key(start, depth)
            event: Any = get()
            if type(event) is ScalarEvent and event.tag is None and event.anchor is None:
                value = values[event.value] if event.implicit[0] else event.value
                if value is None and flow:
                    value = node(event, depth, flow=flow)
            else:
                value = node(event, depth, flow=flow)
            if key in found or key in _ODD:
                self._unusual(found, merges, key, value, start)
            else:
                found[key] = value

    def _unusual(
        self, found: dict[str, Any], merges: list[Any], key: str, value: Any, start: Event
    ) -> None:
        """Place a pair whose key was seen before, or may be a merge key."""
        if key == "<<" and self._flux:
            raise YamlError("kustomize takes a quoted '<<' for a merge key", *at(start))
        if key is not _MERGE:
            if key in found and self._unique:
                raise YamlError(f"key {key!r} is given twice", *at(start))
            found[key] = value
            return
        if self._flux and merges:
            raise YamlError("two merge keys in one mapping", *at(start))
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise YamlError("<<: needs a mapping or a list of mappings", *at(start))
        if self._flux:
            merges.extend(sources)
        for source in reversed(sources) if not self._flux else ():
            found.update(source)  # go-yaml v2 merges where the key stands, over what came before

    @staticmethod
    def _merged(found: dict[str, Any], merges: list[Any]) -> dict[str, Any]:
        for source in merges:
            for key, value in source.items():
                found.setdefault(key, value)
        return found

    def _odd_key(self, event: Event, depth: int) -> str:
        if not isinstance(event, ScalarEvent | AliasEvent):
            self._node(event, depth, flow=True)
            raise YamlError(
                "a map key must be text, not a collection",
                *at(event),
                hint="an unrendered template? {{ … }} is a mapping in YAML",
            )
        if isinstance(event, ScalarEvent) and event.value == "<<" and event.tag == _MERGE_TAG:
            return _MERGE
        value = self._node(event, depth, flow=False)
        text, tag = (event.value, event.tag) if isinstance(event, ScalarEvent) else (value, None)
        plain_tag = tag is None or tag == _TEXT_TAG
        if isinstance(value, str) and (plain_tag or not self._flux):
            return value
        if self._flux or isinstance(value, dict | list):
            raise YamlError(f"map key {text!r} is not text to kustomize", *at(event))
        return scalars.key(value, str(text))

    def _alias(self, event: AliasEvent) -> Any:
        name = event.anchor
        if name in self._open:
            raise Endless(f"anchor {name!r} contains itself", *at(event))
        if name not in self._anchors:
            raise YamlError(f"unknown anchor {name!r}", *at(event))
        value = self._anchors[name]
        self._gained += _size(value, {})
        if self._gained > limits.ALIASED_NODES:
            raise Endless(
                f"aliases add more than {limits.ALIASED_NODES} nodes to one document", *at(event)
            )
        if self._total + self._gained > limits.ALIASED_TOTAL:
            raise Endless(
                f"aliases add more than {limits.ALIASED_TOTAL} nodes to one stream", *at(event)
            )
        return value


def _size(value: Any, known: dict[int, int]) -> int:
    """Nodes that `value` is when written out; shared parts are counted each time they appear."""
    if not isinstance(value, dict | list):
        return 1
    mark = id(value)
    if mark not in known:
        children = value.values() if isinstance(value, dict) else value
        known[mark] = 1 + sum(_size(child, known) for child in children)
    return known[mark]
