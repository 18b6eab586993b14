"""The order of tags, and that nothing is written unless everything may be."""

from __future__ import annotations

from types import EllipsisType

import pytest
from content import image

from ocipack.copy import copy
from ocipack.errors import Misuse, NotFound, Rejected
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.stores.memory import MemoryStore
from ocipack.tag import Tagged, immutable, standing, tag

DIGEST = Digest("sha256", "0123456789abcdef" * 4)


def test_the_immutable_name_is_the_tag_and_twelve_digits() -> None:
    assert immutable("main", DIGEST) == "main-0123456789ab"
    assert immutable("v1.2.3", Digest("sha512", "f" * 128)) == "v1.2.3-ffffffffffff"


def test_a_long_name_is_cut_to_128_characters() -> None:
    assert immutable("a" * 115, DIGEST) == "a" * 115 + "-0123456789ab"
    assert immutable("a" * 116, DIGEST) == "a" * 115 + "-0123456789ab"
    assert len(immutable("a" * 128, DIGEST)) == 128


@pytest.mark.parametrize("name", ["", "a" * 129, "-a", "a b"])
def test_a_name_that_is_no_tag_is_misuse(name: str) -> None:
    with pytest.raises(Misuse):
        immutable(name, DIGEST)
    with pytest.raises(Misuse):
        standing(MemoryStore(), [name])


@pytest.mark.parametrize("suffix", ["", ".sig", ".att", ".sbom"])
@pytest.mark.parametrize("digest", ["sha256-" + "a" * 64, "sha512-" + "0" * 64])
def test_a_name_that_verifiers_look_under_is_misuse(digest: str, suffix: str) -> None:
    with pytest.raises(Misuse, match="attached to that digest"):
        standing(MemoryStore(), [digest + suffix])


@pytest.mark.parametrize("name", ["sha256-abc.sig", "v1-sha256-" + "a" * 64, "sha256"])
def test_a_name_that_only_reminds_of_one_is_a_tag(name: str) -> None:
    assert standing(MemoryStore(), [name]) == {name: None}


class Writes(MemoryStore):
    """Notes the tags that are written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        super().tag(target, name, was=was)
        self.written.append(name)


@pytest.fixture
def store() -> Writes:
    return Writes()


def here(store: MemoryStore, data: bytes) -> Descriptor:
    origin = MemoryStore()
    root = image(origin, data)
    copy(origin, store, root)
    return root


def test_the_immutable_tag_comes_first(store: Writes) -> None:
    root = here(store, b"1")
    fixed = f"main-{root.digest.hex[:12]}"
    latest = f"latest-{root.digest.hex[:12]}"
    done = tag(store, root, standing(store, ["main", "latest"]))
    assert store.written == [fixed, latest, "main", "latest"]
    assert done == Tagged((fixed, latest, "main", "latest"), ())
    assert {store.resolve(name) for name in store.written} == {root}


def test_nothing_is_written_when_all_point_there(store: Writes) -> None:
    root = here(store, b"1")
    tag(store, root, {"main": None})
    store.written.clear()
    done = tag(store, root, standing(store, ["main"]))
    assert done == Tagged((), (f"main-{root.digest.hex[:12]}", "main"))
    assert not store.written


def test_a_tag_moves_on_and_the_old_immutable_one_stays(store: Writes) -> None:
    old, new = here(store, b"1"), here(store, b"2")
    tag(store, old, {"main": None})
    tag(store, new, {"main": old.digest})
    assert store.resolve("main") == new
    assert store.resolve(f"main-{old.digest.hex[:12]}") == old


def test_someone_else_moved_the_tag(store: Writes) -> None:
    old, mine, theirs = (here(store, data) for data in (b"1", b"2", b"3"))
    store.tag(old, "main")
    was = standing(store, ["main"])
    store.tag(theirs, "main")
    store.written.clear()
    with pytest.raises(Rejected, match=f"is at {theirs.digest} now"):
        tag(store, mine, was)
    assert not store.written


def test_someone_else_removed_or_made_the_tag(store: Writes) -> None:
    mine, theirs = here(store, b"1"), here(store, b"2")
    with pytest.raises(Rejected, match="at nothing now"):
        tag(store, mine, {"main": theirs.digest})
    store.tag(theirs, "main")
    with pytest.raises(Rejected, match="was at nothing"):
        tag(store, mine, {"main": None})
    assert store.resolve("main") == theirs


def test_an_immutable_tag_is_never_moved(store: Writes) -> None:
    mine, theirs = here(store, b"1"), here(store, b"2")
    fixed = f"main-{mine.digest.hex[:12]}"
    store.tag(theirs, fixed)
    store.written.clear()
    with pytest.raises(Rejected, match="never moves"):
        tag(store, mine, {"main": None})
    assert not store.written
    assert store.resolve(fixed) == theirs


class Racing(Writes):
    """Someone moves `name` after it has been read and before it is written."""

    rival: Descriptor

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        if name == "main":
            MemoryStore.tag(self, self.rival, "main")
        super().tag(target, name, was=was)


def test_the_store_compares_once_more(store: Writes) -> None:
    store = Racing()
    root, store.rival = here(store, b"1"), here(store, b"2")
    with pytest.raises(Rejected, match=str(store.rival.digest)):
        tag(store, root, {"main": None})
    assert store.resolve("main") == store.rival


def test_what_is_not_there_gets_no_name(store: Writes) -> None:
    with pytest.raises(NotFound):
        tag(store, image(MemoryStore(), b"absent"), {"main": None})
