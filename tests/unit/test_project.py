"""The project file: what it says of artifacts, environments and signatures, and what it cannot."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any, get_args

import jsonschema_rs
import pytest

from ocipack.errors import Misuse
from ocipack.files import snapshot
from ocipack.flux.artifact import LAYER_TYPES
from ocipack.flux.origin import Checkout
from ocipack.oci.location import Location
from ocipack.project import (
    ARTIFACTS,
    FORMATS,
    LAYERS,
    SYMLINKS,
    Environment,
    Part,
    Project,
    Signing,
)
from ocipack.project.ignore import Ignore
from ocipack.project.reader import read
from ocipack.report import Finding, Report
from ocipack.sign import BINDABLE, Form
from ocipack.stores.http.gate import Gate
from ocipack.validate.ignores import Ignores, stale
from ocipack.validate.versions import across

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = jsonschema_rs.validator_for(
    json.loads((DOCS / "schemas/project-v1alpha1.json").read_text()), validate_formats=True
)
DIGEST = "sha256:" + "a" * 64
FLEET = """\
apiVersion: ocipack.dev/v1alpha1
source: https://git.example.com/platform/fleet
kubernetes: "1.34"
flux: "2.8"
registries: [registry.example.com:5000, "*.internal", 10.0.0.0/8]
ignore: ["*.md"]
policy: [policies/delivery.yaml]
crds: [crds]
sign: {bind: [tag, environment], format: legacy}
artifacts:
  - name: infra
    root: infra
    ignore: [/old/]
    render: [bundles/prod, .]
    kubernetes: ["1.33", "1.34"]
    policy: [policies/infra.yaml]
    crds: ["oci://registry.example.com:5000/crds@DIGEST"]
  - name: tenant-shop
    root: tenants/shop
    repository: tenants/shop
    symlinks: resolve
    layer: oci
  - name: everything
    root: .
environments:
  production:
    to: oci://registry.example.com:5000/fleet
    tag: production
    policy: [policies/production.yaml]
    artifacts: [tenant-shop, infra]
  dev: {}
validate: {requireSchema: true}
""".replace("DIGEST", DIGEST)


def fleet(old: str = "", new: str = "") -> Project:
    assert old in FLEET
    return read(FLEET.replace(old, new, 1).encode())


def test_a_whole_project_file_is_read() -> None:
    found = fleet()
    assert found.source == "https://git.example.com/platform/fleet"
    assert found.flux == "2.8"
    assert found.registries == ("registry.example.com:5000", "*.internal", "10.0.0.0/8")
    assert found.sign == Signing(("tag", "environment"), "legacy")
    assert found.require_schema
    infra, shop, everything = found.artifacts
    assert infra == Part(
        name="infra",
        root="infra",
        repository="infra",
        ignore=("*.md", "/old/"),
        render=("bundles/prod", ""),
        kubernetes=("1.33", "1.34"),
        policy=("policies/delivery.yaml", "policies/infra.yaml"),
        crds=("crds", f"oci://registry.example.com:5000/crds@{DIGEST}"),
    )
    assert (shop.root, shop.prefix, shop.repository) == (
        *("tenants/shop", "tenants/shop/"),
        "tenants/shop",
    )
    assert (shop.symlinks, shop.layer, shop.kubernetes) == ("resolve", "oci", ("1.34",))
    assert (everything.root, everything.prefix, everything.repository) == ("", "", "everything")
    assert found.environments == (
        Environment(
            "production",
            "oci://registry.example.com:5000/fleet",
            "production",
            ("policies/production.yaml",),
            ("tenant-shop", "infra"),
        ),
        Environment("dev"),
    )


def test_a_project_without_artifacts_is_one_tree() -> None:
    found = read(b"apiVersion: ocipack.dev/v1alpha1\nignore: [a]\nrender: [x]\n")
    assert found.select(()) == (Part(ignore=("a",), render=("x",)),)
    assert Project().select((), "anything") == (Part(),)
    with pytest.raises(Misuse, match="this project has no artifact 'infra'"):
        found.select(("infra",))


def test_selection_keeps_the_order_of_the_file() -> None:
    def names(*wanted: str, environment: str = "") -> list[str]:
        return [one.name for one in fleet().select(wanted, environment)]

    assert names() == ["infra", "tenant-shop", "everything"]
    assert names("everything", "infra", "infra") == ["infra", "everything"]
    assert names(environment="production") == ["infra", "tenant-shop"]
    assert names(environment="dev") == ["infra", "tenant-shop", "everything"]
    assert names("infra", environment="production") == ["infra"]
    with pytest.raises(Misuse, match="everything does not belong to production"):
        names("everything", environment="production")
    with pytest.raises(Misuse, match="no artifact 'infa'") as caught:
        names("infa")
    assert caught.value.hint == "did you mean infra?"
    with pytest.raises(Misuse, match="no environment 'prodction'") as caught:
        names(environment="prodction")
    assert caught.value.hint == "did you mean production?"
    assert Project().environment("free") == Environment("free")


def test_an_old_flux_finds_no_bundles() -> None:
    for flux, form, good in [
        ("2.7", "bundle", False),
        ("2.7", "both", True),
        ("2.8", "bundle", True),
        ("2.10", "bundle", True),
        ("", "bundle", True),
    ]:
        project = Project(flux=flux)
        if good:
            project.check_format(form)
        else:
            with pytest.raises(Misuse, match=r"Flux 2\.7, which this project targets"):
                project.check_format(form)
    with pytest.raises(Misuse, match=r"ocipack\.yaml:1:1: Flux 2\.7"):
        read(b'apiVersion: ocipack.dev/v1alpha1\nflux: "2.7"\nsign: {format: bundle}\n')


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("artifacts:\n", "artefacts:\n", "10:1: unknown field 'artefacts'"),
        ("    root: infra\n", "    path: infra\n", "12:5: unknown field 'path' in an artifact"),
        ("  - name: infra\n    root", "  - root", "11:5: an artifact has no name"),
        ("name: infra", "name: Infra", "'Infra' is no name of an artifact"),
        ("name: infra", "name: a/b", "'a/b' is no name of an artifact"),
        ("name: infra", f"name: {'a' * 64}", "is no name of an artifact"),
        ("name: tenant-shop", "name: infra", "two artifacts are called infra"),
        ("repository: tenants/shop", "repository: infra", "two artifacts go to infra"),
        ("repository: tenants/shop", "repository: /shop", "is no name of a repository"),
        ("repository: tenants/shop", "repository: a:b", "is no name of a repository"),
        ("root: infra", "root: ../infra", "11:5: a name that leads out of the tree"),
        ("root: infra", "root: /infra", "11:5:"),
        ("root: infra", "root: ''", "root should be text"),
        ("bundles/prod", "../prod", "11:5:"),
        ("policies/delivery.yaml", "../delivery.yaml", "1:1:"),
        ("policies/delivery.yaml", "/etc/passwd", "1:1:"),
        ("policies/infra.yaml", "/etc/passwd", "11:5:"),
        ("policies/production.yaml", "../p.yaml", "27:5:"),
        ("crds: [crds]", "crds: [../crds]", "1:1:"),
        ("crds: [crds]", "crds: [oci://r.example.com/crds:v1]", "has no digest"),
        ("crds: [crds]", "crds: [ocidir://crds]", "1:1:"),
        ("crds: [crds]", "render: [a]", "render is of a tree without artifacts"),
        ('kubernetes: "1.34"', "kubernetes: 1.34", "kubernetes is not text to every reader"),
        ('kubernetes: "1.34"', 'kubernetes: "v1.34.2"', "'v1.34.2' is no Kubernetes version"),
        ('kubernetes: "1.34"', "kubernetes: []", "kubernetes is empty"),
        ('flux: "2.8"', 'flux: "3"', "'3' is no version of Flux"),
        ('"*.internal"', '"internal.*"', "'internal.*' is no registry"),
        ('"*.internal"', "https://internal", "'https://internal' is no registry"),
        ('"*.internal"', "r.example.com/team", "'r.example.com/team' is no registry"),
        ("10.0.0.0/8", "10.0.0.1/8", "'10.0.0.1/8' is no registry"),
        ("bind: [tag", "bind: [tags", "9:15: bind is one of tag, repository"),
        ("format: legacy", "format: none", "format is one of both, legacy, bundle"),
        ("symlinks: resolve", "symlinks: follow", "symlinks is one of refuse, resolve"),
        ("layer: oci", "layer: helm", "layer is one of flux, oci"),
        ("tag: production", "tag: a:b", "'a:b' is no tag"),
        ("5000/fleet", "5000/fleet:v1", "has a tag or a digest"),
        ("to: oci://", "to: https://", "not a place"),
        ("artifacts: [tenant-shop, infra]", "artifacts: [infa]", "no artifact 'infa'"),
        ("  production:", "  a/b:", "'a/b' is no name of an environment"),
        ("requireSchema: true", "requireSchema: yes", "requireSchema should be true or false"),
        ('ignore: ["*.md"]', "ignore: []", "ignore is empty"),
    ],
)
def test_what_cannot_be_is_misuse(old: str, new: str, words: str) -> None:
    with pytest.raises(Misuse, match=r"^ocipack\.yaml:") as caught:
        fleet(old, new)
    assert words in str(caught.value)


def test_artifacts_and_environments_are_bounded() -> None:
    head = b"apiVersion: ocipack.dev/v1alpha1\n"
    many = "\n".join(f"- name: a{n}" for n in range(ARTIFACTS + 1)).encode()
    with pytest.raises(Misuse, match="more than 256"):
        read(head + b"artifacts:\n" + many)
    assert len(read(head + b"artifacts:\n" + many.rpartition(b"\n")[0]).artifacts) == ARTIFACTS
    more = "".join(f"\n  a{n}: {{}}" for n in range(ARTIFACTS + 1)).encode()
    with pytest.raises(Misuse, match="more than 256"):
        read(head + b"environments:" + more)


@pytest.mark.parametrize("entry", ["10.0.0.0/8", "a.b", "a.b:5000", "*.b", "[::1]:5000", "[::1]"])
def test_what_may_be_listed_is_what_the_gate_takes(entry: str) -> None:
    assert Project(registries=(entry,)).registries == (entry,)
    Gate((entry,))


def test_words_are_those_of_the_verbs() -> None:
    """The project is a noun, and cannot import those who act on its words."""
    assert get_args(Form) == FORMATS
    assert tuple(LAYER_TYPES) == LAYERS
    assert snapshot.SYMLINKS == SYMLINKS


BASE: dict[str, Any] = {"apiVersion": "ocipack.dev/v1alpha1"}


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"apiVersion": "v1"}, False),
        ({"more": 1}, False),
        ({"source": "https://x"}, True),
        ({"source": " "}, False),
        ({"kubernetes": "1.34"}, True),
        ({"kubernetes": ["1.33", "1.34"]}, True),
        ({"kubernetes": ["1.33", "1.33"]}, False),
        ({"kubernetes": []}, False),
        ({"kubernetes": 1.34}, False),
        ({"kubernetes": "1.034"}, False),
        ({"flux": "2.8"}, True),
        ({"flux": "2.08"}, False),
        ({"flux": "1.8"}, False),
        ({"registries": ["a.b"]}, True),
        ({"registries": []}, False),
        ({"ignore": ["*.md"]}, True),
        ({"ignore": ["a", "a"]}, False),
        ({"render": ["a/b", "."]}, True),
        ({"render": ["a//b"]}, False),
        ({"render": ["./b"]}, False),
        ({"render": ["a\\b"]}, False),
        ({"render": ["a"], "artifacts": [{"name": "a"}]}, False),
        ({"policy": ["a.yaml"]}, True),
        ({"policy": ["."]}, False),
        ({"policy": ["a/../b"]}, False),
        ({"policy": ["/a"]}, False),
        ({"crds": ["a", f"oci://r.io/x@{DIGEST}"]}, True),
        ({"crds": ["oci://r.io/x"]}, False),
        ({"symlinks": "resolve"}, True),
        ({"symlinks": "x"}, False),
        ({"layer": "oci"}, True),
        ({"layer": ""}, False),
        ({"sign": {}}, True),
        ({"sign": {"bind": list(BINDABLE)}}, True),
        ({"sign": {"bind": ["x"]}}, False),
        ({"sign": {"format": "both"}}, True),
        ({"sign": {"format": ""}}, False),
        ({"sign": {"key": "k"}}, False),
        ({"artifacts": []}, False),
        ({"artifacts": [{}]}, False),
        ({"artifacts": [{"name": "a", "root": "."}]}, True),
        ({"artifacts": [{"name": "a", "root": "a/.."}]}, False),
        ({"artifacts": [{"name": "a__b"}]}, False),
        ({"artifacts": [{"name": "a", "repository": "a/b"}]}, True),
        ({"artifacts": [{"name": "a", "repository": "a//b"}]}, False),
        ({"artifacts": [{"name": "a", "kubernetes": "1.30", "policy": ["p"]}]}, True),
        ({"artifacts": [{"name": "a", "source": "x"}]}, False),
        ({"environments": {}}, False),
        ({"environments": {"a": {}}}, True),
        ({"environments": {"a b": {}}}, False),
        ({"environments": {"a": {"to": "oci://r.io/x", "tag": "t"}}}, True),
        ({"environments": {"a": {"to": "r.io/x"}}}, False),
        ({"environments": {"a": {"tag": "-"}}}, False),
        ({"environments": {"a": {"more": 1}}}, False),
        ({"validate": {"requireSchema": False}}, True),
        ({"validate": {"requireSchema": "true"}}, False),
    ],
)
def test_the_schema_and_the_reader_agree(change: dict[str, Any], good: bool) -> None:  # noqa: FBT001 - a table of cases
    document = BASE | change
    assert SCHEMA.is_valid(document) == good
    try:
        read(json.dumps(document).encode())
    except Misuse:
        assert not good
    else:
        assert good


# what becomes of it


def test_what_changed_outside_of_a_root_is_no_dirt_there() -> None:
    changed = ("infra/a.yaml", "infra-2/b.yaml", "tenants/", "sub", "notes.md")
    here = Checkout("a" * 40, 0, changed=changed)

    def dirt(root: str) -> tuple[str, ...]:
        return here.dirt(lambda name: name.endswith(".md"), root)

    assert dirt("infra") == ("a.yaml",)
    assert dirt("clusters") == ()
    assert dirt("tenants") == (".",), "git knows nothing of what is in it"
    assert dirt("tenants/shop") == (".",)
    assert dirt("sub/x") == (".",)
    assert dirt("subs") == ()
    assert dirt("") == changed[:-1]
    assert Checkout("a" * 40, 0, changed=("",)).dirt(lambda _: False) == (".",)


@pytest.mark.parametrize(
    ("base", "name", "below"),
    [
        ("oci://r.io/fleet", "infra", "oci://r.io/fleet/infra"),
        ("oci://r.io/fleet:v1", "tenants/a", "oci://r.io/fleet/tenants/a:v1"),
        (f"oci://r.io/fleet:v1@{DIGEST}", "a", f"oci://r.io/fleet/a:v1@{DIGEST}"),
        ("ocidir:///w/out:v1", "tenants/a", "ocidir:///w/out/tenants/a:v1"),
        ("ocidir://out", "a", "ocidir:///w/out/a"),
    ],
)
def test_the_repository_below_a_place(base: str, name: str, below: str) -> None:
    found = Location.parse(base, cwd="/w").below(name)
    assert str(found) == below
    assert found == Location.parse(below, cwd="/w")


def test_a_file_has_nothing_below_it() -> None:
    with pytest.raises(Misuse, match=r"a \.tar holds one repository"):
        Location.parse("ocidir://out.tar", cwd="/w").below("a")


def test_what_is_not_found_for_all_versions_says_for_which() -> None:
    one, other = Finding("wrong-type", "a"), Finding("api-removed", "b")
    assert across({"": Report.of([one])}) == Report.of([one])
    found = across({"1.33": Report.of([one]), "1.34": Report.of([one, other])})
    assert [finding.message for finding in found.findings] == ["b (Kubernetes 1.34)", "a"]


def test_artifacts_share_the_excuses_of_a_project() -> None:
    day, used = date(2026, 1, 1), set[str]()
    excuses = [
        Ignore("wrong-type", "o", "r", day, path=path, line=line)
        for line, path in enumerate(("a/**", "b/**", "c/**"))
    ]
    shared = Ignores(tuple(excuses))
    for file in ("a/x.yaml", "b/x.yaml"):
        report = Report.of([Finding("wrong-type", "m", file=file)])
        (found,) = shared.apply(report, today=day, used=used).findings
        assert found.ignored is not None
    (left,) = stale(excuses, day, used, whole=True)
    assert (left.rule, left.line) == ("ignore-unused", 2)
    assert not list(stale(excuses, day, used, whole=False))
