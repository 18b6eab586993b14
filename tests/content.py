"""Small graphs of content to move about in tests."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.stores.memory import MemoryStore

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def blob(data: bytes, media_type: str = LAYER, algorithm: str = "sha256") -> Descriptor:
    digest = Digest(algorithm, hashlib.new(algorithm, data).hexdigest())
    return Descriptor(media_type, digest, len(data))


def put(store: MemoryStore, data: bytes, media_type: str, algorithm: str = "sha256") -> Descriptor:
    """Put bytes into memory as they are, whether they make sense or not."""
    target = blob(data, media_type, algorithm)
    store.content[target.digest] = data
    if target.is_manifest:
        store.manifests[target.digest] = target
    return target


def document(**members: Any) -> bytes:
    return json.dumps({"schemaVersion": 2, **members}, separators=(",", ":")).encode()


def image(
    store: MemoryStore,
    *layers: bytes,
    subject: Descriptor | None = None,
    algorithm: str = "sha256",
    **members: Any,
) -> Descriptor:
    """Put an image into memory: a config, `layers`, and a manifest."""
    made = hashlib.sha256(b"".join(layers)).hexdigest().encode()
    config = put(store, b'{"made":"%b"}' % made, CONFIG, algorithm)
    parts = [put(store, layer, LAYER, algorithm) for layer in layers]
    if subject is not None:
        members["subject"] = subject.to_dict()
    raw = document(
        mediaType=MANIFEST,
        config=config.to_dict(),
        layers=[part.to_dict() for part in parts],
        **members,
    )
    return put(store, raw, MANIFEST, algorithm)


def index(store: MemoryStore, *children: Descriptor) -> Descriptor:
    """Put an index into memory."""
    raw = document(mediaType=INDEX, manifests=[child.to_dict() for child in children])
    return put(store, raw, INDEX)


def artifact(payload: bytes) -> Artifact:
    """An artifact with one layer, which is not anywhere yet."""
    config, layer = blob(b"{}", CONFIG), blob(payload)
    manifest = Manifest.build(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.to_dict(),
            "layers": [layer.to_dict()],
        }
    )
    return Artifact(manifest, {config.digest: b"{}", layer.digest: payload})
