"""JSON as the registry world writes and reads it.

Writing follows Go's encoding/json, so that documents which others also make come out with the
same bytes: no spaces, members in the given order, `<`, `>`, `&`, U+2028 and U+2029 escaped,
everything else as UTF-8. Reading is strict (RFC 8259 with I-JSON's rules, RFC 7493): a member
named twice, NaN, a lone surrogate, another encoding than UTF-8 or a second value means that two
readers could see two documents, so it is refused, and so is what could not be written again.
"""

from __future__ import annotations

import json
import re
from math import isinf
from typing import Any, NoReturn

DEPTH = 100
"""Lists and objects within one another that we are ready to read."""

_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def encode(document: object) -> bytes:
    """Serialise as Go's encoding/json would; members keep their order."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.translate(_ESCAPES).encode()


def decode(raw: bytes) -> Any:
    """Read one JSON value; ValueError (or RecursionError) if it is not exactly one."""
    # as text: from bytes json.loads takes UTF-16, a byte order mark and surrogates in UTF-8 too
    try:
        value = json.loads(
            raw.decode(), object_pairs_hook=_members, parse_float=_float, parse_constant=_constant
        )
    except UnicodeDecodeError as e:
        raise ValueError(f"not UTF-8 at byte {e.start}") from e
    except json.JSONDecodeError as e:
        raise ValueError(f"not JSON at line {e.lineno}, column {e.colno}") from e
    if _SURROGATE.search(raw):
        json.dumps(value, ensure_ascii=False).encode()  # UnicodeEncodeError is a ValueError
    _refuse_deep(value)
    return value


def _refuse_deep(value: Any) -> None:
    """Whoever writes the value again, or shows it, has less of the stack left than its reader."""
    level = [value]
    for _ in range(DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(f"nested deeper than {DEPTH} levels")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"member {name[:60]!r} appears twice")
            seen.add(name)
    return found


def _float(digits: str) -> float:
    value = float(digits)
    if isinf(value):
        raise ValueError(f"{digits[:60]} is more than a number can be")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
