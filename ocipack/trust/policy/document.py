"""The strict reading of a policy file: nothing unknown, nothing that readers disagree on.

Every refusal is Misuse and begins with `file:line:column`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, NoReturn

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Mapping, Node, Place, Scalar, Sequence, compose
from ocipack.k8s.yaml.scalars import Dialect, ScalarError, plain

BYTES: Final = 1024 * 1024
"""A policy file is at most this long."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the nodes of the file called `file`."""

    file: str

    def refuse(self, place: Place, message: str, hint: str = "") -> NoReturn:
        """Raise Misuse about `place`."""
        raise Misuse(f"{self.file}:{place.line}:{place.column}: {message}", hint=hint)

    @contextmanager
    def about(self, node: Node) -> Iterator[None]:
        """Say of a Misuse that a noun raises where in the file its cause stands."""
        try:
            yield
        except Misuse as e:
            if str(e).startswith(f"{self.file}:"):
                raise
            self.refuse(node.place, str(e), e.hint)

    def root(self, data: bytes) -> Mapping:
        """The one document in `data`, a mapping."""
        if len(data) > BYTES:
            self.refuse(Place(1, 1), f"longer than {BYTES} bytes")
        composed = compose(data)
        for problem in composed.problems:
            self.refuse(problem.place, problem.message)
        if composed.root is None:
            self.refuse(Place(1, 1), "the file is empty")
        if not isinstance(composed.root, Mapping):
            self.refuse(composed.root.place, "the file should be a mapping")
        return composed.root

    def mapping(
        self, node: Node, what: str, fields: Iterable[str], needed: Iterable[str] = ()
    ) -> Mapping:
        """`node` as a mapping with no other than `fields`, among them all that are `needed`."""
        known = list(fields)
        if not isinstance(node, Mapping):
            self.refuse(node.place, f"{what} should be a mapping")
        for pair in node.pairs:
            if pair.key not in known:
                near = get_close_matches(pair.key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
                self.refuse(pair.place, f"unknown field {pair.key[:60]!r} in {what}", hint)
        for name in needed:
            if node.get(name) is None:
                self.refuse(node.place, f"{what} has no {name}")
        return node

    def items(self, node: Node | None, what: str) -> tuple[Node, ...]:
        """The items of a list that is not empty; none if it is absent."""
        if node is None:
            return ()
        if not isinstance(node, Sequence):
            self.refuse(node.place, f"{what} should be a list")
        if not node.items:
            self.refuse(node.place, f"{what} is empty", "leave it out, or say something")
        return node.items

    def text(self, node: Node | None, what: str) -> str:
        """`node` as text that says something, alike to every reader; empty if it is absent."""
        if node is None:
            return ""
        if not isinstance(node, Scalar) or node.is_null or not node.text.strip():
            self.refuse(node.place, f"{what} should be text")
        if not node.is_text:
            self.refuse(node.place, f"{what} is not text to every reader", "put it in quotes")
        return node.text

    def choice(self, node: Node | None, what: str, words: Iterable[str]) -> str:
        """`node` as one of `words`; the first of them if it is absent."""
        known = list(words)
        if node is None:
            return known[0]
        said = self.text(node, what)
        if said not in known:
            self.refuse(node.place, f"{what} is one of {', '.join(filter(None, known))}")
        return said

    def value(self, node: Node, what: str) -> str | int | float | bool | None:
        """`node` as a scalar, alike to every reader."""
        if not isinstance(node, Scalar):
            self.refuse(node.place, f"{what} should be a scalar")
        if node.is_text:
            return node.text
        if node.is_null:
            return None
        try:
            found = [plain(node.text, dialect) for dialect in Dialect]
        except ScalarError as e:
            self.refuse(node.place, f"{what}: {e}")
        first: str | float | bool | None = found[0]
        if isinstance(first, str) or any(repr(one) != repr(first) for one in found):
            hint = "put it in quotes"
            self.refuse(node.place, f"{what} is not the same to every reader", hint)
        return first

    def whole(self, node: Node | None, what: str, default: int) -> int:
        """`node` as a whole number; `default` if it is absent."""
        if node is None:
            return default
        found = self.value(node, what)
        if isinstance(found, bool) or not isinstance(found, int):
            self.refuse(node.place, f"{what} should be a whole number")
        return found

    def flag(self, node: Node | None, what: str, *, default: bool) -> bool:
        """`node` as true or false; `default` if it is absent."""
        if node is None:
            return default
        found = self.value(node, what)
        if not isinstance(found, bool):
            self.refuse(node.place, f"{what} should be true or false")
        return found
