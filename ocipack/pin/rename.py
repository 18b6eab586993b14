"""The names of mirrors in the place of those that files say: what nodes and Flux then ask for.

Changed are whole references, the parts of values, `newName` of kustomizations, and the addresses
of OCIRepository, ImageRepository and HelmRepository objects; tags and digests stay as they are. A
name that a kustomization replaces is left to it: renamed, its entry would not fit any more. What
may be an image, or not, is left alone, and so is whatever a file would mean besides (`rewrite`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ocipack.errors import Misuse
from ocipack.k8s import edit
from ocipack.k8s.edit import Edit, Path, Sheet, Uneditable
from ocipack.k8s.images import find, flux
from ocipack.k8s.images.flux import ARGO
from ocipack.k8s.images.kustomize import Override
from ocipack.k8s.images.site import Confidence, Site
from ocipack.k8s.yaml.documents import join
from ocipack.oci.reference import Reference
from ocipack.pin.mirrors import Mirrors
from ocipack.pin.rewrite import Change, changed
from ocipack.pin.run import finding
from ocipack.pin.scan import Found, Page, Scan, Status
from ocipack.report import Finding, Severity

UNRENAMED = "image-unrenamed"

_SCHEME: Final = "oci://"
_BY_KUSTOMIZE: Final = "a kustomization says what it stands for: that is renamed"


@dataclass(slots=True)
class Renamed:
    """What a run comes to.

    `files` maps the names of changed files to their bytes before and after; `done` are the places
    that name a mirror now, `refused` those that the map has and that stay, with the reason.
    """

    files: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    done: list[Found] = field(default_factory=list)
    refused: list[tuple[Found, str]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def rename(made: Scan, mirrors: Mirrors) -> Renamed:
    """Put the places of `mirrors` where the files of `made` name what they mirror."""
    run = Renamed(findings=list(made.findings))
    overridden = {
        override.name
        for name, page in made.pages.items()
        for sheet in page.sheets
        for override in _overrides(sheet, name)
    }
    for name, page in made.pages.items():
        by_index = {sheet.document.index: sheet for sheet in page.sheets}
        places = [one for one in made.found if one.file == name]
        places += [one for sheet in page.sheets for one in _flux_sources(name, sheet)]
        changes: list[Change] = []
        for place in places:
            found = list(_changes(by_index[place.document], place, mirrors))
            if found and find.is_sealed(by_index[place.document].document.value):
                run.refused.append((place, find.SEALED))
            elif found and not place.counts:
                run.refused.append((place, "it may be an image, or not"))
            elif found and _is_overridden(place, overridden):
                run.refused.append((place, _BY_KUSTOMIZE))
            else:
                changes += found
        _apply(run, name, page, changes)
    for place, reason in run.refused:
        severity = Severity.WARNING if place.counts else Severity.NOTE
        severity = Severity.NOTE if reason == _BY_KUSTOMIZE else severity
        message = f"{place.site.text or place.site.place}: {reason}"
        run.findings.append(finding(UNRENAMED, message, place, severity))
    return run


def _overrides(sheet: Sheet, name: str) -> Iterable[Override]:
    return find.overrides(sheet.document.value, name)


def _is_overridden(place: Found, overridden: set[str]) -> bool:
    """Whether kustomize finds a pod's image by what stands here."""
    if place.site.path != place.site.at or place.site.confidence is not Confidence.CERTAIN:
        return False
    return place.status is Status.REPLACED or _name(place.site.text) in overridden


def _apply(run: Renamed, name: str, page: Page, changes: list[Change]) -> None:
    """Make `changes` in one file: all of a place or none, and the others all the same."""
    while True:
        new = changed(page, changes)
        halves = {place for place, _ in new.refused} & set(new.done)
        if not halves:
            break
        run.refused += [(place, why) for place, why in new.refused if place in halves]
        changes = [change for change in changes if change.found not in halves]
    run.refused += new.refused
    run.done += dict.fromkeys(new.done)
    if new.data != page.data:
        run.files[name] = (page.data, new.data)


def _flux_sources(name: str, sheet: Sheet) -> Iterator[Found]:
    """What an object of Flux names where no image is: a place for charts, or to look for tags."""
    value = sheet.document.value
    if not find.is_flux_source(value):
        return
    kind = value["kind"]
    path = flux.SOURCES[value["apiVersion"].rpartition("/")[0], kind]
    text = edit.value_at(value, path)
    if not isinstance(text, str) or (kind == "HelmRepository" and not text.startswith(_SCHEME)):
        return
    line, column = sheet.document.locate(join(*path))
    site = Site(path, path, text, kind, Confidence.CERTAIN, kind="artifact")
    yield Found(name, sheet.document.index, line, column, site, Status.UNKNOWN, None)


def _changes(sheet: Sheet, place: Found, mirrors: Mirrors) -> Iterator[Change]:
    """What has to be changed at `place`; nothing if the map does not have what it names."""
    site = place.site
    what: Any = edit.value_at(sheet.document.value, site.path)
    if site.place in ("OCIRepository", "HelmRepository"):
        yield from _address(sheet, place, mirrors)
    elif isinstance(what, str):
        yield from _whole(sheet, place, what, mirrors)
    elif isinstance(what, dict) and not {"repository", "image"} & what.keys():
        yield from _entry(sheet, place, what, mirrors)
    elif isinstance(what, dict):
        yield from _values(sheet, place, what, mirrors)


def _whole(sheet: Sheet, place: Found, what: str, mirrors: Mirrors) -> Iterator[Change]:
    """A reference at the end of a text: alone, of an argument, or of an entry of Argo CD."""
    text = place.site.text
    name = _name(text)
    target = _mirrored(name, mirrors)
    if target is None or not what.endswith(text):
        return
    before = what.removesuffix(text)
    if place.site.place == ARGO and not before:
        before = f"{name}="  # an entry is for the images that are called as it says
    yield _replaced(sheet, place, place.site.path, f"{before}{target}{text[len(name) :]}")


def _address(sheet: Sheet, place: Found, mirrors: Mirrors) -> Iterator[Change]:
    """The address of an object of Flux: of a repository, or of what holds several charts."""
    site, holds_charts = place.site, place.site.place == "HelmRepository"
    path = site.at if holds_charts else (*site.path[:-1], "url")
    url = edit.value_at(sheet.document.value, path)
    name = url.removeprefix(_SCHEME) if isinstance(url, str) else ""
    target = mirrors.below(name) if holds_charts else _mirrored(name, mirrors)
    if target is not None:
        yield _replaced(sheet, place, path, f"{_SCHEME}{target}")


def _entry(sheet: Sheet, place: Found, entry: dict[str, Any], mirrors: Mirrors) -> Iterator[Change]:
    """An entry of a kustomization: its `newName`, which may have to be added."""
    named = entry.get("newName") or entry.get("name")
    target = _mirrored(named, mirrors) if isinstance(named, str) else None
    if target is None:
        return
    path = (*place.site.path, "newName")
    if entry.get("newName"):
        yield _replaced(sheet, place, path, str(target))
        return
    try:
        made = edit.follow(sheet, (*place.site.path, "name"), "newName", str(target))
    except Uneditable as e:
        yield Change(place, path, str(target), None, str(e))
        return
    yield Change(place, path, str(target), made)


def _values(
    sheet: Sheet, place: Found, values: dict[str, Any], mirrors: Mirrors
) -> Iterator[Change]:
    """A map with a repository, and maybe a registry of its own."""
    key = "repository" if isinstance(values.get("repository"), str) else "image"
    registry, repository = values.get("registry"), values.get(key)
    base = f"{registry}/{repository}" if registry else repository
    target = _mirrored(base, mirrors) if isinstance(base, str) else None
    if target is None:
        return
    if registry:
        yield _replaced(sheet, place, (*place.site.path, "registry"), target.registry)
        yield _replaced(sheet, place, (*place.site.path, key), target.repository)
    else:
        yield _replaced(sheet, place, (*place.site.path, key), str(target))


def _replaced(sheet: Sheet, place: Found, path: Path, text: str) -> Change:
    made: Edit | None = None
    try:
        made = edit.replace(sheet, path, text)
    except Uneditable as e:
        return Change(place, path, text, None, str(e))
    return Change(place, path, text, made)


def _mirrored(name: str, mirrors: Mirrors) -> Reference | None:
    """The repository that mirrors `name`, as pods write it; None if there is none."""
    try:
        reference = Reference.familiar(name)
    except Misuse:
        return None
    bare = Reference(reference.registry, reference.repository)
    target = mirrors.where(bare)
    return None if target == bare else replace(target, tag=None, digest=None)


def _name(text: str) -> str:
    """A reference without tag and digest, as it is written."""
    bare = text.partition("@")[0]
    head, slash, last = bare.rpartition("/")
    return head + slash + last.partition(":")[0]
