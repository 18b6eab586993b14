"""Other clients who write at the same moment: what a registry then does, and what we do."""

from __future__ import annotations

import gc
import weakref

import content
import pytest
from registry import Fault, Registry, Switches

from ocipack.errors import StoreError
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.reference import Reference
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.transport import Transport
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.store import RegistryStore

HALF_WRITTEN = (
    b'{"errors":[{"code":"DIGEST_INVALID",'
    b'"message":"provided digest did not match uploaded content"}]}'
)


class Clock:
    """Time passes by a hundredth of a second each time somebody looks."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        self.now += 0.01
        return self.now


def opened(registry: Registry, clock: Clock) -> RegistryStore:
    patience = Patience(
        4, 60, sleep=clock.waits.append, random=lambda: 0.5, monotonic=clock.monotonic
    )
    reference = Reference.parse(f"{registry.name}/team/app")
    return Registries(Transport(patience=patience)).store(reference, writes=True)


def image(store: RegistryStore) -> Descriptor:
    """Push the blobs and the manifest of an image."""
    artifact = content.artifact(b"layer")
    for child in artifact.manifest.children:
        store.push(child, artifact)
    store.push(artifact.root, artifact)
    return artifact.root


@pytest.mark.parametrize("name", ["v1", ""])
def test_a_manifest_is_written_again_when_the_registry_read_a_link_half_written(name: str) -> None:
    artifact = content.artifact(b"layer")
    fault = Fault("PUT .*/manifests/", status=400, body=HALF_WRITTEN, times=2)
    with Registry() as registry:
        store = opened(registry, Clock())
        for child in artifact.manifest.children:
            store.push(child, artifact)
        if name:
            store.push(artifact.root, artifact)
        registry.switches.faults.append(fault)
        if name:
            store.tag(artifact.root, name)
        else:
            store.push(artifact.root, artifact)
        assert fault.seen == 3
        kept = registry.repository("team/app")
        assert str(artifact.root.digest) in kept.manifests


def test_a_registry_that_never_takes_the_manifest_is_not_asked_for_ever() -> None:
    fault = Fault("PUT .*/manifests/v1", status=400, body=HALF_WRITTEN)
    with Registry(Switches(faults=[fault])) as registry:
        store = opened(registry, Clock())
        root = image(store)
        with pytest.raises(StoreError, match="DIGEST_INVALID"):
            store.tag(root, "v1")
        assert fault.seen == 4


@pytest.mark.parametrize(("name", "waits"), [("sha256-" + "0" * 64 + ".sig", 1), ("v1", 0)])
def test_a_tag_that_others_append_to_is_left_time_to_be_overwritten(name: str, waits: int) -> None:
    # who asked before us and writes after us does so within about the time that both took us;
    # the signer reads again only then
    clock = Clock()
    with Registry() as registry:
        store = opened(registry, clock)
        root = image(store)
        began = clock.now
        store.tag(root, name, was=None)
        took = clock.now - began
        assert len(clock.waits) == waits
        assert all(took <= wait <= 3 * took for wait in clock.waits)
        store.tag(root, name, was=None)  # it is there: nothing to wait for
        assert len(clock.waits) == waits


def test_nothing_is_waited_for_where_nothing_is_appended() -> None:
    clock = Clock()
    with Registry() as registry:
        store = opened(registry, clock)
        store.tag(image(store), "sha256-" + "0" * 64 + ".sig")
        assert clock.waits == []


def test_sockets_go_with_the_transport_that_used_them() -> None:
    # urllib3 keeps a pool's connections until the pool goes; nothing in them may lead back to it
    with Registry() as registry:
        transport = Transport()
        reference = Reference.parse(f"{registry.name}/team/app")
        image(Registries(transport).store(reference, writes=True))
        kept = weakref.ref(transport)
        del transport
        gc.collect()
        assert kept() is None
