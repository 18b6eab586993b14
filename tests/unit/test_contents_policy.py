"""What policies say of contents: each field flips a verdict, and what is malformed is refused."""

from __future__ import annotations

from datetime import date

import jsonschema_rs
import pytest
from policies import SCHEMA, load, spec

from ocipack.errors import Misuse
from ocipack.flux.sources import Address
from ocipack.oci.reference import Reference
from ocipack.trust.policy.contents import (
    FORBIDDEN,
    IMAGE,
    PINNED,
    SOURCE,
    UNCLEAR,
    UNPINNED,
    UNVERIFIED,
    Contents,
    Excused,
    Part,
    opinion,
)
from ocipack.trust.policy.names import Glob
from ocipack.trust.policy.words import demands

TODAY = date(2026, 11, 30)
DIGEST = "sha256:" + "a" * 64
HEAD = "images: ['**']\nauthorities: [{keys: [{file: alice.pub}]}]\n"

APP = Reference.parse(f"ghcr.io/org/app:1@{DIGEST}")
GOOD = Part(IMAGE, "app", APP, pinned=True)
LOOSE = Part(IMAGE, "app", Reference.parse("ghcr.io/org/app:1"))
OPEN = Part(IMAGE, "${APP}", reason="a variable")
GIT = Part(SOURCE, "git", address=Address.parse("https://github.com/org/repo"), pinned=True)
BRANCH = Part(SOURCE, "git", address=Address.parse("https://github.com/org/repo"))
CHART = Part(SOURCE, "chart", pinned=True)
RANGE = Part(SOURCE, "o", address=Address.parse("oci://ghcr.io/org/app"), ranges=True)
LOST = Part(SOURCE, "where", reason="no address")


def read(contents: str) -> Contents:
    [policy] = load(HEAD + f"contents: {contents}")
    assert policy.contents is not None
    return policy.contents


def excuse(what: str, until: str) -> str:
    return f"exemptions: [{{{what}, owner: t, reason: r, until: {until}}}]"


ALL_IMAGES, ALL_SOURCES = 'images: ["**"]', 'sources: ["**"]'
LAX = "{images: ['**'], requireDigest: false}"
FLIPS = [
    # what is changed, the contents before and after, the part, the rule before and after
    ("images", "{images: ['ghcr.io/org/*']}", "{images: ['ghcr.io/o/*']}", GOOD, "", FORBIDDEN),
    ("no images", "{images: ['**'], sources: ['**']}", "{sources: ['**']}", GOOD, "", FORBIDDEN),
    ("a tag", "{images: ['ghcr.io/*/*:1']}", "{images: ['ghcr.io/*/*:2']}", GOOD, "", FORBIDDEN),
    (
        "sources",
        "{sources: ['https://github.com/org/*']}",
        "{sources: ['ssh://github.com/org/*']}",
        GIT,
        "",
        FORBIDDEN,
    ),
    ("no sources", "{sources: ['**']}", "{images: ['**']}", GIT, "", FORBIDDEN),
    ("no sources, a chart", "{sources: ['oci://a.b/c']}", "{images: ['**']}", CHART, "", FORBIDDEN),
    (
        "requireDigest",
        "{images: ['**'], requireDigest: false}",
        "{images: ['**'], requireDigest: true}",
        LOOSE,
        "",
        UNPINNED,
    ),
    ("requireDigest left out", LAX, "{images: ['**']}", LOOSE, "", UNPINNED),
    (
        "a branch",
        "{sources: ['**'], requireDigest: false}",
        "{sources: ['**']}",
        BRANCH,
        "",
        UNPINNED,
    ),
    (
        "follow",
        "{sources: ['**'], follow: ['https://github.com/org/*']}",
        "{sources: ['**'], follow: ['https://github.com/o/*']}",
        BRANCH,
        "",
        UNPINNED,
    ),
    ("what is followed is allowed", "{follow: ['**']}", "{images: ['**']}", BRANCH, "", FORBIDDEN),
    ("a chart of what is followed", "{follow: ['**']}", "{images: ['**']}", CHART, "", FORBIDDEN),
    (
        "an image is not followed",
        "{images: ['**'], follow: ['**'], requireDigest: false}",
        "{images: ['**'], follow: ['**']}",
        LOOSE,
        "",
        UNPINNED,
    ),
    (
        "verified, and a range",
        "{follow: ['**']}",
        "{follow: ['**'], verified: true}",
        RANGE,
        "",
        UNVERIFIED,
    ),
    (
        "exemption until",
        f"{{images: ['**'], {excuse('images: [ghcr.io/org/app]', '2026-11-30')}}}",
        f"{{images: ['**'], {excuse('images: [ghcr.io/org/app]', '2026-11-29')}}}",
        LOOSE,
        "",
        UNPINNED,
    ),
    (
        "exemption images",
        f"{{images: ['**'], {excuse('images: [ghcr.io/org/app]', '2026-12-01')}}}",
        f"{{images: ['**'], {excuse('images: [ghcr.io/org/b]', '2026-12-01')}}}",
        LOOSE,
        "",
        UNPINNED,
    ),
    (
        "exemption sources",
        f"{{sources: ['**'], {excuse('sources: [https://github.com/org/*]', '2026-12-01')}}}",
        f"{{sources: ['**'], {excuse('images: [github.com/org/*]', '2026-12-01')}}}",
        BRANCH,
        "",
        UNPINNED,
    ),
    (
        "an exemption of everything covers what is no name",
        f"{{images: ['**'], {excuse(ALL_IMAGES, '2026-12-01')}}}",
        f"{{images: ['**'], {excuse('images: [ghcr.io/**]', '2026-12-01')}}}",
        OPEN,
        "",
        UNCLEAR,
    ),
    (
        "an exemption of every source covers what is no address",
        f"{{images: ['**'], {excuse(ALL_SOURCES, '2026-12-01')}}}",
        f"{{images: ['**'], {excuse('sources: [https://a.b/**]', '2026-12-01')}}}",
        LOST,
        "",
        UNCLEAR,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "part", "before", "after"),
    [flip[1:] for flip in FLIPS],
    ids=[flip[0] for flip in FLIPS],
)
def test_each_field_decides(one: str, other: str, part: Part, before: str, after: str) -> None:
    assert opinion(read(one), part, TODAY).rule == before
    assert opinion(read(other), part, TODAY).rule == after
    SCHEMA.validate(spec(HEAD + f"contents: {one}"))
    SCHEMA.validate(spec(HEAD + f"contents: {other}"))


def test_verified_asks_for_proof_of_what_a_registry_has() -> None:
    asked, plain = read("{images: ['**'], sources: ['**'], verified: true}"), PINNED
    assert opinion(asked, GOOD, TODAY).proof
    assert not opinion(plain, GOOD, TODAY).proof
    assert not opinion(read("{images: ['**'], verified: false}"), GOOD, TODAY).proof
    assert not opinion(asked, GIT, TODAY).proof  # a commit has no signature of ours
    artifact = Part(SOURCE, "o", APP, Address.parse("oci://ghcr.io/org/app"), pinned=True)
    assert opinion(asked, artifact, TODAY).proof
    assert not opinion(asked, LOOSE, TODAY).proof  # refused already


def test_an_exemption_says_who_and_until_when_and_holds_for_nobody_without_a_day() -> None:
    contents = read(f"{{images: ['**'], {excuse('images: [ghcr.io/org/app]', '2026-11-30')}}}")
    found = opinion(contents, LOOSE, TODAY)
    assert str(found.excused) == "t exempts it until 2026-11-30: r"
    late = opinion(contents, LOOSE, date(2026, 12, 1))
    assert (late.rule, late.excused, len(late.ended)) == (UNPINNED, None, 1)
    assert opinion(contents, LOOSE, None).rule == UNPINNED


LONG = " " + "r" * 501 + ","
WRONG = [
    ("{}", "p.yaml:7:13:", "contents without images and sources allows nothing"),
    ("{requireDigest: true}", "p.yaml:7:13:", "allows nothing"),
    ("{images: []}", "p.yaml:7:22:", "images is empty"),
    ("{follow: []}", "p.yaml:7:22:", "follow is empty"),
    ("{follow: [x]}", "p.yaml:7:23:", "not a glob of sources"),
    ("{images: ['**'], sources: []}", "p.yaml:7:39:", "sources is empty"),
    ("{images: [app]}", "p.yaml:7:23:", "not a glob"),
    ("{sources: [github.com/org]}", "p.yaml:7:24:", "not a glob of sources"),
    ("{images: ['**'], Verified: true}", "p.yaml:7:30:", "did you mean verified?"),
    ("{images: ['**'], verified: 'yes'}", "p.yaml:7:40:", "should be true or false"),
    ("{images: ['**'], requireDigest: 1}", "p.yaml:7:45:", "should be true or false"),
    ("{images: ['**'], exemptions: []}", "p.yaml:7:42:", "exemptions is empty"),
    ("[images]", "p.yaml:7:13:", "should be a mapping"),
    (
        "{images: ['**'], exemptions: [{owner: t, reason: r, until: 2026-12-01}]}",
        "p.yaml:7:43:",
        "needs images or sources",
    ),
    (
        "{images: ['**'], exemptions: [{images: ['**'], reason: r, until: 2026-12-01}]}",
        "p.yaml:7:43:",
        "has no owner",
    ),
    (
        "{images: ['**'], exemptions: [{images: ['**'], owner: t, until: 2026-12-01}]}",
        "p.yaml:7:43:",
        "has no reason",
    ),
    (
        "{images: ['**'], exemptions: [{images: ['**'], owner: t, reason: r}]}",
        "p.yaml:7:43:",
        "has no until",
    ),
    (
        "{images: ['**'], exemptions: [{images: ['**'], owner: t, reason: r, until: soon}]}",
        "p.yaml:7:88:",
        "no date",
    ),
    (
        f"{{images: ['**'], {excuse(ALL_IMAGES, '2026-12-01').replace(' r,', LONG)}}}",
        "p.yaml:7:43:",
        "at most 500",
    ),
]
BEYOND_SCHEMA = ("not a glob", "did you mean", "at most 500")


@pytest.mark.parametrize(("contents", "place", "words"), WRONG)
def test_what_is_malformed(contents: str, place: str, words: str) -> None:
    with pytest.raises(Misuse) as caught:
        read(contents)
    whole = f"{caught.value} {caught.value.hint}"
    assert whole.startswith(place), whole
    assert words in whole
    if not any(said in words for said in BEYOND_SCHEMA):
        assert not SCHEMA.is_valid(spec(HEAD + f"contents: {contents}"))


def test_a_static_policy_has_nothing_to_say_of_contents() -> None:
    text = "images: ['**']\nstatic: fail\nreason: r\ncontents: {images: ['**']}"
    with pytest.raises(Misuse, match="no effect"):
        load(text)
    with pytest.raises(jsonschema_rs.ValidationError):
        SCHEMA.validate(spec(text))


def test_what_it_asks_in_words() -> None:
    text = (
        "contents: {images: [ghcr.io/**], follow: ['oci://a.b/*'], verified: true, exemptions: "
        "[{images: [ghcr.io/a], sources: ['oci://b.c/d'], owner: t, reason: r, until: 2027-01-01}]}"
    )
    [policy] = load(HEAD + text)
    assert list(demands(policy))[2:] == [
        "what is named inside:",
        "  images: ghcr.io/**",
        "  sources: none",
        "  followed: oci://a.b/*",
        "  each other is pinned",
        "  each image, and each source in a registry, is verified by its own name",
        "  except ghcr.io/a, oci://b.c/d until 2027-01-01, by t: r",
    ]


def test_an_exemption_needs_an_owner_and_a_reason() -> None:
    for owner, reason in ((" ", "r"), ("t", " ")):
        with pytest.raises(Misuse, match="needs images or sources, an owner and a reason"):
            Excused((Glob("**"),), (), owner, reason, TODAY)
