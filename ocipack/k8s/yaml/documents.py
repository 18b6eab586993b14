"""A stream of documents, split as kubectl and kustomize split it: before any YAML is parsed.

Both refuse text behind a separator, and read the first document of each piece (`pieces`). kubectl
reads a stream that begins with `{` as JSON values one after another; kustomize reads JSON as YAML.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from yaml.events import ScalarEvent

from ocipack.errors import IntegrityError
from ocipack.k8s.yaml import limits
from ocipack.k8s.yaml.events import YamlError, at, steps
from ocipack.k8s.yaml.pieces import WIDE, Piece, cut
from ocipack.k8s.yaml.scalars import INT64, Dialect, whole
from ocipack.k8s.yaml.values import Reader


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its `value`, its `index` in the stream from 0, the `line` it begins on from 1.

    `chunk` is the text it was read from, kept to find positions when somebody asks.
    """

    value: Any
    index: int
    line: int
    chunk: bytes

    def locate(self, pointer: str) -> tuple[int, int]:
        """Line and column, from 1, of what an RFC 6901 `pointer` names, or of what holds it.

        What stands below its key is named by the key.
        """
        return self.places([pointer])[pointer]

    def places(self, pointers: Collection[str]) -> dict[str, tuple[int, int]]:
        """What `locate` says of each of `pointers`, in one pass however many there are."""
        wanted = {pointer: split(pointer) for pointer in pointers}
        parts = {path[:n] for path in wanted.values() for n in range(len(path) + 1)}
        known: dict[tuple[str, ...], tuple[int, int]] = {(): (self.line, 1)}
        left = len(parts)
        for path, event, is_key in steps(self.chunk, keys=True) if left else ():
            if path not in parts:
                continue
            line, column = at(event)
            place = (self.line + line - 1, column)
            if is_key or path not in known or known[path][0] == place[0] or not path:
                known[path] = place
            left -= not is_key
            if not left:
                break
        return {
            pointer: next(known[path[:n]] for n in range(len(path), -1, -1) if path[:n] in known)
            for pointer, path in wanted.items()
        }

    def text(self, pointer: str) -> str | None:
        """The scalar at `pointer` as it is written, whatever it means; None if it is none."""
        wanted = split(pointer)
        for path, event, _ in steps(self.chunk):
            if path == wanted:
                return event.value if isinstance(event, ScalarEvent) else None
        return None


def split(pointer: str) -> tuple[str, ...]:
    """The reference tokens of an RFC 6901 JSON pointer."""
    tokens = pointer.split("/")[1:]
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def join(*tokens: str | int) -> str:
    """An RFC 6901 JSON pointer of `tokens`."""
    return "".join("/" + str(t).replace("~", "~0").replace("/", "~1") for t in tokens)


def read(
    data: bytes, dialect: Dialect, *, strict: bool = True, name: str = ""
) -> Iterator[Document]:
    """Every document of `data` that holds something, in order.

    With `strict` what the dialect's reader would lose in silence is an error too: the second
    document of a piece, a key given twice (kubectl), bytes that are not text (kubectl). Without
    it the reading is exactly theirs. Raises YamlError that begins with `name:line:column`.
    """
    if len(data) > limits.BYTES:
        raise IntegrityError(f"{name or 'input'}: more than {limits.BYTES} bytes of YAML")
    try:
        if dialect is Dialect.KUBECTL:
            yield from _kubectl(data, strict=strict)
        else:
            yield from _chunks(data, dialect, strict=strict)
    except YamlError as e:
        place = f"{name}:{e.line}:{e.column}" if name else f"line {e.line}, column {e.column}"
        raise type(e)(f"{place}: {e}", e.line, e.column, hint=e.hint) from e


def _kubectl(data: bytes, *, strict: bool) -> Iterator[Document]:
    if not data.startswith(WIDE):
        data = _text(data, strict=strict)
    if data.lstrip()[:1] == b"{":
        values = _json(data, strict=strict)
        if values is not None:
            yield from values
            return
    yield from _chunks(data, Dialect.KUBECTL, strict=strict)


def _text(data: bytes, *, strict: bool) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError as e:
        if strict:
            before = data[: e.start]
            column = len(before) - before.rfind(b"\n")
            raise YamlError("bytes that are not UTF-8", before.count(b"\n") + 1, column) from e
        return data.decode(errors="replace").encode()
    return data


def _chunks(data: bytes, dialect: Dialect, *, strict: bool) -> Iterator[Document]:
    reader = Reader(dialect, strict=strict)
    for index, piece in enumerate(cut((data,), dialect)):
        if index >= limits.DOCUMENTS:
            raise YamlError(f"more than {limits.DOCUMENTS} documents", piece.line, 1)
        found = parsed(reader, piece, index)
        if found is not None:
            yield found


def pieces(data: bytes, dialect: Dialect) -> Iterator[tuple[bytes, int]]:
    """The parts of `data` between separators, each with the line it begins on, from 1.

    Raises YamlError for text behind a separator.
    """
    for piece in cut((data,), dialect):
        if piece.fault:
            raise YamlError(piece.fault, piece.fault_line, 1)
        yield piece.chunk, piece.line


def parsed(reader: Reader, piece: Piece, index: int) -> Document | None:
    """The document in one piece of a stream, None if there is nothing in it.

    Raises YamlError whose line counts in the stream. What its reader would lose is an error too,
    unless it was told not to be strict.
    """
    line = piece.line
    if piece.fault:
        raise YamlError(piece.fault, piece.fault_line, 1)
    try:
        found = reader.read(piece.chunk)
    except YamlError as e:
        raise type(e)(str(e), e.line + line - 1, e.column, hint=e.hint) from e
    if found is not None and found.more:
        place = line + found.more - 1
        raise YamlError("a second document without '---' before it", place, 1)
    if found is None or found.value is None:
        return None
    return Document(found.value, index, line, piece.chunk)


def _json(data: bytes, *, strict: bool) -> list[Document] | None:
    """JSON values one after another, or None if the first is not JSON: then it may be YAML."""
    text = data.decode()
    decoder = json.JSONDecoder(
        object_pairs_hook=_pairs if strict else dict,
        parse_float=lambda digits: whole(float(digits)),
        parse_int=_integer,
        parse_constant=_constant,
    )
    found: list[Document] = []
    end = 0
    while (start := end + len(text[end:]) - len(text[end:].lstrip())) < len(text):
        line = text.count("\n", 0, start) + 1
        try:
            value, end = decoder.raw_decode(text, start)
        except _Twice as e:
            raise YamlError(str(e), line, 1) from e
        except (ValueError, RecursionError) as e:
            if not found:
                return None
            raise YamlError(f"not JSON: {e}", line, 1) from e
        found.append(Document(value, len(found), line, text[start:end].encode()))
    return found


class _Twice(ValueError):
    """A member named twice."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _Twice(f"key {name[:60]!r} is given twice")
            seen.add(name)
    return found


def _integer(digits: str) -> int | float:
    value = float(digits)
    exact = int(digits) if abs(value) < 2 * INT64 else 0
    return exact if -INT64 <= exact < INT64 and exact else whole(value)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
