"""Which images a chart runs: from what is rendered, declared, and said by values."""

from __future__ import annotations

import pytest
from charts import chart

from ocipack.errors import IntegrityError
from ocipack.helm import images as module
from ocipack.helm.images import Image, images, merged, opened
from ocipack.k8s.images.site import Confidence

HEAD = "apiVersion: v2\nname: shop\nversion: 1.2.0\nappVersion: 3.1.4\n"
HEX = "a" * 64


def found(
    files: dict[str, str | bytes], rendered: str | None = None, head: str = HEAD
) -> list[Image]:
    told: list[str] = []
    made = images(
        opened(chart(head, files)), rendered.encode() if rendered is not None else None, told.append
    )
    assert not told
    return made


def said(made: list[Image]) -> list[tuple[str, str]]:
    return [(one.confidence.value, one.text) for one in made if one.is_resolved]


def open_(made: list[Image]) -> list[tuple[str, str]]:
    return [(one.text, str(one.reference or "")) for one in made if not one.is_resolved]


POD = """\
---
# Source: shop/templates/a.yaml
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - image: ghcr.io/example/shop:3.1.4
    args: [--sidecar-image=quay.io/example/side:2]
  initContainers:
  - image: busybox
"""


def test_what_is_rendered_is_certain_and_says_where() -> None:
    made = found({}, POD)

    assert said(made) == [
        ("certain", "docker.io/library/busybox"),
        ("certain", "ghcr.io/example/shop:3.1.4"),
        ("likely", "quay.io/example/side:2"),
    ]
    assert made[1].why == ("rendered: shop/templates/a.yaml Pod/a container of a Pod",)


def test_values_name_images_in_the_ways_that_charts_have() -> None:
    values = f"""\
image: {{registry: ghcr.io, repository: example/shop, tag: "1.0"}}
whole: {{image: "quay.io/example/whole:2"}}
pinned: {{image: {{repository: quay.io/example/pinned, digest: "sha256:{HEX}"}}}}
empty: {{image: {{repository: ghcr.io/example/empty, tag: ""}}}}
hub: {{image: {{repository: nginx, tag: "1.25"}}}}
open: {{image: "{{{{ .Values.x }}}}/shop:1"}}
source: {{repository: https://git.example/x}}
"""

    made = found({"values.yaml": values})

    assert said(made) == [
        ("likely", "ghcr.io/example/shop:1.0"),
        ("likely", f"quay.io/example/pinned@sha256:{HEX}"),
        ("likely", "quay.io/example/whole:2"),
    ]
    assert open_(made) == [
        ("ghcr.io/example/empty", "ghcr.io/example/empty:3.1.4"),
        ("nginx:1.25", "docker.io/library/nginx:1.25"),
        ("{{ .Values.x }}/shop:1", ""),
    ]
    empty = next(one for one in made if one.text == "ghcr.io/example/empty")
    assert empty.confidence is Confidence.MAYBE
    assert empty.reason == "its tag is left to the chart; 3.1.4, its appVersion, is a guess"
    assert empty.why == ("values.yaml: empty.image",)


def test_an_object_that_was_rendered_resolves_what_values_leave_open() -> None:
    values = "image: {repository: example/shop, tag: ''}\nother: {image: {repository: nginx}}\n"

    made = found({"values.yaml": values}, POD)

    assert open_(made) == [("nginx", "docker.io/library/nginx:3.1.4")]
    assert open_(found({"values.yaml": values}))[0][0] == "example/shop"


def test_annotations_and_lock_files_are_likely() -> None:
    head = HEAD + (
        "annotations:\n"
        "  artifacthub.io/images: |\n    - name: a\n      image: ghcr.io/example/a:1\n"
        "  helm.sh/images: |\n    - ghcr.io/example/b:1\n"
        '  images: "- image: ghcr.io/example/c:{{ .x }}"\n'
    )
    lock = "apiVersion: v0\nkind: ImagesLock\nimages:\n- {name: d, image: 'ghcr.io/example/d:1'}\n"
    files: dict[str, str | bytes] = {
        name: lock.replace("/d:", f"/d{n}:") for n, name in enumerate(sorted(module.LOCKS))
    }

    made = found(files, head=head)

    assert said(made) == [
        ("likely", "ghcr.io/example/a:1"),
        ("likely", "ghcr.io/example/b:1"),
        *(("likely", f"ghcr.io/example/d{n}:1") for n in range(5)),
    ]
    assert open_(made) == [("ghcr.io/example/c:{{ .x }}", "")]
    assert made[0].why == ("Chart.yaml: annotation artifacthub.io/images",)


def test_the_surest_place_decides_and_all_are_said() -> None:
    head = HEAD + "annotations: {images: '- image: ghcr.io/example/shop:3.1.4'}\n"

    (one,) = [one for one in found({}, POD, head) if "shop" in one.text]

    assert one.confidence is Confidence.CERTAIN
    assert len(one.why) == 2


def test_subcharts_are_looked_into_with_what_is_set_above_them() -> None:
    sub = "name: {}\nversion: 1.0.0\nappVersion: '9'\n"
    values = "image: {registry: docker.io, repository: x/%s, tag: old}\n"
    inner = chart(sub.format("packed"), {"values.yaml": values % "packed"}, top="packed")
    files: dict[str, str | bytes] = {
        "values.yaml": "plain: {image: {tag: new}}\npacked: {image: {tag: 1.5}}\n",
        "charts/plain/Chart.yaml": sub.format("plain"),
        "charts/plain/values.yaml": values % "plain",
        "charts/packed-1.0.0.tgz": inner,
        "charts/_off/Chart.yaml": "no YAML: [",
        "charts/README.md": "",
    }
    del files["charts/_off/Chart.yaml"]

    made = found(files)

    assert said(made) == [
        ("likely", "docker.io/x/packed:1.5"),
        ("likely", "docker.io/x/plain:new"),
    ]
    assert made[1].why == ("charts/plain/values.yaml: image",)


def test_what_cannot_be_read_is_told() -> None:
    told: list[str] = []
    head = HEAD + "annotations: {images: '['}\n"
    files: dict[str, str | bytes] = {"values.yaml": "a: [", "images.lock": "{"}

    assert images(opened(chart(head, files)), None, told.append) == []

    assert [text.partition(":")[0] for text in told] == ["Chart.yaml", "images.lock", "values.yaml"]


@pytest.mark.parametrize("text", ["- a\n", "a\n", "", "5\n"])
def test_values_that_are_no_mapping_name_nothing(text: str) -> None:
    assert found({"values.yaml": text}) == []


def test_charts_in_charts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = HEAD
    nested: bytes = chart(inner, top="a")
    for _ in range(module.DEPTH + 1):
        nested = chart(inner, {"charts/a.tgz": nested}, top="a")
    with pytest.raises(IntegrityError, match="subcharts, or 10 deep"):
        opened(nested)
    monkeypatch.setattr(module, "SUBCHARTS", 3)
    files: dict[str, str | bytes] = {
        f"charts/c{n}/Chart.yaml": HEAD.replace("shop", f"c{n}") for n in range(3)
    }
    assert len(opened(chart(HEAD, files)).subcharts) == 3
    files["charts/more/Chart.yaml"] = HEAD
    with pytest.raises(IntegrityError, match="more than 3 subcharts"):
        opened(chart(HEAD, files))


def test_what_is_looked_into_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = chart(HEAD, {"values.yaml": "#" * 1000}, top="a")
    files: dict[str, str | bytes] = {"charts/a.tgz": inner, "values.yaml": "a: 1\n"}
    size = 2 * len(HEAD) + len(inner) + 1000 + 5
    monkeypatch.setattr(module, "TOTAL", size)
    assert len(opened(chart(HEAD, files)).subcharts) == 1
    monkeypatch.setattr(module, "TOTAL", size - 1)
    with pytest.raises(IntegrityError, match=f"more than {size - 1} bytes to look into"):
        opened(chart(HEAD, files))

    monkeypatch.setattr(module, "FILE", 4)
    told: list[str] = []
    images(opened(chart(HEAD, {"values.yaml": "a: 1\n"})), None, told.append)
    assert told == ["values.yaml: longer than 4 bytes"]


def test_a_subchart_that_is_hostile_is_refused() -> None:
    for evil in (b"PK\3\4", chart(HEAD, top="..")):
        with pytest.raises(IntegrityError):
            opened(chart(HEAD, {"charts/a.tgz": evil}))


def test_values_over_one_another_as_helm_has_it() -> None:
    own = {"a": {"b": 1, "c": 2}, "d": [1], "e": 3, "f": {"g": 1}}
    above = {"a": {"b": 9}, "d": [2], "e": None, "f": 5, "h": 6}
    assert merged(own, above) == {"a": {"b": 9, "c": 2}, "d": [2], "f": 5, "h": 6}
