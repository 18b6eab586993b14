"""Digests, references, places, descriptors and manifests, from literals."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import pytest

from ocipack.errors import IntegrityError, Misuse, NotFound
from ocipack.oci import jsontext, store
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.location import Location
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference

HELLO = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"  # sha256 of hello
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
NODE = {"mediaType": "text/plain", "size": 5, "digest": HELLO}


def test_a_digest_is_what_sha256sum_says() -> None:
    assert str(Digest.of(b"hello")) == HELLO
    assert Digest.parse(HELLO).short == "2cf24dba5fb0"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256",
        "sha256:",
        "sha256:" + "0" * 63,
        "sha256:" + "0" * 65,
        "sha256:" + "A" * 64,
        "SHA256:" + "a" * 64,
        "sha256:" + "g" * 64,
        "sha256:" + "a" * 64 + "\n",
        "sha256:" + "\u0660" * 64,
        "md5:" + "a" * 32,
        "sha1:" + "a" * 40,
        "sha512:" + "a" * 64,
        " sha256:" + "a" * 64,
    ],
)
def test_what_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(Misuse, match="not a digest"):
        Digest.parse(text)


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag"),
    [
        ("registry.example/a", "registry.example", "a", None),
        ("localhost/a/b:v1", "localhost", "a/b", "v1"),
        ("localhost:5000/a", "localhost:5000", "a", None),
        ("harbor:8443/team/app:1.0_x", "harbor:8443", "team/app", "1.0_x"),
        ("[::1]:5000/a:t", "[::1]:5000", "a", "t"),
        ("10.0.0.1/a__b/c--d.e:T", "10.0.0.1", "a__b/c--d.e", "T"),
    ],
)
def test_a_full_reference(text: str, registry: str, repository: str, tag: str | None) -> None:
    ref = Reference.parse(text)
    assert (ref.registry, ref.repository, ref.tag) == (registry, repository, tag)
    assert str(ref) == text
    assert str(ref.at(Digest.parse(HELLO))) == f"{text}@{HELLO}"
    assert ref.name == (tag or "latest")
    assert ref.at(Digest.parse(HELLO)).name == HELLO


@pytest.mark.parametrize(
    "text",
    [
        "",
        "app",
        "team/app:v1",
        "registry.example",
        "registry.example/",
        "registry.example/A",
        "registry.example/a:",
        "registry.example/a:t ag",
        "registry.example/a:" + "t" * 129,
        "registry.example/a:-t",
        "registry.example/a@sha256:zz",
        "registry.example/a@sha256:" + "a" * 63,
        "registry.example/a@" + HELLO + ":v1",
        "registry.example/a//b",
        "registry.example/a/../b",
        "../../x:y",
        "localhost:99999/a",
        "-x.example/a",
        "user:pw@registry.example/a",
        "https://registry.example/a",
        "registry.example/a:v1\n",
        "registry.example/" + "a" * 256,
        "registry.example/ä",
    ],
)
def test_nothing_is_guessed(text: str) -> None:
    with pytest.raises(Misuse):
        Reference.parse(text)


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("nginx:1.27", "docker.io/library/nginx:1.27"),
        ("bitnami/redis", "docker.io/bitnami/redis"),
        ("index.docker.io/nginx", "docker.io/library/nginx"),
        ("docker.io/nginx@" + HELLO, "docker.io/library/nginx@" + HELLO),
        ("ghcr.io/a/b:c@" + HELLO, "ghcr.io/a/b:c@" + HELLO),
        ("localhost/a", "localhost/a"),
        ("localhost:5000/a", "localhost:5000/a"),
    ],
)
def test_a_pod_image_reads_as_containerd_reads_it(text: str, full: str) -> None:
    assert str(Reference.familiar(text)) == full


@pytest.mark.parametrize("text", ["", "Nginx", "nginx:", "a b", "nginx@sha256:x", "$(IMAGE)"])
def test_what_is_no_pod_image_is_refused(text: str) -> None:
    with pytest.raises(Misuse):
        Reference.familiar(text)


@pytest.mark.parametrize(
    ("text", "shown", "reference"),
    [
        ("oci://r.example/a:v1", "oci://r.example/a:v1", "r.example/a:v1"),
        ("ocidir://out", "ocidir:///w/out", "localhost/out"),
        ("ocidir://out:v1", "ocidir:///w/out:v1", "localhost/out:v1"),
        ("ocidir://./a/../out", "ocidir:///w/out", "localhost/out"),
        ("ocidir:///abs/site.tar:v1", "ocidir:///abs/site.tar:v1", "localhost/site:v1"),
        (
            "ocidir://My Layout_1@" + HELLO,
            "ocidir:///w/My Layout_1@" + HELLO,
            "localhost/my-layout-1@" + HELLO,
        ),
        ("ocidir:///", "ocidir:///", "localhost/layout"),
        ("ocidir://a:b/c", "ocidir:///w/a:b/c", "localhost/c"),
    ],
)
def test_a_place(text: str, shown: str, reference: str) -> None:
    place = Location.parse(text, cwd="/w")
    assert str(place) == shown
    assert str(place.reference) == reference
    assert Location.parse(shown, cwd="/elsewhere") == place


def test_a_place_with_another_tag_or_digest() -> None:
    place = Location.parse("oci://r.example/a:v1@" + HELLO, cwd="/")
    assert str(place.tagged("v2")) == "oci://r.example/a:v2"
    assert str(place.tagged("v2").at(Digest.parse(HELLO))) == "oci://r.example/a:v2@" + HELLO
    assert not place.is_layout


@pytest.mark.parametrize(
    "text",
    [
        "",
        "out",
        "r.example/a",
        "oci:r.example/a",
        "oci://a",
        "ocidir://",
        "ocidir://:v1",
        "file://x",
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(Misuse):
        Location.parse(text, cwd="/w")


def test_json_is_written_as_go_writes_it() -> None:
    raw = jsontext.encode({"b": "<a&b>\u2028é", "a": [1, None, True]})
    assert raw == '{"b":"\\u003ca\\u0026b\\u003e\\u2028é","a":[1,null,true]}'.encode()
    assert jsontext.decode(raw) == {"b": "<a&b>\u2028é", "a": [1, None, True]}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"a":1,"a":1}',
        b'{"x":{"a":1,"a":2}}',
        b"NaN",
        b"[Infinity]",
        b'"\\ud800"',
        b"{} {}",
        b"\xff",
        b'{"a":1}trailing',
        b"[" * 100_000,
        b"[" * 102 + b"]" * 102,
        b'{"a":' * 102 + b"1" + b"}" * 102,
        b"[1e999]",
        b"-1e999",
        b'"\xed\xa0\x80"',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        "{}".encode("utf-32-le"),
    ],
)
def test_json_that_two_readers_could_read_differently_is_refused(raw: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        jsontext.decode(raw)


def test_json_may_be_as_deep_as_it_can_be_written_and_shown() -> None:
    raw = b"[" * 100 + b"]" * 100
    assert jsontext.encode(jsontext.decode(raw)) == raw


def test_the_member_that_is_there_twice_is_found_at_once() -> None:
    many = ",".join(f'"{number}":0' for number in range(300_000))  # hours, if each asks all others
    with pytest.raises(ValueError, match="'299999' appears twice"):
        jsontext.decode(f'{{{many},"299999":0}}'.encode())
    with pytest.raises(ValueError, match=r"^member 'a{60}' appears twice$"):
        jsontext.decode(f'{{"{"a" * 5000}":0,"{"a" * 5000}":0}}'.encode())


@pytest.mark.parametrize(
    "change",
    [
        {"size": -1},
        {"size": True},
        {"size": "5"},
        {"size": 5.0},
        {"size": None},
        {"digest": "sha256:zz"},
        {"digest": 7},
        {"mediaType": None},
        {"annotations": []},
        {"annotations": ["a"]},
        {"annotations": {"a": 1}},
        {"artifactType": 1},
    ],
)
def test_a_malformed_descriptor_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(Misuse):
        Descriptor.from_dict({**NODE, **change})


@pytest.mark.parametrize("missing", list(NODE))
def test_a_descriptor_lacks_nothing(missing: str) -> None:
    with pytest.raises(KeyError):
        Descriptor.from_dict({name: value for name, value in NODE.items() if name != missing})
    with pytest.raises(Misuse):
        Descriptor.from_dict("text")


def test_a_descriptor_is_written_in_the_order_of_go() -> None:
    node = {**NODE, "annotations": {"k": "v"}, "artifactType": "t/t"}
    assert (
        jsontext.encode(Descriptor.from_dict(node).to_dict())
        == json.dumps(node, separators=(",", ":")).encode()
    )
    assert Descriptor.from_dict(node).plain.to_dict() == NODE


DESCRIPTOR = Descriptor.from_dict(NODE)


@pytest.mark.parametrize(
    "pieces", [[b"hello"], [b"he", b"", b"llo"], [b"h", b"e", b"l", b"l", b"o"]]
)
def test_the_right_bytes_pass(pieces: list[bytes]) -> None:
    assert b"".join(DESCRIPTOR.check(pieces)) == b"hello"


@pytest.mark.parametrize(
    "pieces", [[], [b"hell"], [b"hello!"], [b"hello", b"!"], [b"jello"], [b"hellp"]]
)
def test_a_consumer_never_gets_all_of_the_wrong_bytes(pieces: list[bytes]) -> None:
    got: list[bytes] = []
    with pytest.raises(IntegrityError, match=HELLO):
        got.extend(DESCRIPTOR.check(pieces))
    assert sum(map(len, got)) < 5


@pytest.mark.parametrize("size", [4, 6])
def test_a_descriptor_that_lies_about_the_size_is_refused(size: int) -> None:
    with pytest.raises(IntegrityError):
        list(Descriptor("text/plain", DESCRIPTOR.digest, size).check([b"hello"]))


def test_an_endless_stream_is_cut() -> None:
    taken: list[bytes] = []

    def endless() -> Iterator[bytes]:
        for piece in repeat(b"hello"):
            taken.append(piece)
            yield piece

    with pytest.raises(IntegrityError, match="more than 5 bytes"):
        list(DESCRIPTOR.check(endless()))
    assert len(taken) == 2


def test_a_sha512_descriptor_checks_with_sha512() -> None:
    digest = Digest("sha512", hashlib.sha512(b"hello").hexdigest())
    assert b"".join(Descriptor("t", digest, 5).check([b"hello"])) == b"hello"
    with pytest.raises(IntegrityError):
        list(Descriptor("t", digest, 5).check([b"jello"]))


def manifest(
    change: Callable[[dict[str, Any]], object] = lambda _: None, kind: str = MANIFEST
) -> Manifest:
    document: dict[str, Any] = {"schemaVersion": 2, "mediaType": kind}
    document |= {"manifests": [NODE]} if kind == INDEX else {"config": NODE, "layers": [NODE, NODE]}
    change(document)
    return Manifest(json.dumps(document).encode(), kind)


def test_a_manifest_needs_its_config_and_layers_each_once() -> None:
    assert manifest().children == (DESCRIPTOR,)
    assert manifest(kind=INDEX).children == (DESCRIPTOR,)
    assert manifest().subject is None
    assert manifest(lambda d: d.update(subject=NODE)).subject == DESCRIPTOR
    assert manifest(lambda d: d.pop("mediaType")).children == (DESCRIPTOR,)


def test_a_referrer_is_described_with_its_type_and_annotations() -> None:
    made = manifest(lambda d: d.update(artifactType="a/b", annotations={"k": "v"}))
    assert made.referrer.artifact_type == "a/b"
    assert made.referrer.annotations == {"k": "v"}
    assert made.descriptor.annotations == {}
    assert manifest().artifact_type == "text/plain"
    assert manifest(kind=INDEX).artifact_type == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(mediaType=INDEX), "was found as"),
        (lambda d: d.update(manifests=[]), "both as a manifest and as an index"),
        (lambda d: d.update(fsLayers=[]), "both as a manifest and as an index"),
        (lambda d: d.pop("config"), "config"),
        (lambda d: d.update(config=None), "config"),
        (lambda d: d.update(layers={"a": 1}), "layers"),
        (lambda d: d.update(layers=[None]), "layers"),
        (lambda d: d.update(layers=[{**NODE, "size": -1}]), "not a size"),
        (lambda d: d.update(layers=7), "layers"),
        (lambda d: d.update(subject="x"), "subject"),
        (lambda d: d.update(annotations={"a": 1}), "annotations"),
        (lambda d: d.update(annotations=["a"]), "annotations"),
    ],
)
def test_a_manifest_that_is_none_is_refused(change: Callable[[Any], object], words: str) -> None:
    made = manifest(change)
    with pytest.raises(IntegrityError, match=words):
        _ = (made.children, made.subject, made.annotations)


@pytest.mark.parametrize("member", ["config", "layers"])
def test_an_index_that_could_be_a_manifest_is_refused(member: str) -> None:
    with pytest.raises(IntegrityError, match="both as a manifest and as an index"):
        _ = manifest(lambda d: d.update({member: []}), kind=INDEX).children


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"\xff", b'{"a":1,"a":1}', b"[" * 9999])
def test_bytes_that_are_no_manifest_are_refused(raw: bytes) -> None:
    with pytest.raises(IntegrityError):
        _ = Manifest(raw, MANIFEST).document
    with pytest.raises(IntegrityError, match="neither"):
        _ = Manifest(b"{}", "text/plain").document


def artifact() -> Artifact:
    made = manifest()
    return Artifact(made, {DESCRIPTOR.digest: b"hello"})


def test_an_artifact_is_a_source() -> None:
    made = artifact()
    assert made.resolve(str(made.root.digest)) == made.root
    assert b"".join(made.fetch(made.root)) == made.manifest.raw
    assert b"".join(made.fetch(DESCRIPTOR)) == b"hello"
    assert list(made.referrers(made.root)) == []
    assert store.manifest(made, made.root) == made.manifest
    again = Artifact(made.manifest, {DESCRIPTOR.digest: lambda: iter([b"he", b"llo"])})
    assert b"".join(again.fetch(DESCRIPTOR)) == b"".join(again.fetch(DESCRIPTOR)) == b"hello"


def test_an_artifact_holds_nothing_else() -> None:
    made = artifact()
    with pytest.raises(NotFound):
        made.resolve("v1")
    with pytest.raises(NotFound):
        made.fetch(Descriptor.of("t", b"else"))


def test_reading_is_bounded_before_it_begins() -> None:
    made = artifact()
    huge = Descriptor(MANIFEST, DESCRIPTOR.digest, 4 * 1024 * 1024 + 1)
    with pytest.raises(IntegrityError, match="at most 4194304"):
        store.manifest(made, huge)
    with pytest.raises(IntegrityError, match="is not a manifest"):
        store.manifest(made, DESCRIPTOR)
    with pytest.raises(IntegrityError, match="at most 4 are read"):
        store.read(made, DESCRIPTOR, limit=4)
    assert store.read(made, DESCRIPTOR, limit=5) == b"hello"
