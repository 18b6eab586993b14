"""Every place in a document that names an image, whatever kind of document it is."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from ocipack.k8s.images import flux, kinds, podspec
from ocipack.k8s.images.kustomize import Override
from ocipack.k8s.images.site import Confidence, Path, Site, Written, as_path
from ocipack.k8s.images.values import arguments, variable, walk, whole
from ocipack.k8s.resource import Resource

KUSTOMIZATION: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
"""Names of files that are kustomizations even if they do not say so."""

_VALUES: Final = re.compile(r"(?:.*[-_.])?values(?:[-_.].*)?\.ya?ml")
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_CORE: Final = frozenset({"", "apps", "batch", "extensions", "policy", "autoscaling"})
SEALED: Final = "the file is sealed by SOPS: changing it would break its seal"
_SCHEMA: Final = "it describes or matches images, and runs none"


def sites(value: Any, file: str, written: Written) -> Iterator[Site]:
    """The images that the document `value` of `file` names."""
    if not isinstance(value, Mapping):
        return
    found = _of(value, file, (), written)
    if is_sealed(value):
        found = (replace(site, reason=site.reason or SEALED) for site in found)
    yield from found


def overrides(value: Any, file: str) -> Iterator[Override]:
    """What the document does to images that stand elsewhere."""
    if isinstance(value, Mapping):
        yield from flux.overrides(*_kind(value, file), value)


def is_sealed(value: Any) -> bool:
    """Whether the document was sealed by SOPS, so that changing it would break its seal."""
    return isinstance(value, Mapping) and isinstance(value.get("sops"), Mapping)


def is_flux_source(value: Any) -> bool:
    """Whether the document names a place that Flux reads, and nothing there that has a digest."""
    return isinstance(value, Mapping) and _kind(value, "") in flux.SOURCES


def _kind(value: Mapping[str, Any], file: str) -> tuple[str, str]:
    version, kind = value.get("apiVersion"), value.get("kind")
    if not version and posixpath.basename(file) in KUSTOMIZATION:
        return "kustomize.config.k8s.io", "Kustomization"
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    return group, kind if isinstance(kind, str) else ""


def _of(value: Mapping[str, Any], file: str, path: Path, written: Written) -> Iterator[Site]:
    group, kind = _kind(value, file)
    items = value.get("items")
    if kind.endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            if isinstance(item, Mapping):
                yield from _of(item, file, (*path, "items", str(index)), written)
        return

    def below(inner: Path) -> str | None:
        return written((*path, *inner))

    for site in _in_object(value, group, kind, file, below):
        yield replace(site, path=(*path, *site.path), at=(*path, *site.at))


def _in_object(
    value: Mapping[str, Any], group: str, kind: str, file: str, written: Written
) -> Iterable[Site]:
    known = flux.sites(group, kind, value, written)
    if known is not None:
        return known
    if not kind:
        is_values = "apiVersion" not in value and _VALUES.fullmatch(posixpath.basename(file))
        return flux.chart_values(value, (), "values of a chart", written) if is_values else ()
    if kind in kinds.SCHEMAS or group in kinds.PATTERNS:
        return _described(value, kind, written)
    paths = kinds.KINDS.get((group, kind))
    if paths is not None:
        return _typed(value, paths, kind)
    if group in _CORE or group.endswith(".k8s.io"):
        return _pods(value, kind)
    return walk(value.get("spec"), ("spec",), f"field of a {kind}", written)


def _described(value: Mapping[str, Any], kind: str, written: Written) -> Iterator[Site]:
    for site in walk(value.get("spec"), ("spec",), f"field of a {kind}", written):
        yield replace(site, confidence=Confidence.MAYBE, reason=_SCHEMA)


def _pods(value: Mapping[str, Any], kind: str) -> Iterator[Site]:
    for pointer, text in podspec.images(Resource(value)):
        if text:
            path = as_path(pointer)
            what = "volume" if path[-1] == "reference" else "container"
            yield from whole(text, path, f"{what} of a {kind}", Confidence.CERTAIN)
    holder = podspec.holder(Resource(value))
    if holder is not None:
        yield from _in_containers(*holder, kind)


def _typed(value: Mapping[str, Any], paths: tuple[str, ...], kind: str) -> Iterator[Site]:
    for path, is_pod, found in kinds.places(paths, value):
        if is_pod and isinstance(found, Mapping):
            for pointer, text in podspec.in_spec(found):
                here = (*path, *as_path(pointer))
                if text:
                    yield from whole(text, here, f"container of a {kind}", Confidence.CERTAIN)
            yield from _in_containers(path, found, kind)
        elif isinstance(found, str) and found:
            yield from whole(found, path, f"field of a {kind}", Confidence.CERTAIN)


def _in_containers(path: Path, spec: Mapping[str, Any], kind: str) -> Iterator[Site]:
    """Images in the arguments and variables of containers: controllers run them later."""
    for field in _CONTAINERS:
        containers = spec.get(field)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            if not isinstance(container, Mapping):
                continue
            here = (*path, field, str(index))
            place = f"a {kind}"
            for key in ("command", "args"):
                yield from arguments(container.get(key), (*here, key), place)
            env = container.get("env")
            for number, entry in enumerate(env if isinstance(env, list) else ()):
                if isinstance(entry, Mapping):
                    yield from variable(entry, (*here, "env", str(number)), place)
