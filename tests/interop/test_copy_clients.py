"""What cosign signed it verifies after a copy: to a layout, and from there to the other registry.

The forms that are there are asserted: a copier that drops bundles makes every verdict green.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from interop import servers
from interop.peers import Desk
from interop.servers import Server
from interop.test_signatures import cosign_signs, cosign_verifies
from interop.wire import Repository

pytestmark = pytest.mark.interop(
    "cosign2", "cosign3", "crane", "oras", "docker-registry", "refregd"
)


@pytest.fixture
def other(server: Server, tmp_path: Path) -> Iterator[Repository]:
    """A repository of the other kind of registry."""
    kind: servers.Kind = "docker-registry" if server.has_referrers else "refregd"
    (tmp_path / "other").mkdir()
    with servers.registry(kind, tmp_path / "other") as running:
        yield Repository(running.host, "mirror/app")


def test_both_forms_survive_two_copies(
    desk: Desk, repository: Repository, other: Repository, keys: dict[str, str]
) -> None:
    children = [repository.put_image(text) for text in ("amd64", "arm64")]
    platforms = [{"os": "linux", "architecture": text} for text in ("amd64", "arm64")]
    entries = [{**c, "platform": p} for c, p in zip(children, platforms, strict=True)]
    document = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": entries,
    }
    root = repository.put_manifest(document, "v1")
    subjects = [root, children[0]["digest"]]
    for subject in subjects:
        target = f"{repository}@{subject}"
        cosign_signs(desk, 2, "legacy", keys["alice"], target).expect()
        cosign_signs(desk, 3, "bundle", keys["alice"], target).expect()

    unsigned = ("--allow-unsigned", "--require-signatures", "--output", "json")
    layout = "ocidir://layout:v1"
    first = desk.ocipack("copy", f"{repository.place}:v1", layout, *unsigned).expect()
    second = desk.ocipack("copy", layout, f"{other.place}:v1", *unsigned).expect()
    assert json.loads(first)["kinds"] == json.loads(second)["kinds"]
    assert json.loads(second)["kinds"]["signatures"] == 4

    assert other.digest("v1") == root
    for subject in subjects:
        assert other.forms(subject) == (1, 1)
        for version in (2, 3):
            cosign_verifies(desk, version, keys["alice"], f"{other}@{subject}").expect()
        refused = cosign_verifies(desk, 3, keys["carol"], f"{other}@{subject}")
        assert refused.code != 0, refused
        seen = desk.tool(
            "oras", "discover", "--plain-http", "--format", "json", f"{other}@{subject}"
        )
        assert len(json.loads(seen.expect())["referrers"]) == 1
    assert desk.tool("crane", "digest", "--insecure", f"{other}:v1").expect() == root
