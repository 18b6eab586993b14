"""What an archive says about itself, beside the images: a manifest of its own in the layout.

    artifactType  application/vnd.ocipack.airgap.v1+json, named `ocipack-airgap` in index.json
    config        the record: what index.json names, and what an earlier archive had already
    layers        files (lock, policies, public keys), each with its path as title annotation

So the layout stays a layout: `oras pull --oci-layout site.tar:ocipack-airgap` has the files, too.
Nothing here decides anything. What an archive holds is what its index.json names, the files are
copies for people, and who loads an archive brings policies and keys of their own.
docs/schemas/airgap-v1alpha1.json says the same for machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ocipack.errors import IntegrityError, Misuse, malformed
from ocipack.oci import jsontext
from ocipack.oci.descriptor import EMPTY, MANIFEST, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.layout import REF_NAME
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.tree.tree import check_name

API: Final = "ocipack.dev/v1alpha1"
KIND: Final = "AirgapArchive"
ARTIFACT_TYPE: Final = "application/vnd.ocipack.airgap.v1+json"
CONFIG_TYPE: Final = "application/vnd.ocipack.airgap.record.v1+json"
FILE_TYPE: Final = "application/octet-stream"
TITLE: Final = "org.opencontainers.image.title"
NAME: Final = "ocipack-airgap"
"""What the record is called in index.json: no reference, as it has no registry."""

BYTES: Final = 32 * 1024 * 1024
"""Bytes of a record: what is left out is listed blob by blob."""

FILES: Final = 1000
"""Files that come along with an archive."""

FILE_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one of them."""


@dataclass(frozen=True, slots=True, order=True)
class LeftOut:
    """A blob that is not in the archive, since an earlier one had it.

    `size` is in bytes; `repositories` are those in which the earlier archive had it, under their
    names at the origin.
    """

    digest: Digest
    size: int
    repositories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """What belongs together, what was left out, and which earlier archive had it.

    `index` is the digest of index.json without the entry of the record (`sealed`): nothing else
    in a layout vouches for names. `since` is the digest of the earlier archive's index.json. Misuse
    if something is left out and nothing is said of where it is.
    """

    index: Digest
    since: Digest | None = None
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if self.left_out and self.since is None:
            raise Misuse("blobs are left out, and nothing says which archive had them")
        object.__setattr__(self, "left_out", tuple(sorted(self.left_out)))

    def encode(self) -> bytes:
        """The JSON form."""
        said: dict[str, Any] = {"apiVersion": API, "kind": KIND, "index": str(self.index)}
        if self.since is not None:
            blobs = [_blob(one) for one in self.left_out]
            said["leftOut"] = {"since": str(self.since), "blobs": blobs}
        return jsontext.encode(said)

    @classmethod
    def decode(cls, raw: bytes) -> Record:
        """Read the JSON form; IntegrityError for anything else."""
        with malformed("the record of the archive"):
            said = _members(jsontext.decode(raw), {"apiVersion", "kind", "index"}, {"leftOut"})
            if (said["apiVersion"], said["kind"]) != (API, KIND):
                raise Misuse(f"not an {API} {KIND}")
            index = Digest.parse(said["index"])
            if "leftOut" not in said:
                return cls(index)
            left = _members(said["leftOut"], {"since", "blobs"})
            return cls(index, Digest.parse(left["since"]), tuple(map(_left_out, left["blobs"])))


def sealed(document: Mapping[str, Any]) -> Digest:
    """The digest of an index.json without the entry of the record, which cannot name itself."""
    entries = document.get("manifests") or []
    others = [entry for entry in entries if _name(entry) != NAME]
    return Digest.of(jsontext.encode({**document, "manifests": others}))


def _name(entry: object) -> object:
    annotations = entry.get("annotations") if isinstance(entry, dict) else None
    return annotations.get(REF_NAME) if isinstance(annotations, dict) else None


def _blob(one: LeftOut) -> dict[str, Any]:
    said: dict[str, Any] = {"digest": str(one.digest), "size": one.size}
    return {**said, "repositories": list(one.repositories)} if one.repositories else said


def _left_out(raw: object) -> LeftOut:
    said = _members(raw, {"digest", "size"}, {"repositories"})
    size, names = said["size"], said.get("repositories", [])
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise Misuse(f"not a size: {size!r}")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Misuse("repositories must be a list of names")
    for name in names:
        found = Reference.parse(name)
        if found.tag is not None or found.digest is not None:
            raise Misuse(f"not a repository: {name!r}")
    return LeftOut(Digest.parse(said["digest"]), size, tuple(names))


def _members(raw: object, needed: set[str], known: Iterable[str] = ()) -> Mapping[str, Any]:
    if not isinstance(raw, dict):
        raise Misuse("not a JSON object")
    if missing := sorted(needed - set(raw)):
        raise Misuse(f"{missing[0]} is missing")
    if strange := sorted(set(raw) - needed - set(known)):
        raise Misuse(f"the unknown member {strange[0][:80]!r}")
    return raw


@dataclass(frozen=True, slots=True)
class Papers:
    """The record and the files of an archive; `files` are contents by path.

    Misuse for a path that is not plain, or for more and longer files than are read again.
    """

    record: Record
    files: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.files:
            check_name(path)
        if len(self.files) > FILES:
            raise Misuse(f"{len(self.files)} files, and at most {FILES} go into an archive")
        for path, content in self.files.items():
            if len(content) > FILE_BYTES:
                raise Misuse(f"{path}: more than {FILE_BYTES} bytes")

    def manifest(self) -> tuple[Manifest, dict[Digest, bytes]]:
        """The manifest that stands for them, and its blobs."""
        raw = self.record.encode()
        config = Descriptor.of(CONFIG_TYPE, raw)
        blobs, layers = {config.digest: raw}, []
        for path, content in sorted(self.files.items()):
            layer = Descriptor.of(FILE_TYPE, content, {TITLE: path})
            blobs[layer.digest] = content
            layers.append(layer)
        if not layers:  # some readers want one
            layers = [Descriptor.of(EMPTY, b"{}")]
            blobs[layers[0].digest] = b"{}"
        document = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": ARTIFACT_TYPE,
            "config": config.to_dict(),
            "layers": [layer.to_dict() for layer in layers],
        }
        return Manifest.build(document), blobs


def titles(manifest: Manifest) -> dict[str, Descriptor]:
    """The files that a manifest made by `Papers` lists, by path; IntegrityError for another."""
    found: dict[str, Descriptor] = {}
    for layer in manifest.layers:
        if layer.media_type == EMPTY:
            continue
        path = layer.annotations.get(TITLE, "")
        with malformed("a file of the archive"):
            check_name(path)
        if path in found:
            raise IntegrityError(f"a file of the archive is there twice: {path[:200]!r}")
        found[path] = layer
    if len(found) > FILES:
        raise IntegrityError(f"more than {FILES} files come with the archive")
    return found
