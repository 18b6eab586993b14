"""The checks of what was rendered: each finds its fault, and leaves the rest alone."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ocipack.k8s.resource import Origin, Resource
from ocipack.report import Finding, Severity
from ocipack.validate.check import validate

RULES = {
    *{"nothing-to-validate", "object-identity", "object-duplicate"},
    *{"secret-plaintext", "secret-ciphertext", "image-digest", "image-malformed", "image-missing"},
}
DIGEST = "sha256:" + "a" * 64


def thing(kind: str = "ConfigMap", version: str = "v1", name: Any = "x", **more: Any) -> Resource:
    metadata = {"name": name, **more.pop("metadata", {})}
    value = {"apiVersion": version, "kind": kind, "metadata": metadata, **more}
    return Resource(value, Origin("app/kustomization.yaml", 7, root="app"))


def pod(*images: Any) -> Resource:
    return thing("Pod", spec={"containers": [{"name": "c", "image": i} for i in images]})


def findings(*resources: Resource, allow_tags: bool = False) -> tuple[Finding, ...]:
    """What these rules find; the schemas of the kinds have tests of their own."""
    found = validate(resources, allow_tags=allow_tags).findings
    return tuple(finding for finding in found if finding.rule in RULES)


def test_nothing_is_not_enough() -> None:
    assert [f.rule for f in findings()] == ["nothing-to-validate"]


def test_good_objects_pass() -> None:
    assert not findings(
        thing(data={"a": "b"}), thing("Secret", data={}, stringData=None), pod(f"a@{DIGEST}")
    )


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"kind": ""}, "/kind"),
        ({"kind": 5}, "/kind"),
        ({"apiVersion": None}, "/apiVersion"),
        ({"metadata": {}}, "/metadata/name"),
        ({"metadata": {"name": 123}}, "/metadata/name"),
        ({"metadata": {"generateName": "x-"}}, "/metadata/name"),
        ({"metadata": "x"}, "/metadata/name"),
    ],
)
def test_identity(change: dict[str, Any], pointer: str) -> None:
    (found,) = findings(Resource({**thing().value, **change}))
    assert (found.rule, found.pointer, found.severity) == (
        "object-identity",
        pointer,
        Severity.ERROR,
    )


def test_duplicates_count_within_a_root_and_across_versions() -> None:
    twice = findings(thing(), thing())
    assert [f.rule for f in twice] == ["object-duplicate"]
    assert twice[0].subject == "ConfigMap x"
    v1, v2 = (thing("HorizontalPodAutoscaler", f"autoscaling/{v}") for v in ("v1", "v2"))
    assert "autoscaling/v1 and autoscaling/v2" in findings(v1, v2)[0].message
    assert not findings(thing(), thing(metadata={"namespace": "other"}), thing(name="y"))
    assert not findings(thing("Ingress", "a/v1"), thing("Ingress", "b/v1"))
    assert not findings(thing(), Resource(thing().value, Origin(root="other")))


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_secrets_in_plain_text(field: str) -> None:
    secret = base64.b64encode(b"hunter2").decode() if field == "data" else "hunter2"
    values = {"pass/word": secret, "empty": "", "no": None}
    (found,) = findings(Resource({**thing("Secret").value, field: values}))
    assert found.rule == "secret-plaintext"
    assert found.pointer == f"/{field}/pass~1word"
    assert "hunter2" not in str(found.as_dict())
    assert secret not in str(found.as_dict())


@pytest.mark.parametrize("value", ["not base64!", "YWJj", "é", 5, True, ["x"]])
def test_whatever_the_value_is(value: Any) -> None:
    (found,) = findings(Resource({**thing("Secret").value, "data": {"a": value}}))
    assert found.rule == "secret-plaintext"


PLACEHOLDERS = [
    "${TOKEN}",
    "$(TOKEN)",
    "<path:kv/data/shop#token>",
    "<your token>",
    "{{ .token | b64enc }}",
    "op://Automation/1password connect/token",
    "op://vault/item/section/field\n",
]


@pytest.mark.parametrize("value", PLACEHOLDERS)
def test_a_place_for_a_secret_is_none(value: str) -> None:
    encoded = base64.b64encode(value.encode()).decode()
    assert not findings(thing("Secret", stringData={"a": value}))
    assert not findings(thing("Secret", data={"a": encoded, "b": value}))


@pytest.mark.parametrize(
    "value",
    [
        *(f"{value} hunter2" for value in PLACEHOLDERS if not value.startswith("op://")),
        *(f"hunter2{value}" for value in PLACEHOLDERS),
        "${TOKEN:-hunter2}",
        "{{ 'hunter2' }}",
        "<a>hunter2</a>",
        "op://hunter2",
        "op://vault/item\nhunter2/x/y",
    ],
)
def test_a_secret_beside_a_place_for_one_is_in_plain_text(value: str) -> None:
    (found,) = findings(thing("Secret", stringData={"a": value}))
    assert found.rule == "secret-plaintext"


def test_secrets_of_other_kinds_are_not_ours() -> None:
    assert not findings(thing("Secret", "example.com/v1", data={"a": "b"}))
    assert not findings(thing("SealedSecret", "bitnami.com/v1alpha1", data={"a": "b"}))


ENCRYPTED = "ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]"


@pytest.mark.parametrize(
    ("resource", "pointer"),
    [
        (thing("Secret", stringData={"a": ENCRYPTED}), "/stringData/a"),
        (thing("Secret", data={"a": ENCRYPTED}), "/data/a"),
        (thing(data={"a": ENCRYPTED}), "/data/a"),
        (thing(data={"f.yaml": f"a: {ENCRYPTED}\nsops:\n  mac: x"}), "/data/f.yaml"),
        (
            thing("Secret", data={"f": base64.b64encode(f"a={ENCRYPTED}".encode()).decode()}),
            "/data/f",
        ),
        (thing("Thing", "example.com/v1", spec={"a": [{"b": ENCRYPTED}]}), "/spec/a/0/b"),
        (thing("Secret", sops={"mac": ENCRYPTED}), "/sops/mac"),
    ],
)
def test_ciphertext_that_is_left(resource: Resource, pointer: str) -> None:
    (found,) = findings(resource)
    assert (found.rule, found.pointer) == ("secret-ciphertext", pointer)


def test_images() -> None:
    (found,) = findings(pod("nginx:1.27"))
    assert found.rule == "image-digest"
    assert found.message == "nginx:1.27 has no digest"
    assert found.pointer == "/spec/containers/0/image"
    assert found.subject == "Pod x"
    assert found.severity is Severity.ERROR
    (allowed,) = findings(pod("nginx:1.27"), allow_tags=True)
    assert allowed.severity is Severity.WARNING
    assert not findings(pod(f"nginx:1.27@{DIGEST}", f"registry:5000/a/b@{DIGEST}"))


@pytest.mark.parametrize("image", ["Nginx", "a b", "nginx@sha256:abc", "nginx@md5:abc", "a:b:c"])
def test_images_that_are_no_references(image: str) -> None:
    for allow_tags in (False, True):
        (found,) = findings(pod(image), allow_tags=allow_tags)
        assert (found.rule, found.severity) == ("image-malformed", Severity.ERROR)


@pytest.mark.parametrize("image", [None, "", 5])
def test_images_that_are_missing(image: Any) -> None:
    (found,) = findings(pod(image), allow_tags=True)
    assert (found.rule, found.severity) == ("image-missing", Severity.ERROR)


def test_image_volumes_are_images() -> None:
    spec = {"volumes": [{"name": "v", "image": {"reference": "data:1"}}]}
    (found,) = findings(thing("Pod", spec=spec))
    assert found.pointer == "/spec/volumes/0/image/reference"


def test_a_place_in_rendered_output_is_not_a_line_of_the_tree() -> None:
    (found,) = findings(pod("a"))
    assert found.place == "app/kustomization.yaml"
    (found,) = findings(Resource(pod("a").value, Origin("pod.yaml", 7)))
    assert found.place == "pod.yaml:7"
