"""The artifact's parts, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ocipack.errors import IntegrityError, Misuse
from ocipack.flux.artifact import build, config, content, diff_id
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest

EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
FLUX = "application/vnd.cncf.flux.content.v1.tar+gzip"
OCI = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG = "application/vnd.cncf.flux.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def descriptor(media_type: str, size: int = 3) -> dict[str, Any]:
    return {"mediaType": media_type, "size": size, "digest": EMPTY}


def manifest(layers: list[dict[str, Any]], config_type: str = CONFIG) -> Manifest:
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(config_type),
        "layers": layers,
    }
    return Manifest(json.dumps(document).encode(), MANIFEST)


def test_the_config_is_that_of_flux_with_the_content_digest() -> None:
    raw = config(Digest.parse(EMPTY))
    flux_2_9 = (
        b'{"architecture":"","created":"0001-01-01T00:00:00Z","os":"",'
        b'"rootfs":{"type":"layers","diff_ids":null},"config":{}}'
    )
    assert raw == flux_2_9.replace(b"null", b'["%b"]' % EMPTY.encode())
    assert diff_id(raw) == Digest.parse(EMPTY)
    assert diff_id(flux_2_9) is None


def test_the_manifest_has_the_members_of_flux_in_their_order() -> None:
    digest = Digest.parse(EMPTY)
    made = build(Descriptor(CONFIG, digest, 1), Descriptor(FLUX, digest, 2), {"b": "<1>", "a": "ü"})
    assert made.raw.decode() == (
        '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",'
        f'"config":{{"mediaType":"{CONFIG}","size":1,"digest":"{EMPTY}"}},'
        f'"layers":[{{"mediaType":"{FLUX}","size":2,"digest":"{EMPTY}"}}],'
        '"annotations":{"a":"ü","b":"\\u003c1\\u003e"}}'
    )
    bare = build(Descriptor(CONFIG, digest, 1), Descriptor(FLUX, digest, 2))
    assert b"annotations" not in bare.raw


@pytest.mark.parametrize("key", ["", "a b", "a\n"])
def test_an_annotation_key_is_one_word(key: str) -> None:
    digest = Digest.parse(EMPTY)
    with pytest.raises(Misuse, match="not an annotation key"):
        build(Descriptor(CONFIG, digest, 1), Descriptor(FLUX, digest, 2), {key: "x"})


@pytest.mark.parametrize("media_type", [FLUX, OCI])
def test_the_content_is_the_one_layer(media_type: str) -> None:
    found = content(manifest([descriptor(media_type)]))
    assert found.layer.media_type == media_type
    assert found.config is not None
    assert found.config.media_type == CONFIG


def test_a_config_that_knows_nothing_is_not_read() -> None:
    empty = "application/vnd.oci.empty.v1+json"
    assert content(manifest([descriptor(OCI)], empty)).config is None
    image = "application/vnd.oci.image.config.v1+json"
    assert content(manifest([descriptor(OCI)], image)).config is not None


@pytest.mark.parametrize(
    ("layers", "reason"),
    [
        ([], "has 0 layers"),
        ([descriptor(FLUX), descriptor(FLUX)], "has 2 layers"),
        ([descriptor("application/vnd.cncf.helm.chart.content.v1.tar+gzip")], "helm.chart"),
        ([descriptor("application/vnd.oci.image.layer.v1.tar")], "not a tree of files"),
        ([descriptor("application/vnd.cncf.flux.content.v1.tar+gzip ")], "not a tree of files"),
    ],
)
def test_other_artifacts_are_refused(layers: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(IntegrityError, match=reason):
        content(manifest(layers))


def test_an_index_is_refused() -> None:
    index = "application/vnd.oci.image.index.v1+json"
    raw = json.dumps({"schemaVersion": 2, "mediaType": index, "manifests": []}).encode()
    with pytest.raises(IntegrityError, match="is an index") as e:
        content(Manifest(raw, index))
    assert e.value.hint


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"rootfs":1}',
        b'{"rootfs":{"diff_ids":["sha256:x"]}}',
        b'{"rootfs":{"diff_ids":["%b","%b"]}}' % (EMPTY.encode(), EMPTY.encode()),
        b'{"rootfs":{"diff_ids":{"a":1}}}',
        b'{"rootfs":{"diff_ids":1}}',
        b'{"rootfs":{"diff_ids":[1]}}',
        b'{"rootfs":{"diff_ids":[]},"rootfs":{"diff_ids":[]}}',
        b"[" * 100_000,
    ],
)
def test_a_config_that_makes_no_sense_is_an_integrity_error(raw: bytes) -> None:
    with pytest.raises(IntegrityError, match="the artifact's config"):
        diff_id(raw)


@pytest.mark.parametrize("raw", [b"{}", b'{"rootfs":{}}', b'{"rootfs":{"diff_ids":[]}}'])
def test_a_config_may_promise_nothing(raw: bytes) -> None:
    assert diff_id(raw) is None
