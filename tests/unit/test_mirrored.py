"""Mirrors: read first, believed in nothing that a digest does not prove, never written."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from content import artifact, image
from registry import Fault, Registry, Switches

from ocipack.errors import IntegrityError, NotFound, StoreError, Unavailable
from ocipack.oci import store as stores
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.reference import Reference
from ocipack.stores.auth.config import Credentials
from ocipack.stores.http.host import Host, Mirror
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.settings import Settings
from ocipack.stores.http.transport import Transport
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.store import RegistryStore

LAYER = bytes(range(256)) * (3 << 12)  # 3 MiB: it is streamed


@pytest.fixture
def origin() -> Iterator[Registry]:
    with Registry() as running:
        yield running


@pytest.fixture
def mirror() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def closed() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def registries(origin: str, *mirrors: Mirror) -> Registries:
    settings = Settings(hosts={origin: Host(origin, mirrors=mirrors)})
    return Registries(Transport(settings, patience=Patience(2, 60, sleep=lambda _: None)))


def reading(origin: str, *mirrors: Mirror) -> RegistryStore:
    return registries(origin, *mirrors).store(Reference.parse(f"{origin}/team/app"))


def pushed(at: Registry, name: str = "team/app", layer: bytes = LAYER) -> Descriptor:
    store = Registries().store(Reference.parse(f"{at.name}/{name}"), writes=True)
    made = artifact(layer)
    for child in made.manifest.children:
        store.push(child, made)
    store.push(made.root, made)
    store.tag(made.root, "v1")
    at.requests.clear()
    return made.root


def layer_of(payload: bytes = LAYER) -> Descriptor:
    return artifact(payload).manifest.layers[0]


def whole(store: RegistryStore, target: Descriptor) -> bytes:
    return b"".join(store.fetch(target))


def test_content_comes_from_the_mirror_and_names_from_the_registry(
    origin: Registry, mirror: Registry
) -> None:
    root = pushed(origin)
    pushed(mirror, "hub/team/app")
    store = reading(origin.name, Mirror(mirror.name, "hub"))
    assert store.resolve("v1") == root
    assert whole(store, layer_of()) == LAYER
    assert [line.split("/")[-2] for line in origin.lines()] == ["manifests"]
    assert [line.split("/")[-2] for line in mirror.lines()] == ["blobs"]


def test_a_mirror_that_is_not_believed_does_not_say_what_a_tag_points_at(
    origin: Registry, mirror: Registry
) -> None:
    root, other = pushed(origin), pushed(mirror, layer=b"other")
    assert reading(origin.name, Mirror(mirror.name)).resolve("v1") == root
    assert not mirror.requests
    assert reading(origin.name, Mirror(mirror.name, tags=True)).resolve("v1") == other


def test_mirrors_are_asked_in_their_order_and_the_registry_last(
    origin: Registry, mirror: Registry
) -> None:
    root = pushed(origin)
    with Registry() as empty, Registry(Switches(fail_at=1, fail_times=99, fail_status=403)) as shut:
        names = [closed(), shut.name, empty.name]
        store = reading(origin.name, *[Mirror(name, tags=True) for name in names])
        assert store.resolve("v1") == root
        assert whole(store, layer_of()) == LAYER
        assert len(shut.requests) == len(empty.requests) == 2
        pushed(mirror)
        store = reading(origin.name, Mirror(empty.name), Mirror(mirror.name))
        origin.requests.clear()
        assert whole(store, layer_of()) == LAYER
        assert not origin.requests


def test_a_mirror_that_fails_lists_nothing_and_hides_nothing(
    origin: Registry, mirror: Registry
) -> None:
    root = pushed(origin)
    pushed(mirror)
    mirror.switches.fail_at, mirror.switches.fail_times = 1, 99
    store = reading(origin.name, Mirror(mirror.name, tags=True))
    assert list(store.tags()) == ["v1"]
    assert list(store.referrers(root)) == []
    assert store.resolve("v1") == root
    assert mirror.lines("tags")
    assert mirror.lines("referrers")


def test_a_page_that_is_no_registry_is_passed_over(origin: Registry, mirror: Registry) -> None:
    root = pushed(origin)
    mirror.switches.faults = [Fault("", 200, {"Content-Type": "text/html"}, b"<html>log in</html>")]
    store = reading(origin.name, Mirror(mirror.name, tags=True))
    assert store.resolve("v1") == root


@pytest.mark.parametrize("payload", [LAYER, b"small"])
def test_a_mirror_that_hands_out_other_content_ends_the_run(
    origin: Registry, mirror: Registry, payload: bytes
) -> None:
    pushed(origin, layer=payload)
    pushed(mirror, layer=payload)
    mirror.switches.faults = [Fault("blobs", act="spoil")]
    store = reading(origin.name, Mirror(mirror.name))
    with pytest.raises(IntegrityError, match=f"^{mirror.name}/team/app, a mirror of {origin.name}"):
        whole(store, layer_of(payload))
    assert not origin.requests


def test_a_manifest_that_is_another_ends_the_run(origin: Registry, mirror: Registry) -> None:
    root = pushed(origin)
    pushed(mirror)
    mirror.switches.faults = [Fault("manifests", act="spoil")]
    with pytest.raises(IntegrityError, match="a mirror of"):
        reading(origin.name, Mirror(mirror.name)).resolve(str(root.digest))


def test_a_mirror_that_stops_half_way_is_replaced_where_it_stopped(
    origin: Registry, mirror: Registry
) -> None:
    pushed(origin)
    pushed(mirror)
    mirror.switches.faults = [Fault("blobs", act="half")]
    store = reading(origin.name, Mirror(mirror.name))
    assert whole(store, layer_of()) == LAYER
    assert origin.lines("blobs")


def test_what_a_mirror_sent_before_it_stopped_counts(origin: Registry, mirror: Registry) -> None:
    """Its beginning is wrong, the rest comes from elsewhere: the whole is still hashed."""
    pushed(origin)
    pushed(mirror)
    digest = str(layer_of().digest)
    mirror.blobs[digest] = b"\xff" + LAYER[1:]
    mirror.switches.faults = [Fault("blobs", act="half")]
    with pytest.raises(IntegrityError, match="content has the digest"):
        whole(reading(origin.name, Mirror(mirror.name)), layer_of())


def test_what_is_written_is_never_asked_of_a_mirror(origin: Registry, mirror: Registry) -> None:
    pushed(mirror, layer=b"stale")
    hosts = registries(origin.name, Mirror(mirror.name, tags=True))
    store = hosts.store(Reference.parse(f"{origin.name}/team/app"), writes=True)
    made = artifact(LAYER)
    for child in made.manifest.children:
        store.push(child, made)
    store.push(made.root, made)
    store.tag(made.root, "v1", was=None)
    assert store.resolve("v1") == made.root
    assert not mirror.requests


def test_what_is_attached_is_listed_by_all_each_once(origin: Registry, mirror: Registry) -> None:
    """A mirror that lacks a signature must not make it disappear."""
    memory = MemoryStore()
    root = pushed(origin)
    pushed(mirror)
    both = image(memory, b"signature", subject=root)
    only = image(memory, b"another", subject=root)
    for server, targets in ((origin, (both, only)), (mirror, (both,))):
        there = Registries().store(Reference.parse(f"{server.name}/team/app"), writes=True)
        for target in targets:
            for child in _children(memory, target):
                there.push(child, memory)
            there.push(target, memory)
    store = reading(origin.name, Mirror(mirror.name))
    assert [one.digest for one in store.referrers(root)] == [both.digest, only.digest]
    origin.requests.clear()
    assert next(iter(store.referrers(root))).digest == both.digest
    assert not origin.requests, "whoever is content with the first asks no further"


def _children(memory: MemoryStore, target: Descriptor) -> list[Descriptor]:
    return list(stores.manifest(memory, target).children)


def test_a_believed_mirror_stands_for_a_registry_that_cannot_be_reached(mirror: Registry) -> None:
    root = pushed(mirror)
    away = closed()
    store = reading(away, Mirror(mirror.name, tags=True))
    assert store.resolve("v1") == root
    assert whole(store, layer_of()) == LAYER
    assert list(store.referrers(root)) == []
    assert list(store.tags()) == ["v1"]
    with pytest.raises(NotFound):
        store.resolve("v2")


def test_a_mirror_that_is_not_believed_does_not(mirror: Registry) -> None:
    root = pushed(mirror)
    store = reading(closed(), Mirror(mirror.name))
    assert whole(store, layer_of()) == LAYER
    for ask in (
        lambda: store.resolve("v1"),
        lambda: store.resolve("sha256:" + "0" * 64),
        lambda: list(store.referrers(root)),
        lambda: list(store.tags()),
    ):
        with pytest.raises(Unavailable):
            ask()


def test_a_failure_says_what_the_mirrors_said(mirror: Registry) -> None:
    away = closed()
    hosts = registries(away, Mirror(mirror.name))
    for _ in range(2):  # the second time nobody asks any more, and the reason is still the same
        with pytest.raises(Unavailable, match=f"{away}.*no connection") as caught:
            whole(hosts.store(Reference.parse(f"{away}/team/app")), layer_of())
        assert caught.value.hint.startswith("its mirrors were asked before: GET ")
        assert f"{mirror.name}/v2/team/app/blobs/" in caught.value.hint
        assert "404 BLOB_UNKNOWN" in caught.value.hint


def test_a_registry_out_of_reach_is_tried_once_a_run(
    mirror: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed(mirror)
    away = closed()
    hosts = registries(away, Mirror(mirror.name, tags=True))
    tried: list[str] = []
    real = RegistryStore.resolve

    def resolve(self: RegistryStore, name: str) -> Descriptor:
        if self.at.client.registry == away:
            tried.append(name)
        return real(self, name)

    monkeypatch.setattr(RegistryStore, "resolve", resolve)
    for name in ("a", "b", "c"):
        with pytest.raises(NotFound):
            hosts.store(Reference.parse(f"{away}/team/{name}")).resolve("v9")
    assert tried == ["v9"]


def test_a_registry_that_says_nothing_is_waited_for_once_a_run(
    origin: Registry, mirror: Registry
) -> None:
    pushed(mirror)
    origin.switches.faults = [Fault("", act="silence")]
    hosts = {origin.name: Host(origin.name, mirrors=(Mirror(mirror.name, tags=True),))}
    patience = Patience(4, 60, sleep=lambda _: None)
    run = Registries(Transport(Settings(hosts=hosts, idle_timeout=0.2), patience=patience))
    for name in ("a", "b", "c"):
        with pytest.raises(NotFound):
            run.store(Reference.parse(f"{origin.name}/team/{name}")).resolve("v9")
    assert len(origin.requests) == 1


def test_a_registry_that_refuses_is_not_out_of_reach(origin: Registry, mirror: Registry) -> None:
    root = pushed(mirror)
    origin.switches.fail_at, origin.switches.fail_times = 1, 99
    origin.switches.fail_status = 403
    store = reading(origin.name, Mirror(mirror.name, tags=True))
    with pytest.raises(StoreError, match="403"):
        list(store.referrers(root))


def test_each_mirror_has_its_own_credentials(origin: Registry, tmp_path: Path) -> None:
    """What is kept for the registry does not go to its mirror."""
    pushed(origin)
    with Registry() as mirror:
        pushed(mirror)
        for server in (origin, mirror):
            server.switches.auth = "basic"
            server.switches.users = {"user": server.name}
        auths = {origin.name: {"username": "user", "password": origin.name}}
        file = tmp_path / "config.json"
        for names in ([], [mirror.name]):
            auths |= {name: {"username": "user", "password": name} for name in names}
            file.write_text(json.dumps({"auths": auths}))
            origin.requests.clear()
            settings = Settings(
                hosts={origin.name: Host(origin.name, mirrors=(Mirror(mirror.name),))}
            )
            hosts = Registries(Transport(settings), Credentials([file]))
            store = hosts.store(Reference.parse(f"{origin.name}/team/app"))
            assert whole(store, layer_of()) == LAYER
            assert bool(origin.requests) == (not names)
        given = {seen.headers.get("authorization") for seen in mirror.requests}
        assert given == {None, "Basic " + base64.b64encode(f"user:{mirror.name}".encode()).decode()}
