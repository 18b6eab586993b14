"""WWW-Authenticate (RFC 9110, 11.6.1): what a registry asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a grammar rule, no secret
_PARAMETER = rf'({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"=][^\s,"]*))'
_SCHEME = rf"({_TOKEN})(?=[\s,]|$)"
_BETWEEN = r"[\s,]*"
_BLOB = r"[A-Za-z0-9._~+/-]+=*(?=[\s,]|$)"  # a token68, which no scheme of ours has
_LIMIT = 16 * 1024


@dataclass(frozen=True, slots=True)
class Challenge:
    """One scheme in lower case, and its parameters by lower-case name."""

    scheme: str
    parameters: Mapping[str, str]


def parse(headers: Iterable[str]) -> list[Challenge]:
    """Read every challenge of every header, in order; what cannot be read is left out."""
    return [challenge for header in headers for challenge in _read(header[:_LIMIT])]


def _read(text: str) -> Iterator[Challenge]:
    scheme, parameters, position = "", dict[str, str](), 0
    while (position := _skip(text, position)) < len(text):
        if scheme and (match := _at(_PARAMETER, text, position)):
            value = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
            parameters.setdefault(match[1].lower(), value)
        elif match := _at(_SCHEME, text, position):
            if scheme:
                yield Challenge(scheme, parameters)
            scheme, parameters = match[1].lower(), {}
        elif not (match := _at(_BLOB, text, position)):  # a token68, which no scheme of ours has
            break
        position = match.end()
    if scheme:
        yield Challenge(scheme, parameters)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)  # most runs meet no challenge, and start-up counts


def _at(pattern: str, text: str, position: int) -> re.Match[str] | None:
    return _compiled(pattern).match(text, position)


def _skip(text: str, position: int) -> int:
    match = _at(_BETWEEN, text, position)
    return match.end() if match else position
