"""How large objects may be: the limits of the server, of etcd, and of annotations."""

from __future__ import annotations

import binascii
import json
import marshal
from collections.abc import Iterator, Mapping
from typing import Any

from ocipack.k8s.resource import MAPS, Resource
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.report import Finding, Severity
from ocipack.validate.rules import found

ANNOTATIONS = 256 << 10  # keys and values of metadata.annotations
DATA = 1 << 20  # keys and values of a ConfigMap or Secret
OBJECT = 3 << 19  # 1.5 MiB, etcd's limit of one request
REQUEST = 3 << 20  # what the server reads of one request


def size(value: Any) -> int:
    """About how many bytes `value` has; its JSON is at most six times that (control characters).

    Quick, since it is asked about every object and the answer nearly always is "few".
    """
    try:
        return len(marshal.dumps(value, 2))
    except ValueError:  # nested deeper than it goes, or of unusual types
        return OBJECT


def sizes(resource: Resource) -> Iterator[Finding]:
    """Annotations, data and the whole are within the limits."""
    annotations = resource.metadata.get("annotations")
    if isinstance(annotations, MAPS):
        total = sum(_bytes(key) + _bytes(value) for key, value in annotations.items())
        if total > ANNOTATIONS:
            yield _too_large(resource, ("metadata", "annotations"), total, ANNOTATIONS)
    if resource.kind in {"ConfigMap", "Secret"} and not resource.group:
        total = _data(resource)
        if total > DATA:
            yield _too_large(resource, ("data",), total, DATA)
            return
    if size(resource.value) > OBJECT // 6:
        total = len(json.dumps(resource.value, separators=(",", ":"), ensure_ascii=False).encode())
        if total > OBJECT:
            # built-in kinds are stored in a form that is smaller than JSON: not sure to fail
            sure = total > REQUEST or resource.group not in Catalog.groups()
            severity = Severity.ERROR if sure else Severity.WARNING
            yield _too_large(resource, (), total, OBJECT, severity)


def _too_large(
    resource: Resource,
    path: tuple[str, ...],
    total: int,
    limit: int,
    severity: Severity = Severity.ERROR,
) -> Finding:
    message = f"{'.'.join(path) or 'the object'}: {total} bytes, the limit is {limit}"
    return found("object-too-large", resource, message, path, severity=severity)


def _data(resource: Resource) -> int:
    """Bytes of the decoded values, as the server counts them."""
    secret = resource.kind == "Secret"
    encoded = "data" if secret else "binaryData"
    texts = {} if secret else _mapping(resource, "data")
    extra = _mapping(resource, "stringData") if secret else {}
    raw = {**_mapping(resource, encoded), **dict.fromkeys(extra)}
    plain = {**texts, **extra}
    return sum(map(_decoded, raw.values())) + sum(map(_bytes, plain.values()))


def _mapping(resource: Resource, name: str) -> Mapping[str, Any]:
    value = resource.value.get(name)
    return value if isinstance(value, MAPS) else {}


def _bytes(value: object) -> int:
    return len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 0


def _decoded(value: object) -> int:
    try:
        return len(binascii.a2b_base64(value)) if isinstance(value, str) else 0
    except ValueError:
        return 0
