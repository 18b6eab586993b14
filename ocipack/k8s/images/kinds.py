"""Where custom resources hold images: kinds whose fields are known, and their paths.

A path is written with `/`; `*` stands for every item of a list. A path that ends in `!` leads to a
pod spec. Sources: the API references of the operators named by the groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ocipack.k8s.images.site import Path

_TEMPLATE: Final = "spec/template/spec!"
_TEKTON: Final = ("steps/*/image", "sidecars/*/image", "stepTemplate/image")
_WORKFLOW: Final = (
    "templates/*/container/image",
    "templates/*/script/image",
    "templates/*/initContainers/*/image",
    "templates/*/sidecars/*/image",
    "templates/*/containerSet/containers/*/image",
    "templateDefaults/container/image",
)
_MONITORING: Final = ("spec/image", "spec/thanos/image", "spec!")
_ELASTIC: Final = ("spec/image", "spec/podTemplate/spec!", "spec/nodeSets/*/podTemplate/spec!")
_STRIMZI: Final = ("spec/image", "spec/template/pod!")


def _under(prefix: str, paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}/{path}" for path in paths)


_TASKS: Final = (
    *_under("tasks/*/taskSpec", _TEKTON),
    *_under("finally/*/taskSpec", _TEKTON),
)

KINDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("argoproj.io", "Rollout"): (_TEMPLATE,),
    ("argoproj.io", "Workflow"): _under("spec", _WORKFLOW),
    ("argoproj.io", "WorkflowTemplate"): _under("spec", _WORKFLOW),
    ("argoproj.io", "ClusterWorkflowTemplate"): _under("spec", _WORKFLOW),
    ("argoproj.io", "CronWorkflow"): _under("spec/workflowSpec", _WORKFLOW),
    ("serving.knative.dev", "Service"): (_TEMPLATE,),
    ("serving.knative.dev", "Configuration"): (_TEMPLATE,),
    ("serving.knative.dev", "Revision"): ("spec!",),
    ("pkg.crossplane.io", "Configuration"): ("spec/package",),
    ("pkg.crossplane.io", "Function"): ("spec/package",),
    ("pkg.crossplane.io", "Provider"): ("spec/package",),
    ("tekton.dev", "Task"): _under("spec", _TEKTON),
    ("tekton.dev", "ClusterTask"): _under("spec", _TEKTON),
    ("tekton.dev", "StepAction"): ("spec/image",),
    ("tekton.dev", "TaskRun"): _under("spec/taskSpec", _TEKTON),
    ("tekton.dev", "Pipeline"): _under("spec", _TASKS),
    ("tekton.dev", "PipelineRun"): _under("spec/pipelineSpec", _TASKS),
    ("monitoring.coreos.com", "Prometheus"): _MONITORING,
    ("monitoring.coreos.com", "PrometheusAgent"): _MONITORING,
    ("monitoring.coreos.com", "Alertmanager"): _MONITORING,
    ("monitoring.coreos.com", "ThanosRuler"): _MONITORING,
    ("postgresql.cnpg.io", "Cluster"): (
        "spec/imageName",
        "spec/postgresql/extensions/*/image/reference",
    ),
    ("postgresql.cnpg.io", "ImageCatalog"): ("spec/images/*/image",),
    ("postgresql.cnpg.io", "ClusterImageCatalog"): ("spec/images/*/image",),
    ("postgresql.cnpg.io", "Pooler"): (_TEMPLATE,),
    ("kubevirt.io", "VirtualMachine"): ("spec/template/spec/volumes/*/containerDisk/image",),
    ("kubevirt.io", "VirtualMachineInstance"): ("spec/volumes/*/containerDisk/image",),
    ("postgres-operator.crunchydata.com", "PostgresCluster"): (
        "spec/image",
        "spec/backups/pgbackrest/image",
        "spec/proxy/pgBouncer/image",
        "spec/monitoring/pgmonitor/exporter/image",
    ),
    ("elasticsearch.k8s.elastic.co", "Elasticsearch"): _ELASTIC,
    ("kibana.k8s.elastic.co", "Kibana"): _ELASTIC,
    ("apm.k8s.elastic.co", "ApmServer"): _ELASTIC,
    ("logstash.k8s.elastic.co", "Logstash"): _ELASTIC,
    ("agent.k8s.elastic.co", "Agent"): (
        "spec/image",
        "spec/daemonSet/podTemplate/spec!",
        "spec/deployment/podTemplate/spec!",
    ),
    ("beat.k8s.elastic.co", "Beat"): (
        "spec/image",
        "spec/daemonSet/podTemplate/spec!",
        "spec/deployment/podTemplate/spec!",
    ),
    ("kafka.strimzi.io", "Kafka"): ("spec/kafka/image", "spec/zookeeper/image"),
    ("kafka.strimzi.io", "KafkaConnect"): _STRIMZI,
    ("kafka.strimzi.io", "KafkaBridge"): _STRIMZI,
    ("kafka.strimzi.io", "KafkaMirrorMaker2"): _STRIMZI,
    ("actions.github.com", "AutoscalingRunnerSet"): (_TEMPLATE,),
    ("actions.summerwind.dev", "RunnerDeployment"): ("spec/template/spec/image", _TEMPLATE),
    ("actions.summerwind.dev", "RunnerSet"): ("spec/image", _TEMPLATE),
    ("operators.coreos.com", "CatalogSource"): ("spec/image",),
    ("operators.coreos.com", "ClusterServiceVersion"): (
        "spec/relatedImages/*/image",
        "spec/install/spec/deployments/*/spec/template/spec!",
    ),
}
"""Every known kind and where its images are."""

SCHEMAS: Final = frozenset({"CustomResourceDefinition"})
"""Kinds that describe fields: what looks like an image there is a default or an example."""

PATTERNS: Final = frozenset(
    {
        "kyverno.io",
        "policies.kyverno.io",
        "templates.gatekeeper.sh",
        "constraints.gatekeeper.sh",
        "mutations.gatekeeper.sh",
        "policy.sigstore.dev",
        "admissionregistration.k8s.io",
    }
)
"""Groups whose objects match images by patterns, and run none."""


def places(paths: tuple[str, ...], value: Any) -> Iterator[tuple[Path, bool, Any]]:
    """What stands at `paths` of `value`: where, whether it is a pod spec, and the value."""
    for path in paths:
        for found, node in _walk(path.removesuffix("!").split("/"), value, ()):
            yield found, path.endswith("!"), node


def _walk(keys: list[str], value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if not keys:
        yield path, value
    elif keys[0] == "*":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _walk(keys[1:], item, (*path, str(index)))
    elif isinstance(value, Mapping) and keys[0] in value:
        yield from _walk(keys[1:], value[keys[0]], (*path, keys[0]))
