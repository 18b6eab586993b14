"""The strict reading of files that are ours to define: project files, locks, policies and the like.

Nothing unknown, nothing that readers disagree on (`ocipack.k8s.yaml.nodes`). Every refusal is
Misuse and begins with `file:line:column`. A format is a module that asks a Reader for its fields:

    reader = Reader(file)
    root = reader.ours(data, ("items",), kind="Mirror")
    for node in reader.items(root.get("items"), "items"):
        said = reader.mapping(node, "an item", ("name", "tags"), ("name",))
        with reader.about(said):
            found.append(Item(reader.text(said.get("name"), "name")))
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from typing import Final, NoReturn

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Mapping, Node, Place, Scalar, Sequence, compose
from ocipack.k8s.yaml.scalars import Dialect, ScalarError, plain

BYTES: Final = 1024 * 1024
"""Such a file is at most this long, unless its format says otherwise."""

API: Final = "ocipack.dev/v1alpha1"
"""The version of the formats that are ours: `apiVersion`."""

_LOOK: Final = "look at this line and the one before: indentation, a blank after each colon"
_TRUE: Final = frozenset({"true", "yes", "on", "y"})
_FALSE: Final = frozenset({"false", "no", "off", "n"})

_WHOLE: Final = re.compile(r"0|[1-9][0-9]{0,17}")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def day(text: str) -> date:
    """The date that `text` (YYYY-MM-DD) names, else Misuse."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    hint = "write YYYY-MM-DD, the last day on which it holds"
    raise Misuse(f"{text[:60]!r} is no date", hint=hint)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the nodes of the file called `file`, which has at most `limit` bytes."""

    file: str
    limit: int = BYTES

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

    def root(self, data: bytes, hint: str = "") -> Mapping:
        """The one document in `data`, a mapping; the `hint` is for an empty file."""
        if len(data) > self.limit:
            self.refuse(Place(1, 1), f"longer than {self.limit} bytes")
        composed = compose(data)
        for problem in composed.problems:
            self.refuse(
                problem.place, problem.message, _LOOK * problem.message.startswith("not YAML")
            )
        if composed.root is None:
            self.refuse(Place(1, 1), "the file is empty", hint)
        if not isinstance(composed.root, Mapping):
            is_pem = data.lstrip().startswith(b"-----BEGIN ")
            self.refuse(
                composed.root.place,
                "the file should be a mapping" + (", and is a key or certificate" * is_pem),
                "--key takes keys; files of ours name them" if is_pem else "",
            )
        return composed.root

    def ours(self, data: bytes, fields: Iterable[str], *, kind: str = "") -> Mapping:
        """The one document in `data`: of API and, if the format has several kinds, of `kind`.

        It has no other fields than those two and `fields`.
        """
        wanted = {"apiVersion": API} | ({"kind": kind} if kind else {})
        first = ", ".join(f"{name}: {text}" for name, text in wanted.items())
        root = self.mapping(self.root(data, f"begin with {first}"), "the file", (*wanted, *fields))
        for name, text in wanted.items():
            node = root.get(name)
            if node is None:
                self.refuse(root.place, f"{name} is missing", f"write {name}: {text}")
            if self.text(node, name) != text:
                self.refuse(node.place, f"{name} is not {text}")
        return root

    def mapping(
        self, node: Node, what: str, fields: Iterable[str], needed: Iterable[str] = ()
    ) -> Mapping:
        """`node` as a mapping with no other than `fields`, among them all that are `needed`."""
        known, needed = list(fields), tuple(needed)
        if not isinstance(node, Mapping):
            self.refuse(node.place, f"{what} should be a mapping")
        for pair in node.pairs:
            if pair.key not in known:
                near = get_close_matches(pair.key, known, n=1)
                listed = (f"{name} (needed)" if name in needed else name for name in known)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(listed)}"
                self.refuse(pair.place, f"unknown field {pair.key[:60]!r} in {what}", hint)
        for name in needed:
            if node.get(name) is None:
                self.refuse(node.place, f"{what} has no {name}")
        return node

    def items(self, node: Node | None, what: str, *, empty: bool = False) -> tuple[Node, ...]:
        """The items of a list, which says something unless it may be `empty`; none if absent."""
        if node is None:
            return ()
        if not isinstance(node, Sequence):
            self.refuse(node.place, f"{what} should be a list")
        if not node.items and not empty:
            self.refuse(node.place, f"{what} is empty", "leave it out, or say something")
        return node.items

    def text(self, node: Node | None, what: str, *, blank: bool = False) -> str:
        """`node` as text, alike to every reader; empty if it is absent.

        It says something, unless it may be `blank`.
        """
        if node is None:
            return ""
        if not isinstance(node, Scalar) or node.is_null or not (blank or node.text.strip()):
            self.refuse(node.place, f"{what} should be text")
        if not node.is_text:
            self.refuse(node.place, f"{what} is not text to every reader", "put it in quotes")
        return node.text

    def texts(
        self, node: Node | None, what: str, each: str, *, empty: bool = False
    ) -> tuple[str, ...]:
        """`node` as a list of text, none twice; `each` is what one of them is called."""
        found: list[str] = []
        for item in self.items(node, what, empty=empty):
            text = self.text(item, each)
            if text in found:
                self.refuse(item.place, f"{each} {text[:60]!r} given twice")
            found.append(text)
        return tuple(found)

    def day(self, node: Node | None) -> date:
        """`node` as the last day on which something holds; a date is no text to YAML readers."""
        assert node is not None  # a format says what it needs (`mapping`) before it asks
        with self.about(node):
            return day(node.text if isinstance(node, Scalar) else "")

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
        """`node` as a whole number, 0 or more, in decimal; `default` if it is absent."""
        if node is None:
            return default
        said = node.text if isinstance(node, Scalar) and not node.is_text else ""
        if not _WHOLE.fullmatch(said):
            self.refuse(node.place, f"{what} should be a whole number")
        return int(said)

    def flag(self, node: Node | None, what: str, *, default: bool) -> bool:
        """`node` as true or false; `default` if it is absent."""
        if node is None:
            return default
        try:
            found = self.value(node, what)
        except Misuse:
            found = None
        if isinstance(found, bool):
            return found
        said = node.text.lower() if isinstance(node, Scalar) else ""
        meant = "true" if said in _TRUE else "false" if said in _FALSE else ""
        hint = f"write {meant}, without quotes" if meant else ""
        return self.refuse(node.place, f"{what} should be true or false", hint)
