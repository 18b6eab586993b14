"""What every place that holds content promises (ocipack/oci/store.py), held against all of them.

A test that ends with the place closed and opened again says that what was promised lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from conftest import FullStore, Opener
from content import INDEX, LAYER, MANIFEST, artifact, blob, document, image, index, put
from doubles import (
    Breaking,
    Counting,
    Endless,
    Failing,
    LyingSize,
    Spoiled,
    Vanishing,
    long,
    short,
    wrong,
)

from ocipack.copy import Copied, copy
from ocipack.errors import IntegrityError, Misuse, NotFound, OcipackError, Rejected, Unavailable
from ocipack.oci.closure import closure
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.store import Source
from ocipack.stores.memory import MemoryStore

HELLO = b"hello, world\n"


def whole(source: Source, target: Descriptor) -> bytes:
    return b"".join(source.fetch(target))


def require_closure(source: Source, root: Descriptor) -> None:
    """Read and hash everything that `root` needs."""
    for node, _ in closure(source, root):
        assert blob(whole(source, node), node.media_type, node.digest.algorithm) == node


@pytest.fixture
def origin() -> MemoryStore:
    return MemoryStore()


# content


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
@pytest.mark.parametrize("data", [HELLO, b"", bytes(3_000_000)])
def test_a_pushed_blob_can_be_fetched(
    place: Opener, origin: MemoryStore, data: bytes, algorithm: str
) -> None:
    target = put(origin, data, LAYER, algorithm)
    with place() as store:
        assert not store.exists(target)
        store.push(target, origin)
        assert store.exists(target)
        assert whole(store, target) == data
    with place() as store:
        assert store.exists(target)
        assert whole(store, target) == data


def test_pushing_again_changes_nothing(store: FullStore, origin: MemoryStore) -> None:
    target = put(origin, HELLO, LAYER)
    store.push(target, origin)
    store.push(target, origin)
    assert whole(store, target) == HELLO


def test_what_is_absent_is_not_found(store: FullStore, origin: MemoryStore) -> None:
    store.push(put(origin, HELLO, LAYER), origin)
    for absent in (blob(b"absent"), blob(document(mediaType=MANIFEST), MANIFEST)):
        assert not store.exists(absent)
        with pytest.raises(NotFound):
            whole(store, absent)
        with pytest.raises(NotFound):
            store.resolve(str(absent.digest))
    with pytest.raises(NotFound):
        store.resolve("absent")


@pytest.mark.parametrize("bad", [wrong, short, long])
@pytest.mark.parametrize("kind", [LAYER, MANIFEST])
def test_content_that_does_not_match_is_refused_and_leaves_nothing(
    place: Opener, origin: MemoryStore, kind: str, bad: Callable[[Source, Descriptor], Source]
) -> None:
    target = put(origin, HELLO, LAYER) if kind == LAYER else image(origin, HELLO)
    with place() as store:
        if kind == MANIFEST:
            for child in Manifest(whole(origin, target), MANIFEST).children:
                store.push(child, origin)
        with pytest.raises((IntegrityError, Unavailable)):
            store.push(target, bad(origin, target))
        assert not store.exists(target)
        with pytest.raises(NotFound):
            whole(store, target)
        store.push(target, origin)
        assert store.exists(target)


@pytest.mark.parametrize("spoil", [Vanishing, Breaking])
def test_a_source_that_fails_half_way_leaves_nothing(
    store: FullStore, origin: MemoryStore, spoil: Callable[[Source, Digest], Source]
) -> None:
    target = put(origin, bytes(2_000_000), LAYER)
    with pytest.raises((NotFound, Unavailable)):
        store.push(target, spoil(origin, target.digest))
    assert not store.exists(target)
    with pytest.raises(NotFound):
        whole(store, target)


def test_a_body_without_end_is_cut(store: FullStore, origin: MemoryStore) -> None:
    target = put(origin, HELLO, LAYER)
    source = Endless(origin)
    with pytest.raises((IntegrityError, Unavailable)):
        store.push(target, source)
    assert source.taken <= 2048
    assert not store.exists(target)


def test_a_size_that_is_not_true_is_noticed(store: FullStore, origin: MemoryStore) -> None:
    target = put(origin, HELLO, LAYER)
    store.push(target, origin)
    for size in (0, target.size - 1, target.size + 1, 1 << 40):
        lying = replace(target, size=size)
        assert not store.exists(lying)
        with pytest.raises((IntegrityError, Unavailable)):
            whole(store, lying)


# manifests


def test_a_manifest_resolves_by_digest_to_a_plain_descriptor(
    place: Opener, origin: MemoryStore
) -> None:
    root = image(origin, HELLO, annotations={"a": "b"}, artifactType="application/x")
    with place() as store:
        copy(origin, store, replace(root, annotations={"x": "y"}, artifact_type="application/x"))
    with place() as store:
        found = store.resolve(str(root.digest))
    assert found == root
    assert not found.annotations
    assert not found.artifact_type


def test_a_manifest_without_its_children_is_refused(store: FullStore, origin: MemoryStore) -> None:
    root = image(origin, HELLO, b"second")
    children = Manifest(whole(origin, root), MANIFEST).children
    for child in children[:-1]:
        store.push(child, origin)
    with pytest.raises(OcipackError):
        store.push(root, origin)
    assert not store.exists(root)
    store.push(children[-1], origin)
    store.push(root, origin)
    assert store.exists(root)


def test_a_manifest_beyond_four_mebibytes_is_refused(store: FullStore, origin: MemoryStore) -> None:
    root = image(origin, HELLO, padding="x" * 4 * 1024 * 1024)
    with pytest.raises(IntegrityError):
        copy(origin, store, root)
    for child in Manifest(origin.content[root.digest], MANIFEST).children:
        store.push(child, origin)
    with pytest.raises(IntegrityError):
        store.push(root, origin)


# tags


def test_a_tag_points_where_it_was_put(place: Opener, origin: MemoryStore) -> None:
    first, second = image(origin, b"1"), image(origin, b"2")
    with place() as store:
        copy(origin, store, first, tag="v1")
        copy(origin, store, second, tag="v2")
        assert store.resolve("v1") == first
    with place() as store:
        assert store.resolve("v1") == first
        assert store.resolve("v2") == second
        store.tag(second, "v1")
        assert store.resolve("v1") == second
        assert store.resolve(str(first.digest)) == first, "a manifest outlives its tag"
        assert list(store.tags()) == ["v1", "v2"]


def test_tags_are_sorted_bytewise(store: FullStore, origin: MemoryStore) -> None:
    root = image(origin, HELLO)
    copy(origin, store, root)
    for name in ("b", "a", "B", "_", "v1.10", "v1.9"):
        store.tag(root, name)
    assert list(store.tags()) == ["B", "_", "a", "b", "v1.10", "v1.9"]


@pytest.mark.parametrize("name", ["", ".a", "-a", "a/b", "a:b", "a" * 129, "a\nb", "ä", "v1 "])
def test_what_cannot_be_a_tag_is_misuse(store: FullStore, origin: MemoryStore, name: str) -> None:
    root = image(origin, HELLO)
    copy(origin, store, root)
    with pytest.raises(Misuse):
        store.tag(root, name)


def test_only_what_is_here_can_be_tagged(store: FullStore, origin: MemoryStore) -> None:
    copy(origin, store, image(origin, HELLO), tag="v1")
    with pytest.raises(NotFound):
        store.tag(image(origin, b"absent"), "v1")
    with pytest.raises(NotFound):
        store.tag(image(origin, b"absent"), "v2")
    assert list(store.tags()) == ["v1"]


def test_a_tag_moves_only_from_where_it_was(store: FullStore, origin: MemoryStore) -> None:
    a, b, c = (image(origin, data) for data in (b"a", b"b", b"c"))
    for root in (a, b, c):
        copy(origin, store, root)
    store.tag(a, "v1", was=None)
    with pytest.raises(Rejected, match=str(a.digest)):
        store.tag(b, "v1", was=None)
    with pytest.raises(Rejected, match=str(a.digest)):
        store.tag(b, "v1", was=c.digest)
    with pytest.raises(Rejected, match="nothing"):
        store.tag(b, "v2", was=a.digest)
    assert store.resolve("v1") == a
    store.tag(b, "v1", was=a.digest)
    assert store.resolve("v1") == b
    store.tag(b, "v1", was=a.digest)  # done already
    store.tag(b, "v1", was=None)
    store.tag(c, "v1")
    assert store.resolve("v1") == c
    assert list(store.tags()) == ["v1"]


# referrers


def listed(store: Source, subject: Descriptor) -> list[Digest]:
    return sorted(found.digest for found in store.referrers(subject))


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_a_referrer_is_listed_once_and_at_once(
    place: Opener, origin: MemoryStore, algorithm: str
) -> None:
    subject = image(origin, HELLO, algorithm=algorithm)
    marked = image(
        origin,
        b"signature",
        subject=subject,
        artifactType="application/x",
        annotations={"k": "v"},
    )
    plain = image(origin, b"sbom", subject=subject, algorithm=algorithm)
    with place() as store:
        copy(origin, store, subject, tag="v1")
        assert listed(store, subject) == []
        copy(origin, store, marked)
        assert listed(store, subject) == [marked.digest]
        copy(origin, store, plain)
        copy(origin, store, marked)
    with place() as store:
        found = {one.digest: one for one in store.referrers(subject)}
        assert sorted(found) == listed(store, subject) == sorted([marked.digest, plain.digest])
    assert found[marked.digest].plain == marked
    assert found[marked.digest].artifact_type == "application/x"
    assert found[marked.digest].annotations == {"k": "v"}
    assert found[plain.digest].artifact_type == "application/vnd.oci.image.config.v1+json"


def test_a_referrer_may_come_before_its_subject(store: FullStore, origin: MemoryStore) -> None:
    subject = image(origin, HELLO)
    referrer = image(origin, b"signature", subject=subject)
    copy(origin, store, referrer)
    assert listed(store, subject) == [referrer.digest]
    assert not store.exists(subject)


def test_referrers_of_others_are_not_listed(store: FullStore, origin: MemoryStore) -> None:
    first, second = image(origin, b"1"), image(origin, b"2")
    a, b = image(origin, b"a", subject=first), image(origin, b"b", subject=second)
    chained = image(origin, b"c", subject=a)
    for root in (first, second, a, b, chained):
        copy(origin, store, root)
    assert listed(store, first) == [a.digest]
    assert listed(store, second) == [b.digest]
    assert listed(store, a) == [chained.digest]
    assert listed(store, chained) == []


def test_an_annotation_of_a_referrer_cannot_take_a_tag(
    store: FullStore, origin: MemoryStore
) -> None:
    subject = image(origin, HELLO)
    copy(origin, store, subject, tag="prod")
    name = "org.opencontainers.image.ref.name"
    for tag in ("prod", "other"):
        copy(origin, store, image(origin, tag.encode(), subject=subject, annotations={name: tag}))
    assert store.resolve("prod") == subject
    assert "other" not in list(store.tags())
    assert len(listed(store, subject)) == 2


# copy


def test_copy_moves_the_closure_and_then_the_tag(place: Opener, origin: MemoryStore) -> None:
    shared = b"shared layer"
    one, two = image(origin, shared, b"1"), image(origin, shared, b"2")
    root = index(origin, index(origin, one, two), two)
    with place() as store:
        done = copy(origin, store, root, tag="v1")
    with place() as store:
        assert store.resolve("v1") == root
        require_closure(store, root)
    # two images and two indexes; two configs and three layers
    assert (done.copied, done.skipped) == (9, 0)
    assert done.copied_bytes == sum(len(data) for data in origin.content.values())


def test_copying_twice_is_copying_once(place: Opener, origin: MemoryStore) -> None:
    root = index(origin, image(origin, b"1"), image(origin, b"2"))
    with place() as store:
        copy(origin, store, root, tag="v1")
    source = Counting(origin)
    with place() as store:
        done = copy(source, store, root, tag="v1")
    assert done == Copied(0, 0, 1, root.size)
    assert not source.fetched


def test_nothing_is_fetched_twice(store: FullStore, origin: MemoryStore) -> None:
    shared = b"shared layer"
    one, two = image(origin, shared, b"1"), image(origin, shared, b"2")
    root = index(origin, index(origin, one, two), index(origin, two), one)
    source = Counting(origin)
    copy(source, store, root)
    assert set(source.fetched.values()) == {1}
    assert set(source.fetched) == set(origin.content)


def test_what_is_there_is_not_moved_again(store: FullStore, origin: MemoryStore) -> None:
    one, two = image(origin, b"shared", b"1"), image(origin, b"shared", b"2")
    copy(origin, store, one)
    source = Counting(origin)
    done = copy(source, store, index(origin, one, two))
    assert one.digest not in source.fetched
    assert blob(b"shared").digest not in source.fetched
    assert done.copied == 4  # the second config, layer and manifest, and the index
    assert done.skipped == 2  # the first image as a whole, and the shared layer


def test_copy_from_a_place_and_back(store: FullStore, origin: MemoryStore) -> None:
    root = index(origin, image(origin, b"1"), image(origin, b"2"))
    copy(origin, store, root, tag="v1")
    back = MemoryStore()
    copy(store, back, store.resolve("v1"), tag="v1")
    assert back.content == origin.content


def test_an_artifact_is_a_source(store: FullStore) -> None:
    made = artifact(b"payload")
    copy(made, store, made.root, tag="v1")
    assert store.resolve("v1") == made.root
    require_closure(store, made.root)


@pytest.mark.parametrize("jobs", [1, 8])
def test_a_source_that_fails_at_any_request_never_leaves_a_tag(
    place: Opener, origin: MemoryStore, jobs: int
) -> None:
    roots = [
        index(origin, image(origin, b"1", b"%d" % n), image(origin, b"3", b"%d" % -n))
        for n in range(1, 8)  # at least an index, two manifests, two configs and two layers
    ]
    for n, root in enumerate(roots, 1):
        with pytest.raises(Unavailable, match="failed"), place() as store:
            copy(Failing(origin, n), store, root, tag="v1", jobs=jobs)
        with place() as store:
            assert "v1" not in _tags(store)
            assert not store.exists(root)
    with place() as store:
        copy(origin, store, roots[0], tag="v1", jobs=jobs)
        require_closure(store, store.resolve("v1"))


def _tags(store: FullStore) -> list[str]:
    try:
        return list(store.tags())
    except NotFound:
        return []  # not even the place is there


def test_a_tag_that_moved_meanwhile_is_left_alone(store: FullStore, origin: MemoryStore) -> None:
    old, mine, theirs = (image(origin, data) for data in (b"old", b"mine", b"theirs"))
    copy(origin, store, old, tag="v1")
    copy(origin, store, theirs, tag="v1")
    with pytest.raises(Rejected, match=str(theirs.digest)):
        copy(origin, store, mine, tag="v1", was=old.digest)
    assert store.resolve("v1") == theirs


def test_a_manifest_that_lies_about_a_size_is_refused(
    store: FullStore, origin: MemoryStore
) -> None:
    layer = put(origin, HELLO, LAYER)
    config = put(origin, b"{}", "application/vnd.oci.image.config.v1+json")
    for size in (layer.size - 1, layer.size + 1):
        lie = replace(layer, size=size)
        raw = document(mediaType=MANIFEST, config=config.to_dict(), layers=[lie.to_dict()])
        root = put(origin, raw, MANIFEST)
        with pytest.raises((IntegrityError, Unavailable)):
            copy(origin, store, root, tag="v1")
    assert "v1" not in _tags(store)


def test_a_source_that_lies_about_the_size_of_a_root_is_refused(
    store: FullStore, origin: MemoryStore
) -> None:
    root = image(origin, HELLO)
    with pytest.raises(IntegrityError):
        copy(origin, store, LyingSize(origin).resolve(str(root.digest)), tag="v1")
    assert "v1" not in _tags(store)


def test_a_root_that_is_no_manifest_is_refused(store: FullStore, origin: MemoryStore) -> None:
    with pytest.raises(IntegrityError):
        copy(origin, store, put(origin, HELLO, LAYER), tag="v1")


def test_a_manifest_that_is_no_manifest_is_refused(store: FullStore, origin: MemoryStore) -> None:
    raws = [b"{", b"[]", b'{"layers":1}', document(config={}, layers=[], manifests=[]), b"\xff"]
    for raw in raws:
        for media_type in (MANIFEST, INDEX):
            with pytest.raises(IntegrityError):
                copy(origin, store, put(origin, raw, media_type))


# writers side by side


def test_two_writers_lose_nothing(place: Opener, origin: MemoryStore) -> None:
    subject = image(origin, HELLO)
    with place() as store:
        copy(origin, store, subject, tag="v0")
    images = [image(origin, b"image %d" % n) for n in range(8)]
    signatures = [image(origin, b"signature %d" % n, subject=subject) for n in range(8)]

    def write(n: int) -> None:
        with place() as store:
            copy(origin, store, images[n], tag=f"v1.{n}")
            copy(origin, store, signatures[n])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    with place() as store:
        assert {f"v{n}" for n in ("0", *(f"1.{m}" for m in range(8)))} <= set(store.tags())
        for n in range(8):
            require_closure(store, store.resolve(f"v1.{n}"))
        assert listed(store, subject) == sorted(one.digest for one in signatures)


# a registry can only ask before it writes: two writers may both be told that they won
@pytest.mark.parametrize("place", ["memory", "directory", "tar"], indirect=True)
def test_of_writers_who_race_for_a_tag_one_wins(place: Opener, origin: MemoryStore) -> None:
    images = [image(origin, b"image %d" % n) for n in range(8)]

    def write(n: int) -> bool:
        try:
            with place() as store:
                copy(origin, store, images[n], tag="v1", was=None)
        except Rejected:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(write, range(8)))
    assert won.count(True) == 1
    with place() as store:
        assert store.resolve("v1") == images[won.index(True)]


def test_one_store_serves_several_threads(store: FullStore, origin: MemoryStore) -> None:
    images = [image(origin, b"image %d" % n, bytes(100_000)) for n in range(8)]

    def write(n: int) -> None:
        copy(origin, store, images[n], tag=f"v{n}")
        require_closure(store, store.resolve(f"v{n}"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert list(store.tags()) == [f"v{n}" for n in range(8)]


def test_an_unchecked_source_is_checked(store: FullStore, origin: MemoryStore) -> None:
    """Manifests too, which copy holds in its hands."""
    root = image(origin, HELLO)
    evil = image(origin, b"evil")

    def endless() -> Iterator[bytes]:
        yield origin.content[evil.digest]

    with pytest.raises(IntegrityError):
        copy(Spoiled(origin, root.digest, endless()), store, root, tag="v1")
    assert "v1" not in _tags(store)
