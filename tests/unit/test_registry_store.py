"""A registry that misbehaves: what each fault becomes, how many requests each job takes."""

from __future__ import annotations

import hashlib
import itertools
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from content import INDEX, LAYER, MANIFEST, blob, document, image, index, put
from doubles import Spoiled
from registry import Fault, Registry, Switches

from ocipack.copy import copy
from ocipack.errors import (
    Denied,
    IntegrityError,
    NotFound,
    OcipackError,
    Rejected,
    StoreError,
    Unavailable,
)
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.oci.store import manifest
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.settings import Settings
from ocipack.stores.http.transport import Transport
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry import pages
from ocipack.stores.registry.manifests import Memo
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.store import RegistryStore

ZERO = "sha256:" + "0" * 64
Open = Callable[..., RegistryStore]


@pytest.fixture
def server() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.fixture
def bare() -> Iterator[Registry]:
    """A registry without the referrers API, as distribution 2 is."""
    with Registry(Switches(referrers=False, name_unknown=False)) as running:
        yield running


@pytest.fixture
def origin() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def pauses() -> list[float]:
    return []


def registries(pauses: list[float] | None = None, **settings: Any) -> Registries:
    waits = pauses if pauses is not None else []
    patience = Patience(4, 60, sleep=waits.append, random=lambda: 1.0)
    return Registries(Transport(Settings(**{"idle_timeout": 5.0, **settings}), patience=patience))


def opened(
    server: Registry, name: str = "team/app", *, prefetch: bool = True, **settings: Any
) -> RegistryStore:
    """A store that shares nothing with others: as a new run has it."""
    reference = Reference.parse(f"{server.name}/{name}")
    return registries(**settings).store(reference, writes=True, prefetch=prefetch)


def filled(server: Registry, origin: MemoryStore, *layers: bytes) -> Descriptor:
    """An image that is at the server, tagged v1; the log starts after it."""
    root = image(origin, *(layers or (b"layer",)))
    copy(origin, opened(server), root, tag="v1")
    server.requests.clear()
    return root


def whole(store: RegistryStore, target: Descriptor) -> bytes:
    return b"".join(store.fetch(target))


def layer(origin: MemoryStore, root: Descriptor) -> Descriptor:
    return Manifest(origin.content[root.digest], root.media_type).layers[0]


# requests: few, and nothing twice


def test_verifying_by_digest_with_a_legacy_signature(bare: Registry, origin: MemoryStore) -> None:
    root = filled(bare, origin)
    signature = image(origin, b"payload")
    copy(origin, opened(bare), signature, tag=f"sha256-{root.digest.hex}.sig")
    bare.requests.clear()
    store = opened(bare)
    subject = store.resolve(str(root.digest))
    manifest(store, subject)
    signed = manifest(store, store.resolve(f"sha256-{root.digest.hex}.sig"))
    whole(store, signed.layers[0])
    assert len(bare.requests) == 3
    assert len(set(bare.lines())) == 3


def test_verifying_by_tag_with_a_bundle(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    copy(origin, opened(server), image(origin, b"bundle", subject=root))
    server.requests.clear()
    store = opened(server)
    (found,) = store.referrers(store.resolve("v1"))
    whole(store, manifest(store, found).layers[0])
    assert len(server.requests) == 4


def test_pushing_into_a_new_repository(server: Registry, origin: MemoryStore) -> None:
    for switches in (Switches(), Switches(name_unknown=False)):
        server.switches = switches
        server.repositories.clear()
        server.requests.clear()
        store = opened(server)
        copy(origin, store, image(origin, b"layer"), tag="v1")
        assert len(server.requests) == 7
        assert not server.lines("^HEAD")
        assert server.lines("^GET") == server.lines("/manifests/sha256:")[:1]


def test_pushing_after_the_tag_was_not_there(server: Registry, origin: MemoryStore) -> None:
    store = opened(server)
    with pytest.raises(NotFound):
        store.resolve("v1")
    copy(origin, store, image(origin, b"layer"), tag="v1")
    assert len(server.requests) == 7


def test_signing_with_a_bundle(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    store = opened(server)
    subject = store.resolve(str(root.digest))
    list(store.referrers(subject))
    bundle = image(origin, b"bundle", subject=subject)
    parts = Manifest(origin.content[bundle.digest], MANIFEST).children
    for part in parts:
        store.push(part, origin)
    store.push(bundle, origin)
    assert len(server.requests) == 2 + 2 * 2 + 1


def test_nothing_to_do_costs_one_request_a_tag(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    store = opened(server, prefetch=False)
    for _ in range(3):
        assert store.resolve("v1") == root
    assert server.lines() == ["HEAD /v2/team/app/manifests/v1"] * 3


def test_what_was_pushed_is_not_asked_for(server: Registry, origin: MemoryStore) -> None:
    root = image(origin, b"layer")
    store = opened(server)
    copy(origin, store, root)
    server.requests.clear()
    assert store.resolve(str(root.digest)) == root
    assert whole(store, root) == origin.content[root.digest]
    assert store.exists(root)
    assert all(store.exists(part) for part in manifest(store, root).children)
    copy(origin, store, root)
    assert not server.requests


def test_what_an_interrupted_run_left_is_not_sent_again(
    server: Registry, origin: MemoryStore
) -> None:
    root = image(origin, b"one", b"two", b"three")
    for part in Manifest(origin.content[root.digest], MANIFEST).children[:-1]:
        opened(server).push(part, origin)
    with pytest.raises(NotFound):
        (store := opened(server)).resolve("v1")
    copy(origin, store, root, tag="v1")
    assert len(server.received) == len(set(server.received)) == 4


def test_a_big_blob_is_asked_for_in_a_repository_that_may_be_new(
    bare: Registry, origin: MemoryStore
) -> None:
    bigs = [put(origin, bytes([n]) * 2_000_000, LAYER) for n in range(5)]
    store = opened(bare)
    with pytest.raises(NotFound):
        store.resolve("v1")
    assert not any(map(store.exists, bigs))
    assert len(bare.lines("^HEAD")) == 5
    bare.switches.name_unknown = True
    bare.requests.clear()
    store = opened(bare)
    with pytest.raises(NotFound):
        store.resolve("v1")
    assert not any(map(store.exists, bigs))
    assert len(bare.lines("^HEAD")) == 3, "three that are not there are enough of a sign"
    assert not store.exists(put(origin, b"small", LAYER))
    assert len(bare.lines("^HEAD")) == 3


def test_big_blobs_of_an_interrupted_run_are_found_where_nothing_mounts(
    server: Registry, origin: MemoryStore
) -> None:
    server.switches.mount = False
    root = image(origin, *(bytes([n]) * 2_000_000 for n in range(3)))
    for part in Manifest(origin.content[root.digest], MANIFEST).layers:
        opened(server).push(part, origin)
    with pytest.raises(NotFound, match="NAME_UNKNOWN"):
        (store := opened(server)).resolve("v1")
    copy(origin, store, root, tag="v1")
    assert len(server.received) == len(set(server.received)) == 4


@pytest.mark.parametrize("status", [400, 403, 405, 501])
def test_a_registry_that_does_not_say_whether_it_has_a_blob_is_sent_it(
    server: Registry, origin: MemoryStore, status: int
) -> None:
    root = filled(server, origin)
    server.switches.faults = [Fault("^HEAD .*blobs", status)]
    store = opened(server)
    store.resolve("v1")
    other = image(origin, b"other")
    copy(origin, store, other, tag="v2")
    assert opened(server).resolve("v2") == other
    assert root != other


def test_a_name_that_is_absent_in_a_repository_in_use_does_not_make_it_new(
    bare: Registry, origin: MemoryStore
) -> None:
    root = filled(bare, origin)
    store = opened(bare)
    store.resolve("v1")
    with pytest.raises(NotFound):
        store.resolve("v2")
    assert store.exists(layer(origin, root))


def test_eight_at_once_send_each_blob_once(server: Registry, origin: MemoryStore) -> None:
    store = opened(server)
    root = image(origin, *(bytes([n]) * 1000 for n in range(16)))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: copy(origin, store, root, tag="v1"), range(8)))
    assert len(server.received) == len(set(server.received)) == 17


def test_pushing_one_blob_eight_times_at_once_sends_it_once(
    server: Registry, origin: MemoryStore
) -> None:
    target, store = put(origin, bytes(100_000), LAYER), opened(server)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store.push(target, origin), range(8)))
    assert len(server.requests) == 2


def test_a_manifest_that_a_source_swaps_is_not_sent(server: Registry, origin: MemoryStore) -> None:
    root = image(origin, b"layer")
    store = opened(server)
    copy(origin, store, root)
    other = image(origin, b"layer", annotations={"a": "b"})
    server.requests.clear()
    with pytest.raises(IntegrityError):
        store.push(other, Spoiled(origin, other.digest, [origin.content[root.digest]]))
    assert not server.requests


# mounts


def test_a_blob_of_another_repository_is_mounted(server: Registry, origin: MemoryStore) -> None:
    filled(server, origin)
    shared = registries()
    one, two = (
        shared.store(Reference.parse(f"{server.name}/{name}"), writes=True)
        for name in ("team/app", "team/copy")
    )
    server.received.clear()
    copy(one, two, one.resolve("v1"), tag="v1")
    assert not server.received
    assert len(server.lines("mount=sha256:[0-9a-f]{64}&from=team%2Fapp$")) == 2


def test_a_blob_that_was_sent_in_this_run_is_mounted(server: Registry, origin: MemoryStore) -> None:
    shared = registries()
    root = image(origin, b"layer")
    for name in ("a", "b", "c"):
        copy(origin, shared.store(Reference.parse(f"{server.name}/{name}"), writes=True), root)
    assert len(server.received) == 2


@pytest.mark.parametrize("status", [0, 400, 401, 403, 404, 405, 500, 503])
def test_a_mount_that_is_refused_becomes_an_upload(
    server: Registry, origin: MemoryStore, status: int
) -> None:
    server.switches.mount = False
    server.switches.mount_status = status
    filled(server, origin)
    shared = registries()
    one, two = (
        shared.store(Reference.parse(f"{server.name}/{name}"), writes=True)
        for name in ("team/app", "team/copy")
    )
    copy(one, two, one.resolve("v1"), tag="v1")
    assert whole(two, layer(origin, two.resolve("v1"))) == b"layer"
    own = server.lines("from=team%2Fcopy")
    assert len(own) == 0


def test_a_registry_that_refuses_to_mount_from_itself_is_asked_once(
    server: Registry, origin: MemoryStore
) -> None:
    server.switches.mount = False
    server.switches.mount_status = 400
    copy(origin, opened(server), image(origin, *(b"%d" % n for n in range(9))), jobs=1)
    assert len(server.lines("mount=")) == 1


@pytest.mark.parametrize("location", ["relative", "absolute", "query"])
def test_where_an_upload_goes(server: Registry, origin: MemoryStore, location: str) -> None:
    server.switches.location = location
    root = image(origin, b"layer")
    copy(origin, opened(server), root)
    for line in server.lines("^PUT .*/uploads/"):
        assert ("_state=a%2Fb%3D&digest=sha256:" if location == "query" else "?digest=") in line


def test_an_upload_that_a_proxied_registry_calls_plain(tmp_path: Path, origin: MemoryStore) -> None:
    """Behind a proxy that ends TLS, registries name themselves as http."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with Registry(tls=context) as server:
        server.switches.location = f"http://{server.name}"
        store = opened(server, ca_file=str(tmp_path / "ca.pem"))
        copy(origin, store, image(origin, b"layer"), tag="v1")
        assert len(server.received) == 2


def test_an_upload_without_a_location(server: Registry, origin: MemoryStore) -> None:
    server.switches.location = "none"
    with pytest.raises(StoreError, match="did not say where"):
        copy(origin, opened(server), image(origin, b"layer"))


@pytest.mark.parametrize("act", ["reset", "lost"])
@pytest.mark.parametrize("when", ["^POST .*uploads", "^PUT .*uploads"])
def test_an_upload_that_is_cut_is_made_again(
    server: Registry, origin: MemoryStore, pauses: list[float], when: str, act: str
) -> None:
    server.switches.faults = [Fault(when, act=act, times=1)]
    reference = Reference.parse(f"{server.name}/a")
    store = registries(pauses).store(reference, writes=True)
    target = put(origin, bytes(3_000_000), LAYER)
    store.push(target, origin)
    assert whole(store, target) == bytes(3_000_000)
    assert pauses == [0.25]


def test_an_upload_that_the_registry_forgot_is_made_again(
    server: Registry, origin: MemoryStore
) -> None:
    body = b'{"errors":[{"code":"BLOB_UPLOAD_UNKNOWN","message":"gone"}]}'
    server.switches.faults = [Fault("^PUT .*uploads", 404, {}, body, times=1)]
    opened(server).push(put(origin, b"x", LAYER), origin)


# faults of reading


READS = ["^GET .*manifests", "^GET .*blobs", "^GET .*referrers"]


def read_all(server: Registry, root: Descriptor, **settings: Any) -> None:
    store = opened(server, **settings)
    found = store.resolve("v1")
    assert found == root
    for part in manifest(store, found).children:
        whole(store, part)
    list(store.referrers(found))


@pytest.mark.parametrize("when", READS)
@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, Denied, "401 CODE: words"),
        (403, Denied, "403 CODE: words"),
        (404, NotFound, "404 CODE"),
        (405, StoreError, "405 CODE: words"),
        (429, Unavailable, "429 CODE: words; the registry asks to wait 7 s"),
        (500, Unavailable, "500 CODE: words"),
        (502, Unavailable, "502 CODE: words"),
        (418, StoreError, "418 CODE: words"),
    ],
)
def test_a_registry_that_answers_no(
    server: Registry,
    origin: MemoryStore,
    when: str,
    status: int,
    kind: type[StoreError],
    words: str,
) -> None:
    root = filled(server, origin)
    body = b'{"errors":[{"code":"CODE","message":"words"}]}'
    server.switches.faults = [Fault(when, status, {"Retry-After": "7"}, body)]
    if "referrers" in when and status in {404, 405}:
        read_all(server, root)  # no such API
        return
    with pytest.raises(kind) as caught:
        read_all(server, root)
    assert words in str(caught.value)
    assert caught.value.exit_code == 3
    if kind is not NotFound:
        assert f"GET {server.url}/v2/team/app/" in str(caught.value)


def test_what_may_pass_does_pass(
    server: Registry, origin: MemoryStore, pauses: list[float]
) -> None:
    root = filled(server, origin)
    for fault in (
        Fault("/v1", 429, {"Retry-After": "7"}, times=1),
        Fault("/v1", 503, times=2),
        Fault("/v1", act="reset", times=1),
        Fault("/v1", act="half", times=3),
    ):
        server.switches.faults = [fault]
        store = registries(pauses).store(Reference.parse(f"{server.name}/team/app"))
        assert store.resolve("v1") == root
    assert pauses == [7.0, 0.25, 0.5, 0.25, 0.25, 0.5, 1.0]


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"RateLimit-Limit": "100;w=21600", "RateLimit-Remaining": "0;w=21600"}, "slow down"),
        ({}, "You have reached your unauthenticated pull rate limit."),
    ],
)
def test_a_quota_that_is_used_up_is_not_asked_again(
    server: Registry,
    origin: MemoryStore,
    pauses: list[float],
    headers: dict[str, str],
    message: str,
) -> None:
    """Docker Hub's other 429, for asking too fast, passes: it has quota left, or says when."""
    root = filled(server, origin)
    body = json.dumps({"errors": [{"code": "TOOMANYREQUESTS", "message": message}]}).encode()
    reference = Reference.parse(f"{server.name}/team/app")
    server.switches.faults = [Fault("/v1", 429, headers, body, times=1)]
    with pytest.raises(Unavailable, match="429 TOOMANYREQUESTS") as caught:
        registries(pauses).store(reference).resolve("v1")
    assert "log in, wait some hours, or read through a mirror" in caught.value.hint
    assert pauses == []
    for passing in (headers | {"Retry-After": "2"}, {"RateLimit-Remaining": "5;w=21600"}):
        text = body if "Retry-After" in passing else b"Too Many Requests"
        server.switches.faults = [Fault("/v1", 429, passing, text, times=1)]
        assert registries(pauses).store(reference).resolve("v1") == root
    assert pauses == [2.0, 0.25]


def test_a_pause_that_is_too_long_is_refused_at_once(
    server: Registry, origin: MemoryStore, pauses: list[float]
) -> None:
    filled(server, origin)
    server.switches.faults = [Fault("/v1", 429, {"Retry-After": "3600"})]
    store = registries(pauses).store(Reference.parse(f"{server.name}/team/app"))
    with pytest.raises(Unavailable, match="asks to wait 3600 s") as caught:
        store.resolve("v1")
    assert "log in or ask less often" in caught.value.hint
    assert pauses == []
    date = {"Date": "Mon, 30 Nov 2026 10:00:00 GMT"}
    server.switches.faults = [
        Fault("/v1", 503, date | {"Retry-After": "Mon, 30 Nov 2026 10:00:09 GMT"})
    ]
    with pytest.raises(Unavailable, match="asks to wait"):
        store.resolve("v1")


@pytest.mark.parametrize("when", READS[:2])
@pytest.mark.parametrize(
    ("act", "kind"),
    [
        ("half", Unavailable),
        ("reset", Unavailable),
        ("silence", Unavailable),
        ("spoil", IntegrityError),
        ("endless", IntegrityError),
        ("nolength", OcipackError),
    ],
)
def test_a_body_that_is_not_what_it_should_be(
    server: Registry, origin: MemoryStore, when: str, act: str, kind: type[OcipackError]
) -> None:
    root = filled(server, origin)
    when = when.replace("manifests", f"manifests/{root.digest}")
    server.switches.faults = [Fault(when, act=act)]
    store = opened(server, idle_timeout=0.2)
    with pytest.raises(kind):
        whole(store, root if "manifests" in when else layer(origin, root))


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_blob_that_ends_with_the_connection_is_unavailable(
    server: Registry, origin: MemoryStore, size: int
) -> None:
    root = filled(server, origin, bytes(size))
    server.switches.faults = [Fault("^GET .*blobs", act="nolength")]
    with pytest.raises(Unavailable, match="closed after"):
        whole(opened(server), layer(origin, root))


def test_a_tag_whose_bytes_are_spoilt(server: Registry, origin: MemoryStore) -> None:
    """The digest header is the right one's: what is believed is what was hashed."""
    root = filled(server, origin)
    server.switches.faults = [Fault("GET .*/v1", act="spoil")]
    with pytest.raises(IntegrityError, match=f"calls sha256:[0-9a-f]+ {root.digest}"):
        opened(server).resolve("v1")


def test_another_manifest_than_the_one_asked_for(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    other = origin.content[image(origin, b"other").digest]
    server.switches.faults = [Fault("manifests", 200, {"Content-Type": MANIFEST}, other)]
    with pytest.raises(IntegrityError, match="content has the digest"):
        opened(server).resolve(str(root.digest))


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_blob_whose_bytes_are_spoilt(server: Registry, origin: MemoryStore, size: int) -> None:
    root = filled(server, origin, bytes(size))
    server.switches.faults = [Fault("^GET .*blobs", act="spoil")]
    with pytest.raises(IntegrityError, match="content has the digest"):
        whole(opened(server), layer(origin, root))


def test_a_digest_header_that_is_wrong_or_missing(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    for name in ("v1", str(root.digest)):
        server.switches.faults = [Fault("manifests", act="digest")]
        with pytest.raises(IntegrityError, match=f"the registry calls {root.digest} {ZERO}"):
            opened(server).resolve(name)
        server.switches.faults = [Fault("manifests", act="nodigest")]
        for prefetch in (True, False):
            assert opened(server, prefetch=prefetch).resolve(name) == root
    server.switches.faults = [Fault("HEAD .*manifests", act="digest")]
    with pytest.raises(IntegrityError, match=f"said to be {ZERO}"):
        opened(server, prefetch=False).resolve(str(root.digest))
    lying = opened(server, prefetch=False)
    claimed = lying.resolve("v1")
    assert str(claimed.digest) == ZERO
    with pytest.raises(NotFound):
        whole(lying, claimed)


def test_a_head_says_that_there_is_nothing(server: Registry, origin: MemoryStore) -> None:
    filled(server, origin)
    store = opened(server, prefetch=False)
    with pytest.raises(NotFound, match="has no 'v2'"):
        store.resolve("v2")
    assert server.lines() == ["HEAD /v2/team/app/manifests/v2"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Docker-Content-Digest": "sha256:zz", "Content-Type": MANIFEST},
        {"Docker-Content-Digest": ZERO, "Content-Type": "text/plain"},
        {"Content-Type": MANIFEST},
    ],
)
def test_a_head_that_does_not_say_it_all_becomes_a_get(
    server: Registry, origin: MemoryStore, headers: dict[str, str]
) -> None:
    root = filled(server, origin)
    server.switches.faults = [Fault("^HEAD", 200, headers, b"body")]
    assert opened(server, prefetch=False).resolve("v1") == root


def test_memory_of_manifests_is_bounded() -> None:
    memo = Memo(limit=100)
    made = [Manifest(b"%d" % n * 40, MANIFEST) for n in range(3)]
    digests = [Digest.of(one.raw) for one in made]
    for digest, one in zip(digests[:2], made[:2], strict=True):
        memo.add(digest, one)
    assert memo.get(digests[0]) is made[0]
    memo.add(digests[2], made[2])
    assert [memo.get(digest) is not None for digest in digests] == [True, False, True]
    big = Manifest(b"x" * 101, MANIFEST)
    memo.add(Digest.of(big.raw), big)
    assert memo.get(Digest.of(big.raw)) is None


def test_a_head_that_is_refused_becomes_a_get(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    server.switches.head = False
    store = opened(server, prefetch=False)
    assert store.resolve("v1") == root
    assert server.lines() == [f"{m} /v2/team/app/manifests/v1" for m in ("HEAD", "GET")]


@pytest.mark.parametrize(
    "body", [b"<!DOCTYPE html><title>Log in</title>", b"{}", b"", b"[1]", b"[" * 100_000]
)
def test_a_page_instead_of_a_manifest(server: Registry, origin: MemoryStore, body: bytes) -> None:
    filled(server, origin)
    server.switches.faults = [Fault("/v1", 200, {"Content-Type": "text/html"}, body)]
    with pytest.raises(StoreError, match="text/html, which is not a manifest") as caught:
        opened(server).resolve("v1")
    assert "is this a registry" in caught.value.hint


def test_an_image_in_the_first_format_of_docker_is_named(
    server: Registry, origin: MemoryStore
) -> None:
    filled(server, origin)
    kind = "application/vnd.docker.distribution.manifest.v1+prettyjws"
    server.switches.faults = [Fault("/v1", 200, {"Content-Type": kind}, b'{"schemaVersion":1}')]
    with pytest.raises(StoreError, match="schema 1") as caught:
        opened(server).resolve("v1")
    assert "schema 2" in caught.value.hint


def test_a_page_that_explains_a_failure(server: Registry) -> None:
    server.switches.faults = [Fault("/v1", 502, {}, b"<!DOCTYPE html>\x1b[31m")]
    with pytest.raises(Unavailable, match=r"502 \(an HTML page, so perhaps") as caught:
        opened(server).resolve("v1")
    assert "\x1b" not in str(caught.value)


def test_a_message_is_bounded_and_printable(server: Registry) -> None:
    message = "\x1b[31m" + "x" * 5000
    body = json.dumps({"errors": [{"code": "C" * 500, "message": message}]}).encode()
    server.switches.faults = [Fault("/v1", 400, {}, body)]
    with pytest.raises(StoreError) as caught:
        opened(server).resolve("v1")
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


def test_an_explanation_without_end(server: Registry) -> None:
    server.switches.faults = [Fault("/v1", 400, {}, b"{", act="endless")]
    with pytest.raises(StoreError, match="400"):
        opened(server).resolve("v1")


def test_a_media_type_that_is_generic_is_read_from_the_document(
    server: Registry, origin: MemoryStore
) -> None:
    root = filled(server, origin)
    listing = index(origin, root)
    copy(origin, opened(server), listing)
    for target in (root, listing):
        raw = origin.content[target.digest]
        loose = json.dumps({k: v for k, v in json.loads(raw).items() if k != "mediaType"}).encode()
        for body in (raw, loose):
            digest = "sha256:" + hashlib.sha256(body).hexdigest()
            for said in ("application/octet-stream", "application/json; charset=utf-8", ""):
                headers = {"Content-Type": said} if said else {}
                server.switches.faults = [Fault(digest, 200, headers, body)]
                assert opened(server).resolve(digest).media_type == target.media_type


def test_a_signature_tag_with_a_huge_layer_is_never_downloaded(
    server: Registry, origin: MemoryStore
) -> None:
    """A descriptor says how much: a body that is said to be longer is not taken."""
    root = filled(server, origin, bytes(2_000_000))
    small = replace(layer(origin, root), size=100)
    with pytest.raises(IntegrityError, match="2000000 bytes, expected 100"):
        whole(opened(server), small)


def test_a_manifest_beyond_the_limit(server: Registry, origin: MemoryStore) -> None:
    filled(server, origin)
    body = document(mediaType=MANIFEST, padding="x" * (4 << 20))
    server.switches.faults = [Fault("/v1", 200, {"Content-Type": MANIFEST}, body)]
    with pytest.raises(IntegrityError, match="longer than 4194304"):
        opened(server).resolve("v1")


def test_a_manifest_that_is_said_to_be_huge_is_not_asked_for(server: Registry) -> None:
    target = Descriptor(MANIFEST, Digest.parse(ZERO), 5 << 20)
    with pytest.raises(IntegrityError):
        whole(opened(server), target)
    assert not server.requests


# faults of writing


def test_a_registry_that_fails_at_each_request_never_shows_a_tag_too_early(
    origin: MemoryStore,
) -> None:
    root = image(origin, b"one", b"two")
    for status, n in itertools.product((500, 403, 0), range(1, 30)):
        with Registry(Switches(fail_at=n, fail_times=1000, fail_status=status)) as server:
            try:
                copy(origin, opened(server), root, tag="v1", jobs=1)
            except StoreError:
                assert "v1" not in server.repository("team/app").tags
            else:
                assert n > 9
                break
            server.switches.fail_at = 0
            copy(origin, opened(server), root, tag="v1")
            assert server.repository("team/app").tags["v1"] == str(root.digest)
            assert len(server.received) == len(set(server.received)) == 3


def test_a_registry_that_stumbles_at_each_request_in_turn_is_no_obstacle(
    origin: MemoryStore,
) -> None:
    root = image(origin, b"one", b"two")
    for status, n in itertools.product((503, 0), range(1, 11)):
        with Registry(Switches(fail_at=n, fail_status=status)) as server:
            copy(origin, opened(server), root, tag="v1", jobs=1)
            assert len(server.received) == len(set(server.received)) == 3


@pytest.mark.parametrize("act", ["lost", "reset"])
def test_an_answer_that_is_lost_does_not_lose_the_manifest(
    server: Registry, origin: MemoryStore, act: str
) -> None:
    server.switches.faults = [Fault("^PUT .*manifests", act=act, times=1)]
    root = image(origin, b"x")
    copy(origin, opened(server), root, tag="v1")
    assert opened(server).resolve("v1") == root


def test_a_registry_that_says_it_holds_something_else(
    server: Registry, origin: MemoryStore
) -> None:
    for when in ("^PUT .*manifests", "^PUT .*uploads"):
        server.switches.faults = [Fault(when, act="digest")]
        with pytest.raises(IntegrityError, match=f"calls sha256:[0-9a-f]+ {ZERO}"):
            copy(origin, opened(server), image(origin, when.encode()), tag="v1")


def test_what_the_registry_collected_meanwhile_is_sent_again(
    server: Registry, origin: MemoryStore
) -> None:
    """Its collector takes what no manifest names yet."""
    root, attached = image(origin, b"one", b"two"), image(origin, b"signature")

    class Collecting(RegistryStore):
        def take(self, target: Descriptor, source: Any, *, name: str = "") -> bool:
            if target == root and not collected:
                collected.append(server.repository("team/app").blobs.pop())
            return super().take(target, source, name=name)

        def push(self, target: Descriptor, source: Any) -> None:
            if target == root and not collected:
                collected.append(server.repository("team/app").blobs.pop())
            super().push(target, source)

    for status in (400, 404):
        collected: list[str] = []
        server.repositories.clear()
        server.received.clear()
        body = b'{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown"}]}'
        server.switches.faults = [Fault("^PUT .*/manifests/sha256", status, {}, body, times=1)]
        copy(origin, Collecting(opened(server).at), root, tag="v1")
        assert opened(server).resolve("v1") == root
        assert set(server.received) >= set(collected)
        assert len(server.repository("team/app").blobs) == 3
    assert attached != root


def test_what_a_registry_never_keeps_is_an_error(server: Registry, origin: MemoryStore) -> None:
    body = b'{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown"}]}'
    server.switches.faults = [Fault("^PUT .*/manifests/sha256", 400, {}, body)]
    with pytest.raises(NotFound, match="400 MANIFEST_BLOB_UNKNOWN"):
        copy(origin, opened(server), image(origin, b"one"), tag="v1")
    assert len(server.lines("^PUT .*/manifests/")) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"404 page not found",
        b"<html>",
        b'{"errors":[{"code":"NOT_FOUND","message":"artifact team/app:v1 not found"}]}',
        b'{"message":"no"}',
    ],
)
def test_what_is_absent_is_known_by_its_status(
    server: Registry, origin: MemoryStore, body: bytes
) -> None:
    """Whatever words a registry has for it: Harbor's are its own."""
    filled(server, origin)
    server.switches.faults = [Fault("(GET|HEAD) .*/v1", 404, {}, body)]
    for prefetch in (True, False):
        with pytest.raises(NotFound):
            opened(server, prefetch=prefetch).resolve("v1")
    store = opened(server)
    store.tag(image(origin, b"layer"), "v1", was=None)


def test_a_registry_that_says_no_digests_is_enough(server: Registry, origin: MemoryStore) -> None:
    server.switches.faults = [Fault("", act="nodigest")]
    root = image(origin, b"layer")
    copy(origin, opened(server), root, tag="v1")
    assert opened(server).resolve("v1") == root
    assert opened(server, prefetch=False).resolve("v1") == root


def test_nothing_is_mounted_from_another_registry(server: Registry, origin: MemoryStore) -> None:
    filled(server, origin)
    with Registry() as other:
        source, target = opened(server), opened(other, "team/copy")
        copy(source, target, source.resolve("v1"), tag="v1")
        assert not other.lines("team%2Fapp")
        assert len(other.received) == 2


def test_documents_and_types_of_others_are_kept_to_the_byte(
    server: Registry, origin: MemoryStore
) -> None:
    """Docker's list is not made an index, zstd is not unpacked, white space stays where it is."""
    kind = "application/vnd.docker.distribution.manifest."
    config = put(origin, b"{}", "application/vnd.docker.container.image.v1+json")
    layers = [
        put(origin, b"zstd", "application/vnd.oci.image.layer.v1.tar+zstd"),
        put(origin, b"sealed", "application/vnd.oci.image.layer.v1.tar+gzip+encrypted"),
        put(origin, b"chart", "application/vnd.cncf.helm.chart.content.v1.tar+gzip"),
    ]
    manifest = {"schemaVersion": 2, "mediaType": f"{kind}v2+json", "config": config.to_dict()}
    manifest |= {"layers": [layer.to_dict() for layer in layers], "x-unknown": [1, {"a": None}]}
    child = put(origin, json.dumps(manifest, indent=3).encode(), f"{kind}v2+json")
    entry = {**child.to_dict(), "platform": {"os": "linux", "architecture": "amd64"}}
    raw = json.dumps({"schemaVersion": 2, "mediaType": f"{kind}list.v2+json", "manifests": [entry]})
    listing = put(origin, raw.encode(), f"{kind}list.v2+json")
    copy(origin, opened(server), listing, tag="v1")
    back = MemoryStore()
    store = opened(server)
    copy(store, back, store.resolve("v1"), tag="v1")
    assert back.content == origin.content
    assert back.resolve("v1") == listing


def test_a_proxy_that_limits_uploads(server: Registry, origin: MemoryStore) -> None:
    server.switches.faults = [Fault("^PUT .*uploads", 413, {}, b"<html>")]
    with pytest.raises(StoreError, match="413") as caught:
        copy(origin, opened(server), image(origin, b"x"))
    assert "client_max_body_size" in caught.value.hint


def test_a_tag_that_moved_since_is_not_moved(server: Registry, origin: MemoryStore) -> None:
    old = filled(server, origin)
    mine, theirs = image(origin, b"mine"), image(origin, b"theirs")
    store = opened(server)
    copy(origin, store, mine)
    copy(origin, opened(server), theirs, tag="v1")
    with pytest.raises(Rejected, match=f"points at {theirs.digest} now, and pointed at") as caught:
        store.tag(mine, "v1", was=old.digest)
    assert "somebody else moved it" in caught.value.hint
    assert server.repository("team/app").tags["v1"] == str(theirs.digest)
    server.requests.clear()
    store.tag(mine, "v1", was=theirs.digest)
    assert [line.split()[0] for line in server.lines("/v1$")] == ["HEAD", "PUT"]


def test_of_threads_that_race_for_a_tag_one_wins(server: Registry, origin: MemoryStore) -> None:
    """Stores of one run share what they know of a registry, and that has a lock for each tag."""
    images = [image(origin, b"%d" % n) for n in range(8)]
    shared, reference = registries(), Reference.parse(f"{server.name}/team/app")
    for root in images:
        copy(origin, shared.store(reference, writes=True), root)
    for name in ("a", "b", "c", "d", "e"):
        start = threading.Barrier(8)

        def move(root: Descriptor, name: str = name, start: threading.Barrier = start) -> bool:
            store = shared.store(reference, writes=True)
            start.wait()
            try:
                store.tag(root, name, was=None)
            except Rejected:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(move, images)) == 1


def test_a_tag_that_cannot_be_asked_for_is_not_moved(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    other = image(origin, b"other")
    store = opened(server)
    copy(origin, store, other)
    for status in (401, 403, 500):
        server.switches.faults = [Fault("^(HEAD|GET) .*/v1", status)]
        with pytest.raises(StoreError):
            store.tag(other, "v1", was=None)
    assert server.repository("team/app").tags["v1"] == str(root.digest)


def test_a_tag_that_never_moves(server: Registry, origin: MemoryStore) -> None:
    filled(server, origin)
    server.switches.immutable = "v.*"
    other = image(origin, b"other")
    with pytest.raises(Rejected, match=r"let the tag .v1. move \(409 TAG_INVALID") as caught:
        copy(origin, opened(server), other, tag="v1")
    assert caught.value.exit_code == 1
    assert "--format bundle" in caught.value.hint
    copy(origin, opened(server), other, tag="v2")


def test_a_fallback_tag_that_never_moves(bare: Registry, origin: MemoryStore) -> None:
    root = filled(bare, origin)
    copy(origin, opened(bare), signed(origin, root, b"1"))
    bare.switches.immutable = "sha256-.*"
    with pytest.raises(Rejected, match="does not let the tag 'sha256-") as caught:
        copy(origin, opened(bare), signed(origin, root, b"2"))
    assert "exempt tags that begin with sha256-" in caught.value.hint


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (400, "ImageTagAlreadyExistsException", "The image tag 'v1' already exists"),
        (405, "TAG_IMMUTABLE", ""),
        (412, "PRECONDITION", "configured as immutable, cannot be updated"),
        (403, "DENIED", "tag cannot be overwritten"),
    ],
)
def test_how_registries_say_that_a_tag_is_immutable(
    server: Registry, origin: MemoryStore, status: int, code: str, message: str
) -> None:
    body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
    server.switches.faults = [Fault("^PUT .*/manifests/v1", status, {}, body)]
    with pytest.raises(Rejected, match="does not let"):
        copy(origin, opened(server), image(origin, b"x"), tag="v1")
    server.switches.faults = [Fault("^PUT .*/manifests/sha256", status, {}, body)]
    with pytest.raises(StoreError):
        copy(origin, opened(server), image(origin, b"y"), tag="v1")


# referrers


def signed(origin: MemoryStore, root: Descriptor, mark: bytes = b"signature") -> Descriptor:
    return image(
        origin, mark, subject=root, artifactType="application/sig", annotations={"by": "us"}
    )


def tag_of(root: Descriptor) -> str:
    return f"sha256-{root.digest.hex}"


def fallback(server: Registry, root: Descriptor) -> list[dict[str, Any]]:
    repository = server.repository("team/app")
    _, raw = repository.manifests[repository.tags[tag_of(root)]]
    found: list[dict[str, Any]] = json.loads(raw)["manifests"]
    return found


def write_fallback(server: Registry, root: Descriptor, raw: bytes, kind: str = INDEX) -> None:
    repository = server.repository("team/app")
    digest = "sha256:" + hashlib.sha256(raw).hexdigest()
    repository.manifests[digest] = (kind, raw)
    repository.tags[tag_of(root)] = digest


def test_without_the_api_the_fallback_tag_lists(bare: Registry, origin: MemoryStore) -> None:
    root = filled(bare, origin)
    one, two = signed(origin, root, b"1"), signed(origin, root, b"2")
    store = opened(bare)
    copy(origin, store, one)
    copy(origin, store, two)
    entries = fallback(bare, root)
    assert [entry["digest"] for entry in entries] == sorted([str(one.digest), str(two.digest)])
    assert entries[0].keys() == {"mediaType", "digest", "size", "annotations", "artifactType"}
    assert {e["artifactType"] for e in entries} == {"application/sig"}
    assert entries[0]["annotations"] == {"by": "us"}
    found = list(opened(bare).referrers(root))
    assert {one.digest, two.digest} == {entry.digest for entry in found}


def test_entries_of_others_are_kept_as_they_are(bare: Registry, origin: MemoryStore) -> None:
    root = filled(bare, origin)
    theirs = {"mediaType": MANIFEST, "digest": ZERO, "size": 5, "x-unknown": {"a": [1]}}
    write_fallback(
        bare, root, document(mediaType=INDEX, manifests=[theirs], annotations={"keep": "me"})
    )
    copy(origin, opened(bare), signed(origin, root))
    assert theirs in fallback(bare, root)
    repository = bare.repository("team/app")
    raw = repository.manifests[repository.tags[tag_of(root)]][1]
    assert json.loads(raw)["annotations"] == {"keep": "me"}
    assert len(fallback(bare, root)) == 2


def test_a_fallback_tag_that_holds_the_subject_is_replaced(
    bare: Registry, origin: MemoryStore
) -> None:
    root = filled(bare, origin)
    listing = index(origin, root)
    copy(origin, opened(bare), listing)
    for subject in (root, listing):
        bare.repository("team/app").tags[tag_of(subject)] = str(subject.digest)
        store = opened(bare)
        assert list(store.referrers(subject)) == []
        signature = signed(origin, subject)
        copy(origin, store, signature)
        assert [entry.digest for entry in store.referrers(subject)] == [signature.digest]
        assert [e["digest"] for e in fallback(bare, subject)] == [str(signature.digest)]


def test_a_registry_that_reads_the_fallback_tag_as_a_digest(
    bare: Registry, origin: MemoryStore
) -> None:
    root = filled(bare, origin)
    bare.switches.dash_tag = True
    store = opened(bare)
    assert list(store.referrers(root)) == []
    with pytest.raises(StoreError, match="does not stay in the list of referrers"):
        copy(origin, store, signed(origin, root))


def test_a_fallback_tag_that_holds_something_else_is_left_alone(
    bare: Registry, origin: MemoryStore
) -> None:
    root = filled(bare, origin)
    other = image(origin, b"other")
    copy(origin, opened(bare), other, tag=tag_of(root))
    with pytest.raises(IntegrityError, match="holds something else"):
        list(opened(bare).referrers(root))
    with pytest.raises(IntegrityError, match="holds something else"):
        copy(origin, opened(bare), signed(origin, root))
    assert bare.repository("team/app").tags[tag_of(root)] == str(other.digest)


def test_an_update_that_another_writer_undid_is_made_again(
    bare: Registry, origin: MemoryStore
) -> None:
    """He read before we wrote, and writes after: our pause is when that shows."""
    root = filled(bare, origin)
    theirs = {"mediaType": MANIFEST, "digest": ZERO, "size": 5}
    undone: list[int] = []

    def undo(_: float) -> None:
        if len(undone) < 3:
            undone.append(1)
            write_fallback(bare, root, document(mediaType=INDEX, manifests=[theirs]))

    patience = Patience(sleep=undo, random=lambda: 0.5)
    reference = Reference.parse(f"{bare.name}/team/app")
    store = Registries(Transport(patience=patience)).store(reference, writes=True)
    signature = signed(origin, root)
    copy(origin, store, signature)
    assert {e["digest"] for e in fallback(bare, root)} == {ZERO, str(signature.digest)}


def test_a_list_that_never_keeps_our_entry_is_an_error(bare: Registry, origin: MemoryStore) -> None:
    root = filled(bare, origin)
    empty = document(mediaType=INDEX, manifests=[])
    patience = Patience(sleep=lambda _: write_fallback(bare, root, empty), random=lambda: 0.5)
    reference = Reference.parse(f"{bare.name}/team/app")
    store = Registries(Transport(patience=patience)).store(reference, writes=True)
    with pytest.raises(StoreError, match="does not stay") as caught:
        copy(origin, store, signed(origin, root))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("api", [True, False])
def test_two_signers_at_once_lose_nothing(origin: MemoryStore, *, api: bool) -> None:
    """Each with its own connections and locks, as two processes are."""
    with Registry(Switches(referrers=api, subject_header=False)) as server:
        root = filled(server, origin)
        for n in range(5):
            marks = [signed(origin, root, b"%d %d" % (n, m)) for m in range(2)]
            start = threading.Barrier(2)

            def sign(
                mark: Descriptor, start: threading.Barrier = start, server: Registry = server
            ) -> None:
                store = Registries().store(Reference.parse(f"{server.name}/team/app"), writes=True)
                start.wait()
                copy(origin, store, mark)

            with ThreadPoolExecutor(2) as pool:
                list(pool.map(sign, marks))
        assert len(list(opened(server).referrers(root))) == 10


def test_the_subject_header_is_believed_after_the_api_has_answered(
    server: Registry, origin: MemoryStore
) -> None:
    root = filled(server, origin)
    store = opened(server)
    for n in range(3):
        copy(origin, store, signed(origin, root, b"%d" % n))
    assert len(server.lines("/referrers/")) == 1
    assert tag_of(root) not in server.repository("team/app").tags


def test_a_subject_header_without_an_api_is_not_believed(
    server: Registry, origin: MemoryStore
) -> None:
    root = filled(server, origin)
    server.switches.faults = [Fault("/referrers/", 404)]
    signature = signed(origin, root)
    copy(origin, opened(server), signature)
    assert [e["digest"] for e in fallback(server, root)] == [str(signature.digest)]


def test_an_api_that_does_not_say_the_subject_is_asked(
    server: Registry, origin: MemoryStore
) -> None:
    root = filled(server, origin)
    server.switches.subject_header = False
    store = opened(server)
    copy(origin, store, signed(origin, root))
    assert len(server.lines("/referrers/")) == 1
    assert tag_of(root) not in server.repository("team/app").tags
    empty = document(mediaType=INDEX, manifests=[])
    server.switches.faults = [Fault("/referrers/", 200, {"Content-Type": INDEX}, empty)]
    signature = signed(origin, root, b"unlisted")
    copy(origin, store, signature)
    assert [e["digest"] for e in fallback(server, root)] == [str(signature.digest)]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {"Content-Type": "application/json"}),
        (200, {"Content-Type": f"{INDEX}; charset=utf-8"}),
        (200, {"Content-Type": "text/html"}),
        (200, {}),
        (303, {"Location": "https://elsewhere.example/login"}),
        (400, {}),
        (404, {}),
        (405, {}),
        (406, {}),
    ],
)
def test_what_is_no_referrers_api(
    server: Registry, origin: MemoryStore, status: int, headers: dict[str, str]
) -> None:
    root = filled(server, origin)
    body = document(mediaType=INDEX, manifests=[{"mediaType": MANIFEST, "digest": ZERO, "size": 1}])
    server.switches.faults = [Fault("/referrers/", status, headers, body)]
    signature = signed(origin, root)
    store = opened(server)
    copy(origin, store, signature)
    assert [entry.digest for entry in store.referrers(root)] == [signature.digest]
    assert [e["digest"] for e in fallback(server, root)] == [str(signature.digest)]
    assert len(server.lines("/referrers/")) == 1, "asked once in a run"


def test_a_repository_that_is_not_there_says_nothing_about_the_api(
    server: Registry, origin: MemoryStore
) -> None:
    root = image(origin, b"layer")
    body = b'{"errors":[{"code":"NAME_UNKNOWN","message":"no"}]}'
    server.switches.faults = [Fault("/referrers/", 404, {}, body, times=1)]
    store = opened(server)
    assert list(store.referrers(root)) == []
    copy(origin, store, root)
    copy(origin, store, signed(origin, root))
    assert len(list(store.referrers(root))) == 1
    assert tag_of(root) not in server.repository("team/app").tags


def test_a_listing_in_pages(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    made = sorted(signed(origin, root, b"%d" % n).digest for n in range(7))
    for digest in made:
        copy(origin, opened(server), Descriptor(MANIFEST, digest, len(origin.content[digest])))
    for page, link in itertools.product((1, 2, 3, 7, 10), ("relative", "absolute")):
        server.switches.page, server.switches.link = page, link
        assert sorted(entry.digest for entry in opened(server).referrers(root)) == made
    server.switches.page = 2
    server.requests.clear()
    listing = opened(server).referrers(root)
    next(listing)
    next(listing)
    assert len(server.requests) == 1, "a page that nobody needs is not asked for"
    for link, words in (("loop", "circle"), ("elsewhere", "elsewhere.example")):
        server.switches.link = link
        with pytest.raises(StoreError, match=words):
            list(opened(server).referrers(root))


def test_ten_thousand_referrers_are_listed_lazily(server: Registry, origin: MemoryStore) -> None:
    root = filled(server, origin)
    entries = [
        {"mediaType": MANIFEST, "digest": f"sha256:{n:064x}", "size": n, "artifactType": "a/b",
         "annotations": {"k": "v" * 200}}
        for n in range(10_000)
    ]  # fmt: skip
    body = document(mediaType=INDEX, manifests=entries)
    server.switches.faults = [Fault("/referrers/", 200, {"Content-Type": INDEX}, body)]
    listing = opened(server).referrers(root)
    assert len(list(itertools.islice(listing, 1000))) == 1000
    assert len(list(listing)) == 9000


@pytest.mark.parametrize("api", [True, False])
def test_junk_in_a_listing_does_not_veto(origin: MemoryStore, *, api: bool) -> None:
    with Registry(Switches(referrers=api)) as server:
        root = filled(server, origin)
        good = {"mediaType": MANIFEST, "digest": ZERO, "size": 5}
        junk: list[Any] = [
            *[None, 5, "x", [], {}, {"digest": 5}, {**good, "size": "5"}, {**good, "size": -1}],
            *[{**good, "digest": "sha256:zz"}, {**good, "annotations": {"a": 1}}],
            {**good, "mediaType": "text/html", "digest": "sha256:" + "1" * 64},
            {**root.to_dict()},
            good,
            good,
        ]
        raw = document(mediaType=INDEX, manifests=junk)
        if api:
            server.switches.faults = [Fault("/referrers/", 200, {"Content-Type": INDEX}, raw)]
        else:
            write_fallback(server, root, raw)
        assert [str(entry.digest) for entry in opened(server).referrers(root)] == [ZERO]


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"manifests":5}', b"[" * 100_000, b"\xff"])
@pytest.mark.parametrize("api", [True, False])
def test_a_listing_that_is_none(origin: MemoryStore, raw: bytes, *, api: bool) -> None:
    with Registry(Switches(referrers=api)) as server:
        root = filled(server, origin)
        if api:
            server.switches.faults = [Fault("/referrers/", 200, {"Content-Type": INDEX}, raw)]
        else:
            write_fallback(server, root, raw)
        with pytest.raises(IntegrityError):
            list(opened(server).referrers(root))


@pytest.mark.parametrize("status", [401, 403, 429, 500])
def test_a_listing_that_cannot_be_read_is_not_an_empty_one(
    server: Registry, bare: Registry, origin: MemoryStore, status: int
) -> None:
    root = filled(server, origin)
    server.switches.faults = [Fault("/referrers/", status)]
    with pytest.raises(StoreError):
        list(opened(server).referrers(root))
    filled(bare, origin)
    bare.switches.faults = [Fault("manifests/sha256-", status)]
    with pytest.raises(StoreError):
        list(opened(bare).referrers(root))


# tags


def test_tags_in_pages(server: Registry, origin: MemoryStore) -> None:
    root = image(origin, b"x")
    store = opened(server)
    copy(origin, store, root)
    names = sorted(f"v{n}" for n in range(25))
    for name in names:
        store.tag(root, name)
    for page, link in itertools.product((0, 1, 10, 25), ("relative", "absolute")):
        server.switches.page, server.switches.link = page, link
        assert list(opened(server).tags()) == names
    server.switches.page = 10
    for link, words in (("loop", "circle"), ("elsewhere", "elsewhere.example")):
        server.switches.link = link
        with pytest.raises(StoreError, match=words):
            opened(server).tags()


@pytest.mark.parametrize("page", [50, 100])
@pytest.mark.parametrize("count", [99, 100, 101, 250])
@pytest.mark.parametrize("ordered", [True, False])
def test_pages_that_name_no_next_one(
    server: Registry, origin: MemoryStore, page: int, count: int, *, ordered: bool
) -> None:
    """A list that ends where registries cut lists is asked for its rest."""
    root = filled(server, origin)
    names = {f"v{n}" for n in range(1, count + 1)}
    server.repository("team/app").tags = dict.fromkeys(names, str(root.digest))
    server.switches.page, server.switches.link = page, "none"
    server.switches.tags_sorted = ordered
    found = list(opened(server).tags())
    assert found == sorted(found)
    if ordered:
        assert set(found) == names
    assert opened(server).few_tags() is None or len(names) < page


def test_a_list_that_always_ends_where_lists_are_cut_ends(
    server: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"v{n:03}" for n in range(49)]
    server.switches.faults = [
        Fault("/tags/list", 200, {}, json.dumps({"tags": [*names, f"w{n}"]}).encode(), times=1)
        for n in range(20)
    ]
    monkeypatch.setattr("ocipack.stores.registry.pages.PAGES", 7)
    with pytest.raises(StoreError, match="more than 7 pages"):
        opened(server).tags()
    assert len(server.requests) == 8
    monkeypatch.setattr("ocipack.stores.registry.pages.LISTING_TOTAL", 1500)
    with pytest.raises(StoreError, match="beyond 1000000 tags, 1500 bytes"):
        opened(server).tags()


def test_a_registry_that_knows_no_last_has_told_everything(
    server: Registry, origin: MemoryStore
) -> None:
    root = filled(server, origin)
    names = [f"v{n:03}" for n in range(100)]
    server.repository("team/app").tags = dict.fromkeys(names, str(root.digest))
    body = json.dumps({"tags": names}).encode()
    for answer in (Fault("last=", 400), Fault("last=", 404), Fault("last=", 200, {}, body)):
        server.switches.faults = [answer]
        server.requests.clear()
        assert list(opened(server).tags()) == names
        assert server.lines() == [
            "GET /v2/team/app/tags/list",
            "GET /v2/team/app/tags/list?last=v099",
        ]
    server.switches.faults = [Fault("last=", 500)]
    with pytest.raises(Unavailable):
        opened(server).tags()


@pytest.mark.parametrize("host", ["127.0.0.2", "127.0.0.1"])
def test_a_next_page_on_another_host_is_not_asked_for(
    server: Registry, origin: MemoryStore, host: str
) -> None:
    filled(server, origin)
    with Registry(host=host) as other:
        link = {"Link": f'<{other.url}/v2/team/app/tags/list?last=x>; rel="next"'}
        server.switches.faults = [Fault("/tags/list", 200, link, b'{"tags":["a"]}')]
        with pytest.raises(StoreError, match=f"next page is said to be at {other.url}"):
            opened(server).tags()
        assert not other.requests


def test_a_repository_without_tags(server: Registry, origin: MemoryStore) -> None:
    with pytest.raises(NotFound, match="NAME_UNKNOWN"):
        opened(server).tags()
    server.switches.empty_tags_404 = False
    assert list(opened(server).tags()) == []
    filled(server, origin)
    server.switches.tags_null = True
    assert list(opened(server).tags()) == []


@pytest.mark.parametrize("raw", [b"", b"[]", b'{"tags":"x"}', b'{"tags":{}}', b"\xff", b"<html>"])
def test_a_list_of_tags_that_is_none(server: Registry, raw: bytes) -> None:
    server.switches.faults = [Fault("/tags/list", 200, {}, raw)]
    with pytest.raises(IntegrityError):
        opened(server).tags()


def test_pages_of_repeated_entries_have_a_budget_together(
    server: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocipack.stores.registry.pages.LISTING_TOTAL", 20)
    page = b'{"tags":[]}'
    server.switches.faults = [
        Fault("list$", 200, {"Link": "</v2/team/app/tags/list?n=0>; rel=next"}, page),
        Fault("n=0$", 200, {}, page),
    ]
    with pytest.raises(StoreError, match="more than 20 bytes"):
        opened(server).tags()


def test_pages_without_end(server: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocipack.stores.registry.pages.PAGES", 5)
    server.switches.faults = [
        Fault("list$", 200, {"Link": "</v2/team/app/tags/list?n=0>; rel=next"}, b"{}"),
        *[
            Fault(f"n={n}$", 200, {"Link": f"</v2/team/app/tags/list?n={n + 1}>; rel=next"}, b"{}")
            for n in range(9)
        ],
    ]
    with pytest.raises(StoreError, match="more than 5 pages"):
        opened(server).tags()


@pytest.mark.parametrize(
    "link",
    [
        '</v2/team/app/tags/list?last=a>; rel="next"',
        "</v2/team/app/tags/list?last=a>;rel=next",
        '<?last=a>; title="x"; REL="prev next"',
        '</x>; rel="prev", </v2/team/app/tags/list?last=a>; rel="next"',
    ],
)
def test_how_the_next_page_is_named(server: Registry, link: str) -> None:
    server.switches.faults = [
        Fault("list$", 200, {"Link": link}, b'{"tags":["a"]}'),
        Fault("last=a$", 200, {"Link": '</x>; rel="prev"'}, b'{"tags":["b"]}'),
    ]
    assert list(opened(server).tags()) == ["a", "b"]


@pytest.mark.parametrize(
    ("parameters", "is_next"),
    [
        ("; rel=next", True),
        (';title="x" ;REL = "first NEXT last"', True),
        ('; rel="prev"; rel="next"', True),
        ("; rel=nextly", False),
        ('; rel="next-archive"', False),
        ("; rev=next", False),
        (";rel=a" * 300_000, False),  # hours, if the rest is looked through at each of them
    ],
)
def test_which_link_is_the_next_page(parameters: str, *, is_next: bool) -> None:
    assert pages._is_next(parameters) == is_next


def test_names_that_cannot_be_tags_are_left_out(server: Registry) -> None:
    raw = json.dumps({"tags": ["ok", "a\x1b[31m", "../x", "", 5, None, "ok", "x" * 129]}).encode()
    server.switches.faults = [Fault("/tags/list", 200, {}, raw)]
    assert list(opened(server).tags()) == ["ok"]


def test_blobs_are_streamed_whatever_their_size(server: Registry, origin: MemoryStore) -> None:
    target = put(origin, bytes(5_000_000), LAYER)
    store = opened(server)
    store.push(target, origin)
    pieces = list(store.fetch(target))
    assert b"".join(pieces) == bytes(5_000_000)
    assert max(map(len, pieces)) <= 1 << 20


def test_a_digest_of_another_algorithm_in_the_header_says_nothing(
    server: Registry, origin: MemoryStore
) -> None:
    other = {"Docker-Content-Digest": "sha512:" + "0" * 128, "Content-Type": MANIFEST}
    raw = origin.content[image(origin, b"x").digest]
    server.switches.faults = [Fault("/v1", 200, other, raw)]
    assert opened(server).resolve("v1") == blob(raw, MANIFEST)
    server.switches.faults = [Fault("/v1", 200, other | {"Docker-Content-Digest": "x"}, raw)]
    with pytest.raises(IntegrityError, match="is not a digest"):
        opened(server).resolve("v1")
