"""What a policy may ask of a value that someone signed: simple questions with one answer.

A value that is not there answers no, whatever is asked. Values are compared as JSON's: text is
never a number, and `true` is never 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ocipack.errors import Misuse
from ocipack.trust.policy.wildcards import Pattern, literal, star

Scalar = str | int | float | bool | None

ABSENT = object()
"""What is found where nothing is: equal to no value, and of no type that may be asked about."""

OPERATORS = ("equals", "oneOf", "like", "contains", "atLeast", "atMost")
"""What may be asked. Operands: a scalar, a list of scalars, a glob, a scalar, two numbers."""

_LONGEST = 1000
_MOST = 100
_TEXT = 4096
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Condition:
    """One question: `operator` of OPERATORS, and what it compares with. Misuse if it is none."""

    operator: str
    operand: Any

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise Misuse(f"no such condition: {self.operator!r}", hint=", ".join(OPERATORS))
        if not _OPERANDS[self.operator](self.operand):
            raise Misuse(f"{self.operator} cannot be asked with {str(self.operand)[:80]!r}")

    def holds(self, found: object) -> bool:
        """Whether `found`, a JSON value or ABSENT, is what is asked for."""
        return _ANSWERS[self.operator](found, self.operand)

    def __str__(self) -> str:
        words = {"equals": "", "oneOf": "one of ", "like": "like ", "contains": "with "}
        lead = words.get(self.operator, f"{self.operator} ")
        shown = ", ".join(map(repr, self.operand)) if self.operator == "oneOf" else None
        return f"{lead}{shown or repr(self.operand)}"


@dataclass(frozen=True, slots=True)
class Field:
    """A question about the place `pointer` (RFC 6901) in a predicate."""

    pointer: str
    condition: Condition

    def __post_init__(self) -> None:
        if not _POINTER.fullmatch(self.pointer) or len(self.pointer) > _LONGEST:
            raise Misuse(
                f"not a JSON pointer: {self.pointer[:80]!r}",
                hint="write /name/of/member; / in a name is ~1, ~ is ~0 (RFC 6901)",
            )

    def holds(self, predicate: object) -> bool:
        """Whether the value there is what is asked for."""
        return self.condition.holds(at(predicate, self.pointer))


def at(document: object, pointer: str) -> object:
    """The value at `pointer`, or ABSENT."""
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict) and name in document:
            document = document[name]
        elif isinstance(document, list) and _INDEX.fullmatch(name) and int(name) < len(document):
            document = document[int(name)]
        else:
            return ABSENT
    return document


def _same(one: object, other: object) -> bool:
    """Equality of JSON scalars; Python's own says that True is 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@lru_cache(maxsize=256)
def _pattern(glob: str) -> Pattern:
    pieces = re.split(r"(\*+)", glob)
    known = {"*": star("/")}
    return Pattern(
        [
            one
            for piece in pieces
            for one in (known.get(piece) or (star("") if piece[:1] == "*" else literal(piece)))
        ]
    )


def _like(found: object, glob: Any) -> bool:
    return isinstance(found, str) and len(found) <= _TEXT and _pattern(glob).matches(found)


_OPERANDS: dict[str, Callable[[Any], bool]] = {
    "equals": _is_scalar,
    "oneOf": lambda v: isinstance(v, tuple) and 0 < len(v) <= _MOST and all(map(_is_scalar, v)),
    "like": lambda v: isinstance(v, str) and 0 < len(v) <= _LONGEST,
    "contains": _is_scalar,
    "atLeast": _is_number,
    "atMost": _is_number,
}
_ANSWERS: dict[str, Callable[[object, Any], bool]] = {
    "equals": _same,
    "oneOf": lambda found, many: any(_same(found, one) for one in many),
    "like": _like,
    "contains": lambda found, one: isinstance(found, list) and any(_same(x, one) for x in found),
    "atLeast": lambda found, least: _is_number(found) and found >= least,
    "atMost": lambda found, most: _is_number(found) and found <= most,
}
