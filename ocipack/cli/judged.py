"""What `ocipack validate` judges together, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from ocipack.cli.reading import Gathered
from ocipack.errors import OcipackError
from ocipack.report import Finding, Report
from ocipack.validate.together import Validation
from ocipack.validate.versions import across

if TYPE_CHECKING:
    from ocipack.cli.building import Built


@dataclass(frozen=True, slots=True)
class Group:
    """What is judged alike: `versions` of Kubernetes (empty text: the newest), `crds`.

    `ignored` are the patterns that `found` was gathered with, `render` the directories to build
    (none: every kustomization that no other one names).
    """

    found: Gathered
    versions: tuple[str, ...]
    crds: tuple[str, ...]
    ignored: tuple[str, ...] = ()
    render: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of what was gathered: its files as they are, and what kustomize built of them."""

    found: Gathered
    whole: Validation
    built: list[Built]

    @property
    def findings(self) -> list[Finding]:
        """Every finding."""
        of_built = [finding for one in self.built for finding in one.findings]
        return [*self.found.findings, *self.whole.findings, *of_built]

    @property
    def failures(self) -> list[tuple[str, OcipackError]]:
        """What gave nothing, with the reason."""
        return [*self.found.failures, *(one for built in self.built for one in built.failures)]

    @property
    def objects(self) -> int:
        """How many objects were looked at."""
        return self.whole.objects + sum(one.objects for one in self.built)

    @property
    def missing(self) -> Counter[str]:
        """The kinds without a schema, and how many objects have them."""
        return sum((one.missing for one in self.built), self.whole.missing)

    def __add__(self, other: Judged) -> Judged:
        """Both together."""
        one, two = self.found, other.found
        found = Gathered(
            [*one.sources, *two.sources],
            [*one.directories, *two.directories],
            [*one.findings, *two.findings],
            [*one.failures, *two.failures],
            one.skipped | two.skipped,
        )
        return Judged(found, _both(self.whole, other.whole), [*self.built, *other.built])


def _both(one: Validation, two: Validation) -> Validation:
    return Validation(
        [*one.findings, *two.findings],
        one.files + two.files,
        one.documents + two.documents,
        one.objects + two.objects,
        one.cached + two.cached,
        one.missing + two.missing,
        [*one.empty, *two.empty],
        [*one.other, *two.other],
        [*one.unreadable, *two.unreadable],
        [*one.excusing, *two.excusing],
        [*one.subjects, *two.subjects],
    )


def together(groups: Iterable[Mapping[str, Judged]]) -> tuple[Judged, Report]:
    """What came of all groups, each judged for each of its versions, and every finding.

    Counts are those of the first version of each: all of them look at the same files.
    """
    found = [dict(group) for group in groups]
    firsts = [next(iter(group.values())) for group in found]
    reports = [
        across({version: Report.of(one.findings) for version, one in group.items()})
        for group in found
    ]
    return reduce(Judged.__add__, firsts), sum(reports, Report())
