"""`helm template` as a subprocess, on a private copy of a chart: no cluster, network or plugins.

Helm's templates can read no file but the chart's, run nothing, and ask for no name without
`--enable-dns`; `lookup` finds nothing without a cluster. `tools.bounded` is the second wall.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ocipack.errors import Rejected, Unavailable
from ocipack.tools.bounded import Bounded, Ended

TIMEOUT: Final = 60.0
"""Seconds that rendering a chart may take."""

OUTPUT: Final = 64 * 1024 * 1024
"""Bytes of manifests that a chart may make."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]+")
_WORDS: Final = 500


def find(search: str) -> str | None:
    """The path of helm in the directories of `search`, as in PATH; None if it is not there."""
    return shutil.which("helm", path=search)


@dataclass(frozen=True, slots=True)
class Rendering:
    """What a chart is rendered with: files of values, and the version of a cluster (or nothing)."""

    values: tuple[Path, ...] = ()
    kubernetes: str = ""

    def arguments(self) -> list[str]:
        """The options of `helm template`."""
        found = [word for path in self.values for word in ("--values", str(path))]
        return [*found, *(("--kube-version", self.kubernetes) if self.kubernetes else ())]


class Helm:
    """Renders charts with the program at `path`; `private` is an empty directory of its own."""

    def __init__(
        self, path: str, private: Path, *, timeout: float = TIMEOUT, limit: int = OUTPUT
    ) -> None:
        self._path, self._private = path, private
        places = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS")
        self._process = Bounded(
            "helm",
            private,
            timeout=timeout,
            limit=limit,
            hint="look whether its templates ever end",
            more={name: str(private / name.lower()) for name in places},
        )

    def template(self, chart: Path, name: str, how: Rendering) -> bytes:
        """The manifests that the chart in the directory `chart` makes, hooks and tests too.

        Rejected with Helm's words if it refuses; Unavailable if it hangs or is killed.
        """
        ended = self._process.run(
            [self._path, "template", "release", str(chart), *how.arguments()], name
        )
        if ended.status == 0:
            return ended.output
        if ended.status < 0:
            raise Unavailable(f"helm was killed while it rendered {name}")
        raise Rejected(f"helm does not render {name}: {self._words(ended, chart)}")

    def _words(self, ended: Ended, chart: Path) -> str:
        text = ended.errors.replace(str(chart), "the chart").replace(str(self._private), "")
        said = _CONTROL.sub(" ", text).strip().removeprefix("Error: ") or "no reason given"
        return said if len(said) <= _WORDS else said[:_WORDS] + "…"
