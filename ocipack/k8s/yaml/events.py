"""The seam to libyaml: its events, its errors, and where each node of a document stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    DocumentEndEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import ReaderError

from ocipack.errors import IntegrityError, Misuse

try:
    from yaml._yaml import CParser
except ImportError:  # pragma: no cover - PyYAML built without libyaml, acted out in a test
    CParser = None  # type: ignore[assignment,misc]  # told apart in `parser`


class YamlError(IntegrityError):
    """A document that cannot be read, and where: `line` and `column` count from 1 in its chunk."""

    def __init__(self, message: str, line: int, column: int, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.column = column


class Endless(YamlError):
    """Aliases that multiply without bound: other readers run out of memory on it."""


def parser(chunk: bytes | str) -> CParser:
    """Libyaml's event parser; Misuse when PyYAML was installed without it."""
    if CParser is None:
        raise Misuse(
            "PyYAML is installed without libyaml's C parser",
            hint="install a PyYAML wheel for this platform, or build it with libyaml's headers",
        )
    return CParser(chunk)


def at(event: Event) -> tuple[int, int]:
    """Where `event` starts: line and column from 1."""
    mark: Any = event.start_mark  # libyaml always sets it
    return mark.line + 1, mark.column + 1


def events(chunk: bytes | str) -> Iterator[Event]:
    """Every event of `chunk`; what libyaml cannot read becomes YamlError."""
    get: Callable[[], Any] = parser(chunk).get_event
    while True:
        try:
            event = get()
        except YAMLError as e:
            raise unreadable(e, chunk) from e
        yield event
        if type(event) is StreamEndEvent:
            return


def unreadable(error: YAMLError, chunk: bytes | str) -> YamlError:
    """What libyaml said about `chunk`, with the place."""
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return YamlError(f"not YAML: {error.problem or error.context}", line, column)
    if isinstance(error, ReaderError):
        raw = chunk.encode() if isinstance(chunk, str) else chunk
        before = raw[: error.position]
        column = len(before) - before.rfind(b"\n")
        return YamlError(f"not YAML: {error.reason}", before.count(b"\n") + 1, column)
    return YamlError(f"not YAML: {error}", 1, 1)


def first(chunk: bytes | str, text: str) -> tuple[int, int]:
    """Where the first scalar that reads `text` stands."""
    for event in events(chunk):
        if isinstance(event, ScalarEvent) and event.value == text:
            return at(event)
    return 1, 1


Mark = tuple[int, int]
"""A line and a column, both from 0."""


def scalars(chunk: str) -> Iterator[tuple[Mark, Mark]]:
    """Where each scalar of `chunk` begins and has ended: what is between is no comment."""
    for event in events(chunk):
        if isinstance(event, ScalarEvent):
            start: Any = event.start_mark  # libyaml always sets them
            end: Any = event.end_mark
            yield (start.line, start.column), (end.line, end.column)


class Step(NamedTuple):
    """One node of a document: the keys and indices that lead to it, and its first event."""

    path: tuple[str, ...]
    event: Event
    is_key: bool = False


def steps(chunk: bytes | str, *, keys: bool = False) -> Iterator[Step]:
    """Every node of the first document of `chunk` in order, aliases not followed.

    With `keys` the keys of mappings too, each under the path of its value.
    """
    path: list[str] = []
    stack: list[list[Any]] = []  # per open collection: is it a mapping, next index, waits for value
    for event in events(chunk):
        kind = type(event)
        if kind is DocumentEndEvent:
            return
        if kind in (MappingEndEvent, SequenceEndEvent):
            stack.pop()
            if path:
                path.pop()
            continue
        if not isinstance(event, NodeEvent):
            continue
        if stack and not _enter(stack[-1], path, event):
            if keys:
                yield Step(tuple(path), event, is_key=True)
            continue
        yield Step(tuple(path), event)
        if kind in (MappingStartEvent, SequenceStartEvent):
            stack.append([kind is MappingStartEvent, 0, False])
        elif path:
            path.pop()


def _enter(frame: list[Any], path: list[str], event: Event) -> bool:
    """Extend `path` for `event`; False if it is a key, which is no node of its own."""
    if not frame[0]:
        path.append(str(frame[1]))
        frame[1] += 1
        return True
    frame[2] = not frame[2]
    if frame[2]:
        path.append(event.value if isinstance(event, ScalarEvent) else "")
    return not frame[2]
