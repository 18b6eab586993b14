"""Blobs in: POST and PUT, or a mount (distribution-spec, "Pushing Blobs").

A blob that the registry already holds in another repository is mounted. When nothing is known
about the repository, the POST asks to mount the blob from the repository itself: that finds what
an interrupted run left behind and opens the upload otherwise, with one request instead of a HEAD
and a POST.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from ocipack.errors import IntegrityError, Misuse, StoreError
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.store import Source
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.faults import Transient
from ocipack.stores.http.url import Url
from ocipack.stores.registry.client import Repository
from ocipack.stores.registry.pages import at_home

CREATED, ACCEPTED = 201, 202
_DONE = frozenset({200, CREATED, 204})
_LOST = 404
"""The registry has forgotten the upload that it opened."""


def push(at: Repository, target: Descriptor, source: Source, *, origin: str = "") -> None:
    """Upload `target`, or mount it from repository `origin` of the same registry.

    What can succeed is tried again from the start, which asks `source` again.
    """

    def once() -> None:
        location = _start(at, target, origin)
        if location is not None:
            _send(at, target, source, location)

    at.client.patience.retry(once)
    at.client.placed(target.digest, at.name)


def _start(at: Repository, target: Descriptor, origin: str) -> Url | None:
    """Open an upload; None when the blob was mounted instead."""
    if origin:
        url = at.url("blobs/uploads/").plus("mount", str(target.digest)).plus("from", origin)
        also = origin if origin != at.name else ""
        answer = at.once("POST", url, None, also=also)
        if answer.status == CREATED:
            answer.finish()
            return None
        if answer.status == ACCEPTED:
            return _location(at, answer)
        answer.finish()  # refused in any way: a mount is only a shortcut
        if origin == at.name:
            at.client.features.self_mount = False
    return _location(at, at.once("POST", "blobs/uploads/", {ACCEPTED}))


def _location(at: Repository, answer: Answer) -> Url:
    named = answer.header("Location")
    answer.finish()
    if not named:
        raise StoreError(f"{answer.at.what}: opened an upload and did not say where")
    return at_home(at.client, answer.at.url.join(named))


def _send(at: Repository, target: Descriptor, source: Source, location: Url) -> None:
    answer = at.once(
        "PUT",
        location.plus("digest", str(target.digest)),
        {*_DONE, _LOST},
        headers={"Content-Type": "application/octet-stream"},
        body=lambda: _opened(target, source),
        size=target.size,
    )
    if answer.status == _LOST:  # a restart, or another instance behind the same name
        raise Transient(f"{answer.at.what}: {at.refused(answer).said}")
    check_digest(answer, target.digest)
    answer.finish()


def _opened(target: Descriptor, source: Source) -> Iterable[bytes]:
    """Open the content, and have its first piece, before anything of the request is sent.

    A source that fails at once costs no upload, and one that is the same server is not asked while
    that waits for our body.
    """
    chunks = target.check(source.fetch(target))
    return chain([next(chunks, b"")], chunks)


def check_digest(answer: Answer, digest: Digest) -> None:
    """Compare what the registry says it holds; IntegrityError if it is something else.

    A missing header is common, and one of another algorithm says nothing.
    """
    said = answer.header("Docker-Content-Digest")
    if not said:
        return
    try:
        other = Digest.parse(said)
    except Misuse:
        answer.drop()
        raise IntegrityError(f"{answer.at.what}: Docker-Content-Digest is not a digest") from None
    if other.algorithm == digest.algorithm and other != digest:
        answer.drop()
        raise IntegrityError(f"{answer.at.what}: the registry calls {digest} {other}")
