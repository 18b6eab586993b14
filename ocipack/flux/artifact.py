"""The artifact that Flux's OCIRepository reads, and that Argo CD can (fluxcd/pkg oci; RFC-0003).

One config that says nothing but the digest of the uncompressed tar, one layer, annotations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ocipack.errors import IntegrityError, Misuse, malformed
from ocipack.oci import jsontext
from ocipack.oci.descriptor import MANIFEST, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest

CONFIG = "application/vnd.cncf.flux.config.v1+json"
CONTENT = "application/vnd.cncf.flux.content.v1.tar+gzip"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"

LAYER_TYPES: Mapping[str, str] = {"flux": CONTENT, "oci": OCI_LAYER}
"""What `--layer-type` may say; Argo CD takes the OCI one."""

CREATED = "org.opencontainers.image.created"
SOURCE = "org.opencontainers.image.source"
REVISION = "org.opencontainers.image.revision"

CONFIG_LIMIT = 64 * 1024
"""Bytes of a config that we are ready to read."""

_CONFIGS = frozenset({CONFIG, "application/vnd.oci.image.config.v1+json"})
_NOTHING: Mapping[str, str] = MappingProxyType({})
_KEY = re.compile(r"[^\x00-\x20\x7f-\x9f]+")


def config(diff_id: Digest) -> bytes:
    """The config of an artifact: what Flux 2.9 writes, with the content digest filled in."""
    return jsontext.encode(
        {
            "architecture": "",
            "created": "0001-01-01T00:00:00Z",
            "os": "",
            "rootfs": {"type": "layers", "diff_ids": [str(diff_id)]},
            "config": {},
        }
    )


def build(
    config: Descriptor, layer: Descriptor, annotations: Mapping[str, str] = _NOTHING
) -> Manifest:
    """The manifest over `config` and `layer`, its members in the order in which Flux writes them.

    Misuse for an annotation key that is empty or holds blanks.
    """
    document: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config.to_dict(),
        "layers": [layer.to_dict()],
    }
    for key in annotations:
        if not _KEY.fullmatch(key):
            raise Misuse(f"not an annotation key: {key!r}")
    if annotations:
        document["annotations"] = dict(sorted(annotations.items()))
    return Manifest.build(document)


@dataclass(frozen=True, slots=True)
class Content:
    """The one layer of a found artifact, and the config that may know its content digest."""

    layer: Descriptor
    config: Descriptor | None


def content(manifest: Manifest) -> Content:
    """Find the tree in `manifest`.

    IntegrityError for an index, for several layers (Flux would take the first, others all of
    them), and for a layer of another kind: nothing of those is fetched.
    """
    name = f"manifest {manifest.descriptor.digest}"
    if manifest.is_index:
        raise IntegrityError(
            f"{name} is an index, and an artifact is a single manifest",
            hint="name the manifest of one platform by its digest",
        )
    if len(manifest.layers) != 1:
        raise IntegrityError(f"{name} has {len(manifest.layers)} layers, and an artifact has one")
    (layer,) = manifest.layers
    if layer.media_type not in LAYER_TYPES.values():
        raise IntegrityError(f"{name} holds {layer.media_type!r}, which is not a tree of files")
    known = manifest.config.media_type in _CONFIGS
    return Content(layer, manifest.config if known else None)


def diff_id(raw: bytes) -> Digest | None:
    """The content digest that a config promises; None if it promises none, as Flux 2.9 does."""
    with malformed("the artifact's config"):
        found = jsontext.decode(raw).get("rootfs", {}).get("diff_ids") or []
        if not found:
            return None
        (only,) = found
        return Digest.parse(only)
