"""What a tree seems to be delivered as, and the first project file that says so."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ocipack.project.draft import draft, named
from ocipack.project.reader import read
from ocipack.project.survey import Proposal, Survey, survey

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"


def flux(path: str, source: str = "GitRepository flux-system", name: str = "x") -> str:
    kind, _, called = source.partition(" ")
    return (
        "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        f"metadata: {{name: {name}}}\nspec:\n  path: {path}\n"
        f"  sourceRef: {{kind: {kind}, name: {called}}}\n"
    )


def source(kind: str, name: str, url: str) -> str:
    return (
        f"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: {kind}\n"
        f"metadata: {{name: {name}}}\nspec: {{url: '{url}'}}\n"
    )


def kustomization(*resources: str) -> str:
    return f"resources: [{', '.join(resources)}]\n"


def surveyed(
    files: Mapping[str, str], remote: str = "https://git.example.com/team/fleet"
) -> Survey:
    return survey(files, lambda name: files[name].encode(), remote=remote)


def roots(found: Survey) -> list[str]:
    return [one.root for one in found.proposals]


def test_paths_in_a_git_repository_count_from_its_top() -> None:
    found = surveyed(
        {
            "clusters/prod/apps.yaml": flux("./apps/prod") + flux("./infra"),
            "apps/prod/kustomization.yaml": kustomization("map.yaml", "../base"),
            "apps/prod/map.yaml": MAP,
            "apps/base/kustomization.yaml": kustomization("map.yaml"),
            "apps/base/map.yaml": MAP,
            "infra/kustomization.yaml": kustomization("../shared"),
            "shared/kustomization.yaml": kustomization("map.yaml"),
            "shared/map.yaml": MAP,
            "docs/example.yaml": MAP,
            "Taskfile.yaml": "a: b\n",
        }
    )
    assert found.proposals == (
        Proposal(
            "",
            "GitRepository flux-system: apps/prod, infra",
            ("apps", "clusters", "infra", "shared"),
            ("**", "clusters/prod"),
        ),
    )
    assert found.elsewhere == ()


def test_each_source_is_the_directory_that_holds_its_paths() -> None:
    clusters = {
        f"clusters/{name}/flux.yaml": flux(f"./{name}", "ExternalArtifact apps")
        + flux("./controllers", "OCIRepository shared")
        + source("OCIRepository", "shared", "oci://registry.example.com/fleet/infra")
        for name in ("dev", "prod")
    }
    found = surveyed(
        {
            **clusters,
            "clusters/dev/flux-system/kustomization.yaml": kustomization("a.yaml"),
            "clusters/dev/flux-system/a.yaml": MAP,
            "apps/dev/kustomization.yaml": kustomization("../base"),
            "apps/prod/kustomization.yaml": kustomization("../base"),
            "apps/base/kustomization.yaml": kustomization("map.yaml"),
            "apps/base/map.yaml": MAP,
            "infra/controllers/map.yaml": MAP,
            "infra/configs/kustomization.yaml": kustomization(),
        }
    )
    assert roots(found) == ["apps", "infra", "clusters/dev", "clusters/prod"]
    assert [one.render for one in found.proposals] == [(), ("**", "controllers"), (".",), ()]
    assert found.elsewhere == ()


def test_a_cluster_that_is_told_of_by_a_flux_instance() -> None:
    instance = (
        "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux}\n"
        "spec:\n  distribution: {version: 2.7.x}\n"
        "  sync: {kind: OCIRepository, url: 'oci://ghcr.io/x/fleet', path: clusters/prod}\n"
    )
    found = surveyed(
        {
            "clusters/prod/flux-system/instance.yaml": instance,
            "clusters/prod/tenants.yaml": flux("./tenants", "OCIRepository flux-system"),
            "tenants/a.yaml": MAP,
            "scripts/x.yaml": MAP,
        }
    )
    assert found.proposals == (
        Proposal(
            "", "OCIRepository flux-system: clusters/prod, tenants", ("clusters", "tenants"), ()
        ),
    )
    assert found.flux == "2.7"


def test_the_version_of_flux_that_bootstrap_wrote() -> None:
    files = {"flux-system/gotk-components.yaml": "# Flux Version: v2.3.0\n# fluxcd.io/\n" + MAP}
    assert surveyed(files).flux == "2.3"


def test_sources_of_other_repositories_are_elsewhere() -> None:
    found = surveyed(
        {
            "clusters/prod/a.yaml": flux("./deploy", "GitRepository podinfo")
            + source("GitRepository", "podinfo", "https://github.com/stefanprodan/podinfo")
            + flux("./apps", "GitRepository own")
            + source("GitRepository", "own", "ssh://git@git.example.com/team/fleet.git")
            + flux("./x", "OCIRepository app")
            + flux("./${ENVIRONMENT}", "OCIRepository tenant")
            + source("OCIRepository", "chart", "oci://ghcr.io/x/chart"),
            "apps/deploy/a.yaml": MAP,
            "deploy/a.yaml": MAP,
        }
    )
    assert roots(found) == [""]
    assert found.elsewhere == (
        *("GitRepository podinfo", "OCIRepository app"),
        "OCIRepository tenant",
    )


def test_all_of_a_source_is_a_directory_only_if_both_have_the_name() -> None:
    def whole(name: str, url: str) -> str:
        return flux("./", f"OCIRepository {name}") + source("OCIRepository", name, url)

    found = surveyed(
        {
            "clusters/a/a.yaml": whole("infra", "oci://ghcr.io/team/fleet/infra")
            + whole("kyverno", "oci://ghcr.io/kyverno/kyverno")
            + flux("./", "GitRepository tenant")
            + source("GitRepository", "tenant", "https://git.example.com/team/fleet"),
            "clusters/a/patch.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\n"
            "kind: Kustomization\nmetadata: {name: x}\nspec: {path: ./infra}\n",
            "infra/a.yaml": MAP,
            "kyverno/a.yaml": MAP,
        }
    )
    assert roots(found) == ["infra", "clusters/a"]
    assert found.elsewhere == ("GitRepository tenant", "OCIRepository kyverno")


def test_a_chart_in_the_repository_belongs_to_it() -> None:
    release = (
        "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x}\n"
        "spec: {chart: {spec: {chart: ./charts/x, "
        "sourceRef: {kind: GitRepository, name: flux-system}}}}\n"
    )
    found = surveyed(
        {
            "apps/x/release.yaml": release,
            "clusters/a/x.yaml": flux("./apps"),
            "charts/x/Chart.yaml": "name: x\n",
            "other/x.yaml": MAP,
        }
    )
    (one,) = found.proposals
    assert one.keep == ("apps", "charts", "clusters")
    assert one.render == (), "without any kustomization all of it is built"


def test_what_stands_at_the_top_is_applied_by_hand() -> None:
    found = surveyed(
        {
            "bootstrap.yaml": flux("./", "OCIRepository fleet"),
            "clusters/prod/a.yaml": flux("./x", "OCIRepository infra"),
            "infra/x/a.yaml": MAP,
        }
    )
    assert roots(found) == ["infra", "clusters/prod"]
    assert found.elsewhere == ("OCIRepository fleet",)


def test_roots_that_name_what_is_beside_them_are_one() -> None:
    found = surveyed(
        {
            "clusters/dev/a.yaml": flux("./x", "OCIRepository infra"),
            "clusters/dev/kustomization.yaml": kustomization("a.yaml", "../../base"),
            "base/kustomization.yaml": kustomization("map.yaml"),
            "base/map.yaml": MAP,
            "infra/x/a.yaml": MAP,
            "other/a.yaml": MAP,
        }
    )
    (one,) = found.proposals
    assert (one.root, one.keep) == ("", ("base", "clusters", "infra"))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.yaml": MAP, "x/b.yaml": MAP}, [""]),
        ({"one/a.yaml": MAP, "two/b/c.yml": MAP}, ["one", "two"]),
        ({"tenants/a/x.yaml": MAP, "tenants/b/x.yaml": MAP}, ["tenants/a", "tenants/b"]),
        ({"tenants/a/x.yaml": MAP, "tenants/x.yaml": MAP}, ["tenants"]),
        (
            {
                "base/kustomization.yaml": kustomization("a.yaml"),
                "base/a.yaml": MAP,
                "prod/kustomization.yaml": kustomization("../base"),
            },
            [""],
        ),
        ({"README.md": ""}, [""]),
    ],
)
def test_a_tree_that_tells_flux_nothing(files: dict[str, str], expected: list[str]) -> None:
    assert roots(surveyed(files)) == expected


def test_names_are_those_of_the_roots_and_never_twice() -> None:
    found = Survey(tuple(Proposal(root, "") for root in ("a/B_c", "a-b/c", "", "ü")))
    assert [(one.name, one.repository) for one in named(found, "My Fleet")] == [
        ("a-b-c", "a/b-c"),
        ("a-b-c-2", "a-b/c-2"),
        ("my-fleet", "my-fleet"),
        ("tree", "tree"),
    ]


def drafted(found: Survey, files: Mapping[str, str], source: str = "") -> str:
    return draft(found, named(found, "fleet"), files, source=source)


def test_a_draft_of_one_tree() -> None:
    keep = ("apps", "on")
    found = Survey((Proposal("", "x: y", keep, ("**", "apps/raw")),), flux="2.7")
    text = drafted(found, {"apps/a.png": "", "docs/a.zip": ""}, "https://git.example.com/a")
    project = read(text.encode())
    assert project.source == "https://git.example.com/a"
    assert project.flux == "2.7"
    assert project.artifacts == ()
    assert project.whole.ignore == ("/*", "!/apps", "!/on", "*.png")
    assert project.whole.render == ("**", "apps/raw")


def test_a_draft_of_several_artifacts() -> None:
    found = Survey(
        (Proposal("infra", "why\nso"), Proposal("clusters/prod", "w", (), (".",))), ("x",)
    )
    text = drafted(found, {})
    project = read(text.encode())
    assert [(one.name, one.root, one.repository) for one in project.artifacts] == [
        ("infra", "infra", "infra"),
        ("clusters-prod", "clusters/prod", "clusters/prod"),
    ]
    assert project.artifacts[1].render == ("",)
    uncommented = text.replace("\n# ", "\n").replace("\n#   ", "\n  ").split("environments:")[1]
    more = read(f"{text}environments:{uncommented}".encode())
    (prod,) = more.environments
    assert (prod.name, prod.tag, prod.artifacts) == ("prod", "prod", ("infra", "clusters-prod"))


parts = st.sampled_from(["a", "b", "clusters", "x y", "ü", "${c}", "-", "on", "a\nb: c", "\x1b"])
texts = st.sampled_from(
    [
        *(MAP, "a: [", kustomization("map.yaml", "../a", "../../b"), "kind: Component\n"),
        *(flux("./a"), flux("./b", "OCIRepository a"), flux("../..", "Bucket b"), flux("1")),
        source("OCIRepository", "a", "oci://x/b") + flux("[a]", "OCIRepository a"),
        "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nspec: {sync: {path: a}}\n",
    ]
)
leaves = st.sampled_from(["kustomization.yaml", "map.yaml", "a.yml"])
names = st.tuples(st.lists(parts, max_size=3), leaves).map(
    lambda found: "/".join([*found[0], found[1]])
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(names, texts, max_size=8))
def test_whatever_the_tree_is_the_draft_can_be_read(files: dict[str, str]) -> None:
    found = surveyed(files)
    project = read(drafted(found, files).encode())
    assert len(project.select(())) == len(found.proposals)
