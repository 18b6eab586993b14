"""What one object names: images in every place that `k8s.images` knows, and what is fetched.

What may be an image, or hides one where nobody looks, is `Unseen`: it is listed, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ocipack.flux import sources
from ocipack.k8s.images import find, kinds, podspec
from ocipack.k8s.images.kustomize import KEEPS
from ocipack.k8s.images.site import Confidence, Site, Written, as_path
from ocipack.k8s.images.values import IMAGE_KEY
from ocipack.k8s.resource import Resource
from ocipack.report import Severity
from ocipack.trust.policy.contents import IMAGE, SOURCE, Part
from ocipack.verify import hidden
from ocipack.verify.namings import SHOWN, Named, Path, Unseen, image, in_pod


def nested(value: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Resource]]:
    """The object `value`, and every whole object inside it: some controllers create those."""
    yield path, Resource(value)
    waiting: list[tuple[Path, Any]] = [(path, value)]
    while waiting:
        at, node = waiting.pop()
        items = enumerate(node) if isinstance(node, list) else ()
        fields = node.items() if isinstance(node, Mapping) else items
        below = [((*at, str(key)), child) for key, child in fields]
        waiting += [(here, child) for here, child in below if isinstance(child, Mapping | list)]
        is_whole = isinstance(node, Mapping) and isinstance(node.get("spec"), Mapping)
        if at != path and is_whole and Resource(node).kind and Resource(node).api_version:
            yield at, Resource(node)


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
    runs = _runs(resource)
    known: set[Path] = set()
    for site in find.sites(value, file, written):
        known |= {site.path, site.at}
        if site.confidence is Confidence.MAYBE:
            if runs and in_pod(site.at):  # without a tag, too, a pod runs it
                yield Named(image(site.text), site.at, f"container of a {resource.kind}")
            else:
                yield _doubtful(site)
        elif site.kind == IMAGE:  # what is fetched is read below, with what fixes it
            yield Named(_image(site), site.at, site.place)
    for pointer, text in podspec.images(resource):
        if not text:
            part = Part(IMAGE, "no image", reason="there is none")
            yield Named(part, as_path(pointer), f"container of a {resource.kind}")
    yield from _lookalikes(resource, value, (), known)
    for path, inner in nested(value) if runs else ():
        for fetch in sources.fetches(inner.group, inner.kind, inner.value):
            where = (*path, *fetch.path)
            yield Named(_source(fetch), where, f"source in a {inner.kind}", fetch.link)
        yield from hidden.changes(inner, path)
    yield from hidden.unclear(resource)
    yield from hidden.listed(resource)


def _image(site: Site) -> Part:
    return image(site.text, site.reason)


def _doubtful(site: Site) -> Unseen:
    if site.reason == KEEPS:
        return Unseen("images that get another name, and keep their tags", Severity.WARNING)
    reason = f": {site.reason}" if site.reason else ""
    return Unseen(f"may be an image, or none{reason}")


def _runs(resource: Resource) -> bool:
    """Whether what is shaped like a pod runs: what describes or matches images runs none."""
    return resource.kind not in kinds.SCHEMAS and resource.group not in kinds.PATTERNS


def _lookalikes(
    resource: Resource, value: Any, path: Path, known: set[Path]
) -> Iterator[Named | Unseen]:
    """Images of what is shaped like a pod, and fields that are called so, but for those `known`."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _lookalikes(resource, item, (*path, str(index)), known)
    if not isinstance(value, Mapping):
        return
    runs = _runs(resource)
    for key, child in value.items():
        here = (*path, key)
        if not path and key in ("metadata", "status"):
            continue
        if isinstance(child, Mapping | list):
            yield from _lookalikes(resource, child, here, known)
        elif isinstance(child, str) and child and here not in known:
            if runs and in_pod(here):
                yield Named(image(child), here, f"container of a {resource.kind}")
            elif IMAGE_KEY.fullmatch(key):
                yield Unseen("a field called image, and no image for sure")


def _source(fetch: sources.Fetch) -> Part:
    return Part(
        SOURCE,
        fetch.text[:SHOWN],
        fetch.reference,
        fetch.address,
        fetch.pinned,
        fetch.missing,
        fetch.reason,
        fetch.ranges,
    )
