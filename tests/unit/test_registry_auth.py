"""Credentials, helpers, challenges, realms, tokens; no host sees a header that is not its own."""

from __future__ import annotations

import base64
import json
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from content import image
from hypothesis import given, strategies as st
from registry import Fault, Registry, Switches

from ocipack.copy import copy
from ocipack.errors import Denied, IntegrityError, Misuse, OcipackError, StoreError
from ocipack.oci.reference import Reference
from ocipack.stores.auth import challenge, realm
from ocipack.stores.auth.config import Credentials, DockerConfig, normal
from ocipack.stores.auth.credential import Credential
from ocipack.stores.auth.helper import Helpers
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.settings import Settings
from ocipack.stores.http.transport import Transport
from ocipack.stores.http.url import Url
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.store import RegistryStore

SECRET = "s3cr3t"
USER_PASS = base64.b64encode(b"user:pass").decode()


def config(tmp_path: Path, document: object, name: str = "config.json") -> Path:
    path = tmp_path / name
    path.write_text(json.dumps(document))
    return path


def found(tmp_path: Path, document: object, registry: str, repository: str = "a/b") -> Credential:
    return Credentials([config(tmp_path, document)]).find(registry, repository)


# configuration


@pytest.mark.parametrize(
    ("key", "registry"),
    [
        ("r.example", "r.example"),
        ("r.example:5000", "r.example:5000"),
        ("https://r.example", "r.example"),
        ("https://r.example/v1/", "r.example"),
        ("http://r.example:5000/v2/", "r.example:5000"),
        ("R.Example", "r.example"),
        ("https://r.example/some/path", "r.example"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("docker.io", "docker.io"),
        ("registry-1.docker.io", "docker.io"),
        ("r.example/v2", "r.example"),
    ],
)
def test_a_key_names_a_registry_in_any_spelling(tmp_path: Path, key: str, registry: str) -> None:
    assert normal(key) == registry
    got = found(tmp_path, {"auths": {key: {"auth": USER_PASS}}}, registry)
    assert (got.username, got.password) == ("user", "pass")
    assert got.source == str(tmp_path / "config.json")


@pytest.mark.parametrize(
    "other", ["example", "r.example:5000", "sub.r.example", "r.example.evil", "evil-r.example"]
)
def test_credentials_go_by_exact_host(tmp_path: Path, other: str) -> None:
    got = found(tmp_path, {"auths": {"r.example": {"auth": USER_PASS}}}, other)
    assert got.is_anonymous
    assert got.source == f"anonymous; nothing for {other} in {tmp_path}/config.json"


def test_the_most_particular_key_wins(tmp_path: Path) -> None:
    def auth(user: str) -> Mapping[str, str]:
        return {"username": user, "password": "p"}

    document = {
        "auths": {
            "r.example": auth("registry"),
            "r.example/team": auth("team"),
            "r.example/team/app": auth("app"),
        }
    }
    for repository, user in (
        ("team/app", "app"),
        ("team/app/sub", "app"),
        ("team/application", "team"),
        ("team", "team"),
        ("teams/app", "registry"),
    ):
        assert found(tmp_path, document, "r.example", repository).username == user


def test_tokens_and_odd_secrets(tmp_path: Path) -> None:
    colon = base64.b64encode(b"robot$x:a:b\0").decode()
    document = {
        "auths": {
            "a.example": {"identitytoken": "id", "auth": base64.b64encode(b"0000:").decode()},
            "b.example": {"registrytoken": "rt"},
            "c.example": {"auth": colon},
        }
    }
    assert found(tmp_path, document, "a.example").identity_token == "id"
    assert found(tmp_path, document, "b.example").registry_token == "rt"
    odd = found(tmp_path, document, "c.example")
    assert (odd.username, odd.password) == ("robot$x", "a:b")
    assert base64.b64decode(odd.basic.removeprefix("Basic ")) == b"robot$x:a:b"
    assert "a:b" not in repr(odd)


def test_the_first_file_that_has_it_decides(tmp_path: Path) -> None:
    first = config(tmp_path, {"auths": {"a.example": {"auth": USER_PASS}}}, "first.json")
    second = config(
        tmp_path,
        {
            "auths": {
                "a.example": {"username": "second", "password": "p"},
                "b.example": {"username": "second", "password": "p"},
            }
        },
        "second.json",
    )
    credentials = Credentials([tmp_path / "missing.json", first, second])
    assert credentials.find("a.example", "x").username == "user"
    assert credentials.find("b.example", "x").username == "second"
    nothing = credentials.find("c.example", "x")
    assert nothing.source == f"anonymous; nothing for c.example in {first}, {second}"
    assert Credentials().find("c.example", "x").source.endswith("in any configuration")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"auths":[]}',
        '{"auths":{"r.example":"x"}}',
        '{"auths":{"r.example":{"auth":5}}}',
        '{"auths":{"r.example":{"auth":"%%%s3cr3t"}}}',
        '{"auths":{"r.example":{"auth":"czNjcjN0"}}}',
        '{"credHelpers":{"r.example":5}}',
        '{"credsStore":{}}',
        "[" * 100_000,
    ],
)
def test_a_configuration_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(Misuse, match=r"config\.json") as caught:
        Credentials([path]).find("r.example", "x")
    assert SECRET not in str(caught.value)


def test_a_configuration_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot be read"):
        Credentials([tmp_path]).find("r.example", "x")


# helpers


HELPER = """#!{python}
import os, sys
asked = sys.stdin.read()
open({log!r}, "a").write(asked + " " + sys.argv[1] + " " + os.environ.get("LEAK", "") + "\\n")
{script}
"""

Install = Callable[..., Helpers]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a helper on a path of its own."""
    monkeypatch.setenv("LEAK", SECRET)

    def make(script: str, name: str = "test", **options: Any) -> Helpers:
        path = tmp_path / "bin" / f"docker-credential-{name}"
        path.parent.mkdir(exist_ok=True)
        log = str(tmp_path / "log")
        path.write_text(HELPER.format(python=sys.executable, log=log, script=script))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return Helpers({"PATH": str(path.parent)}, **options)

    return make


def answer(user: str, secret: str) -> str:
    return (
        f"print({json.dumps(json.dumps({'ServerURL': 'x', 'Username': user, 'Secret': secret}))})"
    )


def test_a_helper_is_asked_once_a_registry(tmp_path: Path, install: Install) -> None:
    helpers = install(answer("me", SECRET))
    credentials = Credentials([config(tmp_path, {"credsStore": "test"})], helpers)
    for repository in ("a", "b"):
        got = credentials.find("r.example:5000", repository)
        assert (got.username, got.password) == ("me", SECRET)
        assert got.source == "docker-credential-test"
    credentials.find("docker.io", "library/x")
    asked = (tmp_path / "log").read_text().splitlines()
    assert asked == ["r.example:5000 get ", "https://index.docker.io/v1/ get "]
    assert SECRET not in repr(credentials.find("r.example:5000", "c"))


def test_a_helper_may_hold_an_identity_token(tmp_path: Path, install: Install) -> None:
    helpers = install(answer("<token>", SECRET))
    got = Credentials([config(tmp_path, {"credsStore": "test"})], helpers).find("r.example", "a")
    assert got.identity_token == SECRET
    assert not got.username


def test_the_helper_of_a_registry_comes_before_the_store_and_that_before_the_file(
    tmp_path: Path, install: Install
) -> None:
    install("print('credentials not found in native keychain'); sys.exit(1)", "empty")
    helpers = install(answer("own", "x"), "own")
    document = {
        "credHelpers": {"own.example": "own"},
        "credsStore": "empty",
        "auths": {"own.example": {"auth": USER_PASS}, "file.example": {"auth": USER_PASS}},
    }
    credentials = Credentials([config(tmp_path, document)], helpers)
    assert credentials.find("own.example", "a").username == "own"
    assert credentials.find("file.example", "a").username == "user"
    assert credentials.find("none.example", "a").is_anonymous


@pytest.mark.parametrize(
    "script",
    [
        "print('credentials not found in native keychain'); sys.exit(1)",
        "sys.stderr.write('Credentials Not Found'); sys.exit(1)",
        "print('no credentials server URL'); sys.exit(1)",
        answer("", ""),
    ],
)
def test_a_helper_that_knows_nothing_means_anonymous(install: Install, script: str) -> None:
    assert install(script).get("test", "r.example") is None


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (f"print('{SECRET}'); sys.stderr.write('{SECRET}'); sys.exit(3)", "exit code 3"),
        (f"print('{SECRET}')", "no usable answer"),
        ("print('[]')", "no usable answer"),
        ('print(\'{"Username": 1, "Secret": "s3cr3t"}\')', "no usable answer"),
        ("print('x' * 300_000)", "no usable answer"),
        ("print('[' * 100_000)", "no usable answer"),
    ],
)
def test_a_helper_that_fails_is_named_and_not_quoted(
    install: Install, script: str, words: str
) -> None:
    with pytest.raises(Denied, match=f"docker-credential-test .*{words}") as caught:
        install(script).get("test", "r.example")
    assert SECRET not in str(caught.value) + caught.value.hint


def test_a_helper_that_hangs_is_stopped(install: Install) -> None:
    def hang(*_: object, timeout: float, **__: object) -> subprocess.CompletedProcess[bytes]:
        raise subprocess.TimeoutExpired("x", timeout, output=SECRET.encode())

    with pytest.raises(Denied, match=r"gave no answer for r\.example in 5 s") as caught:
        install("", timeout=5, run=hang).get("test", "r.example")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["../x", "a/b", "", "a b", "-x"])
def test_a_helper_is_found_on_the_path_alone(install: Install, name: str) -> None:
    with pytest.raises(Misuse, match="not the name of a credential helper"):
        install("").get(name, "r.example")


def test_a_helper_that_is_missing(install: Install) -> None:
    with pytest.raises(Misuse, match=r"names docker-credential-gone for r\.example") as caught:
        install("").get("gone", "r.example")
    assert "credHelpers or credsStore" in caught.value.hint


# clouds: what their helpers give, and what their registries do with it


def counting(user: str) -> str:
    """A helper whose secret is another one each time."""
    body = json.dumps({"ServerURL": "x", "Username": user, "Secret": "SECRET"})
    count = "n = open(sys.argv[0] + '.n', 'a+'); n.write('x'); n.seek(0); n = len(n.read())"
    return f"{count}; print({json.dumps(body)}.replace('SECRET', 'secret-%d' % n))"


@pytest.mark.parametrize("auth", ["basic", "bearer"])
def test_what_a_helper_gave_is_renewed_when_it_was_refused_later(
    tmp_path: Path, install: Install, clock: Clock, auth: str
) -> None:
    """As on clouds, where it lives for an hour."""
    helpers = install(counting("oauth2accesstoken"))
    with Registry(Switches(auth=auth, users={"oauth2accesstoken": "secret-1"})) as server:
        files = [config(tmp_path, {"credHelpers": {server.name: "test"}})]
        patience = Patience(1, sleep=lambda _: None, monotonic=clock)
        credentials = Credentials(files, helpers, monotonic=clock)
        registries = Registries(Transport(patience=patience), credentials)
        store = registries.store(Reference.parse(f"{server.name}/team/app"), writes=True)
        ship(store)
        server.switches.users = {"oauth2accesstoken": "secret-2"}
        server.tokens.clear()
        clock.now = 299
        with pytest.raises(Denied):
            store.resolve("v1")
        assert (tmp_path / "log").read_text().count("get") == 1
        clock.now = 4000
        store.resolve("v1")
        assert (tmp_path / "log").read_text().count("get") == 2
        server.tokens.clear()
        server.switches.users = {"oauth2accesstoken": "secret-9"}
        with pytest.raises(Denied):
            store.resolve("v1")
        assert (tmp_path / "log").read_text().count("get") == 2, "not before its time"


def test_what_does_not_come_from_a_helper_is_not_looked_for_again(
    server: Registry, login: Login, clock: Clock
) -> None:
    store = login(server)
    ship(store)
    server.switches.users = {"user": "another"}
    server.tokens.clear()
    clock.now = 4000
    server.requests.clear()
    with pytest.raises(Denied):
        store.resolve("v1")
    assert len(server.requests) <= 3


@pytest.mark.parametrize(
    ("user", "secret"),
    [
        ("AWS", "eyJwYXlsb2FkIjoi" + "a" * 2000),  # Amazon ECR: Basic, a token of 12 hours
        ("oauth2accesstoken", "ya29.a0-token"),  # Google: an access token
        ("_json_key", '{\n  "type": "service_account",\n  "private_key": "-----BEGIN\\n"\n}\n'),
        ("_dcgcloud_token", "ya29.token"),
        ("gitlab-ci-token", "glcbt-64_token"),  # GitLab: CI_REGISTRY_USER, CI_JOB_TOKEN
        ("github-actor", "ghs_token"),  # GitHub: any name, GITHUB_TOKEN
        ("robot$team+ci", "a:b"),  # Harbor
    ],
)
def test_the_passwords_of_clouds_and_ci(
    server: Registry, tmp_path: Path, install: Install, user: str, secret: str
) -> None:
    server.switches.users = {user: secret}
    files = [config(tmp_path, {"credHelpers": {server.name: "test"}})]
    credentials = Credentials(files, install(answer(user, secret)))
    store = Registries(credentials=credentials).store(
        Reference.parse(f"{server.name}/team/app"), writes=True
    )
    ship(store)
    assert saw(server)[0] == f"Basic {_basic(user, secret)}" or server.switches.auth == "bearer"


def test_azure_takes_its_refresh_token_by_post_alone(tmp_path: Path, install: Install) -> None:
    """docker-credential-acr-env says `<token>`; its registry answers no GET with a password."""
    refresh = "eyJ0.refresh.token"
    with Registry(Switches(auth="bearer", identities={refresh})) as server:
        server.switches.token_member = "access_token"
        server.switches.expires_in = None
        server.switches.faults = [Fault("^GET /token", 404)]
        files = [config(tmp_path, {"credHelpers": {server.name: "test"}})]
        credentials = Credentials(files, install(answer("<token>", refresh)))
        registries = Registries(credentials=credentials)
        for name in ("team/app", "team/copy"):
            ship(registries.store(Reference.parse(f"{server.name}/{name}"), writes=True))
        forms = [parse_qs(form) for form in server.forms]
        assert [form["scope"] for form in forms] == [
            ["repository:team/app:pull,push"],
            ["repository:team/copy:pull,push"],
            ["repository:team/copy:pull,push repository:team/app:pull"],
        ]
        for form in forms:
            assert form["grant_type"] == ["refresh_token"]
            assert form["refresh_token"] == [refresh]
            assert form["service"] == ["tests"]
            assert form["client_id"] == ["ocipack"]


@pytest.mark.parametrize("scopes", ["first", "last"])
def test_a_token_service_that_reads_one_scope(scopes: str, tmp_path: Path) -> None:
    """As GitLab's: mounting is refused, and the blob is sent."""
    with Registry(Switches(auth="bearer", scopes=scopes)) as server:
        auths = {server.name: {"auth": USER_PASS}}
        registries = Registries(credentials=Credentials([config(tmp_path, {"auths": auths})]))
        one, two = (
            registries.store(Reference.parse(f"{server.name}/{name}"), writes=True)
            for name in ("team/app", "other/app")
        )
        ship(one)
        copy(one, two, one.resolve("v1"), tag="v1")
        assert two.resolve("v1") == one.resolve("v1")
        assert len(server.received) == 4


# challenges


def read(*headers: str) -> list[tuple[str, dict[str, str]]]:
    return [(one.scheme, dict(one.parameters)) for one in challenge.parse(headers)]


def test_challenges_are_read() -> None:
    bearer = {"realm": "https://a/t", "service": "s", "scope": "repository:x:pull,push"}
    text = 'realm="https://a/t",service="s",scope="repository:x:pull,push"'
    assert read(f"Bearer {text}") == [("bearer", bearer)]
    assert read(f"BEARER {text.replace(',s', ' , S')}") == [("bearer", bearer)]
    assert read('Basic realm="x"', f"Bearer {text}") == [
        ("basic", {"realm": "x"}),
        ("bearer", bearer),
    ]
    assert read(f'Basic realm="x, y", Bearer {text}') == [
        ("basic", {"realm": "x, y"}),
        ("bearer", bearer),
    ]
    assert read("Basic") == [("basic", {})]
    assert read("Negotiate, Basic realm=plain") == [
        ("negotiate", {}),
        ("basic", {"realm": "plain"}),
    ]
    assert read("Negotiate YWJj==, Basic") == [("negotiate", {}), ("basic", {})]
    assert read(r'Basic realm="a \"b\" c"') == [("basic", {"realm": 'a "b" c'})]
    assert read('Bearer realm="one", realm="two"') == [("bearer", {"realm": "one"})]
    assert read('Bearer realm="https://h/t?a=b",x=1') == [
        ("bearer", {"realm": "https://h/t?a=b", "x": "1"})
    ]
    assert read("", ",,", '"', 'Bearer realm="open') == [("bearer", {})]


@given(st.lists(st.text(max_size=60), max_size=4))
def test_hostile_challenges_are_read_somehow(headers: list[str]) -> None:
    for one in challenge.parse(headers):
        assert one.scheme == one.scheme.lower()


# realms


@pytest.mark.parametrize(
    ("token", "registry"),
    [
        ("https://r.example/token", "https://r.example/v2/"),
        ("https://r.example:8443/token", "https://r.example:5000/v2/"),
        ("https://auth.docker.io/token", "https://registry-1.docker.io/v2/"),
        ("https://gitlab.com/jwt/auth", "https://registry.gitlab.com/v2/"),
        ("https://auth.corp.co.uk/t", "https://registry.corp.co.uk/v2/"),
        ("https://gitlab.firma.de/jwt/auth", "https://registry.firma.de/v2/"),
        ("http://127.0.0.1:5001/token", "http://127.0.0.1:5000/v2/"),
        ("http://plain.example:5000/token", "http://plain.example:5000/v2/"),
        ("https://allowed.example/t", "https://r.other/v2/"),
    ],
)
def test_realms_that_may_have_the_credentials(token: str, registry: str) -> None:
    realm.check(Url.parse(token), Url.parse(registry), frozenset({"allowed.example"}))


@pytest.mark.parametrize(
    ("token", "registry"),
    [
        ("https://evil.example/token", "https://r.other/v2/"),
        ("https://evil.co.uk/token", "https://r.good.co.uk/v2/"),
        ("https://evil.com.au/token", "https://r.good.com.au/v2/"),
        ("https://evil.azurecr.io/t", "https://good.azurecr.io/v2/"),
        ("https://evil.github.io/t", "https://good.github.io/v2/"),
        ("https://10.0.0.2/t", "https://10.0.0.1/v2/"),
        ("https://example/t", "https://r.example/v2/"),
        ("http://r.example/token", "https://r.example/v2/"),
        ("http://r.example:1/token", "http://r.example:5000/v2/"),
        ("http://other.example/token", "http://127.0.0.1:5000/v2/"),
        ("https://notallowed.example/t", "https://r.other/v2/"),
    ],
)
def test_realms_that_may_not(token: str, registry: str) -> None:
    with pytest.raises(Denied) as caught:
        realm.check(Url.parse(token), Url.parse(registry), frozenset({"allowed.example"}))
    assert caught.value.hint


# logging in, on real sockets


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


Login = Callable[..., RegistryStore]


@pytest.fixture
def login(tmp_path: Path, clock: Clock) -> Login:
    """Open a repository at `server` with `entry` as its credentials."""

    def make(
        server: Registry,
        entry: Mapping[str, str] | None = None,
        *,
        writes: bool = True,
        **more: Any,
    ) -> RegistryStore:
        auths = {server.name: {"auth": USER_PASS} if entry is None else entry}
        files = [config(tmp_path, {"auths": auths})]
        patience = Patience(2, sleep=lambda _: None, monotonic=clock)
        registries = Registries(Transport(Settings(**more), patience=patience), Credentials(files))
        return registries.store(Reference.parse(f"{server.name}/team/app"), writes=writes)

    return make


@pytest.fixture(params=["basic", "bearer"])
def server(request: pytest.FixtureRequest) -> Iterator[Registry]:
    with Registry(Switches(auth=request.param)) as running:
        yield running


@pytest.fixture
def bearer() -> Iterator[Registry]:
    with Registry(Switches(auth="bearer")) as running:
        yield running


def ship(store: RegistryStore) -> None:
    origin = MemoryStore()
    copy(origin, store, image(origin, b"layer"), tag="v1")


def test_logging_in_and_pushing(server: Registry, login: Login) -> None:
    store = login(server)
    ship(store)
    assert list(store.tags()) == ["v1"]
    assert not server.lines("/v2/$"), "nobody needs a ping"
    refused = [seen for seen in server.requests if "authorization" not in seen.headers]
    assert len([seen for seen in refused if "/v2/" in seen.target]) == 1


def test_wrong_credentials(server: Registry, login: Login, tmp_path: Path) -> None:
    entry = {"username": "user", "password": SECRET}
    with pytest.raises(Denied, match="401 UNAUTHORIZED") as caught:
        login(server, entry).resolve("v1")
    assert f"(credentials: {tmp_path}/config.json)" in str(caught.value)
    assert "check that this account" in caught.value.hint
    assert SECRET not in str(caught.value)
    assert caught.value.exit_code == 3


def test_what_was_refused_is_not_sent_again_at_once(login: Login) -> None:
    with Registry(Switches(auth="basic")) as server:
        store = login(server, {"username": "user", "password": SECRET})
        for requests in (2, 1):  # the first learns that credentials are wanted
            server.requests.clear()
            with pytest.raises(Denied):
                store.resolve("v1")
            assert len(server.requests) == requests


def test_no_credentials(login: Login, tmp_path: Path) -> None:
    with Registry(Switches(auth="basic")) as basic, pytest.raises(Denied) as caught:
        login(basic, {}).resolve("v1")
    where = f"nothing for {basic.name} in {tmp_path}/config.json"
    assert f"(credentials: anonymous; {where})" in str(caught.value)
    assert "log in" in caught.value.hint


def test_nobody_may_pull_with_a_token_of_nobody(bearer: Registry, login: Login) -> None:
    ship(login(bearer))
    store = login(bearer, {}, writes=False)
    store.resolve("v1")
    with pytest.raises(Denied):
        ship(login(bearer, {}))


def test_nothing_is_looked_up_for_a_registry_that_asks_for_nothing() -> None:
    with Registry() as server:
        registries = Registries(credentials=Credentials([Path("/nonexistent\0")]))
        store = registries.store(Reference.parse(f"{server.name}/a/b"), writes=True)
        ship(store)
        assert all("authorization" not in seen.headers for seen in server.requests)


def test_one_token_a_scope_for_all_threads(bearer: Registry, login: Login) -> None:
    store = login(bearer)
    ship(store)
    bearer.requests.clear()
    fresh = login(bearer)
    start = threading.Barrier(8)

    def work(_: int) -> None:
        start.wait()
        fresh.resolve("v1")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(bearer.lines("^GET /token")) == 1
    (token,) = bearer.lines("^GET /token")
    assert token == "GET /token?service=tests&scope=repository:team%2Fapp:pull%2Cpush"


def test_a_token_is_replaced_before_it_expires(
    bearer: Registry, login: Login, clock: Clock
) -> None:
    bearer.switches.expires_in = 100
    store = login(bearer)
    ship(store)
    for now, tokens in ((0, 1), (89, 1), (91, 2), (180, 2), (182, 3)):
        clock.now = now
        store.resolve("v1")
        assert len(bearer.lines("/token")) == tokens, now
    assert len(bearer.lines("/v2/")) == 8 + 5


@pytest.mark.parametrize("said", [None, "300", 0, -5, True, float("nan")])
def test_a_life_that_makes_no_sense_is_a_minute(
    bearer: Registry, login: Login, clock: Clock, said: object
) -> None:
    ship(login(bearer))
    (good,) = list(bearer.tokens)[-1:]
    bearer.requests.clear()
    bearer.switches.token_answer = {"token": good, "expires_in": said}
    store = login(bearer)
    for now, tokens in ((0, 1), (53, 1), (55, 2)):
        clock.now = now
        store.resolve("v1")
        assert len(bearer.lines("/token")) == tokens


@pytest.mark.parametrize(
    "said", [3601, 1e300, float("inf"), 10**400], ids=["s", "float", "inf", "int"]
)
def test_a_life_of_more_than_an_hour_is_an_hour(
    bearer: Registry, login: Login, clock: Clock, said: float
) -> None:
    ship(login(bearer))
    (good,) = list(bearer.tokens)[-1:]
    bearer.requests.clear()
    bearer.switches.token_answer = {"token": good, "expires_in": said}
    store = login(bearer)
    for now, tokens in ((0, 1), (3589, 1), (3591, 2)):
        clock.now = now
        store.resolve("v1")
        assert len(bearer.lines("/token")) == tokens


def test_a_token_that_was_revoked_is_replaced_once(bearer: Registry, login: Login) -> None:
    store = login(bearer)
    ship(store)
    bearer.tokens.clear()
    store.resolve("v1")
    assert len(bearer.lines("/token")) == 2


def test_a_token_in_the_other_member(bearer: Registry, login: Login) -> None:
    bearer.switches.token_member = "access_token"
    ship(login(bearer))


@pytest.mark.parametrize(
    "lie",
    [
        {},
        {"token": ""},
        {"token": 5},
        {"token": "a\r\nX-Evil: 1"},
        {"token": "a b"},
        {"token": "ü"},
        {"token": "x" * 70_000},
        {"token": ["x"]},
    ],
)
def test_a_token_service_that_lies(bearer: Registry, login: Login, lie: Any) -> None:
    bearer.switches.token_answer = lie
    with pytest.raises(Denied, match="without a usable token"):
        login(bearer).resolve("v1")


@pytest.mark.parametrize("body", [b"<!DOCTYPE html>", b"[]", b"[" * 100_000, b"\xff", b""])
def test_a_token_service_that_is_none(bearer: Registry, login: Login, body: bytes) -> None:
    bearer.switches.faults = [Fault("/token", 200, {"Content-Type": "text/html"}, body)]
    with pytest.raises(Denied, match="without a usable token"):
        login(bearer).resolve("v1")


def test_a_token_that_the_registry_does_not_take(bearer: Registry, login: Login) -> None:
    bearer.switches.token_answer = {"token": SECRET}
    with pytest.raises(Denied, match="401 UNAUTHORIZED"):
        login(bearer).resolve("v1")
    assert len(bearer.lines("/token")) == 1
    assert len(bearer.lines("/v2/")) == 2


def test_a_token_service_without_end(bearer: Registry, login: Login) -> None:
    bearer.switches.faults = [Fault("/token", act="endless")]
    with pytest.raises(Denied, match="without a usable token"):
        login(bearer).resolve("v1")


def test_a_token_service_that_is_busy_is_asked_again(bearer: Registry, login: Login) -> None:
    bearer.switches.faults = [Fault("/token", 503, times=1)]
    ship(login(bearer))
    bearer.switches.faults = [Fault("/token", 500)]
    with pytest.raises(StoreError, match=r"GET http://.*/token\?service=tests.*: 500"):
        login(bearer).resolve("v1")


def test_an_identity_token_is_posted(bearer: Registry, login: Login) -> None:
    ship(login(bearer, {"identitytoken": "identity"}))
    assert len(bearer.lines("^POST /token$")) == 1
    assert not bearer.lines("^GET /token")


def test_an_identity_token_without_post_goes_by_get(bearer: Registry, login: Login) -> None:
    bearer.switches.token_post = False
    ship(login(bearer, {"identitytoken": "identity"}))
    assert bearer.lines("/token")[0] == "POST /token"
    assert bearer.lines("/token")[1].startswith("GET /token?")


def test_a_registry_token_is_sent_as_it_is(bearer: Registry, login: Login) -> None:
    bearer.tokens["mine"] = {("team/app", "pull"), ("team/app", "push")}
    ship(login(bearer, {"registrytoken": "mine"}))
    assert not bearer.lines("/token")


def test_a_registry_token_that_is_none(bearer: Registry, login: Login) -> None:
    with pytest.raises(Misuse, match="registrytoken is not a token") as caught:
        login(bearer, {"registrytoken": f"{SECRET}\r\nX-Evil: 1"}).resolve("v1")
    assert SECRET not in str(caught.value)


def test_bearer_is_chosen_where_both_are_offered(bearer: Registry, login: Login) -> None:
    bearer.switches.challenge = ['Basic realm="x"', f'Bearer realm="{bearer.url}/token"']
    ship(login(bearer))
    assert bearer.lines("/token")


def test_a_relative_realm_is_on_the_registry(bearer: Registry, login: Login) -> None:
    bearer.switches.challenge = ['Bearer realm="/token",service="s"']
    ship(login(bearer))


@pytest.mark.parametrize(
    "header", ["", "Digest realm=x", "Bearer", 'Bearer service="x"', "Negotiate", "garbage,,="]
)
def test_a_challenge_that_nobody_understands(bearer: Registry, login: Login, header: str) -> None:
    bearer.switches.challenge = [header]
    with pytest.raises(Denied, match="401"):
        login(bearer).resolve("v1")


@pytest.mark.parametrize(
    "named", ["http://[", "ftp://x/y", f"https://u:{SECRET}@127.0.0.1/t", "http://\x00/"]
)
def test_a_realm_that_is_no_address(bearer: Registry, login: Login, named: str) -> None:
    bearer.switches.challenge = [f'Bearer realm="{named}"']
    with pytest.raises(StoreError) as caught:
        login(bearer).resolve("v1")
    assert SECRET not in str(caught.value)


def test_a_refusal_that_repeats_our_secrets_is_blacked_out(login: Login) -> None:
    body = json.dumps(
        {"errors": [{"code": "DENIED", "message": f"{SECRET} and {_basic('user', SECRET)}"}]}
    ).encode()
    with Registry(Switches(auth="basic", users={"user": SECRET})) as server:
        store = login(server, {"username": "user", "password": SECRET})
        ship(store)
        server.switches.faults = [Fault("/manifests/", 403, {}, body)]
        with pytest.raises(Denied, match=r"403 DENIED: \*\*\* and \*\*\*"):
            store.resolve("v1")


def _basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


# no host sees a header that is not its own


@pytest.fixture
def recorder() -> Iterator[Registry]:
    """Another host, that notes what it is sent."""
    with Registry(host="127.0.0.2") as running:
        yield running


def saw(server: Registry) -> list[str]:
    return [
        seen.headers["authorization"] for seen in server.requests if "authorization" in seen.headers
    ]


def test_a_realm_on_another_host_gets_nothing(
    bearer: Registry, recorder: Registry, login: Login
) -> None:
    bearer.switches.realm = f"{recorder.url}/token"
    with pytest.raises(Denied, match="a host that is not its own") as caught:
        login(bearer).resolve("v1")
    assert "127.0.0.2" in str(caught.value) + caught.value.hint
    assert not recorder.requests


def test_a_realm_on_another_host_can_be_allowed(bearer: Registry, login: Login) -> None:
    with Registry(host="127.0.0.2", tokens=bearer.tokens) as service:
        bearer.switches.realm = f"{service.url}/token"
        ship(login(bearer, realms=frozenset({"127.0.0.2"})))
        assert set(saw(service)) == {f"Basic {USER_PASS}"}
        assert all(value.startswith("Bearer ") for value in saw(bearer))


def test_a_storage_host_sees_no_credentials(
    server: Registry, recorder: Registry, login: Login
) -> None:
    store = login(server)
    origin = MemoryStore()
    root = image(origin, b"layer")
    copy(origin, store, root)
    layer = store.resolve(str(root.digest))
    data = {d: raw for d, raw in server.blobs.items() if raw == b"layer"}
    (digest,) = data
    recorder.static["/storage"] = data[digest]
    server.switches.faults = [Fault("GET .*/blobs/", 307, {"Location": f"{recorder.url}/storage"})]
    target = next(d for d in _layers(store, layer))
    assert b"".join(store.fetch(target)) == b"layer"
    assert recorder.lines() == ["GET /storage"]
    assert saw(recorder) == []
    recorder.static["/storage"] = b"wrong"
    with pytest.raises(IntegrityError):
        b"".join(store.fetch(target))


def _layers(store: RegistryStore, root: Any) -> Any:
    from ocipack.oci.store import manifest  # noqa: PLC0415 - this test alone

    return manifest(store, root).layers


@pytest.mark.parametrize("host", ["127.0.0.2", "127.0.0.1"])
def test_an_upload_to_another_host_or_port_carries_no_credentials(
    server: Registry, login: Login, host: str
) -> None:
    with Registry(host=host) as recorder:
        server.switches.location = recorder.url
        with pytest.raises(OcipackError):
            ship(login(server))
        assert recorder.lines("^PUT ")
        assert saw(recorder) == []


def test_a_token_service_that_redirects_gets_the_credentials_no_further(
    bearer: Registry, recorder: Registry, login: Login
) -> None:
    bearer.switches.faults = [Fault("/token", 307, {"Location": f"{recorder.url}/token"})]
    with pytest.raises(StoreError, match="307"):
        login(bearer).resolve("v1")
    assert not recorder.requests


def test_each_registry_gets_its_own(tmp_path: Path) -> None:
    with (
        Registry(Switches(auth="basic", users={"one": "1"})) as one,
        Registry(Switches(auth="basic", users={"two": "2"}), host="127.0.0.2") as two,
    ):
        auths = {
            one.name: {"username": "one", "password": "1"},
            two.name: {"username": "two", "password": "2"},
        }
        registries = Registries(credentials=Credentials([config(tmp_path, {"auths": auths})]))
        stores = [
            registries.store(Reference.parse(f"{server.name}/team/app"), writes=True)
            for server in (one, two)
        ]
        ship(stores[0])
        copy(stores[0], stores[1], stores[0].resolve("v1"), tag="v1")
        assert set(saw(one)) == {f"Basic {_basic('one', '1')}"}
        assert set(saw(two)) == {f"Basic {_basic('two', '2')}"}


def test_a_configuration_is_parsed_without_a_file() -> None:
    parsed = DockerConfig.parse({"credsStore": "s", "credHelpers": {"a.example": "h"}}, "here")
    assert parsed.helper("a.example") == "h"
    assert parsed.helper("b.example") == "s"
    assert parsed.stored("a.example", "x") is None
