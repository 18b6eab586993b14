"""What `mirror` brings to real registries is what real tools find there."""

from __future__ import annotations

import json
import tarfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from interop.peers import Desk
from interop.servers import Proxy
from interop.wire import INDEX, Repository

HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\nunsigned: true\n"


def target(repository: Repository, host: str = "") -> Repository:
    """Where the form `path` below `<repository>/copy` puts `repository`."""
    return Repository(host or repository.host, f"{repository.name}/copy/{repository.name}")


def mirror(desk: Desk, repository: Repository, sources: str, *more: str, code: int = 0) -> Any:
    to = f"to: {repository.place}/copy\nrelocate: {{form: path}}\n"
    (desk.folder / "mirror.yaml").write_text(f"{HEAD}{to}sources:\n{sources}")
    desk.ocipack("mirror", *more, "--output", "json=report.json").expect(code)
    return json.loads((desk.folder / "report.json").read_text())


def put_index(repository: Repository, tag: str) -> str:
    entries = [
        repository.put_image(f"{tag} {architecture}")
        | {"platform": {"os": "linux", "architecture": architecture}}
        for architecture in ("amd64", "arm64")
    ]
    document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}
    return repository.put_manifest(document, tag)


@pytest.mark.interop("cosign3", "cosign2", "crane")
@pytest.mark.parametrize("version", [2, 3])
def test_what_cosign_signed_it_verifies_at_the_mirror(
    desk: Desk, repository: Repository, keys: dict[str, str], version: int
) -> None:
    """An index, signed in both forms, and a child of it, signed too."""
    subject = put_index(repository, "v1")
    child = repository.manifest("v1")["manifests"][0]["digest"]
    for digest in (subject, child):
        desk.cosign(2, "sign", "--key", f"{keys['alice']}.key", f"{repository}@{digest}").expect()
        desk.cosign(3, "sign", "--key", f"{keys['alice']}.key", f"{repository}@{digest}").expect()
    here = repository.forms(subject), repository.forms(child)
    there = target(repository)

    report = mirror(desk, repository, f"- image: {repository}:v1\n")

    assert here == ((1, 1), (1, 1))
    assert (there.forms(subject), there.forms(child)) == here
    assert report["items"][0]["kinds"]["signatures"] == 4
    for name in (f"{there}:v1", f"{there}@{child}"):
        more = ("--trusted-root", desk.root) if version == 2 else ()
        desk.cosign(version, "verify", "--key", f"{keys['alice']}.pub", *more, name).expect()
    assert desk.tool("crane", "digest", f"{there}:v1").expect() == subject


@pytest.mark.interop("crane")
def test_crane_finds_nothing_wrong_with_what_it_made(desk: Desk, repository: Repository) -> None:
    for name in ("base", "own"):
        with tarfile.open(desk.folder / f"{name}.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo(f"a-file-of-{name}"))
    layers = ("-f", "base.tar", "-f", "own.tar")
    desk.tool("crane", "append", *layers, "-t", f"{repository}:v1", "--insecure").expect()

    mirror(desk, repository, f"- image: {repository}:v1\n")

    desk.tool("crane", "validate", "--remote", f"{target(repository)}:v1").expect()


def test_a_second_run_asks_little(desk: Desk, proxy: Proxy, repository: Repository) -> None:
    for number in range(25):
        repository.put_image(f"content {number}", f"v1.{number}.0")
    through = Repository(proxy.host, repository.name)
    sources = f"- image: {through}\n  select: {{semver: '^1'}}\n"
    assert mirror(desk, through, sources)["counts"] == {"copied": 25}
    proxy.begin()

    assert mirror(desk, through, sources)["counts"] == {"skipped": 25}

    seen = proxy.seen()
    assert len(seen) == 2 * 25 + 1, "\n".join(map(str, seen))
    assert sum(one.method == "HEAD" for one in seen) == 50


@pytest.mark.interop("crane")
def test_a_tag_that_somebody_moved_is_drift(desk: Desk, repository: Repository) -> None:
    repository.put_image("one", "v1")
    sources = f"- image: {repository}:v1\n"
    mirror(desk, repository, sources)
    there = target(repository)
    other = there.put_image("two", "v1")["digest"]

    report = mirror(desk, repository, sources, code=1)

    assert report["counts"] == {"drifted": 1}
    assert desk.tool("crane", "digest", f"{there}:v1").expect() == other


@pytest.mark.interop("helm")
def test_a_chart_is_the_same_to_the_byte_and_helm_pulls_it(
    desk: Desk, repository: Repository
) -> None:
    desk.tool("helm", "create", "shop").expect()
    desk.tool("helm", "package", "shop", "--version", "1.2.0+build.7").expect()
    desk.tool("helm", "push", "shop-1.2.0+build.7.tgz", repository.place, "--plain-http").expect()
    chart = Repository(repository.host, f"{repository.name}/shop")
    there = target(chart)

    mirror(desk, chart, f"- chart: {chart.place}\n  select: {{semver: '>=1.2.0'}}\n")

    assert there.tags() == ["1.2.0_build.7"]
    assert there.raw("1.2.0_build.7") == chart.raw("1.2.0_build.7")
    (desk.folder / "pulled").mkdir()
    desk.tool(
        *("helm", "pull", there.place, "--version", "1.2.0+build.7"),
        *("--plain-http", "-d", "pulled"),
    ).expect()
    (pulled,) = (desk.folder / "pulled").iterdir()
    assert pulled.read_bytes() == (desk.folder / "shop-1.2.0+build.7.tgz").read_bytes()


@pytest.mark.interop("skopeo")
def test_skopeo_finds_by_the_map_what_its_source_has_no_more(
    desk: Desk, repository: Repository
) -> None:
    """The source is where nobody listens; containers' tools ask the mirror for it."""
    digest = repository.put_image("mapped", "v1")["digest"]
    written = ("--write", "registries-conf=m.conf")
    mirror(desk, repository, f"- image: {repository}:v1\n", *written)
    conf = desk.folder / "m.conf"
    gone = "127.0.0.1:1"  # no registry is there
    conf.write_text(conf.read_text().replace(f'= "{repository}"', f'= "{gone}/app"'))
    name = f"docker://{gone}/app"

    for asked in (f"{name}:v1", f"{name}@{digest}"):
        ended = desk.tool(*("skopeo", "--registries-conf", str(conf), "inspect", "--raw", asked))
        assert ended.expect() == (repository.raw("v1") or b"").decode(), ended


def test_parts_run_at_once_and_everything_is_there(desk: Desk, repository: Repository) -> None:
    """As the pods of an Indexed Job: each in a process of its own, at the same time."""
    shared = repository.put_blob(b"shared by all")
    for number in range(12):
        own = repository.put_blob(f"own {number}".encode())
        config = repository.put_blob(json.dumps({"is": number}).encode())
        layers = [{"mediaType": "application/octet-stream", **one} for one in (shared, own)]
        repository.put_manifest(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config},
                "layers": layers,
            },
            f"v{number}",
        )
    to = f"to: {repository.place}/copy\nrelocate: {{form: path}}\n"
    sources = f"sources: [{{image: {repository}, select: {{pattern: 'v.*'}}}}]\n"
    (desk.folder / "mirror.yaml").write_text(HEAD + to + sources)

    with ThreadPoolExecutor(3) as threads:
        parts = [f"{index}/3" for index in range(3)]
        for ended in threads.map(lambda part: desk.ocipack("mirror", "--shard", part), parts):
            ended.expect()

    there = target(repository)
    assert there.tags() == repository.tags()
    assert all(there.raw(tag) == repository.raw(tag) for tag in there.tags())
    assert not [gone for tag in there.tags() for gone in there.missing(tag)]
