"""The places that the contract of a Store is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Protocol

import pytest
from registry import Registry, Switches

from ocipack.oci.reference import Reference
from ocipack.oci.store import Listing, Store
from ocipack.stores.layout import LayoutStore
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry.registries import Registries


class FullStore(Store, Listing, Protocol):
    """What every real place is: a store that can list its tags."""


Opener = Callable[[], AbstractContextManager[FullStore]]
"""Opens one fresh place, again each time it is called: what it holds stays."""


def _memory(_: Path, __: ExitStack) -> Opener:
    store = MemoryStore()
    return lambda: nullcontext(store)


def _directory(folder: Path, _: ExitStack) -> Opener:
    return lambda: LayoutStore(folder / "layout")


def _tar(folder: Path, _: ExitStack) -> Opener:
    return lambda: LayoutStore(folder / "layout.tar")


def _registry(switches: Switches) -> Callable[[Path, ExitStack], Opener]:
    def opener(_: Path, cleanup: ExitStack) -> Opener:
        server = cleanup.enter_context(Registry(switches))
        registries = Registries()
        reference = Reference.parse(f"{server.name}/team/app")
        return lambda: nullcontext(registries.store(reference, writes=True))

    return opener


PLACES: dict[str, Callable[[Path, ExitStack], Opener]] = {
    # one entry a place: it is given an empty folder, and a stack for what must end with the
    # test (a server), and says how to open a place that is empty at first
    "memory": _memory,
    "directory": _directory,
    "tar": _tar,
    "registry": _registry(Switches()),
    "registry without referrers": _registry(Switches(referrers=False, name_unknown=False)),
}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """An empty place that can be opened, closed, and opened again."""
    with ExitStack() as cleanup:
        yield PLACES[request.param](tmp_path, cleanup)


@pytest.fixture
def store(place: Opener) -> Iterator[FullStore]:
    """An empty place, open."""
    with place() as opened:
        yield opened
