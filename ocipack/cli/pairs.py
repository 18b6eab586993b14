"""`KEY=VALUE` arguments."""

from __future__ import annotations

from collections.abc import Iterable

from ocipack.errors import Misuse


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Read `KEY=VALUE` texts of `option`; Misuse without `=`, for an empty key or one twice.

    A value may hold `=` and be empty.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise Misuse(f"{option} {text!r}: write KEY=VALUE")
        if key in found:
            raise Misuse(f"{option}: {key!r} is given twice")
        found[key] = value
    return found
