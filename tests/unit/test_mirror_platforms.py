"""Which entries of an index belong to the platforms that are wanted."""

from __future__ import annotations

from typing import Any

import pytest

from ocipack.errors import Rejected
from ocipack.mirror.platforms import Choice
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest

IMAGE = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def digest(number: int) -> Digest:
    return Digest("sha256", f"{number:064x}")


def entry(number: int, platform: Any = None, **annotations: str) -> dict[str, Any]:
    said = {} if platform is None else {"platform": platform}
    notes = {"annotations": annotations} if annotations else {}
    return {"mediaType": IMAGE, "digest": str(digest(number)), "size": 9, **said, **notes}


def index(*entries: dict[str, Any]) -> Manifest:
    return Manifest.build({"schemaVersion": 2, "mediaType": INDEX, "manifests": list(entries)})


def on(os: str, architecture: str, variant: str = "") -> dict[str, str]:
    said = {"os": os, "architecture": architecture}
    return {**said, "variant": variant} if variant else said


ALL = index(
    entry(1, on("linux", "amd64")),
    entry(2, on("linux", "arm", "v7")),
    entry(3, on("linux", "arm64", "v8")),
    entry(4, on("windows", "amd64") | {"os.version": "10.0.1"}),
    entry(5, on("windows", "amd64") | {"os.version": "10.0.2"}),
)


@pytest.mark.parametrize(
    ("platforms", "wanted", "lacking"),
    [
        (("linux/amd64",), {1}, ()),
        (("linux/arm",), {2}, ()),  # and not arm64
        (("linux/arm/v7",), {2}, ()),
        (("linux/arm64",), {3}, ()),
        (("linux/arm64/v9", "linux/amd64"), {1}, ("linux/arm64/v9",)),
        (("windows/amd64",), {4, 5}, ()),  # all its versions
        (("linux/amd64", "linux/arm64", "linux/s390x"), {1, 3}, ("linux/s390x",)),
    ],
)
def test_what_is_wanted(
    platforms: tuple[str, ...], wanted: set[int], lacking: tuple[str, ...]
) -> None:
    choice = Choice(platforms)

    assert choice(ALL) == {digest(number) for number in wanted}
    assert choice.lacking == lacking


def test_an_attestation_comes_with_what_it_is_about() -> None:
    """As BuildKit writes them: for the platform unknown/unknown, with the digest it is about."""
    key = "vnd.docker.reference.digest"
    found = index(
        entry(1, on("linux", "amd64")),
        entry(2, on("linux", "arm64")),
        entry(3, on("unknown", "unknown"), **{key: str(digest(1))}),
        entry(4, on("unknown", "unknown"), **{key: str(digest(2))}),
    )

    assert Choice(("linux/arm64",))(found) == {digest(2), digest(4)}


@pytest.mark.parametrize("platform", [None, {}, [], "linux/amd64", {"os": 1, "architecture": "x"}])
def test_none_is_a_refusal_that_says_what_there_is(platform: Any) -> None:
    found = index(entry(1, platform), entry(2, on("linux", "amd64")))

    with pytest.raises(Rejected, match="no entry is for linux/arm64") as refused:
        Choice(("linux/arm64",))(found)

    assert refused.value.hint == "it has linux/amd64"
