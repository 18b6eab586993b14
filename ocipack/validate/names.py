"""What objects may be called, kind by kind, and what only the server may write on them.

Labels and annotations are part of the schemas (formats of `ObjectMeta`); the name of an object
depends on its kind. Most are DNS subdomains. Source: the strategies of
https://github.com/kubernetes/kubernetes/tree/master/pkg/registry, as
https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ sums them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv6Address

from ocipack.k8s.resource import Resource
from ocipack.report import Finding
from ocipack.validate import formats
from ocipack.validate.apis import Apis
from ocipack.validate.rules import found

Namer = Callable[[str], str]
_RBAC = {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
_LABELS = {"/Namespace", "/Service", "apps/StatefulSet"}
_FREE = {
    "apiregistration.k8s.io/APIService",
    "certificates.k8s.io/CertificateSigningRequest",
    "certificates.k8s.io/ClusterTrustBundle",
}
_SYSTEM = {"system-cluster-critical", "system-node-critical"}
_CRONJOB_LIMIT = 52


def subdomain(name: str) -> str:
    """Why `name` is no DNS subdomain, or empty."""
    return "" if formats.dns_subdomain(name) else formats.WORDS["dns-subdomain"]


def label(name: str) -> str:
    """Why `name` is no DNS label, or empty."""
    return "" if formats.dns_label(name) else formats.WORDS["dns-label"]


def path_segment(name: str) -> str:
    """Why `name` cannot stand in the path of a URL, or empty."""
    if name in {".", ".."}:
        return f"must not be `{name}`"
    bad = next((char for char in "/%" if char in name), "")
    return f"must not contain `{bad}`" if bad else ""


def address(name: str) -> str:
    """Why `name` is no IP address in canonical form, or empty."""
    if ":" in name and formats.ip_address(name):
        return "" if str(IPv6Address(name)) == name else f"must be written {IPv6Address(name)}"
    return "" if formats.ipv4(name) else formats.WORDS["ip"]


def cron_job(name: str) -> str:
    """Why `name` is no name of a CronJob: 11 characters are added for its Jobs."""
    if len(name) > _CRONJOB_LIMIT:
        return f"must be at most {_CRONJOB_LIMIT} characters"
    return subdomain(name)


def namer(resource: Resource) -> Namer:
    """How the names of this kind are judged."""
    group, kind = resource.group, resource.kind
    if (group == "rbac.authorization.k8s.io" and kind in _RBAC) or f"{group}/{kind}" in _FREE:
        return path_segment
    if (group, kind) == ("networking.k8s.io", "IPAddress"):
        return address
    if (group, kind) == ("batch", "CronJob"):
        return cron_job
    return label if f"{group}/{kind}" in _LABELS else subdomain


def names(resource: Resource) -> Iterator[Finding]:
    """The name and the namespace of an object follow the rules of its kind."""
    if resource.name and (why := namer(resource)(resource.name) or _reserved(resource)):
        message = f"metadata.name: {why}, not {resource.name[:80]!r}"
        yield found("invalid-name", resource, message, ("metadata", "name"))
    if resource.namespace and (why := label(resource.namespace)):
        message = f"metadata.namespace: {why}, not {resource.namespace[:80]!r}"
        yield found("invalid-name", resource, message, ("metadata", "namespace"))


def _reserved(resource: Resource) -> str:
    """Names that a kind keeps for itself."""
    kind = f"{resource.group}/{resource.kind}"
    name = resource.name
    if kind == "scheduling.k8s.io/PriorityClass" and name.startswith("system-"):
        return "" if name in _SYSTEM else "must not start with `system-`"
    if kind == "apiextensions.k8s.io/CustomResourceDefinition":
        spec = resource.value.get("spec")
        spec = spec if isinstance(spec, Mapping) else {}
        parts = spec.get("names")
        plural = parts.get("plural") if isinstance(parts, Mapping) else None
        expected = f"{plural}.{spec.get('group')}"
        if plural and spec.get("group") and name != expected:
            return f"must be `{expected}`"
    return ""


def placed(apis: Apis) -> Callable[[Resource], Iterator[Finding]]:
    """The rule that an object of a cluster-wide kind names no namespace."""

    def check(resource: Resource) -> Iterator[Finding]:
        if resource.namespace and apis.namespaced(resource) is False:
            message = f"metadata.namespace: a {resource.kind} lives in no namespace"
            path = ("metadata", "namespace")
            yield found("namespace-on-cluster-kind", resource, message, path)

    return check


_WRITTEN = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)


def read_only(resource: Resource) -> Iterator[Finding]:
    """Nothing is there that only the server writes; managedFields make it refuse the object.

    `creationTimestamp: null` and an empty status are what code generators write: notes at most,
    so nothing is said about them.
    """
    for name in _WRITTEN:
        if not resource.metadata.get(name):
            continue
        path = ("metadata", name)
        message = f"metadata.{name}: only the server writes this"
        refused = name == "managedFields"
        yield found(
            "server-field-refused" if refused else "read-only-field", resource, message, path
        )
    status = resource.value.get("status")
    if status and isinstance(status, Mapping) and not _placeholder(resource):
        yield found("read-only-field", resource, "status: only the server writes this", ("status",))


def _placeholder(resource: Resource) -> bool:
    """Whether the status is the one that generators of definitions write, and nobody reads."""
    return resource.kind == "CustomResourceDefinition"
