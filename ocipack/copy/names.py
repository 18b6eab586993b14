"""Which tags a source has: asked once, so that not every node is asked for what it has not."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ocipack.errors import OcipackError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ocipack.oci.store import Source

ASKED = 64
"""Names that are asked for one by one before a list of many pages is read instead."""

_OF_A_DIGEST = r"sha(?:256|512)-[0-9a-f]{64,128}(?:\.[a-z]+)?"


@runtime_checkable
class _Listing(Protocol):
    def tags(self) -> Iterator[str]: ...


@runtime_checkable
class _Paged(Protocol):
    def few_tags(self) -> frozenset[str] | None: ...


class Names:
    """The names of one source that are made of digests; the rest is not kept.

    A list that is refused, or that has many pages, is done without: then nothing is known. Nor is
    it from an empty one, which caches before registries answer with, but for a `target`, where a
    repository begins empty.
    """

    def __init__(self, *, target: bool = False) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._known: frozenset[str] | None = None
        self._looked = self._refused = False
        self._asked = 0
        self._some = False

    def told(self, names: Iterable[str]) -> None:
        """Take a complete list of the tags from somebody who has it."""
        with self._lock:
            self._keep(names)

    def may_have(self, name: str, source: Source) -> bool:
        """Whether it is worth asking `source`, whose names these are, for `name`."""
        known = self._names(source)
        return known is None or name in known

    def has(self, name: str, source: Source) -> bool:
        """Whether a list of `source` shows `name`."""
        return name in (self._names(source) or ())

    def _names(self, source: Source) -> frozenset[str] | None:
        with self._lock:
            if not self._looked:
                self._looked = True
                self._look(source)
            if self._known is None:
                self._asked += 1
                if self._asked > ASKED and not self._refused:
                    self._read(source)
            return self._known

    @property
    def empty(self) -> bool:
        """Whether there is surely no tag at all, whatever its name."""
        with self._lock:
            return self._known is not None and not self._some

    def _look(self, source: Source) -> None:
        if not isinstance(source, _Paged):
            self._read(source)
            return
        try:
            found = source.few_tags()
        except OcipackError:
            self._refused = True  # whoever must know asks for each name
        else:
            if found is not None:
                self._keep(found)

    def _read(self, source: Source) -> None:
        if not isinstance(source, _Listing):
            self._refused = True
            return
        try:
            self._keep(source.tags())
        except OcipackError:
            self._refused = True

    def _keep(self, names: Iterable[str]) -> None:
        self._looked, self._some = True, False
        known = set()
        for name in names:
            self._some = True
            if re.fullmatch(_OF_A_DIGEST, name):
                known.add(name)
        if self._some or self._target:
            self._known = frozenset(known)
        else:
            self._refused = True
