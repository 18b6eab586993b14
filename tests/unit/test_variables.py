"""What is said about values that Flux puts together after the build."""

from __future__ import annotations

from typing import Any

import pytest
from things import check, thing

from ocipack.k8s.resource import Origin, Resource
from ocipack.report import Finding, Severity
from ocipack.validate.checks import checks


def findings(resource: Resource) -> list[Finding]:
    return [finding for rule in checks(check("1.37")) for finding in rule(resource)]


def severities(resource: Resource) -> list[tuple[str, str]]:
    return [(finding.rule, finding.severity.value) for finding in findings(resource)]


def claim(**spec: Any) -> Resource:
    modes = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return thing("v1", "PersistentVolumeClaim", spec={**modes, **spec})


def named(name: str) -> Resource:
    return Resource({**thing("v1", "ConfigMap").value, "metadata": {"name": name}})


@pytest.mark.parametrize(
    ("resource", "rule"),
    [
        (named("${APP}-gatus"), "invalid-name"),
        (named("${CLAIM:-${APP}}"), "invalid-name"),
        (named("$$${APP}"), "invalid-name"),  # `$$` is one `$`, then the variable
        (claim(storageClassName="${STORAGECLASS}"), "invalid-name"),
        (claim(accessModes=["${MODES:-ReadWriteOnce}"]), "unsupported-value"),
        (claim(resources={"requests": {"storage": "${SIZE:=1Gi}"}}), "invalid-format"),
        (thing("v1", "ReplicationController", spec={"replicas": "${N}"}), "wrong-type"),
    ],
)
def test_a_value_with_a_variable_is_neither_right_nor_wrong_yet(
    resource: Resource, rule: str
) -> None:
    assert severities(resource) == [(rule, "note")]
    assert "postBuild" in findings(resource)[0].hint


@pytest.mark.parametrize("name", ["$${APP}", "$APP", "${}", "${1}", "$(APP)", "{APP}"])
def test_what_is_no_variable_stays_wrong(name: str) -> None:
    assert severities(named(name)) == [("invalid-name", "error")]


def test_a_field_that_does_not_exist_will_not_exist_later() -> None:
    assert severities(claim(storageClas="${STORAGECLASS}")) == [("unknown-field", "error")]


def test_what_is_missing_stays_missing() -> None:
    pod = thing("v1", "Pod", spec={"containers": [{"image": "${IMAGE}"}]})
    assert ("required-field", "error") in severities(pod)


def test_an_object_within_a_list_has_its_own_values() -> None:
    value = named("${APP}").value
    resource = Resource(value, Origin("list.yaml", 3, pointer="/items/0"))
    (found,) = findings(resource)
    assert (found.pointer, found.severity) == ("/items/0/metadata/name", Severity.NOTE)
