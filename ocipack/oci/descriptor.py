"""Descriptors: the edges of the content graph (OCI image-spec, descriptor.md)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from ocipack.errors import IntegrityError, Misuse
from ocipack.oci.digest import Digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_INDEX = "application/vnd.docker.distribution.manifest.list.v2+json"
EMPTY = "application/vnd.oci.empty.v1+json"

MANIFESTS = frozenset({MANIFEST, DOCKER_MANIFEST})
INDEXES = frozenset({INDEX, DOCKER_INDEX})

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What some bytes are, how many, and their digest.

    `size` is in bytes. Two descriptors are equal when all of that and their annotations are;
    the hash ignores annotations.
    """

    media_type: str
    digest: Digest
    size: int
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    artifact_type: str = ""

    def __post_init__(self) -> None:
        if self.size < 0:
            raise Misuse(f"{self.digest}: not a size: {self.size}")

    @classmethod
    def of(cls, media_type: str, data: bytes, annotations: Mapping[str, str] = _NOTHING) -> Self:
        """Describe `data`."""
        return cls(media_type, Digest.of(data), len(data), annotations)

    @classmethod
    def from_dict(cls, raw: object) -> Self:
        """Read the OCI JSON form.

        Raises Misuse or KeyError on a bad one; the caller, who knows what it reads, turns that
        into IntegrityError (`errors.malformed`).
        """
        if not isinstance(raw, dict):
            raise Misuse("a descriptor must be a JSON object")
        annotations = raw.get("annotations")
        annotations = {} if annotations is None else annotations
        if not isinstance(annotations, dict):
            raise Misuse("a descriptor's annotations must be a JSON object")
        if not all(isinstance(value, str) for value in annotations.values()):
            raise Misuse("a descriptor's annotations must be text")
        size = raw["size"]
        if not isinstance(size, int) or isinstance(size, bool):
            raise Misuse(f"not a size: {size!r}")
        return cls(
            _text(raw["mediaType"]),
            Digest.parse(_text(raw["digest"])),
            size,
            MappingProxyType(annotations) if annotations else _NOTHING,
            _text(raw.get("artifactType") or ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Write the OCI JSON form in the member order of Go's writers, without what is empty."""
        out: dict[str, Any] = {
            "mediaType": self.media_type,
            "size": self.size,
            "digest": str(self.digest),
        }
        if self.annotations:
            out["annotations"] = dict(self.annotations)
        if self.artifact_type:
            out["artifactType"] = self.artifact_type
        return out

    @property
    def is_manifest(self) -> bool:
        """Whether these bytes are a manifest or an index, of OCI or of Docker."""
        return self.media_type in MANIFESTS or self.media_type in INDEXES

    @property
    def plain(self) -> Self:
        """The same content without annotations and artifact type: how a store names it."""
        return replace(self, annotations=_NOTHING, artifact_type="")

    def check(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield `chunks`, raising IntegrityError before the end if they are not what we describe.

        The last piece is yielded only after the digest has been compared, and nothing past
        `size` bytes is taken: a consumer that got every byte got the right ones.
        """
        hasher, seen, held = self.digest.hasher(), 0, b""
        for chunk in chunks:
            seen += len(chunk)
            if seen > self.size:
                raise IntegrityError(f"{self.digest}: more than {self.size} bytes")
            hasher.update(chunk)
            if held:
                yield held
            held = chunk
        if seen != self.size:
            raise IntegrityError(f"{self.digest}: {seen} bytes, expected {self.size}")
        if hasher.hexdigest() != self.digest.hex:
            actual = f"{self.digest.algorithm}:{hasher.hexdigest()}"
            raise IntegrityError(f"{self.digest}: content has the digest {actual}")
        if held:
            yield held


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Misuse(f"must be text: {value!r}")
    return value
