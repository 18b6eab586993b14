"""Version ranges: the library of Helm and Flux was asked for each range of the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ocipack.errors import Misuse
from ocipack.mirror.versions import LONGEST, Range, Version

TABLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "vectors/semver.json").read_text(encoding="utf-8")
)
RANGES: list[tuple[str, str | None, str | None]] = [tuple(row) for row in TABLE["ranges"]]
VERSIONS: list[str] = TABLE["versions"]


def parsed(text: str) -> Version:
    version = Version.parse(text)
    assert version is not None, text
    return version


@pytest.mark.parametrize(("text", "releases", "everything"), RANGES, ids=lambda one: str(one)[:30])
def test_a_range_holds_what_the_library_says(
    text: str, releases: str | None, everything: str | None
) -> None:
    if releases is None:
        with pytest.raises(Misuse, match="not a version range"):
            Range(text)
        return
    found = Range(text)
    versions = [parsed(one) for one in VERSIONS]
    assert [found.fits(one) for one in versions] == [digit == "1" for digit in releases]
    wanted = [digit == "1" for digit in everything or ""]
    assert [found.fits(one, prereleases=True) for one in versions] == wanted


@pytest.mark.parametrize("text", TABLE["refused"])
def test_what_the_library_calls_no_version_is_none(text: str) -> None:
    assert Version.parse(text) is None


@pytest.mark.parametrize("text", ["<=*", "!=x", "^*", ">x", "<X"])
def test_a_bare_wildcard_goes_with_what_means_something(text: str) -> None:
    with pytest.raises(Misuse, match="not a version range"):
        Range(text)


def test_versions_are_ordered_as_semver_says() -> None:
    """Semantic Versioning 2.0.0, §11, and its example."""
    said = [
        *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta"),
        *("1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "2.0.0", "2.1.0", "2.1.1"),
    ]

    assert sorted(sorted(said), key=parsed) == said


def test_build_metadata_says_nothing_about_order() -> None:
    assert parsed("1.2.3+a") == parsed("v1.2.3+b")


def test_a_range_has_a_bound() -> None:
    longest = "1.2.3 " * (LONGEST // 6)

    assert Range(longest).fits(parsed("1.2.3"))
    with pytest.raises(Misuse, match="at most 512 characters"):
        Range(longest + "1.2.3 ")
