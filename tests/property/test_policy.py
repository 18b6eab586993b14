"""Policies and the names they cover, on text that nobody meant."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings, strategies as st
from world import key

from ocipack.errors import Misuse
from ocipack.oci.reference import Reference
from ocipack.trust.policy.age import Version
from ocipack.trust.policy.conditions import ABSENT, Condition, Field, at
from ocipack.trust.policy.names import Glob
from ocipack.trust.policy.reader import read

PART = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)
HOST = st.builds(
    lambda name, port: f"{name}.example.com{port}", PART, st.sampled_from(["", ":5000", ":443"])
)
REFERENCE = st.builds(
    lambda host, path, tag: f"{host}/{'/'.join(path)}{tag}",
    HOST,
    st.lists(PART, min_size=1, max_size=4),
    st.sampled_from(["", ":v1", ":1.2.3", "@sha256:" + "ab" * 32]),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=10,
)


@given(st.text(max_size=60) | st.text(alphabet="a.*:/@[]0-", max_size=30), st.booleans())
def test_a_glob_is_read_or_misuse(text: str, foreign: bool) -> None:  # noqa: FBT001 - hypothesis fills it
    try:
        glob = Glob(text, foreign=foreign)
    except Misuse:
        return
    glob.covers(Reference.parse("registry.example.com/team/app:v1"))


@given(REFERENCE)
def test_a_name_covers_itself_in_every_spelling(text: str) -> None:
    reference = Reference.parse(text)
    glob = Glob(reference.bare)
    assert glob.covers(reference)
    host, _, rest = text.partition("/")
    assert glob.covers(Reference.parse(f"{host.upper()}/{rest}"))
    assert Glob(f"{host}/**").covers(reference)
    assert Glob("**").covers(reference)


@given(REFERENCE, REFERENCE)
def test_a_name_without_stars_covers_no_other(one: str, other: str) -> None:
    first, second = Reference.parse(one), Reference.parse(other)
    same = (first.registry.removesuffix(":443"), first.repository) == (
        second.registry.removesuffix(":443"),
        second.repository,
    )
    assert Glob(first.bare).covers(second) is same


@given(JSON, st.text(max_size=10))
def test_whatever_is_found_a_condition_has_an_answer(found: Any, text: str) -> None:
    for condition in (
        Condition("equals", text),
        Condition("oneOf", (text, 1, True)),
        Condition("contains", text),
        Condition("atLeast", 1),
        Condition("atMost", 1),
        Condition("like", "a*"),
    ):
        assert condition.holds(found) in (True, False)
        assert not condition.holds(ABSENT)


@given(st.dictionaries(st.text(max_size=4), JSON, min_size=1, max_size=4))
def test_every_member_can_be_pointed_at(document: dict[str, Any]) -> None:
    for name, value in document.items():
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        assert at(document, pointer) is value
        if value is None or isinstance(value, str | int | float | bool):
            assert Field(pointer, Condition("equals", value)).holds(document)


@given(st.text(max_size=30) | st.from_regex(r"v?[0-9.]{1,8}(-[a-z0-9.]{0,6})?", fullmatch=True))
def test_a_version_is_read_or_misuse(text: str) -> None:
    try:
        found = Version.parse(text)
    except Misuse:
        return
    assert found.order == Version.parse(text.removeprefix("v")).order


HEAD = b"apiVersion: ocipack.dev/v1alpha1\nkind: VerificationPolicy\nmetadata: {name: p}\nspec:\n"
WORDS = [
    *("images", "mode", "authorities", "annotations", "bind", "notOlderThan", "exemptions"),
    *("static", "reason", "keys", "file", "threshold", "x", "**", "tag", "pass"),
]
SPEC = st.recursive(
    st.sampled_from(WORDS) | st.integers(-1, 3) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner),
    max_leaves=12,
)


@settings(max_examples=200)
@given(st.binary(max_size=200) | SPEC)
def test_a_file_is_read_or_misuse_that_names_its_place(spec: object) -> None:
    """Nothing else is raised, however the file is wrong."""
    data = spec if isinstance(spec, bytes) else HEAD + b"  " + json.dumps(spec).encode()
    said = ""
    try:
        read(data, file="p.yaml", key=lambda _: key("alice").public)
    except Misuse as e:
        said = str(e)
    assert not said or said.startswith("p.yaml:")
