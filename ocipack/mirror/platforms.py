"""Which entries of an index are wanted: the index itself stays as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ocipack.errors import Rejected
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest

_ABOUT = "vnd.docker.reference.digest"
"""By what BuildKit's attestations, which run nowhere, say which entry they are about."""


@dataclass(slots=True)
class Choice:
    """Chooses the entries for `platforms`, and what is known about these.

    `os/architecture` fits every variant. An entry for no platform is wanted if it is about one that
    is. `met` are the platforms found so far. Safe for threads: they only add.
    """

    platforms: tuple[str, ...]
    met: set[str] = field(default_factory=set)

    def __call__(self, index: Manifest) -> frozenset[Digest]:
        """The digests of the entries of `index` that are wanted. Rejected if there are none."""
        said = {one.digest: text for one, text in zip(index.manifests, _said(index), strict=True)}
        wanted = {digest for digest, text in said.items() if self._fits(text)}
        about = {one.digest: one.annotations.get(_ABOUT, "") for one in index.manifests}
        wanted |= {digest for digest, other in about.items() if other in map(str, wanted)}
        if not wanted:
            raise Rejected(
                f"{index.descriptor.digest}: no entry is for {', '.join(self.platforms)}",
                hint=f"it has {', '.join(sorted(set(filter(None, said.values())))) or 'none'}",
            )
        return frozenset(wanted)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Platforms that nothing was found for."""
        return tuple(one for one in self.platforms if one not in self.met)

    def _fits(self, text: str) -> bool:
        found = [one for one in self.platforms if text == one or text.startswith(f"{one}/")]
        self.met.update(found)
        return bool(found)


def _said(index: Manifest) -> Iterable[str]:
    """What each entry of `index` runs on, as `os/architecture[/variant]`; empty if not said."""
    for node in index.document.get("manifests") or ():
        platform = node.get("platform")
        said = platform if isinstance(platform, dict) else {}
        words = [said.get(key) for key in ("os", "architecture", "variant")]
        parts = [word for word in words if isinstance(word, str) and word]
        yield "/".join(parts) if len(parts) > 1 else ""
