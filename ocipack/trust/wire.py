"""Documents read by a table of what may be in them.

Go's readers of Sigstore's documents refuse members that they do not know, so a document that we
accept with one is a document that others judge differently. `check` compares a decoded value with
a shape and raises ValueError, naming the place, at the first difference.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

TEXT = "text"
BASE64 = "base64 text"
INTEGER = "integer"
FLAG = "true or false"
OBJECT = "object"

Shape = str | dict[str, Any] | list[Any]
"""One of the names above; a dict of members, where `name!` must be there; or `[shape, most]`, a
list of at most `most` elements. int64 may be a number or its decimal digits (protobuf's JSON)."""

_DIGITS = 19


def check(value: object, shape: Shape, where: str = "") -> None:
    """Raise ValueError unless `value`, found at `where`, is of `shape`."""
    if isinstance(shape, dict):
        _members(value, shape, where)
    elif isinstance(shape, list):
        _elements(value, shape, where)
    elif not _LEAVES[shape](value):
        raise ValueError(f"{where or 'the document'} must be {shape}")


def _members(value: object, shape: dict[str, Any], where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'the document'} must be an object")  # noqa: TRY004 - content
    known = {name.rstrip("!"): inner for name, inner in shape.items()}
    for name, inner in value.items():
        if name not in known:
            raise ValueError(f"{where or 'the document'} has an unknown member {name[:60]!r}")
        check(inner, known[name], f"{where}.{name}" if where else name)
    for name in shape:
        if name.endswith("!") and name[:-1] not in value:
            raise ValueError(f"{where or 'the document'} has no {name[:-1]!r}")


def _elements(value: object, shape: list[Any], where: str) -> None:
    inner, most = shape
    if not isinstance(value, list):
        raise ValueError(f"{where} must be a list")  # noqa: TRY004 - content, not a caller's type
    if len(value) > most:
        raise ValueError(f"{where} has {len(value)} elements, and at most {most} are read")
    for i, element in enumerate(value):
        check(element, inner, f"{where}[{i}]")


def _is_base64(value: object) -> bool:
    if not isinstance(value, str) or not value.isascii():
        return False
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        return False
    return True


def _is_integer(value: object) -> bool:
    if isinstance(value, str):
        digits = value.removeprefix("-")
        return digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS
    return isinstance(value, int) and not isinstance(value, bool)


_LEAVES: dict[str, Callable[[object], bool]] = {
    TEXT: lambda value: isinstance(value, str),
    BASE64: _is_base64,
    INTEGER: _is_integer,
    FLAG: lambda value: isinstance(value, bool),
    OBJECT: lambda value: isinstance(value, dict),
}
