"""What a copy brings along: signatures and referrers that are real, nothing that only says so."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest
from content import image, put

from ocipack.copy import ATTACHED, copy, copy_attached
from ocipack.errors import Rejected
from ocipack.oci.descriptor import EMPTY, MANIFEST, Descriptor
from ocipack.oci.manifest import Manifest
from ocipack.stores.memory import MemoryStore


class Listing(MemoryStore):
    """A store whose listing of referrers shows more than refers to the subject."""

    extra: tuple[Descriptor, ...] = ()

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        return chain(super().referrers(subject), self.extra)


def referrer(store: MemoryStore, subject: Descriptor, number: int = 0) -> Descriptor:
    config = put(store, b"{}", EMPTY)
    made = Manifest.build(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.to_dict(),
            "layers": [],
            "annotations": {"number": str(number)},
            "subject": subject.to_dict(),
        }
    )
    return put(store, made.raw, MANIFEST)


def tag(subject: Descriptor, suffix: str) -> str:
    return f"sha256-{subject.digest.hex}{suffix}"


def test_tags_and_referrers_come_along_deep_ones_too() -> None:
    source, dest = MemoryStore(), MemoryStore()
    root = image(source, b"1")
    first = referrer(source, root)
    second = referrer(source, first)
    for suffix in (".sig", ".att", ".sbom"):
        source.tag(image(source, suffix.encode()), tag(root, suffix))
    copy(source, dest, root)
    done = copy_attached(source, dest, root)
    assert done.copied > 0
    assert [one.digest for one in dest.referrers(root)] == [first.digest]
    assert [one.digest for one in dest.referrers(first)] == [second.digest]
    assert set(dest.tags()) == {tag(root, suffix) for suffix in (".sig", ".att", ".sbom")}
    assert copy_attached(source, dest, root).copied == 0


def test_what_a_listing_shows_but_names_another_subject_stays_behind() -> None:
    source, dest = Listing(), MemoryStore()
    root, other = image(source, b"1"), image(source, b"2")
    stranger = referrer(source, other)
    source.extra = (stranger, other)
    copy(source, dest, root)
    copy_attached(source, dest, root)
    assert not dest.exists(stranger)
    assert not dest.exists(other)


def test_a_listing_without_end_is_refused() -> None:
    source, dest = Listing(), MemoryStore()
    root = image(source, b"1")
    source.extra = (root,) * (ATTACHED + 1)
    copy(source, dest, root)
    with pytest.raises(Rejected, match="more than 1000 referrers"):
        copy_attached(source, dest, root)


def test_signatures_made_at_the_destination_are_not_replaced() -> None:
    source, dest = MemoryStore(), MemoryStore()
    root = image(source, b"1")
    source.tag(image(source, b"theirs"), tag(root, ".sig"))
    copy(source, dest, root)
    ours = image(dest, b"ours")
    dest.tag(ours, tag(root, ".sig"))
    with pytest.raises(Rejected, match="other content"):
        copy_attached(source, dest, root)
    assert dest.resolve(tag(root, ".sig")) == ours
