"""How many requests copying takes, and that nothing is lost: counted at real registries.

The best complete peer needs 853 requests for the index (905 into a registry without the referrers
API), 1,560 for the forty images, of which it sends 320 MiB instead of 164, and 401 to find that
two hundred tags need nothing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop import images, servers
from interop.conftest import need
from interop.images import Writer
from interop.peers import OCIPACK, Desk, run
from interop.servers import Kind, Proxy, Request, Server
from interop.test_requests import shown
from interop.wire import LAYER

INDEX = {"refregd": 650, "docker-registry": 700}
SHARED, WARM = 1_010, 401
MEMORY = 60
"""MiB in one process, however big what it copies is."""

KIB = 1024
KINDS = {
    "indexes": 1,
    "manifests": 8,
    "attestations": 17,
    "signatures": 50,
    "sboms": 1,
    "blobs": 136,
    "digest tags": 26,
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture(params=servers.KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    need(found, "countproxy", "docker-registry", "refregd")
    return found


@pytest.fixture
def target(kind: Kind, tmp_path: Path) -> Iterator[Server]:
    """An empty registry of each kind: some keep blobs for all of their repositories."""
    (tmp_path / "target").mkdir()
    with servers.registry(kind, tmp_path / "target") as running:
        yield running


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "source").mkdir()
    with servers.registry("refregd", tmp_path / "source") as running:
        yield running


@pytest.fixture
def ends(source: Server, target: Server, tmp_path: Path) -> Iterator[tuple[Proxy, Proxy]]:
    for name in ("from", "to"):
        (tmp_path / name).mkdir()
    with (
        servers.counting(source.host, tmp_path / "from") as one,
        servers.counting(target.host, tmp_path / "to") as other,
    ):
        yield one, other


def counted(desk: Desk, ends: tuple[Proxy, Proxy], *command: str) -> tuple[str, list[Request]]:
    """Run ocipack; return what it printed, and what it asked at both ends."""
    for end in ends:
        end.begin()
    out = desk.ocipack(*command).expect()
    return out, [one for end in ends for one in end.seen()]


def assert_sent_once(requests: list[Request]) -> None:
    sent = Counter(
        one.query.rpartition("digest=")[2]
        for one in requests
        if one.method == "PUT" and "/uploads/" in one.path
    )
    assert not {digest: times for digest, times in sent.items() if times > 1}


def test_an_index_with_all_that_is_attached(
    desk: Desk, ends: tuple[Proxy, Proxy], source: Server, target: Server
) -> None:
    writer = Writer(source.host)
    images.index(writer, 8 * KIB)
    places = [f"oci://{end.host}/c/multi:v1" for end in ends]
    command = ("copy", *places, "--allow-unsigned", "--output", "json")
    out, requests = counted(desk, ends, *command)
    assert list(images.lost(target.host, writer.wanted)) == []
    assert len(requests) <= INDEX[target.kind], shown(requests)
    assert_sent_once(requests)
    assert json.loads(out)["kinds"] == KINDS
    out, requests = counted(desk, ends, *command)
    assert json.loads(out)["copied"]["count"] == 0
    assert not [one for one in requests if one.method not in {"GET", "HEAD"}], shown(requests)


@pytest.mark.parametrize("kind", ["docker-registry"], indirect=True)
def test_forty_images_that_share_layers(
    desk: Desk, ends: tuple[Proxy, Proxy], source: Server, target: Server
) -> None:
    writer = Writer(source.host)
    images.shared(writer, 40, 2 * KIB)
    command = mirroring(desk, ends, [job.partition(":")[0] for job in writer.wanted.jobs])
    _, requests = counted(desk, ends, *command)
    assert list(images.lost(target.host, writer.wanted)) == []
    assert len(requests) <= SHARED + 40, shown(requests)  # this source has the API: 40 more
    assert_sent_once(requests)


@pytest.mark.parametrize("kind", ["docker-registry"], indirect=True)
def test_two_hundred_tags_that_need_nothing(
    desk: Desk, ends: tuple[Proxy, Proxy], source: Server, target: Server
) -> None:
    for end in (source, target):
        images.tags(writer := Writer(end.host), 200)
    command = mirroring(desk, ends, ["d/many"])
    _, requests = counted(desk, ends, *command)
    assert len(requests) <= WARM, shown(requests)
    writer = Writer(source.host)
    base = writer.blob("d/many", b"base", LAYER)
    writer.image("d/many", [base], "t007")
    code = desk.ocipack(*command).code
    assert code == 1, "a tag that moved is noticed"


_MEMORY = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
sys.exit(code)
"""
"""A process begins with the peak of the one that it was forked from: so it is forked from this."""


@pytest.mark.parametrize("kind", ["docker-registry"], indirect=True)
def test_memory_does_not_grow_with_layers(
    desk: Desk, source: Server, target: Server, tmp_path: Path
) -> None:
    writer = Writer(source.host)
    images.layer(writer, MEMORY * 2)
    places = [f"oci://{end.host}/a/big:v1" for end in (source, target)]
    command = (sys.executable, "-c", _MEMORY, *OCIPACK, "copy", *places, "--allow-unsigned")
    most = run(command, desk.env(), tmp_path).expect()
    assert int(most) <= MEMORY
    assert list(images.lost(target.host, writer.wanted)) == []


def mirroring(desk: Desk, ends: tuple[Proxy, Proxy], names: list[str]) -> tuple[str, ...]:
    source, target = ends
    said = {
        "apiVersion": "ocipack.dev/v1alpha1",
        "kind": "Mirror",
        "to": f"oci://{target.host}/mirror",
        "unsigned": True,
        "sources": [
            {"image": f"{source.host}/{name}", "to": f"oci://{target.host}/{name}"}
            | ({"tags": ["v1"]} if len(names) > 1 else {"select": {"pattern": ".*"}})
            for name in names
        ],
    }
    path = desk.folder / "mirror.yaml"
    path.write_text(json.dumps(said))
    return ("mirror", "--file", str(path))
