"""Images put straight into a registry of `registry`, as if somebody had pushed them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from registry import INDEX, Registry

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest_of(raw: bytes) -> str:
    return "sha256:" + hashlib.sha256(raw).hexdigest()


def blob(registry: Registry, name: str, data: bytes, media_type: str = LAYER) -> dict[str, Any]:
    """A blob of a repository; its descriptor."""
    digest = digest_of(data)
    registry.blobs[digest] = data
    registry.repository(name).blobs.add(digest)
    return {"mediaType": media_type, "digest": digest, "size": len(data)}


def put(registry: Registry, name: str, document: dict[str, Any], tag: str = "") -> dict[str, Any]:
    """A manifest or index, which says its media type; its descriptor."""
    raw = json.dumps({"schemaVersion": 2, **document}, separators=(",", ":")).encode()
    repository, digest = registry.repository(name), digest_of(raw)
    repository.manifests[digest] = (document["mediaType"], raw)
    if tag:
        repository.tags[tag] = digest
    return {"mediaType": document["mediaType"], "digest": digest, "size": len(raw)}


def image(
    registry: Registry, name: str, tag: str = "", *layers: bytes, **more: Any
) -> dict[str, Any]:
    """An image with a config that is like no other's; its descriptor."""
    parts = [blob(registry, name, layer) for layer in layers or (f"{name}:{tag}".encode(),)]
    said = json.dumps({"for": f"{name}:{tag}", "layers": [one["digest"] for one in parts]})
    config = blob(registry, name, said.encode(), CONFIG)
    return put(
        registry, name, {"mediaType": MANIFEST, "config": config, "layers": parts, **more}, tag
    )


def index(registry: Registry, name: str, tag: str, *platforms: str) -> dict[str, Any]:
    """An index with an image for each of `platforms`, given as `os/architecture[/variant]`."""
    entries = []
    for platform in platforms:
        said = dict(zip(("os", "architecture", "variant"), platform.split("/"), strict=False))
        made = image(registry, name, "", f"{name}:{tag} {platform}".encode())
        entries.append({**made, "platform": said})
    return put(registry, name, {"mediaType": INDEX, "manifests": entries}, tag)
