"""What to write instead: each hint is followed to the letter, and what it says is read."""

from __future__ import annotations

import re
import secrets

import pytest

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Node
from ocipack.k8s.yaml.strict import Reader
from ocipack.lock import Lock
from ocipack.mirror.reader import read as mirror
from ocipack.oci.location import Location
from ocipack.oci.reference import Reference
from ocipack.stores.hosts import read as registries
from ocipack.trust.keys import PrivateKey, PublicKey
from ocipack.trust.policy.reader import read as policy

READER = Reader("f.yaml")
HEAD = b"apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\n"
PEM = b"-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQ==\n-----END PUBLIC KEY-----\n"


def hint(text: str) -> str:
    with pytest.raises(Misuse) as caught:
        Location.parse(text, cwd="/")
    return caught.value.hint


# places


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("r.example/Team/App:V1", "r.example/team/app:V1"),
        ("R.example:5000/tEAM", "R.example:5000/team"),
        ("localhost/A@sha256:" + "0" * 64, "localhost/a@sha256:" + "0" * 64),
    ],
)
def test_repositories_are_in_lower_case(text: str, meant: str) -> None:
    """Registries and tags may have capitals, which stay."""
    assert hint(f"oci://{text}") == f"repositories are in lower case: {meant}"
    assert str(Reference.parse(meant)) == meant


@pytest.mark.parametrize("text", ["r.example", "r.example:5000", "127.0.0.1:5443", "localhost/"])
def test_a_registry_alone_is_no_repository(text: str) -> None:
    said = hint(f"oci://{text}")
    assert said.startswith(f"name a repository: {text.rstrip('/')}/REPOSITORY; ")


@pytest.mark.parametrize("text", ["r.example/hello:v 1", " r.example/hello", "r.example/a\n"])
def test_a_blank_in_a_reference(text: str) -> None:
    assert hint(f"oci://{text}") == "it has a blank in it"


@pytest.mark.parametrize("text", ["team/hello:v1", "hello", "r.example/a//b", "r.example/a:"])
def test_anything_else_is_shown_the_form(text: str) -> None:
    assert hint(f"oci://{text}").startswith("write registry/repository[:tag]")


@pytest.mark.parametrize("scheme", ["", "https://", "http://", "docker://"])
def test_a_scheme_that_is_missing_or_of_others(scheme: str) -> None:
    said = hint(f"{scheme}127.0.0.1:5443/team/hello:v1")
    assert said == "did you mean oci://127.0.0.1:5443/team/hello:v1?"
    meant = said.split()[-1].rstrip("?")
    assert str(Location.parse(meant, cwd="/")) == meant


@pytest.mark.parametrize("text", ["hello", "./a.tar", "ftp://r.example/a", "https://r.example/A"])
def test_what_can_be_no_reference_is_shown_the_forms(text: str) -> None:
    assert hint(text).startswith("write oci://")


# files of ours


def refusal(data: bytes) -> Misuse:
    with pytest.raises(Misuse) as caught:
        READER.ours(HEAD + data, ("a", "ca"), kind="Mirror")
    return caught.value


@pytest.mark.parametrize("text", [b"a:\n- b\n c: d", b"a: b\n  ca: d", b"ca:x\na: b", b"a: [b"])
def test_what_is_no_yaml_says_where_to_look(text: bytes) -> None:
    error = refusal(text)
    assert ": not YAML: " in str(error)
    assert error.hint.startswith("look at this line and the one before: ")


def test_what_readers_disagree_on_is_yaml() -> None:
    assert not refusal(b"a: *x").hint
    assert not refusal(b"a: b\na: c").hint


@pytest.mark.parametrize("word", ["yes", "No", "on", "OFF", "y", "n", "'false'", '"True"', "TRUE1"])
def test_true_and_false(word: str) -> None:
    """In quotes it would be text, so that is not what is said."""
    meant = {"y": "true", "o": "true", "t": "true", "n": "false", "f": "false"}
    node = READER.root(f"v: {word}\n".encode()).get("v")
    with pytest.raises(Misuse, match="v should be true or false") as caught:
        READER.flag(node, "v", default=False)
    first = word.strip("\"'")[:1].lower()
    said = "false" if word == "OFF" else meant[first]
    assert caught.value.hint == ("" if word == "TRUE1" else f"write {said}, without quotes")
    if caught.value.hint:
        mended = READER.root(f"v: {said}\n".encode()).get("v")
        assert READER.flag(mended, "v", default=False) is (said == "true")


def test_flags_are_no_lists() -> None:
    node: Node | None = READER.root(b"v: [true]\n").get("v")
    with pytest.raises(Misuse, match="should be true or false"):
        READER.flag(node, "v", default=False)


def test_known_fields_say_which_are_needed() -> None:
    with pytest.raises(Misuse) as caught:
        READER.mapping(READER.root(b"zz: 1\n"), "it", ("host", "ca"), ("host",))
    assert caught.value.hint == "known: host (needed), ca"


def no_lock(_: str) -> Lock:
    raise AssertionError


@pytest.mark.parametrize(
    "sources", [b"", b"sources: []\n", b"sources: [r.example/app]\n", b"sources:\n- - a\n"]
)
def test_a_mirror_without_sources_is_shown_one(sources: bytes) -> None:
    begin = HEAD + b"to: oci://m.example/x\n"
    with pytest.raises(Misuse) as caught:
        mirror(begin + sources, file="m.yaml", lock=no_lock)
    found = re.search(r"\{.*\}", caught.value.hint)
    assert found is not None
    (source,) = mirror(
        begin + f"sources: [{found[0]}]\n".encode(), file="m.yaml", lock=no_lock
    ).sources
    assert source.tags == ("v1",)


def test_what_a_source_may_say_includes_a_lock() -> None:
    with pytest.raises(Misuse) as caught:
        mirror(HEAD + b"sources: [{qqq: a}]\n", file="m.yaml", lock=no_lock)
    assert ", lock, " in caught.value.hint


def no_key(_: str) -> PublicKey:
    raise AssertionError


@pytest.mark.parametrize("data", [b"", b"a: b\n", b"kind: Policy\n"])
def test_what_is_no_policy_is_shown_one(data: bytes) -> None:
    with pytest.raises(Misuse) as caught:
        policy(data, file="p.yaml", key=no_key)
    shown = caught.value.hint.removeprefix("write ").partition(", or a Cluster")[0]
    key = PrivateKey.generate(secrets.token_bytes).public
    (made,) = policy(shown.encode(), file="p.yaml", key={"sign.pub": key}.__getitem__)
    assert list(made.keys) == [key]


@pytest.mark.parametrize("data", [b"", b"registries: []\n"])
def test_settings_without_registries_are_shown_one(data: bytes) -> None:
    head = b"apiVersion: ocipack.dev/v1alpha1\nkind: RegistrySettings\n"
    with pytest.raises(Misuse) as caught:
        registries(head + data, file="/etc/r.yaml")
    shown = caught.value.hint.removeprefix("write ").encode()
    (host,) = registries(head + shown, file="/etc/r.yaml")
    assert host.authorities == "/etc/CA.crt"


def test_a_key_is_no_policy() -> None:
    with pytest.raises(Misuse) as caught:
        policy(PEM, file="sign.pub", key=no_key)
    assert str(caught.value) == (
        "sign.pub:1:1: the file should be a mapping, and is a key or certificate"
    )
    assert "--key takes keys" in caught.value.hint
