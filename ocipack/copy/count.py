"""What a copy did, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ocipack.oci.descriptor import Descriptor

_NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did: blobs and manifests moved, and those that were there already, with bytes.

    A manifest that was there already counts once, for itself and the blobs below it. `mounted`
    of the blobs that moved were taken from another repository of the destination's registry:
    none of their bytes were sent. `kinds` counts what belongs to the content at the destination
    now, moved or not, by the names of `ocipack.copy.plan.Kind`, and `digest tags`.
    """

    copied: int = 0
    copied_bytes: int = 0
    skipped: int = 0
    skipped_bytes: int = 0
    mounted: int = 0
    mounted_bytes: int = 0
    kinds: Mapping[str, int] = field(default_factory=lambda: _NONE, compare=False)

    @classmethod
    def of(
        cls,
        copied: Iterable[Descriptor],
        skipped: Iterable[Descriptor],
        mounted: Iterable[Descriptor] = (),
        kinds: Mapping[str, int] = _NONE,
    ) -> Copied:
        """Count the lists; `mounted` is a part of `copied`."""
        moved, kept = [d.size for d in copied], [d.size for d in skipped]
        taken = [d.size for d in mounted]
        return cls(*(len(moved), sum(moved), len(kept), sum(kept), len(taken), sum(taken)), kinds)

    def __add__(self, other: Copied) -> Copied:
        return Copied(
            self.copied + other.copied,
            self.copied_bytes + other.copied_bytes,
            self.skipped + other.skipped,
            self.skipped_bytes + other.skipped_bytes,
            self.mounted + other.mounted,
            self.mounted_bytes + other.mounted_bytes,
            MappingProxyType({**(Counter(self.kinds) + Counter(other.kinds))}),
        )
