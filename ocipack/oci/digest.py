"""Content digests (OCI image-spec, descriptor.md, "Digests")."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ocipack.errors import Misuse

if TYPE_CHECKING:
    from hashlib import _Hash

DIGEST_TAGS = (".sig", ".att", ".sbom")
"""What tools for signing append to a digest's tag to name what they attach to it."""

_HEX = {"sha256": re.compile(r"[0-9a-f]{64}"), "sha512": re.compile(r"[0-9a-f]{128}")}


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """`algorithm:hex` with sha256 or sha512; an instance is always well formed.

    Raises Misuse for anything else: upper case, another algorithm, a wrong length.
    """

    algorithm: str
    hex: str

    def __post_init__(self) -> None:
        pattern = _HEX.get(self.algorithm)
        if pattern is None or not pattern.fullmatch(self.hex):
            shown = f"{self.algorithm}:{self.hex}"[:160]
            raise Misuse(
                f"not a digest: {shown!r}",
                hint="a digest is sha256: and 64, or sha512: and 128, lower-case hex digits",
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `algorithm:hex`."""
        algorithm, _, hex_ = text.partition(":")
        return cls(algorithm, hex_)

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Hash `data` with sha256."""
        return cls("sha256", hashlib.sha256(data).hexdigest())

    @property
    def short(self) -> str:
        """The first 12 hex digits: for people and for immutable tags, never for decisions."""
        return self.hex[:12]

    @property
    def tag(self) -> str:
        """`algorithm-hex`: the digest as a tag, to which one of DIGEST_TAGS is appended."""
        return f"{self.algorithm}-{self.hex}"

    @property
    def fallback_tag(self) -> str:
        """The tag that lists referrers where there is no API, cut so that it is one.

        distribution-spec, "Referrers Tag Schema".
        """
        return f"{self.algorithm[:32]}-{self.hex[:64]}"

    def hasher(self) -> _Hash:
        """Start a hash of this digest's algorithm."""
        return hashlib.new(self.algorithm)

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.hex}"
