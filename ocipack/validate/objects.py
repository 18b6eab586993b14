"""Rules about what an object is called, and that it is there once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ocipack.k8s.resource import Identity, Resource
from ocipack.report import Finding, Severity

IDENTITY = "object-identity"
DUPLICATE = "object-duplicate"


def finding(
    rule: str,
    message: str,
    resource: Resource,
    *,
    pointer: str = "",
    severity: Severity = Severity.ERROR,
    hint: str = "",
) -> Finding:
    """A finding about `resource`: placed in its file; with a line only if that is its source."""
    origin = resource.origin
    return Finding(
        rule,
        message,
        severity=severity,
        file=origin.file,
        line=0 if origin.root else origin.line,
        pointer=origin.pointer + pointer,
        subject=str(resource),
        hint=hint,
    )


def identity(resource: Resource) -> Iterator[Finding]:
    """An object has a kind, an apiVersion and a name, all of them text."""
    found = {
        "/kind": resource.kind,
        "/apiVersion": resource.api_version,
        "/metadata/name": resource.name,
    }
    for pointer, text in found.items():
        if not text:
            label = pointer[1:].replace("/", ".")
            yield finding(
                IDENTITY,
                f"{label} is missing, empty or not text",
                resource,
                pointer=pointer,
                hint="the cluster drops or refuses an object without it; quote what looks like a "
                "number or a truth value",
            )


_HOOKS = ("argocd.argoproj.io/hook", "helm.sh/hook")


def identity_before_hooks(resource: Resource) -> Iterator[Finding]:
    """`identity`, but for a hook with `generateName`, which Argo CD creates under a new name.

    Flux has no hooks, and does not deliver such an object: so it is not passed over in silence.
    """
    metadata = resource.metadata
    annotations = metadata.get("annotations")
    generated = isinstance(metadata.get("generateName"), str) and metadata["generateName"]
    hook = isinstance(annotations, Mapping) and any(name in annotations for name in _HOOKS)
    for found in identity(resource):
        if generated and hook and found.pointer.endswith("/metadata/name"):
            message = "a hook without a name: Argo CD makes one, Flux does not deliver it"
            yield replace(found, message=message, severity=Severity.NOTE, hint="")
        else:
            yield found


def duplicates(resources: Iterable[Resource]) -> Iterator[Finding]:
    """Within one root an object is there once, whatever the version of its API."""
    seen: dict[tuple[str, Identity], Resource] = {}
    for resource in resources:
        if not resource.kind or not resource.name:
            continue
        first = seen.setdefault((resource.origin.root, resource.identity), resource)
        if first is not resource:
            versions = {first.api_version, resource.api_version}
            under = f" under {' and '.join(sorted(versions))}" if len(versions) > 1 else ""
            yield finding(
                DUPLICATE,
                f"{resource} is there twice{under}",
                resource,
                hint="the cluster keeps one of them, whichever is applied last: remove the other",
            )
