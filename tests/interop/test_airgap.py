"""What others read out of our archives, and what is left of a run that was killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from interop.peers import OCIPACK, Desk
from interop.servers import Proxy, Server
from interop.wire import INDEX, MANIFEST, Repository

TYPE = "application/vnd.ocipack.airgap.v1+json"


@dataclass(frozen=True)
class Site:
    """An archive with an index of two images, signed in both forms, each of the three."""

    origin: Repository
    root: str
    children: list[str]

    @property
    def name(self) -> str:
        return f"{self.origin}:v1"

    def target(self, host: str) -> Repository:
        return Repository(host, f"{self.origin.name}/far/{self.origin.name}")


def load(desk: Desk, site: Site, host: str, key: str) -> Repository:
    to = f"oci://{host}/{site.origin.name}/far"
    key = ("--key", f"{key}.pub")  # type: ignore[assignment] # two words
    desk.ocipack("airgap", "load", "site.tar", "--to", to, "--names", "path", *key).expect()
    return site.target(host)


@pytest.fixture
def site(desk: Desk, repository: Repository, keys: dict[str, str]) -> Site:
    """Images that crane made, so that crane can find fault with what became of them."""
    children = []
    for name in ("amd64", "arm64"):
        with tarfile.open(desk.folder / f"{name}.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo(f"a-file-of-{name}"))
        made = desk.tool(
            *("crane", "append", "-f", f"{name}.tar", "-t", f"{repository}:{name}", "--insecure")
        ).expect()
        children.append(made.rpartition("@")[2])
    entries = []
    for digest in children:
        raw = repository.raw(digest)
        assert raw is not None
        kind = json.loads(raw)["mediaType"]
        entries.append({"mediaType": kind, "digest": digest, "size": len(raw)})
    root = repository.put_manifest(
        {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}, "v1"
    )
    for digest in (root, *children):
        desk.ocipack(
            "sign", f"{repository.place}@{digest}", "--key", f"{keys['alice']}.key"
        ).expect()
    key = ("--key", f"{keys['alice']}.pub")
    desk.ocipack("airgap", "save", f"{repository.place}:v1", "-o", "site.tar", *key).expect()
    return Site(repository, root, children)


@pytest.mark.interop("crane", "skopeo")
def test_skopeo_copies_out_of_it(desk: Desk, site: Site, server: Server) -> None:
    there = Repository(server.host, f"{site.origin.name}/skopeo")
    for name, tag in (
        (site.name, "v1"),
        (f"{site.name.rpartition(':')[0]}:sha256-{site.root[7:]}.sig", "sig"),
    ):
        desk.tool(
            *("skopeo", "copy", "--all", "--preserve-digests", "--dest-tls-verify=false"),
            *(f"oci-archive:site.tar:{name}", f"docker://{there}:{tag}"),
        ).expect()
    assert there.digest("v1") == site.root
    assert there.missing("v1") == []
    desk.tool("crane", "validate", "--remote", f"{there}:v1").expect()


@pytest.mark.interop("crane", "oras")
def test_oras_copies_out_of_it_with_what_is_attached(
    desk: Desk, site: Site, server: Server
) -> None:
    there = Repository(server.host, f"{site.origin.name}/oras")
    desk.tool(
        *("oras", "cp", "-r", "--from-oci-layout", "--to-plain-http", f"site.tar@{site.root}"),
        f"{there}:v1",
    ).expect()
    assert there.digest("v1") == site.root
    for digest in (site.root, *site.children):
        assert there.bundles(digest) == 1
    desk.tool("crane", "validate", "--remote", f"{there}:v1").expect()
    named = desk.tool("oras", "manifest", "fetch", "--oci-layout-path", "site.tar", site.name)
    assert json.loads(named.expect())["mediaType"] == INDEX
    desk.tool("oras", "pull", "--oci-layout", "site.tar:ocipack-airgap", "-o", "papers").expect()
    assert (desk.folder / "papers/keys/alice.pub").is_file()
    record = desk.tool("oras", "manifest", "fetch", "--oci-layout", "site.tar:ocipack-airgap")
    assert json.loads(record.expect())["artifactType"] == TYPE


@pytest.mark.interop("crane", "regctl")
def test_regctl_imports_it_and_copies_all_forms(desk: Desk, site: Site, server: Server) -> None:
    there = Repository(server.host, f"{site.origin.name}/regctl")
    desk.tool("regctl", "registry", "set", "--tls", "disabled", server.host).expect()
    desk.tool("regctl", "image", "import", f"{there}:v1", "site.tar", "--name", site.name).expect()
    assert there.digest("v1") == site.root
    desk.tool("crane", "validate", "--remote", f"{there}:v1").expect()
    with tarfile.open(desk.folder / "site.tar") as archive:
        archive.extractall(desk.folder / "layout", filter="data")
    whole = Repository(server.host, f"{site.origin.name}/regctl-all")
    desk.tool(
        *("regctl", "image", "copy", "--referrers", "--digest-tags"),
        *(f"ocidir://layout@{site.root}", f"{whole}:v1"),
    ).expect()
    assert whole.digest("v1") == site.root
    assert [whole.forms(digest) for digest in (site.root, *site.children)] == [(1, 1)] * 3


@pytest.mark.interop("crane")
def test_crane_pushes_the_layout_as_an_index(desk: Desk, site: Site, server: Server) -> None:
    there = Repository(server.host, f"{site.origin.name}/crane")
    with tarfile.open(desk.folder / "site.tar") as archive:
        archive.extractall(desk.folder / "layout", filter="data")
    desk.tool("crane", "push", "--index", "layout", f"{there}:site", "--insecure").expect()
    assert there.missing("site") == []
    desk.tool("crane", "validate", "--remote", f"{there}@{site.root}").expect()
    assert site.root in {entry["digest"] for entry in there.manifest("site")["manifests"]}


@pytest.mark.interop("crane", "cosign2", "cosign3")
@pytest.mark.parametrize("version", [2, 3])
def test_cosign_verifies_what_was_loaded(
    desk: Desk, site: Site, server: Server, keys: dict[str, str], version: int
) -> None:
    there = load(desk, site, server.host, keys["alice"])
    for digest in (site.root, *site.children):
        assert there.forms(digest) == (1, 1)
        more = ("--trusted-root", desk.root) if version == 2 else ()
        key = ("--key", f"{keys['alice']}.pub")
        desk.cosign(version, "verify", *key, *more, f"{there}@{digest}").expect()
    desk.tool("crane", "validate", "--remote", f"{there}:v1").expect()


@pytest.mark.interop("helm")
def test_a_chart_arrives_to_the_byte_and_helm_pulls_it(
    desk: Desk, repository: Repository, server: Server
) -> None:
    desk.tool("helm", "create", "shop").expect()
    desk.tool("helm", "package", "shop", "--version", "1.2.0+build.7").expect()
    desk.tool("helm", "push", "shop-1.2.0+build.7.tgz", repository.place, "--plain-http").expect()
    chart = f"{repository.place}/shop:1.2.0_build.7"
    desk.ocipack("airgap", "save", chart, "-o", "site.tar", "--allow-unsigned").expect()
    listed = desk.ocipack("airgap", "list", "site.tar").expect()
    assert "application/vnd.cncf.helm.config.v1+json" in listed
    to = f"{server.host}/{repository.name}/far"
    desk.ocipack(
        *("airgap", "load", "site.tar", "--to", f"oci://{to}", "--names", "path"),
        "--allow-unsigned",
    ).expect()
    pulled = desk.folder / "pulled"
    pulled.mkdir()
    desk.tool(
        *("helm", "pull", f"oci://{to}/{repository.name}/shop", "--version", "1.2.0+build.7"),
        *("--plain-http", "-d", str(pulled)),
    ).expect()
    made = (desk.folder / "shop-1.2.0+build.7.tgz").read_bytes()
    assert (pulled / "shop-1.2.0+build.7.tgz").read_bytes() == made


KILLS = 13
"""Of each sort, and for each of the two registries."""


def fill(repository: Repository) -> None:
    """An image of a dozen layers, 8 MiB together."""
    parts = [repository.put_blob(os.urandom(700_000)) for _ in range(12)]
    config = repository.put_blob(b'{"architecture":"amd64","os":"linux"}')
    kind = "application/octet-stream"
    repository.put_manifest(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": kind, **config},
            "layers": [{"mediaType": kind, **part} for part in parts],
        },
        "v1",
    )


def kill(desk: Desk, command: tuple[str, ...], when: Callable[[], bool]) -> None:
    """Run ocipack, and kill it as soon as `when` says so."""
    env = {name: value for name, value in desk.env().items() if not name.startswith("COVERAGE")}
    with (
        (desk.folder / "killed.log").open("wb") as log,
        subprocess.Popen(
            [*OCIPACK, *command], env=env, cwd=desk.folder, stdout=log, stderr=log
        ) as process,
    ):
        while process.poll() is None and not when():
            time.sleep(0.005)
        process.kill()


@pytest.mark.slow
def test_a_save_killed_at_random_moments(desk: Desk, proxy: Proxy, repository: Repository) -> None:
    fill(repository)
    jobs = 2
    place = f"oci://{proxy.host}/{repository.name}:v1"
    saving = ("airgap", "save", place, "--allow-unsigned", "--jobs", str(jobs), "-o")
    proxy.begin()
    desk.ocipack(*saving, "whole.tar").expect()
    whole = (desk.folder / "whole.tar").read_bytes()
    dice, resumed = random.Random(21), 0
    for number in range(KILLS):
        path = desk.folder / f"{number}.tar"
        partial, enough = path.with_name(f".{path.name}.partial"), dice.randrange(len(whole))
        proxy.begin("50ms")
        kill(desk, (*saving, path.name), lambda: partial.exists() and size(partial) >= enough)  # noqa: B023 - called within the turn
        before = fetched(proxy)
        if path.exists():
            assert path.read_bytes() == whole
            continue
        resumed += size(partial) > 1_000_000
        proxy.begin()
        desk.ocipack(*saving, path.name).expect()
        assert path.read_bytes() == whole
        again = before & fetched(proxy)
        # what was being written, and what was fetched ahead of it
        assert sum(again.values()) <= jobs + 1, f"fetched twice: {again}"
        assert [one.name for one in desk.folder.glob(".*.tar*")] == []
    assert resumed > KILLS // 2, "hardly a run had got far"


def size(path: Path) -> int:
    """How long a file is; 0 if it is there no more."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@pytest.mark.slow
def test_a_load_killed_at_random_moments(
    desk: Desk, proxy: Proxy, repository: Repository, server: Server
) -> None:
    fill(repository)
    made = repository.digest("v1")
    save = ("airgap", "save", f"{repository.place}:v1", "--allow-unsigned", "-o", "site.tar")
    desk.ocipack(*save).expect()
    dice, early, total = random.Random(22), 0, 0
    for number in range(-1, KILLS):
        to = f"oci://{proxy.host}/{repository.name}/{number + 1}"
        loading = ("airgap", "load", "site.tar", "--to", to, "--names", "path")
        command = (*loading, "--allow-unsigned")
        there = Repository(server.host, f"{repository.name}/{number + 1}/{repository.name}")
        if number < 0:
            proxy.begin()
            desk.ocipack(*command).expect()
            total = len(proxy.seen())
            continue
        enough = dice.randrange(1, total)
        proxy.begin("20ms")
        kill(desk, command, lambda: len(proxy.seen()) >= enough)  # noqa: B023 - called within the turn
        before = uploaded(proxy)
        if there.digest("v1"):
            assert there.missing("v1") == []
        else:
            early += 1
        proxy.begin()
        desk.ocipack(*command).expect()
        assert there.digest("v1") == made
        assert there.missing("v1") == []
        again = before & uploaded(proxy)
        # where nothing mounts, a repository that holds blobs alone says that it does not exist
        assert not again or not server.mounts, f"sent twice: {again}"
    assert early > KILLS // 2, "most runs were over before they were killed"


def fetched(proxy: Proxy) -> Counter[str]:
    """Count how often each blob was asked for and given."""
    return Counter(
        one.path.rpartition("/")[2]
        for one in proxy.seen()
        if one.method == "GET" and "/blobs/sha256:" in one.path
    )


def uploaded(proxy: Proxy) -> Counter[str]:
    """Count how often each blob was sent, whole."""
    return Counter(
        one.query.rpartition("digest=")[2]
        for one in proxy.seen()
        if "/blobs/uploads" in one.path
        and one.status == 201
        and one.sent
        and "digest=" in one.query
    )


def test_the_peak_of_memory_does_not_grow_with_what_passes_through(
    desk: Desk, repository: Repository, tmp_path: Path
) -> None:
    peaks = []
    for size in (8, 96):
        blob = repository.put_blob(os.urandom(size << 20))
        config = repository.put_blob(b"{}")
        kind = "application/octet-stream"
        repository.put_manifest(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {"mediaType": kind, **config},
                "layers": [{"mediaType": kind, **blob}],
            },
            f"v{size}",
        )
        path = tmp_path / f"{size}.tar"
        saving = ("airgap", "save", f"{repository.place}:v{size}", "-o", str(path))
        peaks.append(peak(desk, (*saving, "--allow-unsigned")))
        verifying = ("airgap", "verify", str(path), "--allow-unsigned")
        peaks.append(peak(desk, verifying))
    small, large = peaks[:2], peaks[2:]
    for one, other in zip(small, large, strict=True):
        assert other - one < 32 << 10, f"{one} KiB with 8 MiB, {other} KiB with 96 MiB"


def peak(desk: Desk, command: tuple[str, ...]) -> int:
    """The most memory of a run, in KiB."""
    script = (
        "import sys; from ocipack.cli.app import run; code = run(sys.argv[1:]);"
        "said = open('/proc/self/status').read();"
        "print(said.partition('VmHWM:')[2].split()[0], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [OCIPACK[0], "-c", script, *command],
        env=desk.env(),
        cwd=desk.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stderr.split()[-1])
