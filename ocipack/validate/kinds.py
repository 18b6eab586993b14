"""What single kinds ask for, beyond what a schema can say."""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ocipack.k8s.resource import MAPS, Resource
from ocipack.report import Finding
from ocipack.validate import formats
from ocipack.validate.rules import Path, found, spell

Rule = Callable[[Resource], Iterator[Finding]]
_TYPE_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_ACCOUNT = "kubernetes.io/service-account.name"
_TEMPLATES = {
    "apps/Deployment": "Always",
    "apps/DaemonSet": "Always",
    "apps/ReplicaSet": "Always",
    "apps/StatefulSet": "Always",
    "/ReplicationController": "Always",
}
_NOT_SOURCES = {
    *("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity"),
    *("persistentVolumeReclaimPolicy", "storageClassName", "volumeAttributesClassName"),
    "volumeMode",
}


def _map(value: Any, *names: str) -> Mapping[str, Any]:
    """The mapping at `names` below `value`, or an empty one."""
    for name in names:
        value = value.get(name) if isinstance(value, MAPS) else None
    return value if isinstance(value, MAPS) else {}


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    items = value.get(name)
    return items if isinstance(items, list) else []


def _required(resource: Resource, path: Path, why: str = "required") -> Finding:
    return found("required-field", resource, f"{spell(path)}: {why}", path)


def secret(resource: Resource) -> Iterator[Finding]:
    """A Secret holds what its type requires."""
    kind = resource.value.get("type")
    data = {**_map(resource.value, "data"), **_map(resource.value, "stringData")}
    if _encrypted(resource):
        return
    for key in _TYPE_KEYS.get(str(kind), ()):
        if key not in data:
            message = f"data[{key}]: required in a Secret of type {kind}"
            yield found("secret-content", resource, message, ("data", key))
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        message = f"data[username], data[password]: one is required in a Secret of type {kind}"
        yield found("secret-content", resource, message, ("data",))
    account = _map(resource.metadata, "annotations").get(_ACCOUNT)
    if kind == "kubernetes.io/service-account-token" and not account:
        path = ("metadata", "annotations", _ACCOUNT)
        yield found("secret-content", resource, f"{spell(path)}: required", path)
    for key in (".dockercfg", ".dockerconfigjson"):
        if key in _TYPE_KEYS.get(str(kind), ()) and key in data and not _is_object(resource, key):
            message = f"data[{key}]: must hold a JSON object"
            yield found("secret-content", resource, message, ("data", key))


def _encrypted(resource: Resource) -> bool:
    """Whether SOPS holds the values: then nobody can say what they are."""
    return "sops" in resource.value


def _is_object(resource: Resource, key: str) -> bool:
    text = _map(resource.value, "stringData").get(key)
    try:
        if text is None:
            text = binascii.a2b_base64(str(_map(resource.value, "data").get(key)))
        return isinstance(json.loads(text), dict)
    except (ValueError, TypeError, RecursionError):
        return False


def workload(resource: Resource) -> Iterator[Finding]:
    """A workload restarts its pods as its kind does, and selects the pods that it makes."""
    spec = _map(resource.value, "spec")
    policy = _map(spec, "template", "spec").get("restartPolicy")
    path: Path = ("spec", "template", "spec", "restartPolicy")
    if policy not in (None, "", "Always"):
        yield found("unsupported-value", resource, f"{spell(path)}: must be Always", path)
    labels = _map(spec, "template", "metadata", "labels")
    selector = _map(spec, "selector")
    wanted = _map(selector, "matchLabels") if resource.group else selector
    place: Path = ("spec", "template", "metadata", "labels")
    if any(labels.get(key) != value for key, value in wanted.items()):
        message = f"{spell(place)}: `selector` does not match template `labels`"
        yield found("selector-mismatch", resource, message, place)


def job(resource: Resource) -> Iterator[Finding]:
    """The pods of a Job end: they do not always restart."""
    path: Path = ("spec", "template", "spec", "restartPolicy")
    if resource.kind == "CronJob":
        path = ("spec", "jobTemplate", *path)
    policy = _map(resource.value, *(str(part) for part in path[:-1])).get("restartPolicy")
    if policy in (None, ""):
        yield _required(resource, path, "required: one of OnFailure, Never")
    elif policy == "Always":
        message = f"{spell(path)}: must be one of OnFailure, Never"
        yield found("unsupported-value", resource, message, path)


def service(resource: Resource) -> Iterator[Finding]:
    """A Service has ports, unless it is headless or a name for another; that one is a DNS name."""
    spec = _map(resource.value, "spec")
    kind = spec.get("type") or "ClusterIP"
    headless = spec.get("clusterIP") == "None" or spec.get("clusterIPs") == ["None"]
    if kind != "ExternalName":
        if not _list(spec, "ports") and not headless:
            yield _required(resource, ("spec", "ports"))
        return
    name = spec.get("externalName")
    if not name:
        yield _required(resource, ("spec", "externalName"))
    elif isinstance(name, str) and not formats.dns_subdomain(name.removesuffix(".")):
        message = f"spec.externalName: {formats.WORDS['dns-subdomain']}, not {name[:80]!r}"
        yield found("invalid-name", resource, message, ("spec", "externalName"))


def ingress(resource: Resource) -> Iterator[Finding]:
    """Backends name a port, and paths of types that compare are absolute."""
    for path, backend in _backends(resource):
        port = _map(backend, "service", "port")
        if _map(backend, "service") and not (port.get("name") or port.get("number")):
            yield _required(resource, (*path, "service", "port"), "required: a name or a number")
    for path, entry in _paths(resource):
        text = entry.get("path") or ""
        if entry.get("pathType") in {"Exact", "Prefix"} and not str(text).startswith("/"):
            message = f"{spell((*path, 'path'))}: must be an absolute path"
            yield found("invalid-format", resource, message, (*path, "path"))


def _paths(resource: Resource) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for r, rule in enumerate(_list(_map(resource.value, "spec"), "rules")):
        for p, entry in enumerate(_list(_map(rule, "http"), "paths")):
            if isinstance(entry, Mapping):
                yield ("spec", "rules", r, "http", "paths", p), entry


def _backends(resource: Resource) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    yield ("spec", "defaultBackend"), _map(resource.value, "spec", "defaultBackend")
    for path, entry in _paths(resource):
        yield (*path, "backend"), _map(entry, "backend")


def volume(resource: Resource) -> Iterator[Finding]:
    """A PersistentVolume says where it is."""
    spec = _map(resource.value, "spec")
    if not [name for name in spec if name not in _NOT_SOURCES and spec[name] is not None]:
        yield _required(resource, ("spec",), "required: a volume source, such as csi or nfs")


def role(resource: Resource) -> Iterator[Finding]:
    """Each rule of a role is about something."""
    for index, rule in enumerate(_list(resource.value, "rules")):
        if not isinstance(rule, Mapping) or rule.get("nonResourceURLs"):
            continue
        for name in ("apiGroups", "resources"):
            if not rule.get(name):
                yield _required(resource, ("rules", index, name), "required: at least one")


def pod(resource: Resource) -> Iterator[Finding]:
    """An image volume of a bare Pod has its reference: nothing fills it in later."""
    for index, entry in enumerate(_list(_map(resource.value, "spec"), "volumes")):
        source = entry.get("image") if isinstance(entry, Mapping) else None
        if isinstance(source, Mapping) and not source.get("reference"):
            yield _required(resource, ("spec", "volumes", index, "image", "reference"))


_ADDRESSES = {"IPv4": formats.ipv4, "IPv6": formats.ipv6, "FQDN": formats.dns_subdomain}


def slice_(resource: Resource) -> Iterator[Finding]:
    """The addresses of an EndpointSlice are of its address type."""
    kind = str(resource.value.get("addressType"))
    right = _ADDRESSES.get(kind, lambda _: True)
    for index, endpoint in enumerate(_list(resource.value, "endpoints")):
        texts = _list(endpoint, "addresses") if isinstance(endpoint, Mapping) else []
        for place, text in enumerate(texts):
            if isinstance(text, str) and not right(text):
                path = ("endpoints", index, "addresses", place)
                yield found("invalid-format", resource, f"{spell(path)}: must be {kind}", path)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(_TEMPLATES, workload),
    "/PersistentVolume": volume,
    "/Pod": pod,
    "/Secret": secret,
    "/Service": service,
    "batch/CronJob": job,
    "discovery.k8s.io/EndpointSlice": slice_,
    "batch/Job": job,
    "networking.k8s.io/Ingress": ingress,
    "rbac.authorization.k8s.io/ClusterRole": role,
    "rbac.authorization.k8s.io/Role": role,
}


def kinds(resource: Resource) -> Iterator[Finding]:
    """What the kind of `resource` asks for."""
    rule = _RULES.get(f"{resource.group}/{resource.kind}")
    if rule is not None:
        yield from rule(resource)
