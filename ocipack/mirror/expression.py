"""The syntax of `pattern`, and the steps that a pattern becomes (Thompson's construction)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

from ocipack.errors import Misuse

LONGEST: Final = 512
"""Characters of a pattern."""

SIZE: Final = 2_000
"""Steps of a compiled pattern: `(a{100}){100}` is refused."""

DEPTH: Final = 50
"""Groups in groups."""

CHARACTER, FORK, SAVE, START, END, FITS = range(6)
"""What a step does: take a character, try two ways, note a bound of a group, hold at the start or
at the end alone, or say that all of it fits."""

Step = tuple[int, frozenset[str], int, int]
"""What it does, the characters that lead on, the step after it, and the other way or the bound."""

_NONE: Final[frozenset[str]] = frozenset()
_DIGITS: Final = frozenset("0123456789")
_WORD: Final = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_SPACE: Final = frozenset(" \t\n\r\f")
_ALL: Final = frozenset(map(chr, range(128)))
_NAMED: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_SETS: Final = _NAMED | {name.upper(): _ALL - found for name, found in _NAMED.items()}
_COUNT: Final = re.compile(r"\{(\d{1,4})(?:(,)(\d{0,4}))?\}", re.ASCII)
_GROUP: Final = re.compile(r"\(\?(?::|P?<([A-Za-z_]\w{0,31})>)", re.ASCII)
_SIGNS: Final = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True, slots=True)
class _One:
    """One of these characters."""

    characters: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Hold:
    """START or END."""

    kind: int


@dataclass(frozen=True, slots=True)
class _Then:
    parts: list[_Node]


@dataclass(frozen=True, slots=True)
class _Either:
    ways: list[_Node]


@dataclass(frozen=True, slots=True)
class _Keep:
    """A group, counted from 0."""

    node: _Node
    number: int


@dataclass(frozen=True, slots=True)
class _Repeat:
    """At least `low` times, at most `high` (None: no bound); `lazy` prefers fewer."""

    node: _Node
    low: int
    high: int | None
    lazy: bool


_Node = _One | _Hold | _Then | _Either | _Keep | _Repeat


def compiled(text: str) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """The steps of the pattern `text`, and the names of its groups ("" for those without).

    Misuse says what is wrong with it.
    """
    parser = _Parser(text)
    program = _Program(parser)
    program.emit(parser.parsed())
    program.add(FITS)
    return tuple(program.steps), tuple(parser.groups)


class _Parser:
    """Recursive descent."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.groups: list[str] = []

    def refuse(self, why: str) -> NoReturn:
        raise Misuse(
            f"not a pattern: {self.text[:80]!r}: {why}",
            hint="it is RE2 without flags and classes by name, and fits a whole name or tag",
        )

    def parsed(self) -> _Node:
        if len(self.text) > LONGEST:
            self.refuse(f"more than {LONGEST} characters")
        if not self.text.isascii():
            self.refuse("names and tags are ASCII")
        node = self.either(0)
        if self.at < len(self.text):
            self.refuse("a ) too many")
        return node

    def take(self, text: str) -> bool:
        found = self.text.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def next(self) -> str:
        """The next character; empty at the end."""
        character = self.text[self.at : self.at + 1]
        self.at += 1
        return character

    def either(self, depth: int) -> _Node:
        if depth > DEPTH:
            self.refuse(f"more than {DEPTH} groups in groups")
        ways = [self.sequence(depth)]
        while self.take("|"):
            ways.append(self.sequence(depth))
        return _Either(ways) if len(ways) > 1 else ways[0]

    def sequence(self, depth: int) -> _Node:
        parts: list[_Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self.repeated(self.atom(depth)))
        return _Then(parts)

    def repeated(self, node: _Node) -> _Node:
        times = self.times()
        if times is None:
            return node
        lazy = self.take("?")
        if self.times() is not None:
            self.refuse("a repetition of a repetition")
        return _Repeat(node, *times, lazy)

    def times(self) -> tuple[int, int | None] | None:
        """How often what stands before is repeated; None if nothing is said."""
        for sign, bounds in _SIGNS.items():
            if self.take(sign):
                return bounds
        match = _COUNT.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        low = int(match[1])
        high = None if match[2] and not match[3] else int(match[3] or low)
        if high is not None and high < low:
            self.refuse(f"{match[0]} ends before it begins")
        return low, high

    def atom(self, depth: int) -> _Node:
        group = _GROUP.match(self.text, self.at)
        if group is not None:
            self.at = group.end()
            return self.group(group[1], depth)
        character = self.next()
        if character == "(":
            if self.take("?"):
                self.refuse("it has no flags, and nothing that looks around")
            return self.group("", depth)
        if character == "[":
            return _One(self.characters())
        if character == "\\":
            return _One(self.escaped())
        if character in _SIGNS:
            self.refuse(f"nothing stands before {character}")
        if character in "^$":
            return _Hold(START if character == "^" else END)
        return _One(_ALL - {"\n"} if character == "." else frozenset(character))

    def group(self, name: str | None, depth: int) -> _Node:
        """What follows an opening parenthesis; None is a group that keeps nothing."""
        number = len(self.groups)
        if name is not None:
            if name and name in self.groups:
                self.refuse(f"two groups are called {name}")
            self.groups.append(name)
        node = self.either(depth + 1)
        if not self.take(")"):
            self.refuse("a ) is missing")
        return node if name is None else _Keep(node, number)

    def escaped(self) -> frozenset[str]:
        character = self.next()
        if character in _SETS:
            return _SETS[character]
        if not character or character.isalnum():
            self.refuse(f"there is no escape \\{character}")
        return frozenset(character)

    def characters(self) -> frozenset[str]:
        """What follows an opening bracket; a closing one that stands first is a character."""
        negated, found, first = self.take("^"), set[str](), True
        while first or not self.take("]"):
            first = False
            low = self.member()
            if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
                found |= low
                continue
            self.at += 1
            high = self.member()
            if len(low) != 1 or len(high) != 1 or min(high) < min(low):
                self.refuse("a range goes from one character to a later one")
            found |= set(map(chr, range(ord(min(low)), ord(min(high)) + 1)))
        return _ALL - found if negated else frozenset(found)

    def member(self) -> frozenset[str]:
        if self.text.startswith("[:", self.at):
            self.refuse("it has no classes by name")
        character = self.next()
        if not character:
            self.refuse("a ] is missing")
        return self.escaped() if character == "\\" else frozenset(character)


class _Program:
    """Steps under way. A fork is written when both of its ways are known."""

    def __init__(self, parser: _Parser) -> None:
        self.parser = parser
        self.steps: list[Step] = []
        self.emitted = 0

    def add(self, kind: int, characters: frozenset[str] = _NONE, other: int = 0) -> int:
        """Append a step that leads to the next one."""
        if len(self.steps) >= SIZE:
            self.parser.refuse(f"more than {SIZE} steps: count less")
        self.steps.append((kind, characters, len(self.steps) + 1, other))
        return len(self.steps) - 1

    def fork(self, at: int, preferred: int, other: int) -> None:
        """Let the step `at` lead two ways."""
        self.steps[at] = (FORK, _NONE, preferred, other)

    def emit(self, node: _Node) -> None:
        self.emitted += 1  # what is repeated may be nothing, which takes no step
        if self.emitted > 4 * SIZE:
            self.parser.refuse(f"more than {4 * SIZE} parts: count less")
        match node:
            case _One(characters):
                self.add(CHARACTER, characters)
            case _Hold(kind):
                self.add(kind)
            case _Then(parts):
                for part in parts:
                    self.emit(part)
            case _Keep(inner, number):
                self.add(SAVE, other=2 * number)
                self.emit(inner)
                self.add(SAVE, other=2 * number + 1)
            case _Either(ways):
                self.either(ways)
            case _Repeat():
                self.repeat(node)

    def either(self, ways: list[_Node]) -> None:
        ends = []
        for way in ways[:-1]:
            start = self.add(FORK)
            self.emit(way)
            ends.append(self.add(FORK))
            self.fork(start, start + 1, len(self.steps))
        self.emit(ways[-1])
        for end in ends:
            self.fork(end, len(self.steps), len(self.steps))

    def repeat(self, node: _Repeat) -> None:
        for _ in range(node.low):
            self.emit(node.node)
        starts = []
        for _ in range(1 if node.high is None else node.high - node.low):
            starts.append(self.add(FORK))
            self.emit(node.node)
        if node.high is None:
            back = self.add(FORK)
            self.fork(back, starts[0], starts[0])
        for start in starts:
            ways = (start + 1, len(self.steps))
            self.fork(start, *(ways[::-1] if node.lazy else ways))
