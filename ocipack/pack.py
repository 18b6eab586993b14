"""Pack a tree: the one place where files become an artifact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from ocipack.errors import Misuse, Rejected
from ocipack.flux import artifact
from ocipack.oci.artifact import Artifact, Blob
from ocipack.oci.descriptor import Descriptor
from ocipack.tree.archive import DEFLATE, Archive
from ocipack.tree.limits import LIMITS, Limits
from ocipack.tree.tree import Tree

Spool = Callable[[Iterable[bytes]], Blob]
"""Takes a stream to its end and returns the same bytes, ready to be opened again and again."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


def pack(
    tree: Tree,
    *,
    spool: Spool,
    annotations: Mapping[str, str] | Callable[[], Mapping[str, str]] = _NOTHING,
    compression: str = DEFLATE,
    layer_type: str = "flux",
    limits: Limits = LIMITS,
) -> Artifact:
    """Turn `tree` into an artifact of one layer.

    The tree is read once, so what was hashed is what will be sent; what `spool` keeps is checked
    against that each time it is read. `annotations` may also be asked for, once the content has
    been taken: finding out what to say of it takes time as well. `compression` is `deflate` or
    `stored`, `layer_type` `flux` or `oci` (for Argo CD).

    Rejected for a tree without a file (it would delete everything it is applied over) or past
    `limits`; Misuse for an unknown compression or layer type and for a bad annotation.
    """
    if layer_type not in artifact.LAYER_TYPES:
        known = " or ".join(artifact.LAYER_TYPES)
        raise Misuse(f"no such layer type: {layer_type!r}", hint=f"use {known}")
    if not tree.files:
        raise Rejected(
            "there is no file to pack",
            hint="an empty artifact would prune everything that an earlier one brought",
        )
    archive = Archive(tree, compression=compression, limits=limits)
    blob = spool(archive)
    sums = archive.sums
    layer = Descriptor(artifact.LAYER_TYPES[layer_type], sums.digest, sums.size)
    raw = artifact.config(sums.diff_id)
    config = Descriptor.of(artifact.CONFIG, raw)
    said = annotations() if callable(annotations) else annotations
    manifest = artifact.build(config, layer, said)
    return Artifact(manifest, MappingProxyType({config.digest: raw, layer.digest: blob}))
