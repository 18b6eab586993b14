"""One repository of a registry as a Store."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import EllipsisType

from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected, StoreError, malformed
from ocipack.oci import jsontext
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import TAG
from ocipack.oci.store import MANIFEST_LIMIT, Source, Watched
from ocipack.stores.registry import download, manifests, pages, referrers, upload
from ocipack.stores.registry.ahead import WORTH, ahead
from ocipack.stores.registry.client import Repository

_SMALL = 1024 * 1024
"""Blobs up to this many bytes are read whole, so that a cut one is asked for again."""

_TAGS = 1_000_000
_APPENDED = r"sha(256|512)-[0-9a-f]+\.[a-z]+"
_LONGEST_PAUSE = 2.0
_MISSES = 3
_OK, _NOT_FOUND = 200, 404


class RegistryStore:
    """A repository: `Store` and `Listing`; safe for threads, and makes few requests.

    With `prefetch` a name is resolved by reading its manifest, which fetching then has at hand:
    verification and signing read every manifest they resolve. Without it, by HEAD: right where
    most names turn out to need nothing (and some registries count reads of manifests).

    A repository is new when the registry says that it does not exist, and taken to be new when
    the first name asked for is not there. In a new one `exists` knows without asking, and `push`
    finds what an interrupted run left behind with the request that opens an upload. Big blobs are
    asked for all the same where that is not sure, and a few times where it is: registries that
    mount nothing say that a repository without manifests does not exist.
    """

    def __init__(self, at: Repository, *, prefetch: bool = True) -> None:
        self.at = at
        self._prefetch = prefetch
        self._memo = manifests.Memo()
        self._lock = threading.Lock()
        self._here: dict[Digest, int] = {}
        self._absent: set[Digest] = set()
        self._new = False
        self._surely_new = False
        self._lists: frozenset[str] | None = None

    def resolve(self, name: str) -> Descriptor:
        """Find the manifest behind a tag or digest; a tag is asked for every time."""
        digest = _checked(name)
        known = self._memo.get(digest) if digest is not None else None
        if digest is not None and known is not None:
            return Descriptor(known.media_type, digest, len(known.raw))
        found = None if self._prefetch else self._head(name, digest)
        return found or self._get(name)[0]

    def _head(self, name: str, asked: Digest | None) -> Descriptor | None:
        try:
            found = manifests.head(self.at, name)
        except NotFound:
            self._nothing_there()
            raise
        if found is not None and asked is not None and found.digest != asked:
            raise IntegrityError(f"{self.at.shown}: {asked} is said to be {found.digest}")
        if found is not None:
            self._seen(found)
        return found

    def _get(self, name: str) -> tuple[Descriptor, Manifest]:
        try:
            digest, manifest = manifests.get(self.at, name)
        except manifests.Missing as e:
            self._nothing_there(surely=e.refusal.is_new_repository)
            raise
        self._memo.add(digest, manifest)
        found = Descriptor(manifest.media_type, digest, len(manifest.raw))
        self._seen(found)
        return found, manifest

    def _nothing_there(self, *, surely: bool = False) -> None:
        with self._lock:
            self._new = self._new or surely or not self._here
            self._surely_new = self._surely_new or surely

    def _seen(self, target: Descriptor) -> None:
        with self._lock:
            self._here[target.digest] = target.size
            self._absent.discard(target.digest)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """Stream content, checked against `target`."""
        yield from target.check(self.claimed(target))

    def claimed(self, target: Descriptor) -> Iterator[bytes]:
        """Stream what is said to be `target`, for whoever hashes it."""
        if target.is_manifest:
            yield self._manifest(target)
        elif target.size <= _SMALL:
            yield download.small(self.at, target)
        else:
            yield from download.stream(self.at, target)

    def _manifest(self, target: Descriptor) -> bytes:
        if target.size > MANIFEST_LIMIT:
            raise IntegrityError(
                f"{target.digest}: {target.size} bytes, and a manifest has at most {MANIFEST_LIMIT}"
            )
        known = self._memo.get(target.digest)
        return (known or self._get(str(target.digest))[1]).raw

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """List what refers to `subject`: by the API, or from the fallback tag without one."""
        return referrers.listing(self.at, subject.digest, tags=self._lists)

    def exists(self, target: Descriptor) -> bool:
        """Whether `target` is here, and of that size."""
        with self._lock:
            if target.digest in self._here:
                return self._here[target.digest] == target.size
            cheap = target.is_manifest or target.size <= _SMALL
            sure = self._surely_new and self.at.client.features.misses >= _MISSES
            if self._new and (cheap or sure):
                return False
        found = self._has_manifest(target) if target.is_manifest else self._has_blob(target)
        if not found:
            with self._lock:
                self._absent.add(target.digest)
                self.at.client.features.misses += self._surely_new
        return found

    def _has_manifest(self, target: Descriptor) -> bool:
        try:
            return self.resolve(str(target.digest)).size == target.size
        except NotFound:
            return False

    def _has_blob(self, target: Descriptor) -> bool:
        ok = {_OK, _NOT_FOUND, *manifests.NO_HEAD}
        answer = self.at.call("HEAD", f"blobs/{target.digest}", ok)
        answer.finish()
        if answer.status != _OK or answer.length not in (None, target.size):
            return False
        self._seen(target)
        self.at.client.placed(target.digest, self.at.name)
        return True

    @property
    def shared(self) -> str:
        """See Remote: the registry."""
        return self.at.client.registry

    def push(self, target: Descriptor, source: Source) -> None:
        """Take `target` from `source`: a manifest by its digest, a blob by mount or upload."""
        with self.at.client.busy(f"{self.at.name}@{target.digest}"):
            if target.is_manifest:
                self._announce(target, *self._put(target, source))
            else:
                self._push_blob(target, source)
            self._seen(target)

    def take(self, target: Descriptor, source: Source, *, name: str = "") -> bool:
        """See Remote; Misuse if `name` cannot be a tag."""
        if name and not TAG.fullmatch(name):
            raise Misuse(f"not a tag: {name[:200]!r}")
        with self.at.client.busy(f"{self.at.name}@{target.digest}"):
            mounted = False
            if target.is_manifest:
                self._put(target, source, name)
            else:
                mounted = self._push_blob(target, source)
            self._seen(target)
            return mounted

    def attach(self, subject: Descriptor, entries: Sequence[Descriptor]) -> None:
        """See Remote."""
        tag = subject.digest.fallback_tag
        with self._lock:
            new = self._lists is not None and tag not in self._lists
            if self._lists is not None:
                self._lists |= {tag}  # whoever attaches to it next reads what we write
        referrers.attach(self.at, subject.digest, entries, new=new)

    def _push_blob(self, target: Descriptor, source: Source) -> bool:
        if self._is_here(target.digest):
            return False
        read = _Read(source, self.at.client.registry)
        upload.push(self.at, target, read, origin=self._origin(target, source))
        return not read.asked

    def _is_here(self, digest: Digest) -> bool:
        with self._lock:
            return digest in self._here

    def _origin(self, target: Descriptor, source: Source) -> str:
        """Name the repository to mount from; our own where the POST may find the blob here."""
        client = self.at.client
        source = source.source if isinstance(source, Watched) else source
        if isinstance(source, RegistryStore) and source.at.client.registry == client.registry:
            return source.at.name
        other = client.place(target.digest)
        if other:
            return other
        unsure = target.digest not in self._absent
        return self.at.name if unsure and client.features.self_mount else ""

    def _put(self, target: Descriptor, source: Source, name: str = "") -> tuple[Manifest, str]:
        """Write a manifest, unless it is here and needs no name; what OCI-Subject said."""
        if target.size > MANIFEST_LIMIT:
            raise IntegrityError(
                f"{target.digest}: {target.size} bytes, and a manifest has at most {MANIFEST_LIMIT}"
            )
        raw = b"".join(target.check(source.fetch(target)))
        manifest = Manifest(raw, target.media_type)
        _ = manifest.subject  # what is malformed is refused before it is written
        if not name and self._is_here(target.digest):
            return manifest, ""
        try:
            said = manifests.put(self.at, name or str(target.digest), manifest)
        except NotFound:
            self._forget(manifest)
            raise
        self._memo.add(target.digest, manifest)
        return manifest, said

    def _forget(self, manifest: Manifest) -> None:
        """Believe no more that the children of `manifest` are here: the registry lacks some."""
        with self._lock:
            for child in manifest.children:
                self._here.pop(child.digest, None)

    def _announce(self, target: Descriptor, manifest: Manifest, said: str) -> None:
        if manifest.subject is not None:
            entry = replace(
                target.plain, annotations=manifest.annotations, artifact_type=manifest.artifact_type
            )
            referrers.announce(self.at, manifest.subject.digest, entry, said)
            self._listed(manifest.subject.digest)

    def _listed(self, subject: Digest) -> None:
        """Remember that the tag which lists referrers of `subject` may be there now."""
        with self._lock:
            if self._lists is not None:
                self._lists |= {subject.fallback_tag}

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        """Point `name` at `target`; with `was`, `name` is asked for immediately before.

        In this process one writer at a time does that; another process can still come between.
        A tag that several append to (`sha256-<hex>.sig`) is read again by whoever did: so this
        returns only after about twice the time that a writer needs who asked before us and
        writes after us. Reading at once would miss that our entry was taken away.
        """
        if not TAG.fullmatch(name):
            raise Misuse(f"not a tag: {name[:200]!r}")
        raw = self._manifest(target)
        patience = self.at.client.patience
        with self.at.client.busy(f"{self.at.name}:{name}"):
            began = patience.monotonic()
            if isinstance(was, EllipsisType) or self._must_move(target, name, was):
                manifests.put(self.at, name, Manifest(raw, target.media_type))
                if not isinstance(was, EllipsisType) and re.fullmatch(_APPENDED, name):
                    took = patience.monotonic() - began
                    patience.sleep(min(took * (2 + patience.random()), _LONGEST_PAUSE))

    def _must_move(self, target: Descriptor, name: str, was: Digest | None) -> bool:
        now = self._now(name)
        if now == target.digest:
            return False
        if now != was:
            raise Rejected(
                f"{self.at.shown}:{name} points at {now or 'nothing'} now, and pointed at "
                f"{was or 'nothing'} when this run began",
                hint="somebody else moved it; look at what is there, then run again",
            )
        return True

    def _now(self, name: str) -> Digest | None:
        try:
            found = manifests.head(self.at, name)
            return found.digest if found is not None else manifests.get(self.at, name)[0]
        except NotFound:
            return None

    def few_tags(self) -> frozenset[str] | None:
        """Every tag, if one request tells; None if the list has several pages.

        A repository that is not there yet has none. From then on tags that list referrers are
        taken to be those that were in it, and those that were written by this store.
        """
        answer, raw = self.at.read(
            "tags/list", {_OK, _NOT_FOUND}, pages.LISTING_LIMIT, elsewhere=False
        )
        if answer.status == _NOT_FOUND:
            refusal = self.at.refused(answer)
            if not refusal.is_new_repository:
                raise NotFound(f"{self.at.shown}: no list of tags ({refusal.said})")
            found = frozenset[str]()
        elif pages.has_more(self.at, answer):
            return None
        else:
            found = frozenset(_tags(raw, answer.at.what))
            if pages.is_cut(len(found)):
                return None
        with self._lock:
            self._lists = frozenset(tag for tag in found if referrers.is_fallback_tag(tag))
        return found

    def tags(self) -> Iterator[str]:
        """Every tag, sorted bytewise; NotFound if the registry knows no such repository."""
        answer, raw = self.at.read("tags/list", {_OK}, pages.LISTING_LIMIT, elsewhere=False)
        found: set[str] = set()
        total = 0
        for _ in range(pages.PAGES):
            before, names = len(found), list[str]()
            for page in pages.following(self.at, answer, raw, accept=""):
                names = list(_tags(page, answer.at.what))
                found.update(names)
                total += len(page)
                if len(found) > _TAGS or total > pages.LISTING_TOTAL:
                    limits = f"{_TAGS} tags, {pages.LISTING_TOTAL} bytes"
                    raise StoreError(f"{self.at.shown}: its list of tags is beyond {limits}")
            if len(found) == before or not pages.is_cut(len(names)):
                return iter(sorted(found))
            url = self.at.url("tags/list").plus("last", names[-1])
            ok = {_OK, _NOT_FOUND, *manifests.NO_HEAD}
            answer, raw = self.at.read(url, ok, pages.LISTING_LIMIT, elsewhere=False)
            raw = raw if answer.status == _OK else b"{}"
        raise StoreError(f"{self.at.shown}: its list of tags has more than {pages.PAGES} pages")


class _Read:
    """The source of an upload, which hashes what it reads: once is enough.

    It remembers whether it was asked for anything.
    """

    def __init__(self, source: Source, registry: str) -> None:
        self._source, self._registry = source, registry
        self.asked = False

    def resolve(self, name: str) -> Descriptor:
        """See Source."""
        return self._source.resolve(name)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """See Source."""
        self.asked = True
        source = self._source
        if not (isinstance(source, Watched) and isinstance(source.source, RegistryStore)):
            return source.fetch(target)
        pieces = source.source.claimed(target)
        # one registry alone may let us ask one thing at a time: there nobody reads ahead
        if target.size >= WORTH and source.source.at.client.registry != self._registry:
            pieces = ahead(pieces)
        return source.watch(pieces)

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """See Source."""
        return self._source.referrers(subject)


def _tags(page: bytes, what: str) -> Iterator[str]:
    """The tags of one page; names that cannot be tags are left out: nobody can ask for them."""
    with malformed(what):
        document = jsontext.decode(page)
    names = document.get("tags") if isinstance(document, dict) else 0
    if names is not None and not isinstance(names, list):
        raise IntegrityError(f"{what}: not a list of tags")
    return (name for name in names or () if isinstance(name, str) and TAG.fullmatch(name))


def _checked(name: str) -> Digest | None:
    """The digest that `name` is, or None for a tag; Misuse for neither."""
    if ":" in name:
        return Digest.parse(name)
    if not TAG.fullmatch(name):
        raise Misuse(f"not a tag: {name[:200]!r}")
    return None
