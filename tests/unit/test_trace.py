"""Where findings about rendered objects come from: never a wrong line, and often a right one."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from ocipack.errors import OcipackError
from ocipack.k8s.kustomization.walk import Root
from ocipack.k8s.resource import Origin, Resource
from ocipack.k8s.yaml.documents import join, split
from ocipack.render import Built, Rendered, render
from ocipack.report import Finding, Report
from ocipack.tools.kustomize import PROGRAMS, Kustomize, Program
from ocipack.validate.trace import Tracer, traced
from ocipack.validate.trace.spots import ABSENT, Spot, agrees, counterpart, follow, same

ROOT = Path(__file__).parents[2]
TREE = ROOT / "tests/vectors/trace"


def files(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}


def rendered(tree: Path, private: Path, roots: list[str] | None = None) -> Rendered:
    program = Program.find(PROGRAMS[0], os.defpath)
    private.mkdir(exist_ok=True)
    with Kustomize(program, tree, private) as kustomize:
        return render(files(tree), lambda n: (tree / n).read_bytes(), kustomize.build, roots=roots)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    """What kustomize makes of the tree of vectors, by root."""
    made = rendered(TREE, tmp_path_factory.mktemp("built"))
    return {str(one.root): one for one in made.roots}


def spot(built: Built, kind: str, name: str, pointer: str) -> str:
    """`file:line:column` that is claimed for a place in an object; empty for nothing."""
    tracer = Tracer(files(TREE), lambda n: (TREE / n).read_bytes())
    (found,) = [r for r in built.resources if r.kind == kind and r.name.startswith(name)]
    said = tracer.spot(found, built.root, split(pointer))
    return "" if said is None else f"{said.file}:{said.line}:{said.column}"


CONTAINER = "/spec/template/spec/containers"


@pytest.mark.parametrize(
    ("kind", "name", "pointer", "place"),
    [
        # the object's own document
        ("Deployment", "in-app", "", "base/app.yaml:2:1"),
        ("Deployment", "in-app", "/kind", "base/app.yaml:3:7"),
        ("Service", "in-app", "/spec/selector/app", "base/app.yaml:43:19"),
        ("ConfigMap", "in-one", "/data/b", "base/list.yaml:7:21"),  # an item of a List, CRLF
        ("ConfigMap", "extra", "/data/folded", "comp/second/extra.yaml:7:11"),
        ("Deployment", "in-app", f"{CONTAINER}/2/command/2", "base/app.yaml:32:13"),
        ("Deployment", "in-app", f"{CONTAINER}/0/args/1", "base/app.yaml:20:19"),
        # patches: a file, a literal block, a JSON patch in a literal block
        ("Deployment", "in-app", "/spec/strategy/type", "comp/first/patch.yaml:5:20"),
        ("Deployment", "in-app", f"{CONTAINER}/0/env/1/value", "comp/first/patch.yaml:14:30"),
        ("ConfigMap", "in-two", "/data/z", "overlay/kustomization.yaml:37:12"),
        ("ConfigMap", "in-one", "/data/a", ""),  # a quoted patch: its lines are not known
        ("ConfigMap", "in-two", "/data/y", ""),  # a folded one
        ("Service", "in-app", "/spec/ports/0/port", "overlay/kustomization.yaml:24:16"),
        ("Deployment", "in-app", f"{CONTAINER}/3/args/2", ""),
        # fields of kustomizations
        ("Deployment", "in-app", "/spec/replicas", "comp/first/kustomization.yaml:7:31"),
        ("Deployment", "in-app", "/metadata/namespace", "overlay/kustomization.yaml:3:12"),
        ("Deployment", "in-app", "/metadata/annotations/team", "base/kustomization.yaml:6:9"),
        ("Deployment", "in-app", f"{CONTAINER}/2/image", "overlay/kustomization.yaml:9:13"),
        ("Deployment", "in-app", f"{CONTAINER}/3/image", "overlay/kustomization.yaml:11:13"),
        ("ConfigMap", "extra", "/metadata/labels/from", "comp/second/kustomization.yaml:5:19"),
        # generators: the last word counts
        ("ConfigMap", "in-conf", "", "base/kustomization.yaml:10:5"),
        ("ConfigMap", "in-conf", "/data/a", "base/kustomization.yaml:11:16"),
        ("ConfigMap", "in-conf", "/data/b", "base/kustomization.yaml:11:21"),
        ("ConfigMap", "in-conf", "/data/c", "overlay/kustomization.yaml:15:16"),
        ("ConfigMap", "in-conf", "/data/same", "overlay/kustomization.yaml:15:21"),
        ("ConfigMap", "in-conf", "/data/same2", "base/conf.env:5:1"),
        ("ConfigMap", "in-conf", "/data/key", "base/motd.txt:0:0"),
        ("Secret", "in-keys", "/data/password", "base/kustomization.yaml:16:16"),
        # names that nobody wrote as they are, what is told apart by, and what is not followed
        ("Deployment", "in-app", "/metadata/name", ""),
        ("Deployment", "in-app", f"{CONTAINER}/0/name", ""),
        ("Deployment", "in-app", "/spec/template/spec/volumes/0/configMap/name", ""),
        ("Own", "own", "/spec/float", ""),
        ("Own", "own", "", "overlay/own.yaml:1:1"),
        ("Own", "own", "/apiVersion", "overlay/own.yaml:1:13"),
        # what is absent: what should hold it, if that holds nothing in the source either
        ("ConfigMap", "extra", "/data/none", "comp/second/extra.yaml:6:1"),
        ("ConfigMap", "extra", "/immutable", "comp/second/extra.yaml:1:1"),
    ],
)
def test_places(built: dict[str, Built], kind: str, name: str, pointer: str, place: str) -> None:
    assert spot(built["overlay"], kind, name, pointer) == place


def leaves(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from leaves(inner, (*at, str(index)))
    else:
        yield at, value


def changed(text: str, said: Spot, value: Any) -> str | None:
    """`text` with another scalar at the place, or None if this test cannot do that."""
    if not said.line:
        return text + "x"
    lines = text.split("\n")
    head, tail = lines[said.line - 1][: said.column - 1], lines[said.line - 1][said.column - 1 :]
    if isinstance(value, bool):
        other = tail.replace(str(value).lower(), str(not value).lower(), 1)
    elif isinstance(value, int):
        other = tail.replace(str(value), str(value + 1), 1)
    else:
        last = re.compile(r"^([\"']?[\w./:@*-]+)\w")
        other = last.sub(lambda m: m[1] + ("1" if m[0][-1] != "1" else "2"), tail)
    lines[said.line - 1] = head + other
    return "\n".join(lines) if other != tail else None


@pytest.mark.parametrize("source", [TREE, ROOT / "examples/shop"], ids=["vectors", "shop"])
def test_what_is_claimed_decides_the_value(source: Path, tmp_path: Path) -> None:
    """Change the tree where a trace points, build again, and the value has changed."""
    tree = Path(shutil.copytree(source, tmp_path / "tree"))
    tracer = Tracer(files(source), lambda n: (source / n).read_bytes())
    every = [
        (one.root, resource, at, value, said)
        for one in rendered(tree, tmp_path / "built").roots
        for resource in one.resources
        for at, value in leaves(resource.value)
        if (said := tracer.spot(resource, one.root, at)) is not None
    ]
    tried = 0
    for root, resource, at, value, said in random.Random(5).sample(every, 25):
        path = tree / said.file
        before = path.read_bytes().decode()
        after = changed(before, said, value)
        if after is None:
            continue
        path.write_bytes(after.encode())
        try:
            again = rendered(tree, tmp_path / "built", [root.directory])
        except OcipackError:
            continue  # kustomize found that it does not fit any more
        finally:
            path.write_bytes(before.encode())
        now = [o for o in again.resources if o.identity == resource.identity]
        assert not now or follow(now[0].value, at) != value, (resource, join(*at), said)
        tried += 1
    assert tried > 10


# whole reports


def test_a_report_keeps_what_cannot_be_placed(built: dict[str, Built]) -> None:
    one = built["overlay"]
    (deployment,) = [r for r in one.resources if r.kind == "Deployment"]
    file = deployment.origin.file
    findings = [
        Finding("a", "m", file=file, subject=str(deployment), pointer="/spec/strategy/type"),
        Finding("b", "m", file=file, subject=str(deployment), pointer="/metadata/name"),
        Finding("c", "m", file=file, line=3, subject=str(deployment), pointer="/kind"),
        Finding("d", "m", file=file, subject="Deployment prod/other", pointer="/kind"),
        Finding("e", "m", file="own.yaml", subject=str(deployment), pointer="/kind"),
        Finding("f", "m"),
    ]
    read = lambda name: (TREE / name).read_bytes()  # noqa: E731 - one line
    report = traced(Report.of(findings), one.resources, [one.root], files(TREE), read)
    assert {f.rule: f.place for f in report.findings} == {
        "a": "comp/first/patch.yaml:5:20",
        "b": file,
        "c": f"{file}:3",
        "d": file,
        "e": "own.yaml",
        "f": "",
    }


def test_nothing_is_read_if_nothing_has_to_be_placed() -> None:
    def read(name: str) -> bytes:
        raise AssertionError(name)

    resource = Resource({"kind": "Pod"}, Origin("kustomization.yaml", root="."))
    report = Report.of([Finding("r", "m", file="a.yaml", line=3)])
    assert traced(report, [resource], [Root("")], ["kustomization.yaml"], read) == report


def made(tree: dict[str, str], value: dict[str, Any], pointer: str, root: str = "") -> str:
    """What is claimed for a value of an object that this tree is said to build."""
    resource = Resource(value, Origin(root=root or "."))
    tracer = Tracer(tree, lambda name: tree[name].encode())
    said = tracer.spot(resource, Root(root), split(pointer))
    return "" if said is None else f"{said.file}:{said.line}:{said.column}"


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {x: 1}\n"
IS = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"x": 1}}


@pytest.mark.parametrize(
    ("kustomization", "more", "place"),
    [
        ("resources: [a.yaml]", {}, "a.yaml:4:11"),
        ("resources: [a.yaml, b.yaml]", {"b.yaml": POD}, ""),  # two such objects
        ("resources: [none.yaml]", {}, ""),
        ("resources: [a.yaml]\ntransformers: [t.yaml]", {"t.yaml": ""}, ""),
        ("resources: [a.yaml]\nnamespace: other", {}, "a.yaml:4:11"),  # a kind without one
        ("resources: [b]", {"b/kustomization.yaml": "resources: [../a.yaml]"}, "a.yaml:4:11"),
        ("resources: [a.yaml]\nnamePrefix: p-", {}, "a.yaml:4:11"),  # left alone by kustomize
        ("resources: a.yaml", {}, ""),
        ("[]", {}, ""),
        ("resources: [a.yaml]\npatches: [{patch: '['}]", {}, "a.yaml:4:11"),
        (
            "resources: [a.yaml]\npatches: [{path: p.yaml, target: {labelSelector: a=b}}]",
            {"p.yaml": POD},
            "",  # it says the same, and nobody knows whether it is asked
        ),
        (
            "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: Pod}}]",
            {"p.yaml": POD},
            "p.yaml:4:11",
        ),
        (
            "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: Service}}]",
            {"p.yaml": POD},
            "a.yaml:4:11",
        ),
        (
            "resources: [a.yaml]\npatches: [{path: p.yaml}, {path: q.yaml}]",
            {"p.yaml": POD, "q.yaml": POD},
            "",
        ),
        (
            "resources: [a.yaml]\npatches: [{path: p.yaml, target: {name: '(?P<x'}}]",
            {"p.yaml": "- {op: move, from: /a, path: /spec/x}"},
            "",
        ),
    ],
)
def test_doubt_is_silence(kustomization: str, more: dict[str, str], place: str) -> None:
    tree = {"kustomization.yaml": kustomization, "a.yaml": POD, **more}
    assert made(tree, IS, "/spec/x") == place


def test_an_annotation_of_the_same_name_sets_no_label() -> None:
    pod = POD.replace("{name: a}", "{name: a, labels: {l: x}, annotations: {l: x}}")
    tree = {
        "kustomization.yaml": "resources: [a.yaml]\ncommonAnnotations: {l: x}\n",
        "a.yaml": pod,
    }
    value = IS | {"metadata": {"name": "a", "labels": {"l": "x"}, "annotations": {"l": "x"}}}
    assert made(tree, value, "/metadata/labels/l") == "a.yaml:3:33"
    assert made(tree, value, "/metadata/annotations/l") == "kustomization.yaml:2:24"


def test_kustomize_gives_no_namespace_to_kinds_without_one() -> None:
    """A ClusterRole that has one has it from its own file, even if it is the same."""
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
    role += "metadata: {name: a, namespace: shop}\n"
    pod = POD.replace("{name: a}", "{name: a, namespace: shop}")
    tree = {
        "kustomization.yaml": "namespace: shop\nresources: [role.yaml, pod.yaml]\n",
        "role.yaml": role,
        "pod.yaml": pod,
    }
    metadata = {"metadata": {"name": "a", "namespace": "shop"}}
    is_role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", **metadata}
    assert made(tree, is_role, "/metadata/namespace") == "role.yaml:3:32"
    assert made(tree, IS | metadata, "/metadata/namespace") == "kustomization.yaml:1:12"


def test_an_image_that_had_the_name_already_was_not_renamed() -> None:
    value = IS | {"spec": {"image": "oth:1"}}
    images = "resources: [a.yaml]\nimages:\n- {name: img, newName: oth}\n"
    tree = {"kustomization.yaml": images, "a.yaml": POD.replace("{x: 1}", "{image: 'oth:1'}")}
    assert made(tree, value, "/spec/image") == ""
    tree["a.yaml"] = POD.replace("{x: 1}", "{image: 'img:1'}")
    assert made(tree, value, "/spec/image") == "kustomization.yaml:3:24"


def test_lines_of_a_folded_patch_are_not_those_of_the_file() -> None:
    patch = "patches:\n- patch: >-\n    {kind: Pod, metadata: {name: a},\n    spec: {x: 1}}\n"
    tree = {"kustomization.yaml": f"resources: [a.yaml]\n{patch}", "a.yaml": POD}
    assert made(tree, IS, "/spec/x") == ""


@pytest.mark.parametrize(
    ("rendered_", "source", "pointer", "there"),
    [
        ({"a": 1}, {"a": 1}, "/a", ("a",)),
        ({"a": 1}, {"a": 2}, "/a", None),
        ({"a": 1}, {"a": True}, "/a", None),
        ({"a": 1}, {"a": 1.0}, "/a", None),
        ({"a": 1}, {}, "/a", None),
        ({}, {"a": 1}, "/a", None),
        ({"s": {}}, {"s": {}}, "/s/a", ("s", "a")),
        ({"s": {}}, {"s": []}, "/s/a", None),
        ({"s": {"a": {"x": 1}, "b": 1}}, {"s": {"a": {"x": 2}, "b": 1}}, "/s", ("s",)),
        ({"s": {"a": 1, "b": 1}}, {"s": {"a": 1}}, "/s", None),
        ([{"name": "x"}, {"name": "y"}], [{"name": "y"}], "/1/name", ("0", "name")),
        ([{"name": "x", "v": 1}, {"name": "y", "v": 1}], [{"name": "y", "v": 1}], "/0/v", None),
        ([{"name": "x"}, {"name": "x"}], [{"name": "x"}], "/0/name", None),
        (["a", "b"], ["b"], "/1", ("0",)),
        (["a", "a"], ["a", "a"], "/1", ("1",)),
        (["a", "a", "b"], ["a", "a"], "/1", None),
        (["b"], ["a", "b"], "/0", ("1",)),
    ],
)
def test_items_correspond_by_what_they_are(
    rendered_: Any, source: Any, pointer: str, there: tuple[str, ...] | None
) -> None:
    assert agrees(rendered_, source, split(pointer)) == there


VALUES = st.recursive(
    st.integers(0, 2) | st.booleans() | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "port", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
TOKENS = st.lists(st.sampled_from(["name", "port", "x", "0", "1", "2"]), max_size=4).map(tuple)


@given(VALUES, VALUES, TOKENS)
def test_what_agrees_says_the_same(one: Any, other: Any, tokens: tuple[str, ...]) -> None:
    if not tokens:
        return
    there = agrees(one, other, tokens)
    if there is None:
        return
    here, source = follow(one, tokens), follow(other, there)
    if here is ABSENT:
        assert source is ABSENT
    elif not isinstance(here, dict | list):
        assert same(here, source)
    assert counterpart(one, other, tokens) == there
