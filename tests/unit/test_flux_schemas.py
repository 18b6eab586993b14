"""Flux's own kinds without a definition: what the data holds, who wins, and when it is read."""

from __future__ import annotations

import importlib.util
import json
import lzma
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from things import thing

from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas import flux
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.report import Severity
from ocipack.validate.apis import Apis
from ocipack.validate.cache import Keys, _program
from ocipack.validate.check import schemas_for, validate
from ocipack.validate.crd import Conversion, custom_kinds, without_bad_patterns
from ocipack.validate.formats import ALL
from ocipack.validate.judge import Judge
from ocipack.validate.options import Options
from ocipack.validate.schema import SchemaCheck

HELM = "helm.toolkit.fluxcd.io"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_flux_schemas.py"
SERVED = {
    HELM: ["v2 HelmRelease"],
    "image.toolkit.fluxcd.io": [
        *("v1 ImagePolicy", "v1 ImageRepository", "v1 ImageUpdateAutomation")
    ],
    "kustomize.toolkit.fluxcd.io": ["v1 Kustomization"],
    "notification.toolkit.fluxcd.io": ["v1beta3 Alert", "v1beta3 Provider", "v1 Receiver"],
    "source.extensions.fluxcd.io": ["v1beta1 ArtifactGenerator"],
    "source.toolkit.fluxcd.io": [
        *("v1 Bucket", "v1 ExternalArtifact", "v1 GitRepository", "v1 HelmChart"),
        *("v1 HelmRepository", "v1 OCIRepository"),
    ],
}


def release(version: str = "v2", **spec: Any) -> Resource:
    chart = {"kind": "OCIRepository", "name": "web"}
    return thing(f"{HELM}/{version}", "HelmRelease", spec={"chartRef": chart, **spec})


def defined(version: str, **properties: Any) -> Resource:
    """A definition of HelmRelease with one version, as somebody's own Flux may have it."""
    inner = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return thing(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        spec={
            "group": HELM,
            "names": {"kind": "HelmRelease", "plural": "helmreleases"},
            "scope": "Namespaced",
            "versions": [{"name": version, "served": True, "schema": {"openAPIV3Schema": inner}}],
        },
    )


def said(resource: Resource, *given: Resource, version: str = "") -> list[tuple[str, str, str]]:
    """Rule, message and hint of what is said of `resource` where `given` are known."""
    report = validate([resource], schemas=schemas_for("", given, flux=version))
    return [(f.rule, f.message, f.hint) for f in report.findings]


def test_what_is_served() -> None:
    assert sorted(flux.groups()) == sorted(SERVED)
    for group, served in SERVED.items():
        kinds = [kind for one in flux.definitions(group) for kind in custom_kinds(Resource(one))]
        assert all(kind.served and kind.namespaced and kind.pruned for kind in kinds)
        assert [f"{k.api_version.rpartition('/')[2]} {k.kind}" for k in kinds] == served


@pytest.mark.parametrize("group", SERVED)
def test_every_definition_can_be_used_whole(group: str) -> None:
    catalog = Catalog.of()
    engine = SchemaCheck(Apis(catalog))
    for definition in flux.definitions(group):
        text = json.dumps(definition)
        assert '"description":"' not in text.replace(" ", "")
        assert set(re.findall(r'"format": "([^"]+)"', text)) <= {"date-time", "int32", "int64"}
        for kind in custom_kinds(Resource(definition)):
            conversion = Conversion(kind)
            document = conversion.document(catalog)
            assert set(re.findall(r'"format": "([^"]+)"', json.dumps(document))) <= ALL.keys()
            assert without_bad_patterns(conversion, document, lambda one: one)
            assert not conversion.findings  # each pattern was understood
            assert engine.compiled(kind.api_version, kind.kind)


@pytest.mark.parametrize("group", ["apps", "example.com", "toolkit.fluxcd.io.example.com", ""])
def test_other_groups_read_nothing(group: str) -> None:
    flux._data.cache_clear()
    assert flux.definitions(group) == []
    assert flux._data.cache_info().currsize == 0


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"
RELEASE = (
    f"apiVersion: {HELM}/v2\nkind: HelmRelease\nmetadata: {{name: a}}\nspec: {{interval: 1h}}\n"
)


@pytest.mark.parametrize(("text", "read"), [(CONFIG, 0), (RELEASE, 1)])
def test_a_tree_without_flux_reads_nothing(text: str, read: int, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [a.yaml]\n")
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text(
        "apiVersion: example.com/v1\nkind: A\nmetadata: {name: a, namespace: b}\n"
    )
    script = (
        "import sys; from ocipack.cli.app import run; code = run(sys.argv[1:])\n"
        "from ocipack.k8s.schemas import flux\n"
        "print('READ', code, flux._data.cache_info().currsize)"
    )
    command = [sys.executable, "-c", script, "validate", str(tmp_path), "--jobs", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"READ 0 {read}"


MANIFEST = b"""\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: web
spec:
  interval: 10 minutes
  prune: "yes"
  path: ./web
  sourceRef:
    kind: HelmRepository
    nmae: site
  dependson: []
"""


def test_each_fault_has_its_line() -> None:
    verdict = Judge(Options(), schemas_for()).file(MANIFEST, named=True)
    assert sorted((f.line, f.rule, f.message.partition(":")[0]) for f in verdict.findings) == [
        (6, "pattern-mismatch", "spec.interval"),
        (7, "wrong-type", "spec.prune"),
        (10, "unsupported-value", "spec.sourceRef.kind"),
        (11, "unknown-field", "spec.sourceRef.nmae"),
        (12, "unknown-field", "spec.dependson"),
    ]
    short = MANIFEST.partition(b"  prune")[0].replace(b" minutes", b"m")
    (found, other) = Judge(Options(), schemas_for()).file(short, named=True).findings
    assert {(f.line, f.rule, f.message.partition(":")[0]) for f in (found, other)} == {
        (5, "required-field", "spec.prune"),
        (5, "required-field", "spec.sourceRef"),
    }


def test_variables_that_flux_puts_in_are_waited_for() -> None:
    text = MANIFEST.replace(b"10 minutes", b"${INTERVAL}")
    verdict = Judge(Options(), schemas_for()).file(text, named=True)
    (found,) = (finding for finding in verdict.findings if finding.line == 6)
    assert found.severity is Severity.NOTE


def test_an_object_without_metadata_is_still_one() -> None:
    text = b"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec: {interval: 1h}\n"
    verdict = Judge(Options(), schemas_for()).file(text, named=False)
    assert [finding.rule for finding in verdict.findings] == ["object-identity"]


def test_given_definitions_win() -> None:
    assert not said(release(interval="1h"))
    assert [rule for rule, *_ in said(release(interval="1h", wild=1))] == ["unknown-field"]
    own = defined("v2", wild={"type": "integer"}, chartRef={"type": "object"})
    assert [message for _, message, _ in said(release(wild=1), own)] == [
        *("spec.chartRef.kind: unknown field", "spec.chartRef.name: unknown field")
    ]


def test_definitions_of_the_tree_win() -> None:
    own = defined("v2", wild={"type": "integer"})
    report = validate([own, thing(f"{HELM}/v2", "HelmRelease", spec={"wild": 1})])
    assert not [f for f in report.findings if f.subject.startswith("HelmRelease")]


def test_a_given_definition_is_the_only_one() -> None:
    old = defined("v2beta2")
    assert not said(thing(f"{HELM}/v2beta2", "HelmRelease", spec={}), old)
    assert said(release(interval="1h"), old) == [
        ("api-unserved", f"no HelmRelease in {HELM}/v2", f"served: {HELM}/v2beta2")
    ]


def test_a_definition_wins_whenever_it_is_learnt() -> None:
    apis = Apis(Catalog.of())
    assert apis.declared(f"{HELM}/v2", "HelmRelease")
    apis.add(custom_kinds(defined("v2beta2")))
    assert apis.declared(f"{HELM}/v2beta2", "HelmRelease")
    assert not apis.declared(f"{HELM}/v2", "HelmRelease")


def test_lists_with_keys_have_each_entry_once() -> None:
    provider = {"issuerURL": "https://issuer.example.org", "audience": "flux"}
    spec = {"type": "generic-oidc", "oidcProviders": [provider, provider], "resources": []}
    found = said(thing("notification.toolkit.fluxcd.io/v1", "Receiver", spec=spec))
    assert "duplicate-entry" in [rule for rule, *_ in found]


def test_verdicts_are_not_kept_over_other_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(loader: SourceFileLoader, path: str) -> bytes:
        return read(loader, path) + b"x" * path.endswith("flux.xz")

    read = SourceFileLoader.get_data
    keys = Keys.of(Options(), [])
    monkeypatch.setattr(SourceFileLoader, "get_data", changed)
    _program.cache_clear()
    assert Keys.of(Options(), []) != keys
    monkeypatch.undo()
    _program.cache_clear()
    assert Keys.of(Options(), []) == keys
    assert Keys.of(Options(flux="2.8"), []) != keys


def test_an_older_flux_is_told_from_the_one_that_is_known() -> None:
    old = release("v2beta2", interval="1h")
    message = f"{HELM}/v2beta2 HelmRelease is not served by Flux 2.9"
    hint = f"served: {HELM}/v2"
    refused = [("api-unserved", message, f"{hint}; an older Flux? --crd takes its definitions")]
    for target in ("", "2.9", "2.10"):
        assert said(old, version=target) == refused
    warned, unchecked = said(old, version="2.8")
    assert warned == ("api-deprecated", f"{message}; the target is 2.8", hint)
    assert unchecked[0] == "schema-missing"


def test_kinds_that_flux_has_not() -> None:
    ((rule, message, hint),) = said(thing(f"{HELM}/v2", "HelmRelese", spec={}))
    assert (rule, message) == ("unknown-kind", f"no HelmRelese in {HELM}/v2")
    assert hint == "did you mean `kind: HelmRelease`?"
    assert [rule for rule, *_ in said(thing(f"{HELM}/v2", "Other"))] == ["schema-missing"]


def test_lists_that_flux_operator_makes_longer() -> None:
    api, sources = "notification.toolkit.fluxcd.io/v1beta3", [{"kind": "FluxInstance", "name": "*"}]
    spec = {"providerRef": {"name": "chat"}, "eventSources": sources}
    assert not said(thing(api, "Alert", spec=spec))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_flux_schemas", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCHEMA = {
    "type": "object",
    "description": "text",
    "properties": {
        "description": {"type": "string", "description": "text", "default": {"title": "kept"}},
        "list": {"items": {"enum": ["description"], "title": "text"}, "type": "array"},
    },
    "x-kubernetes-validations": [{"rule": "true"}],
    "anyOf": [{"required": ["list"], "description": "text"}],
}


def test_the_script_keeps_what_decides(script: ModuleType) -> None:
    assert script.schema(SCHEMA) == {
        "type": "object",
        "properties": {
            "description": {"type": "string", "default": {"title": "kept"}},
            "list": {"items": {"enum": ["description"]}, "type": "array"},
        },
        "anyOf": [{"required": ["list"]}],
    }


def test_the_script_knows_a_form_that_it_does_not_know(script: ModuleType) -> None:
    made = defined("v2").value
    data = script.derive([json.dumps(made).encode()], ["m@v1 h1:x"])
    header, *lines = lzma.decompress(data).decode().split("\n")
    assert json.loads(header)["groups"] == {HELM: [1]}
    assert json.loads(lines[0])["spec"]["versions"] == made["spec"]["versions"]
    made["spec"]["conversion"] = {}
    with pytest.raises(SystemExit, match="conversion"):
        script.derive([json.dumps(made).encode()], [])


def test_a_module_that_cannot_be_had_ends_the_script(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "github.com/fluxcd/helm-controller@v0.0.0"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="there is no go"):
        script.module(name)
    go = tmp_path / "go"
    go.write_text('#!/bin/sh\necho \'{"Error": "gone"}\'\nexit 1\n')
    go.chmod(0o755)
    with pytest.raises(SystemExit, match=r"helm-controller@v0\.0\.0 cannot be had: gone"):
        script.module(name)


PROJECT = """\
apiVersion: ocipack.dev/v1alpha1
source: https://git.example.com/a
flux: "{}"
artifacts:
  - name: a
    root: a
"""


def run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ocipack", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["validate", "render"])
@pytest.mark.parametrize(("target", "code"), [("2.8", 0), ("2.9", 1)])
def test_the_project_names_the_target(command: str, target: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "ocipack.yaml").write_text(PROJECT.format(target))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "kustomization.yaml").write_text("resources: [a.yaml]\n")
    (tmp_path / "a" / "a.yaml").write_text(RELEASE.replace("/v2\n", "/v2beta2\n"))
    done = run(command, str(tmp_path))
    assert done.returncode == code, done.stderr
    assert "v2beta2 HelmRelease is not served by Flux 2.9" in done.stdout + done.stderr


def test_the_example_has_no_kind_of_flux_without_a_schema() -> None:
    done = run("validate", str(SCRIPT.parents[1] / "examples" / "fleet"), "--output", "json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert not [f for f in found["findings"] if "fluxcd.io" in f["message"]]
    assert "fluxcd.io" not in json.dumps(found.get("missing", {}))
