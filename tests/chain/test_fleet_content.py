"""What examples/fleet shows is really there, in the objects that are built from it.

It stands for what platform teams keep, so what is looked for here is looked for by its effect: a
patch by what it changed, a path by the directory that it leads to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chain.conftest import ROOT, Run

from ocipack.k8s.resource import Resource
from ocipack.render import render
from ocipack.tools.kustomize import Kustomize, Program

FLEET = ROOT / "examples" / "fleet"
CLUSTERS = ("dev", "stage", "prod")
OBJECTS = {
    "infra": 93,
    "tenants": 31,
    "clusters/dev": 15,
    "clusters/stage": 14,
    "clusters/prod": 15,
}
"""How many objects each artifact renders to, 168 in all."""

PINNED = re.compile(r"[a-z0-9.-]+\.[a-z]+/[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}")
VARIABLE = re.compile(r"(?<!\$)(?:\$\$)*\$\{(\w+)(:=)?")
MARKER = re.compile(
    r'# \{"\$imagepolicy": "([\w-]+):([\w-]+)(?::(name|tag|digest))?"\}$', re.MULTILINE
)
LAYER = "application/vnd.cncf.flux.content.v1.tar+gzip"
FLUX = "kustomize.toolkit.fluxcd.io"

Object = dict[str, Any]
Roots = dict[str, list[Object]]
"""The objects of each directory that is built, by its name from the top of the fleet."""


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> Roots:
    """Everything, built in copies of the five directories, each alone as it will be packed."""
    found: Roots = {}
    program = Program.find("embedded", "")
    for artifact in OBJECTS:
        top = tmp_path_factory.mktemp("tree") / "top"
        shutil.copytree(FLEET / artifact, top)
        names = [str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()]
        private = tmp_path_factory.mktemp("private")
        with Kustomize(program, top, private) as kustomize:
            jobs = len(os.sched_getaffinity(0))
            made = render(names, reader(top), kustomize.build, jobs=jobs)
        for one in made.roots:
            place = f"{artifact}/{one.root.directory}".rstrip("/")
            found[place] = [plain(resource) for resource in one.resources]
    return found


def reader(top: Path) -> Callable[[str], bytes]:
    """What reads a file below a directory."""
    return lambda name: (top / name).read_bytes()


def plain(resource: Resource) -> Object:
    """An object as JSON has it."""
    value: Object = json.loads(json.dumps(resource.value))
    return value


def every(roots: Roots, *kinds: str) -> Iterator[Object]:
    """The objects of these kinds in all artifacts; of every kind if none is named."""
    for objects in roots.values():
        yield from (one for one in objects if not kinds or one["kind"] in kinds)


def only(roots: Roots, root: str, kind: str, name: str) -> Object:
    """The only object of a kind and name in a root."""
    (found,) = (
        one for one in roots[root] if (one["kind"], one["metadata"]["name"]) == (kind, name)
    )
    return found


def applied(roots: Roots, cluster: str) -> dict[str, Object]:
    """The Flux Kustomizations of a cluster by their names."""
    return {
        one["metadata"]["name"]: one
        for one in roots[f"clusters/{cluster}"]
        if one["kind"] == "Kustomization"
    }


def target(kustomization: Object) -> str:
    """The directory that a Flux Kustomization of a cluster builds, from the top of the fleet."""
    spec = kustomization["spec"]
    return f"{spec['sourceRef']['name']}/{spec['path'].removeprefix('./')}"


def notes(found: Object) -> Object:
    """The annotations of an object."""
    said: Object = found["metadata"].get("annotations", {})
    return said


def test_how_many_objects_there_are(roots: Roots) -> None:
    counted = {
        artifact: sum(
            len(found) for root, found in roots.items() if f"{root}/".startswith(f"{artifact}/")
        )
        for artifact in OBJECTS
    }
    assert counted == OBJECTS
    assert sum(counted.values()) == 168


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_applies_what_is_there_in_an_order(roots: Roots, cluster: str) -> None:
    found = applied(roots, cluster)
    sources = {one["metadata"]["name"] for one in every(roots, "OCIRepository")}
    for kustomization in found.values():
        spec = kustomization["spec"]
        assert target(kustomization) in roots
        assert spec["sourceRef"]["name"] in sources
        assert {"timeout", "interval", "retryInterval"} <= {*spec}
        for component in spec.get("components", []):
            assert (FLEET / target(kustomization) / component / "kustomization.yaml").is_file()
        for needed in spec.get("dependsOn", []):
            before = found[needed["name"]][
                "spec"
            ]  # waited for means that there is something to wait for
            assert before.get("wait") or before.get("healthChecks"), needed
        for check in spec.get("healthChecks", []):
            kinds = {(o["kind"], o["metadata"]["name"]) for o in roots[target(kustomization)]}
            assert (check["kind"], check["name"]) in kinds
    assert [name for name, one in found.items() if not one["spec"].get("dependsOn")] == [
        "crds-platform",
        "crds-vendored",
        "security",
    ]


def test_every_directory_that_is_built_is_applied_somewhere(roots: Roots) -> None:
    wanted = {target(one) for cluster in CLUSTERS for one in applied(roots, cluster).values()}
    assert wanted == {root for root in roots if not root.startswith("clusters/")}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_variable_has_a_value_where_it_is_put_in(roots: Roots, cluster: str) -> None:
    settings = only(roots, f"clusters/{cluster}", "ConfigMap", "cluster-settings")["data"]
    used = set()
    for kustomization in applied(roots, cluster).values():
        build = kustomization["spec"].get("postBuild", {})
        given = {*build.get("substitute", {})}
        for source in build.get("substituteFrom", []):
            given |= {*settings} if source["name"] == "cluster-settings" else set()
            assert source["name"] == "cluster-settings" or source["optional"]
        for found in roots[target(kustomization)]:
            if notes(found).get(f"{FLUX}/substitute") == "disabled":
                continue
            for name, default in VARIABLE.findall(json.dumps(found)):
                assert name in given or default, (
                    f"{name} in {found['kind']}: {target(kustomization)}"
                )
                used.add(name)
    assert used >= {*settings}, "a setting that nothing uses"


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_what_a_cluster_follows_is_verified(roots: Roots, cluster: str) -> None:
    own = [one for one in roots[f"clusters/{cluster}"] if one["kind"] == "OCIRepository"]
    assert {one["metadata"]["name"]: one["spec"]["ref"] for one in own} == {
        "infra": {"tag": cluster},
        "tenants": {"tag": cluster},
    }
    for found in own:
        assert found["spec"]["layerSelector"] == {"mediaType": LAYER, "operation": "copy"}
        assert found["spec"]["verify"] == {
            "provider": "cosign",
            "secretRef": {"name": "fleet-keys"},
        }


def test_charts_come_from_registries_by_digest(roots: Roots) -> None:
    charts = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"]
        for one in every(roots, "OCIRepository")
        if not one["spec"]["url"].startswith("oci://registry.example.com/")
    }
    releases = [*every(roots, "HelmRelease")]
    assert len(releases) == len(charts) == 4
    for release in releases:
        spec = charts[release["metadata"]["namespace"], release["spec"]["chartRef"]["name"]]
        assert spec["layerSelector"]["operation"] == "copy"
        assert re.fullmatch("sha256:[0-9a-f]{64}", spec["ref"]["digest"])
        assert "tag" in spec["ref"]
        assert release["spec"]["upgrade"]["strategy"]["name"] == "RetryOnFailure"  # a component's


def test_definitions_are_structural_and_all_of_them_are_used(roots: Roots) -> None:
    kinds = set()
    for crd in every(roots, "CustomResourceDefinition"):
        spec = crd["spec"]
        for version in spec["versions"]:
            assert version["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] == "object"
            kinds.add((f"{spec['group']}/{version['name']}", spec["names"]["kind"]))
        assert notes(crd) == {f"{FLUX}/prune": "disabled", f"{FLUX}/substitute": "disabled"}
    assert len(kinds) == 8
    assert kinds <= {(one["apiVersion"], one["kind"]) for one in every(roots)}
    wanted = {
        *(("argoproj.io/v1alpha1", "Rollout"), ("flagger.app/v1beta1", "Canary")),
        *(("deckhouse.io/v1", "NodeGroup"), ("deckhouse.io/v1alpha1", "ModuleConfig")),
    }
    assert kinds > wanted


def test_patches_components_and_generators_leave_their_marks(roots: Roots) -> None:
    baseline, web = "infra/security/bundles/baseline", "infra/apps/bundles/web"
    quotas = {
        one["metadata"]["namespace"]: one["spec"]["hard"]
        for one in roots[baseline]
        if one["kind"] == "ResourceQuota"
    }
    assert "persistentvolumeclaims" in quotas["data"]  # a JSON patch, for one of two
    assert "persistentvolumeclaims" not in quotas["web"]
    assert notes(only(roots, baseline, "Namespace", "data")) == {f"{FLUX}/prune": "disabled"}
    assert notes(only(roots, baseline, "Namespace", "web")) == {}
    console = only(roots, web, "Deployment", "console")["spec"]["template"]["spec"]
    assert console["containers"][0]["resources"]["limits"] == {"memory": "384Mi"}  # merged
    assert console["containers"][0]["resources"]["requests"]["cpu"] == "20m"
    assert only(roots, web, "CronJob", "smoke")["spec"]["schedule"] == "*/5 * * * *"
    assert console["securityContext"]["runAsNonRoot"]  # a component's
    saffron = only(roots, "tenants/saffron", "ResourceQuota", "tenant")["spec"]["hard"]
    assert saffron["requests.cpu"] == "6"
    made = [one["metadata"]["name"] for one in every(roots, "ConfigMap")]
    hashed = [name for name in made if re.fullmatch(r".+-[a-z0-9]{10}", name)]
    assert len(hashed) == 4
    (podinfo,) = (name for name in hashed if name.startswith("podinfo-"))
    pod = only(roots, web, "Deployment", "podinfo")["spec"]["template"]["spec"]
    assert pod["containers"][0]["envFrom"] == [{"configMapRef": {"name": podinfo}}]
    stack = only(
        roots, "infra/operators/bundles/observability", "HelmRelease", "kube-prometheus-stack"
    )
    assert stack["spec"]["valuesFrom"][0]["name"] in hashed
    umami = only(roots, "infra/apps/bundles/data", "Deployment", "umami")["spec"]["template"]
    assert notes(umami) == {"fleet.example.com/cache": "cache"}  # a replacement


def test_a_sealed_secret_and_who_opens_it(roots: Roots) -> None:
    (secret,) = every(roots, "Secret")
    assert all(text.startswith("ENC[AES256_GCM,data:") for text in secret["stringData"].values())
    sops = secret["sops"]
    assert sops["mac"].startswith("ENC[")
    assert f"age: {sops['age'][0]['recipient']}\n" in (FLEET / ".sops.yaml").read_text()
    assert not re.search("AGE-SECRET-KEY", "".join(file.read_text() for file in texts()))
    for cluster in CLUSTERS:
        opening = [k for k in applied(roots, cluster).values() if "decryption" in k["spec"]]
        assert [target(k) for k in opening] == ["infra/security/bundles/secrets"]
        assert opening[0]["spec"]["decryption"] == {
            "provider": "sops",
            "secretRef": {"name": "sops-age"},
        }
    assert secret in roots["infra/security/bundles/secrets"]


def test_dashboards_keep_their_variables(roots: Roots) -> None:
    found = [
        one
        for one in every(roots, "ConfigMap")
        if "grafana_dashboard" in one["metadata"].get("labels", {})
    ]
    assert len(found) == 2
    for dashboard in found:
        ((name, text),) = dashboard["data"].items()
        assert text.count("${") >= 8, name
        assert json.loads(text)["panels"]
        assert notes(dashboard)[f"{FLUX}/substitute"] == "disabled"


def test_the_autoscaler_alone_says_how_many(roots: Roots) -> None:
    (scaler,) = every(roots, "HorizontalPodAutoscaler")
    scaled = scaler["spec"]["scaleTargetRef"]
    found = only(roots, "infra/apps/bundles/web", scaled["kind"], scaled["name"])
    assert "replicas" not in found["spec"]
    assert all("replicas" in o["spec"] for o in every(roots, "Deployment") if o != found)


def test_the_claim_is_never_pruned(roots: Roots) -> None:
    (claim,) = every(roots, "PersistentVolumeClaim")
    assert notes(claim)[f"{FLUX}/prune"] == "disabled"
    (plan,) = (one for one in every(roots, "BackupPlan") if one["metadata"]["name"] == "umami")
    assert plan["spec"]["claims"] == [claim["metadata"]["name"]]


def test_containers_of_every_sort_are_pinned(roots: Roots) -> None:
    pods = [one for objects in roots.values() for found in objects for one in specs(found)]
    init = [c for pod in pods for c in pod.get("initContainers", [])]
    assert [c["name"] for c in init if c.get("restartPolicy") == "Always"] == ["collector"]
    assert [c["name"] for c in init if "restartPolicy" not in c] == ["database"]
    ephemeral = [
        c for found in every(roots, "DebugProfile") for c in found["spec"]["ephemeralContainers"]
    ]
    volumes = [
        v["image"]["reference"] for pod in pods for v in pod.get("volumes", []) if "image" in v
    ]
    assert (len(ephemeral), len(volumes)) == (2, 1)
    named = [
        c["image"] for c in (*init, *ephemeral, *(c for pod in pods for c in pod["containers"]))
    ]
    for image in (*named, *volumes):
        assert PINNED.fullmatch(image), image
    rollout = only(roots, "infra/apps/bundles/web", "Rollout", "storefront")
    canary = only(roots, "infra/apps/bundles/web", "Canary", "podinfo")
    assert rollout["spec"]["strategy"]["canary"]["steps"][0] == {"setWeight": 20}
    assert canary["spec"]["targetRef"]["name"] == "podinfo"


def specs(found: Object) -> Iterator[Object]:
    """The pod specs in an object."""
    spec = found.get("spec", {})
    for holder in (spec, spec.get("jobTemplate", {}).get("spec", {})):
        template = holder.get("template")
        if isinstance(template, dict) and "containers" in template.get("spec", {}):
            yield template["spec"]


def test_markers_name_policies_that_are_there(roots: Roots) -> None:
    policies = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"]
        for one in every(roots, "ImagePolicy")
    }
    marked = [match for file in texts() for match in MARKER.findall(file.read_text())]
    assert sorted(field for *_, field in marked) == ["", "digest", "tag"]
    for namespace, name, _ in marked:
        assert policies[namespace, name]["digestReflectionPolicy"] == "IfNotPresent"


def texts() -> list[Path]:
    """The files of the fleet."""
    return sorted(path for path in FLEET.rglob("*") if path.is_file())


def test_clusters_leave_out_what_is_for_people() -> None:
    for artifact in ("infra", "tenants"):
        assert "*.md" in (FLEET / artifact / ".sourceignore").read_text().splitlines()
    assert (FLEET / "infra/README.md").is_file()


def test_only_our_own_artifacts_are_followed_by_a_tag(ocipack: Run) -> None:
    code, out, _ = ocipack("pin", str(FLEET), "--check", "--output", "json")
    assert code == 1
    loose = {
        finding["message"].partition(" ")[0].rpartition(":")[0]
        for finding in json.loads(out)["findings"]
        if finding["rule"] == "image-digest" and finding["severity"] == "error"
    }
    assert loose == {"registry.example.com/fleet/infra", "registry.example.com/fleet/tenants"}
    named = {
        Path(finding["file"]).name
        for finding in json.loads(out)["findings"]
        if finding["severity"] == "error"
    }
    assert named == {"sources.yaml", "bootstrap.yaml", "delivery.yaml"}
