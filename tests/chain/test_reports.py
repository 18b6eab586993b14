"""Mistakes in a whole tree: where they are said to be, in which form, and what excuses them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema_rs
import pytest
from registry import Registry

from ocipack.cli import projects
from ocipack.cli.app import COMMANDS

Run = Callable[..., tuple[int, str, str]]

SCHEMA = jsonschema_rs.validator_for(
    json.loads((Path(__file__).parents[2] / "docs/schemas/result-v1.json").read_text())
)

UNTIL = "until=2099-01-31 owner=team-shop"


def swap(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


@pytest.fixture
def planted(shop: Path) -> Path:
    """The shop with a mistake in each kind of place."""
    digest = "ghcr.io/example/catalog:2.7.1@sha256:"
    swap(shop / "base/catalog.yaml", digest, "ghcr.io/example/catalog:2.7.1 #")
    swap(shop / "base/frontend.yaml", "readOnlyRootFilesystem", "readOnlyRootFileSystem")
    swap(shop / "overlays/production/cart-storage.yaml", "cpu: 200m", "cpu: 200q")
    swap(shop / "overlays/staging/kustomization.yaml", '"*/30 * * * *"', "30")
    swap(shop / "components/resilience/autoscaler.yaml", "minReplicas: 3", "minReplica: 3")
    with (shop / "base/kustomization.yaml").open("a") as out:
        out.write("secretGenerator:\n  - name: token\n    literals:\n      - token=hunter2\n")
    return shop


PLACES = {
    "base/catalog.yaml:22:18 image-digest",
    "base/frontend.yaml:41:37 unknown-field",
    "base/kustomization.yaml:24:9 secret-plaintext",
    "components/resilience/autoscaler.yaml:10:15 unknown-field",
    "overlays/production/cart-storage.yaml:12:20 invalid-format",
    "overlays/staging/kustomization.yaml:23:16 wrong-type",
}


def found(out: str, severity: str = "error") -> set[str]:
    """`place rule` of the findings in a JSON document."""
    return {
        f"{f.get('file', '')}:{f.get('line', 0)}:{f.get('column', 0)} {f['rule']}"
        for f in json.loads(out)["findings"]
        if f["severity"] == severity
    }


def test_each_mistake_is_placed_where_it_was_made(ocipack: Run, planted: Path) -> None:
    code, out, _ = ocipack("render", str(planted), "--output", "json")
    assert code == 1
    assert found(out) == PLACES
    code, out, _ = ocipack("validate", str(planted), "--output", "json")
    assert code == 1
    assert found(out) == PLACES - {
        "base/catalog.yaml:22:18 image-digest",
        "base/kustomization.yaml:24:9 secret-plaintext",
    }


def test_annotations_name_files_from_where_the_command_ran(ocipack: Run, planted: Path) -> None:
    code, out, _ = ocipack("validate", planted.name, "--output", "github")
    assert code == 1
    assert "::error file=shop/base/frontend.yaml,line=41,col=37,title=unknown-field::" in out


def project(shop: Path, *entries: str) -> None:
    lines = "".join(
        f'    - {{{entry}, owner: team, reason: "soon", until: 2099-01-31}}\n' for entry in entries
    )
    head = "apiVersion: ocipack.dev/v1alpha1\nvalidate:\n  ignore:\n"
    (shop / "ocipack.yaml").write_text(head + lines)


def test_what_is_ignored_can_be_shipped_and_the_project_file_stays_at_home(
    ocipack: Run, planted: Path, key: str
) -> None:
    project(
        planted,
        "rule: image-digest, path: base/**",
        'rule: unknown-field, object: "* */frontend"',
        "rule: secret-plaintext, path: base/kustomization.yaml",
        'rule: invalid-format, object: "StatefulSet shop/cart"',
        "rule: wrong-type, path: overlays/*/kustomization.yaml",
    )
    code, out, err = ocipack(
        *("ship", str(planted), "--to", "ocidir://site:v1", "--key", key),
        *("--output", "json", "--output", "sarif=out.sarif"),
    )
    assert code == 0, err
    assert found(out) == set()
    assert found(out, "note") >= PLACES
    assert "ignore-" not in out
    results = json.loads(Path("out.sarif").read_text())["runs"][0]["results"]
    assert {r["ruleId"] for r in results if "suppressions" in r} == {
        place.split()[1] for place in PLACES
    }
    code, _, err = ocipack(
        "pull", "ocidir://site:v1", "--key", key.replace(".key", ".pub"), "-o", "x"
    )
    assert code == 0, err
    assert Path("x/base/catalog.yaml").exists()
    assert not Path("x/ocipack.yaml").exists()


def test_a_comment_in_any_kind_of_file_excuses_its_line(ocipack: Run, planted: Path) -> None:
    rows = {
        "base/catalog.yaml": ("catalog:2.7.1 #", "image-digest"),
        "base/frontend.yaml": ("readOnlyRootFileSystem: true", "unknown-field"),
        "base/kustomization.yaml": ("- token=hunter2", "secret-plaintext"),
        "components/resilience/autoscaler.yaml": ("minReplica: 3", "unknown-field"),
        "overlays/production/cart-storage.yaml": ("cpu: 200q", "invalid-format"),
    }
    for name, (text, rule) in rows.items():
        swap(planted / name, text, f"{text.rstrip(' #')}  # ocipack:ignore {rule} {UNTIL} soon\n#")
    code, out, _ = ocipack("render", str(planted), "--output", "json")
    assert code == 1
    assert found(out) == {"overlays/staging/kustomization.yaml:23:16 wrong-type"}
    assert "ignore-" not in json.dumps([f["rule"] for f in json.loads(out)["findings"]])
    code, out, _ = ocipack("validate", str(planted), "--output", "json")
    assert found(out) == {"overlays/staging/kustomization.yaml:23:16 wrong-type"}


def test_comments_in_raw_files_count_too(ocipack: Run, tmp_path: Path) -> None:
    tree = tmp_path / "raw"
    tree.mkdir()
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    (tree / "a.yaml").write_text(f"{text}dta: {{}}  # ocipack:ignore unknown-field {UNTIL} soon\n")
    (tree / "b.yaml").write_text(text.replace("a}", "b}"))
    assert ocipack("validate", str(tree))[0] == 0
    assert ocipack("validate", str(tree / "a.yaml"))[0] == 0
    swap(tree / "a.yaml", "2099", "2001")
    code, out, _ = ocipack("validate", str(tree), "--output", "json")
    assert code == 1
    assert found(out) == {"a.yaml:4:6 unknown-field"}
    assert found(out, "warning") == {"a.yaml:4:10 ignore-expired"}


def test_the_clock_decides(ocipack: Run, planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(planted, 'rule: unknown-field, path: "**"')
    monkeypatch.setattr(projects, "now", lambda: "2099-01-31T23:59:59Z")
    assert "unknown-field" not in str(found(ocipack("render", "shop", "--output", "json")[1]))
    monkeypatch.setattr(projects, "now", lambda: "2099-02-01T00:00:00Z")
    _, out, _ = ocipack("render", "shop", "--output", "json")
    assert "base/frontend.yaml:41:37 unknown-field" in found(out)
    assert found(out, "warning") >= {"ocipack.yaml:4:7 ignore-expired"}


def test_an_unused_ignore_is_said_only_when_the_whole_tree_was_looked_at(
    ocipack: Run, shop: Path
) -> None:
    project(shop, "rule: image-digest, path: nowhere/**")
    for whole in (["render", "shop"], ["validate", "shop"]):
        code, out, _ = ocipack(*whole, "--output", "json")
        assert code == 0
        assert "ocipack.yaml:4:7 ignore-unused" in found(out, "warning")
    for part in (
        ["render", "shop", "--root", "overlays/staging"],
        ["validate", "shop", "--no-render"],
        ["validate", "shop", "--skip", "Service"],
    ):
        _, out, _ = ocipack(*part, "--output", "json")
        assert "ignore-unused" not in out


@pytest.mark.parametrize("command", ["render", "validate"])
def test_a_project_file_that_is_wrong_is_misuse(ocipack: Run, shop: Path, command: str) -> None:
    (shop / "ocipack.yaml").write_text("apiVersion: ocipack.dev/v1alpha1\nvalidat: {}\n")
    code, _, err = ocipack(command, "shop")
    assert code == 2
    assert "error: ocipack.yaml:2:1: unknown field 'validat'" in err
    assert "hint: did you mean validate?" in err
    (shop / "ocipack.yaml").unlink()
    (shop / "ocipack.yaml").mkdir()
    assert ocipack(command, "shop")[0] == 2
    assert ocipack(command, "shop", "--project", "none.yaml")[0] == 2


def test_a_project_file_of_ones_own(ocipack: Run, planted: Path) -> None:
    project(planted, 'rule: unknown-field, path: "**"')
    (planted / "ocipack.yaml").rename("mine.yaml")
    _, out, _ = ocipack("render", "shop", "--output", "json", "--project", "mine.yaml")
    assert "unknown-field" not in str(found(out))
    notes = [f for f in json.loads(out)["findings"] if "ignored" in f]
    assert {f["ignored"]["place"] for f in notes} == {"../mine.yaml:4:7"}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as made:
        yield made


def test_every_command_writes_what_the_schema_describes_good_or_bad(
    ocipack: Run, hello: Path, planted: Path, key: str, public: str, registry: Registry
) -> None:
    code, made, err = ocipack("pack", str(hello), "--to", "ocidir://made", "--allow-dirty")
    assert code == 0, err
    made = made.strip()
    lines: list[tuple[int, list[str]]] = [
        (0, ["pack", str(hello)]),
        (0, ["render", str(hello)]),
        (1, ["render", str(planted)]),
        (0, ["validate", str(hello)]),
        (1, ["validate", str(planted)]),
        (2, ["validate", "nowhere"]),
        (0, ["ship", str(hello), "--to", "ocidir://site:v1", "--key", key]),
        (1, ["ship", str(planted), "--to", "ocidir://site:v2", "--key", key]),
        (0, ["verify", "ocidir://site:v1", "--key", public]),
        (1, ["verify", made, "--key", public]),
        (3, ["verify", "ocidir://site:none", "--key", public]),
        (1, ["verify", "ocidir://site:v1", made, "--key", public]),
        (0, ["sign", made, "--key", key]),
        (0, ["copy", made, "ocidir://copied:v1", "--key", public]),
        (0, ["tag", "ocidir://site:v1", "stable", "--key", public]),
        (0, ["list", "ocidir://site"]),
        (0, ["inspect", "ocidir://site:v1"]),
        (0, ["pull", "ocidir://site:v1", "--key", public, "-o", "out"]),
        (0, ["keys", "public", public]),
        (0, ["init", str(hello)]),
        (2, ["init", str(hello)]),
        (0, ["airgap", "save", "ocidir://site:v1", "-o", "site.tar", "--key", public]),
        (0, ["airgap", "list", "site.tar"]),
        (0, ["airgap", "verify", "site.tar", "--key", public]),
        (2, ["airgap", "load", "site.tar", "--to", "ocidir://beyond", "--key", public]),
        (2, ["mirror", "-f", "none.yaml"]),
        (2, ["vendor", "-f", "none.yaml"]),
        (1, ["images", str(hello)]),
        (0, ["registry", "check", registry.name]),
        (2, ["login", registry.name, "--username", "me"]),
        (0, ["logout", registry.name]),
        (0, ["rules", "list"]),
        (0, ["rules", "explain", "image-digest"]),
        (2, ["rules", "explain", "none"]),
    ]
    for code, line in lines:
        got, out, err = ocipack(*line, "--allow-dirty" if line[0] in DIRTY else "--quiet", *JSON)
        assert got == code, (line, err)
        document = json.loads(out)
        SCHEMA.validate(document)
        assert document["exitCode"] == code
        assert document["command"] == " ".join(line[: 2 if line[0] in GROUPS else 1])
    assert {line[0] for _, line in lines} >= {*COMMANDS} - LATER


DIRTY = ("pack", "render", "ship")
GROUPS = ("airgap", "keys", "registry", "rules")
JSON = ("--output", "json")
LATER = {"pin", "lock", "policy"}
"""Commands that need more than this test has."""
