"""Version ranges as Helm and Flux read them (github.com/Masterminds/semver v3, constraints.go).

    >=1.2 <2 || ^3.1.4 || ~4.5 || 5.x || 6.0 - 6.2

Comparisons beside each other (blank or comma) must all hold, `||` is either. A version with a
prerelease fits only where the alternative names one (`>=1.2-0`), or where prereleases are asked
for. Where the library makes little sense of a bare `*` (`<=*`, `!=*`, `^*`), it is refused here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from ocipack.errors import Misuse

LONGEST: Final = 512
"""Characters of a range."""

_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(
    rf"v?([0-9]{{1,18}})\.([0-9]{{1,18}})\.([0-9]{{1,18}})(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?",
    re.ASCII,
)
_PLACE: Final = r"([0-9]{1,18}|[xX*])"
_PARTIAL: Final = (
    rf"v?{_PLACE}(?:\.{_PLACE})?(?:\.{_PLACE})?(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?"
)
_COMPARISON: Final = re.compile(rf"(=|!=|>=|=>|<=|=<|>|<|~>|~|\^)?\s*{_PARTIAL}", re.ASCII)
_BETWEEN: Final = re.compile(rf"({_PARTIAL})\s+-\s+({_PARTIAL})", re.ASCII)
_SEPARATOR: Final = re.compile(r"\s*,\s*|\s+", re.ASCII)
_SAME: Final = {"": "=", "=>": ">=", "=<": "<=", "~>": "~"}
_WILD: Final = "xX*"
_HINT: Final = "as in '>=1.2 <2', '^1.4.2', '~1.4', '1.x', '1.0 - 1.5', 'A || B'"

Order = tuple[int, int, int, bool, tuple[tuple[int, int, str], ...]]


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """MAJOR.MINOR.PATCH[-PRERELEASE], comparable (Semantic Versioning 2.0.0, §11).

    What follows a `+` says nothing about order and is not kept.
    """

    order: Order

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read a version as Flux does: a `v` before it and zeros before numbers are let be."""
        match = _VERSION.fullmatch(text)
        if match is None:
            return None
        return cls.of((int(match[1]), int(match[2]), int(match[3])), match[4] or "")

    @classmethod
    def of(cls, numbers: tuple[int, int, int], prerelease: str) -> Self | None:
        """Put a version together; None if a number in its prerelease begins with a zero."""
        parts = prerelease.split(".") if prerelease else []
        if any(part.isdigit() and part[0] == "0" and part != "0" for part in parts):
            return None
        pieces = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in parts)
        return cls((*numbers, not parts, pieces))

    @property
    def is_prerelease(self) -> bool:
        """Whether it comes before its release."""
        return not self.order[3]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One comparison; `said` is how many of the three numbers are written (the rest is wild)."""

    operator: str
    version: Version
    said: int

    def holds(self, version: Version) -> bool:
        return _HOLDS[self.operator](version, self.version, self.said)


def _same(version: Version, other: Version, said: int) -> bool:
    return version.order[:said] == other.order[:said]


def _tilde(version: Version, least: Version, said: int) -> bool:
    """At least that, and the same minor version, or the same major one if no more is said."""
    if version < least:
        return False
    if said == 0 or (said == 3 and least.order[:3] == (0, 0, 0)):  # noqa: PLR2004 - all three are said; the library lets ~0.0.0 be anything
        return True
    return _same(version, least, min(said, 2))


def _caret(version: Version, least: Version, said: int) -> bool:
    """At least that, and alike up to the first number that is not zero, as far as it is said."""
    if version < least:
        return False
    alike = next((i for i, number in enumerate(least.order[:said], 1) if number), said)
    return _same(version, least, alike)


def _equal(version: Version, other: Version, said: int) -> bool:
    return version == other if said == 3 else _tilde(version, other, said)  # noqa: PLR2004 - all three are said


def _differs(version: Version, other: Version, said: int) -> bool:
    if said == 3:  # noqa: PLR2004 - all three are said
        return version != other
    if said == 2 and _same(version, other, 2):  # noqa: PLR2004 - MAJOR.MINOR
        return version.order[3:] != other.order[3:]
    return not _same(version, other, said)


def _above(version: Version, other: Version, said: int) -> bool:
    if said in (0, 3):
        return version > other
    return version.order[:said] > other.order[:said]


def _at_most(version: Version, other: Version, said: int) -> bool:
    return version <= other if said == 3 else version.order[:said] <= other.order[:said]  # noqa: PLR2004 - all three are said


_HOLDS: Final[Mapping[str, Callable[[Version, Version, int], bool]]] = {
    "=": _equal,
    "!=": _differs,
    ">": _above,
    ">=": lambda version, other, _: version >= other,
    "<": lambda version, other, _: version < other,
    "<=": _at_most,
    "~": _tilde,
    "^": _caret,
}


@dataclass(frozen=True, slots=True)
class Range:
    """A version range. Raises Misuse for text that is none."""

    text: str
    _alternatives: tuple[tuple[_Comparison, ...], ...] = ()

    def __post_init__(self) -> None:
        if len(self.text) > LONGEST:
            raise Misuse(f"a version range has at most {LONGEST} characters")
        found = tuple(_alternative(part, self.text) for part in self.text.split("||"))
        object.__setattr__(self, "_alternatives", found)

    def fits(self, version: Version, *, prereleases: bool = False) -> bool:
        """Whether `version` is in the range; a prerelease only if asked for, here or there."""
        for comparisons in self._alternatives:
            asked = prereleases or any(one.version.is_prerelease for one in comparisons)
            if version.is_prerelease and not asked:
                continue
            if all(one.holds(version) for one in comparisons):
                return True
        return False


def _alternative(text: str, whole: str) -> tuple[_Comparison, ...]:
    """The comparisons of one alternative, all of which must hold."""
    rest = _BETWEEN.sub(lambda match: f">={match[1]} <={match[6]}", text).strip()
    found: list[_Comparison] = []
    while True:
        match = _COMPARISON.match(rest)
        if match is None:
            raise Misuse(f"not a version range: {whole[:80]!r}", hint=_HINT)
        found.append(_comparison(match, whole))
        rest = rest[match.end() :]
        if not rest:
            return tuple(found)
        gap = _SEPARATOR.match(rest)
        if gap is None:
            raise Misuse(f"not a version range: {whole[:80]!r}", hint=_HINT)
        rest = rest[gap.end() :]


def _comparison(match: re.Match[str], whole: str) -> _Comparison:
    numbers = [part if part and part not in _WILD else None for part in match.group(2, 3, 4)]
    said = next((i for i, number in enumerate(numbers) if number is None), 3)
    operator = _SAME.get(match[1] or "", match[1] or "")
    first, second, third = (int(number or 0) if i < said else 0 for i, number in enumerate(numbers))
    version = Version.of((first, second, third), match[5] or "")
    if version is None or (said == 0 and operator not in ("=", ">=", "~")):
        raise Misuse(f"not a version range: {match[0][:80]!r} in {whole[:80]!r}", hint=_HINT)
    return _Comparison(operator, version, said)
