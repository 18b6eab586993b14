"""registries.yaml: read strictly, one spelling for each registry, and as its schema has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, strategies as st

from ocipack.errors import Misuse
from ocipack.stores.hosts import load, read
from ocipack.stores.http.host import Host, Mirror, place
from ocipack.stores.http.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = jsonschema_rs.validator_for(
    json.loads((DOCS / "schemas/registries-v1alpha1.json").read_text())
)
FILE = "/etc/ocipack/registries.yaml"
GOOD = """\
apiVersion: ocipack.dev/v1alpha1
kind: RegistrySettings
registries:
- host: 10.20.0.7:5443
  serverName: registry.corp.example
  ca: ca.crt
  clientCertificate: /keys/client.crt
  clientKey: keys/client.key
  concurrency: 4
  requestsPerSecond: 20
  realms: [auth.other.example, "login.example:8443"]
- host: docker.io
  mirrors:
  - mirror.corp.example:5000/hub
  - {host: cache.corp.example, tags: true}
- host: nexus.corp.example:8082
  plainHTTP: true
  connect: 10.20.0.9
"""


def hosts(text: str = GOOD) -> dict[str, Host]:
    return {host.name: host for host in read(text.encode(), file=FILE)}


def test_a_file_is_read() -> None:
    found = hosts()
    assert found["10.20.0.7:5443"] == Host(
        "10.20.0.7:5443",
        authorities="/etc/ocipack/ca.crt",
        certificate="/keys/client.crt",
        key="/etc/ocipack/keys/client.key",
        server_name="registry.corp.example",
        concurrency=4,
        rate=20,
        realms=frozenset({"auth.other.example", "login.example:8443"}),
        where=f"{FILE}:4",
    )
    assert found["docker.io"].mirrors == (
        Mirror("mirror.corp.example:5000", "hub"),
        Mirror("cache.corp.example", "", tags=True),
    )
    assert found["docker.io"].mirrors[0].repository("library/nginx") == "hub/library/nginx"
    assert found["docker.io"].mirrors[1].repository("library/nginx") == "library/nginx"
    assert found["nexus.corp.example:8082"].dialled(8082) == ("10.20.0.9", 8082)


@pytest.mark.parametrize(
    ("asked", "entry"),
    [
        ("registry.example", "registry.example"),
        ("registry.example:443", "registry.example"),
        ("Registry.Example", "registry.example"),
        ("registry.example:5000", ""),
        ("docker.io", "docker.io"),
        ("registry-1.docker.io", "docker.io"),
        ("index.docker.io", "docker.io"),
        ("evilregistry.example", ""),
        ("[::1]:5000", "[::1]:5000"),
    ],
)
def test_an_entry_is_for_exactly_one_registry(asked: str, entry: str) -> None:
    names = ("registry.example", "docker.io", "[::1]:5000")
    settings = Settings(hosts={name: Host(name, rate=7) for name in names})
    found = settings.host(asked)
    assert (found.name if found.rate else "") == entry


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Registry.Example:443", "registry.example"),
        ("registry.example:80", "registry.example:80"),
        ("index.docker.io", "docker.io"),
        ("registry-1.docker.io:443", "docker.io"),
        ("[FD00::1]:5000", "[fd00::1]:5000"),
    ],
)
def test_one_spelling_for_each_registry(text: str, name: str) -> None:
    assert place(text) == name


@pytest.mark.parametrize(
    "text", ["", "a/b", "http://a", "user@a", "a:b", "a:99999", "a b", "a?x", "a#x", "ü.example"]
)
def test_what_is_no_registry(text: str) -> None:
    with pytest.raises(Misuse, match="not a registry"):
        place(text)


@pytest.mark.parametrize(
    ("connect", "dialled"),
    [
        ("10.0.0.1", ("10.0.0.1", 8082)),
        ("10.0.0.1:5443", ("10.0.0.1", 5443)),
        ("[fd00::1]:5443", ("fd00::1", 5443)),
        ("fd00::1", ("fd00::1", 8082)),
        ("", None),
    ],
)
def test_where_to_connect(connect: str, dialled: tuple[str, int] | None) -> None:
    assert Host("r.example:8082", connect=connect).dialled(8082) == dialled


CHANGES: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"host": None}, False),
    ({"host": "a/b"}, False),
    ({"host": "https://a.example"}, False),
    ({"host": "[::1]:5000"}, True),
    ({"ca": " "}, False),
    ({"ca": "ca.crt"}, True),
    ({"ca": "ca\0.crt"}, False),
    ({"clientCertificate": "a.crt"}, False),
    ({"clientKey": "a.key"}, False),
    ({"clientCertificate": "a.crt", "clientKey": "a.key"}, True),
    ({"plainHTTP": True}, True),
    ({"plainHTTP": "yes"}, False),
    ({"plainHTTP": True, "ca": "ca.crt"}, False),
    ({"plainHTTP": True, "serverName": "a.example"}, False),
    ({"plainHTTP": True, "clientCertificate": "a.crt", "clientKey": "a.key"}, False),
    ({"plainHTTP": False, "ca": "ca.crt"}, True),
    ({"connect": "10.0.0.1"}, True),
    ({"connect": "10.0.0.1:5443"}, True),
    ({"connect": "[fd00::1]:5443"}, True),
    ({"connect": "fd00::1"}, True),
    ({"connect": "registry.example"}, False),
    ({"connect": "https://10.0.0.1"}, False),
    ({"serverName": "a.example"}, True),
    ({"serverName": "10.0.0.1"}, True),
    ({"serverName": "fd00::1"}, True),
    ({"serverName": "a.example:443"}, False),
    ({"serverName": "A.example"}, False),
    ({"serverName": "*.example"}, False),
    ({"serverName": "a" * 300}, False),
    ({"mirrors": []}, False),
    ({"mirrors": ["m.example"]}, True),
    ({"mirrors": ["m.example:5000/a/b-c"]}, True),
    ({"mirrors": [{"host": "m.example/a", "tags": True}]}, True),
    ({"mirrors": [{"tags": True}]}, False),
    ({"mirrors": [{"host": "m.example", "push": True}]}, False),
    ({"mirrors": ["m.example/A"]}, False),
    ({"mirrors": ["m.example/"]}, False),
    ({"mirrors": ["https://m.example"]}, False),
    ({"concurrency": 1}, True),
    ({"concurrency": 64}, True),
    ({"concurrency": 0}, False),
    ({"concurrency": 65}, False),
    ({"concurrency": "4"}, False),
    ({"requestsPerSecond": 10000}, True),
    ({"requestsPerSecond": 0}, False),
    ({"requestsPerSecond": 10001}, False),
    ({"realms": ["a.example"]}, True),
    ({"realms": []}, False),
    ({"realms": ["a.example", "a.example"]}, False),
    ({"realms": ["https://a.example/token"]}, False),
    ({"insecureSkipVerify": True}, False),
    ({"skipVerify": True}, False),
]


@pytest.mark.parametrize(("change", "good"), CHANGES)
def test_the_schema_and_the_reader_agree(change: dict[str, Any], good: bool) -> None:  # noqa: FBT001 - a table of cases
    entry = {"host": "r.example"} | change
    entry = {key: value for key, value in entry.items() if value is not None}
    document = {
        "apiVersion": "ocipack.dev/v1alpha1",
        "kind": "RegistrySettings",
        "registries": [entry],
    }
    assert SCHEMA.is_valid(document) == good
    if good:
        hosts(json.dumps(document))
    else:
        with pytest.raises(Misuse, match=f"^{FILE}:1:"):
            hosts(json.dumps(document))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("a: 1\n", "unknown field 'a'"),
        (GOOD.replace("kind: RegistrySettings\n", ""), "kind is missing"),
        (GOOD.replace("v1alpha1", "v1"), "apiVersion is not"),
        (GOOD.replace("serverName", "servername"), r":5:3: unknown field 'servername'"),
        (GOOD + "- host: DOCKER.IO\n", r":19:3: docker\.io is described twice"),
        (GOOD.replace("- host: docker.io", "- host: docker.io\n  ca: &a x"), "an anchor"),
        (GOOD + "- host: a.example\n  mirrors: [a.example]\n", "mirror of itself"),
        (GOOD.split("registries:", maxsplit=1)[0], "the file has no registries"),
    ],
)
def test_what_a_file_may_not_say(text: str, words: str) -> None:
    with pytest.raises(Misuse, match=words) as caught:
        hosts(text)
    assert str(caught.value).startswith(FILE)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(Misuse) as caught:
        hosts(GOOD.replace("serverName", "servername"))
    assert caught.value.hint == "did you mean serverName?"


def test_a_file_is_bounded() -> None:
    head = GOOD.split("- host", maxsplit=1)[0]
    entries = "".join(f"- host: r{number}.example\n" for number in range(1000))
    assert len(hosts(head + entries)) == 1000
    with pytest.raises(Misuse, match="more than 1000 registries"):
        hosts(head + entries + "- host: one.more\n")
    with pytest.raises(Misuse, match="longer than 1048576 bytes"):
        hosts(GOOD + "#" * 1024 * 1024)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="missing: cannot be read: No such file"):
        load(tmp_path / "missing")
    with pytest.raises(Misuse, match="cannot be read: Is a directory"):
        load(tmp_path)
    (tmp_path / "good.yaml").write_text(GOOD)
    assert len(load(tmp_path / "good.yaml")) == 3


@given(st.binary(max_size=200) | st.text(max_size=80).map(lambda t: (GOOD + t).encode()))
def test_hostile_files_are_misuse_or_read(data: bytes) -> None:
    said = FILE
    try:
        read(data, file=FILE)
    except Misuse as e:
        said = str(e)
    assert said.startswith(FILE)


def test_the_example_in_the_pages_is_read() -> None:
    page = (DOCS / "registries.md").read_text()
    blocks = [block.split("```")[0] for block in page.split("```yaml\n")[1:]]
    files = [block for block in blocks if "kind: RegistrySettings" in block]
    assert files
    for text in files:
        assert hosts(text)
