"""From proof to files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tars import entry, layer

from ocipack.errors import IntegrityError, Misuse
from ocipack.files.unpack import write_tree
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.pack import pack
from ocipack.pull import pull
from ocipack.report import Report
from ocipack.tree.limits import Limits
from ocipack.tree.tree import Entry, File, Tree
from ocipack.verify import Verified

TREE = Tree({"a.yaml": File.of(b"kind: List\n"), "bin/run": File.of(b"#!\n", executable=True)})
CONFIG = "application/vnd.cncf.flux.config.v1+json"
CONTENT = "application/vnd.cncf.flux.content.v1.tar+gzip"


def proof(manifest: Manifest) -> Verified:
    name = Reference("localhost", "x", digest=manifest.descriptor.digest)
    return Verified(name, manifest.descriptor, manifest, (), Report())


def artifact(data: bytes, config: bytes = b"{}", **said: Any) -> Artifact:
    document = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": Descriptor.of(said.get("config_type", CONFIG), config).to_dict(),
        "layers": [Descriptor.of(said.get("layer_type", CONTENT), data).to_dict()],
    }
    blobs = {Digest.of(config): config, Digest.of(data): data}
    return Artifact(Manifest.build(document), blobs)


class Wrong:
    """A source that gives one blob wrongly."""

    def __init__(self, real: Artifact, target: Descriptor, chunks: list[bytes]) -> None:
        self.real, self.target, self.chunks = real, target, chunks
        self.asked: list[str] = []

    def resolve(self, name: str) -> Descriptor:
        return self.real.resolve(name)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        self.asked.append(target.media_type)
        if target.digest == self.target.digest:
            return target.check(self.chunks)
        return self.real.fetch(target)

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        return self.real.referrers(subject)


def test_there_and_back(tmp_path: Path) -> None:
    for how in ("flux", "oci"):
        made = pack(TREE, spool=b"".join, layer_type=how)
        out = tmp_path / how
        done = pull(made, proof(made.manifest), lambda files: write_tree(files, str(out)))  # noqa: B023
        assert (done.files, done.size, done.layer) == (2, 14, made.manifest.layers[0])
        assert (out / "a.yaml").read_bytes() == b"kind: List\n"
        assert (out / "bin/run").stat().st_mode & 0o100


@pytest.mark.parametrize(
    "config",
    [
        b'{"rootfs":{"type":"layers","diff_ids":null}}',
        b"{}",
    ],
)
def test_what_flux_made_is_pulled(tmp_path: Path, config: bytes) -> None:
    data = layer(entry(".", kind=b"5"), entry("d", kind=b"5"), entry("d/a", b"x"))
    made = artifact(data, config)
    pull(made, proof(made.manifest), lambda files: write_tree(files, str(tmp_path / "out")))
    assert (tmp_path / "out/d/a").read_bytes() == b"x"


def test_a_config_of_another_kind_promises_nothing_and_is_not_read(tmp_path: Path) -> None:
    made = artifact(layer(entry("a", b"x")), config_type="application/vnd.oci.empty.v1+json")
    source = Wrong(made, made.manifest.config, [])
    pull(source, proof(made.manifest), lambda files: write_tree(files, str(tmp_path / "out")))
    assert source.asked == [CONTENT]
    assert (tmp_path / "out/a").read_bytes() == b"x"


def fails(
    made: Artifact | Wrong, manifest: Manifest, out: Path, limits: Limits | None = None
) -> str:
    with pytest.raises(IntegrityError) as e:
        pull(
            made,
            proof(manifest),
            lambda files: write_tree(files, str(out)),
            limits=limits or Limits(),
        )
    assert not list(out.parent.iterdir()), "something is left"
    return str(e.value)


def test_proof_about_another_manifest_proves_nothing(tmp_path: Path) -> None:
    made, other = artifact(layer(entry("a"))), artifact(layer(entry("b")))
    wrong = replace(proof(made.manifest), manifest=other.manifest)
    with pytest.raises(IntegrityError, match="another manifest"):
        pull(other, wrong, lambda files: write_tree(files, str(tmp_path / "out")))


def test_a_layer_with_other_bytes_leaves_nothing(tmp_path: Path) -> None:
    good, evil = layer(entry("a", b"good")), layer(entry("a", b"evil"))
    made = artifact(good)
    source = Wrong(made, made.manifest.layers[0], [evil])
    assert "digest" in fails(source, made.manifest, tmp_path / "out")


@pytest.mark.parametrize("change", ["short", "long"])
def test_a_layer_of_another_size_leaves_nothing(tmp_path: Path, change: str) -> None:
    data = layer(entry("a", b"good"))
    made = artifact(data)
    chunks = [data[:-1]] if change == "short" else [data, b"x"]
    source = Wrong(made, made.manifest.layers[0], chunks)
    assert fails(source, made.manifest, tmp_path / "out")


def test_the_content_digest_of_the_config_is_compared(tmp_path: Path) -> None:
    tar = entry("a", b"x") + bytes(1024)

    def config(digest: Digest) -> bytes:
        return json.dumps({"rootfs": {"diff_ids": [str(digest)]}}).encode()

    made = artifact(gzip.compress(tar), config(Digest.of(b"other")))
    assert "its config says" in fails(made, made.manifest, tmp_path / "out")
    made = artifact(gzip.compress(tar), config(Digest.of(tar)))
    pull(made, proof(made.manifest), lambda files: write_tree(files, str(tmp_path / "out")))


@pytest.mark.parametrize(
    "data",
    [
        layer(entry("../evil", b"x")),
        layer(entry("ok", b"x"), entry("/evil", b"x")),
        layer(entry("ok", b"x"), entry("link", kind=b"2", linkname=b"..")),
        layer(entry("ok", b"x"), entry("link", kind=b"1", linkname=b"/etc/passwd")),
        layer(entry("a", b"x"), entry("a", b"y")),
        layer(entry("a", b"x"))[:-1],
        b"not a tar",
    ],
)
def test_hostile_content_leaves_nothing(tmp_path: Path, data: bytes) -> None:
    made = artifact(data)
    assert fails(made, made.manifest, tmp_path / "out")


def test_a_layer_too_large_is_not_fetched(tmp_path: Path) -> None:
    data = layer(entry("a", b"x"))
    made = artifact(data)
    source = Wrong(made, made.manifest.layers[0], [data])
    said = fails(source, made.manifest, tmp_path / "out", Limits(layer=len(data) - 1))
    assert f"at most {len(data) - 1} are read" in said
    assert source.asked == []


def test_a_config_too_large_is_not_fetched(tmp_path: Path) -> None:
    made = artifact(layer(entry("a", b"x")), b"{}" + b" " * 70_000)
    source = Wrong(made, made.manifest.layers[0], [])
    assert "at most 65536 are read" in fails(source, made.manifest, tmp_path / "out")
    assert source.asked == []


def test_another_kind_of_artifact_is_not_fetched(tmp_path: Path) -> None:
    made = artifact(b"x", layer_type="application/vnd.cncf.helm.chart.content.v1.tar+gzip")
    source = Wrong(made, made.manifest.layers[0], [b"x"])
    assert "not a tree of files" in fails(source, made.manifest, tmp_path / "out")
    assert source.asked == []


def test_a_writer_that_stops_early_is_a_bug_and_does_not_pass() -> None:
    def first(entries: Iterator[Entry]) -> None:
        next(entries)

    made = pack(TREE, spool=b"".join)
    with pytest.raises(RuntimeError, match="before the content was known"):
        pull(made, proof(made.manifest), first)


def test_a_destination_that_is_taken_is_misuse(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    made = pack(TREE, spool=b"".join)
    with pytest.raises(Misuse, match="not empty"):
        pull(made, proof(made.manifest), lambda files: write_tree(files, str(tmp_path)))
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]
