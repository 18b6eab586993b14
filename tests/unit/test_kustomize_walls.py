"""The two walls around the real kustomize (the kubectl of the wheel).

First: fields that the allow-list leaves open cannot make it read or fetch, whatever stands in
them. Second: what would get past the allow-list meets an empty environment.
"""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ocipack.errors import Rejected
from ocipack.k8s.kustomization.fields import KUSTOMIZATION, PLUGINS, Each, Fields, Open, Shape
from ocipack.k8s.kustomization.walk import Root
from ocipack.render import render
from ocipack.tools.kustomize import Kustomize, Program

CM = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n"
CANARY = "canary-outside-the-tree"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The copy of a tree, with a secret just outside of it."""
    (tmp_path / "private").mkdir()
    (tmp_path / "top").mkdir()
    (tmp_path / "secret.yaml").write_text(f"{CM}data:\n  c: {CANARY}\n")
    (tmp_path / "top" / "c.yaml").write_text(CM)
    return tmp_path / "top"


@pytest.fixture
def kustomize(top: Path) -> Iterator[Kustomize]:
    with Kustomize(Program.find("embedded", ""), top, top.parent / "private") as found:
        yield found


class Listener(http.server.HTTPServer):
    """A server on loopback, which Go never sends through a proxy."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_error(404)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def open_fields(shape: Shape, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to every field below `shape` that is left open."""
    if isinstance(shape, Open):
        yield path
    elif isinstance(shape, Each):
        yield from open_fields(shape.shape, (*path, "[]"))
    elif isinstance(shape, Fields):
        for name, inner in shape.fields.items():
            yield from open_fields(inner, (*path, name))


def written(path: tuple[str, ...], value: str) -> str:
    """A flow mapping with `value` at the end of `path`."""
    for name in reversed(path):
        value = f"[{value}]" if name == "[]" else f"{{{name}: {value}}}"
    return value[1:-1]


OPEN = [path for path in open_fields(KUSTOMIZATION) if path[0] not in ("apiVersion", "kind")]
SHAPES = ["{0}", "{1}", "[{0}, {1}, {{path: {0}}}, {{path: {1}}}, {{files: [{0}, {1}]}}]"]


def attempt(top: Path, kustomize: Kustomize) -> str:
    """What comes out of rendering `top`, or why nothing does."""
    names = [str(path.relative_to(top)) for path in top.rglob("*") if path.is_file()]
    try:
        found = render(names, lambda name: (top / name).read_bytes(), kustomize.build)
        said = "".join(built.data.decode() for built in found.roots)
    except Rejected as e:
        said = str(e)
    assert "was not started" not in said  # else nothing was tried
    return said


@pytest.mark.parametrize("path", OPEN, ids=[".".join(path) for path in OPEN])
def test_open_fields_reach_nothing(
    path: tuple[str, ...], top: Path, kustomize: Kustomize, listener: Listener
) -> None:
    address = f"'http://127.0.0.1:{listener.server_port}/x'"
    for shape in SHAPES[:2] if "[]" in path else SHAPES:
        text = written(path, shape.format("../secret.yaml", address))
        (top / "kustomization.yaml").write_text(f"resources: [c.yaml]\n{text}\n")
        assert CANARY not in attempt(top, kustomize)
    assert not listener.asked


OPEN_PLUGINS = [kind for kind, shape in PLUGINS.items() if isinstance(shape, Open)]
GUESSES = ("path", "paths", "files", "envs", "targetFilePath", "replacements", "chartHome", "url")


@pytest.mark.parametrize("kind", OPEN_PLUGINS)
def test_open_plugins_reach_nothing(
    kind: str, top: Path, kustomize: Kustomize, listener: Listener
) -> None:
    address = f"'http://127.0.0.1:{listener.server_port}/x'"
    (top / "kustomization.yaml").write_text("resources: [c.yaml]\ntransformers: [p.yaml]\n")
    frame = f"apiVersion: builtin\nkind: {kind}\nmetadata:\n  name: p\n"
    for shape in SHAPES:
        value = shape.format("../secret.yaml", address)
        (top / "p.yaml").write_text(frame + "".join(f"{name}: {value}\n" for name in GUESSES))
        assert CANARY not in attempt(top, kustomize)
    assert not listener.asked


UNREADABLE = {
    "an alias to nothing": "{kind: A, metadata: {name: c}, y: *none} # /../../secret.yaml",
    "a list that is none": "{kind: AList, metadata: {name: c}, items: 5} # /../../secret.yaml",
}


@pytest.mark.parametrize("document", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_document_that_kustomize_takes_for_a_path(
    document: str, top: Path, kustomize: Kustomize
) -> None:
    text = f"resources: [c.yaml]\npatchesStrategicMerge:\n- '{document}'\n"
    (top / "kustomization.yaml").write_text(text)
    assert CANARY in kustomize.build(Root("")).decode()
    with pytest.raises(Rejected, match="was not started"):
        render(["c.yaml", "kustomization.yaml"], lambda n: (top / n).read_bytes(), kustomize.build)


def test_without_the_first_wall_kustomize_would_read_it(top: Path, kustomize: Kustomize) -> None:
    """The reason for all this, and the proof that the canary would be seen."""
    text = "configMapGenerator: [{name: a, files: [../secret.yaml]}]"
    (top / "kustomization.yaml").write_text(text)
    assert CANARY in kustomize.build(Root("")).decode()


def test_the_second_wall_has_no_network(top: Path, kustomize: Kustomize) -> None:
    (top / "kustomization.yaml").write_text("resources: ['http://example.com/x.yaml']")
    with pytest.raises(Rejected, match=r"proxyconnect tcp: .*127\.0\.0\.1:9"):
        kustomize.build(Root(""))


def test_the_second_wall_has_no_git(top: Path, kustomize: Kustomize) -> None:
    (top / "kustomization.yaml").write_text("resources: ['git@example.com:org/repo.git//base']")
    with pytest.raises(Rejected, match="no 'git' program on path"):
        kustomize.build(Root(""))
