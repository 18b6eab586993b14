"""`ocipack pin --rename`: the names of mirrors in files, to the byte, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

Run = Callable[..., tuple[int, str, str]]

HEX = "a" * 64
MAP = """\
docker.io/library/nginx: m.example/hub/library/nginx
ghcr.io/org/app: m.example/m/ghcr.io/org/app
ghcr.io/org/manifests: m.example/m/ghcr.io/org/manifests
ghcr.io/org/charts/one: m.example/m/ghcr.io/org/charts/one
ghcr.io/org/charts/two: m.example/m/ghcr.io/org/charts/two
quay.io/a: m.example/quay-a
"""


@pytest.fixture(autouse=True)
def mapped(tmp_path: Path) -> None:
    (tmp_path / "map.yaml").write_text(MAP)


def rename(ocipack: Run, text: str, name: str = "file.yaml", *more: str) -> tuple[int, str, str]:
    """What becomes of a file; the exit code, its text, and what was said."""
    path = Path("tree") / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    code, _, err = ocipack("pin", "tree", "--map", "map.yaml", "--rename", *more)
    return code, path.read_bytes().decode(), err


POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  containers:
  - name: a   # stays
    image: {}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("nginx:1.27", "m.example/hub/library/nginx:1.27"),
        ("docker.io/library/nginx", "m.example/hub/library/nginx"),
        (
            f'"nginx:1.27@sha256:{HEX}"  # why',
            f'"m.example/hub/library/nginx:1.27@sha256:{HEX}"  # why',
        ),
        (f"'ghcr.io/org/app@sha256:{HEX}'", f"'m.example/m/ghcr.io/org/app@sha256:{HEX}'"),
        ("quay.io/a/b:1", "m.example/quay-a/b:1"),
        ("quay.io/ab:1", "quay.io/ab:1"),
        ("redis:7", "redis:7"),
        ("m.example/hub/library/nginx:1.27", "m.example/hub/library/nginx:1.27"),
        ("ghcr.io/org/app:${TAG}", "m.example/m/ghcr.io/org/app:${TAG}"),
        ("ghcr.io/${ORG}/app:1", "ghcr.io/${ORG}/app:1"),
    ],
)
def test_a_whole_reference_keeps_its_tag_and_digest(ocipack: Run, before: str, after: str) -> None:
    code, text, _ = rename(ocipack, POD.format(before))

    assert (code, text) == (0, POD.format(after))
    assert rename(ocipack, text)[1] == text  # a second time changes nothing


def test_line_ends_and_arguments_stay(ocipack: Run) -> None:
    text = POD.format("nginx:1") + "    args: [--sidecar-image=ghcr.io/org/app:1, --x]\n"

    _, found, _ = rename(ocipack, text.replace("\n", "\r\n"))

    wanted = text.replace("nginx:1", "m.example/hub/library/nginx:1")
    wanted = wanted.replace("=ghcr.io/org/app:1", "=m.example/m/ghcr.io/org/app:1")
    assert found == wanted.replace("\n", "\r\n")


SOURCES = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: m}
spec:
  url: oci://ghcr.io/org/manifests
  ref:
    semver: ">=1"
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts}
spec:
  type: oci
  url: "oci://ghcr.io/org/charts"
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: classic}
spec:
  url: https://ghcr.io/org/charts
---
apiVersion: image.toolkit.fluxcd.io/v1
kind: ImageRepository
metadata: {name: app}
spec:
  image: ghcr.io/org/app
"""


def test_what_flux_reads_is_read_from_the_mirror(ocipack: Run) -> None:
    code, text, _ = rename(ocipack, SOURCES)

    assert code == 0
    assert text == (
        SOURCES.replace("oci://ghcr.io/org/manifests", "oci://m.example/m/ghcr.io/org/manifests")
        .replace('"oci://ghcr.io/org/charts"', '"oci://m.example/m/ghcr.io/org/charts"')
        .replace("image: ghcr.io/org/app", "image: m.example/m/ghcr.io/org/app")
    )


def test_charts_in_several_places_are_no_one_address(ocipack: Run) -> None:
    Path("map.yaml").write_text(MAP + "ghcr.io/org/charts/three: m.example/else/three\n")

    _, text, _ = rename(ocipack, SOURCES)

    assert 'url: "oci://ghcr.io/org/charts"' in text


def test_a_repository_is_not_what_lies_below_it(ocipack: Run) -> None:
    text = SOURCES.replace("oci://ghcr.io/org/manifests", "oci://ghcr.io/org")

    assert "url: oci://ghcr.io/org\n" in rename(ocipack, text)[1]


KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [pod.yaml]
images:
- name: nginx
  newTag: "1.27"
- name: app
  newName: ghcr.io/org/app
  newTag: v1
- {name: quay.io/a/b, newTag: v2}
"""


def test_a_kustomization_renames_what_it_is_for(ocipack: Run) -> None:
    """Renamed where it stands, an image would not be found by the entry any more."""
    Path("tree").mkdir()
    pod = (
        POD.format("nginx")
        + "  - {name: b, image: app}\n  - {name: c, image: 'ghcr.io/org/app:9'}\n"
    )
    Path("tree/pod.yaml").write_text(pod)

    code, text, err = rename(ocipack, KUSTOMIZATION, "kustomization.yaml")

    assert code == 0, err
    assert yaml.safe_load(text)["images"] == [
        {"name": "nginx", "newName": "m.example/hub/library/nginx", "newTag": "1.27"},
        {"name": "app", "newName": "m.example/m/ghcr.io/org/app", "newTag": "v1"},
        {"name": "quay.io/a/b", "newName": "m.example/quay-a/b", "newTag": "v2"},
    ]
    assert Path("tree/pod.yaml").read_text() == pod.replace(
        "ghcr.io/org/app:9", "m.example/m/ghcr.io/org/app:9"
    )


def test_values_with_a_registry_and_without(ocipack: Run) -> None:
    text = (
        "a: {image: {registry: ghcr.io, repository: org/app, tag: v1}}\n"
        "b: {image: {repository: ghcr.io/org/app, tag: v1}}\n"
        "c: {image: 'ghcr.io/org/app:v1'}\n"
        "d: {image: {repository: nginx, tag: '1'}}\n"
    )

    code, found, _ = rename(ocipack, text, "values.yaml")

    assert code == 0
    assert found == (
        "a: {image: {registry: m.example, repository: m/ghcr.io/org/app, tag: v1}}\n"
        "b: {image: {repository: m.example/m/ghcr.io/org/app, tag: v1}}\n"
        "c: {image: 'm.example/m/ghcr.io/org/app:v1'}\n"
        "d: {image: {repository: nginx, tag: '1'}}\n"
    )


def test_a_map_is_renamed_whole_or_not(ocipack: Run) -> None:
    """The registry is an anchor that something else uses, so neither part may change."""
    text = (
        "a: {image: {registry: &r ghcr.io, repository: org/app, tag: v1}}\nhost: *r\n"
        "b: {image: {registry: ghcr.io, repository: org/app, tag: v1}}\n"
    )

    _, found, err = rename(ocipack, text, "values.yaml")

    first, host, second = found.splitlines()
    assert [first, host] == text.splitlines()[:2]
    assert "registry: m.example, repository: m/ghcr.io/org/app" in second
    assert "image-unrenamed" in err


def test_an_entry_of_argo_cd_says_for_whom_it_is(ocipack: Run) -> None:
    text = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n"
        "  source:\n    kustomize:\n      images:\n      - ghcr.io/org/app:v2\n"
        "      - x=quay.io/a/b:v1\n"
    )

    assert rename(ocipack, text)[1] == text.replace(
        "- ghcr.io/org/app:v2", "- ghcr.io/org/app=m.example/m/ghcr.io/org/app:v2"
    ).replace("x=quay.io/a/b", "x=m.example/quay-a/b")


def test_what_sops_has_sealed_stays(ocipack: Run) -> None:
    text = POD.format("nginx:1") + "sops: {mac: x}\n"

    _, found, err = rename(ocipack, text)

    assert found == text
    assert "sealed by SOPS" in err


def test_check_says_what_is_left(ocipack: Run) -> None:
    text = POD.format("nginx:1")

    assert rename(ocipack, text, "file.yaml", "--check")[:2] == (1, text)
    assert rename(ocipack, text)[0] == 0
    assert ocipack("pin", "tree", "--map", "map.yaml", "--rename", "--check")[0] == 0


def test_a_difference_is_shown_and_not_made(ocipack: Run) -> None:
    text = POD.format("nginx:1")
    Path("tree").mkdir()
    Path("tree/a.yaml").write_text(text)

    code, out, _ = ocipack("pin", "tree", "--map", "map.yaml", "--rename", "--diff")

    assert (code, Path("tree/a.yaml").read_text()) == (0, text)
    assert "+    image: m.example/hub/library/nginx:1\n" in out


@pytest.mark.parametrize(
    "more", [(), ("--map", "map.yaml", "--offline"), ("--map", "map.yaml", "--lock", "x")]
)
def test_renaming_asks_nothing(ocipack: Run, more: tuple[str, ...]) -> None:
    Path("tree").mkdir()
    Path("tree/a.yaml").write_text(POD.format("nginx:1"))

    assert ocipack("pin", "tree", "--rename", *more)[0] == 2
