"""A real registry with accounts: our login serves other tools, and theirs serves us."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop import servers
from interop.peers import OCIPACK, PASSWORD, Desk

USER = "deployer"
HASH = "$2y$05$abcdefghijklmnopqrstuuZ0Fx87Pb/Aqb0E90lfvCwzXnaFKUHpS"  # bcrypt of PASSWORD


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """A registry that lets in nobody else."""
    accounts = tmp_path / "htpasswd"
    accounts.write_text(f"{USER}:{HASH}\n")
    auth = {"htpasswd": {"realm": "here", "path": str(accounts)}}
    with servers.registry("docker-registry", tmp_path, auth=auth) as running:
        yield running.host


def log_in(desk: Desk, host: str, password: str = PASSWORD) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OCIPACK, "login", host, "--username", USER, "--password-stdin"],
        input=password,
        env=desk.env(),
        cwd=desk.folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.interop("docker-registry")
def test_a_login_is_tried_at_the_registry_and_works_from_then_on(desk: Desk, host: str) -> None:
    where = f"oci://{host}/team/app"
    refused = desk.ocipack("list", where)
    refused.expect(3)
    assert "ocipack login" in refused.err
    wrong = log_in(desk, host, "wrong")
    assert wrong.returncode == 3
    assert not (desk.folder / ".docker").exists()
    done = log_in(desk, host)
    assert done.returncode == 0, done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    file = desk.folder / ".docker/config.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    checked = desk.ocipack("registry", "check", f"{host}/team/app", "--write").expect()
    assert f"auth         yes      a password; credentials: {file}" in checked
    desk.ocipack("logout", host).expect()
    desk.ocipack("list", where).expect(3)


@pytest.mark.interop("docker-registry", "crane", "oras")
def test_other_tools_read_what_we_keep(desk: Desk, host: str) -> None:
    assert log_in(desk, host).returncode == 0
    (desk.folder / "file.txt").write_text("content")
    desk.tool("oras", "push", "--plain-http", f"{host}/team/app:v1", "file.txt").expect()
    assert desk.tool("crane", "ls", f"{host}/team/app").expect() == "v1"


@pytest.mark.interop("docker-registry", "crane")
def test_we_read_what_other_tools_keep_and_keep_what_they_wrote(desk: Desk, host: str) -> None:
    desk.tool("crane", "auth", "login", host, "-u", USER, "-p", PASSWORD).expect()
    desk.ocipack("registry", "check", host).expect()
    before = json.loads((desk.folder / ".docker/config.json").read_text())
    assert log_in(desk, host).returncode == 0
    after = json.loads((desk.folder / ".docker/config.json").read_text())
    assert after["auths"][host]["auth"] == before["auths"][host]["auth"]
