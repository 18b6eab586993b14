"""The index of a classic repository: what is read, what is refused, at what cost."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from charts import index

from ocipack.errors import IntegrityError
from ocipack.helm import index as module
from ocipack.helm.index import BYTES, Release, read
from ocipack.oci.digest import Digest

HEX = "a" * 64
HEAD = "apiVersion: v1\nentries:\n"


def test_versions_are_read_in_order_with_their_first_address_and_hash() -> None:
    text = f"""\
apiVersion: v1
serverInfo: {{contextPath: /x, deep: [{{a: [1, 2]}}]}}
entries:
  shop:
  - annotations: {{version: 9.9.9, entries: x}}
    dependencies:
    - {{name: a, version: 8.0.0, urls: [b]}}
    version: 1.2.0+b
    digest: {HEX}
    urls: [shop-1.2.0.tgz, https://other.example/shop.tgz]
  - version: "1.1.0"
    digest: sha256:{HEX.upper()}
    urls:
    - https://elsewhere.example/shop-1.1.0.tgz
  - version: 1.0.0
    urls: [a.tgz]
    digest: 0123456789abcdef
  other: []
  nothing:
generated: 2026-01-01T00:00:00Z
"""

    found = read(text.encode())

    digest = Digest("sha256", HEX)
    assert found == {
        "shop": (
            Release("1.2.0+b", "shop-1.2.0.tgz", digest),
            Release("1.1.0", "https://elsewhere.example/shop-1.1.0.tgz", digest),
            Release("1.0.0", "a.tgz", None),
        ),
        "other": (),
        "nothing": (),
    }
    assert list(found) == ["shop", "other", "nothing"]


def test_json_is_read_too_and_a_digest_of_digits_stays_what_it_is() -> None:
    entry = {"version": "1.0.0", "urls": ["a.tgz"], "digest": "1" * 64}
    assert read(json.dumps({"apiVersion": "v1", "entries": {"a": [entry]}}).encode()) == {
        "a": (Release("1.0.0", "a.tgz", Digest("sha256", "1" * 64)),)
    }
    text = index({"a": [{"version": "1.0.0", "urls": "[a.tgz]", "digest": "1" * 63 + "2"}]})
    assert read(text)["a"][0].digest == Digest("sha256", "1" * 63 + "2")


@pytest.mark.parametrize(
    "entry",
    [
        "{version: 1.10, urls: [a]}",  # a number: Helm reads 1.1
        "{version: , urls: [a]}",
        "{urls: [a]}",
        "{version: 1.0.0}",
        "{version: 1.0.0, urls: []}",
        "{version: 1.0.0, urls: a}",
        "{version: [1], urls: [a]}",
        "~",
    ],
)
def test_what_is_no_version_is_left_out(entry: str) -> None:
    text = f"{HEAD}  a:\n  - {entry}\n  - {{version: 2.0.0, urls: [b]}}\n"
    assert [one.version for one in read(text.encode())["a"]] == ["2.0.0"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no apiVersion"),
        ("entries: {}", "no apiVersion"),
        ("<html></html>", "should be a mapping"),
        ("[]", "should be a mapping"),
        ("apiVersion: v1\nentries: [a]", "entries should be a mapping"),
        ("apiVersion: v1\nentries: {a: {b: c}}", "should be a list"),
        ("apiVersion: v1\nentries: {a: [b]}", "should be a mapping"),
        ("apiVersion: v1\nentries: {a: [], a: []}", "there twice"),
        ("apiVersion: v1\nentries: {}\nentries: {}", "there twice"),
        ("apiVersion: v1\nEntries: {}", "in another case"),
        ("apiVersion: v1\nentries: {a: [{version: 1.0.0, version: 2.0.0}]}", "there twice"),
        ("apiVersion: v1\nentries: {a: [{version: 1.0.0, Digest: x}]}", "in another case"),
        ("apiVersion: v1\nx: &x []\nentries: *x", "mapping"),
        ("apiVersion: v1\nx: &x []\ny: *x", "alias"),
        ("apiVersion: v1\nentries: {<<: {a: []}}", "merge key"),
        ("apiVersion: v1\nentries: {[a]: []}", "a key should be text"),
        ("apiVersion: v1\n---\napiVersion: v1\n", "second document"),
        ("apiVersion: v1\nentries: {a: [", "not YAML"),
        ("apiVersion: v1\nx: " + "[" * 300, "nested deeper"),
    ],
)
def test_what_is_no_index_or_is_two_is_refused(text: str, why: str) -> None:
    with pytest.raises(IntegrityError, match=rf"index\.yaml.*{why}"):
        read(text.encode())


def test_an_index_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IntegrityError, match=f"longer than {BYTES} bytes"):
        read(bytes(BYTES + 1))
    monkeypatch.setattr(module, "RELEASES", 3)
    entry = {"version": "1.0.0", "urls": "[a]"}
    assert len(read(index({"a": [entry] * 3}))["a"]) == 3
    with pytest.raises(IntegrityError, match="more than 3 versions"):
        read(index({"a": [entry] * 2, "b": [entry] * 2}))


def test_what_does_not_matter_is_not_kept() -> None:
    """A megabyte, of which little is kept: memory stays below half of what the text has."""
    entry = {
        "version": "1.0.0",
        "urls": "[a]",
        "digest": HEX,
        "description": "x" * 5000,
        "keywords": "[" + ", ".join(["a word" * 20] * 40) + "]",
    }
    text = index({"a": [entry] * 100})
    assert len(text) > 1_000_000
    tracemalloc.start()
    try:
        assert len(read(text)["a"]) == 100
        assert tracemalloc.get_traced_memory()[1] < len(text) / 2
    finally:
        tracemalloc.stop()
