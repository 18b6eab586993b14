"""Every item of a run, before anything moves.

1. The repositories that are to be listed are listed, each once; exact names never list.
2. Tags are chosen, and each gets its place at the target.
3. Two sources that want the same tag at the target must want the same content, else nothing runs.
4. A shard keeps its part: a pure function of an item's place, so that shards need not talk.

An item is a few hundred bytes, so ten thousand of them are little. A repository that cannot be
listed fails alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from ocipack.errors import Misuse, NotFound, OcipackError, Rejected, StoreError
from ocipack.mirror import relocate
from ocipack.mirror.model import Mirror, Source
from ocipack.mirror.select import chosen
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.pin.resolve import each

Tags = Callable[[Reference], Iterable[str]]
"""Lists the tags of a repository; whether it is a source or a target, the caller has said."""

Resolve = Callable[[Reference], Digest]
"""Asks what a reference is."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Part `index` of `count`, counted from 0."""

    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise Misuse(
                f"there is no part {self.index} of {self.count}",
                hint="parts count from 0: --shard 0/4 to --shard 3/4",
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `I/N`."""
        index, _, count = text.partition("/")
        if not (index.isdecimal() and count.isdecimal() and len(text) < 20):  # noqa: PLR2004 - no real count is as long
            raise Misuse(f"not a part: {text[:40]!r}", hint="--shard I/N, counted from 0")
        return cls(int(index), int(count))

    def holds(self, identity: str) -> bool:
        """Whether what is called `identity` belongs to this part."""
        number = int.from_bytes(hashlib.sha256(identity.encode()).digest()[:8])
        return number % self.count == self.index


@dataclass(frozen=True, slots=True)
class Item:
    """One tag, or one digest, of a source, and where it goes.

    `tag` is its tag at the source, empty if there is none. `target` is the repository there,
    `name` the tag there; empty: one made of the digest, which is known when it is resolved.
    `settled`: the target has this tag, and it never moves.
    """

    source: Source
    tag: str
    target: Reference
    name: str
    settled: bool = False

    @property
    def reference(self) -> Reference:
        """What is asked of the source: its tag, and its digest where the file says one."""
        return replace(self.source.reference, tag=self.tag or None)

    @property
    def identity(self) -> str:
        """What it is called at the target, as far as that is known before it is resolved."""
        return f"{self.target}:{self.name}" if self.name else f"{self.target}<{self.reference}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run has to do, and which sources it cannot do; `total` counts all shards' items."""

    items: tuple[Item, ...]
    failed: tuple[tuple[Source, OcipackError], ...] = ()
    total: int = 0


def plan(
    mirror: Mirror, *, listing: Tags, target_listing: Tags, resolve: Resolve, shard: Shard
) -> Plan:
    """All that `mirror` asks for, in its order; the part of it that is `shard`'s.

    `listing` lists a repository to read from, `target_listing` one at the target. Misuse where a
    name cannot be made, Rejected for a collision.
    """
    answers = each((source.bare for source in mirror.sources if source.lists), _listed(listing))
    items: list[Item] = []
    failed: list[tuple[Source, OcipackError]] = []
    for source in mirror.sources:
        try:
            items += _items(mirror, source, answers)
        except (Rejected, StoreError) as error:
            failed.append((source, error))
    whole = list(_distinct(items, resolve))
    kept = [item for item in whole if shard.holds(item.identity)]
    return Plan(tuple(_settled(kept, target_listing)), tuple(failed), len(whole))


def _listed(listing: Tags) -> Callable[[Reference], list[str]]:
    def ask(repository: Reference) -> list[str]:
        try:
            return list(listing(repository))
        except StoreError as e:
            raise type(e)(
                f"{repository}: its tags cannot be listed: {e}",
                hint="a filter needs a listing; where there is none, give the tags themselves",
            ) from e

    return ask


def _items(
    mirror: Mirror, source: Source, answers: Mapping[Reference, list[str] | OcipackError]
) -> Iterator[Item]:
    with relocate.about(source):
        target = relocate.repository(mirror.relocation, source)
        is_flat = relocate.is_flat(mirror.relocation, source)
    digest = source.reference.digest
    if digest is not None:
        tag = source.reference.tag or ""
        name = relocate.digest_tag(digest) if is_flat or not tag else tag
        yield Item(source, tag, target, name)
        return
    answer = answers.get(source.bare, [])
    if isinstance(answer, OcipackError):
        raise answer
    for tag in chosen(source, answer):
        yield Item(source, tag, target, "" if is_flat else tag)


def _distinct(items: list[Item], resolve: Resolve) -> Iterator[Item]:
    """The items, each place once. Rejected if two of them want different content there."""
    first: dict[str, Item] = {}
    for item in items:
        known = first.setdefault(item.identity, item)
        if known is item:
            yield item
        elif _content(known, resolve) != _content(item, resolve):
            raise Rejected(
                f"{item.target}:{item.name} would be both {known.reference} and {item.reference}",
                hint=f"give one of them another place: {known.source.place}, {item.source.place}",
            )


def _content(item: Item, resolve: Resolve) -> Digest:
    return item.source.reference.digest or resolve(item.reference)


def _settled(items: list[Item], target_listing: Tags) -> Iterator[Item]:
    """The items; those whose tag never moves and is there already are settled.

    A target that cannot be listed is asked for each tag instead.
    """
    immutable = [item for item in items if _never_moves(item)]
    there = each({item.target for item in immutable}, _there(target_listing))
    for item in items:
        answer = there.get(item.target)
        known = answer if isinstance(answer, frozenset) else frozenset[str]()
        yield replace(item, settled=True) if item.name in known and _never_moves(item) else item


def _never_moves(item: Item) -> bool:
    pattern = item.source.immutable
    return bool(item.name) and pattern is not None and pattern.fits(item.name)


def _there(listing: Tags) -> Callable[[Reference], frozenset[str]]:
    def ask(repository: Reference) -> frozenset[str]:
        try:
            return frozenset(listing(repository))
        except NotFound:
            return frozenset()

    return ask
