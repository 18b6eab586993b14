"""What an object does that could put an image where nobody looks.

1. Flux applies inline patches of its Kustomizations and HelmReleases to what was built: an image
   that one of them puts into a container is judged like one that stands there
2. Flux substitutes variables in the text of an object, and opens what SOPS has sealed, so that a
   field, a kind or a group may be called otherwise in the cluster: such a one is refused
3. all else that a controller makes of an object, and text that may hold manifests, is listed
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from ocipack.errors import IntegrityError
from ocipack.k8s.images.kinds import SCHEMAS
from ocipack.k8s.images.site import as_path
from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import read as documents
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.report import Severity
from ocipack.trust.policy.contents import IMAGE, Part
from ocipack.verify.namings import SHOWN, Named, Path, Unseen, image, in_pod

_TEXTS: Final = {
    "ConfigMap": ("data", "binaryData"),
    "Secret": ("data", "stringData"),
}
_PATCHES: Final = ("patches", "patchesStrategicMerge", "patchesJson6902", "components")
_KUSTOMIZATION: Final = ("kustomize.toolkit.fluxcd.io", "Kustomization")
_RELEASE: Final = ("helm.toolkit.fluxcd.io", "HelmRelease")
_INSTANCE: Final = ("fluxcd.controlplane.io", "FluxInstance")
_OPERATOR: Final = "fluxcd.controlplane.io"
_SEALED: Final = "ENC["
_ADDRESSES: Final = ("oci://", "docker://")
_SUBSTITUTE: Final = "kustomize.toolkit.fluxcd.io/substitute"
_VARIABLE: Final = "${"
_SPEAKS: Final = re.compile(r"\bimage[\"'\\]*\s*[:,=]", re.IGNORECASE)
_MUTATING: Final = frozenset(
    {"Assign", "AssignImage", "AssignMetadata", "ModifySet", "MutatingAdmissionPolicy"}
    | {"MutatingWebhookConfiguration", "MutatingPolicy", "NamespacedMutatingPolicy"}
    | {"GeneratingPolicy", "NamespacedGeneratingPolicy"}
)
_RULES: Final = ("mutate", "generate")


def changes(resource: Resource, path: Path = ()) -> Iterator[Named | Unseen]:
    """What Flux does to manifests for the object at `path` (1)."""
    group, value = (resource.group, resource.kind), resource.value
    spec = value.get("spec")
    if not isinstance(spec, Mapping) or group not in (_KUSTOMIZATION, _RELEASE, _INSTANCE):
        return
    places = [((*path, "spec"), spec)] if group == _KUSTOMIZATION else []
    if isinstance(spec.get("kustomize"), Mapping):
        places.append(((*path, "spec", "kustomize"), spec["kustomize"]))
    for index, one in enumerate(_list(spec.get("postRenderers"))):
        inner = one.get("kustomize") if isinstance(one, Mapping) else None
        if isinstance(inner, Mapping):
            places.append(((*path, "spec", "postRenderers", str(index), "kustomize"), inner))
    for where, holder in places:
        if any(holder.get(key) for key in _PATCHES):
            reason = "patches and components that Flux applies in the cluster"
            yield Unseen(reason, Severity.WARNING)
        for key in _PATCHES[:-1]:
            for index, patch in enumerate(_list(holder.get(key))):
                yield from _patched(patch, (*where, key, str(index)), resource.kind)
    if group == _KUSTOMIZATION and spec.get("postBuild"):
        yield Unseen("variables that Flux fills in, in the cluster")


def _patched(patch: Any, where: Path, kind: str) -> Iterator[Named]:
    """The images that a patch puts into containers; a patch may be a text in an object."""
    at, text = where, patch
    if isinstance(patch, Mapping) and "patch" in patch:
        at, text = (*where, "patch"), patch["patch"]
    found: list[Any] = [text]
    if isinstance(text, str):
        found = []
        with suppress(IntegrityError):  # Flux cannot read the rest either
            for one in documents(text.encode(errors="replace"), Dialect.FLUX, strict=False):
                found.append(one.value)  # what came before an error counts
    for value in found:
        for inner, said in _puts(value):
            if in_pod(inner):
                yield Named(said, at, f"patch of a {kind}")


def _puts(value: Any) -> Iterator[tuple[Path, Part]]:
    """Where a patch puts which text: one like the object, or a list of operations (RFC 6902)."""
    if not isinstance(value, list):
        yield from _texts(value, ())
        return
    for one in value:
        place = one.get("path") if isinstance(one, Mapping) else None
        if not isinstance(place, str):
            continue
        if "value" in one:
            yield from _texts(one["value"], as_path(place))
        elif one.get("op") in ("copy", "move"):
            reason = "a patch takes it from elsewhere"
            yield as_path(place), Part(IMAGE, str(one.get("from"))[:SHOWN], reason=reason)


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, Part]]:
    waiting: list[tuple[Path, Any]] = [(path, value)]
    while waiting:
        at, node = waiting.pop()
        if isinstance(node, str):
            yield at, image(node)
        waiting += _below(at, node)


def _below(at: Path, node: Any) -> list[tuple[Path, Any]]:
    fields = node.items() if isinstance(node, Mapping) else enumerate(_list(node))
    return [((*at, str(key)), child) for key, child in fields]


def unclear(resource: Resource) -> Iterator[Named | Unseen]:
    """Names of fields, groups and kinds that are variables, if Flux substitutes here (2)."""
    if _is_literal(resource) or resource.kind in SCHEMAS:
        return
    where = "variables, which are anything if Flux substitutes them"
    waiting: list[tuple[Path, Any]] = [((), _without_texts(resource))]
    while waiting:
        at, node = waiting.pop()
        name = at[-1] if at else ""
        is_told = at in (("apiVersion",), ("kind",)) and isinstance(node, str)
        is_told = is_told and (_VARIABLE in node or node.startswith(_SEALED))
        if _VARIABLE in name or is_told:
            text = node if is_told else name
            reason = "what it is called is a variable, or sealed"
            yield Named(Part(IMAGE, text[:SHOWN], reason=reason), at, f"field of a {resource.kind}")
        elif isinstance(node, str) and _VARIABLE in node:
            yield Unseen(where)
        waiting += _below(at, node)


def _is_literal(resource: Resource) -> bool:
    """Whether the object tells Flux to substitute nothing in it."""
    metadata = resource.value.get("metadata")
    for key in ("labels", "annotations"):
        found = metadata.get(key) if isinstance(metadata, Mapping) else None
        if isinstance(found, Mapping) and found.get(_SUBSTITUTE) == "disabled":
            return True
    return False


def _without_texts(resource: Resource) -> Mapping[str, Any]:
    """The object but for the files that it holds: those are listed as a whole."""
    keys = _TEXTS.get(resource.kind, ()) if not resource.group else ()
    return {key: value for key, value in resource.value.items() if key not in keys}


def listed(resource: Resource) -> Iterator[Unseen]:
    """What an object does, or holds, that is not judged here (3)."""
    value, kind = resource.value, resource.kind
    if any(value.get(key) for key in _TEXTS.get(kind, ()) if not resource.group):
        yield Unseen(f"the text in a {kind}")
    if isinstance(value.get("sops"), Mapping):
        yield Unseen("what SOPS has sealed")
    if (resource.group, kind) == _RELEASE:
        yield Unseen("the images that a chart names itself", Severity.WARNING)
    if resource.group == "argoproj.io" and kind in ("Application", "ApplicationSet"):
        yield Unseen("what Argo CD deploys from other places", Severity.WARNING)
    if kind in _MUTATING or _changes_others(value.get("spec")):
        yield Unseen("what a policy changes or makes in the cluster", Severity.WARNING)
    if (resource.group, kind) == _INSTANCE:
        yield Unseen("the images of Flux, by the registry that a FluxInstance names")
    spec = value.get("spec")
    if resource.group == _OPERATOR and isinstance(spec, Mapping) and spec.get("resourcesTemplate"):
        yield Unseen("what a ResourceSet makes of a template", Severity.WARNING)
    texts = [] if kind in SCHEMAS else list(_all(_without_texts(resource)))
    if any(map(_speaks, texts)):
        yield Unseen("text that speaks of an image")
    is_known = resource.group.endswith((".toolkit.fluxcd.io", "argoproj.io"))
    if not is_known and any(text.startswith(_ADDRESSES) for text in texts):
        yield Unseen("an address of a registry, which something may fetch from")


def _changes_others(spec: Any) -> bool:
    """Whether a policy of Kyverno has rules that change or make objects."""
    rules = _list(spec.get("rules")) if isinstance(spec, Mapping) else []
    return any(isinstance(rule, Mapping) and any(map(rule.get, _RULES)) for rule in rules)


def _all(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            yield node
        waiting += [child for _, child in _below((), node)]


def _speaks(text: str) -> bool:
    return ("\n" in text or " " in text or "{" in text) and _SPEAKS.search(text) is not None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
