"""Wildcards that take linear time, whatever they are tried on.

Names come from strangers, and a regular expression with several stars tries every way to split
one. Here all ways are followed at once: a state is a bit, and each character moves all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

LITERAL, ONE, STAR, BELOW, INSIDE = range(5)
MEMO = 256
"""Characters whose moves a pattern remembers; then remembering starts anew."""

_OUTSIDE = ":@"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a pattern; see `literal`, `star`, `some` and `directories`, which make them.

    `text` is the character of a LITERAL, else the characters that do not fit.
    """

    kind: int
    text: str


def literal(text: str) -> list[Piece]:
    """Exactly `text`."""
    return [Piece(LITERAL, character) for character in text]


def star(but: str) -> list[Piece]:
    """Any number of characters, none of which is in `but`."""
    return [Piece(STAR, but)]


def some(but: str) -> list[Piece]:
    """At least one character, none of which is in `but`."""
    return [Piece(ONE, but), Piece(STAR, but)]


def directories() -> list[Piece]:
    """Nothing, or whatever of a path ends in `/`."""
    return [Piece(BELOW, _OUTSIDE), Piece(INSIDE, _OUTSIDE)]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Pieces in order, to be compared with a whole text."""

    pieces: Sequence[Piece]
    _skip_one: int = field(init=False, repr=False)
    _skip_two: int = field(init=False, repr=False)
    _moves: dict[str, tuple[int, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_skip_one", _bits(p.kind == STAR for p in self.pieces))
        object.__setattr__(self, "_skip_two", _bits(p.kind == BELOW for p in self.pieces))
        object.__setattr__(self, "_moves", {})

    def matches(self, text: str) -> bool:
        """Whether all of `text` is what the pieces say."""
        state = self._settled(1)
        for character in text:
            moves = self._moves.get(character)
            if moves is None:
                if len(self._moves) >= MEMO:
                    self._moves.clear()
                moves = self._moves[character] = self._move(character)
            state = self._settled((state & moves[0]) << 1 | state & moves[1])
            if not state:
                return False
        return bool(state >> len(self.pieces) & 1)

    def _settled(self, state: int) -> int:
        """`state`, and all that it reaches without a character."""
        before = 0
        while state != before:
            before = state
            state |= (state & self._skip_one) << 1 | (state & self._skip_two) << 2
        return state

    def _move(self, character: str) -> tuple[int, int]:
        """Which pieces `character` leads beyond, and which it stays in."""
        return (
            _bits(_leads(piece, character) for piece in self.pieces),
            _bits(
                piece.kind in (STAR, INSIDE) and character not in piece.text
                for piece in self.pieces
            ),
        )


def _leads(piece: Piece, character: str) -> bool:
    if piece.kind == LITERAL:
        return character == piece.text
    if piece.kind == INSIDE:
        return character == "/"
    return piece.kind in (ONE, BELOW) and character not in piece.text


def _bits(flags: Iterator[bool]) -> int:
    return sum(1 << i for i, flag in enumerate(flags) if flag)
