"""The project file, `ocipack.yaml`: what a project decides for itself.

apiVersion: ocipack.dev/v1alpha1
validate:
  ignore:
    - rule: image-digest
      path: overlays/staging/**        # of the tree; ** is any number of directories
      object: Deployment shop/*        # kind namespace/name; path, object or both
      owner: team-shop
      reason: the registry of the test cluster rewrites digests
      until: 2027-01-31                # the last day

It is read strictly: whatever is not described here is Misuse that names file, line and column.
The same is said for machines by docs/schemas/project-v1alpha1.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, NoReturn

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Mapping, Node, Place, Scalar, Sequence, compose
from ocipack.rules import RULES
from ocipack.tree.ignore import PROJECT_FILE

API: Final = "ocipack.dev/v1alpha1"
"""The version of the file's format."""

FILE: Final = PROJECT_FILE
"""How the file is called; at the top of a tree it is never packed."""

BYTES: Final = 1024 * 1024
"""The file is at most this long."""

_GLOB: Final = 500
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FIELDS: Final = ("rule", "path", "object", "owner", "reason", "until")


@dataclass(frozen=True, slots=True)
class Ignore:
    """One excuse: findings of `rule` at files like `path`, about objects like `object`.

    An empty glob fits all. `until` is the last day on which it holds; `file`, `line` and `column`
    say where it is written. Raises Misuse for an unknown rule, and for one that nobody may ignore.
    """

    rule: str
    owner: str
    reason: str
    until: date
    path: str = ""
    object: str = ""
    file: str = FILE
    line: int = 0
    column: int = 0

    def __post_init__(self) -> None:
        check_rule(self.rule)
        if not self.owner.strip() or not self.reason.strip():
            raise Misuse("an ignore needs an owner and a reason")

    @property
    def place(self) -> str:
        """`file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}"

    def covers(self, file: str, subject: str) -> bool:
        """Whether the globs fit a finding in `file` about `subject`."""
        return fits(self.path, file) and fits(self.object, subject)


@dataclass(frozen=True, slots=True)
class Project:
    """What a project file says."""

    ignores: tuple[Ignore, ...] = ()

    @classmethod
    def parse(cls, data: bytes, *, file: str = FILE) -> Project:
        """Read the content of the file called `file`; Misuse says what is wrong, and where."""
        reader = _Reader(file)
        root = reader.document(data)
        validate = reader.mapping(root.get("validate"), "validate", ("ignore",))
        listed = validate.get("ignore") if validate is not None else None
        return cls(tuple(reader.ignore(node) for node in reader.items(listed, "ignore")))


def check_rule(rule: str) -> None:
    """Misuse if `rule` is unknown, or may not be ignored."""
    if rule not in RULES:
        near = get_close_matches(rule, RULES, n=1)
        hint = f"did you mean {near[0]}?" if near else "see `ocipack rules list`"
        raise Misuse(f"there is no rule {rule[:60]!r}", hint=hint)
    if not RULES[rule].ignorable:
        raise Misuse(f"rule {rule} cannot be ignored", hint=f"see `ocipack rules explain {rule}`")


def day(text: str) -> date:
    """The date that `text` (YYYY-MM-DD) names, else Misuse."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise Misuse(
        f"{text[:60]!r} is no date", hint="write YYYY-MM-DD, the last day on which it holds"
    )


def fits(glob: str, text: str) -> bool:
    """Whether `glob` (`*` and `?` within a part, `**` across `/`) is all of `text`."""
    return not glob or _pattern(glob).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    split = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(pieces.get(part, re.escape(part)) for part in split), re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Reader:
    file: str

    def refuse(self, place: Place, message: str, hint: str = "") -> NoReturn:
        raise Misuse(f"{self.file}:{place.line}:{place.column}: {message}", hint=hint)

    def document(self, data: bytes) -> Mapping:
        """The top of the file, its version checked."""
        if len(data) > BYTES:
            self.refuse(Place(1, 1), f"longer than {BYTES} bytes")
        composed = compose(data)
        for problem in composed.problems:
            self.refuse(problem.place, problem.message)
        if composed.root is None:
            self.refuse(Place(1, 1), "the file is empty", f"begin with apiVersion: {API}")
        root = self.mapping(composed.root, "the file", ("apiVersion", "validate"))
        assert root is not None  # only an absent node gives None
        version = root.get("apiVersion")
        if version is None:
            self.refuse(root.place, "apiVersion is missing", f"write apiVersion: {API}")
        if self.text(version, "apiVersion") != API:
            self.refuse(version.place, f"apiVersion is not {API}")
        return root

    def mapping(self, node: Node | None, what: str, fields: Iterable[str]) -> Mapping | None:
        """`node` as a mapping with no other than these fields; None if it is absent."""
        if node is None:
            return None
        if not isinstance(node, Mapping):
            self.refuse(node.place, f"{what} should be a mapping")
        for pair in node.pairs:
            if pair.key not in fields:
                near = get_close_matches(pair.key, list(fields), n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(fields)}"
                self.refuse(pair.place, f"unknown field {pair.key[:60]!r}", hint)
        return node

    def items(self, node: Node | None, what: str) -> tuple[Node, ...]:
        """The items of a list; none if it is absent."""
        if node is None:
            return ()
        if not isinstance(node, Sequence):
            self.refuse(node.place, f"{what} should be a list")
        return node.items

    def text(self, node: Node, what: str) -> str:
        """`node` as text that says something, alike to every reader."""
        if not isinstance(node, Scalar) or node.is_null or not node.text.strip():
            self.refuse(node.place, f"{what} should be text")
        if not node.is_text:
            self.refuse(node.place, f"{what} is not text to every reader", "put it in quotes")
        return node.text

    def ignore(self, node: Node) -> Ignore:
        """One entry of the list."""
        entry = self.mapping(node, "an ignore", _FIELDS)
        assert entry is not None
        said = {
            pair.key: self.text(pair.value, pair.key) for pair in entry.pairs if pair.key != "until"
        }
        missing = [name for name in ("rule", "owner", "reason") if name not in said]
        until = entry.get("until")
        if missing or until is None:
            self.refuse(entry.place, f"the ignore has no {(*missing, 'until')[0]}")
        if "path" not in said and "object" not in said:
            hint = 'path: "**" is everywhere'
            self.refuse(entry.place, "the ignore has neither path nor object", hint)
        for pair in entry.pairs:
            if pair.key in ("path", "object") and len(said[pair.key]) > _GLOB:
                self.refuse(pair.value.place, f"{pair.key} is longer than {_GLOB} characters")
        place = next(p.value.place for p in entry.pairs if p.key == "rule")
        try:
            check_rule(said["rule"])
            place = until.place
            last = day(until.text if isinstance(until, Scalar) else "")
        except Misuse as e:
            self.refuse(place, str(e), e.hint)
        at = entry.place
        return Ignore(**said, until=last, file=self.file, line=at.line, column=at.column)
