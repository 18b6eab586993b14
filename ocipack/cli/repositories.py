"""The repositories of a run with many items: each opened once, and closed after its last item."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ocipack.errors import Misuse
from ocipack.oci.reference import Reference

if TYPE_CHECKING:
    from ocipack.cli.command import App
    from ocipack.copy import Transfers
    from ocipack.mirror.model import Mirror
    from ocipack.oci.location import Location
    from ocipack.stores.charts import ChartStore
    from ocipack.stores.registry.store import RegistryStore

Way = Literal["source", "asked", "target"]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a classic repository, and the tags for which a digest is known."""

    where: Location
    tags: tuple[str, ...] = ()


def charts(mirror: Mirror) -> dict[Reference, Chart]:
    """The charts of classic repositories that `mirror` names, by what they are called.

    Misuse if something in a registry, or in another such repository, is called alike.
    """
    found: dict[Reference, Chart] = {}
    for source in mirror.sources:
        if source.repository is None:
            continue
        known = found.get(source.bare)
        if known is not None and known.where.path != source.repository.path:
            raise Misuse(f"{source.place}: {source.bare} is two charts")
        tag = source.reference.tag if source.reference.digest is not None else None
        tags = ((tag,) if tag else ()) + (known.tags if known is not None else ())
        found[source.bare] = Chart(source.repository, tags)
    for source in mirror.sources:
        if source.repository is None and source.bare in found:
            raise Misuse(f"{source.place}: {source.bare} is in a registry and in a repository")
    return found


@dataclass
class Repositories:
    """Opens repositories for `ocipack.mirror`; what it lists it tells `transfers`.

    `charts` are those that are in no registry.
    """

    app: App
    transfers: Transfers
    charts: Mapping[Reference, Chart] = field(default_factory=dict)
    _open: dict[tuple[Way, Reference], RegistryStore] = field(default_factory=dict)
    _read: dict[Reference, ChartStore] = field(default_factory=dict)
    _left: Counter[Reference] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def source(self, repository: Reference) -> RegistryStore | ChartStore:
        """A repository to read from: to resolve a name is to read its manifest."""
        return self._chart(repository) or self._opened("source", repository)

    def asked(self, repository: Reference) -> RegistryStore | ChartStore:
        """A repository that is only asked what names are."""
        return self._chart(repository) or self._opened("asked", repository)

    def target(self, repository: Reference) -> RegistryStore:
        """A repository to write to."""
        return self._opened("target", repository)

    def anew(self, repository: Reference) -> RegistryStore:
        """A target of which nothing is known yet."""
        return self.app.registries.store(repository, write=True, prefetch=False)

    def tags(self, repository: Reference) -> Iterator[str]:
        """The tags of a source; no attached tag is asked for in vain after that."""
        found = list(self.asked(repository).tags())
        self.transfers.knows_tags(self.source(repository), found)
        return iter(found)

    def target_tags(self, repository: Reference) -> Iterator[str]:
        """The tags of a target."""
        return self.target(repository).tags()

    def is_plain(self, registry: str) -> bool:
        """Whether we speak to a registry without TLS."""
        store = self.app.registries.store(Reference(registry, "x"), write=False)
        return store.at.client.base.scheme == "http"

    def expect(self, pairs: Iterable[tuple[Reference, Reference]]) -> None:
        """Note the source and target of every item that is to come."""
        for pair in pairs:
            self._left.update(pair)

    def done(self, *pair: Reference) -> None:
        """Forget what no other item needs: what is known about thousands is not little."""
        with self._lock:
            for repository in pair:
                self._left[repository] -= 1
                if self._left[repository] <= 0:
                    del self._left[repository]
                    self._read.pop(repository, None)
                    for key in [key for key in self._open if key[1] == repository]:
                        del self._open[key]

    def _chart(self, repository: Reference) -> ChartStore | None:
        """The chart of a classic repository that goes by this name, if one does."""
        found = self.charts.get(repository)
        if found is None:
            return None
        with self._lock:
            if repository not in self._read:
                self._read[repository] = self.app.registries.chart(found.where, found.tags)
            return self._read[repository]

    def _opened(self, way: Way, named: Reference) -> RegistryStore:
        repository = Reference(named.registry, named.repository)
        with self._lock:
            if (way, repository) not in self._open:
                self._open[way, repository] = self.app.registries.store(
                    repository, write=way == "target", prefetch=way == "source"
                )
            return self._open[way, repository]
