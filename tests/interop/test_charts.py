"""A chart of a classic repository is the artifact that the real `helm push` makes of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from charts import Shelf, chart, provenance
from interop.peers import FOLDER, OCIPACK, Desk, run
from interop.wire import Repository

CASES = json.loads((Path(__file__).parents[1] / "vectors/helm/pushed.json").read_text())


@pytest.mark.interop("helm")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("proven", [False, True])
def test_the_artifact_is_the_one_that_helm_pushes(
    desk: Desk,
    repository: Repository,
    case: str,
    proven: bool,  # noqa: FBT001 - a table of cases
) -> None:
    """The vectors, which the other tests compare with, are what Helm makes today."""
    wanted = CASES[case]
    archive = chart(wanted["chart"], wanted["files"])
    (desk.folder / "shop.tgz").write_bytes(archive)
    if proven:
        (desk.folder / "shop.tgz.prov").write_bytes(provenance(archive))

    desk.tool("helm", "push", "shop.tgz", repository.place, "--plain-http").expect()

    there = Repository(repository.host, f"{repository.name}/shop")
    (tag,) = there.tags()
    theirs = there.manifest(tag)
    assert there.blob(theirs["config"]["digest"]).decode() == wanted["config"]
    pushed = there.raw(tag)
    assert pushed is not None
    bare = re.sub(rb'"org.opencontainers.image.created":"[^"]*",', b"", pushed)
    assert bare.decode() == wanted["proven" if proven else "manifest"]


HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\nunsigned: true\n"


def packaged(desk: Desk, version: str) -> tuple[bytes, bytes]:
    """A chart as the real `helm create` and `helm package` make it, and what is beside it."""
    if not (desk.folder / "shop").exists():
        desk.tool("helm", "create", "shop").expect()
    desk.tool("helm", "package", "shop", "--version", version).expect()
    archive = (desk.folder / f"shop-{version}.tgz").read_bytes()
    beside = provenance(archive)
    (desk.folder / f"shop-{version}.tgz.prov").write_bytes(beside)
    return archive, beside


@pytest.mark.interop("helm")
def test_helm_pulls_from_the_mirror_what_a_classic_repository_has(
    desk: Desk, repository: Repository
) -> None:
    """Archive and provenance to the byte; the index is the one that `helm repo index` writes."""
    made = {version: packaged(desk, version) for version in ("1.2.0+build.7", "1.3.0")}
    desk.tool("helm", "repo", "index", ".").expect()
    with Shelf() as shelf:
        for name in desk.folder.iterdir():
            if name.is_file():
                shelf.files[f"/stable/{name.name}"] = name.read_bytes()
        source = f"{{chart: shop, repository: '{shelf.address}', select: {{semver: '>=1'}}}}"
        to = f"to: {repository.place}\nrelocate: {{form: path}}\nsources: [{source}]\n"
        (desk.folder / "mirror.yaml").write_text(HEAD + to)
        desk.ocipack("mirror").expect()
        desk.ocipack("mirror").expect()
    there = Repository(repository.host, f"{repository.name}/stable/shop")

    for version, (archive, beside) in made.items():
        folder = desk.folder / f"pulled-{version}"
        folder.mkdir()
        desk.tool(
            *("helm", "pull", there.place, "--version", version, "--prov", "-d", str(folder)),
            "--plain-http",
        ).expect()
        assert {one.name: one.read_bytes() for one in folder.iterdir()} == {
            f"shop-{version}.tgz": archive,
            f"shop-{version}.tgz.prov": beside,
        }
    found = desk.tool("helm", "show", "chart", there.place, "--version", "1.3.0", "--plain-http")
    assert "version: 1.3.0" in found.expect()
    rendered = desk.tool("helm", "template", there.place, "--version", "1.3.0", "--plain-http")
    assert "kind: Deployment" in rendered.expect()


@pytest.mark.interop("helm")
def test_a_chart_that_helm_pushed_keeps_its_digest_and_provenance(
    desk: Desk, repository: Repository
) -> None:
    archive, beside = packaged(desk, "1.2.0+build.7")
    desk.tool("helm", "push", "shop-1.2.0+build.7.tgz", repository.place, "--plain-http").expect()
    chart_place = Repository(repository.host, f"{repository.name}/shop")
    to = f"to: {repository.place}/copy\nrelocate: {{form: path}}\n"
    source = f"sources: [{{chart: '{chart_place.place}', select: {{semver: '>=1'}}}}]\n"
    (desk.folder / "mirror.yaml").write_text(HEAD + to + source)

    desk.ocipack("mirror").expect()

    there = Repository(repository.host, f"{repository.name}/copy/{chart_place.name}")
    assert there.raw("1.2.0_build.7") == chart_place.raw("1.2.0_build.7")
    (desk.folder / "pulled").mkdir()
    desk.tool(
        *("helm", "pull", there.place, "--version", "1.2.0+build.7", "--prov"),
        *("-d", "pulled", "--plain-http"),
    ).expect()
    assert {one.read_bytes() for one in (desk.folder / "pulled").iterdir()} == {archive, beside}


TEMPLATE = """\
apiVersion: v1
kind: Pod
metadata: {name: "{{ lookup "v1" "Secret" "default" "x" | len }}-{{ getHostByName "localhost" }}"}
spec:
  containers:
  - name: a
    image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
  - {name: b, image: "ghcr.io/example/{{ .Files.Get "../../etc/passwd" | len }}:{{ .Values.tag }}"}
"""


@pytest.mark.interop("helm")
def test_images_are_those_of_what_helm_renders(desk: Desk) -> None:
    """Also without a network, where helm asks nobody, and of charts within charts."""
    desk.tool("helm", "create", "shop").expect()
    desk.tool("helm", "create", "inner").expect()
    (desk.folder / "shop/templates/own.yaml").write_text(TEMPLATE)
    desk.tool("helm", "package", "inner", "-d", "shop/charts").expect()
    (desk.folder / "mine.yaml").write_text("tag: v7\nimage: {repository: ghcr.io/example/web}\n")
    search = f"{FOLDER}:/usr/bin:/bin"

    listed = desk.ocipack("images", "shop", "-f", "mine.yaml", "--strict", "--why", PATH=search)

    lines = listed.expect().splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "certain  docker.io/library/busybox",
        "certain  docker.io/library/nginx:1.16.0",
        "certain  ghcr.io/example/0:v7",
        "certain  ghcr.io/example/web:1.16.0",
    ]
    assert any("shop/charts/inner/templates/deployment.yaml" in line for line in lines)
    desk.tool("helm", "package", "shop").expect()
    place = ("images", "shop-0.1.0.tgz", "-f", "mine.yaml", "--strict", "--why")
    assert desk.ocipack(*place, PATH=search).expect() == listed.out.strip()
    alone = ("unshare", "-rn", *OCIPACK, *place)
    ended = run(alone, desk.env(PATH=search), desk.folder)
    if "unshare" not in ended.err:
        assert ended.expect() == listed.out.strip()


@pytest.mark.interop("helm")
def test_what_a_chart_runs_is_mirrored_with_it(desk: Desk, repository: Repository) -> None:
    image = repository.put_image("web", "1.16.0")["digest"]
    desk.tool("helm", "create", "shop").expect()
    (desk.folder / "shop/templates/tests/test-connection.yaml").unlink()
    values = desk.folder / "shop/values.yaml"
    values.write_text(values.read_text().replace("repository: nginx", f"repository: {repository}"))
    desk.tool("helm", "package", "shop").expect()
    desk.tool("helm", "push", "shop-0.1.0.tgz", f"{repository.place}/c", "--plain-http").expect()
    source = f"{{chart: '{repository.place}/c/shop:0.1.0', images: true}}"
    to = f"to: {repository.place}/copy\nrelocate: {{form: path}}\nsources: [{source}]\n"
    (desk.folder / "mirror.yaml").write_text(HEAD + to)

    desk.ocipack("mirror", "--strict", PATH=f"{FOLDER}:/usr/bin:/bin").expect()

    copy = f"{repository.name}/copy/{repository.name}"
    assert Repository(repository.host, copy).digest("1.16.0") == image
    assert Repository(repository.host, f"{copy}/c/shop").tags() == ["0.1.0"]
