"""Blobs out: one GET, which goes on where it was cut (RFC 9110, 14: Range).

Whoever takes the stream hashes all of it, so what a second answer adds is held to the same digest
as what the first one brought. A range is asked for with both its ends, since some registries read
no other form, and with If-Range where the first answer had a strong ETag: content that changed in
between then comes whole, and is refused for its digest rather than mixed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ocipack.errors import IntegrityError
from ocipack.oci.descriptor import Descriptor
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.faults import Silent, Transient
from ocipack.stores.http.patience import Trying
from ocipack.stores.registry.client import Repository

_OK, _PARTIAL = 200, 206
_NO_RANGE = frozenset({400, 405, 416, 501})
_STRONG = r'"[\x21\x23-\x7e]{0,256}"'


def small(at: Repository, target: Descriptor) -> bytes:
    """Read a blob whole; one that is cut is asked for again."""

    def once() -> bytes:
        return b"".join(_body(at.once("GET", f"blobs/{target.digest}", {_OK}), target))

    return at.client.patience.retry(once)


def stream(at: Repository, target: Descriptor) -> Iterator[bytes]:
    """Stream a blob. A cut answer is continued, as long as it gets on between the cuts.

    IntegrityError when it is said or turns out to have another length; what it is, the caller
    compares.
    """
    got, trying = 0, Trying(at.client.patience)
    answer = at.call("GET", f"blobs/{target.digest}", {_OK})
    while True:
        try:
            for piece in _body(answer, target, got):
                got += len(piece)
                yield piece
        except (Transient, Silent) as e:
            trying.again(e, got)
            answer = _resumed(at, target, answer, got)
        else:
            return


def _resumed(at: Repository, target: Descriptor, before: Answer, got: int) -> Answer:
    """Ask for what is missing after `got` bytes, or for everything where that is not possible."""
    tail = f"blobs/{target.digest}"
    if not got or before.is_gzipped:  # a range would be one of the coded bytes
        return at.call("GET", tail, {_OK})
    headers = {"Range": f"bytes={got}-{target.size - 1}", **_condition(before)}
    answer = at.call("GET", tail, {_OK, _PARTIAL, *_NO_RANGE}, headers=headers)
    partial = answer.status == _PARTIAL and _first(answer) == got and not answer.is_gzipped
    if partial or answer.status == _OK:
        return answer
    answer.drop()
    return at.call("GET", tail, {_OK})


def _condition(before: Answer) -> Mapping[str, str]:
    """Ask for a part of what we had only; a weak ETag is of no use (RFC 9110, 13.1.5)."""
    etag = before.header("ETag")
    return {"If-Range": etag} if re.fullmatch(_STRONG, etag) else {}


def _first(answer: Answer) -> int:
    """The place of the first byte in a partial answer; -1 if it is not said."""
    found = re.match(r"bytes (\d{1,19})-\d{1,19}/", answer.header("Content-Range"))
    return int(found[1]) if found else -1


def _body(answer: Answer, target: Descriptor, got: int = 0) -> Iterator[bytes]:
    """What an answer adds to the first `got` bytes; refused unread when its length is wrong.

    What is gzip by its header and has the length of the blob *is* the blob: storages note the
    coding of what they keep. Any other length of such an answer says nothing about it.
    """
    known = 0 if answer.status == _PARTIAL else got
    rest = target.size - got + known
    gunzipped = answer.is_gzipped and answer.length != rest
    if not gunzipped and answer.length is not None and answer.length != rest:
        answer.drop()
        raise IntegrityError(f"{answer.at.what}: {answer.length} bytes, expected {rest}")
    total = 0
    for chunk in answer.chunks(gunzipped=gunzipped):
        total += len(chunk)
        if total > rest:
            answer.drop()
            raise IntegrityError(f"{answer.at.what}: more than {rest} bytes")
        fresh = chunk[known:]  # an answer that begins anew repeats what we have
        known -= len(chunk) - len(fresh)
        if fresh:
            yield fresh
    if total < rest and not answer.is_delimited:
        raise Transient(f"{answer.at.what}: the connection was closed after {total} bytes")
