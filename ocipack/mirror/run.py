"""Mirroring an item: asked once, compared, verified, copied, looked at again, and tagged last.

What holds, step by step, whatever fails or is killed:

1. What is copied is what was verified: the source is resolved once, and from then on only the
   digest counts. Without a policy somebody has said that nothing need be proven.
2. A tag at the target that names something else is left alone, unless overwriting was asked for.
3. Content and all that is attached to it are at the target, whose own listings were compared with
   the plan (`copy.deliver`; with `full` everything is asked for anew), before the tag is set; it is
   set only if it is still where it was in (2).
4. An item that fails ends alone.

So a tag that names the source's content needs nothing: two requests, or one where a lock says what
is wanted. `full` looks below such tags, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from ocipack.copy import Copied, Plan as Move, Transfers
from ocipack.errors import NotFound, OcipackError, Rejected
from ocipack.mirror.plan import Item
from ocipack.mirror.platforms import Choice
from ocipack.mirror.relocate import digest_tag
from ocipack.mirror.report import Outcome, Result
from ocipack.oci.descriptor import INDEXES, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source, Store
from ocipack.verify import Exempted, Verified

Prove = Callable[[Source, Reference], Verified | Exempted]
"""Verifies a reference in its source, or raises."""


class Places(Protocol):
    """Opens repositories; the same one for every item that asks for it."""

    def source(self, repository: Reference) -> Source:
        """A repository to read from, which resolves a name by reading its manifest."""

    def asked(self, repository: Reference) -> Source:
        """The same for asking what names are, at the least cost."""

    def target(self, repository: Reference) -> Store:
        """A repository to write to."""

    def anew(self, repository: Reference) -> Store:
        """The same, with nothing known about it."""


@dataclass(frozen=True, slots=True)
class How:
    """How a run goes about it.

    `prove` verifies before anything is copied; None: nothing need be proven, as was said. With
    `everything` that holds for sources too of which the file says that they need not be signed.
    """

    prove: Prove | None = None
    everything: bool = False
    dry_run: bool = False
    overwrite: bool = False
    full: bool = False
    require_signatures: bool = False


@dataclass(frozen=True, slots=True)
class Mirroring:
    """A run: what its items share."""

    transfers: Transfers
    places: Places
    how: How

    def results(self, items: Iterable[Item]) -> Iterator[Result]:
        """What became of each of `items`, as they end."""
        return self.transfers.each(self.attempt, items)

    def attempt(self, item: Item) -> Result:
        """Mirror `item`; an error is a result (4)."""
        try:
            return self._mirror(item)
        except OcipackError as error:
            return Result(item, Outcome.FAILED, item.source.reference.digest, error=error)

    def _mirror(self, item: Item) -> Result:
        if item.settled and not self.how.full:
            return Result(item, Outcome.SKIPPED, item.source.reference.digest)
        proof = self._proof(item)
        root = proof.descriptor if proof is not None else None
        digest = root.digest if root is not None else item.source.reference.digest
        store = self.places.target(item.target)
        now = _at(store, item.name) if item.name else None
        if digest is None:
            root = self._resolved(item, is_new=bool(item.name) and now is None)
            digest = root.digest
        if not item.name:
            now = _at(store, digest_tag(digest))
        result = Result(item, Outcome.SKIPPED, digest, now, _said(proof))
        if now not in (None, digest) and not (self.how.overwrite or item.source.overwrite):
            return replace(result, outcome=Outcome.DRIFTED)  # (2)
        if now == digest and not self.how.full:
            return result
        if root is None:
            root = self.places.source(item.source.bare).resolve(str(digest))
        return self._copied(result, store, root)

    def _proof(self, item: Item) -> Verified | Exempted | None:
        """Proof of what is to be copied (1); None where nothing need be proven."""
        if self.how.prove is None or (item.source.unsigned and not self.how.everything):
            return None
        return self.how.prove(self.places.source(item.source.bare), item.reference)

    def _resolved(self, item: Item, *, is_new: bool) -> Descriptor:
        """What a tag is: read at once if it will be copied, else only asked for."""
        open_source = self.places.source if is_new else self.places.asked
        return open_source(item.source.bare).resolve(item.tag)

    def _copied(self, result: Result, store: Store, root: Descriptor) -> Result:
        """Copy what is missing, unless it is a dry run, and set the tag (3)."""
        item = result.item
        source, asked = self.places.source(item.source.bare), item.source
        choice = Choice(asked.platforms) if asked.platforms else None
        overwrite = self.how.overwrite or asked.overwrite
        plan = self.transfers.plan(
            *(source, store, root),
            attached=asked.attached,
            choose=choice,
            overwrite=overwrite,
            gone_ok=True,
        )
        self._complete(item, plan)
        result = replace(
            result,
            done=_to_do(plan),
            left_out=len(plan.left_out),
            lacking=choice.lacking if choice is not None and root.media_type in INDEXES else (),
            moved=self._moved(item, result),
            gone=tuple(sorted(plan.gone)),
        )
        if self.how.dry_run:
            return replace(result, outcome=_WOULD[self._outcome(result, plan)])
        try:
            result = replace(result, done=self.transfers.deliver(plan, store))
        except OcipackError as error:
            error.hint = error.hint or (_SPARSE if plan.left_out else "")
            raise
        if self.how.full and plan.missing:
            self._compare(result, plan)
        if result.before != root.digest:
            store.tag(root, result.name, was=result.before)
        return replace(result, outcome=self._outcome(result, plan))

    def _complete(self, item: Item, plan: Move) -> None:
        """Rejected if what should be attached is not."""
        needed = self.how.require_signatures or item.source.require_signatures
        if needed and not plan.signatures:
            raise Rejected(
                f"{item.reference}: no signature is attached to it",
                hint="sign it, or ask whoever publishes it; signatures are required here",
            )
        found = {part.target.digest for part in plan.parts}
        lost = sorted(item.source.recorded - found) if item.source.attached else []
        if lost:
            raise Rejected(
                f"{item.reference}: {lost[0]}, which the lock saw attached to it, is not any more",
                hint="`ocipack lock check` says what else has changed",
            )

    def _compare(self, result: Result, plan: Move) -> None:
        """Rejected if the target, asked anew, does not have all that it took."""
        target, store = result.item.target, self.places.anew(result.item.target)
        store.exists(plan.root)  # a repository whose first name is not there is taken to be new
        lost = self.transfers.missing(plan, store)
        if lost:
            more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
            raise Rejected(
                f"{target} took {lost[0].name or lost[0].target.digest}{more} and does not have it",
                hint="the tag was not set; does something there delete what it gets?",
            )

    def _moved(self, item: Item, result: Result) -> Digest | None:
        """Where the tag of a lock's entry is, if that is not what was taken.

        A lock is a record, not an authority: whoever can edit it chooses among what the source has.
        """
        if not item.source.locked or not item.tag or result.proof != _UNSIGNED:
            return None
        now = _at(self.places.asked(item.source.bare), item.tag)
        return now if now != result.digest else None

    def _outcome(self, result: Result, plan: Move) -> Outcome:
        if result.before is None:
            return Outcome.COPIED
        if result.before != result.digest:
            return Outcome.OVERWRITTEN
        return Outcome.COPIED if plan.missing else Outcome.SKIPPED


_SPARSE = "the target may take no index without all its entries: leave platforms out"
_UNSIGNED = "unsigned"
_WOULD = {
    Outcome.COPIED: Outcome.WOULD_COPY,
    Outcome.OVERWRITTEN: Outcome.WOULD_OVERWRITE,
    Outcome.SKIPPED: Outcome.SKIPPED,
}


def _said(proof: Verified | Exempted | None) -> str:
    if proof is None:
        return _UNSIGNED
    return "exempted" if isinstance(proof, Exempted) else "verified"


def _to_do(plan: Move) -> Copied:
    """What delivering `plan` would move; how much of it without being sent nobody knows yet."""
    missing = {part.target for part in plan.missing}
    return Copied.of(missing, {part.target for part in plan.parts} - missing, kinds=plan.kinds)


def _at(source: Source, name: str) -> Digest | None:
    try:
        return source.resolve(name).digest
    except NotFound:
        return None
