"""Read an archive: which images it holds, and each of their repositories as a Source.

What is in an archive is what its index.json says, as any other reader of layouts sees it: there
is no second list that could say something else.

1. An entry whose name is a full reference (`registry/repository[:tag][@digest]`) is an item; two
   entries with one name and two digests are refused, and so is a name that contradicts its entry.
2. An entry `registry/repository:sha256-<hex>.sig` (`.att`, `.sbom`) is attached to that digest in
   that repository; without the repository, as other tools write it, in every one.
3. Entries without a name, and those listed under `sha256-<hex>`, are referrers of whatever their
   own manifests name as subject, in every repository that has it.
4. The entry `ocipack-airgap` is the record (`ocipack.airgap.record`), which says what the other
   entries were when the archive was saved: a name that was damaged or edited since is refused.
   Who edits both is stopped by signatures alone.
5. Any other name belongs to no repository: IntegrityError says so, rather than leaving it behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from ocipack.airgap import record
from ocipack.airgap.record import LeftOut, Record
from ocipack.errors import IntegrityError, NotFound, Rejected, malformed
from ocipack.oci import jsontext
from ocipack.oci.descriptor import INDEX, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.layout import INDEX_FILE, LAYOUT_FILE, REF_NAME, VERSION, blob_path
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.oci.store import MANIFEST_LIMIT, manifest, read

BYTES: Final = 32 * 1024 * 1024
"""Bytes of an archive's index.json."""

ENTRIES: Final = 50_000
"""Entries of it."""

PARTS: Final = 1_000_000
"""Manifests and blobs of all items together, each counted for every name that it belongs to: what a
few names say about one index must not take hours to look at."""

HELD: Final = 512 * 1024 * 1024
"""Bytes of all manifests of an archive, and of what came along: they are read into memory."""

_OF_A_DIGEST = re.compile(r"sha(?:256|512)-[0-9a-f]{64,128}(?:\.[a-z]+)?")


def is_of_a_digest(tag: str) -> bool:
    """Whether `tag` is one that says what is attached to a digest."""
    return _OF_A_DIGEST.fullmatch(tag) is not None


class Files(Protocol):
    """The files of a layout by name, as the edge that reads tars has them."""

    @property
    def where(self) -> str:
        """What it is called in messages."""

    @property
    def blobs(self) -> Mapping[Digest, int]:
        """Every blob, with its size in bytes."""

    def has(self, name: str) -> int | None:
        """How many bytes the file `name` has; None if it is not there."""

    def read(self, name: str) -> Iterator[bytes]:
        """Stream the file `name`."""


@dataclass(frozen=True, slots=True)
class Item:
    """One image, chart or artifact of an archive; `reference` has its digest."""

    reference: Reference
    target: Descriptor

    @property
    def bare(self) -> str:
        """Its repository."""
        return self.reference.bare


class Site:
    """The archive in `files`.

    `earlier` has the blobs that this one left out, if it is at hand. IntegrityError if the index
    is not one that we would write or another tool does.
    """

    def __init__(self, files: Files, earlier: Site | None = None) -> None:
        self.files, self._earlier = files, earlier
        self.blobs = files.blobs
        self.items: tuple[Item, ...] = ()
        self.record: Record | None = None
        self.digest, document = _index(files)
        self._tags: dict[str, dict[str, Descriptor]] = {}
        self._named: dict[tuple[str, str], set[Descriptor]] = {}
        self._repositories: dict[str, Repository] = {}
        self._referrers: dict[Digest, dict[Digest, Descriptor]] = {}
        self._papers: Manifest | None = None
        self.left_out: Mapping[Digest, LeftOut] = {}
        self._read_entries(list(_entries(document, files.where)))
        if self.record is not None:
            if self.record.index != record.sealed(document):
                raise IntegrityError(
                    f"{files.where}: {INDEX_FILE} is not what it was when the archive was saved",
                    hint="it was damaged or edited: bring the archive again",
                )
            self.left_out = {one.digest: one for one in self.record.left_out}

    @property
    def since(self) -> Digest | None:
        """The earlier archive that has what this one left out."""
        return self.record.since if self.record is not None else None

    @property
    def papers(self) -> dict[str, Descriptor]:
        """The files that came along, by path."""
        return record.titles(self._papers) if self._papers is not None else {}

    def paper(self, path: str) -> bytes:
        """The content of one of them."""
        return read(self.at(""), self.papers[path], limit=record.FILE_BYTES)

    def at(self, repository: str) -> Repository:
        """One repository of the archive (`registry/path`) as a Source, always the same."""
        return self._repositories.setdefault(repository, Repository(self, repository))

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """Stream a blob or manifest, checked.

        Rejected if it was left out and no earlier archive is at hand; IntegrityError if it is
        missing, since an archive is whole or it is damaged.
        """
        path = blob_path(target.digest)
        if self.files.has(path) is not None:
            return target.check(self.files.read(path))
        if target.digest not in self.left_out:
            raise IntegrityError(f"{self.files.where}: {target.digest} is missing in it")
        if self._earlier is None:
            raise Rejected(
                f"{target.digest}: left out of {self.files.where}, since the archive "
                f"{self.since} had it",
                hint="load that one first, or name it with --since",
            )
        return self._earlier.fetch(target)

    def _read_entries(self, entries: list[tuple[str, Descriptor]]) -> None:
        loose = dict.fromkeys(target for name, target in entries if not name)
        listings: dict[Descriptor, None] = {}  # one can stand under many names
        named: dict[str, Descriptor] = {}
        for name, target in entries:
            if name and named.setdefault(name, target) != target:
                raise IntegrityError(f"{self.files.where}: {name[:200]!r} names two things")
        papers = named.pop(record.NAME, None)
        items = {}
        for name, target in named.items():
            repository, tag = _split(name)
            if is_of_a_digest(tag):
                if "." in tag:
                    self._tags.setdefault(repository, {})[tag] = target
                elif not repository:
                    listings[target] = None
            else:
                item = self._item(name, target)
                items[item.reference] = item
        self.items = tuple(sorted(items.values(), key=lambda item: str(item.reference)))
        for item in self.items:
            for said in (item.reference.tag, str(item.target.digest)):
                self._named.setdefault((item.bare, said or ""), set()).add(item.target)
        self._read_referrers(loose, listings)
        if papers is not None:
            self._papers = manifest(self.at(""), papers)
            raw = read(self.at(""), self._papers.config, limit=record.BYTES)
            self.record = Record.decode(raw)

    def _item(self, name: str, target: Descriptor) -> Item:
        with malformed(f"{self.files.where}: the name {name[:200]!r} says no repository"):
            reference = Reference.parse(name)
        if reference.digest not in (None, target.digest):
            raise IntegrityError(f"{self.files.where}: {name[:400]!r} is {target.digest}")
        return Item(reference.at(target.digest), target)

    def _listed(self, target: Descriptor) -> list[Descriptor]:
        """The entries of a listing of referrers under a fallback tag."""
        if target.media_type != INDEX:
            return []
        raw = read(self.at(""), target, limit=MANIFEST_LIMIT)
        with malformed(f"{self.files.where}: {target.digest}"):
            document = jsontext.decode(raw)
        return [found for _, found in _entries(document, str(target.digest))]

    def _read_referrers(
        self, loose: dict[Descriptor, None], listings: Iterable[Descriptor]
    ) -> None:
        """Read those that are entries themselves, and those that are in `listings`."""
        held = 0
        for target in listings:
            held = self._counted(held, target)
            loose |= dict.fromkeys(self._listed(target))
            if len(loose) > ENTRIES:
                raise IntegrityError(f"{self.files.where}: more than {ENTRIES} referrers")
        for target in loose:
            held = self._counted(held, target)
            found = manifest(self.at(""), target)
            if found.subject is None and found.artifact_type == record.ARTIFACT_TYPE:
                raise IntegrityError(f"{self.files.where}: the record has lost its name")
            if found.subject is not None:
                listed = self._referrers.setdefault(found.subject.digest, {})
                listed[target.digest] = replace(found.referrer, media_type=target.media_type)

    def _counted(self, held: int, target: Descriptor) -> int:
        if held + target.size > HELD:
            raise IntegrityError(f"{self.files.where}: more than {HELD} bytes of referrers")
        return held + target.size

    def named(self, repository: str, name: str) -> Descriptor | None:
        """What a tag or digest names in `repository`; IntegrityError if that is several things."""
        found = self._named.get((repository, name), set())
        if len(found) > 1:
            raise IntegrityError(f"{repository}:{name} is several things in {self.files.where}")
        for target in found:
            return target
        return self._tags.get(repository, {}).get(name) or self._tags.get("", {}).get(name)

    def tags(self, repository: str) -> Iterator[str]:
        """Every tag of `repository`, sorted."""
        own = {item.reference.tag for item in self.items if item.bare == repository}
        attached = {*self._tags.get("", {}), *self._tags.get(repository, {})}
        return iter(sorted({*attached, *(tag for tag in own if tag is not None)}))

    def referrers(self, subject: Digest) -> Iterator[Descriptor]:
        """Everything that names `subject` as its subject, by digest."""
        found = self._referrers.get(subject, {})
        return (found[digest] for digest in sorted(found))


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Repository:
    """One repository of an archive: `Listing`."""

    site: Site
    name: str

    def resolve(self, name: str) -> Descriptor:
        """See Source."""
        target = self.site.named(self.name, name)
        if target is None:
            raise NotFound(f"{self.name}: there is no {name} in {self.site.files.where}")
        return target

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """See Source."""
        return self.site.fetch(target)

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """See Source; each has been read, and names that subject."""
        return self.site.referrers(subject.digest)

    def tags(self) -> Iterator[str]:
        """See Listing."""
        return self.site.tags(self.name)


_DAMAGED = "the archive is damaged or cut: compare it with what it was copied from"


def _index(files: Files) -> tuple[Digest, Mapping[str, Any]]:
    """The digest and content of index.json."""
    for name, limit in ((LAYOUT_FILE, len(VERSION) * 10), (INDEX_FILE, BYTES)):
        size = files.has(name)
        if size is None or size > limit:
            raise IntegrityError(f"{files.where}: {name} is missing, or longer than {limit} bytes")
    with malformed(f"{files.where}: {LAYOUT_FILE}", hint=_DAMAGED):
        said = jsontext.decode(b"".join(files.read(LAYOUT_FILE)))
        if said["imageLayoutVersion"] != "1.0.0":
            raise ValueError(f"unknown version {said['imageLayoutVersion']!r}")
    raw = b"".join(files.read(INDEX_FILE))
    with malformed(f"{files.where}: {INDEX_FILE}", hint=_DAMAGED):
        document = jsontext.decode(raw)
        if not isinstance(document, dict):
            raise TypeError("not a JSON object")
        return Digest.of(raw), document


def _entries(document: object, where: str) -> Iterator[tuple[str, Descriptor]]:
    """Name (or nothing) and target of each entry of an index."""
    with malformed(where):
        if not isinstance(document, dict) or document.get("mediaType", INDEX) != INDEX:
            raise TypeError("not an OCI image index")
        entries = document.get("manifests")
        entries = [] if entries is None else entries  # Go writes null for an empty list
        if not isinstance(entries, list) or len(entries) > ENTRIES:
            raise ValueError(f"manifests must be a list of at most {ENTRIES} entries")
        for entry in entries:
            target = Descriptor.from_dict(entry)
            if not target.is_manifest:
                raise ValueError(f"{target.digest} is {target.media_type!r}, no manifest")
            yield target.annotations.get(REF_NAME, ""), target.plain


def _split(name: str) -> tuple[str, str]:
    """Repository and tag of a digest tag's name, full or not."""
    repository, _, tag = name.rpartition(":")
    return repository, tag
