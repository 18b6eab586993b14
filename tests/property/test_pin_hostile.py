"""Whatever a file holds, looking for images ends, and ends well."""

from __future__ import annotations

import json
from typing import Any

from hostile import values as nested
from hypothesis import HealthCheck, given, settings, strategies as st

from ocipack.oci.digest import Digest
from ocipack.pin.rewrite import rewrite
from ocipack.pin.run import checked
from ocipack.pin.scan import Status, scan

KEYS = [
    *("image", "images", "repository", "registry", "tag", "digest", "sha", "version", "name"),
    *("newName", "newTag", "tagSuffix", "containers", "initContainers", "volumes", "spec"),
    *("template", "values", "ref", "url", "semver", "env", "args", "value", "items", "kind"),
    *("jobTemplate", "postRenderers", "kustomize", "global", "imageRegistry", "sops", "reference"),
    *("source", "sources", "helm", "valuesObject", "helmCharts", "valuesInline", "steps"),
]
TEXTS = [
    *("a/b:1", "r.io/a", "r.io/a:1@sha256:" + "0" * 64, "sha256:" + "1" * 64, "", "1.10", "*:*"),
    *("--x-image=a:1", "--x-image", "X_IMAGE", "${V}", "{{ x }}", "oci://r.io/a", "oci://", "é"),
]
VERSIONS = [
    *("v1", "apps/v1", "batch/v1", "helm.toolkit.fluxcd.io/v2", "source.toolkit.fluxcd.io/v1"),
    *("kustomize.toolkit.fluxcd.io/v1", "kustomize.config.k8s.io/v1beta1", "argoproj.io/v1alpha1"),
    *("tekton.dev/v1", "kyverno.io/v1", "x.example/v1", "monitoring.coreos.com/v1"),
]
KINDS = [
    *("Pod", "Deployment", "CronJob", "List", "HelmRelease", "OCIRepository", "Kustomization"),
    *("Component", "Application", "Rollout", "Workflow", "Task", "Prometheus", "Thing"),
]
leaf = st.one_of(
    st.sampled_from(TEXTS),
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = nested(KEYS, leaf)
objects = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.one_of(st.sampled_from(VERSIONS), leaf),
        "kind": st.one_of(st.sampled_from(KINDS), leaf),
        "spec": values,
        "images": values,
        "items": values,
        "sops": values,
        "values": values,
    },
)
names = st.sampled_from(["f.yaml", "kustomization.yaml", "values.yaml"])


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(names, objects)
def test_any_object_can_be_looked_at_and_changed(name: str, found: dict[str, Any]) -> None:
    data = json.dumps(found).encode()
    made = scan([name], lambda _: data, docker_hub=True)
    assert not made.findings or made.findings[0].rule == "image-unreadable"
    checked(made)
    wanted = {
        one: Digest("sha256", "ab" * 32)
        for one in made.found
        if one.status is Status.OPEN and one.counts
    }
    if not wanted:
        return
    new = rewrite(made.pages[name], wanted)
    assert len(new.done) + len(new.refused) == len(wanted)
    again = scan([name], lambda _: new.data, docker_hub=True)
    before = {(one.document, one.pointer) for one in made.found}
    assert len(again.found) == len(before) == len(made.found)


@settings(max_examples=300, deadline=None)
@given(names, st.text(alphabet="image: \n-[]{}&*'\"#|>x/:1@\t\r%!?,\u2028é\ufeff", max_size=80))
def test_any_text_can_be_looked_at(name: str, text: str) -> None:
    made = scan([name], lambda _: f"image: {text}".encode())
    assert all(one.rule == "image-unreadable" for one in made.findings)
