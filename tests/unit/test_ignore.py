"""Flux's ignore dialect, against verdicts of Flux's own matcher."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ocipack.errors import IntegrityError
from ocipack.report import Severity
from ocipack.tree import ignore
from ocipack.tree.ignore import CI, EXTRA, VCS, Matcher, arrival, defaults, dropped, parse

# made by fluxcd/pkg sourceignore v0.18.0: for each ignore text (standing in `domain`) the paths,
# directories with a slash, that its matcher leaves out
TRUTH = json.loads((Path(__file__).parent.parent / "vectors/sourceignore.json").read_text())


@pytest.mark.parametrize("verdict", TRUTH["verdicts"], ids=lambda v: repr(v["text"])[:40])
def test_agrees_with_flux(verdict: dict[str, object]) -> None:
    domain = tuple(str(verdict.get("domain", "")).split("/")) if "domain" in verdict else ()
    matcher = Matcher(parse(str(verdict["text"]), domain))
    out = [p for p in TRUTH["paths"] if matcher(p.removesuffix("/"), directory=p.endswith("/"))]
    assert out == verdict["out"]


def test_the_defaults_are_those_of_the_flux_cli() -> None:
    left_out = defaults()
    for name in [".git/config", "a/.git/HEAD", ".gitignore", "a/.gitmodules", ".gitattributes"]:
        assert left_out(name), name
    for name in ["a.jpg", "a.jpeg", "b/a.gif", "a.png", "a.wmv", "a.flv", "a.tar.gz", "a.zip"]:
        assert left_out(name), name
    # dropped in the cluster, not when packing
    for name in [".github/workflows/ci.yml", ".sops.yaml", ".gitlab-ci.yml", ".sourceignore"]:
        assert not left_out(name), name
    assert not left_out("apps/deployment.yaml")


def test_the_users_patterns_are_added() -> None:
    left_out = defaults("*.md\n!logo.png\n")
    assert left_out("README.md")
    assert left_out("other.png")
    assert not left_out("docs/logo.png")
    assert left_out.takes_back
    assert not defaults("*.md").takes_back


def test_a_hostile_pattern_takes_no_time() -> None:
    matcher = Matcher(parse("*a" * 60 + "b\n" + "?*" * 60 + "c"))
    assert not matcher("a" * 250)


def test_an_endless_line_ends_the_file() -> None:
    assert [p.text for p in parse("a\n" + "b" * 70_000 + "\nc")] == ["a"]
    assert [p.text for p in parse("a\r\nb\n\n  \n#c")] == ["a", "b"]


NAMES = [
    *[".github/ci.yml", ".gitlab-ci.yml", ".sops.yaml", "apps/.flux.yaml", "apps/logo.png"],
    *["apps/a.yaml", "apps/b.md", ".sourceignore", "apps/.sourceignore", ".gitignore"],
]


def test_without_patterns_all_default_lists_apply_in_the_cluster() -> None:
    found = {name: pattern.text for name, pattern in dropped(NAMES, {})}
    assert found == {
        ".github/ci.yml": ".github/",
        ".gitlab-ci.yml": ".gitlab-ci.yml",
        ".sops.yaml": "**/.sops.yaml",
        "apps/.flux.yaml": "**/.flux.yaml",
        "apps/logo.png": "*.png",
        ".gitignore": ".gitignore",
    }


def test_one_pattern_and_only_version_control_is_left_of_the_defaults() -> None:
    assert [n for n, _ in dropped(NAMES, {"": "*.md\n"})] == ["apps/b.md", ".gitignore"]
    assert [n for n, _ in dropped(NAMES, {}, "*.md")] == ["apps/b.md", ".gitignore"]
    assert ".github/ci.yml" in dict(dropped(NAMES, {"": "# nothing\n"}))


def test_an_ignore_file_speaks_for_its_directory_and_the_innermost_last() -> None:
    names = ["a.md", "apps/a.md", "apps/x/a.md", "apps/x/b.md"]
    files = {"apps/x": "!b.md", "apps": "/a.md\n*.md"}
    assert [n for n, _ in dropped(names, files)] == ["apps/a.md", "apps/x/a.md"]
    # siblings in the order of their names, a directory before what follows it bytewise
    assert not list(dropped(["a/b"], {"a": "!b", "": "a"}))


def test_the_oci_repositorys_patterns_come_last() -> None:
    assert not list(dropped(["a.md"], {"": "*.md"}, "!a.md"))


def test_ignore_files_below_git_are_not_read() -> None:
    assert [n for n, _ in dropped(["a.png"], {".git": "*"})] == ["a.png"]


def test_what_flux_drops_by_itself_is_a_warning_what_was_asked_for_a_note() -> None:
    report = arrival([".sops.yaml", "a.yaml"], {})
    assert [(f.rule, f.file, f.severity) for f in report.findings] == [
        ("dropped-in-cluster", ".sops.yaml", Severity.WARNING)
    ]
    report = arrival([".sops.yaml", "a.yaml"], {"": "a.yaml"})
    assert [(f.file, f.severity) for f in report.findings] == [("a.yaml", Severity.NOTE)]


def test_the_lists_are_flux_s() -> None:
    assert ",".join(VCS) == ".git/,.gitignore,.gitmodules,.gitattributes"
    assert ",".join(CI) == (
        ".github/,.circleci/,.travis.yml,.gitlab-ci.yml,appveyor.yml,.drone.yml,"
        "cloudbuild.yaml,codeship-services.yml,codeship-steps.yml"
    )
    assert ",".join(EXTRA) == "**/.goreleaser.yml,**/.sops.yaml,**/.flux.yaml"


def test_the_rules_of_a_tree_are_read_by_directory() -> None:
    texts = {".sourceignore": b"*.md\n", "a/b/.sourceignore": b"x\xff", "a/sourceignore": b"no"}
    assert ignore.rules(texts, texts.__getitem__) == {"": "*.md\n", "a/b": "x\ufffd"}


def test_an_endless_ignore_file_is_refused_by_name() -> None:
    with pytest.raises(IntegrityError, match=r"a/\.sourceignore"):
        ignore.rules(["a/.sourceignore"], lambda _: b"x" * (1024 * 1024 + 1))
