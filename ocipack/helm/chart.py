"""The archive of a chart, and the artifact that it is in a registry (helm v4, pkg/registry).

`helm push` makes a manifest without a mediaType, whose config is Chart.yaml as JSON, and whose
layers are the archive and, if there is one, its provenance file, in the order of their digests.
Ours has the same bytes but for the annotation `org.opencontainers.image.created`: Helm writes the
time of the file on the disk of whoever pushes. Without it the same chart is always the same
artifact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from ocipack.errors import IntegrityError, malformed
from ocipack.helm import metadata
from ocipack.helm.metadata import CHART, REQUIREMENTS, Metadata
from ocipack.oci import jsontext
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import MANIFEST, Descriptor
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import TAG
from ocipack.tree import unarchive
from ocipack.tree.limits import Limits, MiB

CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
PROVENANCE: Final = "application/vnd.cncf.helm.chart.provenance.v1.prov"

ARCHIVE: Final = 32 * MiB
"""Bytes of a chart's archive; Flux takes 10 MiB unless told otherwise."""

LIMITS: Final = Limits(tar=100 * MiB, entries=20_000, names=4 * MiB, free=16 * MiB, layer=ARCHIVE)
"""What an archive may turn into; Helm unpacks 100 MiB."""

PROVENANCE_BYTES: Final = 1 * MiB
"""Bytes of a provenance file."""

SIGNED: Final = b"-----BEGIN PGP SIGNED MESSAGE-----"
"""How a provenance file begins."""

_BOM: Final = b"\xef\xbb\xbf"
_OCI: Final = "org.opencontainers.image."


def tag(version: str) -> str:
    """The tag of a chart's version: tags cannot have a `+`."""
    return version.replace("+", "_")


def is_tag(text: str) -> bool:
    """Whether a version can be a tag."""
    return TAG.fullmatch(text) is not None


def files(
    archive: bytes, *, limit: int, wanted: Callable[[str], bool], limits: Limits = LIMITS
) -> dict[str, bytes]:
    """The files of a chart that are `wanted`, by their names below its directory.

    Each has at most `limit` bytes. IntegrityError for an archive that could be read in two ways
    (`tree.unarchive`), that holds two charts, or that is past `limits`.
    """
    if len(archive) > limits.layer:
        raise IntegrityError(f"a chart of more than {limits.layer} bytes")
    found: dict[str, bytes] = {}
    top = ""
    for entry in unarchive.read([archive], size=len(archive), limits=limits):
        first, slash, name = entry.name.partition("/")
        if not slash or (top and first != top):
            raise IntegrityError(f"not a chart: {entry.name[:200]!r} is not in its directory")
        top = first
        if not wanted(name):
            continue
        if entry.size > limit:
            raise IntegrityError(f"{name[:200]}: longer than {limit} bytes")
        found[name] = b"".join(entry.content).removeprefix(_BOM)
    return found


@dataclass(frozen=True, slots=True)
class Package:
    """A chart as the artifact that it is in a registry."""

    metadata: Metadata
    artifact: Artifact
    content: Descriptor

    @classmethod
    def of(cls, archive: bytes, provenance: bytes | None = None) -> Self:
        """Make it from the bytes of the archive and of its provenance file.

        IntegrityError if the one is no chart, or the other is not about it.
        """
        said = described(archive)
        layers = {Descriptor.of(CONTENT, archive): archive}
        content = next(iter(layers))
        if provenance is not None:
            _about(provenance, content)
            layers[Descriptor.of(PROVENANCE, provenance)] = provenance
        config = Descriptor.of(CONFIG, said.config)
        blobs = {config.digest: said.config} | {one.digest: data for one, data in layers.items()}
        document = {
            "schemaVersion": 2,
            "config": _entry(config),
            "layers": [_entry(one) for one in sorted(layers, key=lambda one: str(one.digest))],
            "annotations": dict(sorted(shown(said).items())),
        }
        return cls(said, Artifact(Manifest(jsontext.encode(document), MANIFEST), blobs), content)


def described(archive: bytes) -> Metadata:
    """What the chart in an archive says of itself."""
    known = (CHART, REQUIREMENTS)
    found = files(archive, limit=metadata.BYTES, wanted=lambda name: name in known)
    if CHART not in found:
        raise IntegrityError(f"not a chart: there is no {CHART} in it")
    with malformed(CHART):
        return Metadata.read(found[CHART], found.get(REQUIREMENTS))


def _about(provenance: bytes, content: Descriptor) -> None:
    """Whether a provenance file is one, of this very archive; who signed it is not looked at."""
    if not provenance.startswith(SIGNED) or str(content.digest).encode() not in provenance:
        raise IntegrityError(f"the provenance file is not about {content.digest}")


def _entry(one: Descriptor) -> dict[str, object]:
    return {"mediaType": one.media_type, "digest": str(one.digest), "size": one.size}


def shown(said: Metadata) -> Mapping[str, str]:
    """The annotations of the manifest: facts of Chart.yaml under OCI's names, and its own."""
    fields = said.fields
    sources = fields.get("sources") or [""]
    people = []
    for one in fields.get("maintainers", ()):
        email = f" ({one['email']})" if "email" in one else ""
        people.append(f"{one.get('name', '')}{email}")
    facts = {
        "description": fields.get("description", ""),
        "title": said.name,
        "version": said.version,
        "url": fields.get("home", ""),
        "source": sources[0],
        "authors": ", ".join(people),
    }
    found = {f"{_OCI}{name}": text for name, text in facts.items() if text.strip()}
    own = ("title", "version")
    more = {key: text for key, text in said.notes.items() if key.removeprefix(_OCI) not in own}
    return found | more
