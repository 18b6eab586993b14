"""Scripts written on oras-py, over our transport: what they get of ours, and what they keep."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import oras.provider
import pytest
import requests
from registry import Fault, Registry as Server

from ocipack.errors import IntegrityError, Misuse, StoreError, Unavailable
from ocipack.stores.auth.config import Credentials
from ocipack.stores.auth.credential import Credential
from ocipack.stores.http.host import Host
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.settings import Settings
from ocipack.stores.http.transport import Transport
from ocipack.stores.oras import Registry, ecr, entered, is_ecr
from ocipack.stores.registry.registries import Registries

CONTENT = b"some content\n" * 100_000
SECRET = "s3cr3t"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture
def client() -> Registry:
    patience = Patience(2, 60, sleep=lambda _: None)
    return Registry(Registries(Transport(patience=patience)))


@pytest.fixture
def pushed(
    server: Server, client: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """What a script pushes; the name under which it pulls it."""
    monkeypatch.chdir(tmp_path)
    Path("app.txt").write_bytes(CONTENT)
    target = f"{server.name}/team/app:v1"
    client.push(target=target, files=["app.txt"], quiet=True)
    server.requests.clear()
    return target


def test_it_is_what_scripts_expect(client: Registry) -> None:
    assert isinstance(client, oras.provider.Registry)


def test_a_script_pushes_and_pulls(
    server: Server, client: Registry, pushed: str, tmp_path: Path
) -> None:
    (file,) = client.pull(target=pushed, outdir=str(tmp_path / "out"))
    assert Path(file).read_bytes() == CONTENT
    assert {seen.headers["user-agent"].partition("/")[0] for seen in server.requests} == {"ocipack"}
    assert client.get_tags(pushed) == ["v1"]
    manifest = client.get_manifest(pushed)
    assert manifest["layers"][0]["digest"] == f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


def test_a_script_pushes_in_pieces(server: Server, client: Registry, pushed: str) -> None:
    Path("other.txt").write_bytes(b"other" * 1000)
    client.push(target=pushed, files=["other.txt"], do_chunked=True, chunk_size=1024, quiet=True)
    assert server.lines("^PATCH")
    (file,) = client.pull(target=pushed, outdir="out")
    assert Path(file).read_bytes() == b"other" * 1000


@pytest.mark.parametrize("act", ["spoil", "endless"])
def test_a_tampered_blob_is_refused(
    server: Server, client: Registry, pushed: str, act: str
) -> None:
    """oras-py itself writes it out as if it were right; here nothing of it is left."""
    server.switches.faults = [Fault("GET .*/blobs/", act=act)]
    with pytest.raises((IntegrityError, StoreError)):
        client.pull(target=pushed, outdir="out")
    assert list(Path("out").iterdir()) == []
    server.switches.faults = []
    (file,) = client.pull(target=pushed, outdir="out")
    assert Path(file).read_bytes() == CONTENT


def test_a_tampered_blob_passes_oras_py_alone(server: Server, pushed: str) -> None:
    """What the test above is worth: without us it would not fail."""
    server.switches.faults = [Fault("GET .*/blobs/", act="spoil")]
    alone = oras.provider.Registry(insecure=True)
    (file,) = alone.pull(target=pushed, outdir="out")
    assert Path(file).read_bytes() != CONTENT
    alone.session.close()


def test_a_tampered_manifest_is_refused(server: Server, client: Registry, pushed: str) -> None:
    server.switches.faults = [Fault("GET .*/manifests/", act="spoil")]
    with pytest.raises(IntegrityError):
        client.pull(target=pushed, outdir="out")
    (digest,) = server.repository("team/app").manifests
    pinned = f"{pushed.removesuffix(':v1')}@{digest}"
    server.switches.faults = [Fault("GET .*/manifests/", act="spoil"), Fault("", act="nodigest")]
    with pytest.raises(IntegrityError, match="content has the digest"):
        client.get_manifest(pinned)


def test_what_is_read_whole_is_checked_too(server: Server, client: Registry, pushed: str) -> None:
    digest = client.get_manifest(pushed)["layers"][0]["digest"]
    assert client.get_blob(pushed, digest).content == CONTENT
    server.switches.faults = [Fault("GET .*/blobs/", act="spoil")]
    with pytest.raises(IntegrityError):
        client.get_blob(pushed, digest)


@pytest.mark.parametrize("room", ["manifests/v1", "tags/list"])
def test_a_document_without_end_is_cut(
    server: Server, client: Registry, pushed: str, room: str
) -> None:
    assert pushed
    server.switches.faults = [Fault(f"GET .*/{room}", act="endless")]
    with pytest.raises(IntegrityError, match="longer than"):
        client.do_request(f"{server.url}/v2/team/app/{room}")
    assert server.endless < 20 << 20


def test_credentials_are_ours_and_stay_at_their_host(
    server: Server, pushed: str, tmp_path: Path
) -> None:
    server.switches.auth = "bearer"
    server.switches.anonymous = ""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"auths": {server.name: {"username": "user", "password": "pass"}}}))
    client = Registry(Registries(Transport(), Credentials([file])))
    with Server(host="127.0.0.2") as other:
        digest = client.get_manifest(pushed)["layers"][0]["digest"]
        other.static["/blob"] = CONTENT
        server.switches.faults = [Fault("GET .*/blobs/", 307, {"Location": f"{other.url}/blob"})]
        assert client.get_blob(pushed, digest).content == CONTENT
        assert "authorization" not in other.requests[0].headers
    nobody = Registry(Registries())
    with pytest.raises(ValueError, match="Issue with"):
        nobody.get_manifest(pushed)


def test_an_upload_is_followed_to_the_host_that_the_registry_names(
    server: Server, client: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.txt").write_bytes(b"small")
    with Server(host="127.0.0.2") as other:
        other.uploads = server.uploads
        server.switches.location = other.url
        with pytest.raises(ValueError, match="Issue with"):  # its blobs are not here
            client.push(target=f"{server.name}/team/app:v1", files=["app.txt"], quiet=True)
        assert other.lines("^PUT")
        assert all("authorization" not in seen.headers for seen in other.requests)


def test_who_names_a_host_does_not_become_its_registry(
    server: Server, client: Registry, tmp_path: Path
) -> None:
    """One registry's upload leads to another: what that one holds is still asked as its own."""
    with Server(host="127.0.0.2") as other:
        server.switches.location = other.url
        client.do_request(f"{server.url}/v2/a/blobs/uploads/", "POST")
        other.switches.auth = "basic"
        file = tmp_path / "config.json"
        auth = {other.name: {"username": "user", "password": "pass"}}
        file.write_text(json.dumps({"auths": auth}))
        fresh = Registry(Registries(Transport(), Credentials([file])))
        fresh.do_request(f"{server.url}/v2/a/blobs/uploads/", "POST")
        assert fresh.do_request(f"{other.url}/v2/").status_code == 200


def test_what_fails_for_a_moment_is_asked_again(
    server: Server, client: Registry, pushed: str
) -> None:
    server.switches.faults = [Fault("GET .*/manifests/", act="reset", times=1)]
    assert client.get_manifest(pushed)["layers"]
    server.switches.faults = [Fault("GET .*/manifests/", act="reset")]
    with pytest.raises(Unavailable):
        client.get_manifest(pushed)


def test_a_gate_holds_for_scripts(server: Server, pushed: str) -> None:
    settings = Settings(allowed=("registry.example",), hosts={server.name: Host(server.name)})
    client = Registry(Registries(Transport(settings)))
    server.requests.clear()
    with pytest.raises(Exception, match="may contact"):
        client.get_manifest(pushed)
    assert not server.requests


def test_what_is_not_there_is_an_answer(server: Server, client: Registry) -> None:
    response = client.do_request(f"{server.url}/v2/team/app/manifests/none")
    assert isinstance(response, requests.Response)
    assert (response.status_code, response.reason) == (404, "Not Found")
    assert response.json()["errors"][0]["code"] == "NAME_UNKNOWN"


def test_nobody_logs_in_through_it(client: Registry) -> None:
    for call in (
        lambda: client.login("user", SECRET),
        lambda: client.auth.set_basic_auth("user", SECRET),
    ):
        with pytest.raises(Misuse) as caught:
            call()
        assert "ocipack login" in str(caught.value) + caught.value.hint
        assert SECRET not in str(caught.value)


# the form of the configuration


def test_a_login_is_written_as_docker_writes_it() -> None:
    before: dict[str, Any] = {"auths": {"a.example": {"auth": "eA=="}}, "credHelpers": {"b": "c"}}
    after = entered(before, "r.example:5000", "me", "pässword:x")
    pair = base64.b64encode("me:pässword:x".encode()).decode()
    assert after == {
        "auths": {"a.example": {"auth": "eA=="}, "r.example:5000": {"auth": pair}},
        "credHelpers": {"b": "c"},
    }


# ECR

ECR = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
CHALLENGE = f'Basic realm="https://{ECR}/",service="ecr.amazonaws.com"'


class Aws:
    """What boto3 is to us."""

    def __init__(self, password: str = SECRET, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.password, self.error = password, error

    def client(self, service: str, region_name: str) -> Any:
        self.asked.append((service, region_name))
        return SimpleNamespace(get_authorization_token=self.token)

    def token(self) -> Any:
        if self.error is not None:
            raise self.error
        token = base64.b64encode(f"AWS:{self.password}".encode()).decode()
        return {"authorizationData": [{"authorizationToken": token}]}


def test_a_password_of_ecr(monkeypatch: pytest.MonkeyPatch) -> None:
    aws = Aws()
    monkeypatch.setitem(sys.modules, "boto3", aws)
    assert is_ecr(ECR)
    assert ecr(ECR, CHALLENGE) == Credential(f"AWS, for {ECR}", "AWS", SECRET)
    assert aws.asked == [("ecr", "eu-central-1")]


def test_ecr_without_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(Misuse, match="boto3 is needed") as caught:
        ecr(ECR, CHALLENGE)
    assert "ecr-login" in caught.value.hint


def test_aws_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", Aws(error=RuntimeError(SECRET)))
    with pytest.raises(StoreError, match=r"no password \(RuntimeError\)") as caught:
        ecr(ECR, CHALLENGE)
    assert SECRET not in str(caught.value) + caught.value.hint


@pytest.mark.parametrize(
    "challenge",
    [
        'Basic realm="https://evil.example/",service="ecr.amazonaws.com"',
        'Bearer realm="https://evil.example/token",service="evil"',
        f'Basic realm="https://9{ECR[1:]}/",service="ecr.amazonaws.com"',
        "",
    ],
)
def test_a_challenge_that_is_not_of_ecr(monkeypatch: pytest.MonkeyPatch, challenge: str) -> None:
    """Nobody is asked where a stranger's challenge says."""
    monkeypatch.setitem(sys.modules, "boto3", Aws())
    monkeypatch.setattr(requests.Session, "request", lambda *_, **__: pytest.fail("it was asked"))
    with pytest.raises((StoreError, IntegrityError)):
        ecr(ECR, challenge)


@pytest.mark.parametrize(
    ("registry", "good"),
    [
        (ECR, True),
        ("public.ecr.aws", False),
        (f"{ECR}.evil.example", False),
        ("evil.example", False),
        (f"x{ECR}", False),
    ],
)
def test_which_registries_are_of_ecr(registry: str, good: bool) -> None:  # noqa: FBT001 - a table of cases
    assert is_ecr(registry) == good
