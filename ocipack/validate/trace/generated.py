"""Objects that a kustomization makes of literals and files, and the fields that it sets itself."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator
from typing import Any, Final

from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.nodes import Mapping, Node, Scalar
from ocipack.validate.trace.layers import (
    GENERATORS,
    Layer,
    Source,
    Stack,
    basename,
    creates,
    items,
    texts,
)
from ocipack.validate.trace.spots import ABSENT, Said, Spot, Tokens, follow

_LABELS: Final = ("labels", "matchLabels", "selector")
_SCALED: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
_PLACELESS: Final = frozenset(
    {"CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding"}
    | {"CustomResourceDefinition", "IngressClass", "MutatingWebhookConfiguration", "Namespace"}
    | {"Node", "PersistentVolume", "PodSecurityPolicy", "PriorityClass", "RuntimeClass"}
    | {"StorageClass", "ValidatingWebhookConfiguration", "VolumeAttachment"}
)
"""Kinds that kustomize gives no namespace to; others get one, cluster-wide or not (seen, 5.5)."""

_DATA: Final = 2  # tokens of /data/KEY


def generators(source: Source, layer: Layer) -> list[Mapping]:
    """The entries of `layer` that make `source`, or change what was made."""
    if source.document is not None:
        return []
    field = next(name for name, kind in GENERATORS.items() if kind == source.kind)
    return [entry for entry in layer.entries(field) if texts(entry).get("name") == source.name]


def entries(
    resource: Resource, tokens: Tokens, layer: Layer, made: list[Mapping], stack: Stack
) -> Iterator[Said]:
    """Where the generators `made` of `layer` say what is at `tokens` of the object."""
    if tokens in ((), ("metadata", "name")):
        yield from (Said(layer.spot(entry)) for entry in made if creates(entry))
    if len(tokens) != _DATA or tokens[0] not in ("data", "binaryData"):
        return
    value = _decoded(resource, tokens)
    if value is None:
        return
    for entry in made:
        yield from (Said(spot) for spot in _literals(layer, entry, tokens[1], value))
        yield from (Said(spot) for spot in _files(layer, entry, tokens[1], value, stack))


def _decoded(resource: Resource, tokens: Tokens) -> bytes | None:
    value = follow(resource.value, tokens)
    if not isinstance(value, str):
        return None
    if resource.kind != "Secret" and tokens[0] == "data":
        return value.encode()
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def _literals(layer: Layer, entry: Mapping, key: str, value: bytes) -> Iterator[Spot]:
    for node in items(entry.get("literals")):
        if isinstance(node, Scalar):
            name, _, text = node.text.partition("=")
            quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
            if name == key and value in (text.encode(), text[1:-1].encode() if quoted else b""):
                yield layer.spot(node)


def _files(layer: Layer, entry: Mapping, key: str, value: bytes, stack: Stack) -> Iterator[Spot]:
    for node in items(entry.get("files")):
        name, equals, path = node.text.partition("=") if isinstance(node, Scalar) else ("", "", "")
        path = path if equals else name
        file = stack.file(layer, path) if path else None
        if file and (name if equals else basename(path)) == key and stack.read(file) == value:
            yield Spot(file)
    single = entry.get("env")
    for node in (*items(entry.get("envs")), *([single] if single else [])):
        file = stack.file(layer, node.text) if isinstance(node, Scalar) else None
        for number, line in enumerate(stack.read(file).splitlines() if file else (), 1):
            name_, _, text = line.decode(errors="replace").lstrip().partition("=")
            if file and name_ == key and text.encode() == value:
                yield Spot(file, number, 1)


def fields(
    resource: Resource, tokens: Tokens, layer: Layer, known: Collection[str]
) -> Iterator[Said]:
    """Where `layer` itself sets a namespace, a label, an image or a number to what is rendered.

    `known` is how the object is or was called.
    """
    value = follow(resource.value, tokens)
    if value is ABSENT or not tokens:
        return
    yield from _labels(layer, tokens, value)
    if tokens[-1] == "image" and isinstance(value, str):
        yield from _images(layer, value)
    if tokens == ("spec", "replicas"):
        for entry in layer.entries("replicas"):
            said = texts(entry)
            if said.get("name") in known and said.get("count") == str(value):
                yield Said(layer.spot(entry.get("count") or entry), resource.kind in _SCALED)
    if tokens[-1] == "namespace" or (resource.kind == "Namespace" and tokens[-1] == "name"):
        own = tokens == ("metadata", "namespace")
        if own and resource.kind in _PLACELESS:
            return  # the object says it itself, or a patch
        node = layer.root.get("namespace")
        if isinstance(node, Scalar) and node.text == value:
            yield Said(layer.spot(node), own)


def _labels(layer: Layer, tokens: Tokens, value: Any) -> Iterator[Said]:
    within = tokens[:-1]
    holders: list[Node | None] = []
    if "annotations" in within:
        holders.append(layer.root.get("commonAnnotations"))
    if any(token in _LABELS for token in within):
        holders.append(layer.root.get("commonLabels"))
        holders += [entry.get("pairs") for entry in layer.entries("labels")]
    for holder in holders:
        node = holder.get(tokens[-1]) if isinstance(holder, Mapping) else None
        if isinstance(node, Scalar) and node.text == value:
            yield Said(layer.spot(node), tokens[:-2] == ("metadata",))


def _images(layer: Layer, image: str) -> Iterator[Said]:
    """Entries of `images` whose outcome is `image` (kustomize, imagetag.Updater).

    One that renames says so surely only if nothing else had that name already.
    """
    name, at, digest = image.partition("@")
    last = name.rpartition("/")[2]
    tag = last.partition(":")[2]
    name = name[: len(name) - len(tag) - 1] if tag else name
    for entry in layer.entries("images"):
        said = texts(entry)
        if (said.get("newName") or said.get("name")) != name:
            continue
        if not any(said.get(field) for field in ("newName", "newTag", "digest")):
            continue
        new_tag, new_digest = said.get("newTag", ""), said.get("digest", "")
        fits_tag = not new_tag or new_tag == tag
        fits_digest = not new_digest or (bool(at) and new_digest == digest)
        if fits_tag and fits_digest:
            node = entry.get("digest") or entry.get("newTag") or entry.get("newName")
            yield Said(layer.spot(node or entry), said.get("name") == name)
