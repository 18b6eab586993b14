"""What a tree names, without building anything: each place, each trick, each limit."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence

import pytest

from ocipack.errors import Misuse, Rejected
from ocipack.oci.reference import Reference
from ocipack.render import Rendered
from ocipack.report import Severity
from ocipack.trust.policy.contents import PINNED, UNCLEAR, UNPINNED, Contents, Part, opinion
from ocipack.trust.policy.names import Glob
from ocipack.verify import inside
from ocipack.verify.inside import Inside, look

OWN = Reference.parse("registry.example.com/fleet/apps:v1")
DIGEST = "sha256:" + "a" * 64
TAGGED = "ghcr.io/org/app:1"


def nothing_to_build(directories: Sequence[str]) -> Rendered:
    raise AssertionError(directories)


def seen(files: dict[str, str | bytes], *, roots: tuple[str, ...] = ()) -> Inside:
    raw = {name: text if isinstance(text, bytes) else text.encode() for name, text in files.items()}
    sizes = {name: len(data) for name, data in raw.items()}
    return look(sizes, raw.__getitem__, nothing_to_build, own=OWN, roots=roots)


def verdicts(found: Inside) -> dict[str, str]:
    """The rule that refuses each part, or nothing."""
    return {part.text: opinion(PINNED, part, None).rule for part in found.parts}


def one(text: str, file: str = "app.yaml") -> dict[str, str]:
    return verdicts(seen({file: text}))


def pod(image: str) -> str:
    spec = f"{{containers: [{{name: c, image: {image}}}]}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n"


def pinned(text: str) -> str:
    return text.replace("APP", f"{TAGGED}@{DIGEST}")


def tagged(text: str) -> str:
    return text.replace("APP", TAGGED)


def spec_of(group: str, kind: str, spec: str) -> str:
    return f"apiVersion: {group}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}\n"


TEMPLATE = "{template: {spec: {containers: [{name: c, image: APP}]}}}"
STEPS = "{steps: [{name: s, image: APP}]}"
PLACES = {
    "container": spec_of("v1", "Pod", "{containers: [{name: c, image: APP}]}"),
    "init": spec_of("v1", "Pod", "{initContainers: [{name: c, image: APP}]}"),
    "ephemeral": spec_of("v1", "Pod", "{ephemeralContainers: [{name: c, image: APP}]}"),
    "image volume": spec_of("v1", "Pod", "{volumes: [{name: v, image: {reference: APP}}]}"),
    **{
        kind: spec_of("apps/v1", kind, TEMPLATE)
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")
    },
    "ReplicationController": spec_of("v1", "ReplicationController", TEMPLATE),
    "Job": spec_of("batch/v1", "Job", TEMPLATE),
    "CronJob": spec_of("batch/v1", "CronJob", f"{{jobTemplate: {{spec: {TEMPLATE}}}}}"),
    "PodTemplate": "apiVersion: v1\nkind: PodTemplate\n"
    "template: {spec: {containers: [{name: c, image: APP}]}}\n",
    "old Deployment": spec_of("extensions/v1beta1", "Deployment", TEMPLATE),
    "List": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n"
    "  spec: {containers: [{image: APP}]}\n",
    "List in a List": "apiVersion: v1\nkind: List\nitems:\n- kind: List\n  apiVersion: v1\n"
    "  items: [{apiVersion: v1, kind: Pod, spec: {containers: [{image: APP}]}}]\n",
    "typed List": "apiVersion: apps/v1\nkind: DeploymentList\nitems:\n"
    "- spec: {template: {spec: {containers: [{image: APP}]}}}\n",
    "Rollout": spec_of("argoproj.io/v1alpha1", "Rollout", TEMPLATE),
    "Workflow": spec_of(
        "argoproj.io/v1alpha1", "Workflow", "{templates: [{container: {image: APP}}]}"
    ),
    "Workflow script": spec_of(
        "argoproj.io/v1alpha1", "Workflow", "{templates: [{script: {image: APP}}]}"
    ),
    "Workflow init": spec_of(
        "argoproj.io/v1alpha1", "Workflow", "{templates: [{initContainers: [{image: APP}]}]}"
    ),
    "Workflow set": spec_of(
        "argoproj.io/v1alpha1", "Workflow",
        "{templates: [{containerSet: {containers: [{image: APP}]}}]}",
    ),
    "Knative Service": spec_of("serving.knative.dev/v1", "Service", TEMPLATE),
    "Task": spec_of("tekton.dev/v1", "Task", STEPS),
    "Pipeline": spec_of("tekton.dev/v1", "Pipeline", f"{{tasks: [{{taskSpec: {STEPS}}}]}}"),
    "Crossplane": spec_of("pkg.crossplane.io/v1", "Provider", "{package: APP}"),
    "Prometheus": spec_of("monitoring.coreos.com/v1", "Prometheus", "{image: APP}"),
    "thanos": spec_of("monitoring.coreos.com/v1", "Prometheus", "{thanos: {image: APP}}"),
    "CloudNativePG": spec_of("postgresql.cnpg.io/v1", "Cluster", "{imageName: APP}"),
    "ImageCatalog": spec_of("postgresql.cnpg.io/v1", "ImageCatalog", "{images: [{image: APP}]}"),
    "KubeVirt": spec_of(
        "kubevirt.io/v1", "VirtualMachineInstance", "{volumes: [{containerDisk: {image: APP}}]}"
    ),
    "Crunchy": spec_of(
        "postgres-operator.crunchydata.com/v1beta1", "PostgresCluster",
        "{backups: {pgbackrest: {image: APP}}}",
    ),
    "ECK": spec_of("elasticsearch.k8s.elastic.co/v1", "Elasticsearch", "{image: APP}"),
    "Strimzi": spec_of("kafka.strimzi.io/v1beta2", "KafkaConnect", "{image: APP}"),
    "runner": spec_of(
        "actions.summerwind.dev/v1alpha1", "RunnerDeployment", "{template: {spec: {image: APP}}}"
    ),
    "OLM": spec_of("operators.coreos.com/v1alpha1", "CatalogSource", "{image: APP}"),
    "relatedImages": spec_of(
        "operators.coreos.com/v1alpha1", "ClusterServiceVersion", "{relatedImages: [{image: APP}]}"
    ),
    "unknown kind": spec_of("example.com/v1", "Widget", "{agent: {sidecarImage: APP}}"),
    "pod in an unknown kind": spec_of("example.com/v1", "JobSet", f"{{jobs: [{TEMPLATE}]}}"),
    "pod outside of a spec": "apiVersion: example.com/v1\nkind: Widget\n"
    "template: {initContainers: [{image: APP}]}\n",
    "pod in a kind of a special interest group": spec_of("a.k8s.io/v1", "Widget", TEMPLATE),
    "volume of an unknown kind": spec_of(
        "example.com/v1", "Widget", "{volumes: [{name: v, image: {reference: APP}}]}"
    ),
    "argument": spec_of("v1", "Pod", "{containers: [{image: APP, args: ['--solver-image=APP']}]}"),
    "two arguments": spec_of(
        "v1", "Pod", "{containers: [{image: APP, command: [run, --helper-image, APP]}]}"
    ),
    "variable": spec_of(
        "v1", "Pod", "{containers: [{image: APP, env: [{name: RELATED_IMAGE_X, value: APP}]}]}"
    ),
    "HelmRelease": spec_of("helm.toolkit.fluxcd.io/v2", "HelmRelease", "{values: {image: APP}}"),
    "postRenderers": spec_of(
        "helm.toolkit.fluxcd.io/v2", "HelmRelease",
        "{postRenderers: [{kustomize: {images: [{name: ghcr.io/org/app, newTag: '1AT'}]}}]}",
    ),
    "Flux images": spec_of(
        "kustomize.toolkit.fluxcd.io/v1", "Kustomization",
        "{path: ./nowhere, images: [{name: x, newName: ghcr.io/org/app, newTag: '1AT'}]}",
    ),
    "HelmRelease map": spec_of(
        "helm.toolkit.fluxcd.io/v2", "HelmRelease",
        "{values: {image: {registry: ghcr.io, repository: org/app, tag: '1AT'}}}",
    ),
    "Application images": spec_of(
        "argoproj.io/v1alpha1", "Application",
        "{source: {repoURL: 'https://github.com/o/r', targetRevision: " + "b" * 40
        + ", kustomize: {images: [x=APP]}}}",
    ),
    "values file": "image: APP\n",
}  # fmt: skip
"""Every place of the finder, and objects in which it stands; `AT` is where a digest goes."""


@pytest.mark.parametrize("place", PLACES)
def test_every_place_is_looked_at(place: str) -> None:
    file = "values.yaml" if place == "values file" else "app.yaml"
    text = PLACES[place]
    loose = one(tagged(text).replace("AT'", "'"), file)
    tight = one(pinned(text).replace("AT'", f"@{DIGEST}'"), file)
    assert loose.get(TAGGED) == UNPINNED, loose
    assert tight.get(f"{TAGGED}@{DIGEST}") == "", tight
    assert UNPINNED not in tight.values()


@pytest.mark.parametrize(
    ("image", "rule"),
    [
        (f"ghcr.io/org/app@{DIGEST}", ""),
        (f"nginx@{DIGEST}", ""),
        (f"GHCR.io/org/app@{DIGEST}", ""),
        ("nginx", UNPINNED),
        ("nginx:latest", UNPINNED),
        ("docker.io/nginx", UNPINNED),
        ("'*'", UNCLEAR),
        ("'*:*'", UNCLEAR),
        ("'{{ .Values.image }}'", UNCLEAR),
        ("'${IMAGE}'", UNCLEAR),
        (f"'${{REGISTRY}}/app@{DIGEST}'", UNCLEAR),
        ("$(IMAGE)", UNCLEAR),
        (f"ghcr.io./org/app@{DIGEST}", UNCLEAR),
        (f"ghcr.io/org/App@{DIGEST}", UNCLEAR),
        ("ghcr.io/org/app:1@sha256:abc", UNCLEAR),
        (f"ghcr.io/org/app:1@SHA256:{'a' * 64}", UNCLEAR),
        (f"ghcr.io/org/app:1@md5:{'a' * 32}", UNCLEAR),
        (f"ghcr.io/org/app:1@{DIGEST}0", UNCLEAR),
        (f"ghcr.io/org/app:1@{DIGEST}@{DIGEST}", UNCLEAR),
        (f"'ghcr.io/org/app:1@{DIGEST} '", UNCLEAR),
        (f"'ghcr.io/org/app:1@{DIGEST}\\n'".replace("'", '"'), UNCLEAR),
        (f"ghcr.io:99999/org/app@{DIGEST}", UNCLEAR),
        (f"https://ghcr.io/org/app@{DIGEST}", UNCLEAR),
        ("''", UNCLEAR),
        ("1.5", UNCLEAR),
        ("[a]", UNCLEAR),
        ("null", UNCLEAR),
    ],
)
def test_what_a_field_can_hold(image: str, rule: str) -> None:
    [(_, found)] = one(pod(image)).items()
    assert found == rule


@pytest.mark.parametrize("image", ["nginx", "docker.io/nginx", "index.docker.io/library/nginx"])
def test_spellings_of_one_registry_are_one_name(image: str) -> None:
    allowed = Contents((Glob("docker.io/library/*"),))
    elsewhere = Contents((Glob("ghcr.io/**"),))
    [part] = seen({"a.yaml": pod(f"{image}@{DIGEST}")}).parts
    assert not opinion(allowed, part, None).rule
    assert opinion(elsewhere, part, None).rule == "contents-forbidden"


ALIASED = f"""
apiVersion: v1
kind: Pod
metadata: {{name: p, annotations: {{a: &app {TAGGED}}}}}
spec:
  containers:
  - &base {{name: c, image: *app}}
  - {{<<: *base}}
"""
TWICE = pod("x").replace("image: x", f"image: {TAGGED}@{DIGEST}, image: {TAGGED}")


def test_aliases_and_merges_are_followed() -> None:
    found = seen({"a.yaml": ALIASED})
    assert verdicts(found) == {TAGGED: UNPINNED}
    [places] = found.parts.values()
    pointers = {where.pointer for where in places}
    assert pointers == {f"/spec/containers/{n}/image" for n in (0, 1)}


@pytest.mark.parametrize(
    "data",
    [
        TWICE.encode(),
        ALIASED.replace("<<: *base", "<<: *base, name: d").encode(),  # twice, to kubectl
        pod("x").replace("Pod", "Pod\nkind: Pod").encode(),
        b"apiVersion: v1\nkind: Pod\n" + b"a: [" * 300,
        b"apiVersion: v1\nkind: Pod\nspec: \xff\n",
        b'{"apiVersion": "v1", "kind": "Pod", "spec": {}, "spec": {}}',
        b'{"\\u0061piVersion": "v1", "k\\u0069nd": "Pod", ',
        pod("nginx").encode("utf-16-le")[:-1],
        b"apiVersion: v1\nkind: Pod\na: {a\n",
    ],
)
def test_what_readers_do_not_agree_on_is_refused(data: bytes) -> None:
    found = seen({"a.yaml": data})
    assert [finding.rule for finding in found.findings] == ["contents-unreadable"]
    assert found.findings[0].severity is Severity.ERROR


def test_items_are_what_their_list_says() -> None:
    text = (
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepositoryList\n"
        "items: [{metadata: {name: a}, spec: {url: 'oci://ghcr.io/a', ref: {tag: dev}}}]\n"
    )
    assert one(text) == {"oci://ghcr.io/a:dev": UNPINNED}


def test_json_is_read() -> None:
    value = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"image": TAGGED}]}}
    assert one(json.dumps(value), "a.json") == {TAGGED: UNPINNED}
    several = json.dumps(value) + "\n" + json.dumps(value).replace("app:1", "app:2")
    assert "ghcr.io/org/app:2" in one(
        pod("x") + "---\n" + json.dumps(value).replace("app:1", "app:2")
    )
    assert seen({"a.json": several}).findings  # kustomize and kubectl differ on it


def test_what_was_not_looked_at_is_listed() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: 'image: nginx'}\n"
    release = spec_of(
        "helm.toolkit.fluxcd.io/v2", "HelmRelease", "{chartRef: {kind: OCIRepository, name: o}}"
    )
    flux = spec_of(
        "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "{path: ./no, patches: [{patch: 'x'}]}"
    )
    crd = spec_of(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "{default: {image: 'nginx:1'}}"
    )
    found = seen(
        {
            "config.yaml": text,
            "secret.yaml": text.replace("ConfigMap", "Secret"),
            "release.yaml": release,
            "flux.yaml": flux,
            "crd.yaml": crd,
            "deploy.txt": pod("nginx"),
            "deploy.yaml.gz": gzip.compress(pod("nginx").encode()),
            "notes.yaml": "a: 1\n",
            "broken.yaml": "{{ define }}\n",
            "chart/Chart.yaml": "name: c\n",
            "chart/templates/pod.yaml": pod("'{{ .Values.image }}'"),
            ".github/workflows/ci.yaml": "jobs: {}\n",
        }
    )
    listed = {what.reason: names for what, names in found.unseen.items()}
    assert listed == {
        "source-controller leaves it out": {".github/workflows/ci.yaml"},
        "the text in a ConfigMap": {"ConfigMap c"},
        "the text in a Secret": {"Secret c"},
        "the images that a chart names itself": {"HelmRelease x"},
        "patches and components that Flux applies in the cluster": {"Kustomization x"},
        "may be an image, or none: it describes or matches images, and runs none": {
            "CustomResourceDefinition x"
        },
        "its source is no part of this artifact": {"HelmRelease x"},
        "no manifest by its name": {"deploy.txt", "deploy.yaml.gz"},
        "no Kubernetes object": {"notes.yaml"},
        "neither YAML nor a Kubernetes object": {"broken.yaml"},
        "part of a Helm chart, no manifest before it is rendered": {
            "chart/Chart.yaml",
            "chart/templates/pod.yaml",
        },
    }
    assert not found.parts
    weights = {what.reason: what.severity for what in found.unseen}
    assert weights["the images that a chart names itself"] is Severity.WARNING
    assert weights["patches and components that Flux applies in the cluster"] is Severity.WARNING


def test_what_an_unknown_kind_calls_an_image_is_refused_or_listed() -> None:
    inner = "{containers: [{image: nginx}], image: ubuntu, os: {baseImage: ghcr.io/org/os}}"
    found = seen({"a.yaml": spec_of("example.com/v1", "Widget", inner)})
    assert verdicts(found) == {"nginx": UNPINNED}  # in a pod it is the latest of Docker Hub
    assert {what.reason for what in found.unseen} == {
        "a field called image, and no image for sure",
        "may be an image, or none: it has no tag",
    }
    for group, kind in (
        ("kyverno.io/v1", "Policy"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ):
        inner = "{containers: [{image: '*:*'}, {image: nginx}], image: x}"
        found = seen({"a.yaml": spec_of(group, kind, inner)})
        assert not found.parts
        assert "a field called image, and no image for sure" in {one.reason for one in found.unseen}


def test_what_sops_left_in_clear_is_judged() -> None:
    text = pod("nginx") + "sops: {mac: x}\n"
    found = seen({"a.yaml": text})
    assert verdicts(found) == {"nginx": UNPINNED}
    assert "what SOPS has sealed" in {what.reason for what in found.unseen}


REPOSITORY = (
    "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\n"
    "metadata: {name: stable}\nspec: {url: 'https://charts.example/s'}\n"
)
FROM = "sourceRef: {kind: HelmRepository, name: stable}"
RELEASE = spec_of(
    "helm.toolkit.fluxcd.io/v2",
    "HelmRelease",
    f"{{chart: {{spec: {{chart: app, version: 1.2.3, {FROM}}}}}}}",
)


def test_a_chart_is_called_after_its_repository_if_that_is_here() -> None:
    found = seen({"a.yaml": RELEASE, "b.yaml": REPOSITORY})
    assert {str(part.address) for part in found.parts} == {
        "https://charts.example/s",
        "https://charts.example/s/app",
    }
    [alone] = seen({"a.yaml": RELEASE}).parts
    assert (alone.address, alone.pinned, alone.reason) == (None, True, "")
    twice = seen(
        {"a.yaml": RELEASE, "b.yaml": REPOSITORY, "c.yaml": REPOSITORY.replace("/s", "/t")}
    )
    assert None in {part.address for part in twice.parts}  # nobody can tell which of the two


def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(Rejected, match="there is no object in it"):
        seen({"README.md": "hello"})


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (inside.PLACES, inside.ROOTS, inside.MANIFEST) == (100_000, 2_000, 64 * 1024 * 1024)
    pods = pod("a:1") + "---\n" + pod("b:1") + "---\n" + pod("a:1")
    monkeypatch.setattr(inside, "PLACES", 3)
    assert len(seen({"a.yaml": pods}).parts) == 2
    with pytest.raises(Rejected, match="more than 3 places in it name something"):
        seen({"a.yaml": pods, "b.yaml": pod("a:1")})
    monkeypatch.setattr(inside, "MANIFEST", len(pods))
    assert not seen({"a.yaml": pods}).findings
    [finding] = seen({"a.yaml": pods + "\n"}).findings
    assert finding.message == f"longer than {len(pods)} bytes"


def test_many_directories_to_build_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "ROOTS", 2)
    files = {f"{n}/kustomization.yaml": b"resources: []\n" for n in range(3)}
    sizes = {name: len(data) for name, data in files.items()}
    with pytest.raises(Rejected, match="more than 2 directories to build"):
        look(sizes, files.__getitem__, nothing_to_build, own=OWN)


@pytest.mark.parametrize("root", ["nowhere", "/a", "../x"])
def test_a_root_that_is_not_there(root: str) -> None:
    with pytest.raises(Misuse, match="is not a directory"):
        seen({"a/b.yaml": pod("nginx")}, roots=(root,))


def test_a_kustomization_that_leads_outside_is_refused_before_anything_is_built() -> None:
    with pytest.raises(Rejected, match="leads out of the tree; nothing was built"):
        seen({"a/kustomization.yaml": "resources: [../../etc/passwd]\n", "b.yaml": pod("x")})


def test_a_part_is_itself_wherever_it_stands() -> None:
    found = seen({"a.yaml": pod("nginx"), "b.yaml": "\n\n" + pod("nginx")})
    [(part, places)] = found.parts.items()
    assert part == Part("image", "nginx", Reference.parse("docker.io/library/nginx"))
    assert [(where.file, where.line) for where in places] == [("a.yaml", 4), ("b.yaml", 6)]
