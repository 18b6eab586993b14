"""`ocipack validate`: what is judged, what is not, and what an exit code says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chain.conftest import Run

from ocipack.cli.app import run

OCIPACK = [sys.executable, "-m", "ocipack", "validate"]

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parcels.post.example.com}
spec:
  group: post.example.com
  scope: Namespaced
  names: {kind: Parcel, plural: parcels, singular: parcel}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {weight: {type: integer}}}
"""
PARCEL = """\
apiVersion: post.example.com/v1
kind: Parcel
metadata: {name: one, namespace: shop}
spec: {weight: heavy}
"""


def config(name: str = "a", extra: str = "") -> str:
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
    return f"{head}  name: {name}\n  namespace: shop\n{extra}"


BROKEN = config("broken", "dta: {}\n")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def checked(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    capfd.readouterr()
    code = run(["validate", "--output", "json", *arguments])
    return code, json.loads(capfd.readouterr().out)


def rules(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one.get("file", ""), one["rule"]) for one in result["findings"]]


# what a peer gets wrong


def test_large_standard_input_has_the_verdict_of_the_same_bytes_in_a_file(tmp_path: Path) -> None:
    """A peer shares a buffer between its readers, and finds random errors beyond 4 MB."""
    body = "data:\n  a: |\n" + "    0123456789abcdef0123456789abcdef\n" * 2_500
    text = "---\n".join(config(f"a{n}", body) for n in range(60))
    assert len(text) > 5_000_000
    for spoil, code in (("", 0), (f"---\n{BROKEN}", 1)):
        path = write(tmp_path / "all.yaml", text + spoil)
        for source in ("-", str(path)):
            done = subprocess.run(
                [*OCIPACK, source, "--output", "json"],
                input=(text + spoil).encode() if source == "-" else b"",
                capture_output=True,
                check=False,
            )
            result = json.loads(done.stdout)
            errors = [one["message"] for one in result["findings"] if one["severity"] == "error"]
            assert (done.returncode, len(errors), result["objects"]) == (code, code, 60 + code)


def test_a_read_error_on_standard_input_is_no_success(tmp_path: Path) -> None:
    """A peer takes a failed read for the end of the stream, and says that nothing is wrong."""
    handle = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)  # reading it fails
    try:
        done = subprocess.run(
            [*OCIPACK, "-"], stdin=handle, capture_output=True, text=True, check=False
        )
    finally:
        os.close(handle)
    assert done.returncode == 3
    assert "standard input" in done.stderr


def test_what_stands_behind_a_document_that_is_too_large_is_seen(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocipack.k8s.yaml.limits.PIECE", 400_000)
    huge = config("huge", "data:\n  a: " + "x" * 3_000_000 + "\n")
    path = write(tmp_path / "all.yaml", f"{huge}---\n{BROKEN}")
    code, result = checked(capfd, str(path), "--jobs", "1")
    assert code == 1
    assert [rule for _, rule in rules(result)] == ["yaml-unreadable", "unknown-field"]


def test_nothing_is_asked_of_the_network(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer waits for ever for a host that accepts and says nothing; we ask none."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr("socket.socket.connect", refuse)
    write(tmp_path / "in/a.yaml", PARCEL + "---\n" + config())
    code, result = checked(capfd, "in")
    assert (code, result["withoutSchema"]) == (0, {"post.example.com/v1 Parcel": 1})


@pytest.mark.parametrize("order", [("missing", "in"), ("in", "missing")])
def test_a_missing_path_is_an_error_and_stops_nothing(
    order: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/a.yaml", config())
    code, result = checked(capfd, *order)
    assert (code, result["objects"]) == (2, 1)
    write(tmp_path / "in/b.yaml", BROKEN)
    assert checked(capfd, *order)[0] == 1


def test_links_to_directories_are_followed_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "real/a.yaml", BROKEN)
    (tmp_path / "alias").symlink_to("real")
    (tmp_path / "mount").mkdir()
    (tmp_path / "mount/..data").symlink_to("../real")
    (tmp_path / "mount/a.yaml").symlink_to("..data/a.yaml")
    (tmp_path / "mount/loop").symlink_to(".")
    for path in ("alias", "mount"):
        code, result = checked(capfd, path)
        assert (code, result["files"], result["objects"]) == (1, 1, 1)


# what can be read


@pytest.mark.parametrize("through", ["itself", "link"])
def test_a_pipe_in_a_tree_is_not_waited_for(
    through: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/a.yaml", config())
    os.mkfifo(tmp_path / ("in/x.yaml" if through == "itself" else "pipe"))
    if through == "link":
        (tmp_path / "in/x.yaml").symlink_to("../pipe")
    code, result = checked(capfd, "in")
    assert code == 1
    assert rules(result) == [("x.yaml", "special-file")]


def test_a_pipe_that_is_named_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen([*OCIPACK, "pipe"], cwd=tmp_path, stderr=subprocess.PIPE) as process:
        (tmp_path / "pipe").write_text(BROKEN)
        assert b"unknown-field" in process.communicate()[1]
    assert process.returncode == 1


def test_a_file_that_cannot_be_read_is_not_passed_over(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/a.yaml", config())
    (tmp_path / "in/b.yaml").symlink_to("nowhere.yaml")
    code, result = checked(capfd, "in")
    assert code == 3
    assert rules(result) == [("b.yaml", "file-unreadable")]
    write(tmp_path / "in/c.yaml", BROKEN)
    assert checked(capfd, "in")[0] == 1, "what is wrong for certain decides"


def test_standard_input_with_several_kinds_of_text(tmp_path: Path) -> None:
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j"}, "data": {"a": 1}}
    many = {"apiVersion": "v1", "kind": "List", "items": [one]}
    for text, dialect, objects, pointers in (
        (config("a") + "---\n" + config("b") + "...\n", "flux", 2, []),
        (json.dumps(one), "flux", 1, ["/data/a"]),
        (json.dumps(many, indent=2), "flux", 1, ["/items/0/data/a"]),
        (json.dumps(one) + "\n" + json.dumps(one | {"metadata": {"name": "k"}}), "kubectl", 2, 2),
        (config().replace("\n", "\r\n"), "flux", 1, []),
        ("\ufeff" + config(), "kubectl", 1, []),
    ):
        done = subprocess.run(
            [*OCIPACK, "-", "--dialect", dialect, "--output", "json"],
            input=text.encode(),
            capture_output=True,
            cwd=tmp_path,
            check=False,
        )
        result = json.loads(done.stdout)
        assert result["objects"] == objects
        found = [one["pointer"] for one in result["findings"]]
        assert found == pointers if isinstance(pointers, list) else len(found) == pointers


def test_places_count_in_the_stream(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = config("a") + "---\n# more\n---\n" + config("b", "data:\n  x: 1\n  z: yes\n")
    write(tmp_path / "a.yaml", text)
    _, result = checked(capfd, "a.yaml", "--dialect", "kubectl")
    assert [(one["rule"], one["line"], one["column"]) for one in result["findings"]] == [
        ("wrong-type", 15, 6),
        ("wrong-type", 16, 6),
        ("yaml-unportable", 16, 6),
    ]


# what is judged


def test_nothing_is_no_success(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    assert [f["message"] for f in checked(capfd, "in")[1]["findings"]] == [
        "there is no object to check"
    ]
    write(tmp_path / "in/a.yaml", "# nothing\n---\n# here\n")
    code, result = checked(capfd, "in")
    assert (code, result["empty"]) == (1, ["a.yaml"])
    assert "only 1 file with nothing but comments" in result["findings"][0]["message"]


def test_what_is_no_manifest_is_listed_and_not_failed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chart = tmp_path / "in/chart"
    write(tmp_path / "in/a.yaml", config())
    write(chart / "Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\n")
    write(chart / "values.yaml", "kind: x\napiVersion: y\n")
    write(chart / "templates/a.yaml", "kind: {{ .Values.kind }}\napiVersion: v1\n")
    write(tmp_path / "in/mkdocs.yml", "site_name: x\nplugins: !!python/name:x\n")
    write(tmp_path / "in/cluster.yaml", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n")
    write(tmp_path / "in/package.json", '{"name": "x"}\n')
    write(tmp_path / "in/.github/workflows/ci.yaml", "on: push\nkind: x\napiVersion: v1\n")
    code, result = checked(capfd, "in")
    assert (code, result["objects"], result["findings"]) == (0, 1, [])
    assert sorted(result["skipped"]) == [
        *(".github/workflows/ci.yaml", "chart/Chart.yaml"),
        *("chart/templates/a.yaml", "chart/values.yaml"),
    ]
    assert result["notManifests"] == ["cluster.yaml", "mkdocs.yml", "package.json"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("kind: ConfigMap\nmetadata: {name: x}\n", "object-identity"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x\n", "yaml-unreadable"),
        (config() + "---\nplain: text\n", "object-identity"),
        ("apiVersion: apps/v1\nkind: Deployment\n", "object-identity"),
        ("- apiVersion: v1\n  kind: ConfigMap\n", None),
    ],
)
def test_what_claims_to_be_a_manifest_is_held_to_it(
    text: str, rule: str | None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/a.yaml", text)
    code, result = checked(capfd, "in")
    assert code == 1
    assert (rule or "nothing-to-validate") in {name for _, name in rules(result)}
    assert checked(capfd, "in/a.yaml")[0] == 1


def test_kustomizations_are_judged_as_they_are_built(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/app/kustomization.yaml", "resources: [a.yaml]\npatches: [path: p.yaml]\n")
    write(tmp_path / "in/app/kustomization.yaml", "resources: [a.yaml]\npatches:\n- path: p.yaml\n")
    write(tmp_path / "in/app/a.yaml", config())
    write(tmp_path / "in/app/p.yaml", config("a", "data:\n  replicas: 3\n"))
    write(tmp_path / "in/part/kustomization.yaml", "kind: Component\nresources: [c.yaml]\n")
    write(tmp_path / "in/part/c.yaml", config("c", "dta: {}\n"))
    write(tmp_path / "in/raw.yaml", config("raw"))
    code, result = checked(capfd, "in")
    assert (code, result["roots"], result["components"]) == (1, ["app"], ["part"])
    assert [one["pointer"] for one in result["findings"]] == ["/data/replicas"]
    assert (result["files"], result["objects"]) == (1, 2)
    code, result = checked(capfd, "in", "--no-render")
    assert {one["file"] for one in result["findings"]} >= {"app/p.yaml", "part/c.yaml"}


def test_a_root_that_cannot_be_built_does_not_stop_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/bad/kustomization.yaml", "resources: [/etc/passwd]\n")
    write(tmp_path / "in/good/kustomization.yaml", "resources: [a.yaml]\n")
    write(tmp_path / "in/good/a.yaml", config())
    code, result = checked(capfd, "in")
    assert (code, result["roots"], result["objects"]) == (1, ["good"], 1)
    assert ("bad/kustomization.yaml", "kustomization-outside") in rules(result)


def test_definitions_are_found_wherever_they_stand(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/a.yaml", PARCEL)
    assert checked(capfd, "in")[1]["withoutSchema"] == {"post.example.com/v1 Parcel": 1}
    assert checked(capfd, "in", "--require-schema")[0] == 1
    write(tmp_path / "crd.yaml", CRD)
    expected = [("a.yaml", "wrong-type")]
    assert rules(checked(capfd, "in", "--crd", "crd.yaml")[1]) == expected
    assert rules(checked(capfd, "in", "--crd", str(tmp_path))[1]) == expected
    write(tmp_path / "in/z/crd.yaml", CRD)
    assert rules(checked(capfd, "in")[1]) == expected
    write(tmp_path / "in/z/kustomization.yaml", "resources: [crd.yaml]\n")
    assert rules(checked(capfd, "in")[1]) == expected
    assert checked(capfd, "in", "--skip", "Parcel")[0] == 0


def test_definitions_come_from_an_artifact(
    tmp_path: Path, ocipack: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "crds/crd.yaml", CRD)
    code, place, _ = ocipack("pack", "crds", "--to", "ocidir://layout")
    assert code == 0
    write(tmp_path / "in/a.yaml", PARCEL)
    assert rules(checked(capfd, "in", "--crd", place.strip())[1]) == [("a.yaml", "wrong-type")]


@pytest.mark.parametrize("crd", ["missing.yaml", "in/a.yaml"])
def test_definitions_that_are_not_there_are_misuse(
    crd: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/a.yaml", config())
    assert checked(capfd, "in", "--crd", crd)[0] == 2


def test_the_version_of_kubernetes_decides(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = "apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n"
    write(tmp_path / "a.yaml", text)
    assert ("a.yaml", "api-removed") in rules(checked(capfd, "a.yaml")[1])
    old = rules(checked(capfd, "a.yaml", "--kubernetes-version", "1.25")[1])
    assert ("a.yaml", "api-removed") not in old
    assert checked(capfd, "a.yaml", "--kubernetes-version", "2.0")[0] == 2


def test_ship_and_render_judge_by_schemas_too(tmp_path: Path, ocipack: Run) -> None:
    write(tmp_path / "in/a.yaml", BROKEN)
    code, _, err = ocipack("render", "in")
    assert code == 1
    assert "unknown-field" in err
    write(tmp_path / "in/a.yaml", PARCEL)
    assert ocipack("render", "in")[0] == 0
    assert ocipack("render", "in", "--require-schema")[0] == 1
    write(tmp_path / "crd.yaml", CRD)
    code, _, err = ocipack("render", "in", "--crd", "crd.yaml")
    assert code == 1
    assert re.search(r"wrong-type.*spec\.weight", err)


# the cache


def test_what_has_not_changed_is_taken_from_the_cache(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number in range(5):
        write(tmp_path / f"in/{number}.yaml", config(f"a{number}"))
    write(tmp_path / "in/b.yaml", BROKEN)
    warm = ("in", "--cache", "cache")
    cold = checked(capfd, *warm)
    again = checked(capfd, *warm)
    assert (cold[1]["cached"], again[1]["cached"]) == (0, 6)
    assert cold[1] | {"cached": 6} == again[1]
    write(tmp_path / "in/0.yaml", config("a1", "data: {}\n"))
    code, result = checked(capfd, *warm)
    assert (code, result["cached"]) == (1, 5)
    assert ("1.yaml", "object-duplicate") in rules(result)
    assert checked(capfd, *warm, "--kubernetes-version", "1.30")[1]["cached"] == 0
    write(tmp_path / "in/crd.yaml", CRD)
    assert checked(capfd, *warm)[1]["cached"] == 0


def test_damaged_entries_are_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "in/b.yaml", BROKEN)
    warm = ("in", "--cache", "cache")
    checked(capfd, *warm)
    (entry,) = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    whole = entry.read_bytes()
    assert entry.stat().st_mode & 0o77 == 0
    for damage in (b"", whole[:-1], whole[:40] + b"[]", whole.replace(b"error", b"noted")):
        entry.write_bytes(damage)
        code, result = checked(capfd, *warm)
        assert (code, result["cached"]) == (1, 0)
        assert entry.read_bytes() == whole
    entry.unlink()
    entry.symlink_to("/dev/zero")
    assert checked(capfd, *warm)[1]["cached"] == 0


def test_a_cache_that_cannot_be_written_is_none(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "in/a.yaml", config())
    write(tmp_path / "file", "")
    for _ in range(2):
        code, result = checked(capfd, "in", "--cache", "file/cache")
        assert (code, result["cached"]) == (0, 0)


def test_no_value_of_a_secret_is_in_the_cache(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    value = "hunter2hunter2"
    head = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: x, namespace: {value}_A}}\n"
    bodies = (
        f"stringData: {{a: {value}}}\n",
        f"stringData: {value}\n",
        f"data: {{a: '{value}!'}}\n",
        f"type: [{value}]\n",
        f"stringData: {{a: [{value}]}}\n",
        f"stringData:\n  a: {value}\n--- {value}\n",
    )
    for number, body in enumerate(bodies):
        write(tmp_path / f"in/{number}.yaml", head.replace(f"{value}_A", "a") + body)
    assert checked(capfd, "in", "--cache", "cache")[0] == 1
    entries = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert len(entries) == len(bodies) - 1, "what cannot be read is quoted, and so not kept"
    for entry in entries:
        assert value.encode() not in entry.read_bytes()
