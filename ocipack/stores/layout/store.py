"""What an OCI layout means, over its files (image-layout.md; distribution-spec for referrers).

What is decided here:

1. Every byte that is read is hashed, manifests included; `index.json` is the one file that
   nothing vouches for, so it is bounded and read as hearsay.
2. A file with its final name is not believed for that: `exists` hashes it (once per version of
   the file, by size, inode and both times), and walks what is below a manifest.
3. A referrer is an entry of index.json without a name, for readers such as oras, and an entry
   of the index under the tag `sha256-<hex>`, for readers such as regctl; it is read from both,
   and dropped where its manifest names another subject. One whose manifest cannot be read is
   passed on as it was listed: whoever wants it must learn that it is broken.
4. A referrer that no index lists is not found: `cosign save` leaves such blobs, and any blob of
   a hostile layout could claim to be one.
5. Writers change index.json under a lock, reading it first, so none loses another's entries.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected, StoreError, malformed
from ocipack.oci import jsontext
from ocipack.oci.closure import Walk, closure
from ocipack.oci.descriptor import INDEX, INDEXES, MANIFEST, MANIFESTS, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.layout import VERSION, blob_path
from ocipack.oci.reference import TAG
from ocipack.oci.store import MANIFEST_LIMIT, manifest, read
from ocipack.stores.layout import locks
from ocipack.stores.layout.directory import Directory, Identity
from ocipack.stores.layout.index import BYTES, Index
from ocipack.stores.layout.tarball import Tarball

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from types import EllipsisType, TracebackType

    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source

_DAMAGED = "it is damaged or cut: compare it with what it was copied from"


class Files(Protocol):
    """A layout's files by name: `Directory` and `Tarball`."""

    path: str

    def identity(self, name: str) -> Identity | None:
        """Tell which version of `name` is there, its size in bytes first; None if it is not."""

    def read(self, name: str) -> Iterator[bytes]:
        """Stream `name`."""

    def put(self, name: str, chunks: Iterable[bytes]) -> None:
        """Make `name` hold `chunks`, all or nothing."""

    def lock(self) -> AbstractContextManager[None]:
        """Be the only one who changes index.json."""

    def close(self) -> None:
        """Make everything that was put visible."""

    def discard(self) -> None:
        """Drop what is not visible yet."""


class LayoutStore:
    """One repository in an OCI image layout at `path`: a directory, or a `.tar`.

    Reading one that is not there is NotFound; the first write makes it. A directory shows each
    write at once. A tar is rewritten when the store is closed, so use it in a `with` block,
    which closes it, or drops what was written if the block fails. `patience` is how many
    seconds to wait for other writers.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = locks.PATIENCE) -> None:
        place = Path(path)
        is_tar = not place.is_dir() and (place.suffix == ".tar" or place.is_file())
        kind = Tarball if is_tar else Directory
        self._files: Files = kind(str(place), patience=patience)
        self._made = False
        self._checked: dict[Digest, Identity] = {}
        self._subjects: dict[Digest, Digest | None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        if kind is None:
            self._files.close()
        else:
            self._files.discard()

    def close(self) -> None:
        """Finish writing; only a tar has something to finish."""
        self._files.close()

    def resolve(self, name: str) -> Descriptor:
        """See Source. A tag that names two things is an IntegrityError."""
        index = self._index()
        if ":" in name:
            return self._by_digest(Digest.parse(name), index)
        found = index.named(name)
        if found is None:
            raise NotFound(f"{self._files.path}: there is no tag {name}", hint=self._has(index))
        if not found.is_manifest:
            raise IntegrityError(
                f"{self._files.path}: tag {name} is {found.media_type!r}, no manifest or index"
            )
        if self._files.identity(blob_path(found.digest)) is None:
            raise StoreError(
                f"{self._files.path}: tag {name} names {found.digest}, which is missing",
                hint="the layout is damaged; copy that digest into it again, without a tag",
            )
        return found

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """See Source."""
        self._require(target.digest)
        yield from target.check(self._files.read(blob_path(target.digest)))

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """See Source. Here the listing is checked: see points 3 and 4 above."""
        seen: set[Digest] = set()
        broken: dict[Digest, Descriptor] = {}
        budget = Walk(subject)
        for target, tagged in self._candidates(subject):
            if target.digest in seen:
                continue
            if target.digest not in self._subjects:
                budget.holds(target.size)  # thousands of large entries would keep us reading
            try:
                found = self._referrer(target, subject)
            except (NotFound, IntegrityError):
                if not tagged:
                    broken[target.digest] = target
                continue
            seen.add(target.digest)
            if found is not None:
                yield found
        yield from (target for digest, target in broken.items() if digest not in seen)

    def tags(self) -> Iterator[str]:
        """See Listing. Names that cannot be tags (`docker.io/library/…`) are left out."""
        return iter(sorted(filter(TAG.fullmatch, self._index().tags())))

    def exists(self, target: Descriptor) -> bool:
        """See Store."""
        try:
            for node, found in closure(self, target):
                if found is None and not self._intact(node):
                    return False
                if found is not None and not self._listed(node, found):
                    return False
        except (NotFound, IntegrityError):
            return False
        return True

    def push(self, target: Descriptor, source: Source) -> None:
        """See Store."""
        if not target.is_manifest:
            self._make()
            self._files.put(blob_path(target.digest), target.check(source.fetch(target)))
            return
        found = manifest(source, target)
        entry = _entry(target, found) if found.subject is not None else None
        for child in found.children:
            identity = self._files.identity(blob_path(child.digest))
            if identity is None or identity[0] != child.size:
                raise NotFound(f"{target.digest} needs {child.digest}, which is not here")
        self._make()
        self._files.put(blob_path(target.digest), [found.raw])
        if found.subject is not None and entry is not None:
            self._list(entry, found.subject)
        else:
            self._enter(target, found)

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        """See Store."""
        if not TAG.fullmatch(name):
            raise Misuse(f"not a tag: {name[:200]!r}")
        manifest(self, target)
        self._make()
        with self._files.lock():
            index = self._index()
            if was is not ... or len(index.of(name)) == 1:
                now = index.named(name)
                at = now.digest if now is not None else None
                if now == target.plain:
                    return
                if was is not ... and at not in (was, target.digest):
                    raise Rejected(
                        f"{self._files.path}: tag {name} is at {at or 'nothing'} now, "
                        f"not at {was or 'nothing'}",
                        hint="someone else moved it; it was left alone",
                    )
            self._files.put("index.json", [index.with_tag(target, name).encode()])

    def _has(self, index: Index) -> str:
        """What there is; last what holds signatures, which nobody asks for by hand."""
        names = sorted(index.tags(), key=lambda name: (name.startswith("sha256-"), name))
        if any("/" in name for name in names):
            return (
                "its names are whole references, as in archives: "
                f"see `ocipack airgap list {self._files.path}`"
            )
        some = ", ".join(list(filter(TAG.fullmatch, names))[:5])
        return f"it has {some}" if some else "it has no tags"

    def _index(self) -> Index:
        where = f"{self._files.path}/index.json"
        if self._files.identity("index.json") is None:
            raise NotFound(
                f"{self._files.path}: there is no OCI layout", hint="it has no index.json"
            )
        with malformed(f"{self._files.path}/oci-layout"):
            version = jsontext.decode(self._whole("oci-layout", MANIFEST_LIMIT))
            if version["imageLayoutVersion"] != "1.0.0":
                raise Misuse(f"unknown version {version['imageLayoutVersion']!r}")
        return Index.parse(self._whole("index.json", BYTES), where, hint=_DAMAGED)

    def _whole(self, name: str, limit: int) -> bytes:
        pieces, size = [], 0
        for piece in self._files.read(name):
            size += len(piece)
            if size > limit:
                raise IntegrityError(f"{self._files.path}/{name}: more than {limit} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    def _require(self, digest: Digest) -> Identity:
        identity = self._files.identity(blob_path(digest))
        if identity is None:
            raise NotFound(f"{self._files.path}: there is no {digest}")
        return identity

    def _by_digest(self, digest: Digest, index: Index) -> Descriptor:
        size = self._require(digest)[0]
        for target, _ in index.readable():
            if target.digest == digest:
                return target.plain
        if size > MANIFEST_LIMIT:
            raise NotFound(f"{self._files.path}: {digest} is no manifest: it has {size} bytes")
        raw = read(self, Descriptor("", digest, size), limit=MANIFEST_LIMIT)
        media_type = _media_type(raw)
        if media_type is None:
            raise NotFound(f"{self._files.path}: {digest} is no manifest")
        return Descriptor(media_type, digest, size)

    def _candidates(self, subject: Descriptor) -> Iterator[tuple[Descriptor, bool]]:
        index = self._index()
        yield from index.readable()
        listing = self._fallback(index, subject.digest)
        if listing is not None:
            yield from ((target, False) for target, _ in listing.readable())

    def _fallback(self, index: Index, subject: Digest) -> Index | None:
        """Read the index under the fallback tag; None if there is none, or it is something else.

        Some registries and copiers answer with the subject itself there.
        """
        name = subject.fallback_tag
        found = index.named(name)
        if found is None or found.media_type != INDEX or found.digest == subject:
            return None
        raw = read(self, found, limit=MANIFEST_LIMIT)
        return Index.parse(raw, f"{self._files.path}: tag {name}")

    def _referrer(self, target: Descriptor, subject: Descriptor) -> Descriptor | None:
        """Read `target` and describe it as a referrer, if it names `subject` as its subject."""
        if self._subjects.get(target.digest, subject.digest) != subject.digest:
            return None
        found = manifest(self, target)
        named = found.subject.digest if found.subject is not None else None
        self._subjects[target.digest] = named
        return _entry(target, found) if named == subject.digest else None

    def _intact(self, target: Descriptor) -> bool:
        """Whether a blob is here and is what it should be, hashed once per version of its file."""
        identity = self._require(target.digest)
        if identity[0] != target.size:
            return False
        if self._checked.get(target.digest) != identity:
            for _ in self.fetch(target):
                pass
            self._checked[target.digest] = identity
        return True

    def _listed(self, target: Descriptor, found: Manifest) -> bool:
        """Whether nothing would be added by listing `target` among its subject's referrers."""
        if found.subject is None:
            return True
        index = self._index()
        listing = self._fallback(index, found.subject.digest)
        return listing is not None and listing.lists(target.digest) and index.lists(target.digest)

    def _enter(self, target: Descriptor, found: Manifest) -> None:
        """Make `target` findable for tools that look into index.json alone.

        What it holds is found through it from now on, and needs no entry of its own.
        """
        with self._files.lock():
            before = self._index()
            index = before.without(found.manifests)
            if not index.holds(target.digest):
                index = index.with_entry(target.plain)
            if index.entries != before.entries:
                self._files.put("index.json", [index.encode()])

    def _list(self, entry: Descriptor, subject: Descriptor) -> None:
        """Make `entry` a referrer of `subject`, in both places."""
        name = subject.digest.fallback_tag
        with self._files.lock():
            before = index = self._index()
            if not index.lists(entry.digest):
                # without annotations: one of them could make the entry a tag
                index = index.with_entry(replace(entry.plain, artifact_type=entry.artifact_type))
            try:
                listing = self._fallback(index, subject.digest)
            except (NotFound, IntegrityError):
                listing = None  # broken: a new one at least holds what is pushed from now on
            listing = Index.empty(f"{self._files.path}: tag {name}") if listing is None else listing
            if not listing.lists(entry.digest):
                raw = listing.with_entry(entry).encode()
                self._files.put(blob_path(Digest.of(raw)), [raw])
                index = index.with_tag(Descriptor.of(INDEX, raw), name, forget=True)
            if index is not before:
                self._files.put("index.json", [index.encode()])

    def _make(self) -> None:
        """Make an empty layout, unless there is one."""
        if self._made:
            return
        with self._files.lock():
            if self._files.identity("oci-layout") is None:
                self._files.put("oci-layout", [VERSION])
            if self._files.identity("index.json") is None:
                self._files.put("index.json", [Index.empty("index.json").encode()])
        self._made = True


def _entry(target: Descriptor, found: Manifest) -> Descriptor:
    return replace(target, annotations=found.annotations, artifact_type=found.artifact_type)


def _media_type(raw: bytes) -> str | None:
    """Tell what a document calls itself, or is by its members; None if it is no manifest."""
    try:
        document: Any = jsontext.decode(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    said = document.get("mediaType")
    if said is not None:
        return said if isinstance(said, str) and said in MANIFESTS | INDEXES else None
    if isinstance(document.get("manifests"), list):
        return INDEX
    return MANIFEST if "config" in document and "layers" in document else None
