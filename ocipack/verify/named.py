"""What one object names: images in every place that `k8s.images` knows, and what is fetched.

What may be an image, or hides one where nobody looks, is `Unseen`: it is listed, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ocipack.errors import Misuse
from ocipack.flux import sources
from ocipack.k8s.images import find, kinds, podspec
from ocipack.k8s.images.site import Confidence, Site, Written, as_path
from ocipack.k8s.images.values import IMAGE_KEY
from ocipack.k8s.resource import Resource
from ocipack.oci.reference import Reference
from ocipack.report import Severity
from ocipack.trust.policy.contents import IMAGE, SOURCE, Part

Path: TypeAlias = tuple[str, ...]

_SHOWN: Final = 300
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_TEXTS: Final = {
    "ConfigMap": ("data", "binaryData"),
    "Secret": ("data", "stringData"),
}
_PATCHES: Final = ("patches", "patchesStrategicMerge", "patchesJson6902", "components")
_KUSTOMIZE: Final = "kustomize.toolkit.fluxcd.io"


@dataclass(frozen=True, slots=True)
class Named:
    """A part, the path in the object that names it, and what that place is for people.

    `link` is the object that says where a chart comes from.
    """

    part: Part
    path: Path
    place: str
    link: sources.Link | None = None


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something of an object that nobody looked at, and why."""

    reason: str
    severity: Severity = Severity.NOTE


def objects(value: Any, path: Path = ()) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The objects in a document, Lists unrolled: each item may leave to the list what it is."""
    if not isinstance(value, Mapping):
        return
    kind, items = value.get("kind"), value.get("items")
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
        yield path, value
        return
    frame = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    for index, item in enumerate(items):
        if isinstance(item, Mapping):
            whole = {**frame, **item} if kind != "List" else item
            yield from objects(whole, (*path, "items", str(index)))


def named(value: Mapping[str, Any], file: str, written: Written) -> Iterator[Named | Unseen]:
    """Everything that the object `value` of `file` names, and what in it is not looked at.

    `written` tells how scalars are written. Why a place cannot be edited (it is sealed by SOPS, or
    a chart decides the tag) does not matter here: what stands there is judged.
    """
    resource = Resource(value)
    known: set[Path] = set()
    for site in find.sites(value, file, written):
        known |= {site.path, site.at}
        if site.confidence is Confidence.MAYBE:
            reason = f": {site.reason}" if site.reason else ""
            yield Unseen(f"may be an image, or none{reason}")
        elif site.kind == IMAGE:  # what is fetched is read below, with what fixes it
            yield Named(_image(site), site.at, site.place)
    for pointer, text in podspec.images(resource):
        if not text:
            part = Part(IMAGE, "no image", reason="there is none")
            yield Named(part, as_path(pointer), f"container of a {resource.kind}")
    yield from _lookalikes(resource, value, (), known)
    for fetch in sources.fetches(resource.group, resource.kind, value):
        yield Named(_source(fetch), fetch.path, f"source in a {resource.kind}", fetch.link)
    yield from _unseen(resource)


def _image(site: Site) -> Part:
    return _part(site.text, site.reason)


def _part(text: str, reason: str = "") -> Part:
    try:
        reference = Reference.familiar(text)
    except Misuse as e:
        return Part(IMAGE, text[:_SHOWN], reason=reason or str(e))
    return Part(IMAGE, text[:_SHOWN], reference, pinned=reference.digest is not None)


def _lookalikes(
    resource: Resource, value: Any, path: Path, known: set[Path]
) -> Iterator[Named | Unseen]:
    """Images of what is shaped like a pod, and fields that are called so, but for those `known`.

    What describes or matches images runs none, whatever shape it has.
    """
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _lookalikes(resource, item, (*path, str(index)), known)
    if not isinstance(value, Mapping):
        return
    runs = resource.kind not in kinds.SCHEMAS and resource.group not in kinds.PATTERNS
    for key, child in value.items():
        here = (*path, key)
        if not path and key in ("metadata", "status"):
            continue
        if isinstance(child, Mapping | list):
            yield from _lookalikes(resource, child, here, known)
        elif isinstance(child, str) and child and here not in known:
            if runs and _in_pod(here):
                yield Named(_part(child), here, f"container of a {resource.kind}")
            elif IMAGE_KEY.fullmatch(key):
                yield Unseen("a field called image, and no image for sure")


def _in_pod(path: Path) -> bool:
    """Whether the text at `path` is the image of a container, or of a volume."""
    container = path[-3:-2] and path[-3] in _CONTAINERS and path[-1] == "image"
    return bool(container) or (path[-4:-3] == ("volumes",) and path[-2:] == ("image", "reference"))


def _source(fetch: sources.Fetch) -> Part:
    return Part(
        SOURCE,
        fetch.text[:_SHOWN],
        fetch.reference,
        fetch.address,
        fetch.pinned,
        fetch.missing,
        fetch.reason,
        fetch.ranges,
    )


def _unseen(resource: Resource) -> Iterator[Unseen]:
    """What an object does, or holds, that is not judged here."""
    value, kind = resource.value, resource.kind
    if any(value.get(key) for key in _TEXTS.get(kind, ()) if not resource.group):
        yield Unseen(f"the text in a {kind}")
    if isinstance(value.get("sops"), Mapping):
        yield Unseen("what SOPS has sealed")
    spec = value.get("spec")
    if (resource.group, kind) == ("helm.toolkit.fluxcd.io", "HelmRelease"):
        yield Unseen("the images that a chart names itself", Severity.WARNING)
    if resource.group == "argoproj.io" and kind in ("Application", "ApplicationSet"):
        yield Unseen("what Argo CD deploys from other places", Severity.WARNING)
    is_flux = (resource.group, kind) == (_KUSTOMIZE, "Kustomization")
    if is_flux and isinstance(spec, Mapping) and any(spec.get(key) for key in _PATCHES):
        yield Unseen("patches and components that Flux applies in the cluster", Severity.WARNING)
