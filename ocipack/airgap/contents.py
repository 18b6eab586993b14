"""From proven places to what an archive will hold: every member, before a blob is fetched.

Names in index.json (OCI image-spec, annotations.md, "org.opencontainers.image.ref.name"):

1. an item is `registry/repository:tag`, so that skopeo, oras, regctl and containerd can be asked
   for it by the name it has at the origin;
2. it is `registry/repository[:tag]@digest` where that would say two things: no tag, or a tag that
   stands for two digests in this archive;
3. a digest tag is `registry/repository:sha256-<hex>.sig`, and beside it `sha256-<hex>.sig`, as who
   takes a layout for one repository looks for it, unless two repositories differ in it;
4. a referrer is an entry without a name (oras, crane) and one of the index under the fallback tag
   `sha256-<hex>` of its subject (regctl).

Fallback tags are made here from what was found; those of the origin are not copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ocipack.airgap import record
from ocipack.airgap.closures import attached, closure
from ocipack.airgap.record import LeftOut, Papers, Record
from ocipack.airgap.site import BYTES, ENTRIES, HELD, PARTS, is_of_a_digest
from ocipack.errors import IntegrityError, Misuse, Rejected
from ocipack.oci import jsontext
from ocipack.oci.descriptor import INDEX, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.layout import (
    CONTAINERD_NAME,
    INDEX_FILE,
    LAYOUT_FILE,
    REF_NAME,
    VERSION,
    Member,
    blob_path,
)
from ocipack.oci.store import MANIFEST_LIMIT

if TYPE_CHECKING:
    from ocipack.copy import Plan, Transfers
    from ocipack.oci.reference import Reference
    from ocipack.oci.store import Source
    from ocipack.verify import Exempted, Verified


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing to save: where it is, and the proof of it, whose reference is its name."""

    source: Source
    proof: Verified | Exempted

    @property
    def reference(self) -> Reference:
        """Its name, with its digest."""
        return self.proof.reference


@dataclass(frozen=True, slots=True)
class Earlier:
    """What an earlier archive had: its blobs, with their repositories, and what names it."""

    digest: Digest
    blobs: Mapping[Digest, LeftOut]


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything that an archive will hold.

    `members` are in the order of the tar; `held` are those that are in memory, by name, and
    `blobs` the others, with the place to fetch each from. `plans` are the items, by name.
    """

    members: tuple[Member, ...]
    held: Mapping[str, bytes] = field(repr=False)
    blobs: Mapping[str, tuple[Descriptor, Source]] = field(repr=False)
    plans: Mapping[str, Plan] = field(repr=False)
    record: Record

    @property
    def size(self) -> int:
        """Bytes of all members together."""
        return sum(member.size for member in self.members)


def gather(
    wanted: Iterable[Wanted],
    transfers: Transfers,
    *,
    files: Mapping[str, bytes],
    earlier: Earlier | None,
) -> Contents:
    """Find everything that belongs to `wanted`; `files` come along, `earlier` is left out.

    Nothing but manifests is fetched. Rejected for an archive that could not be read again, Misuse
    for what is only attached to something else, IntegrityError where places contradict each
    other, and whatever the walk raises.
    """
    found = _Gathered(earlier)

    def plan(one: Wanted) -> tuple[Wanted, Plan]:
        return one, closure(one.source, one.proof.descriptor.plain, transfers)

    for one, made in transfers.each(plan, wanted):
        found.add(one, made)
    return found.contents(files)


class _Gathered:
    """What was found so far."""

    def __init__(self, earlier: Earlier | None) -> None:
        self._earlier = earlier
        self._items: dict[Reference, Descriptor] = {}
        self._plans: dict[Reference, Plan] = {}
        self._tags: dict[tuple[str, str], Descriptor] = {}
        self._referrers: dict[Digest, dict[Digest, Descriptor]] = {}
        self._held: dict[str, bytes] = {}
        self._blobs: dict[str, tuple[Descriptor, Source]] = {}
        self._sizes: dict[Digest, int] = {}
        self._left_out: dict[Digest, LeftOut] = {}
        self._bytes = self._parts = 0

    def add(self, one: Wanted, plan: Plan) -> None:
        """Take in an item and everything that belongs to it."""
        if is_of_a_digest(one.reference.tag or ""):
            raise Misuse(
                f"{one.reference}: such a tag says what is attached to a digest",
                hint="save what it is attached to, and it comes along",
            )
        self._parts += len(plan.parts)
        if self._parts > PARTS:
            raise Rejected(f"more than {PARTS} manifests and blobs", hint="make several archives")
        self._items[one.reference] = plan.root
        self._plans[one.reference] = plan
        for target, found in plan.manifests.items():
            self._hold(blob_path(target.digest), found.raw)
        proving = set(attached(plan))
        for part in plan.parts:
            self._size(part.target)
            if not part.target.is_manifest:
                self._blob(part.target, one.source, needed=part.target.digest in proving)
            if part.name:
                self._tags[one.reference.bare, part.name] = part.target
            if part.subject is not None:
                listed = self._referrers.setdefault(part.subject.digest, {})
                listed[part.target.digest] = plan.manifests[part.target].referrer

    def contents(self, files: Mapping[str, bytes]) -> Contents:
        """Close the books."""
        for target, _ in self._blobs.values():  # what proves one item is not left out of another
            self._left_out.pop(target.digest, None)
        since = self._earlier.digest if self._earlier is not None else None
        entries = [*self._named(), *self._tagged(), *self._listed()]
        seal = record.sealed(_document(entries))
        papers = Papers(Record(seal, since, tuple(self._left_out.values())), files)
        manifest, blobs = papers.manifest()
        entries.append(_entry(manifest.descriptor, record.NAME))
        for digest, content in {**blobs, manifest.descriptor.digest: manifest.raw}.items():
            self._hold(blob_path(digest), content)
        index = _index(entries)
        said = papers.record.encode()
        if len(entries) > ENTRIES or len(index) > BYTES or len(said) > record.BYTES:
            raise Rejected(
                f"{len(entries)} entries in {len(index)} bytes, and a record of {len(said)}: at "
                f"most {ENTRIES} in {BYTES}, and {record.BYTES}, are read again",
                hint="make several archives",
            )
        for path in self._held:
            self._blobs.pop(path, None)
        first = {LAYOUT_FILE: VERSION, INDEX_FILE: index}
        sizes = {name: (one.digest, one.size) for name, (one, _) in self._blobs.items()}
        sizes |= {name: (Digest.of(raw), len(raw)) for name, raw in self._held.items()}
        members = [Member(name, Digest.of(raw), len(raw)) for name, raw in first.items()]
        members += [Member(name, *sizes[name]) for name in sorted(sizes)]
        names = self._names()
        plans = {names[reference]: plan for reference, plan in self._plans.items()}
        held = {**first, **self._held}
        return Contents(tuple(members), held, dict(self._blobs), plans, papers.record)

    def _hold(self, path: str, raw: bytes) -> None:
        if path not in self._held:
            self._bytes += len(raw)
            if self._bytes > HELD:
                raise Rejected(f"more than {HELD} bytes of manifests", hint="make several archives")
            self._held[path] = raw

    def _size(self, target: Descriptor) -> None:
        known = self._sizes.setdefault(target.digest, target.size)
        if known != target.size:
            one, other = sorted((known, target.size))
            raise IntegrityError(f"{target.digest} is said to have {one} and {other} bytes")

    def _blob(self, target: Descriptor, source: Source, *, needed: bool) -> None:
        known = self._earlier.blobs.get(target.digest) if self._earlier is not None else None
        if known is not None and known.size == target.size and not needed:
            self._left_out[target.digest] = known
        else:
            self._blobs.setdefault(blob_path(target.digest), (target, source))

    def _names(self) -> dict[Reference, str]:
        """What each item is called (1, 2)."""
        tagged: dict[str, set[Digest]] = {}
        for reference, root in self._items.items():
            tagged.setdefault(_tagged(reference), set()).add(root.digest)
        return {
            reference: name
            if reference.tag and len(tagged[name := _tagged(reference)]) == 1
            else str(reference)
            for reference in self._items
        }

    def _named(self) -> list[dict[str, Any]]:
        names = self._names()
        pairs = sorted((names[reference], root) for reference, root in self._items.items())
        return [_entry(root, name, full=True) for name, root in pairs]

    def _tagged(self) -> list[dict[str, Any]]:
        """Entries of digest tags (3)."""
        short: dict[str, set[Descriptor]] = {}
        for (_, name), target in self._tags.items():
            short.setdefault(name, set()).add(target)
        full = [(f"{bare}:{name}", target) for (bare, name), target in self._tags.items()]
        full += [
            (name, min(targets, key=str)) for name, targets in short.items() if len(targets) == 1
        ]
        return [_entry(target, name) for name, target in sorted(full, key=lambda one: one[0])]

    def _listed(self) -> list[dict[str, Any]]:
        """Entries of referrers, and the fallback tags that list them (4)."""
        loose: dict[Digest, Descriptor] = {}
        listings: list[tuple[str, Descriptor]] = []
        for subject, found in self._referrers.items():
            loose |= found
            listing = [found[digest] for digest in sorted(found)]
            raw = _index([target.to_dict() for target in listing])
            if len(raw) > MANIFEST_LIMIT:  # annotations are for filters; the manifests have them
                raw = _index([_bare(target) for target in listing])
            self._hold(blob_path(Digest.of(raw)), raw)
            listings.append((subject.fallback_tag, Descriptor.of(INDEX, raw)))
        # without annotations: one of them could give the entry a name
        bare = [_bare(loose[digest]) for digest in sorted(loose)]
        tags = [_entry(target, name) for name, target in sorted(listings, key=lambda one: one[0])]
        return [*bare, *tags]


def _entry(target: Descriptor, name: str, *, full: bool = False) -> dict[str, Any]:
    annotations = {CONTAINERD_NAME: name, REF_NAME: name} if full else {REF_NAME: name}
    return replace(target.plain, annotations=annotations).to_dict()


def _bare(target: Descriptor) -> dict[str, Any]:
    """A referrer without its annotations."""
    return replace(target.plain, artifact_type=target.artifact_type).to_dict()


def _document(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}


def _index(entries: list[dict[str, Any]]) -> bytes:
    return jsontext.encode(_document(entries))


def _tagged(reference: Reference) -> str:
    return f"{reference.bare}:{reference.tag}"
