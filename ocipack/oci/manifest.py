"""Manifests and indexes: bytes first, view second (OCI image-spec, manifest.md, image-index.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from ocipack.errors import IntegrityError, malformed
from ocipack.oci import jsontext
from ocipack.oci.descriptor import INDEXES, MANIFESTS, Descriptor

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Manifest:
    """A manifest or index exactly as stored; `raw` is what is hashed, signed and copied.

    The view is made on demand and raises IntegrityError where the bytes are not what their
    media type says. A document that could be read both as a manifest and as an index is refused
    (GHSA-77vh-xpmg-72qh): two readers would see two closures under one digest.
    """

    raw: bytes
    media_type: str

    @classmethod
    def build(cls, document: Mapping[str, Any]) -> Self:
        """Serialise `document`, which names its own mediaType, in the order given."""
        return cls(jsontext.encode(document), document["mediaType"])

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The parsed view; members that we do not know stay where they were."""
        name = f"manifest {self.descriptor.digest}"
        with malformed(name):
            document = jsontext.decode(self.raw)
        if not isinstance(document, dict):
            raise IntegrityError(f"{name}: not a JSON object")
        if self.media_type not in MANIFESTS and self.media_type not in INDEXES:
            raise IntegrityError(f"{name}: {self.media_type!r} is neither a manifest nor an index")
        if document.get("mediaType", self.media_type) != self.media_type:
            said = document["mediaType"]
            raise IntegrityError(f"{name}: says {said!r}, was found as {self.media_type!r}")
        foreign = ("config", "layers") if self.is_index else ("manifests",)
        if any(member in document for member in foreign) or "fsLayers" in document:
            raise IntegrityError(f"{name}: could be read both as a manifest and as an index")
        return document

    @cached_property
    def descriptor(self) -> Descriptor:
        """Describe `raw`."""
        return Descriptor.of(self.media_type, self.raw)

    @property
    def is_index(self) -> bool:
        """Whether this lists manifests rather than layers."""
        return self.media_type in INDEXES

    @cached_property
    def config(self) -> Descriptor:
        """The config of a manifest; IntegrityError if there is none."""
        return self._one("config")

    @cached_property
    def layers(self) -> tuple[Descriptor, ...]:
        """The layers of a manifest, in order; empty for an index."""
        return self._many("layers")

    @cached_property
    def manifests(self) -> tuple[Descriptor, ...]:
        """The entries of an index, in order; empty for a manifest."""
        return self._many("manifests")

    @cached_property
    def children(self) -> tuple[Descriptor, ...]:
        """Everything this needs in order to be complete, each once; its subject is not needed."""
        found = self.manifests if self.is_index else (self.config, *self.layers)
        return tuple(dict.fromkeys(child.plain for child in found))

    @cached_property
    def subject(self) -> Descriptor | None:
        """What this refers to, if anything."""
        return self._one("subject") if self.document.get("subject") is not None else None

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations; IntegrityError unless text to text."""
        found = self.document.get("annotations")
        found = {} if found is None else found
        if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
            raise IntegrityError(f"manifest {self.descriptor.digest}: annotations must be text")
        return found

    @property
    def artifact_type(self) -> str:
        """What a listing of referrers shows: artifactType, else the config's media type."""
        said = self.document.get("artifactType")
        if isinstance(said, str) and said:
            return said
        return "" if self.is_index else self.config.media_type

    @property
    def referrer(self) -> Descriptor:
        """Describe this as a listing of referrers does: with artifact type and annotations."""
        return replace(
            self.descriptor, annotations=self.annotations, artifact_type=self.artifact_type
        )

    def _one(self, member: str) -> Descriptor:
        with malformed(f"manifest {self.descriptor.digest}: {member}"):
            return Descriptor.from_dict(self.document[member])

    def _many(self, member: str) -> tuple[Descriptor, ...]:
        nodes = self.document.get(member) or ()
        with malformed(f"manifest {self.descriptor.digest}: {member}"):
            return tuple(Descriptor.from_dict(node) for node in nodes)
