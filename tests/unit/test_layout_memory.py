"""Memory does not grow with what is moved."""

from __future__ import annotations

import hashlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from content import CONFIG, LAYER, MANIFEST, blob

from ocipack.copy import copy
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.store import Source
from ocipack.stores.layout import LayoutStore

MIB = 1024 * 1024
SIZE = 64 * MIB


def zeros() -> Iterator[bytes]:
    return (bytes(MIB) for _ in range(SIZE // MIB))


def large() -> Artifact:
    hasher = hashlib.sha256()
    for piece in zeros():
        hasher.update(piece)
    layer = Descriptor(LAYER, Digest("sha256", hasher.hexdigest()), SIZE)
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(b"{}", CONFIG).to_dict(),
        "layers": [layer.to_dict()],
    }
    return Artifact(Manifest.build(document), {blob(b"{}").digest: b"{}", layer.digest: zeros})


class Nowhere:
    """A store that takes everything and keeps nothing."""

    def resolve(self, name: str) -> Descriptor:
        raise NotImplementedError

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        raise NotImplementedError

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        raise NotImplementedError

    def exists(self, target: Descriptor) -> bool:  # noqa: ARG002 - the protocol
        return False

    def push(self, target: Descriptor, source: Source) -> None:
        for _ in source.fetch(target):
            pass

    def tag(self, target: Descriptor, name: str, *, was: object = ...) -> None:
        """Forget it."""


@pytest.mark.parametrize("name", ["layout", "layout.tar"])
def test_a_large_blob_is_never_held(tmp_path: Path, name: str) -> None:
    made = large()
    tracemalloc.start()
    try:
        with LayoutStore(tmp_path / name) as store:
            copy(made, store, made.root, tag="v1")
        with LayoutStore(tmp_path / name) as store:
            assert store.exists(made.root)
            copy(store, Nowhere(), made.root)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12 * MIB
