"""Objects against the schemas of their kinds: what is said, how often, and what is left unsaid."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from things import check, definition, said, thing

from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.report import Finding, Severity
from ocipack.validate.apis import Apis
from ocipack.validate.crd import custom_kinds
from ocipack.validate.suggest import nearest


def pod(**container: Any) -> Resource:
    return thing("v1", "Pod", spec={"containers": [{"name": "c", "image": "i", **container}]})


def test_an_unknown_field_is_named_with_the_one_that_was_meant() -> None:
    (finding,) = check()(pod(imagePullPolcy="Always"))
    assert finding.rule == "unknown-field"
    assert finding.message == "spec.containers[0].imagePullPolcy: unknown field"
    assert finding.pointer == "/spec/containers/0/imagePullPolcy"
    assert finding.hint == "did you mean `imagePullPolicy`?"
    assert finding.subject == "Pod x"
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("field", "value", "rule", "message", "hint"),
    [
        ("command", "sh", "wrong-type", "must be of type array, not string", ""),
        ("stdin", "true", "wrong-type", "must be of type boolean, not string", "remove the quotes"),
        ("workingDir", 1, "wrong-type", "must be of type string, not integer", "quote it"),
        ("workingDir", {}, "wrong-type", "must be of type string, not object", ""),
        ("workingDir", True, "wrong-type", "must be of type string, not boolean", "quote it"),
        ("image", None, "required-field", "required, but it is null", ""),
        ("image", "", "required-field", "required, but it is empty", ""),
        (
            "imagePullPolicy",
            "always",
            "unsupported-value",
            "unsupported value 'always': one of Always, IfNotPresent, Never",
            "did you mean `Always`?",
        ),
        (
            "terminationGracePeriodSeconds",
            1,
            "unknown-field",
            "unknown field",
            "",
        ),
    ],
)
def test_words(field: str, value: Any, rule: str, message: str, hint: str) -> None:
    assert said(pod(**{field: value})) == [(rule, f"spec.containers[0].{field}: {message}", hint)]


def test_a_misspelt_required_field_is_one_problem() -> None:
    resource = thing("v1", "Pod", spec={"containers": [{"nmae": "c", "image": "i"}]})
    assert [rule for rule, _, _ in said(resource)] == ["unknown-field"]


def test_one_slip_in_many_entries_is_said_once_with_its_places() -> None:
    containers = [{"name": f"c{n}", "image": "i", "imge": ""} for n in range(6)]
    ((rule, message, _),) = said(thing("v1", "Pod", spec={"containers": containers}))
    assert rule == "unknown-field"
    assert message == (
        "spec.containers[0].imge: unknown field (also spec.containers[1].imge, "
        "spec.containers[2].imge, spec.containers[3].imge and 2 more)"
    )


def test_null_is_absent_where_a_field_is_optional() -> None:
    assert not said(pod(resources=None, args=[None, "a"], env=None))


def test_the_zero_value_of_optional_fields_is_absent() -> None:
    assert not said(pod(imagePullPolicy="", ports=[{"containerPort": 1, "name": ""}]))


def test_integers_written_with_a_point_are_integers() -> None:
    assert not said(pod(ports=[{"containerPort": 80.0}]))
    assert said(pod(ports=[{"containerPort": 80.5}]))


def test_integers_keep_to_their_size() -> None:
    assert said(thing("v1", "Service", spec={"healthCheckNodePort": 2**31}))


def test_values_of_secrets_are_not_shown() -> None:
    resource = thing("v1", "Secret", data={"a": "hunter2!", "b": 7})
    found = said(resource)
    assert len(found) == 2
    assert "hunter2" not in str(found)


def test_fields_that_sound_secret_are_not_shown() -> None:
    values: dict[str, Any] = {"imagePullSecrets": [{"name": "a"}], "tolerations": [{"key": "a b"}]}
    assert "'a b'" in str(said(thing("v1", "Pod", spec={"containers": [], **values})))
    crd = definition({"apiToken": {"type": "string", "pattern": "^x$"}})
    (finding,) = custom(crd, {"apiToken": "hunter2"})
    assert "hunter2" not in finding.message


def test_a_status_is_read_for_its_types_only() -> None:
    spec: dict[str, Any] = {
        "group": "a.b",
        "scope": "Cluster",
        "names": {"plural": "cs", "kind": "C"},
    }
    spec["versions"] = [{"name": "v1"}]
    status = {"acceptedNames": {"plural": "", "kind": ""}, "conditions": [], "storedVersions": []}
    crd = thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec=spec, status=status)
    assert not said(crd)
    assert said(thing("v1", "Pod", spec={"containers": [{"name": "c", "image": "i"}]}, status="x"))


def test_ciphertext_stands_for_any_value() -> None:
    encrypted = "ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]"
    sops = {"mac": encrypted, "version": "3.9"}
    assert not said(thing("v1", "Secret", data={"a": encrypted}, sops=sops))
    assert said(thing("v1", "Secret", data={"a": encrypted}))
    assert said(thing("v1", "Secret", dta={"a": encrypted}, sops=sops))


def test_a_field_of_a_newer_version_is_unknown_to_an_older_one() -> None:
    resource = pod(restartPolicyRules=[])
    assert not said(resource, "1.37")
    assert [rule for rule, _, _ in said(resource, "1.25")] == ["unknown-field"]


def custom(crd: Resource, spec: Any, **more: Any) -> list[Finding]:
    schemas = check()
    schemas.apis.add(custom_kinds(crd))
    return list(schemas(thing("a.example.org/v1", "Thing", spec=spec, **more)))


def test_what_is_nested_too_deep_is_refused() -> None:
    value: dict[str, Any] = {}
    for _ in range(400):
        value = {"a": value}
    assert [rule for rule, _, _ in said(thing("v1", "ConfigMap", data=value))] == [
        "object-too-large"
    ]


def test_a_missing_schema_is_counted_and_said_once() -> None:
    schemas = check()
    found = [f for _ in range(3) for f in schemas(thing("a.example.org/v1", "Thing"))]
    assert [(f.rule, f.severity) for f in found] == [("schema-missing", Severity.NOTE)]
    assert schemas.missing == {"a.example.org/v1 Thing": 3}


def test_a_missing_schema_can_be_refused_each_time() -> None:
    schemas = check(require=True)
    found = [f for _ in range(2) for f in schemas(thing("a.example.org/v1", "Thing"))]
    assert [(f.rule, f.severity) for f in found] == [("schema-required", Severity.ERROR)] * 2


def test_a_kind_that_is_refused_is_not_also_missing() -> None:
    schemas = check(require=True)
    assert not list(schemas(thing("apps/v1", "Deploymnet")))
    assert not schemas.missing


@pytest.mark.parametrize(
    ("api", "kind", "version", "rule", "hint"),
    [
        ("apps/v1", "Deploymnet", "", "unknown-kind", "did you mean `kind: Deployment`?"),
        ("app/v1", "Deployment", "", "unknown-kind", "did you mean `apiVersion: apps/v1`?"),
        ("Apps/v1", "Deployment", "", "unknown-kind", "did you mean `apiVersion: apps/v1`?"),
        ("core/v1", "Service", "", "unknown-kind", "did you mean `apiVersion: v1`?"),
        ("v1", "Deployment", "", "unknown-kind", "did you mean `apiVersion: apps/v1`?"),
        ("v1", "Services", "", "unknown-kind", "did you mean `kind: Service`?"),
        ("v1", "ConfigMapList", "", "unknown-kind", None),
        (
            "networking.k8s.i/v1",
            "Ingress",
            "",
            "unknown-kind",
            "did you mean `apiVersion: networking.k8s.io/v1`?",
        ),
        (
            "networking/v1",
            "Ingress",
            "",
            "unknown-kind",
            "did you mean `apiVersion: networking.k8s.io/v1`?",
        ),
        ("batch/v1beta1", "CronJob", "", "api-removed", "use batch/v1"),
        ("extensions/v1beta1", "Ingress", "", "api-removed", "use networking.k8s.io/v1"),
        (
            "autoscaling/v2beta2",
            "HorizontalPodAutoscaler",
            "1.26",
            "api-removed",
            "use autoscaling/v2",
        ),
        (
            "autoscaling/v2beta2",
            "HorizontalPodAutoscaler",
            "1.25",
            "api-deprecated",
            "use autoscaling/v2",
        ),
        (
            "resource.k8s.io/v1",
            "DeviceClass",
            "1.33",
            "api-too-new",
            "1.33 has resource.k8s.io/v1beta2",
        ),
        ("resource.k8s.io/v1alpha2", "ResourceClass", "1.33", "api-removed", "nothing replaces it"),
        ("networking.k8s.i/v1", "Foo", "", "unknown-kind", "did you mean `networking.k8s.io`?"),
        ("zzz/v1", "Foo", "", "unknown-kind", ""),
        ("x/v1", "Foo", "", "unknown-kind", ""),
        ("x.y/v1", "Foo", "", None, None),
        ("v1", "Endpoints", "1.37", "api-deprecated", "use discovery.k8s.io/v1 EndpointSlice"),
        ("v1", "Endpoints", "1.32", None, None),
        ("apps/v1", "Deployment", "1.25", None, None),
        ("example.org/v1", "Deployment", "", None, None),
        ("serving.knative.dev/v1", "Service", "", None, None),
        ("gateway.networking.k8s.io/v1", "Gateway", "", None, None),
        ("scheduling.x-k8s.io/v1", "PodGroup", "", None, None),
    ],
)
def test_kinds(api: str, kind: str, version: str, rule: str | None, hint: str | None) -> None:
    found = list(Apis(Catalog.of(version))(thing(api, kind)))
    assert [f.rule for f in found] == ([rule] if rule else [])
    if hint is not None:
        assert found[0].hint == hint


def test_how_deprecation_is_worded() -> None:
    def message(api: str, kind: str, version: str) -> str:
        (finding,) = Apis(Catalog.of(version))(thing(api, kind))
        return finding.message

    assert message("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.25") == (
        "autoscaling/v2beta2 HorizontalPodAutoscaler is deprecated since Kubernetes 1.23; "
        "it is gone in Kubernetes 1.26"
    )
    assert message("v1", "Endpoints", "1.33") == (
        "v1 Endpoints is deprecated since Kubernetes 1.33"
    )
    assert message("scheduling.k8s.io/v1alpha2", "Workload", "1.36") == (
        "scheduling.k8s.io/v1alpha2 Workload is deprecated; it is gone in Kubernetes 1.37"
    )


def test_a_field_that_is_there_is_not_what_was_meant() -> None:
    ((_, _, hint),) = said(pod(imagee="x"))
    assert hint == ""


def test_nearest() -> None:
    known = ["image", "imagePullPolicy", "value", "valueFrom", "mountPath", "args"]
    assert nearest("imagepullpolicy", known) == "imagePullPolicy"
    assert nearest("val", known) == "value"
    assert nearest("path", known) == "mountPath"
    assert nearest("agrs", known) == "args"
    assert nearest("zzzzzz", known) == ""


def test_the_engine_is_loaded_when_something_is_judged() -> None:
    code = (
        "import sys; import ocipack.validate.checks; "
        "assert not {'jsonschema_rs', 'zoneinfo'} & sys.modules.keys(), 'loaded on import'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
