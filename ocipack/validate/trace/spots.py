"""Where a value may come from, and how values of one object in two documents correspond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ocipack.k8s.yaml.documents import join

Tokens = tuple[str, ...]

ABSENT: Final = object()
"""What `follow` gives for a pointer that leads nowhere."""

_KEYS: Final = (
    *(("name",), ("metadata", "name"), ("mountPath",), ("containerPort",), ("port",)),
    *(("topologyKey",), ("devicePath",), ("ip",)),
)
"""What items of lists are told apart by; the first that is unique counts."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file of the tree; `line` and `column` from 1, 0 where there is none."""

    file: str
    line: int = 0
    column: int = 0


UNKNOWN: Final = Spot("")
"""Something sets the value, and its place cannot be told."""


IDENTITY: Final = {(), ("apiVersion",), ("kind",), ("metadata", "name")}
"""What an object is told apart by."""


class Said(NamedTuple):
    """A place that says a value; `surely` if it also decides it whenever nothing later does."""

    spot: Spot
    surely: bool = True


def names_item(tokens: Tokens) -> bool:
    """Whether `tokens` name what an item of a list is told apart by."""
    return len(tokens) > 1 and (tokens[-1],) in _KEYS and tokens[-2].isdecimal()


def step(value: Any, token: str) -> Any:
    """What `token` names in `value`, or ABSENT."""
    if isinstance(value, Mapping):
        return value.get(token, ABSENT)
    if isinstance(value, list) and token.isdecimal() and int(token) < len(value):
        return value[int(token)]
    return ABSENT


def follow(value: Any, tokens: Tokens) -> Any:
    """What `tokens` name in `value`, or ABSENT."""
    for token in tokens:
        value = step(value, token)
    return value


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, and of equal types all through: 1 is neither 1.0 nor true."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def counterpart(rendered: Any, source: Any, tokens: Tokens) -> Tokens | None:
    """The tokens that lead to the same value in `source`, or None if that cannot be told.

    Items of lists are the same if they are called the same, uniquely in both lists, or are equal
    and unique in both: patches put items in and move the others, so that an index means nothing.
    """
    found: list[str] = []
    for token in tokens:
        if isinstance(rendered, list):
            if not isinstance(source, list):
                return None
            index = _item(rendered, source, token)
            if index is None:
                return None
            found.append(str(index))
            rendered, source = step(rendered, token), source[index]
            continue
        found.append(token)
        rendered, source = step(rendered, token), step(source, token)
    return tuple(found)


def _item(rendered: list[Any], source: list[Any], token: str) -> int | None:
    item = step(rendered, token)
    if item is ABSENT:
        return None
    if same(rendered, source):
        return int(token)
    for key in _KEYS if isinstance(item, Mapping) else ():
        value = follow(item, key)
        if value is ABSENT:
            continue
        here = [one for one in rendered if same(follow(one, key), value)]
        there = [n for n, one in enumerate(source) if same(follow(one, key), value)]
        if len(here) == 1 and len(there) < 2:  # noqa: PLR2004 - one, or none
            return there[0] if there else None
    equal = [n for n, one in enumerate(source) if same(one, item)]
    once = sum(same(one, item) for one in rendered) == 1
    return equal[0] if once and len(equal) == 1 else None


def agrees(rendered: Any, source: Any, tokens: Tokens) -> Tokens | None:
    """Where in `source` stands what `tokens` name in `rendered`, if it says the same there.

    A scalar must be equal. A collection must be equal, or alike on its first level, since what
    is found about it is about its members. What is absent must be absent in the source too; then
    it is what should hold it that counts.
    """
    there = counterpart(rendered, source, tokens)
    if there is None:
        return None
    value, origin = follow(rendered, tokens), follow(source, there)
    if value is not ABSENT:
        return there if origin is not ABSENT and _alike(value, origin) else None
    if origin is not ABSENT:
        return None
    depth = next(n for n in range(len(tokens)) if follow(rendered, tokens[: n + 1]) is ABSENT)
    holder = follow(source, there[:depth])
    return there if type(holder) is type(follow(rendered, tokens[:depth])) else None


def _alike(value: Any, origin: Any) -> bool:
    if isinstance(value, dict) and isinstance(origin, dict):
        return value.keys() == origin.keys() and all(_near(value[k], origin[k]) for k in value)
    if isinstance(value, list) and isinstance(origin, list):
        return len(value) == len(origin) and all(map(_near, value, origin))
    return same(value, origin)


def _near(value: Any, origin: Any) -> bool:
    if isinstance(value, dict | list):
        return type(value) is type(origin)
    return same(value, origin)


def pointer(tokens: Tokens) -> str:
    """The RFC 6901 pointer of `tokens`."""
    return join(*tokens)
