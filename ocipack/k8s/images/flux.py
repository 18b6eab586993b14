"""Images and artifacts in Flux's objects, in Argo CD's Application, and in kustomizations.

Sources: the API reference of source-controller (OCIRepository), helm-controller (HelmRelease) and
kustomize-controller (Kustomization); Argo CD's Application specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocipack.k8s.images import kustomize
from ocipack.k8s.images.site import Confidence, Path, Site, Style, Written, judged
from ocipack.k8s.images.values import walk

ARGO: Final = "kustomize images of an Application"
"""What entries of Argo CD's Application are called: `[name=]image[:tag]`."""

_SCHEME: Final = "oci://"
_GLOBAL: Final = "global.imageRegistry decides the registry"


SOURCES: Final[Mapping[tuple[str, str], Path]] = {
    ("source.toolkit.fluxcd.io", "HelmRepository"): ("spec", "url"),
    ("image.toolkit.fluxcd.io", "ImageRepository"): ("spec", "image"),
}
"""Objects that name a place, and nothing in it that has a digest; and where they name it."""


def sites(group: str, kind: str, value: Mapping[str, Any], written: Written) -> list[Site] | None:
    """The images of one object; None if it is of a kind that this module does not know."""
    found = _READERS.get((group, kind))
    return list(found(value, written)) if found is not None else None


def overrides(group: str, kind: str, value: Mapping[str, Any]) -> Iterator[kustomize.Override]:
    """What an object does to images that stand elsewhere."""
    if (group, kind) in _KUSTOMIZATIONS:
        yield from kustomize.overrides(value.get("images"))
    elif (group, kind) == ("kustomize.toolkit.fluxcd.io", "Kustomization"):
        yield from kustomize.overrides(_get(value, "spec", "images"))


def _oci_repository(value: Mapping[str, Any], written: Written) -> Iterator[Site]:
    url, ref = _get(value, "spec", "url"), _get(value, "spec", "ref")
    if not isinstance(url, str):
        return
    place, path = "OCIRepository", ("spec", "ref")
    base = url.removeprefix(_SCHEME)
    reference = ref if isinstance(ref, Mapping) else {}
    tag, digest = (_field(reference, key, path, written) for key in ("tag", "digest"))
    text, reason = (f"{base}:{tag}" if tag else base), ""
    if digest:
        text = f"{text}@{digest}"
    elif reference.get("semver"):
        reason = "a range of versions: what it names changes with every release"
    elif not tag:
        reason = "neither tag nor digest is written there"
    has_key = "digest" in reference
    yield Site(
        path,
        (*path, "digest" if has_key else "tag"),
        text,
        place,
        Confidence.CERTAIN,
        Style.FILL if has_key else Style.KEY,
        kind="artifact",
        reason=reason or judged(text),
    )


def _helm_release(value: Mapping[str, Any], written: Written) -> Iterator[Site]:
    values = _get(value, "spec", "values")
    yield from chart_values(values, ("spec", "values"), "values of a HelmRelease", written)
    renderers = _get(value, "spec", "postRenderers")
    for index, renderer in enumerate(renderers if isinstance(renderers, list) else ()):
        path = ("spec", "postRenderers", str(index), "kustomize", "images")
        images = _get(renderer, "kustomize", "images")
        yield from kustomize.entries(images, path, "postRenderers of a HelmRelease", written)


def chart_values(values: Any, path: Path, place: str, written: Written) -> Iterator[Site]:
    """The images of a chart's values."""
    override = _get(values, "global", "imageRegistry")
    for site in walk(values, path, place, written):
        if override and site.path != site.at and not site.reason:
            yield Site(
                site.path,
                site.at,
                site.text,
                place,
                Confidence.MAYBE,
                site.style,
                reason=_GLOBAL,
            )
        else:
            yield site


def _flux_kustomization(value: Mapping[str, Any], written: Written) -> Iterator[Site]:
    images = _get(value, "spec", "images")
    place = "images of a Flux Kustomization"
    yield from kustomize.entries(images, ("spec", "images"), place, written)


def _kustomization(value: Mapping[str, Any], written: Written) -> Iterator[Site]:
    yield from kustomize.entries(
        value.get("images"), ("images",), "images of a kustomization", written
    )
    charts = value.get("helmCharts")
    for index, chart in enumerate(charts if isinstance(charts, list) else ()):
        path = ("helmCharts", str(index), "valuesInline")
        inline = _get(chart, "valuesInline")
        yield from chart_values(inline, path, "valuesInline of a kustomization", written)


def _application(value: Mapping[str, Any], written: Written) -> Iterator[Site]:
    source, several = _get(value, "spec", "source"), _get(value, "spec", "sources")
    found: list[tuple[Path, Any]] = [(("spec", "source"), source)]
    for index, one in enumerate(several if isinstance(several, list) else ()):
        found.append((("spec", "sources", str(index)), one))
    for path, one in found:
        images = _get(one, "kustomize", "images")
        yield from kustomize.strings(images, (*path, "kustomize", "images"), ARGO)
        values = _get(one, "helm", "valuesObject")
        yield from chart_values(
            values, (*path, "helm", "valuesObject"), "values of an Application", written
        )


def _nothing(_: Mapping[str, Any], __: Written) -> Iterator[Site]:
    """A kind that names no image that could be pinned, whatever its fields are called."""
    return iter(())


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _field(value: Mapping[str, Any], key: str, path: Path, written: Written) -> str:
    """A field that is text by its type, as it is written."""
    found = value.get(key)
    if found is None or isinstance(found, Mapping | list):
        return ""
    said = written((*path, key))
    return said if said is not None else str(found)


_KUSTOMIZE: Final = "kustomize.config.k8s.io"
_KUSTOMIZATIONS: Final = ((_KUSTOMIZE, "Kustomization"), (_KUSTOMIZE, "Component"))
_READERS: Final = {
    ("source.toolkit.fluxcd.io", "OCIRepository"): _oci_repository,
    ("helm.toolkit.fluxcd.io", "HelmRelease"): _helm_release,
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): _flux_kustomization,
    ("image.toolkit.fluxcd.io", "ImageRepository"): _nothing,
    ("image.toolkit.fluxcd.io", "ImagePolicy"): _nothing,
    ("argoproj.io", "Application"): _application,
    **dict.fromkeys(_KUSTOMIZATIONS, _kustomization),
}
