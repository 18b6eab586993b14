"""Where images are named: every typed place, the maps of charts, and what only looks like one."""

from __future__ import annotations

import textwrap

import pytest

from ocipack.pin.scan import Found, scan, why

DIGEST = "sha256:" + "ab" * 32


def look(text: str, name: str = "f.yaml", **others: str) -> list[Found]:
    files = {name: text} | {
        key.replace("__", "/") + ".yaml": value for key, value in others.items()
    }
    data = {key: textwrap.dedent(value).encode() for key, value in files.items()}
    made = scan(data, data.__getitem__)
    assert not made.findings
    return made.found


def rows(found: list[Found]) -> list[str]:
    """`status confidence pointer text` of each place."""
    return [
        f"{one.status.value} {one.site.confidence.value} {one.pointer} {one.site.text}"
        for one in found
    ]


def obj(version: str, kind: str, spec: str) -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\nspec: {spec}\n"


POD = "{containers: [{name: a, image: 'x/y:1'}]}"
TEMPLATE = f"{{template: {{spec: {POD}}}}}"
IN_TEMPLATE = "/spec/template/spec/containers/0/image"


@pytest.mark.parametrize(
    ("version", "kind", "spec", "pointers"),
    [
        ("v1", "Pod", POD, ["/spec/containers/0/image"]),
        ("apps/v1", "Deployment", TEMPLATE, [IN_TEMPLATE]),
        ("apps/v1", "DaemonSet", TEMPLATE, [IN_TEMPLATE]),
        ("apps/v1", "StatefulSet", TEMPLATE, [IN_TEMPLATE]),
        ("batch/v1", "Job", TEMPLATE, [IN_TEMPLATE]),
        (
            "batch/v1",
            "CronJob",
            f"{{jobTemplate: {{spec: {TEMPLATE}}}}}",
            ["/spec/jobTemplate" + IN_TEMPLATE],
        ),
        ("argoproj.io/v1alpha1", "Rollout", TEMPLATE, [IN_TEMPLATE]),
        ("serving.knative.dev/v1", "Service", TEMPLATE, [IN_TEMPLATE]),
        (
            "v1",
            "Pod",
            """{initContainers: [{image: 'a/b:1'}], ephemeralContainers: [{image: 'a/b:2'}],
            volumes: [{name: v, image: {reference: 'a/b:3'}}]}""",
            [
                "/spec/ephemeralContainers/0/image",
                "/spec/initContainers/0/image",
                "/spec/volumes/0/image/reference",
            ],
        ),
        (
            "argoproj.io/v1alpha1",
            "Workflow",
            "{templates: [{container: {image: 'a/b:1'}}, {script: {image: 'a/b:2'}}]}",
            ["/spec/templates/0/container/image", "/spec/templates/1/script/image"],
        ),
        (
            "tekton.dev/v1",
            "Pipeline",
            "{tasks: [{taskSpec: {steps: [{image: 'a/b:1'}]}}]}",
            ["/spec/tasks/0/taskSpec/steps/0/image"],
        ),
        (
            "monitoring.coreos.com/v1",
            "Prometheus",
            "{image: 'a/b:1', thanos: {image: 'a/b:2'}, containers: [{image: 'a/b:3'}]}",
            ["/spec/containers/0/image", "/spec/image", "/spec/thanos/image"],
        ),
        (
            "postgresql.cnpg.io/v1",
            "Cluster",
            "{imageName: 'a/b:1', postgresql: {extensions: [{image: {reference: 'a/b:2'}}]}}",
            ["/spec/imageName", "/spec/postgresql/extensions/0/image/reference"],
        ),
        (
            "postgresql.cnpg.io/v1",
            "ImageCatalog",
            "{images: [{image: 'a/b:1'}]}",
            ["/spec/images/0/image"],
        ),
        (
            "kubevirt.io/v1",
            "VirtualMachine",
            "{template: {spec: {volumes: [{containerDisk: {image: 'a/b:1'}}]}}}",
            ["/spec/template/spec/volumes/0/containerDisk/image"],
        ),
        (
            "operators.coreos.com/v1alpha1",
            "ClusterServiceVersion",
            f"""{{relatedImages: [{{image: 'a/b:1'}}],
            install: {{spec: {{deployments: [{{spec: {TEMPLATE}}}]}}}}}}""",
            ["/spec/install/spec/deployments/0" + IN_TEMPLATE, "/spec/relatedImages/0/image"],
        ),
        (
            "source.toolkit.fluxcd.io/v1",
            "OCIRepository",
            "{url: 'oci://r.io/a', ref: {tag: v1}}",
            ["/spec/ref/tag"],
        ),
        (
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            "{images: [{name: a, newTag: v1}]}",
            ["/spec/images/0/newTag"],
        ),
        (
            "helm.toolkit.fluxcd.io/v2",
            "HelmRelease",
            "{postRenderers: [{kustomize: {images: [{name: a, newName: b, newTag: v1}]}}]}",
            ["/spec/postRenderers/0/kustomize/images/0/newTag"],
        ),
        (
            "argoproj.io/v1alpha1",
            "Application",
            "{source: {kustomize: {images: ['a=r.io/b:1']}}}",
            ["/spec/source/kustomize/images/0"],
        ),
    ],
)
def test_typed_places_are_certain(version: str, kind: str, spec: str, pointers: list[str]) -> None:
    found = look(obj(version, kind, spec))
    assert sorted(one.pointer for one in found) == pointers
    assert {(one.status.value, one.site.confidence.value) for one in found} == {("open", "certain")}


def test_lists_are_unrolled() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  spec: " + POD
    assert rows(look(text)) == ["open certain /items/0/spec/containers/0/image x/y:1"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("{image: {repository: r.io/a, tag: '1'}}", ["open likely /image/tag r.io/a:1"]),
        ("{a: {repository: r.io/a, tag: '1'}}", ["open likely /a/tag r.io/a:1"]),
        (
            "{image: {registry: r.io, repository: a/b, tag: v1}}",
            ["open likely /image/tag r.io/a/b:v1"],
        ),
        (
            f"{{image: {{repository: r.io/a, tag: v1@{DIGEST}}}}}",
            [f"pinned likely /image/tag r.io/a:v1@{DIGEST}"],
        ),
        (
            f"{{image: {{repository: r.io/a, tag: v1, digest: '{DIGEST}'}}}}",
            [f"pinned likely /image/digest r.io/a:v1@{DIGEST}"],
        ),
        (
            "{image: {repository: r.io/a, tag: v1, digest: ''}}",
            ["open likely /image/digest r.io/a:v1"],
        ),
        ("{image: {repository: r.io/a, tag: v1, sha: ''}}", ["open likely /image/sha r.io/a:v1"]),
        (
            f"{{image: {{repository: r.io/a, tag: v1, sha: {'ab' * 32}}}}}",
            [f"pinned likely /image/sha r.io/a:v1@{DIGEST}"],
        ),
        ("{image: r.io/a, tag: v1}", ["open likely /tag r.io/a:v1"]),
        ("{image: r.io/a, imageTag: v1}", ["open likely /imageTag r.io/a:v1"]),
        ("{image: 'a/b:1'}", ["open likely /image a/b:1"]),
        (
            "{initImage: 'a/b:1', x_image: 'c:2'}",
            ["open likely /initImage a/b:1", "open likely /x_image c:2"],
        ),
        ("{env: [{name: A_IMAGE, value: 'a/b:1'}]}", ["open likely /env/0/value a/b:1"]),
        ("{env: {RELATED_IMAGE: 'a/b:1'}}", ["open likely /env/RELATED_IMAGE a/b:1"]),
        ("{args: ['--solver-image=a/b:1']}", ["open likely /args/0 a/b:1"]),
        ("{args: [--solver-image, 'a/b:1']}", ["open likely /args/1 a/b:1"]),
        ("{image: {repository: r.io/a}}", ["unknown likely /image/tag r.io/a"]),
        ("{image: {repository: r.io/a, tag: ''}}", ["unknown likely /image/tag r.io/a"]),
        ("{image: {repository: r.io/a, tag: 15}}", ["open likely /image/tag r.io/a:15"]),
        ("{image: {repository: r.io/a, tag: 1.25}}", ["open likely /image/tag r.io/a:1.25"]),
        ("{image: {repository: r.io/a, tag: 1.10}}", ["unknown likely /image/tag r.io/a:1.10"]),
        (
            "{image: {repository: r.io/a, tag: 20240101}}",
            ["unknown likely /image/tag r.io/a:20240101"],
        ),
        (
            "{image: {repository: r.io/a, tag: 2024-01-01}}",
            ["unknown likely /image/tag r.io/a:2024-01-01"],
        ),
        (
            "{image: {repository: r.io/a, tag: 706798e8}}",
            ["unknown likely /image/tag r.io/a:706798e8"],
        ),
        ("{image: {repository: r.io/a, tag: on}}", ["open likely /image/tag r.io/a:on"]),
        ("{image: {repository: r.io/a, tag: true}}", ["unknown likely /image/tag r.io/a:true"]),
        ("{image: {repository: a/b, tag: v1}}", ["unknown maybe /image/tag a/b:v1"]),
        (
            f"{{image: {{repository: a/b, tag: v1@{DIGEST}}}}}",
            [f"pinned maybe /image/tag a/b:v1@{DIGEST}"],
        ),
        ("{image: r.io/a/b}", ["unknown maybe /image r.io/a/b"]),
        (
            "{driver: {repository: nvcr.io/nvidia, image: driver, version: '550'}}",
            ["unknown maybe /driver/version nvcr.io/nvidia/driver:550"],
        ),
        (
            "{global: {imageRegistry: m.io}, image: {repository: r.io/a, tag: v1}}",
            ["unknown maybe /image/tag r.io/a:v1"],
        ),
        ("{image: 'a/b:${TAG}'}", ["unknown likely /image a/b:${TAG}"]),
        ("{image: '{{ .Values.x }}'}", ["unknown likely /image {{ .Values.x }}"]),
        (
            "{image: {repository: 'r.io/a', tag: '${TAG}'}}",
            ["unknown likely /image/tag r.io/a:${TAG}"],
        ),
        ("{git: {repository: 'https://r.io/a.git', tag: v1}}", []),
        ("{image: nginx, count: 1}", []),
        ("{image: true, images: 3, cover: {image: 'a picture: nice'}}", []),
        ("{image: 'https://x.io/a.png'}", []),
        ("{tag: v1}", []),
        ("{repository: r.io/a, chart: x}", []),
        ("{restic: {repository: '${APP}-backup'}}", []),
        (
            "{appImage: {repository: r.io/a, pullPolicy: Always}}",
            ["unknown likely /appImage/tag r.io/a"],
        ),
    ],
)
def test_values_of_charts(values: str, expected: list[str]) -> None:
    text = obj("helm.toolkit.fluxcd.io/v2", "HelmRelease", f"{{values: {values}}}")
    assert [row.replace(" /spec/values", " ") for row in rows(look(text))] == expected
    if not values.startswith("{tag"):
        direct = look(values, "apps/x/values.yaml")
        assert rows(direct) == expected


def test_a_file_without_a_kind_is_values_only_by_its_name() -> None:
    values = "{image: {repository: r.io/a, tag: '1'}}"
    for name in ("values.yaml", "values-prod.yml", "redis.values.yaml", "a/helm-values.yaml"):
        assert len(look(values, name)) == 1
    for name in ("compose.yaml", "myvalues.yaml", "values.txt"):
        assert look(values, name) == []


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("kyverno.io/v1", "ClusterPolicy"),
        ("policy.sigstore.dev/v1beta1", "ClusterImagePolicy"),
        ("templates.gatekeeper.sh/v1", "ConstraintTemplate"),
    ],
)
def test_schemas_and_policies_match_images_and_run_none(version: str, kind: str) -> None:
    found = look(obj(version, kind, "{a: [{image: 'a/b:1'}], b: {image: '*:*'}}"))
    assert [one.site.confidence.value for one in found] == ["maybe", "maybe"]
    assert not any(one.counts or one.status.value == "open" for one in found)


def test_configuration_and_images_to_watch_are_no_images() -> None:
    assert look("apiVersion: v1\nkind: ConfigMap\ndata: {image: 'a/b:1'}\n") == []
    assert look("apiVersion: v1\nkind: Secret\nstringData: {image: 'a/b:1'}\n") == []
    assert look(obj("image.toolkit.fluxcd.io/v1", "ImageRepository", "{image: r.io/a/b}")) == []


def test_a_custom_resource_that_nobody_knows_is_searched_by_name() -> None:
    found = look(
        obj(
            "x.example/v1",
            "Thing",
            "{image: 'a/b:1', deep: [{image: {repository: r.io/a, tag: v1}}]}",
        )
    )
    assert rows(found) == [
        "open likely /spec/image a/b:1",
        "open likely /spec/deep/0/image/tag r.io/a:v1",
    ]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("nginx:1.25", "open"),
        ("nginx", "open"),
        (f"nginx@{DIGEST}", "pinned"),
        (f"nginx:1@{DIGEST}", "pinned"),
        ("nginx@sha256:00", "unknown"),
        ("nginx:$(TAG)", "unknown"),
        ("nginx:${TAG}", "unknown"),
        ("{{ .image }}", "unknown"),
        ("*:*", "unknown"),
        ("Nginx:1", "unknown"),
        ("a b", "unknown"),
    ],
)
def test_what_a_pod_says_is_judged(text: str, status: str) -> None:
    (found,) = look(obj("v1", "Pod", f"{{containers: [{{image: '{text}'}}]}}"))
    assert found.status.value == status
    assert found.counts
    assert bool(found.reason) == (status == "unknown")


@pytest.mark.parametrize(
    ("ref", "status", "text"),
    [
        ("{tag: v1}", "open", "r.io/a:v1"),
        ("{tag: 706798e8}", "open", "r.io/a:706798e8"),
        (f"{{tag: v1, digest: '{DIGEST}'}}", "pinned", f"r.io/a:v1@{DIGEST}"),
        (f"{{digest: '{DIGEST}'}}", "pinned", f"r.io/a@{DIGEST}"),
        ("{semver: '>=1.0.0'}", "unknown", "r.io/a"),
        ("{semver: '>=1.0.0', tag: v1}", "unknown", "r.io/a:v1"),
        ("{}", "unknown", "r.io/a"),
        ("{tag: '${V}'}", "unknown", "r.io/a:${V}"),
    ],
)
def test_sources_of_flux(ref: str, status: str, text: str) -> None:
    spec = f"{{url: 'oci://r.io/a', ref: {ref}}}"
    (found,) = look(obj("source.toolkit.fluxcd.io/v1", "OCIRepository", spec))
    assert (found.status.value, found.site.text, found.site.kind) == (status, text, "artifact")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{name: a, newTag: v1}", ["open certain /images/0/newTag a:v1"]),
        ("{name: a, newName: r.io/b, newTag: v1}", ["open certain /images/0/newTag r.io/b:v1"]),
        ("{name: a, newTag: 706798e8}", ["open certain /images/0/newTag a:706798e8"]),
        (f"{{name: a, newTag: v1@{DIGEST}}}", [f"pinned certain /images/0/newTag a:v1@{DIGEST}"]),
        (f"{{name: a, digest: '{DIGEST}'}}", [f"pinned certain /images/0/digest a@{DIGEST}"]),
        (
            f"{{name: a, newTag: v1, digest: '{DIGEST}'}}",
            [f"pinned certain /images/0/digest a:v1@{DIGEST}"],
        ),
        ("{name: a, newName: r.io/b}", ["unknown maybe /images/0/newTag r.io/b"]),
        ("{name: a, tagSuffix: -alpine}", ["unknown certain /images/0/newTag a"]),
        ("{name: a, digest: sha256:0}", ["unknown certain /images/0/digest a@sha256:0"]),
        ("{name: a}", []),
        ("nonsense", []),
    ],
)
def test_entries_of_kustomizations(entry: str, expected: list[str]) -> None:
    for head in (
        "",
        "kind: Kustomization\n",
        "kind: Component\n",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
    ):
        found = look(f"{head}images: [{entry}]\n", "base/kustomization.yaml")
        assert rows(found) == expected
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
    assert rows(look(f"{component}images: [{entry}]\n")) == expected


POD_OF = "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: 'IMAGE'}]}\n"


@pytest.mark.parametrize(
    ("image", "entry", "status", "reference"),
    [
        ("app:1", "{name: app, newName: r.io/a, newTag: v2}", "replaced", None),
        ("app", f"{{name: app, newName: r.io/a, digest: '{DIGEST}'}}", "replaced", None),
        ("app:1", "{name: app, newTag: v2}", "open", "docker.io/library/app:1"),
        ("app:1", "{name: app, newName: app, newTag: v2}", "open", "docker.io/library/app:1"),
        ("r.io/app:1", "{name: r.io/app, newName: m.io/app, newTag: v2}", "open", "r.io/app:1"),
        ("app:1", "{name: app, newName: r.io/app}", "open", "r.io/app:1"),
        ("app", "{name: app, newName: r.io/app}", "open", "r.io/app:latest"),
        ("r.io/app:1", "{name: r.io/app, newName: m.io/app}", "open", "m.io/app:1"),
        ("app:1", "{name: other, newTag: v2}", "open", "docker.io/library/app:1"),
        ("x/app:1", "{name: app, newTag: v2}", "open", "docker.io/x/app:1"),
    ],
)
def test_a_kustomization_says_what_a_name_stands_for(
    image: str, entry: str, status: str, reference: str | None
) -> None:
    found = look(
        POD_OF.replace("IMAGE", image), "base/pod.yaml", over__kustomization=f"images: [{entry}]\n"
    )
    (pod,) = [one for one in found if one.file == "base/pod.yaml"]
    assert pod.status.value == status
    assert (str(pod.reference) if pod.reference else None) == reference


def test_a_name_with_two_meanings_is_nobodys() -> None:
    found = look(
        POD_OF.replace("IMAGE", "app:1"),
        a__kustomization="images: [{name: app, newName: r.io/app}]\n",
        b__kustomization="images: [{name: app, newName: m.io/app}]\n",
    )
    (pod,) = [one for one in found if one.file == "f.yaml"]
    assert (pod.status.value, pod.reason) == (
        "unknown",
        "kustomizations call it by several names: m.io/app, r.io/app",
    )


def test_a_name_that_one_kustomization_leaves_without_a_tag_keeps_its_own() -> None:
    found = look(
        POD_OF.replace("IMAGE", "app:1"),
        a__kustomization="images: [{name: app, newName: r.io/app, newTag: v2}]\n",
        b__kustomization="images: [{name: app, newName: m.io/app}]\n",
    )
    (pod,) = [one for one in found if one.file == "f.yaml"]
    assert (pod.status.value, str(pod.reference)) == ("open", "m.io/app:1")


def test_a_sealed_file_is_never_changed() -> None:
    sealed = POD_OF.replace("IMAGE", "a/b:1") + "sops: {mac: 'ENC[x]'}\n"
    (found,) = look(sealed)
    assert found.status.value == "unknown"
    assert "SOPS" in found.reason


def test_templates_of_charts_are_left_to_helm() -> None:
    files = {
        "chart/Chart.yaml": b"name: x\n",
        "chart/templates/sub/a.yaml": b"image: {{ .Values.image }}: {{\n",
        "templates/a.yaml": b"image: {{ x }}: {{\n",
    }
    made = scan(files, files.__getitem__)
    assert made.files == 2
    assert [one.file for one in made.findings] == ["templates/a.yaml"]


def test_a_file_that_is_no_yaml_is_a_finding_with_its_place() -> None:
    made = scan(["a.yaml"], lambda _: b"a: 1\nimage: [\n")
    (finding,) = made.findings
    assert (finding.rule, finding.file, finding.line) == ("image-unreadable", "a.yaml", 3)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        raw = "\ufeffimage: a\n".encode(encoding)
        assert [one.rule for one in scan(["a.yaml"], lambda _, r=raw: r).findings] == [  # type: ignore[misc]  # bound now
            "image-unreadable"
        ]


def test_a_key_that_is_spelled_by_escapes_is_found() -> None:
    (found,) = look('apiVersion: v1\nkind: Pod\nspec: {containers: [{"im\\u0061ge": "a/b:1"}]}\n')
    assert found.status.value == "open"


def test_places_are_lines_and_columns_of_the_file() -> None:
    text = (
        "# é\n---\n"
        + POD_OF
        + "---\n"
        + textwrap.dedent(
            """\
        apiVersion: v1
        kind: Pod
        spec:
          containers:
          - image: a/b:1
        """
        )
    )
    found = look(text.replace("IMAGE", "a/b:2"))
    assert [(one.line, one.column) for one in found] == [(5, 29), (11, 12)]


def test_why_finds_an_image_by_any_of_its_names() -> None:
    found = look(POD_OF.replace("IMAGE", f"nginx:1@{DIGEST}"))
    for name in (
        "nginx",
        "nginx:1",
        f"nginx:1@{DIGEST}",
        "docker.io/library/nginx",
        "docker.io/library/nginx:1",
    ):
        assert list(why(found, name)) == found
    for name in ("ngin", "nginx:2", "nginx:", "quay.io/library/nginx"):
        assert list(why(found, name)) == []


def test_a_repository_without_a_registry_is_docker_hubs_where_somebody_says_so() -> None:
    data = b"{image: {repository: a/b, tag: v1}, x: {repository: c, tag: ''}}"
    made = scan(["values.yaml"], lambda _: data, docker_hub=True)
    assert [(one.status.value, str(one.reference)) for one in made.found] == [
        ("open", "docker.io/a/b:v1"),
        ("unknown", "None"),
    ]
