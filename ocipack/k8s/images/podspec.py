"""Every image of a typed pod spec (Kubernetes API reference, PodSpec; image volumes, KEP-4639).

Custom resources that hold pod specs, charts and Flux objects are found elsewhere: what is here is
exact, with no guess by a key's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import join

_TEMPLATE: Final = ("spec", "template", "spec")
_HOLDERS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    ("batch", "Job"): _TEMPLATE,
    ("extensions", "DaemonSet"): _TEMPLATE,  # served until Kubernetes 1.15
    ("extensions", "Deployment"): _TEMPLATE,
    ("extensions", "ReplicaSet"): _TEMPLATE,
}
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")


class Image(NamedTuple):
    """An image field: the JSON pointer from the object to it, and what stands there.

    `text` is None when there is no text: the field is missing (which a container may be in a
    template whose image something else fills in) or of another type.
    """

    pointer: str
    text: str | None


def images(resource: Resource) -> Iterator[Image]:
    """The images of `resource`, in the order of its fields; of the items too if it is a List."""
    yield from _of(resource.value, resource.group, resource.kind, ())


def holder(resource: Resource) -> tuple[tuple[str, ...], Mapping[str, Any]] | None:
    """Where in `resource` its pod spec is, and the spec; None if it has none."""
    path = _HOLDERS.get((resource.group, resource.kind))
    spec: Any = resource.value if path is not None else None
    for name in path or ():
        spec = spec.get(name) if isinstance(spec, Mapping) else None
    return (path, spec) if path is not None and isinstance(spec, Mapping) else None


def in_spec(spec: Mapping[str, Any]) -> Iterator[Image]:
    """The images of a pod spec, their pointers counted from it."""
    yield from _in_spec(spec, ())


def _of(
    value: Mapping[str, Any], group: str, kind: str, path: tuple[str | int, ...]
) -> Iterator[Image]:
    if kind.endswith("List"):
        for index, item in enumerate(_list(value.get("items"))):
            if isinstance(item, Mapping):
                version = str(item.get("apiVersion", ""))
                inner = str(item.get("kind", kind.removesuffix("List")))
                where = (*path, "items", index)
                yield from _of(item, version.rpartition("/")[0] or group, inner, where)
        return
    holder = _HOLDERS.get((group, kind))
    if holder is None:
        return
    spec: Any = value
    for name in holder:
        spec = spec.get(name) if isinstance(spec, Mapping) else None
    if isinstance(spec, Mapping):
        yield from _in_spec(spec, (*path, *holder))


def _in_spec(spec: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Image]:
    for field in _CONTAINERS:
        for index, container in enumerate(_list(spec.get(field))):
            yield _image(container, (*path, field, index), "image")
    for index, volume in enumerate(_list(spec.get("volumes"))):
        if isinstance(volume, Mapping) and volume.get("image") is not None:
            yield _image(volume["image"], (*path, "volumes", index, "image"), "reference")


def _image(holder: Any, path: tuple[str | int, ...], field: str) -> Image:
    found = holder.get(field) if isinstance(holder, Mapping) else None
    return Image(join(*path, field), found if isinstance(found, str) else None)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
