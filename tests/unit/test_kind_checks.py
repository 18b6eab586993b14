"""Checks of single objects beyond their schemas: lists, names, places, sizes, what kinds ask."""

from __future__ import annotations

import ast
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from things import check, definition, thing

import ocipack.validate
from ocipack.k8s.resource import Resource
from ocipack.report import Severity
from ocipack.validate.apis import Apis
from ocipack.validate.crd import custom_kinds
from ocipack.validate.kinds import kinds
from ocipack.validate.lists import ListCheck
from ocipack.validate.names import names, placed, read_only
from ocipack.validate.rules import RULES, spell
from ocipack.validate.sizes import sizes


def lists(resource: Resource, apis: Apis | None = None) -> list[tuple[str, str]]:
    return [(f.rule, f.message) for f in ListCheck(apis or check().apis)(resource)]


def named(api: str, kind: str, name: str, **metadata: Any) -> Resource:
    return Resource({"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}})


def deployment(**container: Any) -> Resource:
    spec = {"containers": [{"name": "c", "image": "i", **container}]}
    return thing("apps/v1", "Deployment", spec={"template": {"spec": spec}})


PORT = "containerPort=53, protocol=TCP"
CONTAINER = "spec.template.spec.containers[0]"


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"env": [{"name": "A"}, {"name": "B"}]}, []),
        (
            {"env": [{"name": "A"}, {"name": "B"}, {"name": "A"}]},
            [f"{CONTAINER}.env[2]: name=A is there already, at {CONTAINER}.env[0]"],
        ),
        (
            {"ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]},
            [],
        ),
        (  # the protocol is TCP unless it is given
            {"ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53}]},
            [f"{CONTAINER}.ports[1]: {PORT} is there already, at {CONTAINER}.ports[0]"],
        ),
        ({"args": ["a", "a"]}, []),
        ({"env": [{}, {}, None, 1, {"name": {}}, {"name": {}}]}, []),
        ({"env": {"name": "A"}}, []),
    ],
)
def test_entries_of_lists_that_are_maps(container: dict[str, Any], expected: list[str]) -> None:
    assert lists(deployment(**container)) == [("duplicate-entry", text) for text in expected]


def test_values_of_sets() -> None:
    resource = named("v1", "ConfigMap", "x", finalizers=["a/b", "c/d", "a/b"])
    assert lists(resource) == [
        (
            "duplicate-entry",
            "metadata.finalizers[2]: a/b is there already, at metadata.finalizers[0]",
        )
    ]


def test_lists_of_custom_resources() -> None:
    ports = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name", "protocol"],
        "items": {"properties": {"name": {}, "protocol": {"default": "TCP"}}},
    }
    tags = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    apis = check().apis
    apis.add(custom_kinds(definition({"ports": ports, "tags": tags})))
    double = [{"name": "a"}, {"name": "a", "protocol": "UDP"}, {"name": "a", "protocol": "TCP"}]
    resource = thing("a.example.org/v1", "Thing", spec={"ports": double, "tags": ["x", "x"]})
    assert lists(resource, apis) == [
        (
            "duplicate-entry",
            "spec.ports[2]: name=a, protocol=TCP is there already, at spec.ports[0]",
        ),
        ("duplicate-entry", "spec.tags[1]: x is there already, at spec.tags[0]"),
    ]
    assert lists(named("a.example.org/v1", "Thing", "x", finalizers=["a/b", "a/b"]), apis)


def test_schemas_that_contain_themselves() -> None:
    rule = {"rule": "true"}
    deep = {"properties": {"a": {"properties": {"b": {"x-kubernetes-validations": [rule, rule]}}}}}
    resource = thing(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        spec={
            "versions": [{"name": "v1", "deprecated": True, "schema": {"openAPIV3Schema": deep}}]
        },
    )
    assert [found for found, _ in lists(resource)] == ["duplicate-entry"]


def test_deprecated_fields() -> None:
    spec = {"serviceAccount": "a", "volumes": [{"name": "v", "gitRepo": {"repository": "r"}}]}
    assert lists(thing("v1", "Pod", spec=spec)) == [
        ("field-deprecated", "spec.serviceAccount: this field is deprecated"),
        ("field-deprecated", "spec.volumes[0].gitRepo: this field is deprecated"),
    ]


@pytest.mark.parametrize(
    ("api", "kind", "good", "bad"),
    [
        ("v1", "ConfigMap", ["a.b-c", "1"], ["A", "a_b", "a.", "a..b", "a b", "a/b", "a" * 254]),
        ("v1", "Service", ["a-b", "1a"], ["a.b", "a" * 64]),
        ("v1", "Namespace", ["a"], ["a.b"]),
        ("apps/v1", "StatefulSet", ["a"], ["a.b", "a" * 64]),
        ("apps/v1", "Deployment", ["a.b", "a" * 64], ["A"]),
        ("batch/v1", "CronJob", ["a" * 52], ["a" * 53]),
        ("rbac.authorization.k8s.io/v1", "Role", ["system:A_b", "a b"], ["..", "50%", "a/b"]),
        ("apiregistration.k8s.io/v1", "APIService", ["v1."], ["a/b"]),
        (
            "networking.k8s.io/v1",
            "IPAddress",
            ["192.0.2.7", "2001:db8::1"],
            ["192.0.2.07", "2001:DB8::1", "a"],
        ),
        ("scheduling.k8s.io/v1", "PriorityClass", ["a", "system-node-critical"], ["system-a"]),
        ("example.org/v1", "Role", ["a"], ["A:b"]),
    ],
)
def test_names(api: str, kind: str, good: list[str], bad: list[str]) -> None:
    assert not [name for name in good if list(names(named(api, kind, name)))]
    assert not [name for name in bad if not list(names(named(api, kind, name)))]


def test_namespaces_are_labels() -> None:
    assert not list(names(named("v1", "ConfigMap", "x", namespace="a-b")))
    (finding,) = names(named("v1", "ConfigMap", "x", namespace="a.b"))
    assert (finding.rule, finding.pointer) == ("invalid-name", "/metadata/namespace")


def test_the_name_of_a_definition_is_made_of_its_parts() -> None:
    api, kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
    spec = {"group": "a.example.org", "names": {"plural": "things"}}
    for name, good in (("things.a.example.org", True), ("thing.a.example.org", False)):
        resource = Resource(
            {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}
        )
        assert bool(list(names(resource))) is not good


@pytest.mark.parametrize(
    ("api", "kind", "said"),
    [
        ("rbac.authorization.k8s.io/v1", "ClusterRole", True),
        ("v1", "Namespace", True),
        ("v1", "ConfigMap", False),
        ("example.org/v1", "Anything", False),
    ],
)
def test_places(api: str, kind: str, said: bool) -> None:  # noqa: FBT001 - a table
    rule = placed(check().apis)
    assert bool(list(rule(named(api, kind, "x", namespace="y")))) is said
    assert not list(rule(named(api, kind, "x")))


def test_what_only_the_server_writes() -> None:
    exported = {"uid": "1", "resourceVersion": "2", "generation": 3, "creationTimestamp": "t"}
    found = list(read_only(named("v1", "ConfigMap", "x", **exported, managedFields=[{}])))
    assert sorted((f.rule, f.severity.value, f.message.partition(":")[0]) for f in found) == [
        ("read-only-field", "warning", "metadata.creationTimestamp"),
        ("read-only-field", "warning", "metadata.generation"),
        ("read-only-field", "warning", "metadata.resourceVersion"),
        ("read-only-field", "warning", "metadata.uid"),
        ("server-field-refused", "error", "metadata.managedFields"),
    ]
    generated = named("v1", "ConfigMap", "x", creationTimestamp=None, managedFields=[])
    assert not list(read_only(generated))
    assert not list(read_only(thing("v1", "Pod", status={})))
    assert [f.message for f in read_only(thing("v1", "Pod", status={"phase": "Running"}))] == [
        "status: only the server writes this"
    ]


MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("resource", "rules"),
    [
        (named("v1", "Pod", "x", annotations={"a": "x" * (256 * 1024 - 1)}), []),
        (named("v1", "Pod", "x", annotations={"a": "x" * (256 * 1024)}), ["error"]),
        (named("v1", "Pod", "x", annotations={"a": "é" * (128 * 1024)}), ["error"]),
        (thing("v1", "ConfigMap", data={"a": "x" * MIB}), []),
        (thing("v1", "ConfigMap", data={"a": "x" * MIB, "b": "x"}), ["error"]),
        (thing("v1", "ConfigMap", binaryData={"a": "eHh4" * (MIB // 3 + 1)}), ["error"]),
        (thing("v1", "Secret", data={"a": "eHh4" * (MIB // 3)}), []),
        (thing("v1", "Secret", stringData={"a": "x" * (MIB + 1)}, data={"a": "eA=="}), ["error"]),
        (thing("example.org/v1", "ConfigMap", data={"a": "x" * MIB, "b": "x"}), []),
        (thing("example.org/v1", "Thing", a="x" * (3 * MIB // 2)), ["error"]),
        (thing("apps/v1", "Deployment", a=["x" * 9] * (2 * MIB // 12)), ["warning"]),
        (thing("apps/v1", "Deployment", a="x" * (3 * MIB)), ["error"]),
        (thing("v1", "ConfigMap", data={"a": 1, "b": None}, binaryData=[]), []),
    ],
)
def test_sizes(resource: Resource, rules: list[str]) -> None:
    found = list(sizes(resource))
    assert [f.severity.value for f in found] == rules
    assert {f.rule for f in found} <= {"object-too-large"}


def secret(kind: str, **data: str) -> Resource:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return thing("v1", "Secret", type=f"kubernetes.io/{kind}", data=encoded)


def rules(resource: Resource) -> list[tuple[str, str]]:
    return [(f.rule, f.pointer) for f in kinds(resource)]


DOCKER = ".dockerconfigjson"


@pytest.mark.parametrize(
    ("resource", "pointers"),
    [
        (secret("tls", **{"tls.crt": "c", "tls.key": "k"}), []),
        (secret("tls", **{"tls.crt": "c"}), ["/data/tls.key"]),
        (secret("ssh-auth"), ["/data/ssh-privatekey"]),
        (secret("basic-auth", username="u"), []),
        (secret("basic-auth"), ["/data"]),
        (secret("dockerconfigjson", **{DOCKER: json.dumps({"auths": {}})}), []),
        (secret("dockerconfigjson", **{DOCKER: "[]"}), [f"/data/{DOCKER}"]),
        (secret("dockerconfigjson", **{DOCKER: "{"}), [f"/data/{DOCKER}"]),
        (secret("dockerconfigjson"), [f"/data/{DOCKER}"]),
        (
            secret("service-account-token"),
            ["/metadata/annotations/kubernetes.io~1service-account.name"],
        ),
        (
            thing(
                "v1", "Secret", type="kubernetes.io/tls", stringData={"tls.crt": "", "tls.key": ""}
            ),
            [],
        ),
        (thing("v1", "Secret", type="kubernetes.io/tls", data={}, sops={"mac": "x"}), []),
        (thing("v1", "Secret", type=["x"], data=[], stringData=1), []),
    ],
)
def test_secrets_hold_what_their_type_requires(resource: Resource, pointers: list[str]) -> None:
    assert rules(resource) == [("secret-content", pointer) for pointer in pointers]


def workload(kind: str, labels: Any, selector: Any, **pod: Any) -> Resource:
    template = {"metadata": {"labels": labels}, "spec": pod}
    return thing("apps/v1", kind, spec={"selector": selector, "template": template})


@pytest.mark.parametrize(
    ("resource", "found"),
    [
        (workload("Deployment", {"a": "b", "c": "d"}, {"matchLabels": {"a": "b"}}), []),
        (workload("Deployment", {"a": "c"}, {"matchLabels": {"a": "b"}}), ["selector-mismatch"]),
        (workload("StatefulSet", None, {"matchLabels": {"a": "b"}}), ["selector-mismatch"]),
        (workload("DaemonSet", {}, {}, restartPolicy="Never"), ["unsupported-value"]),
        (workload("Deployment", 1, [], restartPolicy="Always"), []),
        (
            thing("v1", "ReplicationController", spec={"selector": {"a": "b"}}),
            ["selector-mismatch"],
        ),
        (thing("batch/v1", "Job", spec={"template": {"spec": {}}}), ["required-field"]),
        (
            thing("batch/v1", "Job", spec={"template": {"spec": {"restartPolicy": "Always"}}}),
            ["unsupported-value"],
        ),
        (thing("batch/v1", "CronJob", spec=None), ["required-field"]),
        (thing("v1", "Service", spec={"ports": [{"port": 1}]}), []),
        (thing("v1", "Service", spec={}), ["required-field"]),
        (thing("v1", "Service", spec={"clusterIP": "None"}), []),
        (thing("v1", "Service", spec={"type": "ExternalName"}), ["required-field"]),
        (thing("v1", "Service", spec={"type": "ExternalName", "externalName": "a.b."}), []),
        (
            thing("v1", "Service", spec={"type": "ExternalName", "externalName": "http://a"}),
            ["invalid-name"],
        ),
        (thing("v1", "PersistentVolume", spec={"capacity": {}, "nfs": {}}), []),
        (thing("v1", "PersistentVolume", spec={"capacity": {}, "nfs": None}), ["required-field"]),
        (
            thing("rbac.authorization.k8s.io/v1", "Role", rules=[{"verbs": ["get"]}]),
            ["required-field", "required-field"],
        ),
        (
            thing(
                "rbac.authorization.k8s.io/v1", "ClusterRole", rules=[{"nonResourceURLs": ["/"]}, 1]
            ),
            [],
        ),
        (
            thing("v1", "Pod", spec={"volumes": [{"name": "v", "image": {}}, None]}),
            ["required-field"],
        ),
        (
            thing(
                "discovery.k8s.io/v1",
                "EndpointSlice",
                addressType="IPv4",
                endpoints=[{"addresses": ["::1"]}],
            ),
            ["invalid-format"],
        ),
        (thing("example.org/v1", "Service", spec={}), []),
    ],
)
def test_what_kinds_ask_for(resource: Resource, found: list[str]) -> None:
    assert [f.rule for f in kinds(resource)] == found


def test_ingress() -> None:
    def ingress(**path: Any) -> list[tuple[str, str]]:
        rule = {"http": {"paths": [path]}}
        return rules(thing("networking.k8s.io/v1", "Ingress", spec={"rules": [rule]}))

    where = "/spec/rules/0/http/paths/0"
    backend = {"service": {"name": "a", "port": {"number": 1}}}
    assert ingress(path="/", pathType="Prefix", backend=backend) == []
    assert ingress(pathType="Prefix", backend=backend) == [("invalid-format", f"{where}/path")]
    assert ingress(pathType="ImplementationSpecific", backend=backend) == []
    nothing = {"service": {"name": "a", "port": {"number": 0}}}
    assert ingress(path="/", pathType="Exact", backend=nothing) == [
        ("required-field", f"{where}/backend/service/port")
    ]


def test_paths_are_spelt_as_the_server_spells_them() -> None:
    assert spell(("spec", "containers", 0, "name")) == "spec.containers[0].name"
    assert spell(("metadata", "labels", "a/b")) == "metadata.labels[a/b]"
    assert spell(()) == "(root)"


def test_every_rule_is_in_the_table_once_and_explained() -> None:
    folder = Path(ocipack.validate.__file__).parent
    used = {
        node.value
        for file in folder.glob("*.py")
        if file.name != "rules.py"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in RULES
    }
    assert used == RULES.keys()
    for rule in RULES.values():
        assert rule.id.replace("-", "").isalpha()
        assert rule.id.islower()
        assert rule.summary
        assert rule.mend
        assert rule.severity in Severity
