"""The lock: text that is the same for the same facts, and read as strictly as it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ocipack.errors import Misuse
from ocipack.lock import Attached, Entry, Lock, Origin, Platform
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference

INDEX = "application/vnd.oci.image.index.v1+json"
ROOT = Path(__file__).parents[2]


def digest(number: int) -> Digest:
    return Digest("sha256", f"{number:064x}")


def entry(reference: str = "docker.io/library/nginx:1.25", number: int = 1) -> Entry:
    return Entry(
        Reference.parse(reference),
        Descriptor(INDEX, digest(number), 1234),
        "image",
        "",
        (
            Platform("linux", "arm64", "v8", digest(3), 5),
            Platform("linux", "amd64", "", digest(2), 4),
        ),
        (
            Attached("tag", "sha256-00.sig", "", digest(4)),
            Attached("referrer", "", "x/y", digest(5)),
        ),
        (
            Origin("b.yaml", 0, "/spec/a", "append"),
            Origin("a b.yaml", 1, "/spec/a~1b", "append"),
            Origin("b.yaml", 0, "/spec/a", "append"),
        ),
    )


TEXT = """\
apiVersion: ocipack.dev/v1alpha1
kind: Lock
entries:
- reference: docker.io/library/nginx:1.25
  kind: image
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000001
  mediaType: application/vnd.oci.image.index.v1+json
  size: 1234
  platforms:
  - digest: sha256:0000000000000000000000000000000000000000000000000000000000000002
    size: 4
    os: linux
    architecture: amd64
  - digest: sha256:0000000000000000000000000000000000000000000000000000000000000003
    size: 5
    os: linux
    architecture: arm64
    variant: v8
  attached:
  - via: referrer
    digest: sha256:0000000000000000000000000000000000000000000000000000000000000005
    artifactType: x/y
  - via: tag
    digest: sha256:0000000000000000000000000000000000000000000000000000000000000004
    name: sha256-00.sig
  origins:
  - file: "a b.yaml"
    document: 1
    pointer: /spec/a~1b
    style: append
  - file: b.yaml
    document: 0
    pointer: /spec/a
    style: append
"""


def test_the_text_is_sorted_and_one_fact_a_line() -> None:
    assert str(Lock((entry(),))) == TEXT
    assert Lock.parse(TEXT.encode()) == Lock((entry(),))
    assert str(Lock()) == "apiVersion: ocipack.dev/v1alpha1\nkind: Lock\nentries: []\n"
    assert Lock.parse(str(Lock()).encode()) == Lock()


def test_the_order_of_entries_is_no_matter() -> None:
    one, other = entry("r.io/b:1", 7), entry("r.io/a:1", 8)
    assert str(Lock((one, other))) == str(Lock((other, one)))
    assert [str(e.reference) for e in Lock((one, other)).entries] == ["r.io/a:1", "r.io/b:1"]


def test_one_reference_may_have_two_digests_but_not_one_digest_twice() -> None:
    lock = Lock((entry(number=1), entry(number=2), entry("r.io/a", 1)))
    named = Reference.parse(f"docker.io/library/nginx:1.25@{digest(9)}")
    assert [e.content.digest for e in lock.find(named)] == [digest(1), digest(2)]
    assert lock.find(Reference.parse("docker.io/library/nginx:1.26")) == ()
    assert lock.find(Reference.parse("docker.io/library/nginx")) == ()
    with pytest.raises(Misuse, match="two entries"):
        Lock((entry(), entry()))
    with pytest.raises(Misuse, match="no digest of its own"):
        entry(f"r.io/a@{digest(1)}")


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("ocipack.dev/v1alpha1", "ocipack.dev/v9", "apiVersion is not"),
        ("kind: Lock", "kind: Lack", "kind is not"),
        ("kind: Lock\n", "", "kind is missing"),
        ("  size: 1234", "  size: '1234'", "whole number"),
        ("  size: 1234", "  size: -1", "whole number"),
        ("  size: 1234", "  size: 1e3", "whole number"),
        ("  size: 1234", "  size: 0x10", "whole number"),
        ("  size: 1234\n", "", "an entry has no size"),
        ("  size: 1234", "  size: 1234\n  extra: 1", "unknown field 'extra'"),
        ("  kind: image", "  kind: picture", "kind is one of image, artifact"),
        ("via: referrer", "via: magic", "via is one of tag, referrer"),
        ("1.25", "1.25@sha256:" + "0" * 64, "no digest of its own"),
        ("docker.io/library/nginx:1.25", "nginx:1.25", "not a reference"),
        ("sha256:" + "0" * 63 + "1", "sha256:1", "not a digest"),
        ("sha256:" + "0" * 63 + "2", "sha256:1", "not a digest"),
        ("document: 1", "document: one", "whole number"),
        ("pointer: /spec/a\n", "pointer: 1\n", "is not text to every reader"),
        ("  origins:\n", "  origins: &x\n", "anchor"),
        ("kind: Lock", "kind: Lock\nkind: Lock", "given twice"),
        ("entries:", "---\nentries:", "second document"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(
    before: str, after: str, why: str
) -> None:
    assert before in TEXT
    with pytest.raises(Misuse, match=why) as caught:
        Lock.parse(TEXT.replace(before, after, 1).encode(), file="x.lock")
    assert str(caught.value).startswith("x.lock:")


@pytest.mark.parametrize(
    "raw",
    [
        b"apiVersion: ocipack.dev/v1alpha1\nkind: Lock\nentries: x\n",
        b"apiVersion: ocipack.dev/v1alpha1\nkind: Lock\nentries: [1]\n",
        b"",
        b"- a\n",
        b"\xff",
        b"a: [",
        b"entries: []\n",
    ],
)
def test_what_is_no_lock_is_misuse(raw: bytes) -> None:
    with pytest.raises(Misuse):
        Lock.parse(raw)


def test_a_lock_is_not_read_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocipack.lock.BYTES", 100)
    with pytest.raises(Misuse, match="longer than 100 bytes"):
        Lock.parse(b"#" * 101)


words = st.text(max_size=8)
digests = st.integers(0, 2**256 - 1).map(digest)
sizes = st.integers(0, 10**15)
platforms = st.builds(Platform, words, words, words, digests, sizes)
attachments = st.builds(Attached, st.sampled_from(["tag", "referrer"]), words, words, digests)
origins = st.builds(Origin, words, sizes, words, words)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    names = ["r.io/a", "r.io/a:1", "r.io/a:on", "localhost:5000/x:706798e8", "[::1]:5000/a/b"]
    return Entry(
        Reference.parse(draw(st.sampled_from(names))),
        Descriptor(draw(words), draw(digests), draw(sizes)),
        draw(st.sampled_from(["image", "artifact"])),
        draw(words),
        tuple(draw(st.lists(platforms, max_size=3))),
        tuple(draw(st.lists(attachments, max_size=3))),
        tuple(draw(st.lists(origins, max_size=3))),
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(entries(), max_size=4, unique_by=lambda e: e.key))
def test_what_is_written_is_read(found: list[Entry]) -> None:
    lock = Lock(tuple(found))
    text = str(lock)
    data = text.encode("utf-8", "surrogatepass")
    assert Lock.parse(data) == lock
    assert str(Lock.parse(data)) == text


def test_the_schema_knows_every_field() -> None:
    import jsonschema_rs  # noqa: PLC0415 - heavy

    schema = json.loads((ROOT / "docs/schemas/lock-v1alpha1.json").read_text())
    check = jsonschema_rs.validator_for(schema)
    one = {
        "reference": "r.io/a:1",
        "kind": "image",
        "digest": str(digest(1)),
        "mediaType": INDEX,
        "artifactType": "x/y",
        "size": 1,
        "platforms": [
            {
                "digest": str(digest(2)),
                "size": 1,
                "os": "linux",
                "architecture": "arm",
                "variant": "v7",
            }
        ],
        "attached": [
            {"via": "tag", "digest": str(digest(3)), "name": "a"},
            {"via": "referrer", "digest": str(digest(3)), "artifactType": "x/y"},
        ],
        "origins": [{"file": "a", "document": 0, "pointer": "/a", "style": "append"}],
    }
    good = {"apiVersion": "ocipack.dev/v1alpha1", "kind": "Lock", "entries": [one]}
    assert check.is_valid(good)
    for bad in (
        {**good, "extra": 1},
        {**good, "kind": "X"},
        {**good, "entries": [{**one, "size": "1"}]},
        {**good, "entries": [{**one, "digest": "sha256:1"}]},
        {**good, "entries": [{**one, "extra": 1}]},
        {**good, "entries": [{**one, "kind": "x"}]},
        {**good, "entries": [{k: v for k, v in one.items() if k != "reference"}]},
    ):
        assert not check.is_valid(bad)
