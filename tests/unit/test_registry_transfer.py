"""Big blobs over bad lines: downloads and uploads go on where they were cut, and stay whole."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from content import LAYER, put
from registry import Fault, Registry, Switches

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
    data = gzip.compress(DATA[: 2 * MIB], 1, mtime=0)
    target = put(origin, data, LAYER)
    store = opened(server)
    store.push(target, origin)
    server.switches.faults = [Fault("^GET", 200, {"Content-Encoding": "gzip"}, data)]
    assert whole(opened(server), target) == data


@pytest.mark.parametrize("body", [b"", b"plain", gzip.compress(DATA[:MIB], 1, mtime=0)[:-1]])
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
    bomb = gzip.compress(bytes(64 * MIB), 1)
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


# uploads


def cut(at: int, when: str = "^PUT .*uploads", **more: Any) -> Fault:
    return Fault(when, act="cut", after=at, times=more.pop("times", 1), **more)


def sent(server: Registry) -> list[tuple[str, str]]:
    """Method and Content-Range, or length, of what was sent of blobs."""
    return [
        (seen.method, seen.headers.get("content-range") or seen.headers["content-length"])
        for seen in server.requests
        if seen.method in {"PATCH", "PUT"}
    ]


def there(server: Registry, target: Descriptor) -> bool:
    digest = str(target.digest)
    kept = server.repository("team/app").blobs
    return digest in kept and server.blobs[digest] == DATA[: target.size]


def test_an_upload_goes_on_where_it_was_cut(
    server: Registry, opened: Open, origin: MemoryStore, pauses: list[float]
) -> None:
    target = put(origin, DATA, LAYER)
    server.switches.faults = [cut(3 * MIB), cut(MIB // 2, "^PATCH", times=1)]
    opened(server).push(target, origin)
    assert there(server, target)
    assert sent(server) == [
        ("PUT", "4194304"),
        ("PATCH", "3145728-4194303"),
        ("PATCH", "3670016-4194303"),
        ("PUT", "0"),
    ]
    assert len(server.lines("^POST")) == 1
    assert len(server.lines("^GET .*uploads")) == 2
    assert len(pauses) == 2


@pytest.mark.parametrize("moving", [True, False])
@pytest.mark.parametrize("status", [201, 202])
def test_where_an_upload_goes_on_is_read_from_each_answer(
    server: Registry, opened: Open, origin: MemoryStore, status: int, *, moving: bool
) -> None:
    server.switches.moving, server.switches.patch_status = moving, status
    target = put(origin, DATA, LAYER)
    server.switches.faults = [cut(2 * MIB)]
    opened(server).push(target, origin)
    assert there(server, target)
    assert sent(server) == [("PUT", "4194304"), ("PATCH", "2097152-4194303"), ("PUT", "0")]


def test_an_upload_that_gets_on_is_not_given_up(
    server: Registry, opened: Open, origin: MemoryStore, pauses: list[float]
) -> None:
    data = DATA + DATA[::-1]
    target = put(origin, data, LAYER)
    server.switches.faults = [cut(MIB), cut(MIB, "^PATCH", times=6)]
    opened(server).push(target, origin)
    assert server.blobs[str(target.digest)] == data
    assert len(pauses) == 7, "and four failures in a row would have been the end"
    assert len(server.received) == 1


def test_an_upload_that_does_not_get_on_is_given_up(
    server: Registry, opened: Open, origin: MemoryStore, pauses: list[float]
) -> None:
    server.switches.faults = [cut(2 * MIB), cut(10, "^PATCH", times=100)]
    with pytest.raises(Unavailable, match="cut"):
        opened(server).push(put(origin, DATA, LAYER), origin)
    assert len(pauses) == 4


@pytest.mark.parametrize(
    "switches",
    [
        {"status": False},
        {"patch": False},
        {"range_header": "0-0"},
        {"range_header": "nonsense"},
        {"range_header": "0-99999999"},
        {"range_header": "0-1048575"},  # less than it holds: the piece does not fit
    ],
    ids=str,
)
def test_where_an_upload_cannot_go_on_it_is_made_anew(
    server: Registry, opened: Open, origin: MemoryStore, switches: dict[str, Any]
) -> None:
    for name, value in switches.items():
        setattr(server.switches, name, value)
    target = put(origin, DATA, LAYER)
    server.switches.faults = [cut(2 * MIB)]
    opened(server).push(target, origin)
    assert there(server, target)
    assert len(server.received) == 1
    assert sent(server)[-2:] in (
        [sent(server)[-2], ("PUT", "4194304")],
        [("PATCH", "4194304"), ("PUT", "0")],
    )


def test_an_upload_that_was_thrown_away_when_it_was_cut_is_streamed_from_then_on(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """What came of a PUT may be lost where what comes by PATCH is kept."""
    target = put(origin, DATA, LAYER)
    server.switches.faults = [Fault("^PUT .*uploads", act="forget", times=1), cut(MIB, "^PATCH")]
    opened(server).push(target, origin)
    assert there(server, target)
    assert sent(server) == [
        ("PUT", "4194304"),
        ("PATCH", "4194304"),
        ("PATCH", "1048576-4194303"),
        ("PUT", "0"),
    ]


@pytest.fixture
def big(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make 4 MiB big."""
    monkeypatch.setattr("ocipack.stores.registry.upload.STREAMED", 2 * MIB)


@pytest.mark.usefixtures("big")
def test_what_is_big_is_streamed_so_that_a_cut_costs_little(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    target, small = put(origin, DATA, LAYER), put(origin, DATA[:MIB], LAYER)
    server.switches.faults = [cut(3 * MIB, "^PATCH")]
    store = opened(server)
    store.push(target, origin)
    store.push(small, origin)
    assert there(server, target)
    assert sent(server) == [
        ("PATCH", "4194304"),
        ("PATCH", "3145728-4194303"),
        ("PUT", "0"),
        ("PUT", "1048576"),
    ]


@pytest.mark.usefixtures("big")
@pytest.mark.parametrize("status", [400, 403, 405, 501])
def test_a_registry_that_takes_no_stream_is_sent_the_whole(
    server: Registry, opened: Open, origin: MemoryStore, status: int
) -> None:
    server.switches.faults = [Fault("^PATCH", status)]
    store = opened(server)
    for data in (DATA, DATA[::-1]):
        target = put(origin, data, LAYER)
        store.push(target, origin)
        assert server.blobs[str(target.digest)] == data
    assert len(server.lines("^PATCH")) == 1, "which is found out once"


@pytest.mark.usefixtures("big")
def test_a_registry_that_has_no_place_for_a_stream_is_sent_the_whole(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """It says that there is no such upload, as one does that has forgotten it."""
    target = put(origin, DATA, LAYER)
    server.switches.faults = [Fault("^PATCH", 404)]
    opened(server).push(target, origin)
    assert there(server, target)
    assert len(server.lines("^PATCH")) == 2


def test_whose_credentials_a_storage_was_not_sent(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    with Registry(host="127.0.0.2") as storage:
        server.switches.redirect_put = storage.url
        storage.switches.faults = [Fault("^PUT", 403)]
        with pytest.raises(StoreError, match="none: not the registry's own host"):
            opened(server).push(put(origin, b"x", LAYER), origin)


@pytest.mark.usefixtures("big")
def test_a_stream_that_is_too_long_goes_in_pieces(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    server.switches.body_max = MIB
    target = put(origin, DATA, LAYER)
    opened(server).push(target, origin)
    assert there(server, target)
    assert max(server.chunks.values(), key=len) == [MIB // 2] * 8


def test_an_upload_that_was_damaged_on_its_way_is_made_anew(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """What a registry says that it holds is not believed: it hashes the whole at the end."""
    target = put(origin, DATA, LAYER)
    store = opened(server)
    server.switches.faults = [cut(2 * MIB)]

    def spoil() -> None:
        (held,) = server.uploads.values()
        held[0] ^= 1

    origin_fetch = origin.fetch

    class Watching(MemoryStore):
        def fetch(self, target: Descriptor) -> Iterator[bytes]:
            if server.uploads and any(server.uploads.values()):
                spoil()
            return origin_fetch(target)

    store.push(target, Watching())
    assert there(server, target)
    assert sent(server) == [
        ("PUT", "4194304"),
        ("PATCH", "2097152-4194303"),
        ("PUT", "0"),
        ("PUT", "4194304"),
    ]


def test_an_upload_whose_end_was_lost_is_not_made_again(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """Nothing mounts here: only asking for the blob shows that it has arrived."""
    server.switches.mount = False
    target = put(origin, DATA, LAYER)
    server.switches.faults = [Fault("^PUT .*uploads", act="lost", times=1)]
    opened(server).push(target, origin)
    assert there(server, target)
    assert len(server.received) == 1
    assert len(server.lines("^PUT")) == 1


def test_a_small_upload_that_is_cut_is_made_anew_without_asking(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    target = put(origin, DATA[:MIB], LAYER)
    server.switches.faults = [cut(MIB // 2)]
    opened(server).push(target, origin)
    assert there(server, target)
    assert not server.lines("^(GET|HEAD|PATCH)")


@pytest.mark.parametrize(
    ("limit", "pieces"),
    [(4 * MIB, [4 * MIB, 4 * MIB]), (MIB, [MIB // 2] * 16), (3 * MIB, [MIB // 2] * 16)],
)
def test_what_is_too_long_for_a_proxy_is_sent_in_pieces(
    server: Registry, opened: Open, origin: MemoryStore, limit: int, pieces: list[int]
) -> None:
    """`client_max_body_size` of nginx is 1 MiB if nobody says otherwise."""
    data = DATA + DATA[::-1]
    server.switches.body_max = limit
    target = put(origin, data, LAYER)
    opened(server).push(target, origin)
    assert server.blobs[str(target.digest)] == data
    assert max(server.chunks.values(), key=len) == pieces


def test_a_registry_with_a_limit_for_pieces_gets_them_so(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """As GHCR: the whole is too long, and so is a piece of more than 4 MiB."""
    data = DATA + DATA[::-1] + b"end"
    server.switches.body_max, server.switches.chunk_max = 5 * MIB, 4 * MIB
    target = put(origin, data, LAYER)
    opened(server).push(target, origin)
    assert max(server.chunks.values(), key=len) == [4 * MIB, 4 * MIB, 3]


def test_pieces_are_not_shorter_than_the_registry_wants(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    data = DATA + DATA[::-1] + b"end"
    server.switches.body_max, server.switches.chunk_min = 7 * MIB, 5 * MIB
    target = put(origin, data, LAYER)
    opened(server).push(target, origin)
    assert max(server.chunks.values(), key=len) == [5 * MIB, 3 * MIB + 3]


def test_a_registry_that_wants_longer_pieces_than_the_proxy_before_it_lets_pass(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    server.switches.body_max, server.switches.chunk_min = MIB, 3 * MIB
    with pytest.raises(StoreError, match="413"):
        opened(server).push(put(origin, DATA, LAYER), origin)
    assert len(server.requests) < 10


@pytest.mark.parametrize("said", ["", "x", "-5", "9" * 400])
def test_a_least_length_that_is_none(
    server: Registry, opened: Open, origin: MemoryStore, said: str
) -> None:
    where = {"Location": "/v2/team/app/blobs/uploads/upload-1", "OCI-Chunk-Min-Length": said}
    server.uploads["upload-1"], server.chunks["upload-1"] = bytearray(), []
    server.switches.body_max = 5 * MIB
    server.switches.faults = [Fault("^POST", 202, where)]
    target = put(origin, DATA + DATA, LAYER)
    opened(server).push(target, origin)
    assert server.chunks["upload-1"] == [4 * MIB] * 2


def test_pieces_go_on_where_they_were_cut(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    data = DATA + DATA[::-1]
    server.switches.body_max = MIB
    target = put(origin, data, LAYER)
    server.switches.faults = [cut(100_000, "^PATCH", skip=4)]
    opened(server).push(target, origin)
    assert server.blobs[str(target.digest)] == data
    assert len(server.received) == 1
    assert len(server.lines("^PATCH")) == 1 + 16 + 1


def test_what_is_too_long_in_any_piece_says_so(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    server.switches.body_max = MIB // 4
    with pytest.raises(StoreError, match="413") as caught:
        opened(server).push(put(origin, DATA, LAYER), origin)
    assert "client_max_body_size" in caught.value.hint
    server.switches.body_max, server.switches.patch = 2 * MIB, False
    with pytest.raises(StoreError, match=r"PATCH .* 405 UNSUPPORTED") as caught:
        opened(server).push(put(origin, DATA, LAYER), origin)
    assert "too long for a proxy" in caught.value.hint


def test_an_upload_is_sent_on_as_its_registry_says(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    target = put(origin, DATA, LAYER)
    with Registry(host="127.0.0.2") as storage:
        storage.uploads["upload-1"], storage.chunks["upload-1"] = bytearray(), []
        server.switches.redirect_put = storage.url
        opened(server).push(target, origin)
        assert storage.blobs[str(target.digest)] == DATA
    server.switches.redirect_put = server.url
    with pytest.raises(StoreError, match="more than 3 redirects"):
        opened(server).push(put(origin, DATA[1:], LAYER), origin)


def test_another_host_does_not_send_an_upload_back(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """It could name anything here, and we would do that with our credentials."""
    with Registry(host="127.0.0.2") as storage:
        server.switches.redirect_put = storage.url
        back = {"Location": f"{server.url}/v2/team/app/manifests/latest"}
        storage.switches.faults = [Fault("^PUT", 307, back)]
        with pytest.raises(StoreError, match="sends the upload back to"):
            opened(server).push(put(origin, b"{}", LAYER), origin)
    assert not server.lines("manifests")


def test_a_repository_that_must_be_created_first(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    """As on ECR and Harbor."""
    body = b'{"errors":[{"code":"NAME_UNKNOWN","message":"The repository does not exist"}]}'
    server.switches.faults = [Fault("^POST", 404, {}, body)]
    with pytest.raises(StoreError, match="404 NAME_UNKNOWN: The repository") as caught:
        opened(server).push(put(origin, b"x", LAYER), origin)
    assert "create it there first" in caught.value.hint


def test_a_server_that_falls_silent_in_an_upload_that_came_far(
    server: Registry, opened: Open, origin: MemoryStore
) -> None:
    target = put(origin, DATA, LAYER)
    server.switches.faults = [Fault("^PUT .*uploads", act="deaf", after=2 * MIB, times=1)]
    opened(server, idle_timeout=0.3).push(target, origin)
    assert there(server, target)
    assert ("PATCH", "2097152-4194303") in sent(server)
    server.switches.faults = [Fault("^PUT .*uploads", act="silence")]
    server.requests.clear()
    with pytest.raises(Unavailable, match="nothing came"):
        opened(server, idle_timeout=0.3).push(put(origin, DATA[1:], LAYER), origin)
    assert len(server.lines("^PUT")) == 1


def test_a_login_that_ends_in_the_middle_of_an_upload(opened: Open, origin: MemoryStore) -> None:
    """The token is replaced, and the body is sent once more."""
    with Registry(Switches(auth="bearer", anonymous="pull,push")) as server:
        store = opened(server)
        target = put(origin, DATA, LAYER)
        server.switches.revoke = "^PUT"
        store.push(target, origin)
        assert there(server, target)
        assert len(server.lines("/token")) == 2
        assert len(server.lines("^PUT")) == 2
        assert len(server.lines("^POST /v2/")) == 2


# everything at once


def any_registry(dice: random.Random) -> Switches:
    """A registry with quirks of its own, and with a few accidents."""
    made = Switches(
        auth=dice.choice(["", "bearer"]),
        anonymous="pull,push",
        body_max=dice.choice([0, 0, 0, MIB, 3 * MIB, 200_000]),
        chunk_max=dice.choice([0, 0, MIB]),
        chunk_min=dice.choice([0, 0, 100_000, 3 * MIB]),
        etag=dice.choice(["strong", "weak", "new", "none"]),
        location=dice.choice(["relative", "absolute", "query"]),
        mount=dice.random() < 0.5,
        mount_status=dice.choice([0, 0, 401, 500]),
        moving=dice.random() < 0.4,
        patch=dice.random() < 0.8,
        patch_status=dice.choice([201, 202, 204]),
        range_header=dice.choice(["", "", "", "0-0", "x", "0-99", "0-5000000"]),
        ranges=dice.choice(["yes", "yes", "no", "wrong"]),
        status=dice.random() < 0.8,
    )
    requests = ["^PUT .*uploads", "^PATCH", "^POST .*uploads", "^GET .*uploads", "^HEAD"]
    for _ in range(dice.randrange(5)):
        skip, times = dice.randrange(3), dice.choice([1, 1, 2, 3])
        status = dice.choice([0, 0, 0, 400, 404, 429, 500])
        act = "" if status else dice.choice(["cut", "reset", "lost", "forget"])
        after = dice.randrange(4 * MIB)
        accident = Fault(
            dice.choice(requests), status, act=act, after=after, skip=skip, times=times
        )
        made.faults.append(accident)
    return made


@pytest.mark.parametrize("seed", range(25))
def test_whatever_a_registry_does_an_upload_ends(
    opened: Open, origin: MemoryStore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """In one of two ways: what is there is right, or an error says where it failed."""
    dice = random.Random(seed)
    monkeypatch.setattr("ocipack.stores.registry.upload.STREAMED", dice.choice([64 * MIB, 2 * MIB]))
    target = put(origin, DATA[: dice.choice([4 * MIB, 3 * MIB, MIB + 1, 100_000])], LAYER)
    said = ""
    with Registry(any_registry(dice)) as server:
        try:
            opened(server).push(target, origin)
        except StoreError as e:
            said = str(e)
        assert there(server, target) or "/v2/team/app/blobs/" in said
        assert len(server.requests) < 60
