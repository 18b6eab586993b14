"""What a registry lets us write, found out by writing, in a scratch repository.

No tag is ever written: a registry that does not delete, or calls tags immutable, would keep it.
Whether tags can move is therefore not found out here. What was written is deleted where the
registry deletes, and else belongs to no tag, which is what garbage collection is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ocipack.errors import IntegrityError, StoreError
from ocipack.oci.descriptor import MANIFEST, Descriptor
from ocipack.oci.manifest import Manifest
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.url import Url
from ocipack.stores.registry.client import PUSH, Client, Repository
from ocipack.stores.registry.pages import at_home
from ocipack.stores.registry.probe import Found, Outcome, attempt, refused

SCRATCH = "ocipack-check"
"""The repository below the one that was named, where probes are put; `-mount` beside it."""

_EMPTY = "application/vnd.oci.empty.v1+json"
_KIND = "application/vnd.ocipack.check"
_OCTETS = {"Content-Type": "application/octet-stream"}
_ACCEPTED = 202
_DIGITS, _LONGEST_PIECE = 8, 16 * 1024 * 1024
_MADE = frozenset({200, 201, 204})
_GONE = frozenset({200, 202, 204, 404})


@dataclass(slots=True)
class _Scratch:
    """What was put where."""

    at: Repository
    blobs: list[tuple[Repository, Descriptor]] = field(default_factory=list)
    manifests: list[Descriptor] = field(default_factory=list)


def writing(
    client: Client, repository: str, random: Callable[[int], bytes], *, api: bool
) -> Iterator[Found]:
    """Try every way of writing below `repository`; `api` says whether referrers can be listed.

    `random` makes content that is not there yet. What was written is cleaned up however it ends.
    """
    scratch = _Scratch(Repository(client, f"{repository}/{SCRATCH}", PUSH))
    other = Repository(client, f"{repository}/{SCRATCH}-mount", PUSH)

    def fresh(kind: str) -> bytes:
        return f"ocipack registry check, {kind} {random(16).hex()}\n".encode()

    try:
        first = attempt("upload", lambda: _upload(scratch, fresh("upload")), needed=True)
        yield first
        if first.outcome is Outcome.YES:
            yield attempt("single-post", lambda: _single(scratch, fresh("single POST")))
            yield attempt("chunked", lambda: _chunked(scratch, fresh("chunked")))
            yield attempt("mount", lambda: _mount(scratch, other))
            yield attempt("manifest", lambda: _manifest(scratch), needed=True)
            if scratch.manifests and api:
                yield attempt("subject", lambda: _subject(scratch))
    finally:
        cleaned = _clean(scratch)
    if cleaned is not None:
        yield cleaned


def _put(scratch: _Scratch, name: str, data: bytes, answer: Answer) -> Found:
    """Note that `data` is there if `answer` says so."""
    if answer.status not in _MADE:
        return refused(name, scratch.at, answer, needed=name == "upload")
    answer.finish()
    target = Descriptor.of("application/octet-stream", data)
    scratch.blobs.append((scratch.at, target))
    return Found(name, Outcome.YES, f"to {scratch.at.name}")


def _opened(at: Repository, answer: Answer) -> Url:
    answer.finish()
    named = answer.header("Location")
    if not named:
        raise StoreError(f"{answer.at.what}: opened an upload and did not say where")
    return at_home(at.client, answer.at.url.join(named))


def _upload(scratch: _Scratch, data: bytes) -> Found:
    """POST, then PUT with the whole: what every push does."""
    answer = scratch.at.once("POST", "blobs/uploads/", None)
    if answer.status != _ACCEPTED:
        return refused("upload", scratch.at, answer, needed=True)
    where = _opened(scratch.at, answer).plus("digest", _digest(data))
    done = scratch.at.once("PUT", where, None, headers=_OCTETS, body=data)
    return _put(scratch, "upload", data, done)


def _single(scratch: _Scratch, data: bytes) -> Found:
    """One POST with the whole, which a registry may turn into an upload that is only opened."""
    where = scratch.at.url("blobs/uploads/").plus("digest", _digest(data))
    answer = scratch.at.once("POST", where, None, headers=_OCTETS, body=data)
    if answer.status == _ACCEPTED:
        _cancel(scratch.at, answer)
        return Found("single-post", Outcome.NO, "it opens an upload instead")
    return _put(scratch, "single-post", data, answer)


def _chunked(scratch: _Scratch, data: bytes) -> Found:
    """POST, a PATCH for each half, PUT: what gets past a proxy that limits bodies."""
    answer = scratch.at.once("POST", "blobs/uploads/", None)
    if answer.status != _ACCEPTED:
        return refused("chunked", scratch.at, answer)
    said = answer.header("OCI-Chunk-Min-Length")
    least = int(said) if said.isascii() and said.isdigit() and len(said) <= _DIGITS else 0
    half, begin = max(len(data) // 2, min(least, _LONGEST_PIECE)), 0
    data += b"." * half  # so that the first piece is long enough for whoever asks for more
    for piece in (data[:half], data[half:]):
        span = {"Content-Range": f"{begin}-{begin + len(piece) - 1}"}
        where = _opened(scratch.at, answer)
        answer = scratch.at.once("PATCH", where, None, headers=_OCTETS | span, body=piece)
        if answer.status not in (_ACCEPTED, *_MADE):
            return refused("chunked", scratch.at, answer)
        begin += len(piece)
    where = _opened(scratch.at, answer).plus("digest", _digest(data))
    return _put(scratch, "chunked", data, scratch.at.once("PUT", where, None, body=b""))


def _mount(scratch: _Scratch, other: Repository) -> Found:
    _, target = scratch.blobs[0]
    where = other.url("blobs/uploads/").plus("mount", str(target.digest))
    answer = other.once("POST", where.plus("from", scratch.at.name), None, also=scratch.at.name)
    if answer.status in _MADE:
        answer.finish()
        scratch.blobs.append((other, target))
        return Found("mount", Outcome.YES, "a blob of another repository is not sent again")
    if answer.status == _ACCEPTED:
        _cancel(other, answer)
        return Found("mount", Outcome.NO, "it opens an upload instead: every blob is sent")
    return refused("mount", other, answer)


def _manifest(scratch: _Scratch) -> Found:
    manifest = _build(scratch.blobs[0][1])
    answer = _put_manifest(scratch, manifest)
    if answer.status not in (*_MADE, _ACCEPTED):
        return refused("manifest", scratch.at, answer, needed=True)
    answer.finish()
    said = "digest said" if answer.header("Docker-Content-Digest") else "digest not said"
    return Found("manifest", Outcome.YES, f"by digest, without a tag; {said}")


def _subject(scratch: _Scratch) -> Found:
    """Whether what refers to another manifest is listed there, as a signature must be."""
    subject = scratch.manifests[0]
    answer = _put_manifest(scratch, _build(scratch.blobs[0][1], subject))
    if answer.status not in (*_MADE, _ACCEPTED):
        return refused("subject", scratch.at, answer)
    answer.finish()
    said = "OCI-Subject said" if answer.header("OCI-Subject") else "OCI-Subject not said"
    attached = scratch.manifests[-1].digest
    listed = scratch.at.read(f"referrers/{subject.digest}", {200}, 1 << 20, elsewhere=False)[1]
    if str(attached).encode() in listed:
        return Found("subject", Outcome.YES, f"listed among the referrers; {said}")
    return Found("subject", Outcome.NO, f"not listed among the referrers; {said}")


def _build(blob: Descriptor, subject: Descriptor | None = None) -> Manifest:
    more = {"subject": subject.plain.to_dict()} if subject is not None else {}
    return Manifest.build(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": _KIND,
            "config": Descriptor(_EMPTY, blob.digest, blob.size).to_dict(),
            "layers": [blob.to_dict()],
            **more,
        }
    )


def _put_manifest(scratch: _Scratch, manifest: Manifest) -> Answer:
    target = manifest.descriptor
    kind = {"Content-Type": MANIFEST}
    answer = scratch.at.once(
        "PUT", f"manifests/{target.digest}", None, headers=kind, body=manifest.raw
    )
    if answer.status in (*_MADE, _ACCEPTED):
        scratch.manifests.append(target)
    return answer


def _digest(data: bytes) -> str:
    return str(Descriptor.of("", data).digest)


def _cancel(at: Repository, answer: Answer) -> None:
    """Give up an upload that was opened; a registry forgets it by itself after a while."""
    try:
        at.once("DELETE", _opened(at, answer), None).finish()
    except StoreError:
        return


def _clean(scratch: _Scratch) -> Found | None:
    """Delete what was written, the newest first; what that says about deleting, if anything."""
    said, left = "", 0
    for target in reversed(scratch.manifests):
        try:
            answer = scratch.at.once("DELETE", f"manifests/{target.digest}", None)
            gone = answer.status in _GONE
            said = said if gone else scratch.at.refused(answer).said
            answer.finish()
        except (StoreError, IntegrityError) as e:
            gone, said = False, str(e)
        left += not gone
    blobs = sum(_delete_blob(at, target) for at, target in scratch.blobs)
    if not scratch.manifests:
        return None
    rest = "" if blobs == len(scratch.blobs) else ", the rest is left to it to collect"
    if left:
        detail = f"{said}; {left} manifests without a tag are left in {scratch.at.name}"
        return Found("delete", Outcome.NO, detail)
    return Found(
        "delete", Outcome.YES, f"manifests; {blobs} of {len(scratch.blobs)} blobs too{rest}"
    )


def _delete_blob(at: Repository, target: Descriptor) -> bool:
    try:
        answer = at.once("DELETE", f"blobs/{target.digest}", None)
        answer.finish()
    except (StoreError, IntegrityError):
        return False
    return answer.status in _GONE
