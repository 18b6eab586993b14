"""What a run says of its requests: `--debug-http` and `--metrics`."""

from __future__ import annotations

import base64
import json
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from registry import Fault, Registry, Switches

from ocipack.cli import Terminated
from ocipack.cli.console import Console
from ocipack.cli.metrics import recorded
from ocipack.cli.registries import Connections

Run = Callable[..., tuple[int, str, str]]
SECRET = "s3cr3t-password"

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def server() -> Iterator[Registry]:
    with Registry() as running:
        running.repository("team/app").tags = {"v1": "sha256:" + "0" * 64}
        yield running


def metrics(file: Path) -> dict[str, float]:
    """Read the text format, strictly; a sample has a type before it."""
    found: dict[str, float] = {}
    types: set[str] = set()
    for line in file.read_text().splitlines():
        if line.startswith("# TYPE "):
            types.add(line.split()[2])
        elif not line.startswith("# HELP "):
            match = re.fullmatch(r'([a-z_]+)(\{(?:[a-z]+="[^"]*",?)+\})? ([0-9.]+)', line)
            assert match, line
            assert match[1] in types
            found[match[1] + (match[2] or "")] = float(match[3])
    return found


@pytest.mark.parametrize("auth", ["basic", "bearer"])
def test_one_line_for_each_request_and_no_secret(
    ocipack: Run, server: Registry, home: Path, auth: str
) -> None:
    server.switches.auth = auth
    server.switches.users = {"user": SECRET}
    file = home / ".docker/config.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"auths": {server.name: {"username": "user", "password": SECRET}}}))
    code, out, err = ocipack("list", f"oci://{server.name}/team/app", "--debug-http")
    assert (code, out) == (0, "v1\n")
    lines = err.splitlines()
    assert len(lines) == len(server.requests)
    shape = r"(GET|POST) http://127\.0\.0\.1:[0-9]+/\S+ (200|401) [0-9]+ ms out=[0-9]+ in=[0-9?]+"
    assert all(re.fullmatch(shape, line) for line in lines), err
    pair = base64.b64encode(f"user:{SECRET}".encode()).decode()
    secrets = [SECRET, pair, *server.tokens]
    assert len(secrets) == (3 if auth == "bearer" else 2)
    assert not [secret for secret in secrets if secret in err]


def test_metrics_of_a_run(ocipack: Run, server: Registry, tmp_path: Path) -> None:
    server.switches.faults = [Fault("tags", 429, {"Retry-After": "0"}, times=1)]
    file = tmp_path / "ocipack.prom"
    code, out, _ = ocipack("list", f"oci://{server.name}/team/app", "--metrics", str(file))
    assert (code, out) == (0, "v1\n")
    found = metrics(file)
    where = f'host="{server.name}",operation="tags_get"'
    assert found[f'ocipack_http_requests_total{{{where},status="200"}}'] == 1
    assert found[f'ocipack_http_requests_total{{{where},status="429"}}'] == 1
    assert found[f"ocipack_http_throttled_total{{{where}}}"] == 1
    assert found[f"ocipack_http_retries_total{{{where}}}"] == 1
    assert found[f"ocipack_http_received_bytes_total{{{where}}}"] > 10
    assert found['ocipack_run_exit_code{command="list"}'] == 0
    assert found['ocipack_run_seconds{command="list"}'] > 0
    assert found['ocipack_run_end_timestamp_seconds{command="list"}'] > 1_700_000_000
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["ocipack.prom"]


@pytest.mark.parametrize(
    ("place", "options", "code"),
    [("oci://{host}/other", (), 3), ("oci://{host}/team/app", ("--ca-file", "missing"), 2)],
)
def test_metrics_of_a_run_that_fails(
    ocipack: Run, server: Registry, tmp_path: Path, place: str, options: tuple[str, ...], code: int
) -> None:
    file = tmp_path / "ocipack.prom"
    file.write_text("what was here before\n")
    arguments = ("list", place.format(host=server.name), *options, "--metrics", str(file))
    assert ocipack(*arguments)[0] == code
    assert metrics(file)['ocipack_run_exit_code{command="list"}'] == code


def test_metrics_of_a_run_that_is_interrupted(
    ocipack: Run, server: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ocipack.stores.registry.store.RegistryStore.tags", interrupt)
    file = tmp_path / "ocipack.prom"
    code, _, _ = ocipack("list", f"oci://{server.name}/team/app", "--metrics", str(file))
    assert code == 130
    assert metrics(file)['ocipack_run_exit_code{command="list"}'] == 130


@pytest.mark.parametrize(
    ("error", "code"), [(Terminated(), 143), (ZeroDivisionError(), 70), (BrokenPipeError(), 141)]
)
def test_metrics_say_how_else_a_run_ends(
    server: Registry, tmp_path: Path, error: BaseException, code: int
) -> None:
    connections = Connections(metrics=str(tmp_path / "m.prom"))
    with pytest.raises(type(error)), recorded(connections, "list", Console()):
        raise error
    assert metrics(tmp_path / "m.prom")['ocipack_run_exit_code{command="list"}'] == code
    assert not server.requests


def test_metrics_of_a_run_that_asks_nobody(ocipack: Run, hello: Path, key: str) -> None:
    options = ("--to", "ocidir://site:v1", "--key", key, "--metrics", "m.prom")
    code, _, err = ocipack("ship", str(hello), *options)
    assert code == 0, err
    found = metrics(Path("m.prom"))
    assert found['ocipack_run_exit_code{command="ship"}'] == 0
    assert not [name for name in found if "http" in name]


def test_metrics_that_cannot_be_written(ocipack: Run, server: Registry) -> None:
    """They do not hide why a run failed, and a run without them is not done."""
    good, bad = f"oci://{server.name}/team/app", f"oci://{server.name}/other"
    code, _, err = ocipack("list", good, "--metrics", "nowhere/m.prom")
    assert (code, "error: nowhere/m.prom: no such file" in err) == (3, True)
    code, _, err = ocipack("list", bad, "--metrics", "nowhere/m.prom")
    assert code == 3
    assert "warning: nowhere/m.prom" in err
    assert "error: GET " in err or "NAME_UNKNOWN" in err


def test_without_metrics_nothing_is_counted(
    ocipack: Run, server: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocipack.stores.http.tally.Tally", lambda: pytest.fail("made"))
    assert ocipack("list", f"oci://{server.name}/team/app")[0] == 0


def test_a_name_that_a_server_chose_stays_in_its_line(ocipack: Run, tmp_path: Path) -> None:
    with Registry(Switches(auth="bearer", realm="https://[::1]:9/x")) as server:
        file = tmp_path / "m.prom"
        ocipack("list", f"oci://{server.name}/a", "--metrics", str(file))
        assert metrics(file)['ocipack_run_exit_code{command="list"}'] == 3
