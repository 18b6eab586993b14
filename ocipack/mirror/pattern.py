r"""Regular expressions for names and tags, in time that grows with the text alone.

Tags come from registries, and an expression with nested repetitions can keep a backtracking
engine busy for years on one of 128 characters. Here all ways are followed at once, as RE2 does
(https://swtch.com/~rsc/regexp/regexp2.html). The syntax is RE2's without flags, word boundaries
and classes by name: characters, `.`, `[…]`, `\d \w \s`, groups, `|`, `* + ? {n,m}`, each lazy
with another `?`, `^` and `$`. A pattern fits the whole text or not at all. `fill` puts groups into
a template: `$1`, `${1}`, `$name`, `${name}`; `$$` is a dollar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ocipack.errors import Misuse
from ocipack.mirror.expression import CHARACTER, END, FITS, FORK, SAVE, START, Step, compiled

MEMO: Final = 1_000
"""Moves that a pattern remembers; then remembering starts anew."""

_VARIABLE: Final = re.compile(r"\$(?:\$|(\w+)|\{(\w+)\})?", re.ASCII)

_Threads = list[tuple[int, tuple[int, ...]]]
"""Steps that are reached, the preferred first, each with the bounds of groups so far."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. Raises Misuse for a text that is none, and says what is wrong."""

    text: str
    _steps: tuple[Step, ...] = field(init=False, repr=False, compare=False)
    _groups: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _moves: dict[tuple[frozenset[int], str], frozenset[int]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        steps, groups = compiled(self.text)
        object.__setattr__(self, "_steps", steps)
        object.__setattr__(self, "_groups", groups)
        object.__setattr__(self, "_moves", {})

    def fits(self, text: str) -> bool:
        """Whether the whole of `text` fits."""
        state = frozenset(pc for pc, _ in self._reached([(0, ())], 0, at_end=not text))
        for index, character in enumerate(text, 1):
            last = index == len(text)
            key = (state, "" if last else character)  # at the end `$` leads on as well
            found = None if last else self._moves.get(key)
            if found is None:
                moved = self._moved([(pc, ()) for pc in state], character)
                found = frozenset(pc for pc, _ in self._reached(moved, index, at_end=last))
                if not last:
                    if len(self._moves) >= MEMO:
                        self._moves.clear()
                    self._moves[key] = found
            state = found
            if not state:
                return False
        return any(self._steps[pc][0] == FITS for pc in state)

    def groups(self, text: str) -> dict[str, str] | None:
        """What each group of the pattern holds, by number and name; None if it does not fit."""
        empty = (-1,) * (2 * len(self._groups))
        threads = list(self._reached([(0, empty)], 0, at_end=not text))
        for index, character in enumerate(text, 1):
            moved = self._moved(threads, character)
            threads = list(self._reached(moved, index, at_end=index == len(text)))
        bounds = next((bounds for pc, bounds in threads if self._steps[pc][0] == FITS), None)
        if bounds is None:
            return None
        found = {"0": text}
        for number, name in enumerate(self._groups):
            low, high = bounds[2 * number : 2 * number + 2]
            found[str(number + 1)] = text[low:high] if low >= 0 <= high else ""
            if name:
                found[name] = found[str(number + 1)]
        return found

    def fill(self, template: str, text: str) -> str | None:
        """`template` with the groups of `text` in it; None if `text` does not fit."""
        groups = self.groups(text)
        if groups is None:
            return None
        return _VARIABLE.sub(
            lambda match: "$" if match[0] == "$$" else groups[match[1] or match[2]], template
        )

    def check(self, template: str) -> None:
        """Misuse if `template` names a group that the pattern does not have."""
        known = {"0", *map(str, range(1, len(self._groups) + 1)), *filter(None, self._groups)}
        for match in _VARIABLE.finditer(template):
            if match[0] != "$$" and (match[1] or match[2]) not in known:
                raise Misuse(
                    f"{template[:80]!r} names a group that {self.text[:80]!r} does not have",
                    hint="$1 is the first group, ${1} where a letter follows, $$ a dollar",
                )

    def _moved(self, threads: _Threads, character: str) -> _Threads:
        """The threads that `character` leads on."""
        found: _Threads = []
        for pc, bounds in threads:
            kind, characters, following, _ = self._steps[pc]
            if kind == CHARACTER and character in characters:
                found.append((following, bounds))
        return found

    def _reached(
        self, threads: _Threads, index: int, *, at_end: bool
    ) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The steps that wait for a character, or that fit, from `threads`, each once."""
        seen: set[int] = set()
        waiting = threads[::-1]
        while waiting:
            pc, bounds = waiting.pop()
            if pc in seen:
                continue
            seen.add(pc)
            kind, _, following, other = self._steps[pc]
            if kind in (CHARACTER, FITS):
                yield pc, bounds
            elif kind == FORK:
                waiting += [(other, bounds), (following, bounds)]
            elif kind == SAVE:
                kept = (*bounds[:other], index, *bounds[other + 1 :]) if bounds else bounds
                waiting.append((following, kept))
            elif (kind == START and index == 0) or (kind == END and at_end):
                waiting.append((following, bounds))
