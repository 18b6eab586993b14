"""Names inside an OCI image layout (OCI image-spec, image-layout.md; annotations.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocipack.oci.digest import Digest

VERSION = b'{"imageLayoutVersion":"1.0.0"}'
"""The content of `oci-layout`."""

LAYOUT_FILE, INDEX_FILE = "oci-layout", "index.json"

REF_NAME = "org.opencontainers.image.ref.name"
"""The annotation of an entry of index.json that gives it a name."""

CONTAINERD_NAME = "io.containerd.image.name"
"""The annotation from which containerd and docker take an image's full name when they import."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a layout: its `name`, and what its content must be; `size` is in bytes."""

    name: str
    digest: Digest
    size: int


def blob_path(digest: Digest) -> str:
    """Where the content of `digest` lies."""
    return f"blobs/{digest.algorithm}/{digest.hex}"
