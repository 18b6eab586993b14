"""The index.yaml of a classic Helm repository (helm v4, pkg/repo/v1): what it says of versions.

Such a file can have tens of megabytes, of which a line or two a version matter: libyaml's events
are read as they come, and the rest is passed over without being kept. What readers could take in
two ways is refused where it matters: aliases, keys given twice, keys in another case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

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

from ocipack.errors import IntegrityError
from ocipack.k8s.yaml import limits
from ocipack.k8s.yaml.events import YamlError, at, events
from ocipack.k8s.yaml.scalars import Dialect, ScalarError, plain
from ocipack.oci.digest import Digest

FILE: Final = "index.yaml"

BYTES: Final = 50 * 1024 * 1024
"""Bytes of an index, as much as Flux takes."""

RELEASES: Final = 200_000
"""Versions of all charts together."""

_ENTRY: Final = ("version", "digest", "urls")
_ROOT: Final = ("apiVersion", "entries")
_HEX: Final = re.compile(r"(?:sha256:)?([0-9a-fA-F]{64})")
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Release:
    """A version of a chart, and where its archive is: an address, or one relative to the index.

    `digest` is the archive's sha256, if one is said.
    """

    version: str
    url: str
    digest: Digest | None = None


def read(data: bytes) -> Mapping[str, tuple[Release, ...]]:
    """The versions of each chart, in the order of the file.

    Entries without a version or an address are left out, as Helm does. IntegrityError for what is
    no index, or past the limits.
    """
    if len(data) > BYTES:
        raise IntegrityError(f"{FILE}: longer than {BYTES} bytes")
    try:
        return _Walk(data.removeprefix(_BOM)).index()
    except YamlError as e:
        raise IntegrityError(f"{FILE}:{e.line}:{e.column}: {e}", hint=e.hint) from e


class _Walk:
    """One pass over the events of an index."""

    def __init__(self, data: bytes) -> None:
        self._events: Iterator[Event] = events(data)
        self._releases = 0

    def index(self) -> dict[str, tuple[Release, ...]]:
        found: dict[str, tuple[Release, ...]] = {}
        said: dict[str, Any] = {}
        documents = 0
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    _refuse(event, "a second document")
            elif isinstance(event, NodeEvent):
                if not isinstance(event, MappingStartEvent):
                    _refuse(event, "not an index: it should be a mapping")
                said = self._fields(_ROOT, {"entries": lambda one: self._charts(one, found)})
        if not said.get("apiVersion"):
            raise IntegrityError(f"{FILE}: not an index: it has no apiVersion")
        return found

    def _charts(self, event: Event, found: dict[str, tuple[Release, ...]]) -> None:
        """The mapping of charts, which is nothing in an empty index."""
        if _is_nothing(event):
            return
        if not isinstance(event, MappingStartEvent):
            _refuse(event, "entries should be a mapping")
        for name, value in self._pairs():
            if name in found:
                _refuse(value, f"chart {name[:80]!r} is there twice")
            found[name] = tuple(self._versions(value))

    def _versions(self, event: Event) -> Iterator[Release]:
        if _is_nothing(event):
            return
        if not isinstance(event, SequenceStartEvent):
            _refuse(event, "the versions of a chart should be a list")
        for item in self._events:
            if isinstance(item, SequenceEndEvent):
                return
            if _is_nothing(item):
                continue
            if not isinstance(item, MappingStartEvent):
                _refuse(item, "a version should be a mapping")
            said = self._fields(_ENTRY, {"urls": self._first})
            release = _release(said)
            if release is not None:
                self._releases += 1
                if self._releases > RELEASES:
                    _refuse(item, f"more than {RELEASES} versions")
                yield release

    def _fields(
        self, names: tuple[str, ...], readers: Mapping[str, Callable[[Event], Any]]
    ) -> dict[str, Any]:
        """Those fields of a mapping that are in `names`; those without a reader are text."""
        found: dict[str, Any] = {}
        for key, value in self._pairs():
            name = next((one for one in names if one.lower() == key.lower()), None)
            if name is None:
                self._skip(value)
                continue
            if key != name or name in found:
                _refuse(value, f"{name} is there twice, or in another case")
            found[name] = readers[name](value) if name in readers else self._text(value)
        return found

    def _pairs(self) -> Iterator[tuple[str, Event]]:
        """The keys of a mapping and the first events of their values."""
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                return
            if not isinstance(event, ScalarEvent):
                _refuse(event, "a key should be text")
            if event.value == "<<":
                _refuse(event, "a merge key")
            yield event.value, next(self._events)

    def _first(self, event: Event) -> str:
        """The first item of a list of text; Helm looks at no other."""
        if not isinstance(event, SequenceStartEvent):
            self._skip(event)
            return ""
        found: list[str] = []
        for item in self._events:
            if isinstance(item, SequenceEndEvent):
                return found[0] if found else ""
            if found:
                self._skip(item)
            else:
                found.append(self._text(item))
        return ""

    def _text(self, event: Event) -> str:
        """A scalar as it is written; empty if it is null, or no text to Go."""
        if not isinstance(event, ScalarEvent):
            self._skip(event)
            return ""
        return "" if _is_nothing(event) else event.value

    def _skip(self, event: Event) -> None:
        """Pass over a value."""
        depth = 0
        while True:
            kind = type(event)
            if kind is AliasEvent:
                _refuse(event, "an alias")
            if kind is MappingStartEvent or kind is SequenceStartEvent:
                depth += 1
                if depth > limits.DEPTH:
                    _refuse(event, f"nested deeper than {limits.DEPTH} levels")
            elif kind is not ScalarEvent:
                depth -= 1
            if not depth:
                return
            event = next(self._events)


def _release(said: Mapping[str, str]) -> Release | None:
    """What an entry says; None if that is no version that could be fetched.

    A version that YAML takes for a number is left out: to Helm 1.10 is 1.1. A digest is taken as
    it is written, also where all its digits are decimal.
    """
    version, url = said.get("version", ""), said.get("urls", "")
    if not version or not url or not _is_text(version):
        return None
    match = _HEX.fullmatch(said.get("digest", ""))
    return Release(version, url, Digest("sha256", match[1].lower()) if match else None)


def _is_text(written: str) -> bool:
    try:
        return isinstance(plain(written, Dialect.KUBECTL), str)
    except ScalarError:
        return False


def _is_nothing(event: Event) -> bool:
    return (
        isinstance(event, ScalarEvent)
        and not event.style
        and event.value in ("", "~", "null", "Null", "NULL")
    )


def _refuse(event: Event, why: str) -> NoReturn:
    raise YamlError(why, *at(event))
