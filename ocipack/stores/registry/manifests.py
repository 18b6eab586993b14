"""Manifests over the wire: read and hashed, written by digest or under a tag."""

from __future__ import annotations

import threading
from collections import OrderedDict

from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected, StoreError
from ocipack.oci import jsontext
from ocipack.oci.descriptor import (
    DOCKER_INDEX,
    DOCKER_MANIFEST,
    INDEX,
    INDEXES,
    MANIFEST,
    MANIFESTS,
    Descriptor,
)
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.store import MANIFEST_LIMIT
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.faults import Transient
from ocipack.stores.http.url import printable
from ocipack.stores.registry.client import Repository
from ocipack.stores.registry.refusal import Refusal
from ocipack.stores.registry.upload import check_digest

ACCEPT = f"{MANIFEST}, {INDEX}, {DOCKER_MANIFEST}, {DOCKER_INDEX}"

IMMUTABLE_HINT = (
    "its tags are immutable: use a new tag, or exempt this one; for signatures, --format bundle "
    "needs no tag of its own"
)

_OK, _NOT_FOUND = 200, 404
_WRITTEN = frozenset({200, 201, 202})
NO_HEAD = frozenset({400, 403, 405, 501})
"""What means that this cannot be asked in this way, rather than that there is nothing."""
_SCHEMA_1 = frozenset(
    f"application/vnd.docker.distribution.manifest.v1+{form}" for form in ("json", "prettyjws")
)
_MEMORY = 32 * 1024 * 1024

_LACKING = frozenset({"MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN"})
"""The registry has not what the manifest names, whatever it said before."""
_HALF_WRITTEN = (400, "DIGEST_INVALID")
"""distribution on a file system says so while another client pushes the same small blob: it reads
that blob's link half written. We send what we hashed, so asking again is all there is to do."""


class Missing(NotFound):
    """No such manifest; `refusal` tells whether the repository is there at all."""

    def __init__(self, message: str, refusal: Refusal, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.refusal = refusal


class Memo:
    """Manifests seen or written in this run, by digest: bounded, safe for threads."""

    def __init__(self, limit: int = _MEMORY) -> None:
        self._limit = limit
        self._size = 0
        self._lock = threading.Lock()
        self._found: OrderedDict[Digest, Manifest] = OrderedDict()

    def get(self, digest: Digest) -> Manifest | None:
        """Look `digest` up."""
        with self._lock:
            found = self._found.get(digest)
            if found is not None:
                self._found.move_to_end(digest)
            return found

    def add(self, digest: Digest, manifest: Manifest) -> None:
        """Keep `manifest`, dropping what was not used for longest."""
        with self._lock:
            if digest in self._found or len(manifest.raw) > self._limit:
                return
            self._found[digest] = manifest
            self._size += len(manifest.raw)
            while self._size > self._limit:
                self._size -= len(self._found.popitem(last=False)[1].raw)


def head(at: Repository, name: str) -> Descriptor | None:
    """Ask what `name` is without reading it; None if the answer does not say it all.

    NotFound if there is nothing. What a HEAD says is a claim: the bytes are hashed when they are
    fetched by the digest that it named.
    """
    answer = at.call(
        "HEAD",
        f"manifests/{name}",
        {_OK, _NOT_FOUND, *NO_HEAD},
        headers={"Accept": ACCEPT},
    )
    answer.finish()
    if answer.status == _NOT_FOUND:
        raise NotFound(f"{at.shown} has no {name!r}", hint=_absent(at, name))
    said, size = answer.header("Docker-Content-Digest"), answer.length
    known = answer.media_type in MANIFESTS or answer.media_type in INDEXES
    if answer.status != _OK or not said or not size or not known:
        return None
    try:
        return Descriptor(answer.media_type, Digest.parse(said), size)
    except Misuse:
        return None


def _absent(at: Repository, name: str) -> str:
    """What to do about a name that is not there; a 404 need not say whether the repository is."""
    if ":" in name:
        return ""
    lead = "no tag means latest; " if name == "latest" else ""
    return f"{lead}`ocipack list oci://{at.shown}` shows its tags, if there is such a repository"


def get(at: Repository, name: str) -> tuple[Digest, Manifest]:
    """Read the manifest `name` (a tag or digest), hashed; at most MANIFEST_LIMIT bytes.

    1. The bytes have the digest that was asked for.
    2. What the registry calls their digest is theirs.
    """
    answer, raw = at.read(f"manifests/{name}", {_OK, _NOT_FOUND}, MANIFEST_LIMIT, accept=ACCEPT)
    if answer.status == _NOT_FOUND:
        refusal = at.refused(answer)
        said = f"{at.shown} has no {name!r} ({refusal.said})"
        raise Missing(said, refusal, hint=refusal.hint or _absent(at, name))
    asked = Digest.parse(name) if ":" in name else None
    hasher = asked.hasher() if asked is not None else Digest.of(b"").hasher()
    hasher.update(raw)
    algorithm = asked.algorithm if asked is not None else "sha256"
    digest = Digest(algorithm, hasher.hexdigest())
    if asked is not None and digest != asked:  # (1)
        raise IntegrityError(f"{answer.at.what}: content has the digest {digest}")
    check_digest(answer, digest)  # (2)
    return digest, Manifest(raw, _media_type(answer, raw))


def _media_type(answer: Answer, raw: bytes) -> str:
    """What kind of manifest this is: as the header says, or the document where that is generic."""
    said = answer.media_type
    if said in MANIFESTS or said in INDEXES:
        return said
    try:
        document = jsontext.decode(raw)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and document.get("schemaVersion") == 2:  # noqa: PLR2004 - the format
        named = document.get("mediaType")
        if isinstance(named, str) and named in MANIFESTS | INDEXES:
            return named
        if named is None:
            return INDEX if "manifests" in document else MANIFEST
    if said in _SCHEMA_1:
        raise StoreError(
            f"{answer.at.what}: the image is in Docker's first format (schema 1), whose digest "
            "changes with its history; it is not read",
            hint="build it again, or push it with a tool that writes schema 2",
        )
    raise StoreError(
        f"{answer.at.what}: answered with {printable(said, 80) or 'no media type'}, "
        "which is not a manifest or index",
        hint="is this a registry? A proxy or login page may stand before it",
    )


def put(at: Repository, name: str, manifest: Manifest, *, hint: str = IMMUTABLE_HINT) -> str:
    """Write a manifest under `name`, a tag or its digest; the OCI-Subject header that came back.

    Rejected, with `hint`, if the registry does not let that tag move.
    """

    def once() -> str:
        answer = at.once(
            "PUT",
            f"manifests/{name}",
            None,
            headers={"Content-Type": manifest.media_type},
            body=manifest.raw,
        )
        if answer.status in _WRITTEN:
            written = Digest.parse(name) if ":" in name else manifest.descriptor.digest
            check_digest(answer, written)
            answer.finish()
            return answer.header("OCI-Subject")
        refusal = at.refused(answer)
        if ":" not in name and refusal.is_immutable:
            raise Rejected(
                f"{at.shown}: the registry does not let the tag {name!r} move ({refusal.said})",
                hint=hint,
            )
        if refusal.code in _LACKING:
            raise NotFound(f"{refusal.what}: {refusal.said}")
        if (refusal.status, refusal.code) == _HALF_WRITTEN:
            raise Transient(f"{refusal.what}: {refusal.said}")
        raise refusal.error(at.log_in().tried)

    return at.client.patience.retry(once)
