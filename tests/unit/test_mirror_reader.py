"""The mirror file: what it says, what is refused and where, and that the schema agrees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from ocipack.errors import Misuse
from ocipack.lock import Attached, Entry, Lock
from ocipack.mirror.model import Mirror, Relocation, Rule
from ocipack.mirror.pattern import Pattern
from ocipack.mirror.reader import BYTES, read
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = jsonschema_rs.validator_for(
    json.loads((DOCS / "schemas/mirror-v1alpha1.json").read_text(encoding="utf-8"))
)
HEAD = "apiVersion: ocipack.dev/v1alpha1\nkind: Mirror\n"
NGINX = "docker.io/library/nginx"
HEX = "a" * 64
LOCK = Lock(
    (
        Entry(
            Reference.parse(f"{NGINX}:1.25"),
            Descriptor("application/vnd.oci.image.index.v1+json", Digest("sha256", HEX), 9),
            attached=(
                Attached("referrer", "", "x/y", Digest("sha256", "b" * 64)),
                Attached("tag", f"sha256-{HEX}.sig", "", Digest("sha256", "c" * 64)),
            ),
        ),
        Entry(
            Reference.parse("ghcr.io/org/manifests"),
            Descriptor("application/vnd.oci.image.manifest.v1+json", Digest("sha256", HEX), 9),
            "artifact",
        ),
    )
)


def mirror(body: str) -> Mirror:
    return read((HEAD + body).encode(), file="mirror.yaml", lock=lambda _: LOCK)


def schema_takes(body: str) -> bool:
    return SCHEMA.is_valid(yaml.safe_load(HEAD + body))


def one(fields: str) -> str:
    return f"to: oci://m.example\nsources:\n- {{{fields}}}\n"


def test_everything_that_a_file_can_say() -> None:
    body = f"""\
to: oci://m.example/all
relocate:
  form: path
  names: {{docker.io: "oci://m.example/hub", ghcr.io/org: "oci://other.example"}}
  patterns:
  - {{match: 'quay\\.io/(.*)', to: 'oci://m.example/q/$1'}}
policies: [one.yaml, two.yaml]
sources:
- image: {NGINX}
  select:
    pattern: 'v(.*)'
    extract: $1
    semver: '>=1.2 <2'
    prereleases: true
    exclude: ['*-debug']
    sort: semver
    limit: 5
    minTags: 2
  include: [latest]
  immutableTags: 'v*'
  platforms: [linux/amd64, linux/arm/v7]
  requireSignatures: true
  overwrite: true
- artifact: oci://ghcr.io/org/manifests@sha256:{HEX}
  to: oci://m.example/manifests
  attached: false
- chart: oci://ghcr.io/org/charts/app:1.0.0
  unsigned: true
"""

    made = mirror(body)

    assert schema_takes(body)
    assert made.policies == ("one.yaml", "two.yaml")
    assert made.relocation == Relocation(
        "m.example/all",
        "path",
        (("ghcr.io/org", "other.example"), ("docker.io", "m.example/hub")),
        (Rule(Pattern(r"quay\.io/(.*)"), "m.example/q/$1"),),
    )
    image, artifact, chart = made.sources
    assert (image.kind, str(image.reference), image.include) == ("image", NGINX, ("latest",))
    assert (image.platforms, image.overwrite) == (("linux/amd64", "linux/arm/v7"), True)
    assert (image.attached, image.require_signatures) == (True, True)
    assert image.immutable is not None
    assert image.immutable.fits("v1")
    assert image.place == "mirror.yaml:11:3"
    selection = image.selection
    assert selection is not None
    assert (selection.extract, selection.sort, selection.limit) == ("$1", "semver", 5)
    assert (selection.min_tags, selection.prereleases) == (2, True)
    assert [glob.fits("v1-debug") for glob in selection.exclude] == [True]
    assert str(artifact.reference) == f"ghcr.io/org/manifests@sha256:{HEX}"
    assert (str(artifact.to), artifact.attached) == ("m.example/manifests", False)
    assert (chart.kind, chart.unsigned) == ("chart", True)


def test_a_range_sorts_as_versions_and_so_do_charts() -> None:
    image, chart, plain = mirror(
        "to: oci://m.example\nsources:\n"
        f"- {{image: {NGINX}, select: {{semver: '^1'}}}}\n"
        "- {chart: ghcr.io/org/chart, select: {pattern: '.*'}}\n"
        f"- {{image: {NGINX}, select: {{pattern: '.*'}}}}\n"
    ).sources

    assert image.selection is not None
    assert chart.selection is not None
    assert plain.selection is not None
    assert [s.selection.sort for s in (image, chart, plain) if s.selection] == [
        *("semver", "semver", "alphabetical")
    ]


def test_a_lock_is_a_source_for_each_of_its_entries() -> None:
    body = "to: oci://m.example\nsources:\n- {lock: ocipack.lock, overwrite: true}\n"

    made = mirror(body)

    assert schema_takes(body)
    image, artifact = sorted(made.sources, key=lambda source: str(source.reference))
    assert str(image.reference) == f"{NGINX}:1.25@sha256:{HEX}"
    assert (image.locked, image.overwrite) == (True, True)
    assert image.recorded == {Digest("sha256", "b" * 64)}
    assert (artifact.kind, str(artifact.reference)) == (
        "artifact",
        f"ghcr.io/org/manifests@sha256:{HEX}",
    )
    only = mirror("to: oci://m.example\nsources:\n- {lock: x, kinds: [artifact]}\n")
    assert [source.kind for source in only.sources] == ["artifact"]


def test_an_empty_lock_is_no_source() -> None:
    with pytest.raises(Misuse, match=r"mirror.yaml:4:3: x has no such entries"):
        read((HEAD + "sources:\n- {lock: x}\n").encode(), file="mirror.yaml", lock=lambda _: Lock())


REFUSED: list[tuple[str, str, bool]] = [
    # what, why, and whether the schema sees it too
    ("sources: []\n", "there are no sources", True),
    ("to: oci://m.example\n", "there are no sources", True),
    ("sources: nothing\n", "sources should be a list", True),
    ("sourcse: []\n", "unknown field 'sourcse'.*", True),
    (one("tags: [a]"), "does not say what it is", True),
    (one("image: ghcr.io/a, chart: ghcr.io/b"), "does not say what it is", True),
    (one("image: nginx, tags: [a]"), "not a reference", True),
    (one("image: ghcr.io/a"), "nothing says which tags", False),
    (one("image: 'ghcr.io/a:v1', tags: [v2]"), "it is said twice", False),
    (one("image: ghcr.io/a, tags: [v2], select: {semver: '*'}"), "it is said twice", True),
    (one("image: ghcr.io/a, tags: ['-a']"), "not a tag", True),
    (one("image: ghcr.io/a, tags: [a, a]"), "given twice", True),
    (one("image: ghcr.io/a, tags: [1.0]"), "not text", True),
    (one("image: ghcr.io/a, tags: [a], include: [b]"), "there is no select", True),
    (one("image: ghcr.io/a, select: {}"), "neither pattern nor semver", True),
    (one("image: ghcr.io/a, select: {semver: 'a b'}"), "not a version range", False),
    (one("image: ghcr.io/a, select: {pattern: '('}"), "not a pattern", False),
    (one("image: ghcr.io/a, select: {pattern: 'a', extract: '$1'}"), "names a group", False),
    (one("image: ghcr.io/a, select: {semver: '1', extract: '$1'}"), "there is none", True),
    (one("image: ghcr.io/a, select: {pattern: 'a', prereleases: true}"), "belongs to sem", True),
    (one("image: ghcr.io/a, select: {semver: '1', limit: 1, minTags: 2}"), "never leaves", False),
    (one("image: ghcr.io/a, select: {semver: '1', limit: -1}"), "whole number", True),
    (one("image: ghcr.io/a, select: {semver: '1', sort: newest}"), "one of semver", True),
    (one("image: ghcr.io/a, select: {semver: '1', regex: a}"), "unknown field 'regex'", True),
    (one("image: 'ghcr.io/a:v1', platforms: [linux]"), "not a platform", True),
    (one("image: 'ghcr.io/a:v1', overwrite: 'yes'"), "true or false", True),
    (one("image: 'ghcr.io/a:v1', to: 'm.example/a'"), "no place in a registry", True),
    (one("image: 'ghcr.io/a:v1', to: 'oci://m.example/a:v1'"), "names content in one", False),
    (one("image: 'ghcr.io/a:v1', attached: false, requireSignatures: true"), "leaves", False),
    (one("lock: x, tags: [a]"), "unknown field 'tags'", True),
    (one("lock: x, kinds: [chart]"), "kinds are image and artifact", True),
    (one("chart: app, repository: 'https://charts.example'"), "nothing says which tags", False),
    (one("chart: 'app:1', repository: 'oci://charts.example'"), "address of a classic", True),
    (one("image: 'ghcr.io/a:v1', repository: 'https://charts.example'"), "address of a", True),
    (one("image: 'ghcr.io/a:v1', images: true"), "images belongs to charts", True),
    (one("chart: 'ghcr.io/a:v1', images: 'yes'"), "true or false", True),
    (one("chart: 'a.b/app:1', repository: 'https://charts.example'"), "its name alone", True),
    (one("chart: 'app:1', repository: 'https://u:p@charts.example'"), "not a chart", True),
    (one("chart: 'app:1', repository: 'https://charts.example?token=x'"), "not a chart", True),
    ("to: m.example\nsources: [{image: 'ghcr.io/a:v1'}]\n", "no place in a registry", True),
    ("to: oci://m.example/a:v1\nsources: [{image: 'ghcr.io/a:v1'}]\n", "not the beginning", False),
    ("relocate: {form: round}\nsources: [{image: 'ghcr.io/a:v1'}]\n", "one of full", True),
    ("relocate: {names: [a]}\nsources: [{image: 'ghcr.io/a:v1'}]\n", "a mapping", True),
    ("relocate: {form: flat}\nsources: [{image: 'ghcr.io/a:v1'}]\n", "flat needs", False),
    (
        "relocate: {patterns: [{match: a}]}\nsources: [{image: 'ghcr.io/a:v1'}]\n",
        "a pattern has no to",
        True,
    ),
    (
        "policies: [a]\nunsigned: true\nsources: [{image: 'ghcr.io/a:v1'}]\n",
        "exclude each other",
        False,
    ),
]


@pytest.mark.parametrize(("body", "why", "schema_sees"), REFUSED, ids=lambda one: str(one)[:40])
def test_what_is_refused_says_where_and_why(body: str, why: str, schema_sees: bool) -> None:  # noqa: FBT001 - a table of cases
    with pytest.raises(Misuse, match=rf"^mirror\.yaml:\d+:\d+: (.|\n)*{why}"):
        mirror(body)
    assert schema_takes(body) is not schema_sees


def test_a_chart_in_a_classic_repository_says_where_that_is() -> None:
    body = (
        "to: oci://m.example\nsources:\n"
        "- {chart: shop, repository: 'https://charts.example/stable/', select: {semver: '^1'},"
        " images: true}\n"
        f"- {{chart: 'shop:1.2.0+b@sha256:{HEX}', repository: 'https://charts.example/stable'}}\n"
    )

    first, second = mirror(body).sources

    assert schema_takes(body)
    assert str(first.reference) == "charts.example/stable/shop"
    assert str(first.repository) == "helm+https://charts.example/stable/shop"
    assert first.selection is not None
    assert first.selection.sort == "semver"
    assert (first.images, second.images) == (True, False)
    assert str(second.reference) == f"charts.example/stable/shop:1.2.0_b@sha256:{HEX}"


def test_a_near_miss_is_named() -> None:
    with pytest.raises(Misuse) as refused:
        mirror(one("image: ghcr.io/a, tagz: [a]"))

    assert refused.value.hint == "did you mean tags?"


def test_a_file_has_a_bound() -> None:
    with pytest.raises(Misuse, match=f"longer than {BYTES} bytes"):
        mirror("#" * BYTES)


def test_the_examples_of_the_page_are_read() -> None:
    """Every YAML block of docs/mirror.md that is a mirror file."""
    text = (DOCS / "mirror.md").read_text(encoding="utf-8")
    blocks = [part.partition("```")[0] for part in text.split("```yaml\n")[1:]]
    files = [block for block in blocks if "kind: Mirror" in block]
    assert files
    for block in files:
        made: Any = read(block.encode(), file="mirror.yaml", lock=lambda _: LOCK)
        assert made.sources
        assert SCHEMA.is_valid(yaml.safe_load(block))
