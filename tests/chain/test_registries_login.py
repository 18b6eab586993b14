"""`ocipack login` and `logout`: tried first, kept as docker keeps it, and never shown."""

from __future__ import annotations

import base64
import io
import json
import os
import pty
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from registry import Fault, Registry, Switches

from ocipack.cli.registries import Connections
from ocipack.errors import Misuse, Unavailable
from ocipack.stores.auth.helper import Helpers
from ocipack.stores.auth.keeping import TRIES, Keeper

Run = Callable[..., tuple[int, str, str]]
SECRET = "s3cr3t-password"

pytestmark = pytest.mark.usefixtures("home")

HELPER = """\
#!{python}
import json, os, sys
path = os.environ["HOME"] + "/kept.json"
kept = json.load(open(path)) if os.path.exists(path) else {{}}
said = sys.stdin.read()
if sys.argv[1] == "store":
    entry = json.loads(said)
    kept[entry["ServerURL"]] = [entry["Username"], entry["Secret"]]
elif said.strip() not in kept:
    sys.exit("credentials not found in native keychain")
elif sys.argv[1] == "erase":
    del kept[said.strip()]
else:
    user, secret = kept[said.strip()]
    print(json.dumps({{"ServerURL": said.strip(), "Username": user, "Secret": secret}}))
json.dump(kept, open(path, "w"))
"""


@pytest.fixture(params=["basic", "bearer"])
def server(request: pytest.FixtureRequest) -> Iterator[Registry]:
    switches = Switches(auth=request.param, users={"user": SECRET}, anonymous="")
    with Registry(switches) as running:
        running.repository("team/app").tags = {"v1": "sha256:" + "0" * 64}
        yield running


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Put bytes on standard input."""

    def put(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


Typed = Callable[[bytes], None]


def log_in(ocipack: Run, typed: Typed, registry: str, *more: str, password: str = SECRET) -> str:
    typed(f"{password}\n".encode())
    code, out, err = ocipack("login", registry, "-u", "user", "--password-stdin", *more)
    assert (code, out) == (0, ""), err
    assert SECRET not in err
    return err


def config(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / ".docker/config.json").read_text())
    return found


def pair(password: str = SECRET) -> dict[str, str]:
    return {"auth": base64.b64encode(f"user:{password}".encode()).decode()}


def helper(home: Path, monkeypatch: pytest.MonkeyPatch, text: str = HELPER) -> None:
    program = home / "bin/docker-credential-test"
    program.parent.mkdir()
    program.write_text(text.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def test_who_has_logged_in_is_let_in(
    ocipack: Run, typed: Typed, server: Registry, home: Path
) -> None:
    where = f"oci://{server.name}/team/app"
    assert ocipack("list", where)[0] == 3
    err = log_in(ocipack, typed, server.name)
    assert f"logged in at {server.name} as user; kept in {home}/.docker/config.json" in err
    assert "unencrypted" in err
    assert config(home) == {"auths": {server.name: pair()}}
    assert ocipack("list", where)[:2] == (0, "v1\n")
    code, _, err = ocipack("logout", server.name)
    assert (code, f"forgot {server.name} in {home}/.docker/config.json" in err) == (0, True)
    assert config(home) == {"auths": {}}
    assert ocipack("list", where)[0] == 3
    code, _, err = ocipack("logout", server.name)
    assert (code, f"nothing was kept for {server.name}" in err) == (0, True)


def test_nobody_else_may_read_the_file_and_nothing_else_in_it_changes(
    ocipack: Run, typed: Typed, server: Registry, home: Path
) -> None:
    file = home / ".docker/config.json"
    file.parent.mkdir(0o755)
    before = {
        "HttpHeaders": {"X": "ü\ud800"},
        "auths": {
            "other.example": {"auth": "eDp5"},
            f"https://{server.name}/v1/": {"auth": "eDp5"},
        },
        "psFormat": "table",
    }
    file.write_text(json.dumps(before))
    file.chmod(0o644)
    log_in(ocipack, typed, server.name)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert config(home) == before | {
        "auths": {"other.example": {"auth": "eDp5"}, server.name: pair()}
    }
    assert [path.name for path in file.parent.iterdir()] == ["config.json"]


def test_a_new_directory_is_nobody_elses(
    ocipack: Run, typed: Typed, server: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "there"))
    log_in(ocipack, typed, server.name)
    assert stat.S_IMODE((tmp_path / "there").stat().st_mode) == 0o700
    assert json.loads((tmp_path / "there/config.json").read_text())["auths"]


def test_a_link_stays_a_link(ocipack: Run, typed: Typed, server: Registry, home: Path) -> None:
    """Some people keep their settings elsewhere, and link to them."""
    (home / "real.json").write_text("{}")
    (home / ".docker").mkdir()
    (home / ".docker/config.json").symlink_to("../real.json")
    log_in(ocipack, typed, server.name)
    assert (home / ".docker/config.json").is_symlink()
    assert server.name in json.loads((home / "real.json").read_text())["auths"]


def test_an_old_identity_does_not_outlive_a_new_password(
    ocipack: Run, typed: Typed, server: Registry, home: Path
) -> None:
    (home / ".docker").mkdir()
    old = {"auths": {server.name: {"auth": "eDp5", "identitytoken": "old", "registrytoken": "x"}}}
    (home / ".docker/config.json").write_text(json.dumps(old))
    log_in(ocipack, typed, server.name)
    assert config(home)["auths"] == {server.name: pair()}


def test_a_wrong_password_is_not_kept(
    ocipack: Run, typed: Typed, server: Registry, home: Path
) -> None:
    typed(b"wrong-password")
    code, out, err = ocipack("login", server.name, "-u", "user", "--password-stdin")
    assert (code, out) == (3, "")
    assert "401 UNAUTHORIZED" in err
    assert "what was given" in err
    assert "wrong-password" not in err
    assert not (home / ".docker").exists()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the password is empty"),
        (b"\n", "the password is empty"),
        (b"two\nlines\n", "more than one line"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x" * 70_000, "more than 65536 bytes"),
    ],
)
def test_what_is_no_password(ocipack: Run, typed: Typed, data: bytes, words: str) -> None:
    typed(data)
    code, _, err = ocipack("login", "r.example", "-u", "user", "--password-stdin")
    assert (code, words in err) == (2, True), err


def test_a_password_is_no_argument(ocipack: Run, typed: Typed, home: Path) -> None:
    typed(b"")
    for arguments in (("--password", SECRET), ("-p", SECRET), (SECRET,)):
        code, _, err = ocipack("login", "r.example", "-u", "user", *arguments)
        assert code == 2
    typed(b"")
    code, _, err = ocipack("login", "r.example", "-u", "user")
    assert (code, "--password-stdin" in err) == (2, True)
    typed(b"x")
    code, _, err = ocipack("login", "r.example", "--password-stdin")
    assert (code, "--username" in err) == (2, True)
    assert not (home / ".docker").exists()


def test_on_a_terminal_both_are_asked_for_and_the_password_is_not_shown(
    server: Registry, home: Path
) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ocipack", "login", server.name],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        start_new_session=True,
    )
    os.close(slave)
    shown = b""

    def wait_for(words: bytes) -> None:
        nonlocal shown
        while words not in shown:
            shown += os.read(master, 4096)

    wait_for(b"Username: ")
    os.write(master, b"user\n")
    wait_for(b"Password of the account: ")
    os.write(master, f"{SECRET}\n".encode())
    wait_for(b"kept in")
    assert process.wait(60) == 0
    os.close(master)
    assert SECRET.encode() not in shown
    assert config(home)["auths"] == {server.name: pair()}


def test_who_asks_for_nothing_proves_nothing(ocipack: Run, typed: Typed, home: Path) -> None:
    with Registry() as server:
        err = log_in(ocipack, typed, server.name)
        assert f"warning: {server.name} asked for no credentials" in err
        assert config(home)["auths"] == {server.name: pair()}


def test_a_registry_that_fails_proves_nothing(ocipack: Run, typed: Typed, home: Path) -> None:
    with Registry(Switches(faults=[Fault("", 404)])) as server:
        typed(SECRET.encode())
        code, _, _ = ocipack("login", server.name, "-u", "user", "--password-stdin")
    assert code == 3
    assert not (home / ".docker").exists()


def test_docker_hub_has_the_name_that_docker_gives_it(home: Path) -> None:
    keeper = Connections(environment={"HOME": str(home)}).keeper()
    keeper.keep("docker.io", "user", SECRET, lambda d, k, *_: {**d, "auths": {k: {}}})
    assert list(config(home)["auths"]) == ["https://index.docker.io/v1/"]
    assert keeper.forget("docker.io")
    assert config(home)["auths"] == {}


@pytest.mark.parametrize("member", ["credsStore", "credHelpers"])
def test_a_helper_keeps_it_where_there_is_one(
    ocipack: Run,
    typed: Typed,
    server: Registry,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    member: str,
) -> None:
    helper(home, monkeypatch)
    said = "test" if member == "credsStore" else {server.name: "test"}
    (home / ".docker").mkdir()
    (home / ".docker/config.json").write_text(
        json.dumps({member: said, "auths": {server.name: {"auth": "eDp5"}}})
    )
    err = log_in(ocipack, typed, server.name)
    assert "kept in docker-credential-test" in err
    assert "unencrypted" not in err
    assert json.loads((home / "kept.json").read_text()) == {server.name: ["user", SECRET]}
    assert config(home) == {member: said, "auths": {server.name: {}}}
    assert ocipack("list", f"oci://{server.name}/team/app")[:2] == (0, "v1\n")
    assert ocipack("logout", server.name)[0] == 0
    assert json.loads((home / "kept.json").read_text()) == {}
    assert config(home) == {member: said, "auths": {}}


def test_a_helper_that_fails_keeps_nothing(
    ocipack: Run, typed: Typed, server: Registry, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper(home, monkeypatch, "#!/bin/sh\ncat\nexit 1\n")
    (home / ".docker").mkdir()
    before = json.dumps({"credsStore": "test"})
    (home / ".docker/config.json").write_text(before)
    typed(SECRET.encode())
    code, out, err = ocipack("login", server.name, "-u", "user", "--password-stdin")
    assert (code, "docker-credential-test failed" in err) == (3, True)
    assert SECRET not in out + err
    assert (home / ".docker/config.json").read_text() == before


@pytest.mark.parametrize("text", ["[]", "{", '{"auths": []}', '{"auths": {"a": 1}}'])
def test_a_file_that_docker_could_not_read_is_left_alone(
    ocipack: Run, typed: Typed, server: Registry, home: Path, text: str
) -> None:
    (home / ".docker").mkdir()
    file = home / ".docker/config.json"
    file.write_text(text)
    typed(SECRET.encode())
    code, _, err = ocipack("login", server.name, "-u", "user", "--password-stdin")
    assert (code, str(file) in err) == (2, True)
    assert file.read_text() == text


def test_what_another_login_writes_meanwhile_stays(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text("{}")
    others: list[dict[str, Any]] = [{"auths": {f"{name}.example": {}}} for name in ("a", "b")]
    met = iter(others)

    def enter(document: dict[str, Any], key: str, *_: str) -> dict[str, Any]:
        other = next(met, None)
        if other is not None:
            file.write_text(json.dumps(other))
        return {**document, "auths": {**document["auths"], key: {"auth": "eDp5"}}}

    def write(path: Path, data: bytes) -> None:
        path.write_bytes(data)

    keeper = Keeper(file, Helpers({}), write)
    keeper.keep("r.example", "user", SECRET, enter)
    assert json.loads(file.read_text())["auths"].keys() == {"b.example", "r.example"}


def test_giving_up_has_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    count = 0

    def enter(document: dict[str, Any], *_: str) -> dict[str, Any]:
        nonlocal count
        count += 1
        file.write_text(json.dumps({"count": count}))
        return {**document, "x": 1}

    keeper = Keeper(file, Helpers({}), lambda *_: None)
    with pytest.raises(Unavailable, match="somebody else changes it"):
        keeper.keep("r.example", "user", SECRET, enter)
    assert count == TRIES


def test_there_must_be_a_place_to_keep_it() -> None:
    with pytest.raises(Misuse, match="nowhere to keep"):
        Connections(environment={}).keeper()


def test_a_password_of_ecr(
    ocipack: Run, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """AWS is asked in the region that the registry's name says, with whoever's credentials."""
    name = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
    token = base64.b64encode(f"AWS:{SECRET}".encode()).decode()
    answer = {"authorizationData": [{"authorizationToken": token}]}
    made = SimpleNamespace(get_authorization_token=lambda: answer)
    aws = SimpleNamespace(client=lambda *_, **__: made)
    monkeypatch.setitem(sys.modules, "boto3", aws)
    realm = f'Basic realm="https://{name}/",service="ecr.amazonaws.com"'
    switches = Switches(auth="basic", users={"AWS": SECRET}, challenge=[realm])
    with Registry(switches) as server:
        settings = tmp_path / "r.yaml"
        settings.write_text(
            "apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\nregistries:\n"
            f"- {{host: {name}, connect: '{server.name}', plainHTTP: true}}\n"
        )
        code, _, err = ocipack("login", name, "--registries", str(settings))
    assert code == 0, err
    assert SECRET not in err
    assert config(home)["auths"] == {name: {"auth": token}}
