"""Which tags a selection leaves, in which order, and when it leaves too few."""

from __future__ import annotations

from typing import Any

import pytest

from ocipack.errors import Misuse, Rejected
from ocipack.mirror.model import Selection, Source, glob
from ocipack.mirror.pattern import Pattern
from ocipack.mirror.select import chosen, picked
from ocipack.mirror.versions import Range
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference

APP = Reference.parse("ghcr.io/org/app")
TAGS = ["latest", "v1.2.0", "v1.10.0", "v1.9.0", "v2.0.0-rc.1", "v1.9.0-debug", "main-7-1700"]
HEX = "a" * 64


def semver(text: str, **more: Any) -> Selection:
    return Selection(versions=Range(text), sort="semver", **more)


def test_a_range_leaves_the_greatest_first() -> None:
    assert picked(semver(">=1"), TAGS) == ["v1.10.0", "v1.9.0", "v1.2.0"]


def test_prereleases_come_only_if_they_are_asked_for() -> None:
    assert picked(semver(">=1-0"), TAGS)[0] == "v2.0.0-rc.1"
    assert picked(semver(">=1", prereleases=True, exclude=(glob("*-debug"),)), TAGS) == [
        *("v2.0.0-rc.1", "v1.10.0", "v1.9.0", "v1.2.0")
    ]


def test_a_limit_takes_the_greatest() -> None:
    assert picked(semver("^1", limit=2), TAGS) == ["v1.10.0", "v1.9.0"]


def test_a_pattern_takes_a_part_of_the_tag_and_numbers_sort_as_numbers() -> None:
    selection = Selection(
        Pattern(r"main-(?P<run>\d+)-\d+"),
        extract="$run",
        sort="numeric",
        exclude=(glob("main-9-*"),),
    )
    tags = ["main-7-1700", "main-10-1", "main-9-9", "main-x-1", "latest"]

    assert picked(selection, tags) == ["main-10-1", "main-7-1700"]


def test_alphabetical_is_by_bytes_and_from_the_end() -> None:
    assert picked(Selection(Pattern(".*")), ["b", "B", "a", "a10", "a9"]) == [
        *("b", "a9", "a10", "a", "B")
    ]


def test_what_is_no_version_has_no_place_among_versions() -> None:
    assert picked(Selection(Pattern(".*"), sort="semver"), ["latest", "1.0.0"]) == ["1.0.0"]


def test_a_charts_version_has_a_plus_where_its_tag_cannot() -> None:
    selection = semver(">=1.0.0")

    assert picked(selection, ["1.0.0_build.1"], chart=True) == ["1.0.0_build.1"]
    with pytest.raises(Rejected, match="0 tags fit"):
        picked(selection, ["1.0.0_build.1"])


@pytest.mark.parametrize(
    "tag", [f"sha256-{HEX}", f"sha256-{HEX}.sig", f"sha256-{HEX}.att", f"sha512-{HEX}{HEX}.sbom"]
)
def test_what_is_attached_to_a_digest_is_no_image(tag: str) -> None:
    assert picked(Selection(Pattern(".*")), [tag, "v1"]) == ["v1"]


@pytest.mark.parametrize(("least", "fits"), [(3, True), (4, False)])
def test_too_few_tags_are_refused(least: int, fits: bool) -> None:  # noqa: FBT001 - a table of cases
    selection = semver("^1", min_tags=least)
    if fits:
        assert len(picked(selection, TAGS)) == 3
        return
    with pytest.raises(Rejected, match="3 tags fit, and at least 4 must"):
        picked(selection, TAGS)


def test_nothing_is_too_few() -> None:
    with pytest.raises(Rejected, match="0 tags fit, and at least 1 must"):
        picked(Selection(Pattern("nothing")), TAGS)


def test_included_tags_survive_every_filter() -> None:
    source = Source("image", APP, selection=semver("^1", limit=1), include=("latest", "v1.10.0"))

    assert chosen(source, TAGS) == ["v1.10.0", "latest"]


def test_exact_tags_are_taken_as_they_are() -> None:
    assert chosen(Source("image", APP, tags=("b", "a")), ()) == ["b", "a"]
    assert chosen(Source("image", Reference.parse(f"{APP}:v1")), ()) == ["v1"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"extract": "$1"}, "there is none"),
        ({"pattern": Pattern("a"), "extract": "$1"}, "names a group"),
        ({"prereleases": True}, "prereleases belongs to semver"),
        ({"limit": 2, "min_tags": 3}, "never leaves"),
    ],
)
def test_a_selection_that_cannot_be(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        Selection(**change)


@pytest.mark.parametrize(
    ("reference", "change", "words"),
    [
        ("ghcr.io/org/app", {}, "nothing says which tags"),
        ("ghcr.io/org/app:v1", {"tags": ("v2",)}, "said twice"),
        ("ghcr.io/org/app", {"tags": ("v2",), "selection": semver("*")}, "said twice"),
        (f"ghcr.io/org/app@sha256:{HEX}", {"selection": semver("*")}, "said twice"),
        ("ghcr.io/org/app:v1", {"include": ("v2",)}, "there is no select"),
        ("ghcr.io/org/app", {"tags": ("-a",)}, "not a tag"),
        ("ghcr.io/org/app:v1", {"platforms": ("linux",)}, "not a platform"),
        (
            "ghcr.io/org/app:v1",
            {"attached": False, "require_signatures": True},
            "left behind|leaves",
        ),
    ],
)
def test_a_source_that_cannot_be(reference: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(Misuse, match=words):
        Source("image", Reference.parse(reference), **change)


def test_a_tag_with_its_digest_says_it_once() -> None:
    source = Source("image", Reference.parse(f"{APP}:v1").at(Digest("sha256", HEX)))

    assert chosen(source, ()) == ["v1"]
