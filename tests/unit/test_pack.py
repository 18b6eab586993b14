"""From a tree to an artifact."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ocipack.errors import IntegrityError, Misuse, Rejected
from ocipack.files.snapshot import snapshot
from ocipack.files.workspace import Workspace
from ocipack.oci.artifact import Artifact, Blob
from ocipack.pack import pack
from ocipack.tree.limits import Limits
from ocipack.tree.tree import File, Tree

TREE = Tree({"a.yaml": File.of(b"kind: List\n"), "bin/run": File.of(b"#!\n", executable=True)})
NOTES = {
    "org.opencontainers.image.revision": "main@sha1:0123456789abcdef0123456789abcdef01234567",
    "org.opencontainers.image.created": "2023-11-14T22:13:20Z",
}


def keep(chunks: Iterable[bytes]) -> Blob:
    return b"".join(chunks)


def packed(tree: Tree = TREE, **options: Any) -> Artifact:
    return pack(tree, spool=keep, **options)


# Changing one of these is a change of format and needs a line in CHANGELOG.
GOLDEN = {
    ("deflate", "flux"): "sha256:4dbf9d53ef8912580ba9fafb7dfcd13abedbeb17004d3a48a775266fe101ee1d",
    ("stored", "flux"): "sha256:c8645ae4997c022cc51d66f99f60e0babe3f7302bc01d4000175914837e46ded",
    ("deflate", "oci"): "sha256:6215f697adc23f614e3e245a982f1a66ec592d0589f8a475027bf9cd0df3fc0c",
}


@pytest.mark.parametrize(("compression", "layer_type"), GOLDEN)
def test_golden(compression: str, layer_type: str) -> None:
    made = packed(annotations=NOTES, compression=compression, layer_type=layer_type)
    assert str(made.root.digest) == GOLDEN[compression, layer_type]


def test_what_it_is_made_of() -> None:
    made = packed(annotations=NOTES)
    document = json.loads(made.manifest.raw)
    assert list(document) == ["schemaVersion", "mediaType", "config", "layers", "annotations"]
    assert document["mediaType"] == "application/vnd.oci.image.manifest.v1+json"
    assert document["config"]["mediaType"] == "application/vnd.cncf.flux.config.v1+json"
    (layer,) = document["layers"]
    assert layer["mediaType"] == "application/vnd.cncf.flux.content.v1.tar+gzip"
    assert list(document["annotations"]) == sorted(NOTES)
    data = b"".join(made.fetch(made.manifest.layers[0]))
    assert layer["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    config = json.loads(b"".join(made.fetch(made.manifest.config)))
    tar = hashlib.sha256(gzip.decompress(data)).hexdigest()
    assert config["rootfs"]["diff_ids"] == [f"sha256:{tar}"]


def test_argo_cd_gets_the_layer_type_that_it_takes() -> None:
    (layer,) = packed(layer_type="oci").manifest.layers
    assert layer.media_type == "application/vnd.oci.image.layer.v1.tar+gzip"


@pytest.mark.parametrize(
    "options", [{"layer_type": "helm"}, {"compression": "zstd"}, {"annotations": {"a b": "c"}}]
)
def test_what_cannot_be_meant_is_misuse(options: dict[str, Any]) -> None:
    with pytest.raises(Misuse):
        packed(**options)


def test_an_empty_tree_is_refused() -> None:
    with pytest.raises(Rejected, match="no file to pack") as e:
        packed(Tree({}))
    assert "prune" in e.value.hint


def test_limits_reach_the_archive() -> None:
    with pytest.raises(Rejected):
        packed(limits=Limits(entries=2))


def test_a_spool_that_stops_early_is_a_bug_and_does_not_pass() -> None:
    def lazy(chunks: Iterable[bytes]) -> Blob:
        return next(iter(chunks))

    with pytest.raises(RuntimeError, match="read to its end"):
        pack(TREE, spool=lazy)


def test_what_the_spool_kept_is_checked_when_it_is_sent() -> None:
    made = pack(TREE, spool=lambda chunks: b"".join(chunks)[:-1] + b"x")
    with pytest.raises(IntegrityError):
        b"".join(made.fetch(made.manifest.layers[0]))


def test_the_tree_is_read_exactly_once() -> None:
    reads = []

    def content() -> Iterator[bytes]:
        reads.append(1)
        yield b"x"

    with Workspace() as work:
        made = pack(Tree({"a": File(1, executable=False, open=content)}), spool=work.spool)
        for _ in range(3):
            b"".join(made.fetch(made.manifest.layers[0]))
    assert reads == [1]


def test_annotations_are_asked_for_when_the_content_has_been_taken() -> None:
    order = []

    def content() -> Iterator[bytes]:
        order.append("content")
        yield b"x"

    def said() -> dict[str, str]:
        order.append("annotations")
        return {"a": "b"}

    with Workspace() as work:
        tree = Tree({"a": File(1, executable=False, open=content)})
        made = pack(tree, spool=work.spool, annotations=said)
    assert order == ["content", "annotations"]
    assert dict(made.manifest.annotations) == {"a": "b"}


SCRIPT = """
import sys
from ocipack.files.snapshot import snapshot
from ocipack.files.workspace import Workspace
from ocipack.pack import pack
with Workspace() as work:
    print(pack(snapshot(sys.argv[1]).tree, spool=work.spool).root.digest)
"""


def test_umask_locale_zone_and_times_never_reach_the_digest(tmp_path: Path) -> None:
    digests = set()
    for umask, locale, zone, mtime in [
        (0o022, "C", "UTC", 0),
        (0o077, "tr_TR.UTF-8", "Asia/Kathmandu", 2**30),
        (0o002, "C.UTF-8", "America/New_York", 1),
    ]:
        root = tmp_path / str(umask)
        old = os.umask(umask)
        try:
            for name in (
                ["é/I.yaml", "i.yaml", "b/z", "b-a/z"]
                if umask == 0o022
                else reversed(["é/I.yaml", "i.yaml", "b/z", "b-a/z"])
            ):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(name, encoding="utf-8")
                os.utime(root / name, (mtime, mtime))
        finally:
            os.umask(old)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, root],
            env={"LC_ALL": locale, "TZ": zone, "PYTHONHASHSEED": str(umask), "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
            text=True,
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1
    assert digests.pop().startswith("sha256:")


def test_twenty_thousand_files(tmp_path: Path) -> None:
    for d in range(100):
        (tmp_path / f"d{d}").mkdir()
        for f in range(200):
            (tmp_path / f"d{d}/f{f}.yaml").write_bytes(b"kind: List\n")
    with Workspace() as work:
        made = pack(snapshot(str(tmp_path)).tree, spool=work.spool)
    assert len(made.manifest.layers) == 1


MEMORY = """
import sys
from ocipack.files.snapshot import snapshot
from ocipack.files.workspace import Workspace
from ocipack.pack import pack
from ocipack.tree.unarchive import read
def peak():  # of this process alone: getrusage starts with what its parent had
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
before = peak()
with Workspace(sys.argv[2]) as work:
    made = pack(snapshot(sys.argv[1]).tree, spool=work.spool, compression=sys.argv[3])
    after = peak()
    (layer,) = made.manifest.layers
    for entry in read(made.fetch(layer), size=layer.size):
        for chunk in entry.content:
            pass
print(before, after, peak())
"""


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["deflate", "stored"])
def test_memory_is_flat_while_400_mib_are_packed_and_read(compression: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    block = hashlib.shake_256(b"m").digest(1 << 20)
    with (root / "big").open("wb") as big:
        for i in range(400):
            big.write(block[i:] + block[:i])
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, root, tmp_path, compression],
        capture_output=True,
        check=True,
        text=True,
    )
    before, packing, reading = map(int, done.stdout.split())
    print(f"RSS in MiB: {before} at the start, {packing} packed, {reading} read back")
    assert packing - before <= 64
    assert reading - before <= 64
