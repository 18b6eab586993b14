"""Move content from one place to another: the one verb behind push, pull and mirror.

Why a tag can never name half of something, step by step:

1. The graph is walked from its root before anything is written (`survey`), within the limits of
   `oci.closure`, and every manifest is read once, hashed, and kept for pushing.
2. What `exists` at the destination is left alone, and so is everything below it: a store says
   yes only for content that is there *with its closure* (a layout looks; a registry, which
   refuses a manifest without its children, is taken at its word, though where attachments are
   wanted the entries of an index are asked for one by one).
3. Blobs are pushed first (`delivery`), `jobs` at a time.
4. Manifests follow, children before parents, so that at each moment what is there is complete;
   what is attached to them goes before them.
5. The tag moves last. A failure anywhere ends the run before this line.

`copy` moves one thing, `Transfers` many with what they share; `Plan` says what belongs to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocipack.copy.count import Copied
from ocipack.copy.plan import Kind, Part, Plan
from ocipack.copy.survey import ATTACHED
from ocipack.copy.transfers import Transfers

if TYPE_CHECKING:
    from types import EllipsisType

    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.digest import Digest
    from ocipack.oci.store import Source, Store

__all__ = ["ATTACHED", "Copied", "Kind", "Part", "Plan", "Transfers", "copy", "copy_attached"]


def copy(
    source: Source,
    dest: Store,
    root: Descriptor,
    *,
    tag: str | None = None,
    was: Digest | EllipsisType | None = ...,
    jobs: int = 8,
) -> Copied:
    """Copy the manifest `root` with all it needs, then point `tag` at it if one is given.

    `was` is handed to `dest.tag`: the tag moves only from there. `jobs` requests are in flight
    at most; the first error ends the run, once those in flight are done, and is what is raised.
    Nothing is asked or fetched twice. IntegrityError if `root` is no manifest, if anything is
    not what its descriptor says, or if the graph is beyond the limits of `oci.closure`.
    """
    with Transfers(jobs) as run:
        return run.copy(source, dest, root, tag=tag, was=was)


def copy_attached(source: Source, dest: Store, root: Descriptor, *, jobs: int = 8) -> Copied:
    """Copy what others have attached to `root`, already at `dest`, and to all manifests below it.

    That is the tags `sha256-<hex>.sig`, `.att` and `.sbom`, and the referrers, theirs included.
    What a listing shows that names another subject is left behind. Rejected if `dest` has such a
    tag with other content, which would be lost, and for more than ATTACHED of them.
    """
    with Transfers(jobs) as run:
        return run.copy(source, dest, root, attached=True)
