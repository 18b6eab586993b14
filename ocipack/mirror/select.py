"""Which of the tags that a repository has are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ocipack.errors import Rejected
from ocipack.mirror.model import Selection, Sort, Source
from ocipack.mirror.versions import Version

_ATTACHED: Final = re.compile(r"sha(?:256|512)-[0-9a-f]{64,}(?:\.\w+)?", re.ASCII)
"""Tags that hold what is attached to a digest: copied with what they belong to, never as images
(sigstore/cosign, specs/SIGNATURE_SPEC.md; distribution-spec, "Referrers Tag Schema")."""

_NUMBER: Final = re.compile(r"[0-9]{1,40}", re.ASCII)


def chosen(source: Source, listed: Iterable[str]) -> list[str]:
    """The tags of `source` that are wanted, each once; `listed` is what a selection picks from.

    Rejected if fewer are left than the selection needs.
    """
    if source.reference.tag is not None:
        return [source.reference.tag]
    if source.selection is None:
        return list(dict.fromkeys(source.tags))
    found = picked(source.selection, listed, chart=source.kind == "chart")
    return list(dict.fromkeys((*found, *source.include)))


def picked(selection: Selection, tags: Iterable[str], *, chart: bool = False) -> list[str]:
    """What `selection` leaves of `tags`, the greatest first.

    A chart's version has a `+` where its tag has a `_`. Rejected if too few are left.
    """
    left: list[tuple[str, str]] = []
    for tag in tags:
        value = _value(selection, tag)
        if value is None or any(pattern.fits(tag) for pattern in selection.exclude):
            continue
        left.append((tag, value.replace("_", "+") if chart else value))
    if selection.versions is not None:
        left = [one for one in left if _is_in_range(selection, one[1])]
    left = sorted_tags(left, selection.sort)
    if len(left) < selection.min_tags:
        raise Rejected(
            f"{len(left)} tags fit, and at least {selection.min_tags} must",
            hint="look at the filter, or at what became of the repository; minTags is how few may",
        )
    return [tag for tag, _ in (left[: selection.limit] if selection.limit else left)]


def _value(selection: Selection, tag: str) -> str | None:
    """What of `tag` is compared; None if it is not wanted."""
    if _ATTACHED.fullmatch(tag):
        return None
    if selection.pattern is None:
        return tag
    if not selection.extract:
        return tag if selection.pattern.fits(tag) else None
    return selection.pattern.fill(selection.extract, tag)


def _is_in_range(selection: Selection, value: str) -> bool:
    version = Version.parse(value)
    assert selection.versions is not None  # asked only then
    return version is not None and selection.versions.fits(
        version, prereleases=selection.prereleases
    )


def sorted_tags(tags: Iterable[tuple[str, str]], sort: Sort) -> list[tuple[str, str]]:
    """Pairs of a tag and what of it is compared, the greatest first.

    What is no version or number is left out: it has no place in the order.
    """
    if sort == "semver":
        versions = [(Version.parse(value), tag, value) for tag, value in tags]
        known = [(v, tag, value) for v, tag, value in versions if v is not None]
        return [(tag, value) for _, tag, value in sorted(known, reverse=True)]
    if sort == "numeric":
        numbers = [(int(value), tag, value) for tag, value in tags if _NUMBER.fullmatch(value)]
        return [(tag, value) for _, tag, value in sorted(numbers, reverse=True)]
    return sorted(tags, key=lambda one: (one[1], one[0]), reverse=True)
