"""Each entry of a vendor file: resolved, fetched, compared with what the tree has.

1. What the lock has, and the tree as the lock says, is not fetched again.
2. What is fetched is what the lock says (sha256, commit, digest), unless the entry is new, says
   something else, or is to be updated; and always what the vendor file itself says.
3. A directory that holds anything but what the lock says, or what is to be written, is left alone
   and refused: somebody's work would be lost.
4. Everything is fetched before anything is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from ocipack.errors import Rejected
from ocipack.oci.digest import Digest
from ocipack.oci.location import Location
from ocipack.tree.limits import MiB
from ocipack.tree.tree import Tree
from ocipack.vendor.lock import Held, Vendored, VendorLock
from ocipack.vendor.model import CHART, GIT, Item, Vendor
from ocipack.vendor.pick import Choice, Named, archived, picked

TOTAL: Final = 512 * MiB
"""Bytes of everything that one run writes; it is in memory until all of it is there."""

Look = Callable[[str], frozenset[Held] | None]
"""The files in a directory of the tree; None if it is not there."""


class Fetch(Protocol):
    """How content is fetched: the edges."""

    def url(self, address: str) -> bytes:
        """The file at an address."""

    def git(
        self, address: str, ref: str, commit: str, wanted: Callable[[str], object]
    ) -> tuple[str, Iterable[Named]]:
        """The commit, and those of its files that are wanted.

        With `commit` it is that one, else what `ref` names now.
        """

    def chart(self, where: Location) -> tuple[Digest, bytes]:
        """The digest of a chart's artifact, and its archive."""


class Outcome(StrEnum):
    """What an entry comes to."""

    ADDED = "added"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done about the directory `into`.

    `entry` is what the lock says afterwards (None: nothing), `tree` what is written (None: what
    is there stays), `gone` the files that are removed with the directory.
    """

    into: str
    outcome: Outcome
    entry: Vendored | None = None
    tree: Tree | None = None
    gone: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class How:
    """How a run goes about it: `update` asks what everything is now, `force` overwrites."""

    update: bool = False
    force: bool = False


def steps(
    vendor: Vendor, lock: VendorLock, only: Iterable[str], *, fetch: Fetch, look: Look, how: How
) -> list[Step]:
    """What is to be done, in the order of the file; all of it is fetched when this returns.

    `only` are the directories that are meant, all if there is none; then what the vendor file
    does not name any more is removed as well. Rejected where content is not what it should be, or
    work would be lost.
    """
    chosen = frozenset(only)
    found: list[Step] = []
    for item in vendor.items:
        if not chosen or item.into in chosen:
            found.append(_step(item, lock.entries.get(item.into), fetch, look, how))
        if sum(step.tree.size for step in found if step.tree is not None) > TOTAL:
            raise Rejected(
                f"more than {TOTAL} bytes are to be vendored at once",
                hint="choose less, with path and include, or vendor some: ocipack vendor INTO",
            )
    if not chosen:
        named = {item.into for item in vendor.items}
        gone = (one for into, one in sorted(lock.entries.items()) if into not in named)
        found += [_removed(one, look, how) for one in gone]
    return found


def _step(item: Item, locked: Vendored | None, fetch: Fetch, look: Look, how: How) -> Step:
    there = look(item.into)
    known = locked if locked is not None and locked.answers(item) and not how.update else None
    if known is not None and there == frozenset(known.files):  # (1)
        return Step(item.into, Outcome.UNCHANGED, known)
    entry, tree = brought(item, known, fetch)
    before = frozenset(locked.files) if locked is not None else frozenset[Held]()
    if there == frozenset(entry.files):
        outcome = Outcome.UNCHANGED if entry == locked else Outcome.UPDATED
        return Step(item.into, outcome, entry)
    known_files = before | frozenset(entry.files)
    if there and there - known_files and not how.force:  # (3)
        raise _foreign(item.into, there - known_files)
    outcome = Outcome.UPDATED if locked is not None and there else Outcome.ADDED
    return Step(item.into, outcome, entry, tree)


def _removed(locked: Vendored, look: Look, how: How) -> Step:
    foreign = (look(locked.into) or frozenset()) - frozenset(locked.files)
    if foreign and not how.force:  # (3)
        raise _foreign(locked.into, foreign)
    return Step(locked.into, Outcome.REMOVED, gone=locked.files)


def _foreign(into: str, found: frozenset[Held]) -> Rejected:
    names = sorted(one.name for one in found)
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")  # noqa: PLR2004 - as above
    return Rejected(
        f"{into}: {shown}: changed here, or not brought by vendor",
        hint="keep changes elsewhere (a kustomize patch); --force takes what upstream has",
    )


def brought(item: Item, known: Vendored | None, fetch: Fetch) -> tuple[Vendored, Tree]:
    """Fetch `item`: what `known` was, if that is given (2)."""
    pin = known.resolved if known is not None else item.pin
    resolved, files = _FETCHED[item.kind](item, pin, fetch)
    if pin and resolved != pin:
        what = "the lock says" if known is not None and not item.pin else "it should be"
        raise Rejected(
            f"{item.place}: {item.address} is {resolved} now, and {what} {pin}",
            hint=f"look what has changed; `ocipack vendor --update {item.into}` takes it"
            if not item.pin
            else "look what has changed, then correct the vendor file",
        )
    tree = picked(item, files)
    return Vendored(item.into, item.request, resolved, held(tree)), tree


def _url(item: Item, pin: str, fetch: Fetch) -> tuple[str, Iterable[Named]]:
    data = fetch.url(item.address)
    digest = hashlib.sha256(data).hexdigest()
    if not item.is_archive:
        return digest, [(item.file, False, data)]
    return digest, archived(data) if pin in ("", digest) else ()


def _git(item: Item, pin: str, fetch: Fetch) -> tuple[str, Iterable[Named]]:
    return fetch.git(item.address, item.ref, pin, Choice.of(item).name)


def _chart(item: Item, pin: str, fetch: Fetch) -> tuple[str, Iterable[Named]]:
    digest, archive = fetch.chart(item.where.at(Digest.parse(pin)) if pin else item.where)
    return str(digest), archived(archive, is_chart=True)


_FETCHED: Mapping[str, Callable[[Item, str, Fetch], tuple[str, Iterable[Named]]]] = {
    "url": _url,
    GIT: _git,
    CHART: _chart,
}


def held(tree: Tree) -> tuple[Held, ...]:
    """The files of a tree as a lock has them."""
    return tuple(
        Held(name, _sha256(file.open()), file.executable) for name, file in tree.files.items()
    )


def _sha256(pieces: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()
