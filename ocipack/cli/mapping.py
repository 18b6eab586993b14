"""Where `mirror` and `airgap load` write what their result is to those who pull."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ocipack.errors import Misuse
from ocipack.files.seam import translated
from ocipack.mirror.maps import IsPlain, Pair, hosts_toml, idms, pin, registries_conf

PIN, HOSTS, REGISTRIES, IDMS = "pin", "hosts-toml", "registries-conf", "idms"
FORMS = (HOSTS, REGISTRIES, IDMS)


@dataclass(frozen=True, slots=True)
class Writing:
    """One form of the map, and the file, or for HOSTS the directory, that it goes to."""

    form: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read FORM=PATH."""
        form, _, path = text.partition("=")
        if form not in FORMS or not path:
            raise Misuse(
                f"not a form of the map: {text[:80]!r}",
                hint=f"--write FORM=PATH with one of {', '.join(FORMS)}",
            )
        return cls(form, path)

    @classmethod
    def wanted(cls, map_out: str, writes: Iterable[str]) -> list[Self]:
        """What `--write`, several times, and `--map-out` ask for (`places.map_options`)."""
        found = [cls.parse(text) for text in writes]
        return found + ([cls(PIN, map_out)] if map_out else [])

    def files(self, found: Iterable[Pair], is_plain: IsPlain) -> dict[Path, str]:
        """What is to be written where. Misuse if the form cannot say it."""
        if self.form == HOSTS:
            named = hosts_toml(found, is_plain).items()
            return {Path(self.path) / name: text for name, text in named}
        if self.form == REGISTRIES:
            return {Path(self.path): registries_conf(found, is_plain)}
        return {Path(self.path): idms(found) if self.form == IDMS else pin(found)}


def write(files: dict[Path, str]) -> None:
    """Write `files`; Denied or Unavailable if one cannot be."""
    for path, text in files.items():
        with translated(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
