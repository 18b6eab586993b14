"""What files name: every place of every image, and what can be said of it without asking."""

from __future__ import annotations

import enum
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ocipack.errors import Rejected
from ocipack.k8s.edit import Sheet, sheets
from ocipack.k8s.images import find
from ocipack.k8s.images.kustomize import Override
from ocipack.k8s.images.site import Confidence, Site
from ocipack.k8s.images.values import NO_REGISTRY, has_registry
from ocipack.k8s.yaml.documents import join
from ocipack.k8s.yaml.events import YamlError
from ocipack.oci.reference import Reference
from ocipack.report import Finding, Severity

UNREADABLE = "image-unreadable"

_WORTH: Final = re.compile(
    rb"image|repository|newTag|newName|tagSuffix|\\[xuU]|\A(?:\xff\xfe|\xfe\xff)", re.IGNORECASE
)
_TAG: Final = re.compile(r":[^:/]*\Z")


class Status(enum.Enum):
    """What can be said of a place without asking a registry.

    PINNED has a digest; OPEN is asked for; REPLACED is set by a kustomization; of UNKNOWN nobody
    can say, and the reason says why.
    """

    PINNED = "pinned"
    OPEN = "open"
    REPLACED = "replaced"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Found:
    """A place in a file: document from 0, line and column from 1, and what is known about it.

    `reference` is what is asked for, in full and without a digest; None where nobody can say.
    """

    file: str
    document: int
    line: int
    column: int
    site: Site
    status: Status
    reference: Reference | None
    reason: str = ""

    @property
    def pointer(self) -> str:
        """The RFC 6901 pointer to the scalar that is edited."""
        return join(*self.site.at)

    @property
    def counts(self) -> bool:
        """Whether it is surely or probably an image, so that it needs a digest."""
        return self.site.confidence is not Confidence.MAYBE

    @property
    def place(self) -> str:
        """`file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(slots=True)
class Page:
    """A file that names images: its bytes, and its documents."""

    data: bytes
    sheets: list[Sheet]


@dataclass(slots=True)
class Scan:
    """Everything found: places in the order of files and lines, pages by name, what is wrong."""

    found: list[Found] = field(default_factory=list)
    pages: dict[str, Page] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    files: int = 0


def scan(names: Iterable[str], read: Callable[[str], bytes], *, docker_hub: bool = False) -> Scan:
    """Look at the files called `names` (below one root, with `/`), each read once.

    A file that is no YAML is a finding. Templates of a Helm chart are left out: only Helm can
    read them, and their images come from values. With `docker_hub`
    a repository in values that names no registry is taken for one of Docker Hub.
    """
    made = Scan()
    known = set(names)
    overrides: list[Override] = []
    raw: list[tuple[str, Sheet, Site]] = []
    for name in sorted(known):
        if _is_template(name, known):
            continue
        made.files += 1
        data = read(name)
        if not _WORTH.search(data):
            continue
        page = _page(name, data, made.findings)
        for sheet in page.sheets:
            value = sheet.document.value
            overrides += find.overrides(value, name)
            found = find.sites(value, name, sheet.written)
            sites = [(name, sheet, _hub(site) if docker_hub else site) for site in found]
            raw += sites
            if sites or find.is_flux_source(value):
                made.pages[name] = page
    renames = Renames.of(overrides)
    made.found = [_found(name, sheet, site, renames) for name, sheet, site in raw]
    made.found.sort(key=lambda one: (one.file, one.line, one.column, one.pointer))
    return made


def _hub(site: Site) -> Site:
    """A repository without a registry, where somebody has said that it is Docker Hub's."""
    if site.reason != NO_REGISTRY:
        return site
    return replace(site, confidence=Confidence.LIKELY, reason="")


def _page(name: str, data: bytes, findings: list[Finding]) -> Page:
    try:
        return Page(data, sheets(data, name=name))
    except Rejected as e:
        line, column = (e.line, e.column) if isinstance(e, YamlError) else (0, 0)
        message = str(e).removeprefix(f"{name}:{line}:{column}: ")
        hint = "its images are not looked at; leave the file out, or mend it"
        findings.append(
            Finding(UNREADABLE, message, Severity.WARNING, name, line, column, hint=hint)
        )
        return Page(data, [])


def _is_template(name: str, known: set[str]) -> bool:
    """Whether a file stands in the `templates` of a directory with a Chart.yaml."""
    parts = name.split("/")[:-1]
    return any(
        part == "templates" and posixpath.join(*parts[:index], "Chart.yaml") in known
        for index, part in enumerate(parts)
    )


@dataclass(frozen=True, slots=True)
class Renames:
    """What kustomizations do to images by name.

    `names` are the new names that entries give which leave the tag alone; `stand_ins` are names
    that no registry knows, since every entry for them gives both another name and a tag.
    """

    names: Mapping[str, frozenset[str]]
    stand_ins: frozenset[str]

    @classmethod
    def of(cls, overrides: Iterable[Override]) -> Renames:
        """Gather `overrides`."""
        names: dict[str, set[str]] = {}
        set_by_name: set[str] = set()
        for one in overrides:
            if not one.sets_tag:
                names.setdefault(one.name, set()).add(one.new_name or one.name)
            elif one.new_name not in ("", one.name) and not has_registry(one.name):
                set_by_name.add(one.name)
        found = {name: frozenset(new) for name, new in names.items()}
        return cls(found, frozenset(set_by_name - names.keys()))


def _found(name: str, sheet: Sheet, site: Site, renames: Renames) -> Found:
    line, column = _place(sheet, site)
    index = sheet.document.index
    made = Found(name, index, line, column, site, Status.UNKNOWN, None, site.reason)
    reference = site.reference
    if reference is None:
        return made
    bare = replace(reference, digest=None)
    if reference.digest is not None:
        return replace(made, status=Status.PINNED, reference=bare)
    if site.path == site.at and site.confidence is Confidence.CERTAIN:
        return _renamed(made, bare, renames)
    return replace(made, status=Status.OPEN, reference=_with_tag(bare))


def _renamed(made: Found, bare: Reference, renames: Renames) -> Found:
    """A pod's image: what a kustomization makes of it is what runs.

    A name that a registry could know is pinned even where a kustomization sets another tag: it may
    run without that kustomization as well.
    """
    written = _TAG.sub("", made.site.text)
    if written in renames.stand_ins:
        reason = "a kustomization says what it stands for: that is pinned"
        return replace(made, status=Status.REPLACED, reason=reason)
    new = renames.names.get(written, frozenset())
    if len(new) > 1:
        reason = f"kustomizations call it by several names: {', '.join(sorted(new))}"
        return replace(made, reason=reason)
    target = _with_tag(bare)
    if new:
        target = Reference.familiar(f"{next(iter(new))}:{target.tag}")
    return replace(made, status=Status.OPEN, reference=target)


def _with_tag(reference: Reference) -> Reference:
    """What a kubelet pulls when no tag is written."""
    return reference if reference.tag is not None else replace(reference, tag="latest")


def _place(sheet: Sheet, site: Site) -> tuple[int, int]:
    slot = sheet.slots.get(site.at)
    if slot is None:
        return sheet.document.locate(join(*site.at))
    before = sheet.text[: slot.start]
    line = sheet.document.line + before.count("\n")
    return line, len(before) - before.rfind("\n")


def why(found: Iterable[Found], image: str) -> Iterator[Found]:
    """The places that name `image`, as it is written there or in full; its digest may be left out.

    A name without a tag means every tag.
    """
    for one in found:
        said = one.site.text
        bare = said.partition("@")[0]
        names = {said, bare, _TAG.sub("", bare)}
        if one.reference is not None:
            names |= {str(one.reference), one.reference.bare}
        if image in names:
            yield one
