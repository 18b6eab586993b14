"""Which files of a directory are manifests, decided by their names.

What source-controller leaves out does not reach the cluster; templates of Helm charts are no YAML
yet. Both are listed, and not judged.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from ocipack.tree.ignore import IGNORE_FILE, dropped, rules

SUFFIXES: Final = (".yaml", ".yml", ".json")
PROJECT: Final = "ocipack.yaml"
"""The project file, which is no manifest (`project.FILE`)."""

CHART: Final = "Chart.yaml"
KUSTOMIZATIONS: Final = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})

_SUSPECT: Final = re.compile(
    r"(?:^|/)(?:\.|appveyor|cloudbuild|codeship)"
    r"|\.(?:jpg|jpeg|gif|png|wmv|flv|tar\.gz|zip)(?:/|$)"
)
"""Names that the defaults of source-controller may be about: matching all of them is slow."""

_OF_CHART: Final = re.compile(r"(?:templates/.*|Chart\.(?:yaml|lock)|values[^/]*)")


@dataclass(slots=True)
class Sorted:
    """`manifests` are to be read, `skipped` says of others why not.

    `arriving` are all names that source-controller does not leave out.
    """

    arriving: set[str] = field(default_factory=set)
    manifests: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def kustomized(self) -> bool:
        """Whether anything here is built by kustomize."""
        return any(posixpath.basename(name) in KUSTOMIZATIONS for name in self.arriving)


def sort_out(names: Collection[str], read: Callable[[str], bytes]) -> Sorted:
    """Sort the file names of one tree; `read` is asked for ignore files alone."""
    ignores = rules(names, read)
    doubtful = names if ignores else [name for name in names if _SUSPECT.search(name)]
    left_out = {name for name, _ in dropped(doubtful, ignores)}
    found = Sorted({*names} - left_out)
    charts = {posixpath.dirname(n) for n in found.arriving if posixpath.basename(n) == CHART}
    for name in names:
        base = posixpath.basename(name)
        if not name.endswith(SUFFIXES) or base in KUSTOMIZATIONS or base == IGNORE_FILE:
            continue
        if name in left_out:
            found.skipped[name] = "source-controller leaves it out"
        elif charts and _in_chart(name, charts):
            found.skipped[name] = "part of a Helm chart, no manifest before it is rendered"
        else:
            found.manifests.append(name)
    return found


def _in_chart(name: str, charts: Iterable[str]) -> bool:
    for chart in charts:
        inside = name.removeprefix(f"{chart}/" if chart else "")
        if (not chart or inside != name) and _OF_CHART.fullmatch(inside):
            return True
    return False
