"""What copy adds to the contract of stores: limits, order, concurrency, the first error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from types import EllipsisType

import pytest
from content import INDEX, LAYER, MANIFEST, blob, document, image, index, put
from doubles import Counting, Double, Spoiled

from ocipack.copy import Copied, copy
from ocipack.errors import IntegrityError, NotFound
from ocipack.oci import closure as limits
from ocipack.oci.closure import closure
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.store import Source, manifest, read
from ocipack.stores.memory import MemoryStore


class Recorder(MemoryStore):
    """A store that notes what it is asked, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[str, str]] = []

    def exists(self, target: Descriptor) -> bool:
        self.log.append(("exists", str(target.digest)))
        return super().exists(target)

    def push(self, target: Descriptor, source: Source) -> None:
        super().push(target, source)
        self.log.append(("push", str(target.digest)))

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        self.log.append(("tag", name))
        super().tag(target, name, was=was)


def test_children_before_parents_and_the_tag_last() -> None:
    origin, dest = MemoryStore(), Recorder()
    deep = image(origin, b"1", b"2")
    middle = index(origin, deep)
    root = index(origin, deep, middle, image(origin, b"3"))
    copy(origin, dest, root, tag="v1")
    pushed = [what for kind, what in dest.log if kind == "push"]
    for node, found in closure(origin, root):
        for child in found.children if found is not None else ():
            assert pushed.index(str(child.digest)) < pushed.index(str(node.digest))
    assert dest.log[-1] == ("tag", "v1")
    assert len(pushed) == len(set(pushed))


def test_nothing_is_asked_twice() -> None:
    origin, dest = MemoryStore(), Recorder()
    one, two = image(origin, b"shared", b"1"), image(origin, b"shared", b"2")
    copy(origin, dest, index(origin, index(origin, one, two), one, two))
    asked = [what for kind, what in dest.log if kind == "exists"]
    assert sorted(asked) == sorted(set(asked)) == sorted(map(str, origin.content))


def test_what_exists_at_the_root_costs_one_question() -> None:
    origin, dest = MemoryStore(), Recorder()
    root = image(origin, b"1")
    copy(origin, dest, root)
    dest.log.clear()
    assert copy(origin, dest, root).skipped == 1
    assert dest.log == [("exists", str(root.digest))]


class Together(Double):
    """Lets a layer through only when `number` of them are asked for at once."""

    def __init__(self, inner: Source, number: int) -> None:
        super().__init__(inner)
        self.barrier = threading.Barrier(number, timeout=30)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        if target.media_type == LAYER:
            self.barrier.wait()
        return self.inner.fetch(target)


def test_eight_blobs_are_in_flight() -> None:
    origin = MemoryStore()
    root = image(origin, *(b"%d" % n for n in range(8)))
    # the config goes first: with it as ninth, all eight layers must still meet
    assert copy(Together(origin, 8), MemoryStore(), root, jobs=8).copied == 10


BIGGEST = b"the biggest layer, which goes first" * 10


class Scripted(Double):
    """Fails for the layer `first`, with nothing else failing before that."""

    def __init__(self, inner: Source, first: Digest) -> None:
        super().__init__(inner)
        self.first, self.failed, self.fetched = first, threading.Event(), 0

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        if target.media_type != LAYER:
            return self.inner.fetch(target)
        self.fetched += 1
        if target.digest == self.first:
            self.failed.set()
            raise NotFound("the root cause")
        self.failed.wait(30)
        return self.inner.fetch(target)


@pytest.mark.parametrize("jobs", [1, 2, 8])
def test_the_first_error_ends_the_run(jobs: int) -> None:
    origin, dest = MemoryStore(), Recorder()
    root = image(origin, BIGGEST, *(b"%d" % n for n in range(200)))
    source = Scripted(origin, blob(BIGGEST).digest)
    with pytest.raises(NotFound, match="root cause"):
        copy(source, dest, root, tag="v1", jobs=jobs)
    assert ("push", str(root.digest)) not in dest.log
    assert ("tag", "v1") not in dest.log


def test_nothing_starts_after_an_error() -> None:
    origin = MemoryStore()
    root = image(origin, BIGGEST, *(b"%d" % n for n in range(200)))
    source = Scripted(origin, blob(BIGGEST).digest)
    with pytest.raises(NotFound, match="root cause"):
        copy(source, MemoryStore(), root, jobs=1)
    assert source.fetched == 1


def test_depth_is_limited() -> None:
    assert limits.DEPTH == 10
    origin = MemoryStore()
    root = image(origin, b"1")
    for _ in range(9):
        root = index(origin, root)
    assert copy(origin, MemoryStore(), root).copied == 12  # ten manifests, then blobs below
    with pytest.raises(IntegrityError, match="more than 10 manifests stand above"):
        copy(origin, MemoryStore(), index(origin, root))
    with pytest.raises(IntegrityError, match="more than 10 manifests stand above"):
        list(closure(origin, index(origin, root)))


def test_an_index_with_ten_thousand_entries_is_copied() -> None:
    origin, dest = MemoryStore(), MemoryStore()
    config = put(origin, b"{}", "application/vnd.oci.empty.v1+json")
    children = [
        put(
            origin,
            document(mediaType=MANIFEST, config=config.to_dict(), layers=[], annotations={"n": n}),
            MANIFEST,
        )
        for n in map(str, range(10_000))
    ]
    root = index(origin, *children)
    assert copy(origin, dest, root).copied == 10_002


def test_the_number_of_nodes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.NODES == 50_000
    origin = MemoryStore()
    root = image(origin, *(b"%d" % n for n in range(8)))  # ten nodes
    monkeypatch.setattr(limits, "NODES", 10)
    copy(origin, MemoryStore(), root)
    monkeypatch.setattr(limits, "NODES", 9)
    dest = Recorder()
    with pytest.raises(IntegrityError, match="more than 9"):
        copy(origin, dest, root)
    assert [kind for kind, _ in dest.log] == ["exists"]


def test_bytes_of_manifests_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.HELD == 64 * 1024 * 1024
    origin = MemoryStore()
    child = image(origin, b"1")
    root = index(origin, child)
    monkeypatch.setattr(limits, "HELD", root.size + child.size)
    copy(origin, MemoryStore(), root)
    monkeypatch.setattr(limits, "HELD", root.size + child.size - 1)
    source = Counting(origin)
    with pytest.raises(IntegrityError, match="together"):
        copy(source, MemoryStore(), root)
    assert child.digest not in source.fetched, "refused before it was read"


def test_one_digest_with_two_sizes_is_refused() -> None:
    origin = MemoryStore()
    layer = put(origin, b"layer", LAYER)
    layers = [layer.to_dict(), replace(layer, size=6).to_dict()]
    root = put(
        origin, document(mediaType=MANIFEST, config=layer.to_dict(), layers=layers), MANIFEST
    )
    with pytest.raises(IntegrityError, match="5 and 6 bytes"):
        copy(origin, MemoryStore(), root)


class Looping(MemoryStore):
    """A store without hashing, in which a graph can close on itself."""

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        return iter([self.content[target.digest]])


def test_a_loop_ends() -> None:
    """Only a source that does not hash can have one, and its bytes are refused when read."""
    origin = Looping()
    fake = Descriptor(INDEX, blob(b"fake").digest, 0)
    raw = document(mediaType=INDEX, manifests=[replace(fake, size=228).to_dict()])
    fake = replace(fake, size=len(raw))
    origin.content[fake.digest] = raw
    for walk in (lambda: list(closure(origin, fake)), lambda: copy(origin, MemoryStore(), fake)):
        with pytest.raises(IntegrityError):
            walk()


def test_what_is_read_whole_is_hashed_whatever_its_source_promised() -> None:
    origin = MemoryStore()
    root = image(origin, b"1")
    bad = origin.content[root.digest].replace(b":2", b":3", 1)
    source = Spoiled(origin, root.digest, [bad])
    with pytest.raises(IntegrityError):
        manifest(source, root)
    with pytest.raises(IntegrityError):
        read(source, root, limit=1000)


def test_a_subject_is_not_copied() -> None:
    origin, dest = MemoryStore(), MemoryStore()
    subject = image(origin, b"1")
    copy(origin, dest, image(origin, b"2", subject=subject))
    assert not dest.exists(subject)


def test_counts_add_up() -> None:
    assert Copied(1, 2, 3, 4) + Copied(10, 20, 30, 40) == Copied(11, 22, 33, 44)
