"""Whether an archive is whole, and what its items are made of.

Nothing is asked of any registry: everything comes from the archive, or from an earlier one that
has what this one left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ocipack.airgap.closures import attached, closure
from ocipack.airgap.contents import Earlier
from ocipack.airgap.record import LeftOut
from ocipack.airgap.site import PARTS
from ocipack.errors import IntegrityError, Misuse, Rejected
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ocipack.airgap.site import Item, Site
    from ocipack.copy import Plan, Transfers
    from ocipack.oci.descriptor import Descriptor

LIST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of a list of digests."""

_FIRST: Final = "ocipack-airgap"
_LINE: Final = re.compile(r"(sha\d+:[0-9a-f]+) (0|[1-9]\d{0,18}) (\S+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Whole:
    """An item of which nothing is missing: `plan` is everything that belongs to it.

    `left_out` are blobs of it that are in an earlier archive.
    """

    item: Item
    plan: Plan
    left_out: tuple[Descriptor, ...]

    @property
    def digests(self) -> dict[Digest, int]:
        """Everything that belongs to it, with its size in bytes."""
        return {part.target.digest: part.target.size for part in self.plan.parts}

    @property
    def size(self) -> int:
        """Bytes of all of that."""
        return sum(self.digests.values())


def whole(site: Site, item: Item, transfers: Transfers) -> Whole:
    """Walk everything that belongs to `item`; every manifest is read and hashed, blobs are not.

    IntegrityError if a blob is neither in the archive, of its size, nor left out for an earlier
    one that had it. What is attached leaves nothing out: nobody vouches for it, and where loading
    finds blobs it mounts them, so that one could have others' blobs put into its repository.
    """
    plan = closure(site.at(item.bare), item.target, transfers)
    loose, missing = set(attached(plan)) if site.left_out else set(), []
    for part in plan.parts:
        target = part.target
        size = site.blobs.get(target.digest)
        if size is None and target.digest in site.left_out and target.digest not in loose:
            size = site.left_out[target.digest].size
            missing.append(target)
        if size is None:
            raise IntegrityError(
                f"{item.reference}: {target.digest} is missing in {site.files.where}"
            )
        if size != target.size:
            raise IntegrityError(
                f"{item.reference}: {target.digest} has {size} bytes, and should have {target.size}"
            )
    return Whole(item, plan, tuple(dict.fromkeys(missing)))


def everything(site: Site, transfers: Transfers) -> tuple[Whole, ...]:
    """All items of an archive, whole; Rejected if it has none, or more than PARTS below them."""
    if not site.items:
        raise Rejected(f"{site.files.where}: the archive holds no image, chart or artifact")
    found, count = [], 0
    for item in site.items:
        found.append(whole(site, item, transfers))
        count += len(found[-1].plan.parts)
        if count > PARTS:
            raise Rejected(f"{site.files.where}: more than {PARTS} manifests and blobs to look at")
    return tuple(found)


def earlier(site: Site, items: Iterable[Whole]) -> Earlier:
    """What a later archive may leave out: the blobs of this one, and what this one left out."""
    sizes: dict[Digest, int] = {}
    where: dict[Digest, set[str]] = {}
    for one in items:
        for part in one.plan.parts:
            if not part.target.is_manifest:
                sizes[part.target.digest] = part.target.size
                where.setdefault(part.target.digest, set()).add(one.item.bare)
    for digest, left in site.left_out.items():
        where.setdefault(digest, set()).update(left.repositories)
    blobs = {
        digest: LeftOut(digest, size, tuple(sorted(where[digest])))
        for digest, size in sizes.items()
    }
    return Earlier(site.digest, blobs)


def listed(known: Earlier) -> Iterator[str]:
    """The lines of a list of digests: which archive, then digest, size and repository of each."""
    yield f"{_FIRST} {known.digest}"
    for _, blob in sorted(known.blobs.items()):
        for name in blob.repositories:
            yield f"{blob.digest} {blob.size} {name}"


def is_list(raw: bytes) -> bool:
    """Whether a file that begins with `raw` is a list of digests."""
    return raw.startswith(f"{_FIRST} ".encode())


def parse(raw: bytes, file: str) -> Earlier:
    """Read a list of digests; Misuse names file and line."""
    first, *lines = raw.decode("utf-8", "replace").removesuffix("\n").split("\n")
    since = _digest(first.removeprefix(f"{_FIRST} "), f"{file}:1")
    sizes: dict[Digest, int] = {}
    where: dict[Digest, set[str]] = {}
    for number, line in enumerate(lines, 2):
        match = _LINE.fullmatch(line)
        if match is None:
            raise Misuse(
                f"{file}:{number}: not `digest size repository`",
                hint="`ocipack airgap list --digests` writes such lists",
            )
        digest = _digest(match[1], f"{file}:{number}")
        if sizes.setdefault(digest, int(match[2])) != int(match[2]):
            raise Misuse(f"{file}:{number}: {digest} with another size")
        try:
            where.setdefault(digest, set()).add(Reference.parse(match[3]).bare)
        except Misuse as e:
            raise Misuse(f"{file}:{number}: {e}") from e
    blobs = {one: LeftOut(one, size, tuple(sorted(where[one]))) for one, size in sizes.items()}
    return Earlier(since, blobs)


def _digest(text: str, place: str) -> Digest:
    try:
        return Digest.parse(text)
    except Misuse as e:
        raise Misuse(f"{place}: {e}", hint=e.hint) from e
