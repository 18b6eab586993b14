"""What `ship` delivers is the same everywhere, and others can read it."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest
from interop.peers import Desk
from interop.trees import tree
from interop.wire import Repository, digest

SHOP = Path(__file__).parents[2] / "examples" / "shop"
FLUX_CONFIG = "application/vnd.cncf.flux.config.v1+json"
FLUX_LAYER = "application/vnd.cncf.flux.content.v1.tar+gzip"
BIG = 20 << 20
"""Bytes of content that need several gzip members of at most 8 MiB of input."""


def ship(desk: Desk, folder: Path, place: str, key: str, *more: str) -> str:
    """Ship and return the digest."""
    printed = desk.ocipack(
        "ship", str(folder), "--to", place, "--key", f"{key}.key", *more
    ).expect()
    return printed.rpartition("@")[2]


def members(data: bytes) -> int:
    """Count the members of a gzip stream."""
    count = 0
    while data:
        reader = zlib.decompressobj(wbits=31)
        reader.decompress(data)
        assert reader.eof
        data, count = reader.unused_data, count + 1
    return count


def contents(folder: Path) -> dict[str, bytes]:
    """Read all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_digest_in_a_layout_and_on_a_registry(
    desk: Desk, repository: Repository, keys: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    shutil.copytree(SHOP, folder)
    roots = sorted(str(path.relative_to(folder)) for path in (folder / "overlays").iterdir())
    rendered = [part for root in roots for part in ("--root", root)]
    here = ship(desk, folder, "ocidir://site:stable", keys["alice"], *rendered)
    there = ship(desk, folder, f"{repository.place}:stable", keys["alice"], *rendered)
    assert here == there == repository.digest("stable")
    assert repository.forms(there) == (1, 1)
    fixed = f"stable-{there.removeprefix('sha256:')[:12]}"
    assert {"stable", fixed} <= set(repository.tags())
    assert repository.digest(fixed) == there
    assert repository.missing("stable") == []

    again = desk.ocipack(
        "ship", str(folder), "--to", f"{repository.place}:stable",
        "--key", f"{keys['alice']}.key", *rendered,
    )  # fmt: skip
    again.expect()
    assert "unchanged" in again.err
    assert repository.forms(there) == (1, 1)


@pytest.fixture
def shipped(
    desk: Desk, repository: Repository, keys: dict[str, str], tmp_path: Path
) -> tuple[Path, str]:
    """A tree whose layer has several gzip members, shipped; with its digest."""
    folder = tree(tmp_path / "site", filler=BIG)
    made = ship(desk, folder, f"{repository.place}:big", keys["alice"])
    manifest = repository.manifest("big")
    assert manifest["config"]["mediaType"] == FLUX_CONFIG
    assert [layer["mediaType"] for layer in manifest["layers"]] == [FLUX_LAYER]
    assert members(repository.blob(manifest["layers"][0]["digest"])) >= BIG >> 23
    return folder, made


@pytest.mark.interop("crane", "oras", "regctl", "flux", "skopeo")
def test_others_read_what_we_pushed(
    desk: Desk, repository: Repository, shipped: tuple[Path, str]
) -> None:
    folder, made = shipped
    wanted = contents(folder)
    layer = repository.manifest("big")["layers"][0]["digest"]
    _crane(desk, repository, made, wanted)
    _oras(desk, repository, made, layer)
    _regctl(desk, repository, made, layer)
    _skopeo(desk, repository, made)
    out = desk.folder / "flux"
    out.mkdir()
    desk.tool("flux", "pull", "artifact", f"oci://{repository}@{made}", "-o", str(out)).expect()
    assert contents(out) == wanted
    _tar(desk, repository.blob(layer), wanted)


def _crane(desk: Desk, repository: Repository, made: str, wanted: dict[str, bytes]) -> None:
    assert desk.tool("crane", "digest", f"{repository}:big").expect() == made
    desk.tool("crane", "validate", "--remote", f"{repository}@{made}").expect()
    raw = desk.tool("crane", "manifest", f"{repository}@{made}").out
    assert digest(raw.encode()) == made
    out = desk.folder / "crane.tar"
    desk.tool("crane", "export", f"{repository}@{made}", str(out)).expect()
    with tarfile.open(fileobj=io.BytesIO(out.read_bytes())) as archive:
        assert {one.name for one in archive if one.isfile()} == set(wanted)


def _oras(desk: Desk, repository: Repository, made: str, layer: str) -> None:
    copy = desk.folder / "oras"
    target = f"{repository}@{made}"
    desk.tool("oras", "cp", "--from-plain-http", "--to-oci-layout", target, f"{copy}:big").expect()
    kept = copy / "blobs" / "sha256" / layer.removeprefix("sha256:")
    assert digest(kept.read_bytes()) == layer
    desk.tool("oras", "pull", "--plain-http", "-o", str(desk.folder / "pulled"), target).expect()
    shown = desk.tool("oras", "discover", "--plain-http", "--format", "json", target).expect()
    found = json.loads(shown)
    assert [one["artifactType"] for one in found.get("referrers") or found["manifests"]]


def _regctl(desk: Desk, repository: Repository, made: str, layer: str) -> None:
    desk.tool("regctl", "registry", "set", "--tls", "disabled", repository.host).expect()
    target = f"{repository}:big"
    assert desk.tool("regctl", "manifest", "head", target).expect() == made
    raw = desk.tool("regctl", "manifest", "get", "--format", "raw-body", target).out
    assert digest(raw.encode()) == made
    out = desk.folder / "regctl"
    out.mkdir()
    desk.tool("regctl", "image", "copy", target, f"ocidir://{out}:big").expect()
    kept = out / "blobs" / "sha256" / layer.removeprefix("sha256:")
    assert digest(kept.read_bytes()) == layer


def _skopeo(desk: Desk, repository: Repository, made: str) -> None:
    options = ("--preserve-digests", "--src-tls-verify=false")
    command = ("skopeo", "copy", *options, f"docker://{repository}@{made}", "oci:skopeo:big")
    desk.tool(*command).expect()
    index = json.loads((desk.folder / "skopeo" / "index.json").read_bytes())
    assert [one["digest"] for one in index["manifests"]] == [made]


def _tar(desk: Desk, layer: bytes, wanted: dict[str, bytes]) -> None:
    out = desk.folder / "gnu"
    out.mkdir()
    command = ["tar", "-xzf", "-", "-C", str(out)]
    done = subprocess.run(command, input=layer, capture_output=True, check=True)
    assert done.stderr == b""  # GNU tar warns of what it finds odd
    assert contents(out) == wanted


@pytest.mark.interop("flux")
def test_we_read_what_flux_pushed(
    desk: Desk, repository: Repository, keys: dict[str, str], tmp_path: Path
) -> None:
    folder = tree(tmp_path / "site")
    facts = ("--source", "https://example.com/site", "--revision", "main@sha1:" + "0" * 40)
    target = f"{repository}:v1"
    desk.tool("flux", "push", "artifact", f"oci://{target}", "-f", str(folder), *facts).expect()
    desk.ocipack("sign", f"oci://{target}", "--key", f"{keys['alice']}.key").expect()
    key = ("--key", f"{keys['alice']}.pub")
    desk.ocipack("pull", f"oci://{target}", *key, "-o", "out").expect()
    assert contents(desk.folder / "out") == contents(folder)
