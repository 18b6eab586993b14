"""Whatever bytes come, the readers answer or refuse; nothing else comes out."""

from __future__ import annotations

import contextlib
import json

from hypothesis import given, settings, strategies as st

from ocipack.errors import IntegrityError, Rejected
from ocipack.k8s.kustomization.walk import Root
from ocipack.k8s.resource import resources
from ocipack.k8s.yaml.documents import read
from ocipack.k8s.yaml.nodes import compose
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.render import render
from ocipack.validate.check import validate

TOKENS = [
    *("a", "b: ", "- ", "? ", ": ", "\n", "  ", "\t", "{", "}", "[", "]", ",", "|", ">", "---\n"),
    *(
        "...\n",
        "&x ",
        "*x",
        "<<: ",
        "!!int ",
        "!!binary ",
        "!foo ",
        "! ",
        "#",
        "'",
        '"',
        "\\0",
        "%",
    ),
    *(
        "0x1",
        "1e400",
        ".inf",
        "~",
        "null",
        "2024-01-02",
        "yes",
        "\x00",
        "\x85",
        "\ufeff",
        "é",
        "\r",
    ),
    *("kind: List\n", "items:\n", "apiVersion: v1\n", "metadata: {name: x}\n", "%YAML 1.2\n"),
    *("resources: [", "../", "/etc/", "https://x/", "patches:\n", "generators:\n", "- |\n  "),
]
hostile = st.one_of(
    st.binary(max_size=200),
    st.lists(st.sampled_from(TOKENS), max_size=40).map(lambda parts: "".join(parts).encode()),
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=400)
@given(hostile, st.sampled_from(Dialect), st.booleans())
def test_reading(data: bytes, dialect: Dialect, strict: bool) -> None:  # noqa: FBT001 - drawn
    try:
        found = list(read(data, dialect, strict=strict))
        for document in found:
            document.locate("/a/b")
            document.text("/a")
        validate(list(resources(found, dialect)))
    except IntegrityError:
        pass


@settings(max_examples=300)
@given(hostile)
def test_composing_never_raises(data: bytes) -> None:
    compose(data)


@settings(max_examples=300)
@given(hostile, hostile)
def test_judging_a_tree(first: bytes, second: bytes) -> None:
    files = {"kustomization.yaml": first, "a/b.yaml": second, "a/kustomization.yml": second}

    def build(_: Root) -> bytes:
        return b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"

    with contextlib.suppress(Rejected):
        render(files, files.__getitem__, build)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values, max_size=4))
def test_json_in_is_json_out(value: dict[str, object]) -> None:
    """What Go's JSON can say, both dialects read alike; kustomize reads it as YAML."""
    (document,) = read(json.dumps(value).encode(), Dialect.KUBECTL)
    assert document.value == value
