"""`ship` of a project with several artifacts: each by itself, by what the project file says."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from registry import Fault, Registry, Switches

from ocipack.stores.layout import LayoutStore

Run = Callable[..., tuple[int, str, str]]

HEAD = "apiVersion: ocipack.dev/v1alpha1\n"
PROJECT = (
    HEAD
    + """\
source: https://git.example.com/platform/fleet
artifacts:
  - name: infra
    root: infra
  - name: tenant-a
    root: tenants/a
    repository: tenants/a
  - name: tenant-b
    root: tenants/b
    repository: tenants/b
"""
)


POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: default}\n"
    "spec: {containers: [{name: a, image: 'r.example.com/x:1'}]}\n"
)


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments],
        cwd=directory,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(directory.parent),
            "GIT_AUTHOR_DATE": "2026-11-01T00:00:00Z",
            "GIT_COMMITTER_DATE": "2026-11-01T00:00:00Z",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def manifest(directory: Path, name: str, value: str = "1") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "kustomization.yaml").write_text("resources: [map.yaml]\n")
    (directory / "map.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
        f"  name: {name}\n  namespace: default\ndata:\n  value: '{value}'\n"
    )


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A repository of three artifacts, committed."""
    top = tmp_path / "fleet"
    for name in ("infra", "tenants/a", "tenants/b"):
        manifest(top / name, name.replace("/", "-"))
    (top / "README.md").write_text("none of the artifacts\n")
    (top / "ocipack.yaml").write_text(PROJECT)
    git(top, "init", "-q", "-b", "main")
    commit(top)
    return top


def commit(top: Path) -> None:
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "x")


def project(top: Path, text: str) -> None:
    (top / "ocipack.yaml").write_text(text)
    commit(top)


def tags(path: Path) -> dict[str, str]:
    """The tags of a layout and what they name."""
    index = json.loads((path / "index.json").read_text())
    name = "org.opencontainers.image.ref.name"
    return {
        one["annotations"][name]: one["digest"]
        for one in index["manifests"]
        if name in one.get("annotations", {}) and not one["annotations"][name].startswith("sha256-")
    }


@pytest.fixture
def ship(ocipack: Run, key: str) -> Run:
    def call(top: Path, *more: str, to: str = "ocidir://out") -> tuple[int, str, str]:
        destination = ("--to", to) if to else ()
        return ocipack("ship", str(top), *destination, "--key", key, *more)

    return call


def test_a_project_is_shipped_as_its_artifacts(fleet: Path, ship: Run, tmp_path: Path) -> None:
    code, out, err = ship(fleet, to="ocidir://out:v1")
    assert code == 0, err
    places = [line.partition("@")[0] for line in out.splitlines()]
    assert places == [
        f"ocidir://{tmp_path}/out/{n}:v1" for n in ("infra", "tenants/a", "tenants/b")
    ]
    for line, name in zip(out.splitlines(), ("infra", "tenants/a", "tenants/b"), strict=True):
        found = tags(tmp_path / "out" / name)
        digest = line.partition("@")[2]
        assert found == {"v1": digest, f"v1-{digest[7:19]}": digest}
    assert [line for line in err.splitlines() if line.startswith("tenant-b  ")] == [
        f"tenant-b  shipped    {out.splitlines()[2].partition('@')[2]}  2 files, 1 object"
    ]


def test_only_the_root_is_packed_and_its_top_is_the_root(
    fleet: Path, ship: Run, ocipack: Run, public: str
) -> None:
    _, out, _ = ship(fleet, "--artifact", "tenant-a")
    assert len(out.splitlines()) == 1
    ocipack("pull", out.strip(), "--key", public, "-o", "pulled")
    found = sorted(str(one.relative_to("pulled")) for one in Path("pulled").rglob("*"))
    assert found == ["kustomization.yaml", "map.yaml"]


def test_a_changed_tenant_moves_only_its_own_tags(fleet: Path, ship: Run, tmp_path: Path) -> None:
    ship(fleet)
    names = ("infra", "tenants/a", "tenants/b")
    before = {name: tags(tmp_path / "out" / name) for name in names}
    manifest(fleet / "tenants/a", "tenants-a", "2")
    commit(fleet)
    code, out, err = ship(fleet)
    assert code == 0
    assert len(out.splitlines()) == 3
    after = {name: tags(tmp_path / "out" / name) for name in names}
    assert [name for name in names if before[name] != after[name]] == ["tenants/a"]
    summary = [line.split()[:2] for line in err.splitlines()[-3:]]
    assert summary == [["infra", "unchanged"], ["tenant-a", "shipped"], ["tenant-b", "unchanged"]]


def test_two_clones_give_the_same_digests(fleet: Path, ship: Run, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(fleet), "clone")
    _, one, _ = ship(fleet, to="ocidir://one")
    _, two, _ = ship(tmp_path / "clone", to="ocidir://two")
    assert one
    assert [p.partition("@")[2] for p in one.split()] == [p.partition("@")[2] for p in two.split()]


def test_one_that_is_refused_does_not_stop_the_others(
    fleet: Path, ship: Run, tmp_path: Path
) -> None:
    (fleet / "infra/map.yaml").write_text(POD)
    commit(fleet)
    code, out, err = ship(fleet)
    assert code == 1
    assert [line.partition("/out/")[2].partition(":")[0] for line in out.splitlines()] == [
        "tenants/a",
        "tenants/b",
    ]
    assert "infra/map.yaml:" in err, "files are seen from the top"
    assert "error: infra: the tree must not be delivered as it is" in err
    assert "infra     refused" in err
    assert not (tmp_path / "out/infra").exists()


def test_refused_goes_before_undecided(fleet: Path, ship: Run) -> None:
    with Registry(Switches(faults=[Fault("tenants/b", status=403)])) as registry:
        to = f"oci://{registry.name}/fleet:v1"
        code, out, err = ship(fleet, to=to)
        assert code == 3, err
        assert "tenant-b  undecided" in err
        assert [line.partition("@")[0] for line in out.splitlines()] == [
            f"oci://{registry.name}/fleet/{name}:v1" for name in ("infra", "tenants/a")
        ]
        (fleet / "infra/map.yaml").write_text(POD)
        commit(fleet)
        code, out, err = ship(fleet, to=to)
        assert code == 1
        assert "tenant-b  undecided" in err
        assert len(out.splitlines()) == 1


def test_the_json_of_several(fleet: Path, ship: Run) -> None:
    (fleet / "infra/map.yaml").write_text(POD)
    commit(fleet)
    code, out, _ = ship(fleet, "--output", "json")
    said = json.loads(out)
    assert (code, said["exitCode"]) == (1, 1)
    infra, a, b = said["artifacts"]
    assert (infra["name"], infra["state"], infra["error"]["kind"]) == (
        *("infra", "refused"),
        "Rejected",
    )
    assert {one["file"] for one in infra["findings"] if "file" in one} == {"infra/map.yaml"}
    assert (a["name"], a["state"], b["name"]) == ("tenant-a", "shipped", "tenant-b")
    assert a["artifact"]["place"].endswith("@" + a["artifact"]["digest"])


def test_every_form_says_which_artifact_failed(fleet: Path, ship: Run) -> None:
    (fleet / "infra/map.yaml").write_text(POD)
    shutil.rmtree(fleet / "tenants/b")
    (fleet / "tenants/b").mkdir()
    (fleet / "tenants/b/a.yaml").write_text("# nothing\n")
    commit(fleet)
    for form in ("junit", "sarif", "github", "markdown"):
        code, out, _ = ship(fleet, "--output", form)
        assert code == 1
        assert "tenant-b" in out, form
        assert "infra/map" in out, form


def test_a_single_named_artifact_is_still_one_of_several(fleet: Path, ship: Run) -> None:
    code, out, _ = ship(fleet, "--artifact", "infra", "--output", "json")
    assert code == 0
    assert [one["name"] for one in json.loads(out)["artifacts"]] == ["infra"]


@pytest.mark.parametrize(
    ("more", "to", "words"),
    [
        (("--artifact", "infa"), "ocidir://out", "no artifact 'infa'"),
        (("--root", "x"), "ocidir://out", "--root is about one artifact"),
        ((), f"ocidir://out@sha256:{'a' * 64}", "cannot have one digest"),
        ((), "ocidir://out.tar", "a .tar holds one repository"),
        ((), "", "it is not said where to ship to"),
        (("--environment", "dev"), "", "it is not said where to ship to"),
    ],
)
def test_a_malformed_request_does_nothing(
    fleet: Path, ship: Run, tmp_path: Path, more: tuple[str, ...], to: str, words: str
) -> None:
    code, out, err = ship(fleet, *more, to=to)
    assert (code, out) == (2, "")
    assert words in err
    assert not (tmp_path / "out").exists()


def test_a_root_that_is_not_there_does_nothing(fleet: Path, ship: Run, tmp_path: Path) -> None:
    shutil.rmtree(fleet / "tenants/b")
    commit(fleet)
    code, out, err = ship(fleet)
    assert (code, out) == (2, "")
    assert "tenants/b: no such directory" in err
    assert not (tmp_path / "out").exists()


# what a root is


def test_a_link_on_the_way_to_a_root_is_not_followed(
    fleet: Path, ship: Run, tmp_path: Path
) -> None:
    """Or a pull request could pack the home directory of whoever runs this."""
    manifest(tmp_path / "secret/b", "secret")
    for target, link in ((tmp_path / "secret/b", "tenants/b"), (tmp_path / "secret", "tenants")):
        shutil.rmtree(fleet / link)
        (fleet / link).symlink_to(target)
        commit(fleet)
        code, out, err = ship(fleet, "--artifact", "tenant-b", "--symlinks", "resolve")
        assert (code, out) == (2, "")
        assert "symbolic link on the way to the root of tenant-b" in err
        (fleet / link).unlink()
        manifest(fleet / "tenants/b", "b")


def test_a_link_out_of_a_root_is_refused_though_it_stays_in_the_repository(
    fleet: Path, ship: Run
) -> None:
    (fleet / "tenants/a/shared.yaml").symlink_to("../../infra/map.yaml")
    commit(fleet)
    code, out, err = ship(fleet, "--symlinks", "resolve")
    assert code == 1
    assert len(out.splitlines()) == 2
    assert "tenants/a/shared.yaml: error[symlink-outside]" in err


def test_a_base_outside_of_the_root_is_missing(fleet: Path, ship: Run) -> None:
    (fleet / "tenants/a/kustomization.yaml").write_text("resources: [map.yaml, ../b]\n")
    commit(fleet)
    code, _, err = ship(fleet)
    assert code == 1
    assert "tenants/a/kustomization.yaml:1:23: error[kustomization-outside]" in err


def test_what_changed_elsewhere_is_no_dirt_here(fleet: Path, ship: Run) -> None:
    (fleet / "infra/map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    (fleet / "tenants/notes.md").write_text("beside the roots\n")
    code, out, err = ship(fleet)
    assert code == 1
    assert [line.partition("/out/")[2].partition(":")[0] for line in out.splitlines()] == [
        "tenants/a",
        "tenants/b",
    ]
    assert "infra/map.yaml: error[tree-dirty]" in err
    code, out, _ = ship(fleet, "--allow-dirty", "--output", "json")
    said = json.loads(out)["artifacts"]
    revisions = [
        one["artifact"]["annotations"]["org.opencontainers.image.revision"].partition("@")[0]
        for one in said
    ]
    assert revisions == ["main-dirty", "main", "main"]


def test_a_root_that_git_knows_nothing_of_is_dirt(fleet: Path, ship: Run) -> None:
    (fleet / ".gitignore").write_text("tenants/\n")
    git(fleet, "rm", "-rq", "--cached", "tenants")
    commit(fleet)
    code, out, err = ship(fleet)
    assert code == 1
    assert len(out.splitlines()) == 1
    assert "error: tenant-a:" in err


def test_git_is_asked_once(fleet: Path, ship: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from ocipack.tools import git as tool  # noqa: PLC0415 - its function is replaced

    asked: list[str] = []
    look = tool.look

    def counted(directory: str, **how: object) -> object:
        asked.append(directory)
        return look(directory, **how)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr("ocipack.cli.packing.git.look", counted)
    assert ship(fleet)[0] == 0
    assert asked == [str(fleet)]


# what the file says


def test_what_the_file_says_of_packing(fleet: Path, ship: Run) -> None:
    (fleet / "infra/notes.txt").write_text("x\n")
    (fleet / "infra/more.md").write_text("x\n")
    project(
        fleet,
        HEAD + "source: https://git.example.com/x\nignore: ['*.md']\nlayer: oci\n"
        "artifacts: [{name: infra, root: infra, ignore: ['*.txt']}]\n",
    )
    _, out, _ = ship(fleet, "--output", "json")
    (infra,) = json.loads(out)["artifacts"]
    assert infra["artifact"]["files"] == 2
    said = infra["artifact"]["annotations"]
    assert said["org.opencontainers.image.source"] == "https://git.example.com/x"
    _, out, _ = ship(fleet, "--output", "json", "--source", "https://git.example.com/y")
    (infra,) = json.loads(out)["artifacts"]
    said = infra["artifact"]["annotations"]
    assert said["org.opencontainers.image.source"] == "https://git.example.com/y"


def test_what_the_file_says_holds_for_a_tree_without_artifacts(fleet: Path, ship: Run) -> None:
    project(fleet, HEAD + "source: https://git.example.com/x\nignore: [/tenants/]\n")
    _, out, _ = ship(fleet, "--output", "json", to="ocidir://out:v1")
    said = json.loads(out)
    assert said["artifact"]["files"] == 3
    assert said["artifact"]["annotations"]["org.opencontainers.image.source"].endswith("/x")
    assert "/out:v1@" in said["artifact"]["place"]


def test_roots_to_render(fleet: Path, ship: Run) -> None:
    manifest(fleet / "infra/bundles/prod", "prod")
    manifest(fleet / "infra/bundles/dev", "dev")
    rest = "artifacts: [{name: infra, root: infra, render: [bundles/prod]}]\n"
    project(fleet, HEAD + rest)
    _, out, _ = ship(fleet, "--output", "json")
    assert json.loads(out)["artifacts"][0]["objects"] == 1
    _, out, _ = ship(fleet, "--output", "json", "--root", "bundles/dev", "--root", ".")
    assert json.loads(out)["artifacts"][0]["objects"] == 2
    project(fleet, HEAD + rest.replace("prod", "prd"))
    code, _, err = ship(fleet)
    assert code == 2
    assert "'bundles/prd' is not a directory of the packed tree" in err


def test_several_versions_of_kubernetes(fleet: Path, ship: Run) -> None:
    (fleet / "infra/map.yaml").write_text(
        "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n"
        "metadata: {name: x, namespace: default}\nspec: {minAvailable: 1}\n"
    )
    rest = "artifacts: [{name: infra, root: infra, kubernetes: ['1.25', '1.34']}]\n"
    project(fleet, HEAD + rest)
    code, _, err = ship(fleet)
    assert code == 1
    assert "error[api-removed]" in err
    assert ship(fleet, "--kubernetes-version", "1.34")[0] == 1
    project(fleet, HEAD + "kubernetes: '2.0'\n")
    assert ship(fleet)[0] == 2


def test_an_ignore_counts_from_the_top_and_is_unused_only_if_no_artifact_needed_it(
    fleet: Path, ship: Run
) -> None:
    (fleet / "tenants/a/map.yaml").write_text(POD)
    entry = "    - {{rule: image-digest, path: {}, owner: o, reason: r, until: 2099-01-01}}\n"
    ignores = "validate:\n  ignore:\n"
    project(fleet, PROJECT + ignores + entry.format("tenants/a/**") + entry.format("infra/x"))
    code, _, err = ship(fleet)
    assert code == 0, err
    assert err.count("ignore-unused") == 1
    last = PROJECT.count("\n") + 4
    assert f"ocipack.yaml:{last}:7: warning[ignore-unused]" in err, "the second of them, once"
    _, _, err = ship(fleet, "--artifact", "infra")
    assert "ignore-unused" not in err, "another artifact may need it"
    (fleet / "infra/kustomization.yaml").write_text("resources: [map.yaml, ../tenants/b]\n")
    commit(fleet)
    assert "ignore-unused" not in ship(fleet)[2], "nobody knows what that one would have needed"
    (fleet / "infra/kustomization.yaml").write_text("resources: [map.yaml]\n")
    project(fleet, PROJECT + ignores + entry.format("map.yaml"))
    assert ship(fleet)[0] == 1


def test_the_form_of_signatures(fleet: Path, ship: Run, tmp_path: Path) -> None:
    project(fleet, PROJECT + "sign: {format: legacy}\n")
    _, out, _ = ship(fleet, "--artifact", "infra", "--output", "json")
    assert json.loads(out)["artifacts"][0]["signature"]["forms"] == ["legacy"]
    _, out, _ = ship(fleet, "--artifact", "tenant-a", "--format", "both", "--output", "json")
    assert json.loads(out)["artifacts"][0]["signature"]["forms"] == ["legacy", "bundle"]
    project(fleet, PROJECT + "flux: '2.7'\n")
    code, _, err = ship(fleet, "--format", "bundle", to="ocidir://other")
    assert code == 2
    assert "Flux 2.7, which this project targets, does not find bundles" in err
    assert not (tmp_path / "other").exists()


ENVIRONMENTS = (
    PROJECT
    + """\
sign: {bind: [tag, environment]}
environments:
  dev: {to: "ocidir://../dev"}
  production:
    to: ocidir://../production
    tag: live
    policy: [policies/production.yaml]
    artifacts: [infra]
"""
)


def policy(top: Path, public: str, environment: str = "production") -> None:
    (top / "policies").mkdir(exist_ok=True)
    shutil.copy(public, top / "policies/cosign.pub")
    (top / f"policies/{environment}.yaml").write_text(
        f"{HEAD}kind: VerificationPolicy\nmetadata: {{name: {environment}}}\n"
        "spec:\n  images: ['**']\n  authorities:\n    - keys: [{file: cosign.pub}]\n"
        f"  annotations: {{environment: {environment}}}\n"
    )


def test_an_environment_says_where_under_which_tag_and_policy(
    fleet: Path, ship: Run, public: str, tmp_path: Path, ocipack: Run
) -> None:
    policy(fleet, public)
    project(fleet, ENVIRONMENTS)
    code, out, err = ship(fleet, "--environment", "production", to="")
    assert code == 0, err
    assert [line.partition("@")[0] for line in out.split()] == [
        f"ocidir://{tmp_path}/production/infra:live"
    ]
    assert (
        ocipack("verify", out.strip(), "--policy", str(fleet / "policies/production.yaml"))[0] == 0
    )
    code, out, err = ship(fleet, "--environment", "dev", to="")
    assert code == 0, err
    assert f"ocidir://{tmp_path}/dev/tenants/b:latest@" in out
    code, _, err = ship(fleet, "--environment", "dev", "--artifact", "infra", to="ocidir://x:t")
    assert (tmp_path / "x/infra").exists()
    code, _, err = ship(fleet, "--environment", "prodution", to="")
    assert code == 2
    assert "did you mean production?" in err
    assert ship(fleet, to="ocidir://out")[0] == 2, "--bind environment needs one"


def test_a_policy_of_the_file_that_is_not_met_refuses(
    fleet: Path, ship: Run, public: str, tmp_path: Path
) -> None:
    policy(fleet, public, "staging")
    project(fleet, PROJECT + "policy: [policies/staging.yaml]\n")
    code, out, _ = ship(fleet)
    assert (code, out) == (1, "")
    assert not (tmp_path / "out/infra").exists() or "latest" not in tags(tmp_path / "out/infra")
    assert ship(fleet, "--environment", "staging")[0] == 0
    policy(fleet, public, "other")
    commit(fleet)
    assert ship(fleet, "--policy", str(fleet / "policies/other.yaml"))[0] == 1, "a flag wins"


def test_policies_of_the_file_of_an_artifact_and_of_an_environment_all_hold(
    fleet: Path, ship: Run, public: str
) -> None:
    for name in ("staging", "other"):
        policy(fleet, public, name)
    parts = PROJECT.replace("root: infra\n", "root: infra\n    policy: [policies/other.yaml]\n")
    more = "environments: {staging: {}, other: {policy: [policies/staging.yaml]}}\n"
    project(fleet, parts + more)
    code, out, err = ship(fleet, "--environment", "staging")
    assert (code, len(out.splitlines())) == (1, 2), err
    assert "error: infra:" in err
    code, out, err = ship(fleet, "--environment", "other", to="ocidir://elsewhere")
    assert (code, out) == (1, ""), err


def test_unchanged_is_what_this_run_would_have_signed(fleet: Path, ship: Run, public: str) -> None:
    """A policy that is met by what others signed, or for another environment, does not say that."""
    policy(fleet, public, "dev")
    project(fleet, PROJECT + "policy: [policies/dev.yaml]\n")
    only = ("--artifact", "infra", "--environment")
    states = [ship(fleet, *only, name)[2].split()[-6] for name in ("dev", "dev", "test", "test")]
    assert states == ["shipped", "unchanged", "shipped", "unchanged"]


def test_a_policy_of_the_file_is_read_below_it_only(fleet: Path, ship: Run, tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text("secret: x\n")
    (fleet / "p.yaml").symlink_to(tmp_path / "outside.yaml")
    for field in ("policy: [p.yaml]\n", "crds: [p.yaml]\n"):
        project(fleet, PROJECT + field)
        code, _, err = ship(fleet)
        assert code == 2
        assert "leads out of the directory of the project file" in err
        assert "secret" not in err


@pytest.mark.parametrize("link", ["crds/x.yaml", "crds/deep"])
def test_no_link_below_what_the_file_names_leads_out_of_it(
    fleet: Path, ocipack: Run, ship: Run, tmp_path: Path, link: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.yaml").write_text("secret: CustomResourceDefinition: x\n")
    (fleet / "crds").mkdir()
    outside = tmp_path / "outside"
    (fleet / link).symlink_to(outside / "x.yaml" if link.endswith(".yaml") else outside)
    project(fleet, PROJECT + "crds: [crds]\n")
    for code, _, err in (ship(fleet), ocipack("validate", str(fleet))):
        assert code == 2
        assert "leads out of the directory of the project file" in err
        assert "secret" not in err


def test_definitions_that_the_file_names(fleet: Path, ship: Run) -> None:
    (fleet / "crds").mkdir()
    (fleet / "crds/a.yaml").write_text(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
        "metadata: {name: things.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n"
        "  names: {kind: Thing, plural: things}\n  versions:\n    - name: v1\n      served: true\n"
        "      storage: true\n      schema:\n        openAPIV3Schema:\n          type: object\n"
        "          properties: {size: {type: integer}}\n"
    )
    (fleet / "infra/map.yaml").write_text(
        "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x, namespace: d}\nsize: big\n"
    )
    project(fleet, PROJECT)
    assert ship(fleet, "--artifact", "infra", "--dry-run")[0] == 0
    project(fleet, PROJECT + "validate: {requireSchema: true}\n")
    assert ship(fleet, "--artifact", "infra", "--dry-run")[0] == 1
    project(fleet, PROJECT + "crds: [crds]\n")
    code, _, err = ship(fleet, "--artifact", "infra", "--dry-run")
    assert code == 1
    assert "wrong-type" in err


def test_no_other_registry_than_those_listed_is_contacted(fleet: Path, ship: Run) -> None:
    project(fleet, PROJECT + "registries: [registry.example.com]\n")
    code, out, err = ship(fleet, to="oci://127.0.0.1:9/fleet")
    assert (code, out) == (1, "")
    assert err.count("is not among the registries that this project may contact") == 3
    code, _, err = ship(fleet, "--crd", "oci://127.0.0.1:9/crds:v1")
    assert code == 1
    assert "is not among the registries" in err


def test_a_project_file_from_elsewhere_wins(
    fleet: Path, ship: Run, public: str, tmp_path: Path
) -> None:
    """A release takes it from the protected branch, with the policies beside it."""
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    policy(trusted, public)
    (trusted / "ocipack.yaml").write_text(PROJECT + "policy: [policies/production.yaml]\n")
    more = ("--project", str(trusted / "ocipack.yaml"))
    assert ship(fleet, *more)[0] == 1
    assert ship(fleet, *more, "--environment", "production")[0] == 0


def test_a_layout_is_complete(fleet: Path, ship: Run, tmp_path: Path) -> None:
    _, out, _ = ship(fleet)
    with LayoutStore(str(tmp_path / "out/infra")) as store:
        assert str(store.resolve("latest").digest) == out.split()[0].partition("@")[2]


# the other commands


def test_pack_makes_the_bytes_that_ship_makes(
    fleet: Path, ship: Run, ocipack: Run, tmp_path: Path
) -> None:
    _, out, _ = ship(fleet)
    digests = [line.partition("@")[2] for line in out.splitlines()]
    code, out, err = ocipack("pack", str(fleet))
    assert (code, out.splitlines()) == (0, digests), err
    assert ocipack("pack", str(fleet), "--artifact", "infra")[1].split() == digests[:1]
    code, out, _ = ocipack("pack", str(fleet), "--to", "ocidir://packed")
    assert out.splitlines() == [
        f"ocidir://{tmp_path}/packed/{name}@{digest}"
        for name, digest in zip(("infra", "tenants/a", "tenants/b"), digests, strict=True)
    ]
    code, _, err = ocipack("pack", str(fleet), "--to", f"ocidir://packed@{digests[0]}")
    assert code == 2
    assert "cannot have one digest" in err


def test_pack_of_one_that_is_refused(fleet: Path, ocipack: Run) -> None:
    (fleet / "infra/map.yaml").write_text("x: y\n")
    code, out, err = ocipack("pack", str(fleet))
    assert (code, len(out.splitlines())) == (1, 2)
    assert "infra/map.yaml: error[tree-dirty]" in err
    code, out, _ = ocipack("pack", str(fleet), "--output", "json")
    said = json.loads(out)
    assert [one.get("state", "") for one in said["artifacts"]] == ["refused", "", ""]


def test_a_listing_is_seen_from_the_top(fleet: Path, ocipack: Run) -> None:
    _, out, _ = ocipack("pack", str(fleet), "--list", "--artifact", "tenant-b")
    assert [line.split()[-1] for line in out.splitlines()] == [
        "tenants/b/kustomization.yaml",
        "tenants/b/map.yaml",
    ]


def test_pack_honours_the_file_of_a_single_tree(fleet: Path, ocipack: Run) -> None:
    project(fleet, HEAD + "ignore: [/tenants/, '*.md']\nsource: https://git.example.com/x\n")
    _, out, _ = ocipack("pack", str(fleet), "--output", "json")
    said = json.loads(out)["artifact"]
    assert said["files"] == 2
    assert said["annotations"]["org.opencontainers.image.source"] == "https://git.example.com/x"


def test_render_gives_the_manifests_of_all_artifacts(fleet: Path, ocipack: Run) -> None:
    code, out, _ = ocipack("render", str(fleet))
    assert code == 0
    assert out.count("kind: ConfigMap") == 3
    assert ocipack("render", str(fleet), "--artifact", "tenant-b")[1].count("kind: ConfigMap") == 1
    (fleet / "infra/map.yaml").write_text(POD)
    commit(fleet)
    code, out, err = ocipack("render", str(fleet))
    assert (code, out) == (1, "")
    assert "infra/map.yaml:4:" in err
    assert "tenant-b  1 object" in err
    assert ocipack("render", str(fleet), "--root", "x")[0] == 2


def test_an_expired_ignore_is_said_of_a_refused_tree(fleet: Path, ocipack: Run, ship: Run) -> None:
    (fleet / "infra/map.yaml").write_text(POD)
    entry = (
        "validate:\n  ignore:\n"
        "    - {rule: image-digest, path: 'infra/**', owner: o, reason: r, until: 2020-01-01}\n"
    )
    for text in (PROJECT, HEAD):
        project(fleet, text + entry)
        for code, _, err in (ocipack("render", str(fleet)), ship(fleet, "--dry-run")):
            assert code == 1
            assert err.count("[ignore-expired]") == 1
            assert err.count("error[image-digest]") == 1


def test_validate_judges_artifacts_as_the_trees_that_they_will_be(
    fleet: Path, ocipack: Run
) -> None:
    (fleet / "docs").mkdir()
    (fleet / "docs/example.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: 1}\n")
    code, out, err = ocipack("validate", str(fleet), "--output", "json")
    said = json.loads(out)
    assert (code, said["objects"]) == (0, 3), err
    assert said["roots"] == ["infra/.", "tenants/a/.", "tenants/b/."]
    (fleet / "tenants/a/kustomization.yaml").write_text("resources: [map.yaml, ../b]\n")
    code, _, err = ocipack("validate", str(fleet))
    assert code == 1
    assert "tenants/a/kustomization.yaml:1:23: error[kustomization-outside]" in err
    assert ocipack("validate", str(fleet), "--artifact", "tenant-b")[0] == 0
    assert ocipack("validate", str(fleet / "docs"))[0] == 1, "a directory without a project file"
    assert ocipack("validate", str(fleet), "--artifact", "x")[0] == 2


def test_validate_knows_what_the_file_says(fleet: Path, ocipack: Run) -> None:
    (fleet / "infra/map.yaml").write_text(
        "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n"
        "metadata: {name: x, namespace: default}\n"
        "spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}\n"
    )
    (fleet / "infra/bad.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n")

    def validated(text: str, *more: str) -> tuple[int, str]:
        (fleet / "ocipack.yaml").write_text(HEAD + text)
        code, _, err = ocipack("validate", str(fleet), *more)
        return code, err

    part = "artifacts: [{name: infra, root: infra, ignore: [bad.yaml], kubernetes: %s}]\n"
    code, err = validated(part % "['1.25', '1.24']".replace("1.24", "1.26"))
    assert (code, err.count("error[api-removed]")) == (1, 1)
    code, err = validated(part % '"1.25"', "--kubernetes-version", "1.30")
    assert "(Kubernetes" not in err
    code, err = validated("ignore: [bad.yaml, /tenants/]\nkubernetes: '1.30'\n")
    assert (code, err.count("error[")) == (1, 1)
    code, err = validated("ignore: [/tenants/]\nkubernetes: '1.30'\n")
    assert err.count("error[") == 2


def test_validate_builds_the_directories_that_the_file_names(fleet: Path, ocipack: Run) -> None:
    manifest(fleet / "infra/prod", "prod")
    manifest(fleet / "infra/dev", "dev")
    (fleet / "infra/dev/kustomization.yaml").write_text("resources: [map.yaml, missing.yaml]\n")
    for text, code in (("", 1), (", render: [prod]", 0)):
        part = f"artifacts: [{{name: infra, root: infra{text}}}]\n"
        (fleet / "ocipack.yaml").write_text(HEAD + part)
        assert ocipack("validate", str(fleet))[0] == code


def test_pin_looks_where_artifacts_are_made_of(fleet: Path, ocipack: Run) -> None:
    for name in ("infra", "tenants/a", "tenants/b", "old"):
        (fleet / name).mkdir(exist_ok=True)
        (fleet / name / "map.yaml").write_text(POD)
    parts = "artifacts: [{name: infra, root: infra}, {name: a, root: tenants/a, ignore: [map*]}]\n"
    project(fleet, HEAD + parts)

    def unpinned(*more: str) -> list[str]:
        _, out, _ = ocipack("pin", str(fleet), "--check", "--output", "json", *more)
        names = [one["file"] for one in json.loads(out)["images"]]
        return [name.removeprefix(f"{fleet}/") for name in names]

    assert unpinned() == ["infra/map.yaml", "old/map.yaml", "tenants/b/map.yaml"]
    assert unpinned("--artifact", "infra") == ["infra/map.yaml"]
    assert ocipack("pin", str(fleet / "infra"), "--artifact", "infra", "--check")[0] == 2
    code, _, err = ocipack("pin", str(fleet / "old/map.yaml"), "--artifact", "infra")
    assert code == 2
    assert "--artifact is about a project" in err


def test_pin_and_lock_contact_only_registries_that_are_listed(
    fleet: Path, ocipack: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Registry() as registry:
        pod = POD.replace("r.example.com/x:1", f"{registry.name}/x:1")
        (fleet / "infra/map.yaml").write_text(pod)
        for listed, said in (("r.example.com", True), (registry.name, False)):
            project(fleet, HEAD + f"registries: [{listed}]\n")
            _, _, err = ocipack("pin", str(fleet), "--lock", str(fleet / "x.lock"))
            assert ("is not among the registries" in err) == said
            assert bool(registry.lines()) != said
        (fleet / "l.lock").write_text(
            HEAD + "kind: Lock\nentries:\n"
            f"- reference: {registry.name}/x:1\n  kind: image\n  digest: sha256:{'a' * 64}\n"
            "  mediaType: application/vnd.oci.image.index.v1+json\n  size: 3\n"
        )
        project(fleet, HEAD + "registries: [r.example.com]\n")
        _, _, err = ocipack("lock", "check", str(fleet / "l.lock"))
        assert "is not among the registries" in err
        monkeypatch.chdir(fleet)
        assert "is not among the registries" in ocipack("lock", "check", "l.lock")[2]
        assert "is not among the registries" in ocipack("pin", "infra/map.yaml")[2]


def test_a_project_file_that_is_a_link_is_not_read(
    fleet: Path, ocipack: Run, ship: Run, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("password: x\n")
    (fleet / "ocipack.yaml").unlink()
    (fleet / "ocipack.yaml").symlink_to(tmp_path / "secret")
    for code, out, err in (
        ship(fleet),
        ocipack("pack", str(fleet)),
        ocipack("validate", str(fleet)),
    ):
        assert (code, out) == (2, "")
        assert "not a plain one" in err
        assert "password" not in err


def test_a_single_file_is_packed_by_the_project_file_beside_it(fleet: Path, ocipack: Run) -> None:
    project(fleet, HEAD + "source: https://git.example.com/x\n")
    manifest(fleet, "x")
    commit(fleet)
    _, out, _ = ocipack("pack", str(fleet / "map.yaml"), "--output", "json")
    said = json.loads(out)["artifact"]["annotations"]
    assert said["org.opencontainers.image.source"] == "https://git.example.com/x"
