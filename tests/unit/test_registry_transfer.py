"""Big blobs over bad lines: downloads and uploads go on where they were cut, and stay whole."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from content import LAYER, put
from registry import Fault, Registry

from ocipack.errors import IntegrityError, StoreError, Unavailable
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.reference import Reference
from ocipack.stores.http.coding import NotGzip, gunzip
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.settings import Settings
from ocipack.stores.http.transport import Transport
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.store import RegistryStore

MIB = 1 << 20
DATA = b"".join(n.to_bytes(4, "big") for n in range(MIB))  # 4 MiB, no part like another
Open = Callable[..., RegistryStore]


@pytest.fixture
def server() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.fixture
def origin() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def opened(pauses: list[float]) -> Open:
    def make(server: Registry, name: str = "team/app", **settings: Any) -> RegistryStore:
        patience = Patience(4, 60, sleep=pauses.append, random=lambda: 1.0)
        transport = Transport(Settings(**{"idle_timeout": 5.0, **settings}), patience=patience)
        reference = Reference.parse(f"{server.name}/{name}")
        return Registries(transport).store(reference, writes=True)

    return make


def whole(store: RegistryStore, target: Descriptor) -> bytes:
    return b"".join(store.fetch(target))


def stored(server: Registry, store: RegistryStore, origin: MemoryStore) -> Descriptor:
    """A blob of 4 MiB that is at the server; the log starts after it."""
    target = put(origin, DATA, LAYER)
    store.push(target, origin)
    server.requests.clear()
    return target


def ranges(server: Registry) -> list[str]:
    return [seen.headers.get("range", "") for seen in server.requests if seen.method == "GET"]


# downloads


@pytest.mark.parametrize("act", ["half", "nolength"])
def test_a_download_goes_on_where_it_was_cut(
    server: Registry, opened: Open, origin: MemoryStore, pauses: list[float], act: str
) -> None:
    target = stored(server, opened(server), origin)
    server.switches.faults = [Fault("^GET .*blobs", act=act, times=2)]
    assert whole(opened(server), target) == DATA
    assert ranges(server) == ["", "bytes=2097152-4194303", "bytes=3145728-4194303"]
    assert pauses == [0.25, 0.25], "what gets on is not a row of failures"
    assert server.requests[1].headers["if-range"] == f'"{target.digest}"'


def test_a_download_that_is_cut_for_ever_in_the_same_place_is_given_up(
    server: Registry, opened: Open, origin: MemoryStore, pauses: list[float]
) -> None:
    target = stored(server, opened(server), origin)
    server.switches.ranges = "no"
    server.switches.faults = [Fault("^GET .*blobs", act="half")]
    with pytest.raises(Unavailable, match="cut"):
        whole(opened(server), target)
    assert len(pauses) == 3
    assert len(server.requests) == 4


def test_a_download_that_creeps_is_given_up(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """A few bytes at a time are no progress: the number of requests has a bound."""
    target = stored(server, opened(server), origin)
    server.switches.faults = [Fault("^GET .*blobs", act="half")]
    with pytest.raises(Unavailable, match="cut"):
        whole(opened(server), target)
    assert len(server.requests) < 10


@pytest.mark.parametrize(
    ("switches", "requests"),
    [
        ({"ranges": "no"}, 2),
        ({"ranges": "wrong"}, 3),
        ({"etag": "new"}, 2),
        ({"etag": "weak"}, 2),
        ({"etag": "none"}, 2),
    ],
)
def test_where_a_part_cannot_be_had_all_of_it_is_taken_again(
    server: Registry,
    opened: Open,
    origin: MemoryStore,
    switches: dict[str, str],
    requests: int,
) -> None:
    target = stored(server, opened(server), origin)
    for name, value in switches.items():
        setattr(server.switches, name, value)
    server.switches.faults = [Fault("^GET .*blobs", act="half", times=1)]
    assert whole(opened(server), target) == DATA
    assert len(server.requests) == requests
    assert ("if-range" in server.requests[1].headers) == (
        switches.get("etag") not in {"weak", "none"}
    )


@pytest.mark.parametrize("status", [400, 405, 416, 501])
def test_a_registry_that_knows_no_ranges_is_asked_for_all_of_it(
    server: Registry, opened: Open, origin: MemoryStore, status: int
) -> None:
    target = stored(server, opened(server), origin)
    server.switches.faults = [
        Fault("^GET .*blobs", act="half", times=1),
        Fault("^GET .*blobs", status, times=1),
    ]
    assert whole(opened(server), target) == DATA
    assert len(server.requests) == 3


def test_what_a_second_answer_adds_is_held_to_the_same_digest(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    target = stored(server, opened(server), origin)
    server.switches.faults = [
        Fault("^GET .*blobs", act="half", times=1),
        Fault("^GET .*blobs", act="spoil"),
    ]
    with pytest.raises(IntegrityError, match="content has the digest"):
        whole(opened(server), target)


def test_a_second_answer_of_another_length_is_refused(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    target = stored(server, opened(server), origin)
    part = {"Content-Range": f"bytes {2 * MIB}-{4 * MIB - 1}/{4 * MIB}"}
    server.switches.faults = [
        Fault("^GET .*blobs", act="half", times=1),
        Fault("^GET .*blobs", 206, part, DATA),
    ]
    with pytest.raises(IntegrityError, match=f"{4 * MIB} bytes, expected {2 * MIB}"):
        whole(opened(server), target)


def test_a_download_that_falls_silent_goes_on(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """There is no limit for the whole of a transfer, only for how long nothing comes."""
    target = stored(server, opened(server), origin)
    server.switches.faults = [Fault("^GET .*blobs", act="stall", times=1)]
    assert whole(opened(server, idle_timeout=0.2), target) == DATA
    assert ranges(server) == ["", "bytes=2097152-4194303"]


def test_a_storage_that_is_redirected_to_is_asked_for_the_rest(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    target = stored(server, opened(server), origin)
    with Registry(host="127.0.0.2") as storage:
        stored(storage, opened(storage), origin)
        where = {"Location": f"{storage.url}/v2/team/app/blobs/{target.digest}"}
        server.switches.faults = [Fault("^GET .*blobs", 307, where)]
        storage.switches.faults = [Fault("^GET .*blobs", act="half", times=1)]
        assert whole(opened(server), target) == DATA
        assert ranges(storage) == ["", "bytes=2097152-4194303"]
        assert len(server.requests) == 2, "the address of a storage lives for one request"


# gzip that nobody asked for


@pytest.mark.parametrize("act", ["gzip", "stream"])
@pytest.mark.parametrize("size", [10, 4 * MIB])
def test_a_blob_that_was_compressed_on_its_way(
    server: Registry, opened: Open, origin: MemoryStore, act: str, size: int
) -> None:
    target = put(origin, DATA[:size], LAYER)
    store = opened(server)
    store.push(target, origin)
    server.switches.faults = [Fault("^GET", act=act)]
    assert whole(opened(server), target) == DATA[:size]


@pytest.mark.parametrize("act", ["gzip", "stream"])
def test_documents_that_were_compressed_on_their_way(
    server: Registry, opened: Open, origin: MemoryStore, act: str
) -> None:
    from content import image  # noqa: PLC0415 - this test alone

    from ocipack.copy import copy  # noqa: PLC0415 - this test alone

    root = image(origin, b"layer")
    copy(origin, opened(server), root, tag="v1")
    copy(origin, opened(server), image(origin, b"signature", subject=root))
    server.switches.faults = [Fault("^GET", act=act)]
    store = opened(server)
    assert store.resolve("v1") == root
    assert len(list(store.referrers(root))) == 1
    assert list(store.tags()) == ["v1"]


def test_a_blob_that_is_gzip_itself_and_said_to_be_coded(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """Storages note the coding of what they keep: what has the blob's length is the blob."""
    data = gzip.compress(DATA[: 2 * MIB], mtime=0)
    target = put(origin, data, LAYER)
    store = opened(server)
    store.push(target, origin)
    server.switches.faults = [Fault("^GET", 200, {"Content-Encoding": "gzip"}, data)]
    assert whole(opened(server), target) == data


@pytest.mark.parametrize("body", [b"", b"plain", gzip.compress(DATA)[:-1]])
def test_what_is_said_to_be_gzip_and_is_not(
    server: Registry, opened: Open, origin: MemoryStore, body: bytes
) -> None:
    target = stored(server, opened(server), origin)
    server.switches.faults = [Fault("^GET", 200, {"Content-Encoding": "gzip"}, body)]
    with pytest.raises(Unavailable, match="said to be gzip"):
        whole(opened(server), target)
    with pytest.raises(StoreError, match="said to be gzip"):
        opened(server).resolve("v1")


def test_a_small_answer_that_becomes_a_huge_one_is_cut(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    bomb = gzip.compress(bytes(64 * MIB))
    target = stored(server, opened(server), origin)
    server.switches.faults = [Fault("^GET", 200, {"Content-Encoding": "gzip"}, bomb)]
    with pytest.raises(IntegrityError, match=f"more than {4 * MIB} bytes"):
        whole(opened(server), target)
    with pytest.raises(IntegrityError, match="longer than 4194304 bytes"):
        opened(server).resolve("v1")


def test_gzip_is_taken_off_piece_by_piece() -> None:
    coded = gzip.compress(b"a" * 5000) + gzip.compress(b"b" * 5000)
    for size in (1, 7, len(coded)):
        pieces = [coded[n : n + size] for n in range(0, len(coded), size)]
        found = list(gunzip(pieces, 1000))
        assert b"".join(found) == b"a" * 5000 + b"b" * 5000
        assert max(map(len, found)) <= 1000
    with pytest.raises(NotGzip, match="in the middle"):
        list(gunzip([coded[:-1]], 1000))
