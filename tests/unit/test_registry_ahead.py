"""Reading ahead: the same pieces and the same errors, and no thread that outlives its use."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from content import image
from registry import Registry

from ocipack.copy import copy
from ocipack.errors import Unavailable
from ocipack.oci.reference import Reference
from ocipack.stores.http.transport import Transport
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry import store as stores
from ocipack.stores.registry.ahead import PIECES, WORTH, ahead
from ocipack.stores.registry.registries import Registries

PATIENCE = 30.0


def readers() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "read-ahead"]


def wait_for_none() -> None:
    for one in readers():
        one.join(PATIENCE)
    assert not readers()


def test_all_pieces_in_order() -> None:
    pieces = [b"%d" % n for n in range(1000)]
    assert list(ahead(iter(pieces))) == pieces
    assert list(ahead(iter(()))) == []
    wait_for_none()


def test_an_error_comes_where_it_belongs() -> None:
    def broken() -> Iterator[bytes]:
        yield b"1"
        yield b"2"
        raise Unavailable("cut")

    seen: list[bytes] = []
    with pytest.raises(Unavailable, match="cut"):
        seen.extend(ahead(broken()))
    found = ahead(broken())
    assert [next(found), next(found)] == [b"1", b"2"]
    with pytest.raises(Unavailable, match="cut"):
        next(found)
    wait_for_none()


def test_no_more_is_read_than_has_room_and_nothing_after_a_stop() -> None:
    assert PIECES == 4
    taken = 0
    full = threading.Event()

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            if taken > PIECES:
                full.set()
            yield b"piece"

    found = ahead(endless())
    assert next(found) == b"piece"
    assert full.wait(PATIENCE)
    assert taken <= PIECES + 3
    found.close()  # type: ignore[attr-defined] # it is a generator
    wait_for_none()
    assert taken <= PIECES + 4


def test_big_blobs_of_another_registry_are_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    assert WORTH == 8 * 1024 * 1024
    monkeypatch.setattr(stores, "WORTH", 1)
    used = 0

    def counted(pieces: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal used
        used += 1
        return ahead(pieces)

    monkeypatch.setattr(stores, "ahead", counted)
    origin = MemoryStore()
    root = image(origin, b"layer" * 1000)
    with Registry() as one, Registry() as other:
        registries = Registries(Transport())

        def store(host: str, name: str) -> stores.RegistryStore:
            return registries.store(Reference.parse(f"{host}/{name}"), writes=True)

        copy(origin, store(one.name, "a"), root)
        assert used == 0, "what is at hand needs no reading ahead"
        copy(store(one.name, "a"), store(other.name, "a"), root)
        assert used == 2
        one.switches.mount = False
        copy(store(one.name, "a"), store(one.name, "b"), root)
        assert used == 2, "one registry may let us ask one thing at a time"
        assert set(one.repository("b").blobs) == set(other.repository("a").blobs)
    wait_for_none()
