"""The changed text of a file. What it means is read again before anybody gets to see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ocipack.errors import Misuse
from ocipack.k8s import edit
from ocipack.k8s.edit import Edit, Path, Sheet, Uneditable
from ocipack.k8s.images.site import Style
from ocipack.oci.digest import Digest
from ocipack.pin.scan import Found, Page

ELSEWHERE = "the same text is used elsewhere by an alias, where no digest belongs"
READINGS = 500
"""How often one file is read again to find out which of its changes do harm."""

CHANGED = "the file would mean something else in another place"


@dataclass(slots=True)
class Rewritten:
    """A file's new bytes, the places that have a digest now, and why others have none."""

    data: bytes
    done: list[Found] = field(default_factory=list)
    refused: list[tuple[Found, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Change:
    """One place, what will stand at `path` of its document, and the edit that does it.

    Without an edit `reason` says why.
    """

    found: Found
    path: Path
    text: str
    edit: Edit | None
    reason: str = ""


def rewrite(page: Page, digests: Mapping[Found, Digest]) -> Rewritten:
    """`page` with a digest at every place of `digests` where that changes nothing else.

    After editing, the file is read again and compared, value by value: it differs at those places
    and in no other way, or it is not changed.
    """
    by_index = {sheet.document.index: sheet for sheet in page.sheets}
    return changed(
        page, [_change(by_index[f.document], f, digest) for f, digest in digests.items()]
    )


def changed(page: Page, changes: Sequence[Change]) -> Rewritten:
    """`page` with those of `changes` made that change nothing else, as `rewrite` does."""
    intended = {(c.found.document, c.path): c.text for c in changes}
    chosen = [change for change in changes if change.edit is not None]
    refused = {id(c): c.reason for c in changes if c.edit is None}
    data = _applied(page, chosen, intended)
    if data is None:
        harmless = _harmless(page, chosen, intended)
        kept = {id(c) for c in harmless}
        refused |= {id(c): ELSEWHERE for c in chosen if id(c) not in kept}
        chosen = harmless
        data = _applied(page, chosen, intended)
    if data is None:
        refused |= {id(c): CHANGED for c in chosen}
        chosen, data = [], page.data
    made = Rewritten(data)
    values = {s.document.index: s.document.value for s in edit.sheets(data)} if chosen else {}
    for change in changes:
        now = edit.value_at(values.get(change.found.document), change.path)
        if now == change.text:
            made.done.append(change.found)  # also behind an alias of what was changed
        else:
            made.refused.append((change.found, refused.get(id(change), CHANGED)))
    return made


def _harmless(
    page: Page, changes: Sequence[Change], intended: Mapping[tuple[int, Path], str]
) -> list[Change]:
    """Those of `changes` that mean nothing unintended, found by halving; few do, if any.

    After READINGS readings of the file the rest is given up, not tried: it stays as it is.
    """
    found: list[Change] = []
    waiting = [changes]
    for _ in range(READINGS):
        if not waiting:
            break
        group = waiting.pop()
        if _applied(page, group, intended) is not None:
            found += group
        elif len(group) > 1:
            half = len(group) // 2
            waiting += [group[half:], group[:half]]
    return found


def _applied(
    page: Page, changes: Sequence[Change], intended: Mapping[tuple[int, Path], str]
) -> bytes | None:
    """The bytes after `changes`; None if they mean anything that is not intended."""
    try:
        data = edit.apply(page.data, [c.edit for c in changes if c.edit is not None])
    except Misuse:
        return None
    return None if edit.strays(page.sheets, data, intended) else data


def _change(sheet: Sheet, found: Found, digest: Digest) -> Change:
    site = found.site
    path, text = site.at, ""
    try:
        if site.style is Style.FILL:
            text = str(digest)
            made = edit.fill(sheet, path, text)
        elif site.style is Style.HEX:
            text = digest.hex
            made = edit.fill(sheet, path, text)
        elif site.style is Style.KEY:
            path, text = (*site.path, "digest"), str(digest)
            made = edit.follow(sheet, site.at, "digest", text)
        else:
            tail = f"@{digest}"
            if site.path == site.at and found.reference is not None and _lacks_tag(site.text):
                tail = f":{found.reference.tag}{tail}"
            text = _now(sheet, path) + tail
            made = edit.append(sheet, path, tail)
    except Uneditable as e:
        return Change(found, path, text, None, str(e))
    return Change(found, path, text, made)


def _now(sheet: Sheet, path: Path) -> str:
    """What stands at `path`: as written, or behind an alias as it reads."""
    written = sheet.written(path)
    if written is not None:
        return written
    value = edit.value_at(sheet.document.value, path)
    return value if isinstance(value, str) else ""


def _lacks_tag(text: str) -> bool:
    return ":" not in text.rpartition("/")[2]
