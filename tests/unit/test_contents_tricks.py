"""Ways to have something applied that nobody judged: each is judged, refused, or listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ocipack.errors import Rejected
from ocipack.k8s.kustomization.walk import Root
from ocipack.k8s.resource import resources
from ocipack.k8s.yaml.documents import read as documents
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.oci.reference import Reference
from ocipack.render import Built, Rendered
from ocipack.report import Report, Severity
from ocipack.trust.policy.contents import PINNED, UNCLEAR, UNPINNED, opinion
from ocipack.verify.inside import Inside, look

OWN = "registry.example.com/fleet/apps"
DIGEST = "sha256:" + "a" * 64
EVIL, GOOD = "evil.example/x:1", f"ghcr.io/org/app@{DIGEST}"


def shaped(group: str, kind: str, spec: str, name: str = "x", more: str = "") -> str:
    metadata = f"{{name: {name}, namespace: d{more}}}"
    return f"apiVersion: {group}\nkind: {kind}\nmetadata: {metadata}\nspec: {spec}\n"


def pod(image: str, more: str = "") -> str:
    return shaped("v1", "Pod", f"{{containers: [{{name: c, image: '{image}'}}]}}", more=more)


def flux(more: str = "", path: str = "./nowhere") -> str:
    source = "sourceRef: {kind: OCIRepository, name: own}"
    return shaped(
        "kustomize.toolkit.fluxcd.io/v1", "Kustomization", f"{{path: '{path}', {source}{more}}}"
    )


def seen(
    files: Mapping[str, str],
    built: Mapping[str, str] | None = None,
    *,
    roots: tuple[str, ...] = (),
    own: str = OWN,
) -> Inside:
    """What is found, where `built` says what kustomize builds of each directory."""

    def render(directories: Sequence[str]) -> Rendered:
        found = []
        for directory in directories:
            if built is None or directory not in built:
                raise Rejected(f"kustomize refuses {directory}")
            data = built[directory].encode()
            stream = documents(data, Dialect.FLUX)
            parts = tuple(resources(stream, Dialect.FLUX, file="x", root=directory))
            found.append(Built(Root("" if directory == "." else directory), data, parts))
        return Rendered(tuple(found), Report())

    raw = {name: text.encode() for name, text in files.items()}
    sizes = {name: len(data) for name, data in raw.items()}
    reference = Reference.parse(f"{own}:v1")
    return look(sizes, raw.__getitem__, render, own=reference, roots=roots)


def refused(found: Inside) -> dict[str, str]:
    """The rule that refuses each part that is refused."""
    rules = {part.text: opinion(PINNED, part, None).rule for part in found.parts}
    return {text: rule for text, rule in rules.items() if rule}


def listed(found: Inside) -> dict[str, Severity]:
    return {what.reason: what.severity for what in found.unseen}


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"


@pytest.mark.parametrize("chart", [CONFIG, "name: c\nversion: 1.0.0\n"])
@pytest.mark.parametrize("file", ["templates/pod.yaml", "values-prod.yaml", "Chart.lock.yaml"])
def test_an_object_is_one_wherever_a_chart_would_have_another_file(chart: str, file: str) -> None:
    # Flux lists every .yaml below a directory without a kustomization, templates of charts too
    assert refused(seen({"Chart.yaml": chart, file: pod(EVIL)})) == {EVIL: UNPINNED}
    assert refused(seen({"c/Chart.yaml": chart, f"c/{file}": pod(EVIL)})) == {EVIL: UNPINNED}


@pytest.mark.parametrize(
    "text",
    [
        pod(EVIL).replace("'}]", f"', image: '{EVIL}'}}]"),
        pod(EVIL).replace("kind: Pod", "kind: ConfigMap\nkind: Pod"),
        pod(EVIL) + "# {{ x }}\n",
        pod(EVIL) + "---\n{{ x }}: [\n",
        "# \xff\n" + pod(EVIL),
    ],
)
def test_what_one_reader_takes_counts_in_files_of_a_chart(text: str) -> None:
    found = seen({"Chart.yaml": CONFIG, "templates/a.yaml": text})
    assert refused(found) == {EVIL: UNPINNED}


def test_what_only_helm_can_read_is_listed() -> None:
    found = seen(
        {
            "Chart.yaml": "name: c\n",
            "values.yaml": f"kind: Deployment\nimage: {EVIL}\n",
            "templates/a.yaml": pod("{{ .Values.image }}"),
            "templates/b.yaml": "{{- if .Values.x }}\n",
            "other.yaml": CONFIG,
        }
    )
    assert not found.parts
    [names] = found.unseen.values()
    assert names == {"Chart.yaml", "values.yaml", "templates/a.yaml", "templates/b.yaml"}


def kustomized(*names: str) -> str:
    return f"resources: [{', '.join(names)}]\n"


@pytest.mark.parametrize(
    "decoy",
    [
        {"decoy/kustomization.yaml": COMPONENT + kustomized("../apps")},
        {
            "decoy/kustomization.yaml": COMPONENT + kustomized("../more"),
            "more/kustomization.yaml": kustomized("../apps"),
        },
    ],
)
def test_nobody_keeps_a_kustomization_from_being_built_by_naming_it(decoy: dict[str, str]) -> None:
    files = {
        "apps/kustomization.yaml": kustomized("a.yaml"),
        "apps/a.yaml": pod(EVIL),
        "good/kustomization.yaml": kustomized("g.yaml"),
        "good/g.yaml": pod(GOOD),
    }
    built = {"apps": pod(EVIL), "good": pod(GOOD), "more": pod(EVIL)}
    assert refused(seen(files | decoy, built)) == {EVIL: UNPINNED}
    del built["apps"], built["more"]
    with pytest.raises(Rejected, match="kustomize refuses"):
        seen(files | decoy, built)


OVERLAID = {
    "base/kustomization.yaml": kustomized("a.yaml"),
    "base/a.yaml": pod(EVIL),
    "over/kustomization.yaml": kustomized("../base"),
}


def test_a_base_that_is_not_judged_alone_is_listed() -> None:
    found = seen(OVERLAID, {"over": pod(GOOD)})
    assert not refused(found)
    assert {what.reason: names for what, names in found.unseen.items()} == {
        "a base alone: what is built of it is judged": {"base"}
    }
    # whoever says what is built says it of the base, too
    both = seen(OVERLAID, {"over": pod(GOOD), "base": pod(EVIL)}, roots=("over", "base"))
    assert refused(both) == {EVIL: UNPINNED}
    assert not both.unseen


@pytest.mark.parametrize("kind", ["", COMPONENT])
def test_a_file_outside_of_every_kustomization_counts_though_one_changes_it(kind: str) -> None:
    # Flux generates a kustomization for `path: ./`, and lists it there
    files = {
        "a.yaml": pod(EVIL),
        "apps/kustomization.yaml": kind + kustomized("../a.yaml"),
        "good/kustomization.yaml": kustomized("g.yaml"),
        "good/g.yaml": pod(GOOD),
    }
    made = {"apps": pod(GOOD), "good": pod(GOOD)}
    assert refused(seen(files, made)) == {EVIL: UNPINNED}
    if not kind:  # unless it was said that Flux builds something else
        assert not refused(seen(files, made, roots=("apps", "good")))


def source(url: str, name: str = "own") -> str:
    spec = f"{{url: 'oci://{url}', ref: {{digest: '{DIGEST}'}}}}"
    return shaped("source.toolkit.fluxcd.io/v1", "OCIRepository", spec, name)


@pytest.mark.parametrize("own", [OWN, "registry.example.com:443/fleet/apps"])
def test_another_source_of_the_same_name_hides_no_path(own: str) -> None:
    files = OVERLAID | {"flux.yaml": flux(path="./base")}
    built = {"over": pod(GOOD), "base": pod(EVIL)}
    assert refused(seen(files, built)) == {EVIL: UNPINNED}
    here = files | {"own.yaml": source(OWN)}
    assert refused(seen(here, built, own=own)) == {EVIL: UNPINNED}
    both = here | {"decoy.yaml": source("ghcr.io/org/other")}
    assert refused(seen(both, built, own=own)) == {EVIL: UNPINNED}
    other = seen(files | {"other.yaml": source("ghcr.io/org/other")}, built)
    assert not refused(other)
    assert "a path that Flux takes from another artifact" in listed(other)


@pytest.mark.parametrize("image", ["evil.example/x", "org/x", "x"])
@pytest.mark.parametrize("field", ["containers", "initContainers", "ephemeralContainers"])
def test_an_image_without_a_tag_is_one_in_every_pod(image: str, field: str) -> None:
    spec = f"{{template: {{spec: {{{field}: [{{name: c, image: {image}}}]}}}}}}"
    text = shaped("apps.kruise.io/v1alpha1", "CloneSet", spec)
    assert refused(seen({"a.yaml": text})) == {image: UNPINNED}


OPERATIONS = "- {{op: {op}, path: {path}, value: {value}}}\n"
AT = "/spec/template/spec/containers/0"
LIST = f"[{{image: {EVIL}}}]"
PATCHES = {
    "operation": OPERATIONS.format(op="replace", path=f"{AT}/image", value=EVIL),
    "operation on a container": OPERATIONS.format(op="add", path=AT, value=f"{{image: {EVIL}}}"),
    "operation on all": OPERATIONS.format(op="add", path="/spec", value=f"{{containers: {LIST}}}"),
    "another operation": "[{op: test, path: /a, value: b}, "
    f"{{op: replace, path: {AT}/image, value: '{EVIL}'}}]",
    "merge": pod(EVIL),
    "volume": shaped("v1", "Pod", f"{{volumes: [{{name: v, image: {{reference: '{EVIL}'}}}}]}}"),
    "second document": pod(GOOD) + "---\n" + pod(EVIL),
    "what comes before an error": pod(EVIL) + "---\n{{ x }}: [\n",
    "json": f'[{{"op": "add", "path": "{AT}/image", "value": "{EVIL}"}}]',
}  # fmt: skip


def block(text: str, indent: int) -> str:
    return "|\n" + "".join(f"{' ' * indent}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("patch", PATCHES)
def test_what_flux_patches_into_a_container_is_judged(patch: str) -> None:
    text = PATCHES[patch]
    kinds = {
        "Kustomization": (
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: k}\n"
            "spec:\n  path: ./nowhere\n  patches:\n  - target: {kind: Pod}\n    patch: "
        ),
        "HelmRelease": (
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: k}\n"
            "spec:\n  postRenderers:\n  - kustomize:\n      patches:\n      - patch: "
        ),
    }
    for kind, head in kinds.items():
        found = seen({"a.yaml": head + block(text, 12)})
        assert refused(found) == {EVIL: UNPINNED}, kind
        reason = "patches and components that Flux applies in the cluster"
        assert listed(found)[reason] is Severity.WARNING
        tight = seen({"a.yaml": head + block(text.replace(EVIL, GOOD), 12)})
        assert not refused(tight), kind


def test_patches_that_are_no_text_and_those_that_nobody_can_tell() -> None:
    merge = seen(
        {
            "a.yaml": flux(
                f", patchesStrategicMerge: [{{spec: {{containers: [{{image: '{EVIL}'}}]}}}}]"
            )
        }
    )
    assert refused(merge) == {EVIL: UNPINNED}
    operations = f"{{patch: [{{op: add, path: {AT}/image, value: '{EVIL}'}}]}}"
    assert refused(seen({"a.yaml": flux(f", patchesJson6902: [{operations}]")})) == {EVIL: UNPINNED}
    moved = f"{{patch: [{{op: copy, path: {AT}/image, from: /metadata/annotations/a}}]}}"
    found = seen({"a.yaml": flux(f", patchesJson6902: [{moved}]")})
    assert refused(found) == {"/metadata/annotations/a": UNCLEAR}
    for odd in ("x", "[1, null, {op: add}]", "'{'", "null", "{patch: 1}", "{patch: '{'}"):
        assert not refused(seen({"a.yaml": flux(f", patches: [{odd}]")}))


@pytest.mark.parametrize(
    "text",
    [
        pod(GOOD).replace("image:", '"${I:=image}":'),
        shaped("v1", "Pod", "{containers: [{name: c, '${I:=image}': evil}]}"),
        shaped("example.com/v1", "Widget", "{a: {'${C:=containers}': [{'${I:=image}': evil}]}}"),
        source("ghcr.io/x").replace("kind: OCIRepository", "kind: '${K:=OCIRepository}'"),
        source("ghcr.io/x").replace("source.toolkit", "${S:=source.toolkit}"),
        source("ghcr.io/x").replace("OCIRepository", "ENC[AES256_GCM,data:a,type:str]"),
    ],
)
def test_what_a_variable_would_call_otherwise_is_refused(text: str) -> None:
    assert UNCLEAR in refused(seen({"a.yaml": text})).values()


def test_variables_are_listed_where_flux_may_substitute_them() -> None:
    reason = "variables, which are anything if Flux substitutes them"
    found = seen({"a.yaml": pod(GOOD, ", labels: {a: '${X}'}")})
    assert reason in listed(found)
    assert not refused(found)
    assert reason in listed(seen({"a.yaml": flux(path="./${DIR}")}))
    off = ", annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled, a: '${X}'}"
    assert not listed(seen({"a.yaml": pod(GOOD, off)}))
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {'${A}': '${B}'}\n"
    assert set(listed(seen({"a.yaml": text}))) == {"the text in a ConfigMap"}
    filled = seen({"a.yaml": flux(", postBuild: {substitute: {X: y}}")})
    assert "variables that Flux fills in, in the cluster" in listed(filled)


def instance(sync: str, more: str = "") -> str:
    return shaped("fluxcd.controlplane.io/v1", "FluxInstance", f"{{sync: {{{sync}}}{more}}}")


def test_what_a_flux_instance_fetches_and_builds_is_looked_at() -> None:
    found = seen({"a.yaml": instance("kind: OCIRepository, url: 'oci://evil.example/x', ref: v1")})
    assert refused(found) == {"oci://evil.example/x:v1": UNPINNED}
    git = seen({"a.yaml": instance("kind: GitRepository, url: 'https://git.example/x', ref: main")})
    assert refused(git) == {"https://git.example/x main": UNPINNED}
    for tail, rule in (
        ("", UNPINNED),
        (":v2", UNPINNED),
        (f":v2@{DIGEST}", ""),
        (f"@{DIGEST}", ""),
    ):
        text = shaped(
            "fluxcd.controlplane.io/v1",
            "FluxInstance",
            f"{{distribution: {{artifact: 'oci://evil.example:5000/x{tail}'}}}}",
        )
        [part] = seen({"a.yaml": text}).parts
        assert opinion(PINNED, part, None).rule == rule
        assert str(part.address) == "oci://evil.example:5000/x"
    files = OVERLAID | {"flux.yaml": instance(f"url: 'oci://{OWN}', path: ./base")}
    built = {"over": pod(GOOD), "base": pod(EVIL)}
    assert refused(seen(files, built))[EVIL] == UNPINNED
    patch = f"[{{op: add, path: {AT}/image, value: '{EVIL}'}}]"
    more = f', kustomize: {{patches: [{{patch: "{patch}"}}]}}'
    assert EVIL in refused(seen({"a.yaml": instance("url: 'oci://a.example/x'", more)}))


def test_what_is_left_out_on_arrival_is_a_warning() -> None:
    # a source with `operation: copy` leaves nothing out
    found = seen({"a.yaml": pod(GOOD), ".sourceignore": "evil.yaml\n", "evil.yaml": pod(EVIL)})
    assert listed(found)["source-controller leaves it out"] is Severity.WARNING


def test_objects_inside_of_others_are_looked_at() -> None:
    inner = source("evil.example/x").replace("\n", ", ").rstrip(", ")
    inner = inner.replace(f"digest: '{DIGEST}'", "tag: latest")
    text = shaped("fluxcd.controlplane.io/v1", "ResourceSet", f"{{resources: [{{{inner}}}]}}")
    assert refused(seen({"a.yaml": text})) == {"oci://evil.example/x:latest": UNPINNED}
    operations = f"[{{op: add, path: {AT}/image, value: '{EVIL}'}}]"
    nested = (
        "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, "
        f'spec: {{patches: [{{patch: "{operations}"}}]}}}}'
    )
    found = seen({"a.yaml": shaped("example.com/v1", "Wrapper", f"{{manifest: {nested}}}")})
    assert refused(found) == {EVIL: UNPINNED}


@pytest.mark.parametrize(
    ("text", "reason", "severity"),
    [
        (
            shaped("x.example/v1", "ResourceSet", "{t: 'kind: Pod, image: evil'}"),
            "text that speaks of an image",
            Severity.NOTE,
        ),
        (
            shaped("x.example/v1", "Set", '{t: \'{"image":"evil"}\'}'),
            "text that speaks of an image",
            Severity.NOTE,
        ),
        (
            shaped("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "{mutations: []}"),
            "what a policy changes or makes in the cluster",
            Severity.WARNING,
        ),
        (
            shaped("kyverno.io/v1", "ClusterPolicy", "{rules: [{generate: {kind: Pod}}]}"),
            "what a policy changes or makes in the cluster",
            Severity.WARNING,
        ),
        (
            shaped("fluxcd.controlplane.io/v1", "ResourceSet", "{resourcesTemplate: 'a: b'}"),
            "what a ResourceSet makes of a template",
            Severity.WARNING,
        ),
        (
            shaped("cdi.kubevirt.io/v1", "DataVolume", "{url: 'docker://evil.example/x'}"),
            "an address of a registry, which something may fetch from",
            Severity.NOTE,
        ),
        (
            shaped(
                "source.extensions.fluxcd.io/v1beta1",
                "ArtifactGenerator",
                "{sources: [{kind: GitRepository, name: b}]}",
            ),
            "its source is no part of this artifact",
            Severity.NOTE,
        ),
        (
            flux(", images: [{name: ghcr.io/org/app, newName: evil.example/app}]"),
            "images that get another name, and keep their tags",
            Severity.WARNING,
        ),
        (
            shaped(
                "source.toolkit.fluxcd.io/v1",
                "GitRepository",
                f"{{url: 'https://git.example/a', ref: {{commit: {'a' * 40}}}, "
                "include: [{repository: {name: b}}]}",
            ),
            "its source is no part of this artifact",
            Severity.NOTE,
        ),
    ],
)
def test_what_could_hide_an_image_is_listed(text: str, reason: str, severity: Severity) -> None:
    assert listed(seen({"a.yaml": text, "b.yaml": CONFIG}))[reason] is severity
