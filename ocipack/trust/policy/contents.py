"""What a policy says of the contents of an artifact: what may be named in it, and how.

Pure: no store, no file, no clock. `Part` is one thing that is named inside, `opinion` what a
policy thinks of it. Silence means no: an image or a source that nothing allows is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.errors import Misuse
from ocipack.trust.policy.names import EVERYTHING, Glob
from ocipack.trust.policy.places import SourceGlob

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from ocipack.flux.sources import Address
    from ocipack.oci.reference import Reference

IMAGE, SOURCE = "image", "source"

UNCLEAR = "contents-unclear"
FORBIDDEN = "contents-forbidden"
UNPINNED = "contents-unpinned"
UNVERIFIED = "contents-unverified"

_WORDS = 500


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is named inside an artifact: `kind` is IMAGE or SOURCE, `text` is for people.

    `reference` is what an OCI registry is asked for, `address` where a source is; both None where
    nobody can tell, and then `reason` says why. A chart that an exact version fixes has neither:
    its repository is a source of its own. `pinned` is whether it can only be one thing, `missing`
    what would make it so; `ranges` whether it names no version but several.
    """

    kind: str
    text: str
    reference: Reference | None = None
    address: Address | None = None
    pinned: bool = False
    missing: str = "a digest"
    reason: str = ""
    ranges: bool = False


@dataclass(frozen=True, slots=True)
class Excused:
    """Images and sources inside that nothing is asked of until the day `until` is over."""

    images: tuple[Glob, ...]
    sources: tuple[SourceGlob, ...]
    owner: str
    reason: str
    until: date

    def __post_init__(self) -> None:
        named = self.images or self.sources
        if not named or not self.owner.strip() or not self.reason.strip():
            raise Misuse("an exemption needs images or sources, an owner and a reason")
        if max(len(self.owner), len(self.reason)) > _WORDS:
            raise Misuse(f"owner and reason of an exemption have at most {_WORDS} characters")

    def covers(self, part: Part) -> bool:
        """Whether `part` is excused; what is no name at all only if everything is."""
        return _covered(part, self.images, self.sources)

    def __str__(self) -> str:
        return f"{self.owner} exempts it until {self.until.isoformat()}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Contents:
    """What may be named inside: `images`, and `sources` that controllers fetch from.

    `require_digest` asks that each can only be one thing, but for sources in `follow`, which may
    be followed by tag, branch or range; `verified` that each image, and each
    source in a registry, meets the policies that cover its own name; `refuse_unseen` that nothing
    is there which changes or hides images where no reader looks, as charts, templates and patches
    in the cluster do. Misuse if nothing is allowed.
    """

    images: tuple[Glob, ...] = ()
    sources: tuple[SourceGlob, ...] = ()
    require_digest: bool = True
    verified: bool = False
    exemptions: tuple[Excused, ...] = ()
    follow: tuple[SourceGlob, ...] = ()
    refuse_unseen: bool = False

    def __post_init__(self) -> None:
        if not self.images and not self.sources and not self.follow:
            raise Misuse(
                "contents without images and sources allows nothing",
                hint=f"name what may be inside; {EVERYTHING} is everything",
            )


PINNED = Contents((Glob(EVERYTHING),), (SourceGlob(EVERYTHING),))
"""What is asked where no policy says anything: everything is pinned, wherever it comes from."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a policy thinks of a part: `rule` and `message` say why it is refused, or are empty.

    `excused` is the exemption that holds, `ended` those that do not any more. `proof` is whether
    the part must be verified before it is allowed.
    """

    rule: str = ""
    message: str = ""
    hint: str = ""
    excused: Excused | None = None
    ended: tuple[Excused, ...] = ()
    proof: bool = False


def opinion(contents: Contents, part: Part, today: date | None) -> Opinion:
    """What `contents` says of `part` on the day `today`; without a day no exemption holds."""
    covering = [one for one in contents.exemptions if one.covers(part)]
    holds = [one for one in covering if today is not None and today <= one.until]
    if holds:
        return Opinion(excused=holds[0])
    ended = tuple(covering)
    if part.reason:
        hint = "write the whole name there, so that it can be judged"
        return Opinion(
            UNCLEAR, f"nobody can tell what {part.text!r} is: {part.reason}", hint, ended=ended
        )
    if not _allowed(contents, part):
        hint = f"name it in {part.kind}s of the policy's contents, or take it out"
        return Opinion(FORBIDDEN, f"{part.text} is not allowed", hint, ended=ended)
    followed = _covered(part, (), contents.follow)
    if contents.require_digest and not part.pinned and not followed:
        hint = "pin it (`ocipack pin`), or have the policy exempt it"
        return Opinion(UNPINNED, f"{part.text} has not {part.missing}", hint, ended=ended)
    if contents.verified and part.ranges:
        hint = "name one version, by tag or digest"
        message = f"nobody can tell which version of {part.text} to verify"
        return Opinion(UNVERIFIED, message, hint, ended=ended)
    proof = contents.verified and part.reference is not None
    return Opinion(ended=ended, proof=proof)


def _allowed(contents: Contents, part: Part) -> bool:
    """A chart alone is allowed where any source is: the place that it comes from is judged."""
    if part.kind == SOURCE and part.address is None:
        return bool(contents.sources or contents.follow)
    return _covered(part, contents.images, (*contents.sources, *contents.follow))


def _covered(part: Part, images: Iterable[Glob], sources: Iterable[SourceGlob]) -> bool:
    if part.kind == IMAGE:
        found = part.reference
        return any(g.covers(found) if found else g.text == EVERYTHING for g in images)
    where = part.address
    return any(g.covers(where) if where else g.text == EVERYTHING for g in sources)
