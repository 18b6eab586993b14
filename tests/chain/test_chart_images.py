"""`ocipack images`, and the images of charts in mirrors and archives; helm is acted out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from charts import Shelf, chart
from registry import Registry
from shelf import image

from ocipack.tools import helm

Run = Callable[..., tuple[int, str, str]]
HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\nunsigned: true\n"
CHART = "apiVersion: v2\nname: shop\nversion: {}\nappVersion: '3'\n"


@pytest.fixture(autouse=True)
def path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A search path with nothing on it, until somebody puts helm there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def there() -> Iterator[Registry]:
    with Registry() as made:
        yield made


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Shelf() as made:
        yield made


def pod(text: str) -> str:
    spec = f"spec: {{containers: [{{image: '{text}'}}]}}\n"
    return f"kind: Pod\napiVersion: v1\nmetadata: {{name: a}}\n{spec}"


def fake(path: Path, script: str) -> None:
    """A helm that does what `script` says; its environment is empty, so paths are whole."""
    program = path / "helm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def renders(path: Path, text: str) -> None:
    (path / "out.yaml").write_text(pod(text))
    fake(path, f"/bin/cat {path}/out.yaml")


def write(name: str, values: str = "") -> Path:
    folder = Path(name)
    folder.mkdir()
    (folder / "Chart.yaml").write_text(CHART.format("1.2.0"))
    if values:
        (folder / "values.yaml").write_text(values)
    return folder


def test_a_directory_is_rendered_in_a_private_copy_with_nothing_of_ours(
    ocipack: Run, path: Path, tmp_path: Path
) -> None:
    write("shop", "image: {repository: ghcr.io/example/shop, tag: '1'}\n")
    Path("own.yaml").write_text("a: b\n")
    (path / "out.yaml").write_text(pod("ghcr.io/example/other:1"))
    seen = tmp_path / "seen"
    listing = f'echo "$@" > {seen}; /usr/bin/env >> {seen}; /bin/ls "$3" >> {seen}'
    fake(path, f"{listing}; /bin/cat {path}/out.yaml")

    code, out, err = ocipack("images", "shop", "-f", "own.yaml", "--kube-version", "1.30.0")

    assert code == 0, err
    assert out == "certain  ghcr.io/example/other:1\nlikely   ghcr.io/example/shop:1\n"
    lines = seen.read_text().splitlines()
    words = lines[0].split()
    assert words[:2] == ["template", "release"]
    assert words[3:] == ["--values", f"{tmp_path}/own.yaml", "--kube-version", "1.30.0"]
    assert not words[2].startswith(f"{tmp_path}/shop")
    assert lines[-2:] == ["Chart.yaml", "values.yaml"]
    names = {line.partition("=")[0] for line in lines[1:-2]}
    assert {"HOME", "HTTPS_PROXY", "HELM_PLUGINS"} <= names
    assert not names & {"KUBECONFIG", "COSIGN_PASSWORD", "GIT_CEILING_DIRECTORIES"}
    assert not Path(words[2]).exists()


def test_why_and_confidence(ocipack: Run, path: Path) -> None:
    write("shop", "image: {repository: ghcr.io/example/shop, tag: '1'}\n")
    renders(path, "ghcr.io/example/shop:1")

    assert ocipack("images", "shop", "--why")[1] == (
        "certain  ghcr.io/example/shop:1\n"
        "           rendered:  Pod/a container of a Pod\n"
        "           values.yaml: image\n"
    )
    code, out, _ = ocipack("images", "shop", "--render", "never", "--output", "json")
    assert code == 0
    assert json.loads(out)["images"] == [
        {
            "reference": "ghcr.io/example/shop:1",
            "text": "ghcr.io/example/shop:1",
            "confidence": "likely",
            "why": ["values.yaml: image"],
        }
    ]
    code, out, _ = ocipack("images", "shop", "--render", "never", "--confidence", "certain")
    assert (code, out) == (0, "")


def test_what_is_left_to_the_chart_is_reported_and_fails_if_strict(
    ocipack: Run, path: Path
) -> None:
    write("shop", "image: {repository: ghcr.io/example/shop, tag: ''}\n")

    code, out, err = ocipack("images", "shop")
    assert (code, out) == (0, "")
    assert "warning[chart-image-unresolved] ghcr.io/example/shop: its tag is left" in err
    assert "warning[chart-unrendered] helm is not installed" in err
    assert ocipack("images", "shop", "--render", "always")[0] == 2
    code, out, err = ocipack("images", "shop", "--strict", "--output", "json")
    assert code == 1
    assert json.loads(out)["unresolved"][0]["reference"] == "ghcr.io/example/shop:3"

    renders(path, "ghcr.io/example/shop:v3")
    assert ocipack("images", "shop", "--strict") == (
        *(0, "certain  ghcr.io/example/shop:v3\n"),
        ocipack("images", "shop", "--strict")[2],
    )


def test_a_chart_that_helm_refuses_is_known_by_the_rest(ocipack: Run, path: Path) -> None:
    write("shop", "image: {repository: ghcr.io/example/shop, tag: '1'}\n")
    fake(path, 'echo "Error: values: $3 is needed" >&2; exit 1')

    code, out, err = ocipack("images", "shop")

    assert (code, out) == (0, "likely   ghcr.io/example/shop:1\n")
    assert "chart-unrendered] helm does not render shop: values: the chart is needed" in err
    assert ocipack("images", "shop", "--strict")[0] == 1
    assert ocipack("images", "shop", "--render", "always")[0] == 1


def test_helm_is_bounded(ocipack: Run, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write("shop")
    monkeypatch.setattr(helm.Helm.template, "__defaults__", None)
    monkeypatch.setattr(helm.Helm.__init__, "__kwdefaults__", {"timeout": 0.2, "limit": 100})
    fake(path, "/bin/sleep 120")
    assert "did not finish shop within 0.2 seconds" in ocipack("images", "shop")[2]
    assert ocipack("images", "shop", "--render", "always")[0] == 3
    fake(path, f"/bin/cat {path}/helm {path}/helm {path}/helm")
    monkeypatch.setattr(helm.Helm.__init__, "__kwdefaults__", {"timeout": 60.0, "limit": 10})
    assert "makes more than 10 bytes" in ocipack("images", "shop")[2]


def test_an_archive_a_place_and_a_repository_are_the_same_chart(
    ocipack: Run, shelf: Shelf, there: Registry, path: Path
) -> None:
    values = "image: {repository: ghcr.io/example/shop, tag: '1'}\n"
    archive = chart(CHART.format("1.2.0"), {"values.yaml": values})
    shelf.publish({"1.2.0": archive})
    Path("shop.tgz").write_bytes(archive)
    classic, place = f"helm+{shelf.address}/shop:1.2.0", f"oci://{there.name}/shop:1.2.0"
    assert ocipack("copy", classic, place, "--allow-unsigned")[0] == 0
    fake(path, f'/bin/ls "$3" > {path}/seen; echo "{{}}"')

    for where in ("shop.tgz", classic, place):
        code, out, err = ocipack("images", where)
        assert (code, out) == (0, "likely   ghcr.io/example/shop:1\n"), err
        assert (path / "seen").read_text() == "Chart.yaml\nvalues.yaml\n"
    image(there, "app", "v1")
    code, _, err = ocipack("images", f"oci://{there.name}/app:v1")
    assert (code, "not a chart" in err) == (1, True)
    Path("x.tgz").write_bytes(b"no")
    assert ocipack("images", "x.tgz")[0] == 1
    assert ocipack("images", "none.tgz")[0] == 2


def test_images_of_charts_come_along_in_a_mirror(
    ocipack: Run, shelf: Shelf, there: Registry, path: Path
) -> None:
    """One that is rendered, one that both versions have, one that is declared; none twice."""
    with Registry() as here:
        wanted = {
            name: image(here, name, "1")["digest"] for name in ("app", "sidecar", "untagged", "odd")
        }
        wanted["untagged"] = image(here, "untagged", "latest")["digest"]
        notes = f"annotations: {{images: '[{here.name}/sidecar:1, {here.name}/untagged]'}}\n"
        values = f"a: {{image: {{repository: {here.name}/odd, tag: ''}}}}\n"
        values += f"b: {{image: {{repository: may/be, digest: 'sha256:{'0' * 64}'}}}}\n"
        shelf.publish(
            {
                version: chart(CHART.format(version) + notes, {"values.yaml": values})
                for version in ("1.0.0", "1.1.0")
            }
        )
        renders(path, f"{here.name}/app:1")
        source = f"chart: shop, repository: '{shelf.address}', select: {{semver: '1'}}"
        Path("mirror.yaml").write_text(
            f"{HEAD}to: oci://{there.name}/m\nsources:\n- {{{source}, images: true}}\n"
        )

        code, out, err = ocipack("mirror")

        assert code == 0, err
        assert [line.split()[0] for line in out.splitlines()] == ["copied"] * 5
        assert "warning[chart-image-unresolved]" in err
        below = f"m/{here.name.replace(':', '-')}"
        for name, tag in (("app", "1"), ("sidecar", "1"), ("untagged", "latest")):
            assert there.repository(f"{below}/{name}").tags == {tag: wanted[name]}
        assert f"{below}/odd" not in there.repositories
        assert shelf.paths().count("/stable/index.yaml") == 1
        assert ocipack("mirror")[1].count("skipped") == 5
        code, out, err = ocipack("mirror", "--strict")
        assert (code, out.count("skipped")) == (1, 5)
        assert "error[chart-image-unresolved]" in err
        parts = [ocipack("mirror", "--shard", f"{n}/2")[1].count("skipped") for n in range(2)]
        assert sum(parts) == 5

        code, _, err = ocipack(
            *("airgap", "save", "-f", "mirror.yaml", "-o", "site.tar", "--allow-unsigned")
        )
        assert code == 0, err
    listed = ocipack("airgap", "list", "site.tar")[1]
    assert listed.count("\n") == 5
    assert "/sidecar:1" in listed


def test_a_chart_that_cannot_be_looked_into_fails_alone(
    ocipack: Run, shelf: Shelf, there: Registry
) -> None:
    image(there, "app", "v1")
    shelf.publish({"1.0.0": chart(CHART.format("1.0.0"))})
    del shelf.files["/stable/shop-1.0.0.tgz"]
    Path("mirror.yaml").write_text(
        f"{HEAD}to: oci://{there.name}/m\nsources:\n"
        f"- {{chart: 'shop:1.0.0', repository: '{shelf.address}', images: true}}\n"
        f"- image: {there.name}/app:v1\n"
    )

    code, out, _ = ocipack("mirror", "--output", "json")

    report = json.loads(out)
    assert code == 3
    assert report["counts"] == {"failed": 1, "copied": 1}
    assert len(report["sources"]) == 1
