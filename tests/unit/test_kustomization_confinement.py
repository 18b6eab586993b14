"""A kustomization that reads what it may not is refused by name, and kustomize never starts.

The numbers are the checks of `ocipack.k8s.kustomization`.
"""

from __future__ import annotations

import json
from typing import NoReturn

import pytest

from ocipack.errors import Rejected
from ocipack.k8s.kustomization import walk as walking
from ocipack.k8s.kustomization.paths import View
from ocipack.k8s.kustomization.walk import Root
from ocipack.render import render
from ocipack.report import Finding

CM = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"


def no_kustomize(root: Root) -> NoReturn:
    raise AssertionError(f"kustomize was started for {root}")


def findings(files: dict[str, str | bytes], *roots: str) -> list[Finding]:
    """What stops this tree; fails if nothing does, or if kustomize was started."""
    data = {name: t.encode() if isinstance(t, str) else t for name, t in files.items()}
    with pytest.raises(Rejected) as caught:
        render(data, data.__getitem__, no_kustomize, roots=roots or None)
    assert caught.value.report is not None, caught.value
    found = list(caught.value.report.findings)
    assert found[0].place in str(caught.value)
    return found


def one(text: str, **more: str) -> Finding:
    """The only finding of a tree with this kustomization in `app/`, and `more` beside it."""
    files = {"app/kustomization.yaml": text, "app/c.yaml": CM, **more}
    found = findings(dict(files))
    assert len(found) == 1, found
    return found[0]


OUTSIDE = {
    "absolute": "/etc/hostname",
    "proc": "/proc/self/environ",
    "double slash": "//etc/hostname",
    "above": "../../secret.yaml",
    "above, hidden": "x/../../../secret.yaml",
    "the tree itself and further": "../..",
    "windows": "C:\\secret.yaml",
    "backslash": "..\\..\\secret.yaml",
    "empty": '""',
    "line break": '"c.yaml\\n"',
    "nul": '"c.yaml\\0"',
}


@pytest.mark.parametrize("path", OUTSIDE.values(), ids=OUTSIDE.keys())
def test_paths_that_leave_the_tree(path: str) -> None:  # checks 3 and 4
    found = one(f"resources:\n- {path}\n")
    assert found.rule in {"kustomization-outside", "kustomization-address"}
    assert found.place == "app/kustomization.yaml:2:3"
    assert found.pointer == "/resources/0"


def test_proc_is_called_by_its_name() -> None:
    assert "the runner's processes" in one("resources: [/proc/self/environ]").message


ADDRESSES = [
    *("https://example.com/a.yaml", "http://169.254.169.254/latest", "HTTPS://example.com/a"),
    *("git::https://example.com/a", "git@github.com:org/repo", "ssh://git@example.com/org/repo"),
    *("github.com/org/repo", "GitHub.com/org/repo//base?ref=v1", "github.com:org/repo"),
    *("file:///etc", "s3::https://s3.amazonaws.com/b/k", "gh:org/repo", "user@host:repo.git"),
    *("example.com/org/repo?ref=main", "example.com/org/repo.git/base", "org/_git/repo", "a//b"),
    *("hg::http://example.com", "example.com:8080/x", "gitlab.com/org/repo"),
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_addresses(address: str) -> None:  # check 3
    found = one(f"resources: ['{address}']")
    assert found.rule == "kustomization-address"
    assert "`ocipack vendor`" in found.hint


@pytest.mark.parametrize("address", ["https://example.com/a.yaml", "github.com/org/repo"])
def test_an_address_is_refused_even_when_the_tree_holds_such_a_name(address: str) -> None:
    """kustomize fetches before it looks, so a directory `https:` must not lend it credit."""
    inside = address.replace("//", "/")
    for name in (inside, f"{inside}/kustomization.yaml"):
        found = findings({"kustomization.yaml": f"resources: ['{address}']", name: "resources: []"})
        assert found[0].rule == "kustomization-address"


FIELDS = {
    "resources": "resources: [{}]",
    "bases": "bases: [{}]",
    "components": "components: [{}]",
    "crds": "crds: [{}]",
    "configurations": "configurations: [{}]",
    "generators": "generators: [{}]",
    "transformers": "transformers: [{}]",
    "validators": "validators: [{}]",
    "patches": "patches: [{{path: {}}}]",
    "patchesJson6902": "patchesJson6902: [{{path: {}}}]",
    "patchesStrategicMerge": "patchesStrategicMerge: [{}]",
    "replacements": "replacements: [{{path: {}}}]",
    "openapi": "openapi: {{path: {}}}",
    "config map, file": "configMapGenerator: [{{name: a, files: [{}]}}]",
    "config map, keyed file": "configMapGenerator: [{{name: a, files: [key={}]}}]",
    "config map, envs": "configMapGenerator: [{{name: a, envs: [{}]}}]",
    "config map, env": "configMapGenerator: [{{name: a, env: {}}}]",
    "secret, file": "secretGenerator: [{{name: a, files: [{}]}}]",
    "secret, envs": "secretGenerator: [{{name: a, envs: [{}]}}]",
    "secret, env": "secretGenerator: [{{name: a, env: {}}}]",
}


@pytest.mark.parametrize("text", FIELDS.values(), ids=FIELDS.keys())
@pytest.mark.parametrize("path", ["/etc/hostname", "../../x", "https://h/x", "missing.yaml"])
def test_every_field_that_names_a_path(text: str, path: str) -> None:  # checks 3, 4, 5
    rules = {
        "/etc/hostname": "kustomization-outside",
        "../../x": "kustomization-outside",
        "https://h/x": "kustomization-address",
        "missing.yaml": "kustomization-missing",
    }
    assert one(text.format(path)).rule == rules[path]


def test_a_symbolic_link_is_not_in_the_packed_tree() -> None:  # check 5
    """Packing takes no links, so that a name which only a link had names nothing."""
    found = one("resources: [link.yaml]")
    assert found.rule == "kustomization-missing"
    assert "symbolic links" in found.hint


def test_a_component_outside() -> None:
    found = one("components: [../../components/x]")
    assert found.rule == "kustomization-outside"


PLUGINS = {
    "ConfigMapGenerator": "files: [/etc/hostname]",
    "SecretGenerator": "envs: [/etc/hostname]",
    "PatchTransformer": "path: /etc/hostname",
    "PatchJson6902Transformer": "path: /etc/hostname",
    "PatchStrategicMergeTransformer": "paths: [/etc/hostname]",
    "ReplacementTransformer": "replacements: [{path: /etc/hostname}]",
    "ValueAddTransformer": "targetFilePath: /etc/hostname",
}


@pytest.mark.parametrize(("kind", "text"), PLUGINS.items(), ids=PLUGINS.keys())
def test_paths_in_plugin_configurations(kind: str, text: str) -> None:  # check 6
    config = f"apiVersion: builtin\nkind: {kind}\nmetadata:\n  name: x\n{text}\n"
    in_file = one("transformers: [p.yaml]", **{"app/p.yaml": config})
    assert (in_file.rule, in_file.file) == ("kustomization-outside", "app/p.yaml")
    assert in_file.line == 5
    second = one("generators: [p.yaml]", **{"app/p.yaml": f"# nothing\n---\n{config}"})
    assert (second.rule, second.line) == ("kustomization-outside", 7)
    indented = "\n".join("  " + line for line in config.splitlines())
    inline = one(f"transformers:\n- |-\n{indented}\n")
    assert (inline.rule, inline.file) == ("kustomization-outside", "app/kustomization.yaml")


def test_paths_of_a_plugin_count_from_the_kustomization_that_names_it() -> None:
    """`../x.yaml` is right from where the file stands, and outside from the top."""
    config = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: ../x.yaml"
    files = {"gen/p.yaml": config, "x.yaml": CM}
    found = findings({**files, "kustomization.yaml": "transformers: [gen/p.yaml]"})
    assert [f.rule for f in found] == ["kustomization-outside"]


REFUSED_PLUGINS = {
    "program": "apiVersion: example.com/v1\nkind: Anything\nmetadata: {name: x}",
    "function": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  annotations:\n"
    "    config.kubernetes.io/function: |\n      container: {image: x}",
    "helm": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}",
    "builtin kind, another group": "apiVersion: v1\nkind: ConfigMapGenerator\nmetadata: {name: x}",
    "unknown": "apiVersion: builtin\nkind: NewThing\nmetadata: {name: x}",
    "list": "apiVersion: builtin\nkind: List\nitems: []",
    "scalar": "just text",
}


@pytest.mark.parametrize("config", REFUSED_PLUGINS.values(), ids=REFUSED_PLUGINS.keys())
def test_plugins_that_are_not_compiled_in(config: str) -> None:  # check 6
    found = one("generators: [p.yaml]", **{"app/p.yaml": config})
    assert found.rule == "kustomization-plugin"
    assert found.file == "app/p.yaml"


def test_a_directory_of_plugin_configurations_is_refused() -> None:
    """What it renders to could name any path, and is known only afterwards."""
    files = {"app/p/kustomization.yaml": "resources: []"}
    found = one("generators: [p]", **files)
    assert "is a directory" in found.message


@pytest.mark.parametrize("field", ["helmCharts", "helmChartInflationGenerator", "helmGlobals"])
def test_helm(field: str) -> None:
    found = one(f"{field}: [{{name: x}}]")
    assert found.rule == "kustomization-plugin"
    assert field in found.message


UNKNOWN = {
    "Resources": "Resources: [c.yaml]",
    "RESOURCES": "RESOURCES: [c.yaml]",
    "kelvin": "bac\u212aground: x",
    "long s": "re\u017fources: [/etc/hostname]",
    "typo": "resource: [c.yaml]",
    "nested": "configMapGenerator: [{name: a, Files: [/etc/hostname]}]",
    "nested patch": "patches: [{Path: /etc/hostname}]",
    "openapi": "openapi: {Path: /etc/hostname}",
}


@pytest.mark.parametrize("text", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_fields_in_another_case_or_unknown(text: str) -> None:  # check 2
    assert one(text).rule == "kustomization-field"


def test_another_case_is_explained() -> None:
    found = one("Resources: [c.yaml]")
    assert found.message == "unknown field 'Resources'"
    assert found.hint.startswith("write resources:")


AMBIGUOUS = {
    "merge key": ("<<: {resources: [/etc/hostname]}", "a merge key"),
    "nested merge key": ("patches: [{<<: {path: /etc/hostname}}]", "a merge key"),
    "quoted merge key": ("'<<': {resources: [/etc/hostname]}", "a merge key"),
    "repeated key": ("resources: [c.yaml]\nresources: [c.yaml]", "key 'resources' given twice"),
    "repeated, quoted": ("resources: [c.yaml]\n'resources': [c.yaml]", "given twice"),
    "anchor": ("resources: &a [c.yaml]", "an anchor (&a)"),
    "tag": ("resources: !!seq [c.yaml]", "a tag (!!seq)"),
    "own tag": ("resources: [!x c.yaml]", "a tag (!x)"),
    "second document": ("resources: [c.yaml]\n---\nresources: [c.yaml]", "a second document"),
    "directive": ("%YAML 1.1\n---\nresources: [c.yaml]", "a YAML directive"),
    "tag directive": ("%TAG ! tag:x,2000:\n---\nresources: [c.yaml]", "a YAML directive"),
    "number": ("resources: [10]", "'10' is not text"),
    "truth": ("resources: [y]", "'y' is not text"),
    "date": ("resources: [2024-01-02]", "'2024-01-02' is not text"),
    "next line": ("resources: ['c.yaml\x85']", "U+0085"),
}


@pytest.mark.parametrize(("text", "words"), AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_what_yaml_readers_differ_on(text: str, words: str) -> None:  # check 1
    found = findings({"app/kustomization.yaml": text, "app/c.yaml": CM})
    said = [f for f in found if words in f.message]
    assert said, found
    assert said[0].rule == "kustomization-ambiguous"
    assert said[0].line


def test_an_alias() -> None:
    found = findings({"kustomization.yaml": "resources: &a [c.yaml]\ncrds: *a\n", "c.yaml": CM})
    assert [(f.line, f.column) for f in found] == [(1, 12), (2, 7)]
    assert "an alias (*a)" in found[1].message


@pytest.mark.parametrize(
    "data",
    [b"resources: [", b"\xff\xfer\0", b"resources: ['\xff']", b"a: b: c", b"\x00", b"- x", b"text"],
)
def test_what_cannot_be_read(data: bytes) -> None:
    found = findings({"kustomization.yaml": data, "c.yaml": CM})
    assert found[0].rule in {"kustomization-unreadable", "kustomization-field"}


def test_a_byte_order_mark_is_no_reason() -> None:
    text = "\ufeffresources: [nothing.yaml]"
    assert one(text).rule == "kustomization-missing"


DOCUMENT_OR_PATH = {
    "flow": "patchesStrategicMerge: ['https://h/x?a={}']",
    "not an object": "patchesStrategicMerge: ['a: b']",
    "an object that begins like an address": "patchesStrategicMerge: "
    '["https://h/a: b\\nkind: c\\nmetadata: {name: x}"]',
    "mapping without a kind": "patchesStrategicMerge: ['../../x: {a: b}']",
    "an address before it": "transformers: ['https://h/a: {kind: b, apiVersion: builtin}']",
    "address with a kind": 'transformers: ["https://h/a: b\\nkind: c"]',
    "git address with a kind": 'patchesStrategicMerge: ["git::https://h/a: b\\nkind: c"]',
}


@pytest.mark.parametrize("text", DOCUMENT_OR_PATH.values(), ids=DOCUMENT_OR_PATH.keys())
def test_a_string_that_kustomize_may_take_for_a_path(text: str) -> None:  # check 7
    assert one(text).rule.startswith("kustomization-")


LEADS_OUT = {
    "an alias to nothing": "{kind: A, metadata: {name: x}, y: *none} # /../../../secret.yaml",
    "a list that is none": "{kind: AList, metadata: {name: x}, items: 5} # /../../../secret.yaml",
    "a string": '{kind: A, metadata: {name: x}, y: "/../../../secret.yaml", z: *none}',
    "just outside": "{kind: A, metadata: {name: x}} # /../../..",
    "another line": "kind: A\nmetadata: {name: x}\n---\nkind: A # /../../../s\nmetadata: {name: x}",
}


@pytest.mark.parametrize("document", LEADS_OUT.values(), ids=LEADS_OUT.keys())
@pytest.mark.parametrize("field", ["patchesStrategicMerge", "transformers", "generators"])
def test_a_document_that_is_a_path_out_of_the_tree_too(field: str, document: str) -> None:
    # check 7: kustomize reads the file if it does not like the document
    found = one(f"{field}: [{json.dumps(document)}]")
    assert (found.rule, found.pointer) == ("kustomization-outside", f"/{field}/0")


def test_a_document_may_speak_of_paths() -> None:
    document = "{kind: ConfigMap, metadata: {name: c}, data: {a: ../b, c: /../d, e: https://f}}"
    files = {"k.yaml": CM, "kustomization.yaml": f"patchesStrategicMerge: ['{document}']"}
    walk = walking.Walk(View.of(files), lambda name: files[name].encode())
    assert walking.confined(None, walk)
    assert walk.report.ok


def test_two_kustomizations_in_one_directory() -> None:
    found = findings({"a/kustomization.yaml": "", "a/Kustomization": "", "a/c.yaml": CM})
    assert "kustomization.yaml and Kustomization" in found[0].message
    named = findings({"a/kustomization.yaml": "", "a/kustomization.yml": ""}, "a")
    assert named[0].rule == "kustomization-ambiguous"
    below = findings({"b.yaml": CM, "a/kustomization.yaml": "", "a/kustomization.yml": ""}, "")
    assert below[0].rule == "kustomization-ambiguous"  # in what Flux would generate above it
    base = findings(
        {"kustomization.yaml": "resources: [a]", "a/kustomization.yaml": "", "a/Kustomization": ""}
    )
    assert "kustomization-missing" in {f.rule for f in base}


def test_a_base_without_a_kustomization() -> None:
    found = findings({"kustomization.yaml": "resources: [a]", "a/c.yaml": CM})
    assert found[0].message == "the directory 'a' holds no kustomization file"


def test_components_and_resources_are_not_exchanged() -> None:
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
    found = findings({"kustomization.yaml": "resources: [a]", "a/kustomization.yaml": component})
    assert found[0].message == "'a' is a Component; it belongs under components"
    found = findings({"kustomization.yaml": "components: [a]", "a/kustomization.yaml": ""})
    assert found[0].message == "'a' is a Kustomization; it belongs under resources"


def test_kinds_and_versions() -> None:
    assert one("kind: Deployment").pointer == "/kind"
    assert one("kind: Component\napiVersion: v1").pointer == "/apiVersion"


def test_cycles_are_named() -> None:  # check 8
    files = {
        "a/kustomization.yaml": "resources: [../b]",
        "b/kustomization.yaml": "resources: [../c]",
        "c/kustomization.yaml": "resources: [../a]",
    }
    found = findings(dict(files))
    assert [f.rule for f in found] == ["kustomization-cycle"]
    assert "a → b → c → a" in found[0].message
    assert found[0].place == "c/kustomization.yaml:1:13"


def test_a_directory_above_is_a_cycle_to_kustomize() -> None:
    files = {"kustomization.yaml": "resources: [a]", "a/kustomization.yaml": "resources: [..]"}
    assert findings(dict(files))[0].rule == "kustomization-cycle"
    alone = findings({"kustomization.yaml": "resources: [.]"})
    assert alone[0].rule == "kustomization-cycle"


def test_a_base_that_is_named_very_often(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        f"b{n}/kustomization.yaml": f"resources: [../b{n + 1}, ../b{n + 1}]" for n in range(40)
    }
    files["b40/kustomization.yaml"] = "resources: [c.yaml]"
    files["b40/c.yaml"] = CM
    found = findings(dict(files))
    assert [f.rule for f in found] == ["kustomization-too-large"]
    monkeypatch.setattr(walking, "DEPTH", 3)
    monkeypatch.setattr(walking, "LOADS", 2**60)
    assert findings(dict(files))[0].rule == "kustomization-too-large"


def test_every_reason_is_said_at_once() -> None:
    found = findings(
        {
            "a/kustomization.yaml": "resources: [/x, ../../y]\nBases: []",
            "b/kustomization.yaml": "crds: ['https://h/x']",
        }
    )
    assert len(found) == 4


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("resources: c.yaml", "/resources should be a list"),
        ("resources: [{a: b}]", "/resources/0 should be text"),
        ("patches: [c.yaml]", "/patches/0 should be a mapping"),
        ("- resources", "a kustomization is a mapping"),
        ("components: [c.yaml]", "a component is a directory"),
        ("configMapGenerator: [{files: [a=b=c.yaml]}]", "neither a path nor key=path"),
        ("configMapGenerator: [{files: ['=c.yaml']}]", "neither a path nor key=path"),
        ("? [resources]\n: [c.yaml]", "a key that is a collection"),
        ("8080: x", "key '8080', which is not text"),
        ("resources: [.inf]", "'.inf' is not text"),
        ('generators: ["apiVersion: builtin\\n--- x"]', "is an address"),
    ],
)
def test_shapes(text: str, words: str) -> None:
    found = findings({"app/kustomization.yaml": text, "app/c.yaml": CM})
    assert any(words in f.message for f in found), found


def test_plugin_files_are_split_as_kustomize_splits_them() -> None:
    found = one("generators: [p.yaml]", **{"app/p.yaml": "# x\n--- y\n"})
    assert (found.rule, found.place) == ("kustomization-unreadable", "app/p.yaml:2:1")


def test_a_long_file() -> None:
    found = findings({"kustomization.yaml": b"#" * (4 * 1024 * 1024 + 1)})
    assert found[0].rule == "kustomization-unreadable"


def test_deep_nesting() -> None:
    deep = "namePrefix: " + "[" * 300 + "]" * 300
    assert one(deep).message.startswith("nested deeper")
