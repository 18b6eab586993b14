"""Laws of the content nouns: round trips hold, hostile bytes raise what they should."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given, strategies as st

from ocipack.errors import IntegrityError, Misuse
from ocipack.oci import jsontext
from ocipack.oci.location import Location
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
DIGEST = "sha256:" + "a" * 64

scalars = st.none() | st.booleans() | st.integers(-1, 9) | st.sampled_from(["", DIGEST, MANIFEST])
keys = st.sampled_from(["mediaType", "digest", "size", "annotations", "artifactType"])
nodes = st.dictionaries(keys, scalars, max_size=5) | scalars
values = st.lists(nodes, max_size=3) | nodes
documents = st.fixed_dictionaries(
    {"mediaType": st.sampled_from([MANIFEST, INDEX])},
    optional=dict.fromkeys(
        ("config", "layers", "manifests", "subject", "annotations", "artifactType"), values
    ),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=64) | documents.map(lambda d: json.dumps(d).encode()))
def test_a_hostile_manifest_raises_only_integrity_error(raw: bytes) -> None:
    for kind in (MANIFEST, INDEX):
        made = Manifest(raw, kind)
        for view in ("children", "subject", "annotations", "referrer"):
            with contextlib.suppress(IntegrityError):
                getattr(made, view)


@given(st.text(max_size=60))
def test_a_reference_is_refused_or_survives_a_round_trip(text: str) -> None:
    with contextlib.suppress(Misuse):
        assert str(Reference.parse(text)) == text


@given(
    st.from_regex(
        r"([a-z]{1,5}\.[a-z]{2}|localhost)(:[1-9][0-9]{1,3})?/[a-z]{1,4}(/[a-z]{1,4})?(:v[0-9])?"
        rf"(@{DIGEST})?",
        fullmatch=True,
    )
)
def test_an_ordinary_reference_parses_and_means_the_same_to_a_pod(text: str) -> None:
    ref = Reference.parse(text)
    assert str(ref) == text
    assert Reference.familiar(text) == ref
    assert str(Location.parse(f"oci://{text}", cwd="/").reference) == text


@given(st.text(max_size=40))
def test_a_layout_path_is_refused_or_survives_a_round_trip(text: str) -> None:
    with contextlib.suppress(Misuse):
        place = Location.parse(f"ocidir://{text}", cwd="/w")
        assert Location.parse(str(place), cwd="/elsewhere") == place


@given(json_values)
def test_json_survives_a_round_trip(value: Any) -> None:
    assert jsontext.decode(jsontext.encode(value)) == value
