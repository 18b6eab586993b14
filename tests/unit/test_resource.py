"""Objects as they come out of documents."""

from __future__ import annotations

import pytest

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import Identity, Resource, resources
from ocipack.k8s.yaml.documents import read
from ocipack.k8s.yaml.scalars import Dialect


def found(text: str, dialect: Dialect = Dialect.FLUX) -> list[Resource]:
    return list(resources(read(text.encode(), dialect), dialect, file="x.yaml"))


def test_what_an_object_is_called() -> None:
    (one,) = found("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}")
    assert one.identity == Identity("apps", "Deployment", "b", "a")
    assert str(one) == "Deployment b/a"
    assert str(Resource({})) == "object (no name)"
    assert Resource({"metadata": {"name": 5}, "kind": None}).identity == Identity("", "", "", "")


def test_origins_point_into_lists() -> None:
    text = "# one\n---\nkind: List\nitems:\n- kind: A\n- kind: List\n  items: [{kind: B}]\n"
    assert [(r.kind, r.origin.pointer, r.origin.line) for r in found(text)] == [
        ("A", "/items/0", 3),
        ("B", "/items/1/items/0", 3),
    ]
    with pytest.raises(IntegrityError, match=r"x\.yaml:3: kubectl does not read a List inside"):
        found(text, Dialect.KUBECTL)


def test_typed_lists() -> None:
    text = "apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: a}}]"
    assert [r.kind for r in found(text, Dialect.KUBECTL)] == ["ConfigMap"]
    assert [r.kind for r in found(text)] == [""]


@pytest.mark.parametrize("text", ["- a", "text", "kind: List\nitems: [5]"])
def test_what_is_no_object(text: str) -> None:
    with pytest.raises(IntegrityError, match="a Kubernetes object is a mapping"):
        found(text)


# Seen with `kubectl kustomize` 1.37.1.
def test_annotations_are_the_text_that_was_written() -> None:
    values = "{a: 0x10, b: 1_000, c: 2024-01-02, d: ~, e: , f: null, g: [1], h: x}"
    (one,) = found(f"kind: A\nmetadata:\n  annotations: {values}")
    assert one.metadata["annotations"] == {
        "a": "0x10",
        "b": "1_000",
        "c": "2024-01-02",
        "d": "~",
        "e": "",
        "f": "null",
        "g": "",
        "h": "x",
    }
