"""Changing single scalars of a YAML file, and not one byte besides.

A file is never written anew from what it means: comments, anchors, quotes, line ends, blank lines
and the order of keys are its author's. An `Edit` replaces a span of bytes. Where the spans are is
read from libyaml's marks; that the result means what it should is never taken for granted: it is
read again, and compared with what it meant before (`strays`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from yaml.events import MappingStartEvent, ScalarEvent, SequenceStartEvent

from ocipack.errors import Misuse, Rejected
from ocipack.k8s.yaml.documents import Document, read
from ocipack.k8s.yaml.events import YamlError, steps
from ocipack.k8s.yaml.scalars import Dialect, ScalarError, plain

Path: TypeAlias = tuple[str, ...]
"""Keys and indices that lead to a node, each as text."""

MISSING: Final = object()
"""What stands at a path that leads nowhere."""

_BOM: Final = "\ufeff"
_PROPERTIES: Final = re.compile(r"(?:[&!][^\s,\[\]{}]*[ \t]+)*")
_SAFE: Final = re.compile(r"[!#-\[\]-~]*")  # printable ASCII without space, quote and backslash
_COMMENT: Final = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?P<end>\r\n|\n|\Z)")
_NO_QUOTE: Final = re.compile(r"[^'\"\\\s]*")


class Uneditable(Rejected):
    """A scalar that cannot be changed by replacing its bytes; the message says why."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A scalar as it is written.

    `start` and `end` are characters of the document's text, anchor and tag left out, quotes
    included. `style` is libyaml's: empty for plain, else the quote or the block indicator.
    `column` is where its key begins, from 0; -1 without a key, or inside `{}` or `[]`.
    """

    text: str
    start: int
    end: int
    style: str
    column: int
    in_flow: bool


@dataclass(frozen=True, slots=True)
class Sheet:
    """One document of a file: its meaning, its text, and where in the file that text begins."""

    document: Document
    start: int
    text: str
    slots: Mapping[Path, Slot]

    def written(self, path: Path) -> str | None:
        """The scalar at `path` as it is written; None for a collection, or behind an alias."""
        slot = self.slots.get(path)
        return slot.text if slot is not None else None

    def at(self, index: int) -> int:
        """The offset in the file, in bytes, of a character of the text."""
        if self.text.isascii():
            return self.start + index
        return self.start + len(self.text[:index].encode())


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the bytes from `start` to before `end` by `new`. Misuse unless start ≤ end."""

    start: int
    end: int
    new: bytes

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise Misuse(f"not a span: {self.start}-{self.end}")


def sheets(data: bytes, *, name: str = "") -> list[Sheet]:
    """Every document of a file as kustomize reads it, with the places of its scalars.

    Raises IntegrityError, mostly YamlError with its place, for what cannot be read.
    """
    starts = [0, *(match.end() for match in re.finditer(b"\n", data))]
    found = []
    for document in read(data, Dialect.FLUX, name=name):
        start = starts[document.line - 1]
        if not data.startswith(document.chunk, start):
            raise YamlError(f"{name}: not in UTF-8", document.line, 1)
        try:
            text = document.chunk.decode()
        except UnicodeDecodeError as e:
            raise YamlError(f"{name}: not in UTF-8", document.line, 1) from e
        found.append(Sheet(document, start, text, _slots(text)))
    return found


def _slots(text: str) -> dict[Path, Slot]:
    shift = len(_BOM) if text.startswith(_BOM) else 0  # libyaml does not count it
    found: dict[Path, Slot] = {}
    flows: dict[Path, bool] = {}
    columns: dict[Path, int] = {}
    for path, event, is_key in steps(text[shift:], keys=True):
        mark: Any = event.start_mark
        in_flow = flows.get(path[:-1], False) if path else False
        if is_key:
            columns[path] = mark.column + (shift if mark.line == 0 else 0)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            flows[path] = in_flow or bool(event.flow_style)
        elif isinstance(event, ScalarEvent):
            end: Any = event.end_mark
            start = mark.index + shift
            if event.anchor or event.tag:
                skipped = _PROPERTIES.match(text, start, end.index + shift)
                start = skipped.end() if skipped else start
            column = -1 if in_flow else columns.get(path, -1)
            style = event.style or ""
            found[path] = Slot(event.value, start, end.index + shift, style, column, in_flow)
    return found


def append(sheet: Sheet, path: Path, tail: str) -> Edit:
    """Let the scalar at `path` end in `tail`, in quotes if a reader could else mistake it."""
    slot = _slot(sheet, path, tail)
    if slot.style:
        return _inserted(sheet, slot.end - 1, tail)
    if reads_as_text(slot.text) and reads_as_text(slot.text + tail):
        return _inserted(sheet, slot.end, tail)
    if not _SAFE.fullmatch(slot.text):
        raise Uneditable("it would need quotes")
    new = f'"{slot.text}{tail}"'
    return Edit(sheet.at(slot.start), sheet.at(slot.end), new.encode())


def fill(sheet: Sheet, path: Path, text: str) -> Edit:
    """Write `text` into the scalar at `path`: between quotes, or where nothing is written yet."""
    slot = _slot(sheet, path, text)
    if slot.text:
        raise Uneditable("something is written there already")
    if slot.style:
        return _inserted(sheet, slot.end - 1, text)
    space = "" if sheet.text[slot.start - 1 : slot.start].isspace() else " "
    value = text if reads_as_text(text) else f'"{text}"'
    return _inserted(sheet, slot.start, space + value)


def replace(sheet: Sheet, path: Path, text: str) -> Edit:
    """Write `text` in the place of the scalar at `path`, in quotes if a reader could mistake it."""
    slot = _slot(sheet, path, text)
    start, end = sheet.at(slot.start), sheet.at(slot.end)
    if slot.style:
        return Edit(start + 1, end - 1, text.encode())
    value = text if reads_as_text(text) else f'"{text}"'
    return Edit(start, end, value.encode())


def follow(sheet: Sheet, path: Path, key: str, text: str) -> Edit:
    """Add the pair `key: text` behind the scalar at `path`: on a line of its own, or in its {}."""
    slot = _slot(sheet, path, text)
    value = text if reads_as_text(text) else f'"{text}"'
    if slot.in_flow:
        quote = '"' if slot.style == '"' else ""
        value = f'"{text}"' if quote else value
        return _inserted(sheet, slot.end, f", {quote}{key}{quote}: {value}")
    if slot.column < 0:
        raise Uneditable("there is no place for a second key")
    rest = _COMMENT.match(sheet.text, slot.end)
    if rest is None:
        raise Uneditable("something else stands on its line")
    end = rest["end"] or ("\r\n" if "\r\n" in sheet.text else "\n")
    line = f"{' ' * slot.column}{key}: {value}"
    if rest["end"]:
        return _inserted(sheet, rest.end(), f"{line}{end}")
    return _inserted(sheet, rest.end(), f"{end}{line}")


def reads_as_text(text: str) -> bool:
    """Whether every reader takes an unquoted `text` for just that text."""
    try:
        return all(plain(text, dialect) == text for dialect in Dialect)
    except ScalarError:
        return False


def _slot(sheet: Sheet, path: Path, new: str) -> Slot:
    """The scalar at `path`, if it can be changed in place."""
    if not _NO_QUOTE.fullmatch(new) or not _SAFE.fullmatch(new):
        raise Uneditable("what should be written is not plain ASCII")
    slot = sheet.slots.get(path)
    if slot is None:
        raise Uneditable("it stands behind an alias, or is no scalar")
    if slot.style in ("|", ">"):
        raise Uneditable("it is written as a block of text")
    raw = sheet.text[slot.start : slot.end]
    if "\n" in raw or "\r" in raw:
        raise Uneditable("it is written over several lines")
    if slot.style and not (len(raw) > 1 and raw[0] == raw[-1] == slot.style):
        raise Uneditable("its quotes are not where they should be")
    if not slot.style and raw != slot.text:
        raise Uneditable("it does not stand there as it reads")
    return slot


def _inserted(sheet: Sheet, index: int, text: str) -> Edit:
    place = sheet.at(index)
    return Edit(place, place, text.encode())


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """`data` with every edit made, equal ones once; Misuse if two of them overlap."""
    pieces: list[bytes] = []
    end = 0
    for number, edit in enumerate(sorted(set(edits))):
        if edit.start < end or (number and edit.start == end and edit.end == end):
            raise Misuse(f"two edits at byte {edit.start}")
        pieces += [data[end : edit.start], edit.new]
        end = edit.end
    if end > len(data):
        raise Misuse(f"an edit beyond the end, at byte {end}")
    return b"".join((*pieces, data[end:]))


def strays(
    before: Sequence[Sheet], after: bytes, intended: Mapping[tuple[int, Path], str]
) -> list[tuple[int, Path]]:
    """Where `after` means something else than `before` and than `intended` says.

    `intended` maps document and path to the text that may now be there. When there are no longer
    as many documents, or they cannot be read, all of them are strays.
    """
    everything: list[tuple[int, Path]] = [(sheet.document.index, ()) for sheet in before]
    try:
        found = sheets(after)
    except Rejected:
        return everything
    if [s.document.index for s in found] != [s.document.index for s in before]:
        return everything
    bad: list[tuple[int, Path]] = []
    for old, new in zip(before, found, strict=True):
        index = old.document.index
        for path, value in differences(old.document.value, new.document.value):
            if intended.get((index, path)) != value:
                bad.append((index, path))
    return bad


def differences(old: Any, new: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every path at which `new` differs from `old`, with what is there now (or MISSING)."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            here = (*path, str(key))
            yield from differences(old.get(key, MISSING), new.get(key, MISSING), here)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, (*path, str(index)))
    elif type(old) is not type(new) or old != new:
        yield path, new


def value_at(value: Any, path: Path) -> Any:
    """What stands at `path` of a document's value, aliases followed; MISSING if nothing does."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(key, MISSING)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value
