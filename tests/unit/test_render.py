"""Rendering: which roots, in what order, what Flux makes of a directory, and what is nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ocipack.errors import IntegrityError, Misuse, Rejected, Unavailable
from ocipack.k8s.kustomization.walk import Root
from ocipack.render import Rendered, render
from ocipack.tools.kustomize import Kustomize, Program
from ocipack.validate.check import validate

EXAMPLES = Path(__file__).parents[2] / "examples"
CM = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"


class Builder:
    """Stands for kustomize: remembers what it was asked to build."""

    def __init__(self, output: str = CM) -> None:
        self.output = output
        self.asked: list[Root] = []

    def __call__(self, root: Root) -> bytes:
        self.asked.append(root)
        return self.output.encode()


def rendered(files: dict[str, str], *roots: str, builder: Builder | None = None) -> Rendered:
    data = {name: text.encode() for name, text in files.items()}
    return render(data, data.__getitem__, builder or Builder(), roots=roots or None, jobs=1)


def targets(files: dict[str, str], *roots: str) -> list[Root]:
    return [built.root for built in rendered(files, *roots).roots]


def test_roots_are_those_that_nobody_names() -> None:
    files = {
        "base/kustomization.yaml": "resources: [c.yaml]",
        "base/c.yaml": CM,
        "overlays/a/kustomization.yml": "resources: [../../base]",
        "overlays/b/Kustomization": "resources: [../../base]\ncomponents: [../../comp]",
        "comp/kustomization.yaml": COMPONENT,
        "unused/kustomization.yaml": COMPONENT,
        "stray.yaml": CM,
    }
    assert targets(files) == [Root("overlays/a"), Root("overlays/b")]
    assert targets(files, "base", "./overlays/a/", "base") == [Root("base"), Root("overlays/a")]


def test_every_one_that_nobody_names_and_others_besides() -> None:
    files = {
        "apps/kustomization.yaml": "resources: [c.yaml]",
        "apps/c.yaml": CM,
        "clusters/a/flux-system/kustomization.yaml": "resources: [c.yaml]",
        "clusters/a/flux-system/c.yaml": CM,
        "clusters/a/c.yaml": CM,
    }
    own = Root("clusters/a", ("clusters/a/c.yaml", "clusters/a/flux-system"))
    assert targets(files, "**") == targets(files)
    assert targets(files, "**", "clusters/a") == [Root("apps"), own]
    assert targets(files, "clusters/a") == [own]


def test_what_an_unused_component_names_is_built_too() -> None:
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
    files = {
        "apps/kustomization.yaml": "resources: [../base]",
        "base/kustomization.yaml": "resources: [c.yaml]",
        "base/c.yaml": CM,
        "decoy/kustomization.yaml": component + "resources: [../apps]",
        "other/kustomization.yaml": "resources: [c.yaml]\ncomponents: [../used]",
        "other/c.yaml": CM,
        "used/kustomization.yaml": component + "resources: [../below]",
        "below/kustomization.yaml": "resources: [c.yaml]",
        "below/c.yaml": CM,
    }
    assert targets(files) == [Root("apps"), Root("other")]
    circle = {f"{n}/kustomization.yaml": f"resources: [../{1 - n}]" for n in (0, 1)}
    with pytest.raises(Rejected, match="closes a cycle"):
        targets(files | circle)


def test_without_any_kustomization_the_top_is_built_as_flux_does() -> None:
    files = dict.fromkeys(
        ["b.yaml", "a/z.yml", "a/x.json", "a.YAML", ".hid/h.yaml", "a-b.yaml", "a/.yml"], CM
    )
    assert targets(files) == [Root("", (".hid/h.yaml", "a/.yml", "a/z.yml", "a-b.yaml", "b.yaml"))]


# As source-controller 1.9.3 and kustomize-controller 1.9.3 did on a cluster.
@pytest.mark.parametrize(
    ("ignore", "wanted"),
    [
        ({}, ("app.yaml", "deep/values.yaml")),
        ({".sourceignore": "# only a comment\n"}, ("app.yaml", "deep/values.yaml")),
        ({".sourceignore": "values.yaml\n"}, (".github/workflows/ci.yaml", "app.yaml")),
        ({"deep/.sourceignore": "*.yaml\n"}, (".github/workflows/ci.yaml", "app.yaml")),
    ],
)
def test_what_does_not_arrive_is_not_there(ignore: dict[str, str], wanted: tuple[str]) -> None:
    files = dict.fromkeys(["app.yaml", ".github/workflows/ci.yaml", "deep/values.yaml"], CM)
    assert targets({**files, **ignore}) == [Root("", wanted)]


def test_a_file_that_will_be_dropped_cannot_be_named() -> None:
    files = {"kustomization.yaml": "resources: [x.yaml]", "x.yaml": CM, ".sourceignore": "x.yaml"}
    with pytest.raises(Rejected, match=r"'x\.yaml' is not in the tree"):
        targets(files)


def test_a_directory_without_one_is_walked_down_to_the_next_one() -> None:
    files = {
        "app/x.yaml": CM,
        "app/sub/kustomization.yaml": "resources: [y.yaml]",
        "app/sub/y.yaml": CM,
        "app/sub/deep/kustomization.yaml": "",
        "other/z.yaml": CM,
    }
    assert targets(files, "app") == [Root("app", ("app/sub", "app/x.yaml"))]


def test_what_is_below_a_generated_root_is_judged_too() -> None:
    files = {"app/x.yaml": CM, "app/sub/kustomization.yaml": "resources: [/etc/hostname]"}
    builder = Builder()
    with pytest.raises(Rejected, match=r"app/sub/kustomization.yaml:1:13: .*absolute path"):
        rendered(files, "app", builder=builder)
    assert not builder.asked


def test_one_bad_root_stops_all() -> None:
    files = {
        "a/kustomization.yaml": "resources: [c.yaml]",
        "a/c.yaml": CM,
        "b/kustomization.yaml": "resources: [../../x]",
    }
    builder = Builder()
    with pytest.raises(Rejected, match="kustomize was not started"):
        rendered(files, builder=builder)
    assert not builder.asked


@pytest.mark.parametrize("root", ["nowhere", "/", "/app", "../app", "app/x.yaml", "app/.."])
def test_roots_that_are_no_directories(root: str) -> None:
    with pytest.raises(Misuse, match="not a directory of the packed tree"):
        targets({"app/x.yaml": CM}, root)
    with pytest.raises(Misuse, match="empty list"):
        render(["x.yaml"], lambda _: b"", Builder(), roots=[])


@pytest.mark.parametrize("files", [{}, {"README.md": "x"}, {"a/kustomization.yaml": COMPONENT}])
def test_nothing_to_render(files: dict[str, str]) -> None:
    with pytest.raises(Rejected, match="nothing to render"):
        targets(files)


@pytest.mark.parametrize("output", ["", "# only comments\n", "---\n---\n", "null\n"])
def test_a_root_that_builds_to_nothing_is_named(output: str) -> None:
    with pytest.raises(Rejected, match="nothing to render: app builds to no object at all"):
        rendered({"app/c.yaml": CM}, "app", builder=Builder(output))


def test_a_root_that_was_found_and_builds_to_nothing_is_warned_of() -> None:
    files = {
        f"{name}/{file}": text
        for name in ("a", "b")
        for file, text in (("c.yaml", CM), ("kustomization.yaml", "resources: [c.yaml]\n"))
    }
    outputs = {"a": b"# nothing\n", "b": CM.encode()}

    def build(root: Root) -> bytes:
        return outputs[root.directory]

    def made(roots: list[str] | None = None, *, empty: bool = False) -> Rendered:
        data = {name: text.encode() for name, text in files.items()}
        return render(data, data.__getitem__, build, roots=roots, empty=empty)

    done = made()
    assert [built.root.directory for built in done.roots] == ["b"]
    assert [(f.rule, f.file) for f in done.report.findings] == [
        ("root-empty", "a/kustomization.yaml")
    ]
    assert done.report.ok
    with pytest.raises(Rejected, match="nothing to render: a builds to no object at all"):
        made(["a", "b"])
    outputs["b"] = b""
    assert made(["a"], empty=True).roots == ()
    with pytest.raises(Rejected, match="nothing to render: a builds to no object at all"):
        made()


def test_output_that_is_not_yaml() -> None:
    with pytest.raises(IntegrityError, match=r"what kustomize built of \.: line 1, column 2"):
        rendered({"c.yaml": CM}, builder=Builder("[}"))


def test_objects_say_where_they_come_from() -> None:
    found = rendered({"app/kustomization.yaml": "resources: [c.yaml]", "app/c.yaml": CM}).resources
    assert [(r.origin.root, r.origin.file) for r in found] == [("app", "app/kustomization.yaml")]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{n}: &{n} [{','.join([f'*{p}'] * 9)}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize("files", [
    {"kustomization.yaml": "resources: [x.yaml]", "x.yaml": BOMB},
    {"kustomization.yaml": "patches: [{path: x.yaml}]", "x.yaml": BOMB},
    {"x.yaml": BOMB},
    {"kustomization.yaml": "resources: [x.yaml.txt]", "x.yaml.txt": BOMB.replace("x", "y")},
    {"x.yaml": "a: &a [*a]"},
])  # fmt: skip
def test_what_would_keep_kustomize_busy_for_ever_is_refused_first(files: dict[str, str]) -> None:
    builder = Builder()
    with pytest.raises(IntegrityError, match=r"x\.yaml(\.txt)?:\d+:\d+: (aliases add|anchor)"):
        rendered(files, builder=builder)
    assert not builder.asked


@pytest.mark.parametrize("generator", ["files: [x.yaml]", "files: [k=x.yaml]", "envs: [x.yaml]"])
def test_data_for_generators_is_not_read_as_yaml(generator: str) -> None:
    files = {
        "kustomization.yaml": f"configMapGenerator: [{{name: a, {generator}}}]",
        "x.yaml": BOMB,
    }
    assert targets(files) == [Root("")]


def test_other_faults_are_left_to_kustomize() -> None:
    files = {"kustomization.yaml": "resources: [x.yaml]", "x.yaml": "a: {{ &b c }} *b"}
    assert targets(files) == [Root("")]


def test_several_are_built_at_once() -> None:
    files = {f"r{n}/kustomization.yaml": "resources: [c.yaml]" for n in range(4)}
    files |= {f"r{n}/c.yaml": CM for n in range(4)}
    data = {name: text.encode() for name, text in files.items()}
    together = threading.Barrier(2, timeout=60)

    def build(root: Root) -> bytes:
        together.wait()  # passes only when two are here
        return f"{CM}  labels: {{of: {root}}}\n".encode()

    found = render(data, data.__getitem__, build, jobs=2)
    assert [r.metadata["labels"]["of"] for r in found.resources] == ["r0", "r1", "r2", "r3"]


@pytest.mark.parametrize("jobs", [1, 3])
def test_what_the_builder_raises_comes_through(jobs: int) -> None:
    files = {f"r{n}/kustomization.yaml": "resources: [c.yaml]" for n in range(3)}
    files |= {f"r{n}/c.yaml": CM for n in range(3)}
    data = {name: text.encode() for name, text in files.items()}

    def build(root: Root) -> bytes:
        raise Unavailable(f"hung: {root}")

    with pytest.raises(Unavailable, match="hung: r0"):
        render(data, data.__getitem__, build, jobs=jobs)


# Real kustomize from here on: the kubectl of the wheel.


def really(top: Path, private: Path, *roots: str) -> Rendered:
    names = [str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()]
    with Kustomize(Program.find("embedded", ""), top, private) as kustomize:
        return render(
            names, lambda name: (top / name).read_bytes(), kustomize.build, roots=roots or None
        )


@pytest.mark.parametrize(
    ("example", "counts"),
    [("hello", {".": 5}), ("shop", {"overlays/production": 14, "overlays/staging": 11})],
)
def test_the_examples_render_and_pass(example: str, counts: dict[str, int], tmp_path: Path) -> None:
    found = really(EXAMPLES / example, tmp_path)
    assert {str(built.root): len(built.resources) for built in found.roots} == counts
    assert validate(found.resources).findings == ()


def write(top: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def test_a_generated_root_with_real_kustomize(tmp_path: Path) -> None:
    files = {
        "app/a.yaml": CM,
        "app/only-comments.yaml": "# nothing\n",
        "app/null.yaml": "null\n",
        "app/sub/kustomization.yaml": "namePrefix: sub-\nresources: [b.yaml]",
        "app/sub/b.yaml": CM,
        "app/list.yml": "apiVersion: v1\nkind: List\nitems:\n- "
        + CM.replace("\n", "\n  ").replace("name: c", "name: d"),
    }
    (tmp_path / "private").mkdir()
    found = really(write(tmp_path / "top", files), tmp_path / "private", "app")
    assert sorted(r.name for r in found.resources) == ["c", "d", "sub-c"]


def test_what_kustomize_refuses_is_said_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    top = write(tmp_path / "top", {"app/a.yaml": "apiVersion: v1\nmetadata: {name: x}\n"})
    with pytest.raises(Rejected, match="kustomize refuses app") as caught:
        really(top, tmp_path / "private", "app")
    assert str(tmp_path) not in str(caught.value)
    assert "app/a.yaml" in str(caught.value)
