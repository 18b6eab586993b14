"""JSON as the registry world writes and reads it.

Writing follows Go's encoding/json, so that documents which others also make come out with the
same bytes: no spaces, members in the given order, `<`, `>`, `&`, U+2028 and U+2029 escaped,
everything else as UTF-8. Reading is strict (RFC 8259 with I-JSON's rules, RFC 7493): a member
named twice, NaN, a lone surrogate or a second value means that two readers could see two
documents, so it is refused.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def encode(document: object) -> bytes:
    """Serialise as Go's encoding/json would; members keep their order."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate(_ESCAPES).encode()


def decode(raw: bytes) -> Any:
    """Read one JSON value; ValueError (or RecursionError) if it is not exactly one."""
    value = json.loads(raw, object_pairs_hook=_members, parse_constant=_constant)
    if _SURROGATE.search(raw):
        json.dumps(value, ensure_ascii=False).encode()  # UnicodeEncodeError is a ValueError
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"member {twice!r} appears twice")
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
