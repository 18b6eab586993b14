"""Referrers: the API, or the fallback tag where there is none (distribution-spec 1.1).

The API is what answers 200 with exactly the media type of an index; anything else that is not a
failure means that there is none, for reading and for writing alike (Go's clients differ between
the two and lose signatures). Where the API is, the fallback tag is not read: the specification has
registries take it over, and a second request for every subject would buy nothing.

A registry's OCI-Subject header alone is not believed (some have sent it without listing
anything): the API must have answered once in this run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ocipack.errors import IntegrityError, Misuse, StoreError, malformed
from ocipack.oci import jsontext
from ocipack.oci.descriptor import INDEX, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.store import MANIFEST_LIMIT
from ocipack.stores.http.answer import Answer
from ocipack.stores.registry import manifests, pages
from ocipack.stores.registry.client import Repository

ROUNDS = 8
"""Attempts to get an entry into a fallback tag that others write too."""

_ABSENT: Final = frozenset({303, 301, 302, 307, 308, 400, 404, 405, 406, 501})
_LONGEST_PAUSE = 2.0
_IMMUTABLE_HINT = (
    "the registry has no referrers API, so signatures are listed under that tag: exempt tags that "
    "begin with sha256- from being immutable"
)
_OK = 200


def fallback_tag(digest: Digest) -> str:
    """Name the tag that lists referrers where there is no API ("Referrers Tag Schema")."""
    return f"{digest.algorithm[:32]}-{digest.hex[:64]}"


def listing(at: Repository, subject: Digest) -> Iterator[Descriptor]:
    """List what refers to `subject`, each once, lazily; junk entries are left out."""
    seen = {subject}
    for document in _documents(at, subject):
        for raw in document.get("manifests") or ():
            entry = _entry(raw)
            if entry is not None and entry.is_manifest and entry.digest not in seen:
                seen.add(entry.digest)
                yield entry


def _documents(at: Repository, subject: Digest) -> Iterator[dict[str, Any]]:
    if at.client.features.referrers is not False:
        said = _ask(at, subject)
        if said.supported:
            for page in pages.following(at, said.answer, said.raw, accept=INDEX):
                yield _document(page, said.answer.at.what)
            return
    found = _read_tag(at, subject)
    if found is not None:
        yield found


@dataclass(frozen=True, slots=True)
class _Said:
    """What the API answered: `supported` with its first page, or not."""

    answer: Answer
    raw: bytes
    supported: bool


def _ask(at: Repository, subject: Digest) -> _Said:
    """Ask the API, and remember whether there is one.

    That a repository is not there yet says nothing about the API.
    """
    ok = {_OK, *_ABSENT}

    def once() -> _Said:
        answer = at.once(
            "GET", f"referrers/{subject}", ok, headers={"Accept": INDEX}, elsewhere=False
        )
        if answer.status == _OK and answer.header("Content-Type").strip() == INDEX:
            at.client.features.referrers = True
            return _Said(answer, answer.read(pages.LISTING_LIMIT), supported=True)
        refusal = at.refused(answer)
        if at.client.features.referrers is None and not refusal.is_new_repository:
            at.client.features.referrers = False
        return _Said(answer, b"", supported=False)

    return at.client.patience.retry(once)


def _read_tag(at: Repository, subject: Digest) -> dict[str, Any] | None:
    """Read the fallback tag's index; None if there is none.

    Some registries take the tag for the subject's digest and answer with the subject itself, and
    copiers have left it there: that lists nothing.
    """
    tail = f"manifests/{fallback_tag(subject)}"
    answer, raw = at.read(tail, {_OK, 404}, MANIFEST_LIMIT, accept=INDEX)
    if answer.status != _OK:
        answer.finish()
        return None
    hasher = subject.hasher()
    hasher.update(raw)
    if hasher.hexdigest() == subject.hex:
        return None
    document = _document(raw, answer.at.what)
    if answer.media_type != INDEX and document.get("mediaType") != INDEX:
        raise IntegrityError(
            f"{answer.at.what}: the tag that lists referrers holds something else "
            f"({answer.media_type[:80] or 'no media type'})",
            hint="whoever wrote that tag should remove it; signatures are listed there",
        )
    return document


def _document(raw: bytes, what: str) -> dict[str, Any]:
    with malformed(what):
        document = jsontext.decode(raw)
    manifests = document.get("manifests") if isinstance(document, dict) else 0
    if not isinstance(document, dict) or not isinstance(manifests, list | None):
        raise IntegrityError(f"{what}: not a listing of referrers")
    return document


def _entry(raw: object) -> Descriptor | None:
    """Read one entry; None for junk, which must not veto what stands beside it."""
    try:
        return Descriptor.from_dict(raw)
    except (Misuse, KeyError):
        return None


def announce(at: Repository, subject: Digest, entry: Descriptor, said: str) -> None:
    """See to it that `entry`, just written, is listed; `said` is the OCI-Subject header.

    1. The header names the subject, and the API has answered in this run: nothing to ask.
    2. The API lists it.
    3. Else the fallback tag must, and is read again after it was written.
    """
    features = at.client.features
    if features.referrers and said == str(subject):  # (1)
        return
    if features.referrers is not False:
        api = _ask(at, subject)
        if api.supported and (said == str(subject) or _lists(at, api, entry)):  # (2)
            return
    with at.client.busy(f"{at.name}:{fallback_tag(subject)}"):
        _add(at, subject, entry)  # (3)


def _lists(at: Repository, api: _Said, entry: Descriptor) -> bool:
    for page in pages.following(at, api.answer, api.raw, accept=INDEX):
        document = _document(page, api.answer.at.what)
        if any(_digest(other) == str(entry.digest) for other in document.get("manifests") or ()):
            return True
    return False


def _digest(raw: object) -> str:
    found = raw.get("digest") if isinstance(raw, dict) else None
    return found if isinstance(found, str) else ""


def _add(at: Repository, subject: Digest, entry: Descriptor) -> None:
    """Read, add, write and read again until the entry stays.

    Nothing lets us write only if the tag is still what we read, so a writer who read before us
    and writes after us takes our entry away. Reading again after about twice the time that such a
    writer needs notices that; what we saw of others' entries is put back with ours.
    """
    ours = {str(entry.digest): entry.to_dict()}
    clock, sleep, random = (
        at.client.patience.monotonic,
        at.client.patience.sleep,
        at.client.patience.random,
    )
    for _ in range(ROUNDS):
        began = clock()
        found = _read_tag(at, subject) or {}
        entries = {_digest(raw): raw for raw in found.get("manifests") or () if _digest(raw)}
        if ours.keys() <= entries.keys():
            return
        ours = {**entries, **ours}
        _write_tag(at, subject, found, [ours[key] for key in sorted(ours)])
        sleep(min((clock() - began) * (2 + random()), _LONGEST_PAUSE))
    raise StoreError(
        f"{at.shown}: {entry.digest} does not stay in the list of referrers of {subject} "
        f"(tag {fallback_tag(subject)})",
        hint="the registry has no referrers API, and others write that tag at the same time or "
        "the registry does not let it move",
    )


def _write_tag(
    at: Repository, subject: Digest, found: dict[str, Any], entries: list[dict[str, Any]]
) -> None:
    rest = {k: v for k, v in found.items() if k not in ("schemaVersion", "mediaType", "manifests")}
    document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries, **rest}
    raw = jsontext.encode(document)
    if len(raw) > MANIFEST_LIMIT:
        raise StoreError(f"{at.shown}: the list of referrers of {subject} is full")
    manifests.put(at, fallback_tag(subject), Manifest(raw, INDEX), hint=_IMMUTABLE_HINT)
