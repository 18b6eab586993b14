"""Keys whose private halves are public knowledge: they ship with ocipack."""

from __future__ import annotations

from collections.abc import Iterable

from ocipack.errors import Rejected
from ocipack.trust.keys import PublicKey

EXAMPLES: dict[str, str] = {}


def refuse(keys: Iterable[PublicKey]) -> None:
    """Reject every key that anyone could sign with."""
    for key in keys:
        if key.id in EXAMPLES:
            raise Rejected(
                f"the key {key.id} is an example ({EXAMPLES[key.id]}), and anyone can sign with it",
                hint="make a key of your own with `ocipack keys generate`; "
                "--allow-example-key is for trying things out",
            )
