"""Name what has been proven: the immutable tag first, then the ones that move.

Nothing moves unless everything may: all names are read and judged before the first is written.
The store compares once more as it writes, so whoever moves a name in between is not overwritten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.errors import Misuse, NotFound, Rejected
from ocipack.oci.reference import TAG

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.digest import Digest
    from ocipack.oci.store import Source, Store

_RESERVED = re.compile(r"sha(?:256|512)-[0-9a-f]{64,}(?:\.\w+)?", re.ASCII)
"""Names that verifiers look under: whoever moves one there takes all signatures of a digest away
(sigstore/cosign, specs/SIGNATURE_SPEC.md; distribution-spec, "Referrers Tag Schema")."""

_LONGEST = 128  # characters of a tag (distribution-spec, "Pulling manifests")


@dataclass(frozen=True, slots=True)
class Tagged:
    """What `tag` did: the names it wrote, and those that pointed there already, in order."""

    written: tuple[str, ...]
    unchanged: tuple[str, ...]


def immutable(name: str, digest: Digest) -> str:
    """Derive the tag that never moves from the one that does: `<name>-<first 12 hex>`.

    `name` is cut from its right end where the whole would pass 128 characters.
    """
    return f"{_valid(name)[: _LONGEST - 1 - len(digest.short)]}-{digest.short}"


def standing(source: Source, names: Iterable[str]) -> dict[str, Digest | None]:
    """Read where `names` point now (None: nowhere): what a run notes before it starts."""
    return {name: _at(source, _valid(name)) for name in names}


def tag(store: Store, target: Descriptor, names: Mapping[str, Digest | None]) -> Tagged:
    """Point `names` at `target`, each preceded by its immutable tag.

    `names` maps each moving tag to where it pointed when the run began (`standing`). Rejected,
    before anything is written, if an immutable tag is taken by other content, or if a moving
    one points neither where it did nor at `target`. Misuse for a name that cannot be a tag.
    """
    fixed = dict.fromkeys(immutable(name, target.digest) for name in names)
    now = standing(store, [*fixed, *names])
    for name in fixed:
        if now[name] not in (None, target.digest):
            raise Rejected(
                f"tag {name} never moves, and it is at {now[name]}, not at {target.digest}",
                hint="content with the same first 12 digits cannot be: look who wrote that tag",
            )
    for name, was in names.items():
        if now[name] not in (was, target.digest):
            raise moved(name, was, now[name])
    expected = {**names, **fixed}
    written = [name for name in now if now[name] != target.digest]
    for name in written:
        store.tag(target, name, was=expected[name])
    return Tagged(tuple(written), tuple(name for name in now if name not in written))


def moved(name: str, was: Digest | None, now: Digest | None) -> Rejected:
    """The refusal to go on about a tag that somebody moved since the run began."""
    return Rejected(
        f"tag {name} was moved during this run: it is at {now or 'nothing'} now, "
        f"and was at {was or 'nothing'}",
        hint="it was left alone; look who moved it, and run again",
    )


def _valid(name: str) -> str:
    if not TAG.fullmatch(name):
        raise Misuse(
            f"not a tag: {name[:200]!r}",
            hint="a tag has at most 128 letters, digits, dots, dashes and underscores, and starts "
            "with neither a dot nor a dash",
        )
    if _RESERVED.fullmatch(name):
        raise Misuse(
            f"the tag {name} holds what is attached to that digest: its signatures, or a list",
            hint="`ocipack sign` and `ocipack copy` write such tags; choose another name",
        )
    return name


def _at(source: Source, name: str) -> Digest | None:
    try:
        return source.resolve(name).digest
    except NotFound:
        return None
