"""Which images a chart runs: from what it renders to, what it declares, and what its values say.

| where | confidence |
|---|---|
| fields of rendered objects whose type says so | certain |
| other fields, arguments and variables of rendered objects | likely, maybe |
| annotations of Chart.yaml, lock files in the chart: written by hand, often old | likely |
| values, of subcharts too | likely, maybe |

An image of which the tag or the registry is left to a template is unresolved, unless an object
that was rendered has it. A guess goes with it: the chart's appVersion, and Docker Hub.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ocipack.errors import IntegrityError, Misuse, OcipackError
from ocipack.helm import chart as charts
from ocipack.helm.metadata import CHART, REQUIREMENTS, Metadata
from ocipack.k8s.images import find
from ocipack.k8s.images.flux import chart_values
from ocipack.k8s.images.site import Confidence, Site, is_open, judged
from ocipack.k8s.yaml.documents import Document, read
from ocipack.k8s.yaml.events import steps
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.oci.reference import Reference

ANNOTATIONS: Final = ("artifacthub.io/images", "helm.sh/images", "images")
"""Annotations of Chart.yaml that list images (Artifact Hub, Hauler and Zarf, Bitnami)."""

LOCKS: Final = frozenset(
    {"images.lock", "images-lock.yaml", "images.lock.yaml", ".images.lock.yaml", "Images.lock"}
)
"""Files in a chart that list images."""

VALUES: Final = "values.yaml"

FILE: Final = 8 * 1024 * 1024
"""Bytes of values that are read."""

TOTAL: Final = 128 * 1024 * 1024
"""Bytes of all files that are looked into, archives of subcharts and what is in them included."""

SUBCHARTS: Final = 200
"""Charts within a chart, at any depth."""

DEPTH: Final = 10
"""Charts within one another."""

_ORDER: Final = {Confidence.CERTAIN: 0, Confidence.LIKELY: 1, Confidence.MAYBE: 2}


@dataclass(frozen=True, slots=True)
class Image:
    """An image that a chart may run, and all the places that say so.

    `reason` is why nobody can say what it is; then `reference` is a guess, or None.
    """

    text: str
    reference: Reference | None
    confidence: Confidence
    why: tuple[str, ...] = ()
    reason: str = ""

    @property
    def is_resolved(self) -> bool:
        """Whether it is known what it names."""
        return not self.reason and self.reference is not None

    def covers(self, confidence: Confidence) -> bool:
        """Whether it is at least so sure."""
        return _ORDER[self.confidence] <= _ORDER[confidence]


@dataclass(slots=True)
class _Budget:
    """What may still be looked into: charts, and bytes of their files."""

    charts: int
    room: int

    def take(self, files: Mapping[str, bytes], depth: int) -> None:
        self.charts -= 1
        self.room -= sum(map(len, files.values()))
        if self.charts < 0 or depth > DEPTH:
            raise IntegrityError(f"a chart with more than {SUBCHARTS} subcharts, or {DEPTH} deep")
        if self.room < 0:
            raise IntegrityError(f"a chart with more than {TOTAL} bytes to look into")


@dataclass(slots=True)
class Chart:
    """The files of a chart by their names below its directory, and its subcharts by name."""

    metadata: Metadata
    files: Mapping[str, bytes]
    subcharts: dict[str, Chart] = field(default_factory=dict)


def opened(archive: bytes) -> Chart:
    """The chart in an archive, with its subcharts. IntegrityError if it is none."""
    found = charts.files(archive, limit=charts.ARCHIVE, wanted=is_wanted)
    return _chart(found, _Budget(SUBCHARTS + 1, TOTAL), 0)


def of_files(files: Mapping[str, bytes]) -> Chart:
    """The chart that consists of `files`, by their names below its directory."""
    return _chart(
        {name: data for name, data in files.items() if is_wanted(name)},
        _Budget(SUBCHARTS + 1, TOTAL),
        0,
    )


def is_wanted(name: str) -> bool:
    """Whether a file of a chart is looked into: metadata, values, locks, archives of subcharts."""
    base = posixpath.basename(name)
    known = base in (CHART, REQUIREMENTS, VALUES) or base in LOCKS
    return known or (name.startswith("charts/") and name.endswith(".tgz"))


def _chart(files: Mapping[str, bytes], budget: _Budget, depth: int) -> Chart:
    budget.take(files, depth)
    if CHART not in files:
        raise IntegrityError(f"not a chart: there is no {CHART} in it")
    made = Chart(Metadata.read(files[CHART], files.get(REQUIREMENTS)), files)
    inner: dict[str, dict[str, bytes]] = {}
    for name, data in files.items():
        if not name.startswith("charts/"):
            continue
        first, slash, rest = name.removeprefix("charts/").partition("/")
        if slash:
            inner.setdefault(first, {})[rest] = data
        elif first.endswith(".tgz") and first[0] not in "_.":
            inner[first] = charts.files(data, limit=charts.ARCHIVE, wanted=is_wanted)
    for below in inner.values():
        if CHART in below:
            one = _chart(below, budget, depth + 1)
            made.subcharts[one.metadata.name] = one
    return made


Told = Callable[[str], None]
"""Is told what could not be read."""


def images(chart: Chart, rendered: bytes | None, told: Told) -> list[Image]:
    """All images of `chart`, the surest first; `rendered` is what Helm made of it, if it did."""
    found = list(_rendered(rendered)) if rendered is not None else []
    known = [one.reference for one in found if one.reference is not None]
    rest = [*_declared(chart, told), *_values(chart, {}, "", told)]
    found += [one for one in rest if one.is_resolved or not _is_known(one, known)]
    return sorted(_merged(found), key=lambda one: (_ORDER[one.confidence], one.text))


def _merged(found: Iterable[Image]) -> Iterator[Image]:
    """Each image once, as sure as the surest place that names it."""
    groups: dict[tuple[str, str], list[Image]] = {}
    for one in found:
        name = str(one.reference) if one.is_resolved else one.text
        groups.setdefault((name, one.reason), []).append(one)
    for (name, _), group in groups.items():
        best = min(group, key=lambda one: _ORDER[one.confidence])
        why = tuple(dict.fromkeys(line for one in group for line in one.why))
        yield replace(best, text=name, why=why)


def _is_known(one: Image, known: Iterable[Reference]) -> bool:
    """Whether an object that was rendered has the repository that `one` leaves open."""
    if one.reference is None:
        return False
    path = one.reference.repository.removeprefix("library/")
    return any(other.repository == path or other.repository.endswith(f"/{path}") for other in known)


def _rendered(data: bytes) -> Iterator[Image]:
    """The images of the objects that Helm made."""
    source = ""
    for document in read(data, Dialect.KUBECTL, strict=False, name="what helm renders"):
        source = _template(document.chunk) or source
        value = document.value
        for site in find.sites(value, "", _Writing(document)):
            if site.kind == "image":
                yield _image(site, f"rendered: {source} {_object(value)} {site.place}")


def _template(chunk: bytes) -> str:
    """The template that a document comes from: Helm says it in a comment."""
    match = re.search(rb"^# Source: (\S+)", chunk, re.MULTILINE)
    return match[1].decode(errors="replace") if match else ""


def _object(value: Any) -> str:
    kind, meta = value.get("kind"), value.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else ""
    return f"{kind}/{name}"


class _Writing:
    """What is written at a path of a document; read once, when somebody asks."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._texts: dict[tuple[str, ...], str] | None = None

    def __call__(self, path: tuple[str, ...]) -> str | None:
        if self._texts is None:
            self._texts = {
                step.path: step.event.value
                for step in steps(self._document.chunk)
                if hasattr(step.event, "value")
            }
        return self._texts.get(path)


def _image(site: Site, why: str, app_version: str = "") -> Image:
    """What a site names; a tag that is left to the chart is guessed where `app_version` is."""
    text, reason = site.text, site.reason
    try:
        reference = None if is_open(text) else Reference.familiar(text)
        if reference is not None and app_version and not (reference.tag or reference.digest):
            reference = Reference(reference.registry, reference.repository, app_version)
            reason = f"its tag is left to the chart; {app_version}, its appVersion, is a guess"
    except Misuse as e:
        reference, reason = None, reason or str(e)
    if reference is None:
        reason = reason or judged(text)
    return Image(text, reference, Confidence.MAYBE if reason else site.confidence, (why,), reason)


def _declared(chart: Chart, told: Told, where: str = "") -> Iterator[Image]:
    """The images of annotations and lock files."""
    notes = chart.metadata.notes
    for name in ANNOTATIONS:
        if name in notes:
            place = f"{where}{CHART}: annotation {name}"
            yield from _listed(notes[name].encode(), place, told)
    for name in sorted(LOCKS & chart.files.keys()):
        yield from _listed(chart.files[name], f"{where}{name}", told)
    for name, one in sorted(chart.subcharts.items()):
        yield from _declared(one, told, f"{where}charts/{name}/")


def _listed(data: bytes, place: str, told: Told) -> Iterator[Image]:
    """A list of images as text, of entries with `image`, or such a list under `images`."""
    try:
        documents = list(read(data, Dialect.KUBECTL, strict=False))
    except OcipackError as e:
        told(f"{place}: {e}")
        return
    for document in documents:
        value = document.value
        entries = value.get("images") if isinstance(value, Mapping) else value
        for entry in entries if isinstance(entries, list) else ():
            text = entry.get("image") if isinstance(entry, Mapping) else entry
            if isinstance(text, str) and text:
                yield _image(Site((), (), text, place, Confidence.LIKELY), place)


def _values(chart: Chart, above: Mapping[str, Any], where: str, told: Told) -> Iterator[Image]:
    """The images in values: those of a chart, with what the charts above set in them."""
    place, name = f"{where}{VALUES}", chart.metadata.name
    own, written = _read_values(chart, place, told)
    values = merged(own, above)
    mine = {key: value for key, value in values.items() if key not in chart.subcharts}

    def said(path: tuple[str, ...]) -> str | None:
        return None if _has(above, path) else written(path)

    for site in chart_values(mine, (), f"values of {name}", said):
        yield _image(site, f"{place}: {'.'.join(site.path)}", chart.metadata.app_version)
    for below, one in sorted(chart.subcharts.items()):
        inner = values.get(below)
        shared = {"global": values["global"]} if "global" in values else {}
        over = merged(inner if isinstance(inner, Mapping) else {}, shared)
        yield from _values(one, over, f"{where}charts/{below}/", told)


def _has(values: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if not isinstance(values, Mapping) or key not in values:
            return False
        values = values[key]
    return True


def _read_values(
    chart: Chart, place: str, told: Told
) -> tuple[Mapping[str, Any], Callable[[tuple[str, ...]], str | None]]:
    data = chart.files.get(VALUES, b"")
    try:
        if len(data) > FILE:
            raise IntegrityError(f"longer than {FILE} bytes")
        for document in read(data, Dialect.KUBECTL, strict=False):
            if isinstance(document.value, Mapping):
                return document.value, _Writing(document)
            break
    except OcipackError as e:
        told(f"{place}: {e}")
    return {}, lambda _: None


def merged(own: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a chart with those over them, as Helm lays them over one another."""
    made = dict(own)
    for key, value in above.items():
        before = made.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            made[key] = merged(before, value)
        elif value is None:
            made.pop(key, None)
        else:
            made[key] = value
    return made
