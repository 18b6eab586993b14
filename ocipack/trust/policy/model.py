"""The model of a policy."""

from __future__ import annotations

from dataclasses import dataclass

from ocipack.errors import Misuse
from ocipack.trust import examples
from ocipack.trust.keys import PublicKey

KEYS = 64
"""Keys of one policy: each may be tried on each signature, and those are counted too."""


@dataclass(frozen=True, slots=True)
class Policy:
    """At least `threshold` of `keys` must have signed.

    A key given twice is one key. Misuse without keys, or with a threshold that is below one or
    cannot be met; Rejected for a key that ships with ocipack, unless `allow_example_keys`.
    """

    keys: tuple[PublicKey, ...]
    threshold: int = 1
    allow_example_keys: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(dict.fromkeys(self.keys)))
        if len(self.keys) > KEYS:
            raise Misuse(f"a policy has at most {KEYS} keys, not {len(self.keys)}")
        if not self.keys:
            raise Misuse("a policy without keys would refuse everything", hint="give --key")
        if not 1 <= self.threshold <= len(self.keys):
            raise Misuse(
                f"a threshold of {self.threshold} cannot be asked of {len(self.keys)} different "
                f"key{'s' if len(self.keys) > 1 else ''}"
            )
        if not self.allow_example_keys:
            examples.refuse(self.keys)
