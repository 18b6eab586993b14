"""Find everything that could be a signature of a subject, lazily, and remember what was not read.

Nothing is decided here. Places are the tag `sha256-<hex>.sig` and the listing of referrers, in this
order, because the tag costs one request when it is empty and settles most verdicts when it is not.
Where attestations are asked for, the tag `sha256-<hex>.att` is read between the two.
One piece of junk never ends a search: what is malformed becomes a finding, what could not be read
is remembered, and the search goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError, NotFound, StoreError
from ocipack.oci import store
from ocipack.oci.descriptor import Descriptor
from ocipack.report import Finding, Severity
from ocipack.trust import bundle, cosign

if TYPE_CHECKING:
    from ocipack.oci.digest import Digest
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source

LISTED = 1000
"""Referrers, and layers of a `.sig` manifest, that one verification looks at."""

FETCHED = 32 * 1024 * 1024
"""Bytes that one verification fetches in search of signatures."""

SIGNATURE = 1024 * 1024
"""Bytes of a payload or bundle that can be a signature; real ones have a few thousand."""

ATTESTATION = 16 * 1024 * 1024
"""Bytes of an envelope or bundle where attestations are asked for: a bill of materials is long."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a `.sig` manifest, and its payload exactly as stored."""

    place: str
    layer: Descriptor
    payload: bytes


@dataclass(frozen=True, slots=True)
class Referrer:
    """A manifest that holds a bundle: the subject it names itself, and the bundle as stored."""

    place: str
    subject: Digest | None
    bundle: bytes


@dataclass(frozen=True, slots=True)
class Attached:
    """A layer of an `.att` manifest: a DSSE envelope exactly as stored."""

    place: str
    envelope: bytes


Candidate = Layer | Attached | Referrer


class Search:
    """One search for signatures of `subject`: what it found, and what it could not read.

    `findings` tells of what was seen and cannot be a signature; `unread` of places that could
    hold one and gave no answer, each with its error. Both grow while the iterators are consumed.
    """

    def __init__(
        self,
        source: Source,
        subject: Descriptor,
        *,
        signatures: bool = True,
        attestations: bool = False,
    ) -> None:
        self.findings: list[Finding] = []
        self.unread: list[tuple[str, StoreError]] = []
        self._source, self._subject = source, subject
        self._signatures, self._attestations = signatures, attestations
        self._limit = ATTESTATION if attestations else SIGNATURE
        self._left = FETCHED
        self._blobs: dict[Digest, bytes] = {}

    def candidates(self) -> Iterator[Candidate]:
        """Everything that is asked for, from every place."""
        if self._signatures:
            yield from self.legacy()
        if self._attestations:
            yield from self.attached()
        yield from self.bundles()

    def legacy(self) -> Iterator[Layer]:
        """The layers of the `.sig` manifest."""
        if self._subject.digest.algorithm == "sha256":
            place = cosign.tag(self._subject.digest)
            for where, layer, raw in self._layers(place, "signature", cosign.PAYLOAD, SIGNATURE):
                yield Layer(where, layer, raw)

    def attached(self) -> Iterator[Attached]:
        """The layers of the `.att` manifest."""
        if self._subject.digest.algorithm == "sha256":
            place = cosign.tag(self._subject.digest, cosign.ATTESTATIONS)
            for where, _, raw in self._layers(place, "attestation", cosign.ENVELOPE, ATTESTATION):
                yield Attached(where, raw)

    def _layers(
        self, place: str, what: str, kind: str, limit: int
    ) -> Iterator[tuple[str, Descriptor, bytes]]:
        """The layers of type `kind` of the manifest at the tag `place`, each with its content."""
        layers: list[Descriptor] = []
        with self._reading(place):
            root = self._resolve(place)
            listed = self._manifest(root).layers if root is not None else ()
            layers = [layer for layer in listed if layer.media_type == kind]
        for number, layer in enumerate(layers):
            where = f"{place}, {what} {number + 1}"
            if number == LISTED:
                self.unread.append((where, StoreError(f"only the first {LISTED} are looked at")))
                return
            payload = None
            with self._reading(where):
                payload = self._read(layer, limit)
            if payload is not None:
                yield where, layer, payload

    def bundles(self, *, only_likely: bool = False) -> Iterator[Referrer]:
        """The bundles among the referrers; `only_likely` believes the listing and reads less."""
        for listed in self._listed():
            if only_likely and not bundle.likely(listed):
                return
            place = f"referrer {listed.digest}"
            found = None
            with self._reading(place):
                found = self._referrer(place, listed)
            if found is not None:
                yield found

    def _referrer(self, place: str, listed: Descriptor) -> Referrer | None:
        manifest = self._manifest(listed)
        layer = bundle.layer(manifest)
        if layer is None:
            self._note(place, f"is no bundle ({manifest.artifact_type[:80]!r})")
            return None
        subject = manifest.subject
        return Referrer(place, subject.digest if subject else None, self._read(layer, self._limit))

    def _listed(self) -> list[Descriptor]:
        """The referrers as listed, each once, those that look like signatures first."""
        found: dict[Descriptor, Descriptor] = {}
        with self._reading("referrers"), _listing():
            for listed in self._source.referrers(self._subject):
                if listed.digest == self._subject.digest:
                    continue  # some registries answer the fallback tag with the subject itself
                if len(found) == LISTED and listed.plain not in found:
                    raise StoreError(f"only the first {LISTED} are looked at")
                found.setdefault(listed.plain, listed)
        if not found:
            self._note("referrers", "none is listed")
        return sorted(found.values(), key=lambda listed: not bundle.likely(listed))

    def _resolve(self, name: str) -> Descriptor | None:
        try:
            return self._source.resolve(name)
        except NotFound:
            self._note(name, "there is no such tag")
            return None

    def _manifest(self, target: Descriptor) -> Manifest:
        self._spend(target, store.MANIFEST_LIMIT)
        return store.manifest(self._source, target)

    def _read(self, target: Descriptor, limit: int) -> bytes:
        """Read a blob, once: several signatures can share a payload."""
        if target.digest not in self._blobs:
            self._spend(target, limit)
            self._blobs[target.digest] = store.read(self._source, target, limit=limit)
        return self._blobs[target.digest]

    def _spend(self, target: Descriptor, limit: int) -> None:
        """Account for `target`; what is over `limit` is refused by the reader, for nothing."""
        if target.size > limit:
            return
        if target.size > self._left:
            raise StoreError(f"{FETCHED} bytes have been fetched in search of a signature")
        self._left -= target.size

    @contextmanager
    def _reading(self, place: str) -> Iterator[None]:
        """Turn what goes wrong at `place` into something to report at the end."""
        try:
            yield
        except StoreError as e:
            self.unread.append((place, e))
        except IntegrityError as e:
            self.findings.append(Finding("signature-malformed", str(e), subject=place))

    def _note(self, place: str, message: str) -> None:
        self.findings.append(Finding("signature-place", message, Severity.NOTE, subject=place))


@contextmanager
def _listing() -> Iterator[None]:
    """A list that cannot be understood says nothing, least of all that it is empty."""
    try:
        yield
    except IntegrityError as e:
        raise StoreError(str(e), hint=e.hint) from e
