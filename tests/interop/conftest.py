"""Real registries and real tools for the tests of this directory."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop import servers
from interop.peers import Desk, Missing, find
from interop.wire import Repository

REQUIRED = os.environ.get("OCIPACK_INTEROP") == "required"
_COUNT = itertools.count(1)


def need(*names: str) -> None:
    """Skip the test if a tool is missing; fail it where everything must be there."""
    try:
        for name in names:
            find(name)
    except Missing as missing:
        if REQUIRED:
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(autouse=True)
def _tools(request: pytest.FixtureRequest) -> None:
    """Hold every test to its `@pytest.mark.interop("tool", …)`."""
    for mark in request.node.iter_markers("interop"):
        need(*mark.args)


@pytest.fixture(scope="session", params=servers.KINDS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[servers.Server]:
    """Each of the real registries in turn."""
    need(request.param)
    with servers.registry(request.param, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="session")
def proxy(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[servers.Proxy]:
    """A proxy before the registry, which remembers every request."""
    need("countproxy")
    with servers.counting(server.host, tmp_path_factory.mktemp("countproxy")) as running:
        yield running


@pytest.fixture
def repository(server: servers.Server) -> Repository:
    """A repository that is still empty."""
    return Repository(server.host, f"interop/{os.getpid()}/{next(_COUNT)}")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty working directory."""
    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(folder)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Key pairs by the name of their owner, without suffix: alice's and carol's are ours."""
    desk = Desk(tmp_path_factory.mktemp("keys"))
    for name in ("alice", "carol"):
        desk.ocipack("keys", "generate", "-o", name).expect()
    made = ["alice", "carol"]
    for version, name in ((2, "bob"), (3, "dave")):
        try:
            find(f"cosign{version}")
        except Missing:
            continue
        desk.tool(f"cosign{version}", "generate-key-pair", "--output-key-prefix", name).expect()
        made.append(name)
    return {name: str(desk.folder / name) for name in made}
