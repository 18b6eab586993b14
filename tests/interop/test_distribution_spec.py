"""The scenarios of the distribution specification (1.1, "Requirements"), section by section.

They are asked with plain HTTP of three servers alike: the registry of our tests, so that it is an
honest double, Debian's and go-containerregistry's. The client's part comes after them, against the
real ones: every operation of a repository as a Store, over a line that is cut.

Where the specification's own suite is at hand (`conformance`, built from its repository), the
registry of our tests has to pass it whole.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import content
import pytest
from interop import servers
from interop.conftest import need
from interop.peers import Missing, find
from interop.wire import CONFIG, INDEX, LAYER, MANIFEST, Repository, digest
from registry import Registry, Switches

from ocipack.copy import copy
from ocipack.errors import NotFound, StoreError
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.reference import Reference
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.transport import Transport
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry import upload
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.store import RegistryStore

OURS = "in-process"
MIB = 1 << 20
BYTES = {"Content-Type": "application/octet-stream"}


@dataclass(frozen=True, slots=True)
class Wire:
    """One repository, asked by the letter; names of headers in lower case."""

    host: str
    name: str
    kind: str

    def ask(
        self, method: str, tail: str, body: bytes | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.host, timeout=20)
        target = tail if tail.startswith("/") else f"/v2/{self.name}/{tail}"
        try:
            connection.request(method, target, body, dict(headers))
            answer = connection.getresponse()
            said = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, said, answer.read()
        finally:
            connection.close()

    def local(self, location: str) -> str:
        """What a Location means, as a path of this server."""
        return location.removeprefix(f"http://{self.host}")

    def begin(self) -> str:
        status, headers, _ = self.ask("POST", "blobs/uploads/")
        assert status == 202
        return self.local(headers["location"])

    def end(self, where: str, data: bytes = b"", name: str = "") -> tuple[int, dict[str, str]]:
        joint = "&" if "?" in where else "?"
        target = f"{where}{joint}digest={name or digest(data)}"
        status, headers, _ = self.ask("PUT", target, data, BYTES)
        return status, headers

    def blob(self, data: bytes) -> dict[str, object]:
        status, headers = self.end(self.begin(), data)
        assert status == 201
        assert self.kind == "refregd" or headers["location"]
        return {"digest": digest(data), "size": len(data)}

    def manifest(self, document: Mapping[str, object], reference: str = "") -> bytes:
        raw = json.dumps(document).encode()
        kind = {"Content-Type": str(document["mediaType"])}
        status, headers, _ = self.ask("PUT", f"manifests/{reference or digest(raw)}", raw, kind)
        assert status == 201
        assert self.kind == "refregd" or headers["location"]
        return raw

    def image(self, mark: bytes, **members: object) -> dict[str, object]:
        parts = [self.blob(b"{}"), self.blob(mark)]
        return {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, **parts[0]},
            "layers": [{"mediaType": LAYER, **parts[1]}],
            **members,
        }


@pytest.fixture(scope="module", params=[OURS, *servers.KINDS])
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    if request.param == OURS:
        with Registry() as registry:
            yield registry.name, OURS
        return
    need(request.param)
    with servers.registry(request.param, tmp_path_factory.mktemp(request.param)) as server:
        yield server.host, request.param


@pytest.fixture
def wire(running: tuple[str, str], request: pytest.FixtureRequest) -> Wire:
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return Wire(running[0], f"spec/{name}", running[1])


# pull


def test_the_api_says_that_it_is_there(wire: Wire) -> None:
    assert wire.ask("GET", "/v2/")[0] == 200


def test_pulling_a_manifest(wire: Wire) -> None:
    raw = wire.manifest(wire.image(b"layer"), "v1")
    for name in ("v1", digest(raw)):
        status, headers, body = wire.ask("GET", f"manifests/{name}", headers={"Accept": MANIFEST})
        assert (status, body, headers["content-type"]) == (200, raw, MANIFEST)
        assert headers["docker-content-digest"] == digest(raw)
        status, headers, body = wire.ask("HEAD", f"manifests/{name}", headers={"Accept": MANIFEST})
        assert (status, body, headers["content-length"]) == (200, b"", str(len(raw)))
    for name in ("v2", digest(b"absent")):
        for method in ("GET", "HEAD"):
            assert wire.ask(method, f"manifests/{name}")[0] == 404


def test_pulling_a_blob(wire: Wire) -> None:
    wire.blob(b"0123456789")
    where = f"blobs/{digest(b'0123456789')}"
    assert wire.ask("GET", where)[::2] == (200, b"0123456789")
    status, headers, _ = wire.ask("HEAD", where)
    assert (status, headers["content-length"]) == (200, "10")
    status, headers, body = wire.ask("GET", where, headers={"Range": "bytes=2-5"})
    assert (status, body, headers["content-range"]) == (206, b"2345", "bytes 2-5/10")
    for method in ("GET", "HEAD"):
        assert wire.ask(method, f"blobs/{digest(b'absent')}")[0] == 404


# push


def test_pushing_a_blob_in_one_request(wire: Wire) -> None:
    target = f"blobs/uploads/?digest={digest(b'one')}"
    status, headers, _ = wire.ask("POST", target, b"one", BYTES)
    assert status in {201, 202}
    if status == 202:  # the registry may want the usual way
        assert wire.end(wire.local(headers["location"]), b"one")[0] == 201
    assert wire.ask("GET", f"blobs/{digest(b'one')}")[2] == b"one"


def test_pushing_a_blob_that_is_another_one(wire: Wire) -> None:
    status, _ = wire.end(wire.begin(), b"content", digest(b"other"))
    assert status == 400
    assert wire.ask("HEAD", f"blobs/{digest(b'other')}")[0] == 404


def test_pushing_a_blob_in_chunks(wire: Wire) -> None:
    where, data = wire.begin(), b"0123456789"
    for start, end in ((0, 4), (4, 10)):
        place = {"Content-Range": f"{start}-{end - 1}"}
        status, headers, _ = wire.ask("PATCH", where, data[start:end], BYTES | place)
        assert (status, headers["range"]) == (202, f"0-{end - 1}")
        where = wire.local(headers["location"])
    status, headers = wire.end(where, b"", digest(data))
    assert status == 201
    assert wire.ask("GET", f"blobs/{digest(data)}")[2] == data


def test_a_chunk_that_does_not_fit(wire: Wire) -> None:
    where, data = wire.begin(), b"0123456789"
    refused = 202 if wire.kind == "docker-registry" else 416  # which looks at the digest alone
    place = {"Content-Range": "3-5"}
    assert wire.ask("PATCH", where, data[3:6], BYTES | place)[0] == refused
    where = wire.begin()
    place = {"Content-Range": "0-3"}
    _, headers, _ = wire.ask("PATCH", where, data[:4], BYTES | place)
    where = wire.local(headers["location"])
    if wire.kind != "refregd":  # go-containerregistry does not say how far an upload is
        status, headers, _ = wire.ask("GET", where)
        assert (status, headers["range"]) == (204, "0-3")
        where = wire.local(headers["location"])
    assert wire.ask("PATCH", where, data[:4], BYTES | place)[0] == refused


def test_pushing_a_blob_as_a_stream(wire: Wire) -> None:
    status, headers, _ = wire.ask("PATCH", wire.begin(), b"streamed", BYTES)
    assert (status, headers["range"]) == (202, "0-7")
    assert wire.end(wire.local(headers["location"]), b"", digest(b"streamed"))[0] == 201
    assert wire.ask("GET", f"blobs/{digest(b'streamed')}")[2] == b"streamed"


def test_mounting_a_blob(wire: Wire) -> None:
    wire.manifest(wire.image(b"shared"), "v1")
    other = Wire(wire.host, f"{wire.name}/other", wire.kind)
    target = f"blobs/uploads/?mount={digest(b'shared')}&from={wire.name}"
    status, headers, _ = other.ask("POST", target)
    assert status == (202 if wire.kind == "refregd" else 201)
    assert wire.kind == "refregd" or headers["location"]
    if status == 201:
        assert other.ask("GET", f"blobs/{digest(b'shared')}")[2] == b"shared"
    status, headers, _ = other.ask("POST", target.replace(digest(b"shared"), digest(b"absent")))
    assert status == 202
    assert headers["location"]


def test_pushing_manifests(wire: Wire) -> None:
    image = wire.image(b"layer")
    raw = wire.manifest(image)
    wire.manifest(image, "v1")
    kind = {"Content-Type": MANIFEST}
    status, _, _ = wire.ask("PUT", f"manifests/{digest(b'other')}", raw, kind)
    assert status == (201 if wire.kind == "refregd" else 400)  # which hashes no manifests
    absent = {"mediaType": LAYER, "digest": digest(b"absent"), "size": 6}
    lacking = json.dumps({**image, "layers": [absent]}).encode()
    status, _, _ = wire.ask("PUT", "manifests/v2", lacking, kind)
    assert status == {OURS: 404, "refregd": 201}.get(wire.kind, 400)  # it may be refused
    document = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [{"mediaType": MANIFEST, "digest": digest(raw), "size": len(raw)}],
    }
    index = wire.manifest(document, "all")
    assert wire.ask("GET", "manifests/all", headers={"Accept": INDEX})[2] == index


# content discovery


def test_listing_tags(wire: Wire) -> None:
    image = wire.image(b"layer")
    names = ["v1", "v2", "v3", "v4"]
    for name in reversed(names):
        wire.manifest(image, name)
    status, _, body = wire.ask("GET", "tags/list")
    listed = json.loads(body)
    assert (status, sorted(listed["tags"])) == (200, names)
    assert wire.kind == "docker-registry" or listed == {"name": wire.name, "tags": names}
    status, headers, body = wire.ask("GET", "tags/list?n=2")
    assert status == 200
    if wire.kind == "docker-registry":
        return  # distribution 2 knows neither pages nor an order of tags
    assert json.loads(body)["tags"] == names[:2]
    assert json.loads(wire.ask("GET", "tags/list?n=2&last=v2")[2])["tags"] == names[2:]
    if wire.kind == OURS:
        target, _, relation = headers["link"].partition(">; ")
        assert relation == 'rel="next"'
        assert json.loads(wire.ask("GET", target[1:])[2])["tags"] == names[2:]


def test_listing_referrers(wire: Wire) -> None:
    raw = wire.manifest(wire.image(b"subject"), "v1")
    subject = {"mediaType": MANIFEST, "digest": digest(raw), "size": len(raw)}
    status, headers, body = wire.ask("GET", f"referrers/{digest(raw)}")
    if wire.kind == "docker-registry":
        assert status == 404
        return
    assert (status, headers["content-type"]) == (200, INDEX)
    assert json.loads(body)["manifests"] == []
    for mark in (b"sbom", b"signature"):
        kind, notes = f"application/{mark.decode()}", {"by": mark.decode()}
        image = wire.image(mark, subject=subject, artifactType=kind, annotations=notes)
        referrer = json.dumps(image).encode()
        status, headers, _ = wire.ask(
            "PUT", f"manifests/{digest(referrer)}", referrer, {"Content-Type": MANIFEST}
        )
        assert status == 201
        assert headers.get("oci-subject", digest(raw)) == digest(raw)
    _, _, body = wire.ask("GET", f"referrers/{digest(raw)}")
    entries = {entry["artifactType"]: entry for entry in json.loads(body)["manifests"]}
    if wire.kind == "refregd":  # which takes the config's type for the artifact's
        assert set(entries) == {CONFIG}
        return
    assert set(entries) == {"application/sbom", "application/signature"}
    status, headers, body = wire.ask(
        "GET", f"referrers/{digest(raw)}?artifactType=application%2Fsbom"
    )
    assert headers["oci-filters-applied"] == "artifactType"
    assert [entry["artifactType"] for entry in json.loads(body)["manifests"]] == [
        "application/sbom"
    ]
    assert entries["application/sbom"]["annotations"] == {"by": "sbom"}


# content management


def test_deleting(wire: Wire) -> None:
    raw = wire.manifest(wire.image(b"layer"), "v1")
    wire.manifest(wire.image(b"other"), "v2")
    status, _, _ = wire.ask("DELETE", f"manifests/{digest(raw)}")
    assert status == 202
    assert wire.ask("GET", f"manifests/{digest(raw)}")[0] == 404
    status, _, _ = wire.ask("DELETE", f"blobs/{digest(b'layer')}")
    assert status == 202
    assert wire.ask("HEAD", f"blobs/{digest(b'layer')}")[0] == 404
    status, _, _ = wire.ask("DELETE", "manifests/v2")
    assert status in {202, 400, 405}
    if status == 202:
        assert wire.ask("GET", "manifests/v2")[0] == 404
    assert wire.ask("DELETE", f"manifests/{digest(b'absent')}")[0] == 404


# the specification's own suite

RESULTS = r"(?m)^  (Skip|Pass|FAIL|Error)\.*:\s+(\d+)$"


def test_the_suite_of_the_specification_passes(tmp_path: Path) -> None:
    try:
        suite = find("conformance")
    except Missing:
        pytest.skip("no conformance suite: tests/interop/peers.sh conformance builds it")
    with Registry(Switches()) as registry:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "OCI_REGISTRY": registry.name,
            "OCI_TLS": "disabled",
            "OCI_RESULTS_DIR": str(tmp_path / "results"),
            "OCI_API_BLOBS_UPLOAD_CANCEL": "true",
            "OCI_API_BLOBS_DIGEST_HEADER": "true",
            "OCI_API_MANIFESTS_DIGEST_HEADER": "true",
        }
        done = subprocess.run(
            [suite], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )
    counts = {name: int(count) for name, count in re.findall(RESULTS, done.stdout)}
    assert done.returncode == 0, done.stdout[-5000:]
    assert (counts["FAIL"], counts["Error"]) == (0, 0)
    assert counts["Pass"] > 800
    assert counts["Skip"] <= 2


# our client against real registries


class Line:
    """A line to a server that is cut: after so many bytes to it, or so many from it, each once."""

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self.target = (host, int(port))
        self.up: list[int] = []
        self.down: list[int] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.name = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)

    def serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            for source, sink, limits in ((client, server, self.up), (server, client, self.down)):
                threading.Thread(
                    target=self.relay, args=(source, sink, limits), daemon=True
                ).start()

    def relay(self, source: socket.socket, sink: socket.socket, limits: list[int]) -> None:
        passed = 0
        try:
            while data := source.recv(65536):
                sink.sendall(data)
                passed += len(data)
                if limits and passed > limits[0]:
                    limits.pop(0)
                    break
        except OSError:
            pass
        for end in (source, sink):  # both at once, as when a machine on the way restarts
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
            finally:
                end.close()


@pytest.fixture
def line(server: servers.Server) -> Iterator[Line]:
    with Line(server.host) as line:
        yield line


def store(host: str, name: str, log: list[str] | None = None) -> RegistryStore:
    patience = Patience(sleep=lambda _: None)
    transport = Transport(patience=patience, debug=log.append if log is not None else None)
    return Registries(transport).store(Reference.parse(f"{host}/{name}"), writes=True)


def big(origin: MemoryStore, mark: bytes, size: int = 8 * MIB) -> Descriptor:
    return content.put(origin, (mark * (size // len(mark) + 1))[:size], LAYER)


def test_a_download_over_a_line_that_is_cut(
    server: servers.Server, line: Line, repository: Repository
) -> None:
    origin = MemoryStore()
    target = big(origin, repository.name.encode())
    store(server.host, repository.name).push(target, origin)
    log: list[str] = []
    line.down += [3 * MIB, 2 * MIB]
    found = b"".join(store(line.name, repository.name, log).fetch(target))
    assert found == origin.content[target.digest]
    assert not line.down
    statuses = [entry.split()[2] for entry in log if entry.startswith("GET")]
    assert statuses == ["200", "206", "206"]


def test_an_upload_over_a_line_that_is_cut(line: Line, repository: Repository) -> None:
    """Neither of these keeps anything of a request that is cut: it is sent anew, as a stream."""
    origin = MemoryStore()
    target = big(origin, repository.name.encode())
    log: list[str] = []
    line.up += [5 * MIB, 6 * MIB]
    store(line.name, repository.name, log).push(target, origin)
    assert not line.up
    assert repository.blob(str(target.digest)) == origin.content[target.digest]
    methods = [entry.split()[0] for entry in log if entry.startswith(("PUT", "PATCH"))]
    assert methods == ["PUT", "PATCH", "PATCH", "PUT"]


def test_an_upload_in_pieces(
    server: servers.Server, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = MemoryStore()
    target = big(origin, repository.name.encode())

    class Pieces(upload._Sending):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self._piece = 3 * MIB

    monkeypatch.setattr(upload, "_Sending", Pieces)
    log: list[str] = []
    store(server.host, repository.name, log).push(target, origin)
    assert repository.blob(str(target.digest)) == origin.content[target.digest]
    assert len([entry for entry in log if entry.startswith("PATCH")]) == 3


def test_everything_that_a_store_does(server: servers.Server, repository: Repository) -> None:
    """Push, find, list, attach, mount, move and read back, by tag and by digest."""
    origin = MemoryStore()
    image = content.image(origin, b"layer", repository.name.encode())
    index = content.index(origin, image, content.image(origin, b"other platform"))
    there = store(server.host, repository.name)
    with pytest.raises(NotFound):
        there.resolve("v1")
    with pytest.raises(StoreError):
        there.tags()
    copy(origin, there, index, tag="v1", was=None)
    assert not repository.missing("v1")
    fresh = store(server.host, repository.name)
    assert fresh.resolve("v1") == fresh.resolve(str(index.digest)) == index
    assert store(server.host, repository.name).at.client.features.referrers is None
    assert list(fresh.referrers(index)) == []
    for mark in (b"one", b"two"):
        copy(origin, fresh, content.image(origin, mark, subject=index))
    assert len(list(store(server.host, repository.name).referrers(index))) == 2
    other = Repository(repository.host, f"{repository.name}/other")
    shared = Registries()
    source, target = (
        shared.store(Reference.parse(f"{server.host}/{one.name}"), writes=True)
        for one in (repository, other)
    )
    copy(source, target, source.resolve("v1"), tag="v2")
    assert not other.missing("v2")
    assert list(target.tags()) == ["v2"]
    assert other.digest("v2") == str(index.digest)
