"""What two archives have that the other has not: by names, and in bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ocipack.airgap.check import Whole
    from ocipack.oci.digest import Digest


@dataclass(frozen=True, slots=True)
class Change:
    """A name whose content differs; `before` or `after` is None where it is not there.

    With both the same, what is attached differs: so many things came, and so many went.
    """

    name: str
    before: Digest | None
    after: Digest | None
    came: int = 0
    went: int = 0

    @property
    def word(self) -> str:
        """What happened to it."""
        if self.before is None:
            return "added"
        if self.after is None:
            return "removed"
        return "moved" if self.before != self.after else "attached"


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed from one archive to another, and the bytes that only one of them needs."""

    changes: tuple[Change, ...]
    unchanged: int
    added_bytes: int
    removed_bytes: int


def compare(before: Sequence[Whole], after: Sequence[Whole]) -> Difference:
    """Compare the items of two archives, whatever of their content one of them left out."""
    old, new = _named(before), _named(after)
    changes, unchanged = [], 0
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was is not None and now is not None and was.digests.keys() == now.digests.keys():
            unchanged += 1
            continue
        same = was is not None and now is not None and _digest(was) == _digest(now)
        came = len(now.digests.keys() - was.digests.keys()) if same and was and now else 0
        went = len(was.digests.keys() - now.digests.keys()) if same and was and now else 0
        changes.append(Change(name, _digest(was), _digest(now), came, went))
    sizes_before, sizes_after = _sizes(before), _sizes(after)
    return Difference(
        tuple(changes),
        unchanged,
        sum(size for digest, size in sizes_after.items() if digest not in sizes_before),
        sum(size for digest, size in sizes_before.items() if digest not in sizes_after),
    )


def _named(items: Iterable[Whole]) -> Mapping[str, Whole]:
    """Items by the name that stays when content moves: with the tag, or else with the digest.

    Of several with one tag each keeps its digest.
    """
    found: dict[str, list[Whole]] = {}
    for one in items:
        reference = one.item.reference
        name = f"{reference.bare}:{reference.tag}" if reference.tag is not None else str(reference)
        found.setdefault(name, []).append(one)
    named: dict[str, Whole] = {}
    for name, several in found.items():
        for one in several:
            named[name if len(several) == 1 else str(one.item.reference)] = one
    return named


def _digest(one: Whole | None) -> Digest | None:
    return one.item.target.digest if one is not None else None


def _sizes(items: Iterable[Whole]) -> dict[Digest, int]:
    sizes: dict[Digest, int] = {}
    for one in items:
        sizes |= one.digests
    return sizes
