"""Referrers: the API, or the fallback tag where there is none (distribution-spec 1.1).

The API is what answers 200 with exactly the media type of an index; anything else that is not a
failure means that there is none, for reading and for writing alike (Go's clients differ between
the two and lose signatures). Where the API is, the fallback tag is not read: the specification has
registries take it over, and a second request for every subject would buy nothing.

A registry's OCI-Subject header alone is not believed (some have sent it without listing
anything): the API must have answered once in this run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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

LATE = 4
"""Times that a listing is asked for what was just written; some fill theirs in the background."""

_PAUSE = 0.25
_ABSENT: Final = frozenset({303, 301, 302, 307, 308, 400, 404, 405, 406, 501})
_LONGEST_PAUSE = 2.0
_IMMUTABLE_HINT = (
    "the registry has no referrers API, so signatures are listed under that tag: exempt tags that "
    "begin with sha256- from being immutable"
)
_OK = 200


def is_fallback_tag(name: str) -> bool:
    """Whether `name` is one that lists referrers."""
    return re.fullmatch(r"sha(256|512)-[0-9a-f]{64}", name) is not None


def listing(
    at: Repository, subject: Digest, *, tags: frozenset[str] | None = None
) -> Iterator[Descriptor]:
    """List what refers to `subject`, each once, lazily; junk entries are left out.

    `tags`, if given, are all the tags that there can be of those that list referrers.
    """
    seen = {subject}
    for document in _documents(at, subject, tags):
        for raw in document.get("manifests") or ():
            entry = _entry(raw)
            if entry is not None and entry.is_manifest and entry.digest not in seen:
                seen.add(entry.digest)
                yield entry


def _documents(
    at: Repository, subject: Digest, tags: frozenset[str] | None
) -> Iterator[dict[str, Any]]:
    said = _asked(at, subject)
    if said is not None and said.supported:
        for page in pages.following(at, said.answer, said.raw, accept=INDEX):
            yield _document(page, said.answer.at.what)
        return
    found = _read_tag(at, subject) if tags is None or subject.fallback_tag in tags else None
    if found is not None:
        yield found


def _asked(at: Repository, subject: Digest) -> _Said | None:
    """Ask the API unless there is none; while that is not known, one thread finds out."""
    features = at.client.features
    if features.referrers is None:
        with at.client.busy("whether there is a referrers API"):
            if features.referrers is None:
                return _ask(at, subject)
    return _ask(at, subject) if features.referrers is not False else None


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
    tail = f"manifests/{subject.fallback_tag}"
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
    api = _asked(at, subject)
    known = api is not None and api.supported and said == str(subject)
    if known or entry.digest in _listed(at, api):  # (2)
        return
    _add(at, subject, [entry])  # (3)


def attach(at: Repository, subject: Digest, entries: Sequence[Descriptor], *, new: bool) -> None:
    """See to it that `entries`, just written, are listed, with few requests.

    The API must list them, at once or a little later; without one the fallback tag does, which is
    not read before it is written where it is `new`: nobody can have written it.
    """
    missing = list(entries)
    for turn in range(LATE):
        if turn:
            at.client.patience.sleep(_PAUSE * 2**turn)
        api = _asked(at, subject)
        if api is None or not api.supported:
            _add(at, subject, missing, new=new)
            return
        listed = _listed(at, api)
        missing = [entry for entry in missing if entry.digest not in listed]
        if not missing:
            return
    raise StoreError(
        f"{at.shown}: {missing[0].digest} was taken, and is not in the list of referrers of "
        f"{subject}",
        hint="the registry has a referrers API that does not list what it should: signatures "
        "would not be found there",
    )


def _listed(at: Repository, api: _Said | None) -> set[Digest]:
    """What the API lists; nothing if there is none."""
    found: set[Digest] = set()
    if api is None or not api.supported:
        return found
    for page in pages.following(at, api.answer, api.raw, accept=INDEX):
        document = _document(page, api.answer.at.what)
        entries = map(_entry, document.get("manifests") or ())
        found.update(entry.digest for entry in entries if entry is not None)
    return found


def _digest(raw: object) -> str:
    found = raw.get("digest") if isinstance(raw, dict) else None
    return found if isinstance(found, str) else ""


def _add(
    at: Repository, subject: Digest, entries: Sequence[Descriptor], *, new: bool = False
) -> None:
    """Read, add, write and read again until the entries stay; one thread at a time.

    Nothing lets us write only if the tag is still what we read, so a writer who read before us
    and writes after us takes our entries away. Reading again after about twice the time that such
    a writer needs notices that; what we saw of others' entries is put back with ours. In a `new`
    tag there is nothing to read first, nor a writer to wait for.
    """
    ours = {str(entry.digest): entry.to_dict() for entry in entries}
    patience = at.client.patience
    with at.client.busy(f"{at.name}:{subject.fallback_tag}"):
        for turn in range(ROUNDS):
            began, first = patience.monotonic(), new and not turn
            found = {} if first else _read_tag(at, subject) or {}
            there = {_digest(raw): raw for raw in found.get("manifests") or () if _digest(raw)}
            if ours.keys() <= there.keys():
                return
            ours = {**there, **ours}
            _write_tag(at, subject, found, [ours[key] for key in sorted(ours)])
            if not first:
                took = patience.monotonic() - began
                patience.sleep(min(took * (2 + patience.random()), _LONGEST_PAUSE))
    raise StoreError(
        f"{at.shown}: {entries[0].digest} does not stay in the list of referrers of {subject} "
        f"(tag {subject.fallback_tag})",
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
    manifests.put(at, subject.fallback_tag, Manifest(raw, INDEX), hint=_IMMUTABLE_HINT)
