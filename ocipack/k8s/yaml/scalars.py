"""What one scalar means, by dialect.

Sources: go-yaml's resolve.go (v2 behind sigs.k8s.io/yaml, v3 behind kyaml), and the behaviour of
kubectl 1.37 (`kubectl label --local`, `kubectl kustomize`) on the vectors in tests/vectors/traps.
"""

from __future__ import annotations

import base64
import binascii
import enum
import math
import re
import struct
from decimal import Decimal
from typing import Any, Final

INT64: Final = 1 << 63
UINT64: Final = 1 << 64


class Dialect(enum.Enum):
    """Whose reading is meant: kubectl's (and helm's), or kustomize's (and so Flux's)."""

    KUBECTL = "kubectl"
    FLUX = "flux"


_NULL: Final = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_BOOL: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOL: Final = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_WORDS: Final = {
    Dialect.KUBECTL: {**_NULL, **_BOOL, **_OLD_BOOL},
    Dialect.FLUX: {**_NULL, **_BOOL},
}
_SIGN: Final = frozenset("0123456789+-.")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASED: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+))"
)
_DECIMAL: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASES: Final = {"x": 16, "b": 2, "o": 8}
_DECIMAL_DIGITS: Final = 20  # more than any 64-bit number has; int() of endless digits is slow
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DATE: Final = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)", re.ASCII)
_TIME: Final = re.compile(
    r"\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d?:\d\d?(?:\.\d*)?(?:Z|[ \t]?[-+]\d\d?(?::?\d\d)?)?",
    re.ASCII,
)
_MONTHS: Final = 12
_TAG: Final = "tag:yaml.org,2002:"


class ScalarError(ValueError):
    """A scalar that the Go readers refuse; `text` is the scalar as written."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(reason)
        self.text = text


def plain(text: str, dialect: Dialect) -> Any:
    """Resolve an unquoted, untagged scalar: None, bool, int, float or the text itself.

    Raises ScalarError for infinities and NaN, which JSON cannot say.
    """
    words = _WORDS[dialect]
    if text in words:
        return words[text]
    if text[0] not in _SIGN:
        return text
    number = _number(text.replace("_", ""))
    if number is not None:
        return number
    if _NOT_FINITE.fullmatch(text):
        raise ScalarError(text, f"unsupported value: {text}")
    if dialect is Dialect.FLUX:
        return dated(text)
    return text


def portable(text: str) -> bool:
    """Whether both dialects take an unquoted `text` for the same, also where both refuse it."""
    if text in _OLD_BOOL:
        return False
    return text[:1] not in _SIGN or _DATE.fullmatch(text) is None or dated(text) == text


def _number(text: str) -> int | float | None:
    based = _BASED.fullmatch(text)
    if based is not None:
        base = based.lastgroup or "o"
        value = int(based[base], _BASES[base]) * (-1 if based["sign"] == "-" else 1)
        if -INT64 <= value < INT64:
            return value
        if 0 <= value < UINT64:
            return whole(float(value))
    elif _DECIMAL.fullmatch(text) and len(text) <= _DECIMAL_DIGITS:
        value = int(text)
        if -INT64 <= value < INT64:
            return value
    if not _FLOAT.fullmatch(text):
        return None
    found = float(text)
    return None if math.isinf(found) else whole(found)


def whole(value: float) -> int | float:
    """`value` as Go's JSON carries it: a whole number that fits 64 bits is an integer.

    The digits are the shortest that name the float, as encoding/json prints them, not its exact
    value: 1e18 + 1 reads as 1000000000000000000.
    """
    if not value.is_integer() or abs(value) > INT64:
        return value
    digits = int(Decimal(repr(value)))
    return digits if -INT64 <= digits < INT64 else value


def dated(text: str) -> str:
    """A bare date as kustomize writes it: the RFC 3339 time of its midnight; else `text`."""
    match = _DATE.fullmatch(text)
    if match is None:
        return text
    year, month, day = (int(part) for part in match.groups())
    if not 1 <= month <= _MONTHS or not 1 <= day <= _days(year, month):
        return text
    return f"{year:04d}-{month:02d}-{day:02d}T00:00:00Z"


def _days(year: int, month: int) -> int:
    if month == 2:  # noqa: PLR2004 - February
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def tagged(text: str, tag: str, *, quoted: bool, dialect: Dialect) -> Any:
    """Resolve a scalar with an explicit tag. Tags that nobody knows are ignored: the text stays.

    Raises ScalarError when the tag's type cannot hold the text.
    """
    name = tag.removeprefix(_TAG)
    if tag == "!":
        return plain(text, dialect) if dialect is Dialect.FLUX and not quoted else text
    if name in (tag, "str"):
        return text
    if name == "binary":
        return _binary(text)
    if name == "timestamp":
        return _timestamp(text, dialect)
    kinds = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}.get(name)
    if kinds is None:
        return text
    value = plain(text, dialect)
    if type(value) not in kinds or (name == "int" and not _is_integer(text)):
        raise ScalarError(text, f"cannot decode {text!r} as !!{name}")
    return value


def _timestamp(text: str, dialect: Dialect) -> str:
    if dated(text) == text and not _TIME.fullmatch(text):
        raise ScalarError(text, f"cannot decode {text!r} as !!timestamp")
    return dated(text) if dialect is Dialect.FLUX else text


def _binary(text: str) -> str:
    try:
        raw = base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError) as e:
        raise ScalarError(text, "!!binary is not base64") from e
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        raise ScalarError(text, "!!binary holds bytes that are not text") from e


def key(value: Any, text: str) -> str:
    """A mapping key that is not text, as sigs.k8s.io/yaml writes it into JSON.

    Raises ScalarError for null and for numbers beyond 64 bits.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and _is_integer(text):
        return str(value)
    if isinstance(value, int | float) and not _is_integer(text):
        return _single(value)
    raise ScalarError(text, f"not a map key: {text or 'null'}")


def _is_integer(text: str) -> bool:
    """Whether a number is written as an integer: to Go `1e3` is a float, printed as 1000."""
    digits = text.replace("_", "")
    return bool(_BASED.fullmatch(digits) or _DECIMAL.fullmatch(digits))


def _single(value: float) -> str:
    """Go's strconv.FormatFloat(value, 'g', -1, 32): the fewest digits that name the float32."""
    near = _float32(value)
    if math.isinf(near):
        raise ScalarError(repr(value), f"not a map key: {value!r}")
    text = next(t for t in (f"{near:.{n}e}" for n in range(17)) if _float32(float(t)) == near)
    exponent = int(text.partition("e")[2])
    return text if not -5 < exponent < 6 else format(Decimal(text).normalize(), "f")  # noqa: PLR2004 - Go's bounds


def _float32(value: float) -> float:
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.inf
    return found
