"""Every place where a typed pod spec names an image."""

from __future__ import annotations

from typing import Any

import pytest

from ocipack.k8s.images.podspec import images
from ocipack.k8s.resource import Resource

SPEC: dict[str, Any] = {
    "initContainers": [{"name": "i", "image": "init:1"}],
    "containers": [{"name": "c", "image": "main:1"}, {"name": "d"}],
    "ephemeralContainers": [{"name": "e", "image": 5}],
    "volumes": [
        {"name": "v", "image": {"reference": "data:1", "pullPolicy": "Always"}},
        {"name": "w", "emptyDir": {}},
        {"name": "x", "image": {}},
    ],
}
FOUND = [
    ("/initContainers/0/image", "init:1"),
    ("/containers/0/image", "main:1"),
    ("/containers/1/image", None),
    ("/ephemeralContainers/0/image", None),
    ("/volumes/0/image/reference", "data:1"),
    ("/volumes/2/image/reference", None),
]
TEMPLATE = "/spec/template/spec"
HOLDERS = [
    ("v1", "Pod", "/spec"),
    ("v1", "PodTemplate", "/template/spec"),
    ("v1", "ReplicationController", TEMPLATE),
    ("apps/v1", "Deployment", TEMPLATE),
    ("apps/v1beta2", "StatefulSet", TEMPLATE),
    ("apps/v1", "DaemonSet", TEMPLATE),
    ("apps/v1", "ReplicaSet", TEMPLATE),
    ("extensions/v1beta1", "Deployment", TEMPLATE),
    ("batch/v1", "Job", TEMPLATE),
    ("batch/v1beta1", "CronJob", "/spec/jobTemplate/spec/template/spec"),
]


def holding(path: str, spec: Any) -> dict[str, Any]:
    for name in reversed(path.split("/")[1:]):
        spec = {name: spec}
    assert isinstance(spec, dict)
    return spec


@pytest.mark.parametrize(("version", "kind", "path"), HOLDERS)
def test_holders(version: str, kind: str, path: str) -> None:
    value = {"apiVersion": version, "kind": kind, **holding(path, SPEC)}
    wanted = [(path + pointer, text) for pointer, text in FOUND]
    assert list(images(Resource(value))) == wanted
    for outer in ("List", f"{kind}List"):
        listed = {"apiVersion": "v1", "kind": outer, "items": [value]}
        assert list(images(Resource(listed))) == [("/items/0" + p, text) for p, text in wanted]


def test_a_typed_list_gives_its_kind_to_its_items() -> None:
    item = {"spec": {"containers": [{"image": "a"}]}}
    value = {"apiVersion": "v1", "kind": "PodList", "items": [item, "no object"]}
    assert list(images(Resource(value))) == [("/items/0/spec/containers/0/image", "a")]


def test_the_group_is_part_of_the_kind() -> None:
    value = {"apiVersion": "example.com/v1", "kind": "Deployment", **holding(TEMPLATE, SPEC)}
    assert not list(images(Resource(value)))


@pytest.mark.parametrize("spec", [None, [], "x", {"containers": None}, {"containers": {"a": 1}}])
def test_what_is_no_spec_names_nothing(spec: Any) -> None:
    assert not list(images(Resource({"apiVersion": "v1", "kind": "Pod", "spec": spec})))


def test_a_container_that_is_no_mapping_is_still_seen() -> None:
    value = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": ["x"]}}
    assert list(images(Resource(value))) == [("/spec/containers/0/image", None)]
