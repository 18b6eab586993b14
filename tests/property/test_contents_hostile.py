"""Whatever stands in an artifact, finding what it names ends, and nothing that is named is lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hostile import values as nested
from hypothesis import HealthCheck, given, settings, strategies as st

from ocipack.errors import Rejected
from ocipack.oci.reference import Reference
from ocipack.render import Rendered
from ocipack.trust.policy.contents import PINNED, opinion
from ocipack.verify.inside import Inside, look

OWN = Reference.parse("registry.example.com/fleet/apps:v1")
DIGEST = "sha256:" + "0" * 64
KEYS = [
    *("image", "reference", "repository", "tag", "digest", "containers", "initContainers"),
    *("volumes", "spec", "template", "values", "ref", "url", "commit", "semver", "branch"),
    *("chart", "version", "sourceRef", "kind", "name", "path", "patches", "data", "items"),
    *("source", "sources", "repoURL", "targetRevision", "endpoint", "bucketName", "chartRef"),
]
TEXTS = [
    *("nginx", "r.io/a:1", f"r.io/a:1@{DIGEST}", DIGEST, "", "*:*", "${V}", "a" * 40, "1.2.3"),
    *("oci://r.io/a", "https://a.b/c", "git@a.b:c", "./", "../..", "GitRepository", "é", "x\ny"),
]
GROUPS = [
    *("v1", "apps/v1", "source.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2", "x.example/v1"),
    *("kustomize.toolkit.fluxcd.io/v1", "argoproj.io/v1alpha1", "kyverno.io/v1"),
]
KINDS = [
    *("Pod", "Deployment", "List", "PodList", "OCIRepository", "GitRepository", "HelmRepository"),
    *("HelmRelease", "HelmChart", "Bucket", "Kustomization", "Application", "ApplicationSet"),
    *("Secret", "ConfigMap", "Thing"),
]
leaf = st.one_of(st.sampled_from(TEXTS), st.none(), st.booleans(), st.integers())
values = nested(KEYS, leaf)
objects = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.one_of(st.sampled_from(GROUPS), leaf),
        "kind": st.one_of(st.sampled_from(KINDS), leaf),
        "metadata": values,
        **dict.fromkeys(("spec", "items", "data", "sops", "template", "values"), values),
    },
)


def nothing_to_build(directories: Sequence[str]) -> Rendered:
    raise Rejected(f"cannot be built: {directories}")


def seen(name: str, data: bytes) -> Inside:
    return look({name: len(data)}, lambda _: data, nothing_to_build, own=OWN)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects)
def test_any_object_is_looked_at(value: dict[str, Any]) -> None:
    try:
        found = seen("a.json", json.dumps(value).encode())
    except Rejected:  # nothing is in it, or it has a kustomization's name
        return
    for part in found.parts:
        verdict = opinion(PINNED, part, None)
        if not verdict.rule:  # what passes can be one thing only
            assert part.pinned
            assert not part.reason
            assert part.reference is None or part.reference.digest or part.address is not None


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects)
def test_a_tag_behind_anything_is_found(value: dict[str, Any]) -> None:
    """A pod that is a document of its own is judged, whatever stands before it."""
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"image": "q.io/a:1"}]}}
    data = f"{json.dumps(value)}\n---\n{json.dumps(pod)}\n".encode()
    found = seen("a.yaml", data)
    assert found.findings or "q.io/a:1" in {part.text for part in found.parts}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary(max_size=200), st.sampled_from(["a.yaml", "a.yml", "a.json", "kustomization.yaml"])
)
def test_any_bytes_end_well(data: bytes, name: str) -> None:
    with suppress(Rejected):
        seen(name, data)
