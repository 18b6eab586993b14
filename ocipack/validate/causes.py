"""From the errors of a schema engine to problems in the words of the API server.

One cause makes one problem: a misspelt required field is not reported a second time as missing,
and the same slip in every entry of a list is said once, with its places.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ocipack.validate.formats import NAMES, WORDS
from ocipack.validate.rules import Path, spell
from ocipack.validate.suggest import nearest

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_SECRET = re.compile(r"(?i)pass|token|secret|credential|private")
_SHOWN = 60
_PLACES = 3
_UNITS = {"Length": "characters", "Items": "items", "Properties": "fields"}
_BOUNDS = {
    "minimum": "must be at least",
    "maximum": "must be at most",
    "exclusiveMinimum": "must be above",
    "exclusiveMaximum": "must be below",
}


class Problem(NamedTuple):
    """One cause: a rule, where, what to say after the field's name, and what to do."""

    rule: str
    path: Path
    text: str
    meant: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads errors of one object.

    `schema_at` gives the schema node at a path of the schema; `discreet` keeps the object's
    values out of every message (Secrets).
    """

    schema_at: Callable[[Path], Mapping[str, Any]]
    discreet: bool = False

    def problems(self, errors: Iterable[ValidationError]) -> list[Problem]:
        """The causes behind `errors`, each once."""
        found = [problem for error in errors for problem in self.read(error)]
        meant = {(*problem.path[:-1], problem.meant) for problem in found if problem.meant}
        kept: dict[tuple[str, Path], Problem] = {}
        for problem in found:
            if problem.rule != "required-field" or problem.path not in meant:
                # a field and the type that it refers to may both say what it looks like
                kept.setdefault((problem.rule, problem.path), problem)
        return list(_once(kept.values()))

    def read(self, error: ValidationError) -> Iterator[Problem]:
        """What one error says."""
        path: Path = tuple(error.instance_path)
        for problem in _READERS.get(error.kind.name, _other)(self, error, path):
            if path[:1] == ("status",) and problem.rule not in {"unknown-field", "wrong-type"}:
                continue  # the server reads the types of a status, then drops it
            yield problem

    def required(self, error: ValidationError) -> bool:
        """Whether the value is a property that must be there."""
        path, steps = error.instance_path, tuple(error.schema_path)
        if not path or steps[-3:-2] != ("properties",):
            return False
        return path[-1] in self.schema_at(steps[:-3]).get("required", ())

    def show(self, error: ValidationError, word: str = "") -> str:
        """The value behind `word`, cut short; nothing if it is, or may be, a secret."""
        if self.discreet or any(_SECRET.search(str(part)) for part in error.instance_path):
            return ""
        text = str(error.instance)
        return f"{word} {text[:_SHOWN]!r}{'…' if len(text) > _SHOWN else ''}"


def _detail(error: ValidationError, name: str) -> Any:
    """An attribute that the kind of this error has; its type depends on the keyword."""
    return getattr(error.kind, name)


def _unknown(reader: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    # the schema's path ends in the keyword, its parent holds the properties
    known = reader.schema_at(tuple(error.schema_path)[:-1]).get("properties", {})
    present = error.instance if isinstance(error.instance, Mapping) else {}
    for name in sorted(_detail(error, "unexpected")):
        meant = nearest(name, set(known) - set(present))
        hint = f"did you mean `{meant}`?" if meant else ""
        yield Problem("unknown-field", (*path, name), "unknown field", meant, hint)


def _absent(_: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    yield Problem("required-field", (*path, _detail(error, "property")), "required")


def _type(reader: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    types = [one for one in _detail(error, "types") if one != "null"]
    if error.instance is None:
        if reader.required(error):
            yield Problem("required-field", path, "required, but it is null")
        else:
            yield Problem("wrong-type", path, "must not be null")
        return
    kind = _kind(error.instance)
    text = f"must be of type {' or '.join(types)}, not {kind}"
    yield Problem("wrong-type", path, text, hint=_quotes(error.instance, types))


def _quotes(value: object, types: list[str]) -> str:
    """What quotes have to do with a wrong type."""
    kind = _kind(value)
    if types == ["string"] and kind in {"integer", "number", "boolean"}:
        return "quote it"
    text = str(value)
    bare = text in {"true", "false"} if "boolean" in types else text.lstrip("-").isdecimal()
    wanted = {"integer", "number", "boolean"} & set(types)
    return "remove the quotes" if kind == "string" and wanted and bare else ""


def _kind(value: object) -> str:
    """What a value is, in the words of JSON."""
    if isinstance(value, bool):
        return "boolean"
    names = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _enum(reader: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    options = [str(one) for one in _detail(error, "options") if one not in ("", None)]
    listed = ", ".join(options)
    if error.instance in ("", None):
        yield Problem("required-field", path, f"required: one of {listed}")
        return
    meant = nearest(str(error.instance), options)
    text = f"unsupported value{reader.show(error)}: one of {listed}"
    hint = f"did you mean `{meant}`?" if meant else ""
    yield Problem("unsupported-value", path, text, hint=hint)


def _count(reader: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    limit, keyword = _detail(error, "limit"), error.kind.name
    if keyword.startswith("min") and limit == 1 and reader.required(error):
        yield Problem("required-field", path, "required, but it is empty")
        return
    bound = "least" if keyword.startswith("min") else "most"
    text = f"must have at {bound} {limit} {_UNITS[keyword[3:]]}"
    yield Problem("out-of-range", path, text)


def _bound(_: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    text = f"{_BOUNDS[error.kind.name]} {_detail(error, 'limit')}, not {error.instance}"
    yield Problem("out-of-range", path, text)


def _format(reader: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    name = str(_detail(error, "format"))
    text = WORDS.get(name) or f"must be in the format {name.removeprefix('crd-')}"
    shown = reader.show(error, ", not") if error.instance else "; it is empty"
    yield Problem("invalid-name" if name in NAMES else "invalid-format", path, text + shown)


def _pattern(reader: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    node = reader.schema_at(tuple(error.schema_path)[:-1])
    pattern = node.get("x-go-pattern") or _detail(error, "pattern")
    text = f"must match `{pattern}`{reader.show(error, ', not')}"
    yield Problem("pattern-mismatch", path, text)


def _key(reader: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    inner: ValidationError = _detail(error, "error")
    for problem in reader.read(inner):
        yield problem._replace(path=(*path, str(inner.instance)))


def _combined(reader: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    context: list[list[ValidationError]] = _detail(error, "context")
    missed = [alternative for alternative in context if alternative]
    words = "exactly one" if error.kind.name == "oneOf" else "at least one"
    if len(missed) < len(context):
        text = f"must meet {words} alternative, but meets {len(context) - len(missed)}"
    else:
        text = f"must meet {words} of: " + "; or ".join(
            " and ".join(_inner(reader, alternative)) for alternative in missed
        )
    yield Problem("schema-combination", path, text)


def _inner(reader: Reader, errors: list[ValidationError]) -> Iterator[str]:
    for error in errors[:_PLACES]:
        for problem in reader.read(error):
            yield f"{spell(problem.path)} {problem.text}"


def _other(_: Reader, error: ValidationError, path: Path) -> Iterator[Problem]:
    if error.kind.name == "not":
        text = "meets a combination that its schema forbids"
    else:
        text = f"does not meet `{error.kind.name}` of its schema"
    yield Problem("schema-combination", path, text)


_READERS: dict[str, Callable[[Reader, ValidationError, Path], Iterator[Problem]]] = {
    "additionalProperties": _unknown,
    "required": _absent,
    "type": _type,
    "enum": _enum,
    **dict.fromkeys(("minLength", "minItems", "minProperties"), _count),
    **dict.fromkeys(("maxLength", "maxItems", "maxProperties"), _count),
    **dict.fromkeys(_BOUNDS, _bound),
    "format": _format,
    "pattern": _pattern,
    "propertyNames": _key,
    "anyOf": _combined,
    "oneOf": _combined,
}


def _once(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Problems that differ only in the index of a list, as one with all its places."""
    groups: dict[tuple[object, ...], list[Problem]] = {}
    for problem in problems:
        shape = tuple("*" if isinstance(part, int) else part for part in problem.path)
        groups.setdefault((problem.rule, shape, problem.text), []).append(problem)
    for first, *rest in groups.values():
        if not rest:
            yield first
            continue
        places = ", ".join(spell(problem.path) for problem in rest[:_PLACES])
        more = f" and {len(rest) - _PLACES} more" if len(rest) > _PLACES else ""
        yield first._replace(text=f"{first.text} (also {places}{more})")
