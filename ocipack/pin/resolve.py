"""Asking for each reference once, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from ocipack.errors import IntegrityError, Misuse, NotFound, OcipackError
from ocipack.lock import Attached, Entry, Platform
from ocipack.oci import store as stores
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import DIGEST_TAGS
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source

JOBS = 16
"""References asked for at once, unless told otherwise: few go to the same registry."""

ATTACHED = 1_000
"""Things attached to one image that a lock records; more are an error."""

T = TypeVar("T")
Open = Callable[[Reference], Source]
"""Opens the repository of a reference for reading."""


def each(
    references: Iterable[Reference], ask: Callable[[Reference], T], *, jobs: int = JOBS
) -> dict[Reference, T | OcipackError]:
    """What `ask` gives for each of `references`, each asked once; an error is an answer, too."""
    unique = sorted(set(references), key=str)

    def one(reference: Reference) -> T | OcipackError:
        try:
            return ask(reference)
        except OcipackError as e:
            return e

    with ThreadPoolExecutor(max(1, min(jobs, len(unique)))) as pool:
        return dict(zip(unique, pool.map(one, unique), strict=True))


def resolve(source: Source, reference: Reference) -> Descriptor:
    """The index that `reference` names in `source`, or the manifest where there is no index.

    IntegrityError if the registry names something that is neither.
    """
    found = source.resolve(reference.name)
    if not found.is_manifest:
        raise IntegrityError(f"{reference}: {found.media_type!r} is not an image")
    return found


def record(source: Source, reference: Reference, kind: str) -> Entry:
    """Everything that a lock says of `reference` but where it is named.

    Reads the index, and looks for what is attached to it. NotFound if it is not there.
    """
    found = resolve(source, reference)
    manifest = stores.manifest(source, found)
    return Entry(
        replace(reference, digest=None),
        found,
        kind,
        "" if manifest.is_index else _type(manifest, kind),
        tuple(_platforms(manifest)),
        tuple(attached(source, found)),
    )


def _type(manifest: Manifest, kind: str) -> str:
    """What an artifact is; an image's config type says nothing."""
    return manifest.artifact_type if kind == "artifact" else ""


def _platforms(manifest: Manifest) -> list[Platform]:
    raw = manifest.document.get("manifests") if manifest.is_index else ()
    found = []
    for node, child in zip(raw or (), manifest.manifests, strict=True):
        platform = node.get("platform")
        said = platform if isinstance(platform, dict) else {}
        words = [said.get(key) for key in ("os", "architecture", "variant")]
        os, arch, variant = (word if isinstance(word, str) else "" for word in words)
        found.append(Platform(os, arch, variant, child.digest, child.size))
    return found


def attached(source: Source, target: Descriptor) -> list[Attached]:
    """What is attached to `target`: by tags as cosign writes them, and as referrers.

    Hearsay: nothing here is verified. IntegrityError if there is too much of it.
    """
    found = []
    for suffix in DIGEST_TAGS:
        name = target.digest.tag + suffix
        try:
            found.append(Attached("tag", name, "", source.resolve(name).digest))
        except NotFound:
            continue
    for referrer in source.referrers(target):
        found.append(Attached("referrer", "", referrer.artifact_type, referrer.digest))
        if len(found) > ATTACHED:
            raise IntegrityError(f"{target.digest}: more than {ATTACHED} things are attached")
    return found


def answered(entries: Iterable[Entry], reference: Reference) -> Descriptor:
    """What a lock's `entries` for `reference` say; NotFound for none, Misuse for several."""
    found = {entry.content.digest: entry.content for entry in entries}
    if not found:
        raise NotFound(f"{reference}: not in the lock", hint="run once with the network")
    if len(found) > 1:
        digests = ", ".join(str(digest) for digest in sorted(found))
        raise Misuse(f"{reference}: the lock has several digests for it: {digests}")
    return next(iter(found.values()))
