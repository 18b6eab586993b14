"""Images that kustomize writes over others: `images` of a kustomization, and of Flux's objects.

kustomize compares names, and replaces tag and digest of every image of that name (kustomize,
api/filters/imagetag/updater.go). `newTag` may hold a digest behind the tag. An entry without
`newTag` and `digest` leaves each image its own tag: a digest written there would make them all
one, so it never is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ocipack.k8s.images.site import Confidence, Path, Site, Style, Written, judged

KEEPS: Final = (
    "the entry names no tag: each image keeps its own, and one digest would make them one"
)
"""Why an entry that gives another name and no tag cannot be pinned."""

_SUFFIX: Final = "tagSuffix: kustomize drops the digest of every image that it gives a suffix"


@dataclass(frozen=True, slots=True)
class Override:
    """What an entry does to every image called `name`: another name, and maybe its own tag."""

    name: str
    new_name: str
    sets_tag: bool


def entries(images: Any, path: Path, place: str, written: Written) -> Iterator[Site]:
    """The images of a list of entries that stands at `path`."""
    for index, entry in enumerate(images if isinstance(images, list) else ()):
        if isinstance(entry, Mapping):
            yield from _entry(entry, (*path, str(index)), place, written)


def overrides(images: Any) -> Iterator[Override]:
    """What the entries of a list do to images that stand elsewhere."""
    for entry in images if isinstance(images, list) else ():
        name = entry.get("name") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not name:
            continue
        new = entry.get("newName")
        sets = any(entry.get(key) not in (None, "") for key in ("newTag", "digest"))
        yield Override(name, new if isinstance(new, str) else "", sets)


def _entry(entry: Mapping[str, Any], path: Path, place: str, written: Written) -> Iterator[Site]:
    name = entry.get("newName") or entry.get("name")
    if not isinstance(name, str):
        return
    at = (*path, "newTag")
    tag = _text(entry, "newTag", path, written)
    digest = _text(entry, "digest", path, written)
    text = f"{name}:{tag}" if tag else name
    if digest:
        text = f"{text.partition('@')[0]}@{digest}"
        yield Site(path, (*path, "digest"), text, place, Confidence.CERTAIN, reason=judged(text))
    elif tag:
        yield Site(path, at, text, place, Confidence.CERTAIN, reason=judged(text))
    elif entry.get("tagSuffix"):
        yield Site(path, at, text, place, Confidence.CERTAIN, Style.APPEND, reason=_SUFFIX)
    elif entry.get("newName"):
        yield Site(path, at, text, place, Confidence.MAYBE, Style.APPEND, reason=KEEPS)


def _text(entry: Mapping[str, Any], key: str, path: Path, written: Written) -> str:
    """A field that is text to kustomize whatever YAML makes of it: as it is written."""
    value = entry.get(key)
    if value is None or isinstance(value, Mapping | list):
        return ""
    said = written((*path, key))
    return said if said is not None else str(value)


def strings(images: Any, path: Path, place: str) -> Iterator[Site]:
    """Entries written as `[name=]image[:tag]`, as Argo CD's Application has them."""
    for index, entry in enumerate(images if isinstance(images, list) else ()):
        if isinstance(entry, str):
            here = (*path, str(index))
            text = entry.rpartition("=")[2]
            yield Site(here, here, text, place, Confidence.CERTAIN, reason=judged(text))
