"""From an archive into a registry: what mirroring does, with the archive as the source.

1. Where everything goes is decided before anything is written: two repositories that would
   become one are refused.
2. Only what has been proven is written: each item comes with its proof, which is about its digest.
3. What the archive left out must be at the target: in the item's repository, or in one that an
   earlier archive brought, from which it is mounted. If it is in none, nothing of the item is
   written.
4. All else is `ocipack.mirror.run`: content, what is attached, and last the tag, unless it stands
   for something else there; one item that fails keeps no other from being loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ocipack.errors import IntegrityError, Misuse, OcipackError, Rejected
from ocipack.mirror.model import Relocation, Source as Origin
from ocipack.mirror.plan import Item as Move
from ocipack.mirror.relocate import repository
from ocipack.mirror.report import Outcome, Result
from ocipack.mirror.run import How, Mirroring
from ocipack.oci.reference import Reference

if TYPE_CHECKING:
    from ocipack.airgap.check import Whole
    from ocipack.airgap.site import Site
    from ocipack.copy import Transfers
    from ocipack.oci.digest import Digest
    from ocipack.oci.store import Source, Store
    from ocipack.verify import Exempted, Verified


_HOW = How()


class Targets(Protocol):
    """Opens repositories of the target; see `mirror.run.Places`."""

    def target(self, repository: Reference) -> Store:
        """A repository to write to; the same one for the same repository."""

    def anew(self, repository: Reference) -> Store:
        """The same, with nothing known about it."""


def moves(site: Site, relocation: Relocation) -> tuple[Move, ...]:
    """Where each item of `site` goes, in its order (1).

    One without a tag gets a tag made of its digest, so that no registry collects it as garbage;
    so does each of several that have one name. Misuse where two repositories would become one.
    """
    digests: dict[tuple[str, str | None], set[Digest]] = {}
    for item in site.items:
        digests.setdefault((item.bare, item.reference.tag), set()).add(item.target.digest)
    found, origins = [], dict[Reference, str]()
    for item in site.items:
        origin = Origin("image", item.reference)
        target = repository(relocation, origin)
        other = origins.setdefault(target, item.bare)
        if other != item.bare:
            raise Misuse(
                f"{other} and {item.bare} would both become {target}",
                hint="--names full keeps the registry in the name",
            )
        tag = item.reference.tag or ""
        alone = len(digests[item.bare, item.reference.tag]) == 1
        found.append(Move(origin, tag, target, tag if alone else ""))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Load:
    """One item to load: where it goes, everything that belongs to it, and the proof of it."""

    move: Move
    whole: Whole
    proof: Verified | Exempted

    def __post_init__(self) -> None:
        if not (
            self.proof.descriptor.digest  # (2)
            == self.whole.item.target.digest
            == self.move.source.reference.digest
        ):
            raise IntegrityError(f"{self.move.reference}: proof about another manifest")


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads items of `site` into the stores of `targets`, by names that `relocation` gives.

    Of `how`, `overwrite` and `dry_run` are the caller's.
    """

    site: Site
    relocation: Relocation
    targets: Targets
    transfers: Transfers
    how: How = _HOW

    def run(self, loads: Sequence[Load]) -> list[Result]:
        """What became of each of `loads`, in their order."""
        proofs = {one.move.reference: one.proof for one in loads}
        how = replace(
            self.how,
            prove=lambda _, reference: proofs[reference],
            everything=True,
            full=True,  # the run before this may have been killed before it had attached all
        )
        mirroring = Mirroring(self.transfers, self, how)

        def load(numbered: tuple[int, Load]) -> tuple[int, Result]:
            number, one = numbered
            try:
                self._find_left_out(one)
            except OcipackError as e:
                digest = one.proof.descriptor.digest
                return number, Result(one.move, Outcome.FAILED, digest, error=e)
            return number, mirroring.attempt(one.move)

        ended = dict(self.transfers.each(load, enumerate(loads)))
        return [ended[number] for number in range(len(loads))]

    def source(self, repository: Reference) -> Source:
        """See `mirror.run.Places`."""
        return self.site.at(str(repository))

    asked = source

    def target(self, repository: Reference) -> Store:
        """See `mirror.run.Places`."""
        return self.targets.target(repository)

    def anew(self, repository: Reference) -> Store:
        """See `mirror.run.Places`."""
        return self.targets.anew(repository)

    def _find_left_out(self, one: Load) -> None:
        """Look where the blobs are that the archive has not (3): a look is what mounting needs."""
        dest = self.target(one.move.target)
        for target in one.whole.left_out:
            if dest.exists(target):
                continue
            for name in self.site.left_out[target.digest].repositories:
                origin = Origin("image", Reference.parse(f"{name}@{target.digest}"))
                if self.target(repository(self.relocation, origin)).exists(target):
                    break
            else:
                raise Rejected(
                    f"{target.digest} is not in {self.site.files.where}, which builds on the "
                    f"archive {self.site.since}, and not at the target",
                    hint="load that archive first",
                )
