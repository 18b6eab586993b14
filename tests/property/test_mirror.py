"""Mirroring: what holds for every name, every file, every text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from ocipack.errors import Misuse
from ocipack.lock import Lock
from ocipack.mirror.model import Relocation, Source
from ocipack.mirror.plan import Shard
from ocipack.mirror.reader import read
from ocipack.mirror.relocate import repository
from ocipack.mirror.versions import Range, Version
from ocipack.oci.reference import Reference
from ocipack.pin.mirrors import Mirrors

PARTS = st.text("abcdefghij0123456789", min_size=1, max_size=8)
HOSTS = st.builds(lambda a, b: f"{a}.{b}", PARTS, PARTS)
REPOSITORIES = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


@given(HOSTS, REPOSITORIES, HOSTS, REPOSITORIES)
def test_full_names_never_collide(host: str, path: str, other_host: str, other_path: str) -> None:
    relocation = Relocation("mirror.example/m")
    one, other = (
        repository(relocation, Source("image", Reference(*pair, "v1")))
        for pair in ((host, path), (other_host, other_path))
    )

    assert (one == other) == ((host, path) == (other_host, other_path))


@given(HOSTS, REPOSITORIES, PARTS, st.booleans())
def test_what_a_map_leads_to_is_where_things_are(
    host: str,
    path: str,
    tag: str,
    full: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    relocation = Relocation("mirror.example/m", "full" if full else "path")
    source = Reference(host, path, tag)
    target = repository(relocation, Source("image", source))

    mirrors = Mirrors.parse(f"{source.bare}: {target}\n".encode(), file="map.yaml")

    assert mirrors.where(source) == Reference(target.registry, target.repository, tag)


@given(st.integers(1, 12), st.text(max_size=40))
def test_everything_is_in_one_part(count: int, identity: str) -> None:
    parts = [index for index in range(count) if Shard(index, count).holds(identity)]

    assert len(parts) == 1


WORDS = st.sampled_from(
    [
        *("apiVersion: ocipack.dev/v1alpha1", "kind: Mirror", "sources:", "to: oci://m.example"),
        *("- image: ghcr.io/a:v1", "- lock: x", "  select:", "    semver: '>=1'", "  tags: [v1]"),
        *("    pattern: '('", "relocate:", "  form: flat", "  names: {a.b: oci://c.d}", "  to: 1"),
        *("unsigned: true", "policies: [a]", "  platforms: [linux/amd64]", "- &a x", "- *a", "{"),
        *("  include: [a]", "  immutableTags: '*'", "  limit: 99999999999999999999", "- chart: 1"),
    ]
)


@settings(max_examples=300)
@given(st.lists(WORDS | st.text(max_size=20), max_size=14))
def test_a_file_is_read_or_refused(lines: list[str]) -> None:
    try:
        made = read("\n".join(lines).encode(errors="replace"), file="f", lock=lambda _: Lock())
    except Misuse:
        return
    assert made.sources


NUMBERS = st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))


@given(NUMBERS, NUMBERS)
def test_a_comparison_and_its_opposite_share_all_releases(
    one: tuple[int, int, int], other: tuple[int, int, int]
) -> None:
    version = Version.of(one, "")
    text = ".".join(map(str, other))
    assert version is not None

    for first, second in (("<", ">="), (">", "<="), ("=", "!=")):
        assert Range(f"{first}{text}").fits(version) != Range(f"{second}{text}").fits(version)
    assert Range(f">={text}").fits(version) == (one >= other)


@settings(max_examples=300)
@given(st.text("0123456789.xX*v<>=!~^|-+ ,abz", max_size=24))
def test_a_range_is_read_or_refused(text: str) -> None:
    try:
        made = Range(text)
    except Misuse:
        return
    version = Version.of((1, 2, 3), "")
    assert version is not None
    made.fits(version)


def test_a_text_of_many_digits_is_no_version() -> None:
    assert Version.parse("1" * 5_000 + ".0.0") is None
    with pytest.raises(Misuse):
        Range("9" * 30)
