"""Chart.yaml as Helm reads it, and the JSON that Helm makes of it (helm v4, pkg/chart/v2).

Helm reads YAML into Go structs by way of JSON, and so do we: fields in any case, the last of a
repeated key, numbers where text is wanted as Go prints them, unknown fields left aside, control
characters taken out. Then it writes the struct: its fields in its order, empty ones left out.
What Helm refuses is IntegrityError, and so is the little of which we would not know the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NoReturn, Self

from ocipack.errors import IntegrityError
from ocipack.k8s.yaml.documents import Document, join, read
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.oci import jsontext

BYTES: Final = 1024 * 1024
"""Bytes of a Chart.yaml or requirements.yaml."""

CHART, REQUIREMENTS = "Chart.yaml", "requirements.yaml"

_SPACES: Final = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | frozenset(
    map(chr, range(0x2000, 0x200B))
)
"""What Go's unicode.IsSpace says yes to."""

_VERSION: Final = re.compile(
    r"v?[0-9]+(\.[0-9]+)?(\.[0-9]+)?(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_ALIAS: Final = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_DIGITS: Final = 15
"""Digits that a number may have where text is wanted: all readers agree on as many."""

_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]*\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", re.ASCII)

_PLAIN_EXPONENTS: Final = range(-4, 6)
"""Exponents for which Go's strconv.FormatFloat(x, 'g', -1, 64) writes none (shortest: 6)."""


def is_version(text: str) -> bool:
    """Whether Helm takes `text` for a version (Masterminds/semver, NewVersion)."""
    return _VERSION.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class _Node:
    """A value, and where it stands."""

    document: Document
    file: str
    value: Any
    path: tuple[str | int, ...] = ()

    def child(self, key: str | int) -> _Node:
        return _Node(self.document, self.file, self.value[key], (*self.path, key))

    def refuse(self, why: str) -> NoReturn:
        line, column = self.document.locate(join(*self.path))
        name = ".".join(map(str, self.path)) or "the file"
        raise IntegrityError(f"{self.file}:{line}:{column}: {name}: {why}")


_Decode = Callable[[_Node, Any], Any]
"""What a value is to Go, given what the field held before."""


def _text(node: _Node, old: Any) -> Any:
    value = node.value
    if value is None:
        return old or ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _number(node)
    return value if isinstance(value, str) else node.refuse("should be text")


def _number(node: _Node) -> str:
    """A number as Go prints it where text is wanted: `1.10` is 1.1, and 1e6 is 1e+06."""
    written = node.document.text(join(*node.path)) or ""
    if sum(character.isdigit() for character in written) > _DIGITS:
        node.refuse("a number of so many digits is not the same to every reader: put it in quotes")
    if not _FLOAT.fullmatch(written.replace("_", "")):
        return str(node.value)
    number = Decimal(repr(float(written.replace("_", "")))).normalize()
    if not number or number.adjusted() in _PLAIN_EXPONENTS:
        return format(number, "f")
    sign, digits, _ = number.as_tuple()
    rest = "".join(map(str, digits[1:]))
    return f"{'-' * sign}{digits[0]}{'.' if rest else ''}{rest}e{number.adjusted():+03d}"


def _flag(node: _Node, old: Any) -> Any:
    if node.value is None:
        return old or False
    return node.value if isinstance(node.value, bool) else node.refuse("should be true or false")


def _list(node: _Node, old: Any, each: _Decode) -> Any:
    """A list; Go reads its elements into those that were there before."""
    if node.value is None:
        return []
    if not isinstance(node.value, list):
        node.refuse("should be a list")
    before = [*(old or ()), *([None] * len(node.value))]
    return [each(node.child(i), before[i]) for i in range(len(node.value))]


def _texts(node: _Node, old: Any) -> Any:
    return _list(node, old, _text)


def _annotations(node: _Node, old: Any) -> Any:
    if node.value is None:
        return {}
    if not isinstance(node.value, dict):
        node.refuse("should be a mapping")
    return {**(old or {}), **{key: _text(node.child(key), None) for key in node.value}}


def _imports(node: _Node, old: Any) -> Any:
    """Import-values, which may hold anything: text, and mappings of text are what it means."""
    found = _list(node, old, lambda one, _: one.value)
    for one in found:
        texts = one.values() if isinstance(one, dict) else [one]
        if not all(isinstance(text, str) for text in texts):
            node.refuse("should hold names, or pairs of child and parent")
    return [dict(sorted(one.items())) if isinstance(one, dict) else one for one in found]


def _struct(fields: Mapping[str, _Decode]) -> _Decode:
    folded = {name.lower(): name for name in fields}

    def decode(node: _Node, old: Any) -> Any:
        if not isinstance(node.value, dict):
            node.refuse("should be a mapping")
        found = dict(old or {})
        for key in sorted(node.value):  # Go writes and reads the keys of a mapping in this order
            name = folded.get(key.lower())
            if name is not None:
                found[name] = fields[name](node.child(key), found.get(name))
        return found

    return decode


_MAINTAINER: Final[Mapping[str, _Decode]] = {"name": _text, "email": _text, "url": _text}
_DEPENDENCY: Final[Mapping[str, _Decode]] = {
    "name": _text,
    "version": _text,
    "repository": _text,
    "condition": _text,
    "tags": _texts,
    "enabled": _flag,
    "import-values": _imports,
    "alias": _text,
}
_ALWAYS: Final = ("name", "repository")
"""Fields of a dependency that are written when they are empty, too."""

_METADATA: Final[Mapping[str, _Decode]] = {
    "name": _text,
    "home": _text,
    "sources": _texts,
    "version": _text,
    "description": _text,
    "keywords": _texts,
    "maintainers": lambda node, old: _list(node, old, _struct(_MAINTAINER)),
    "icon": _text,
    "apiVersion": _text,
    "condition": _text,
    "tags": _text,
    "appVersion": _text,
    "deprecated": _flag,
    "annotations": _annotations,
    "kubeVersion": _text,
    "dependencies": lambda node, old: _list(node, old, _struct(_DEPENDENCY)),
    "type": _text,
}
_SANITIZED: Final = (
    *("name", "home", "sources", "description", "keywords", "icon", "condition", "tags"),
    *("appVersion", "kubeVersion"),
)


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a chart says of itself: the `fields` that are not empty, in Helm's order."""

    fields: Mapping[str, Any]

    @classmethod
    def read(cls, chart: bytes, requirements: bytes | None = None) -> Self:
        """Read a Chart.yaml, and the requirements.yaml that charts of Helm 2 have beside it.

        IntegrityError for what Helm would not load.
        """
        root = _root(chart, CHART)
        found = _struct(_METADATA)(root, {})
        found["apiVersion"] = found.get("apiVersion") or "v1"
        if requirements is not None:
            more = _root(requirements, REQUIREMENTS)
            found = _struct(_METADATA)(more, found)
        _judge(root, found)
        return cls(_written(found, _METADATA))

    @property
    def name(self) -> str:
        """The chart's name."""
        return str(self.fields["name"])

    @property
    def version(self) -> str:
        """The chart's version, with a `+` where its tag has a `_`."""
        return str(self.fields["version"])

    @property
    def app_version(self) -> str:
        """The version of what it installs: what images without a tag usually get."""
        return str(self.fields.get("appVersion", ""))

    @property
    def notes(self) -> Mapping[str, str]:
        """Its annotations."""
        found: Mapping[str, str] = self.fields.get("annotations", {})
        return found

    @property
    def config(self) -> bytes:
        """The JSON that Helm makes of it."""
        return jsontext.encode(self.fields)


def _root(data: bytes, file: str) -> _Node:
    if len(data) > BYTES:
        raise IntegrityError(f"{file}: longer than {BYTES} bytes")
    for document in read(data, Dialect.KUBECTL, strict=False, name=file):
        return _Node(document, file, document.value)
    raise IntegrityError(f"{file}: the file is empty")


def _judge(root: _Node, found: dict[str, Any]) -> None:
    """What Helm's Metadata.Validate does: clean what is text, refuse what is none of its charts."""
    _clean(found, _SANITIZED)
    for one in found.get("maintainers") or ():
        _clean(one, _MAINTAINER)
    name, version = found.get("name", ""), found.get("version", "")
    if not name or "/" in name or name in (".", ".."):
        root.refuse(f"not the name of a chart: {name[:80]!r}")
    if not is_version(version):
        root.refuse(f"not a version: {version[:80]!r}")
    if found.get("type", "") not in ("", "application", "library"):
        root.refuse("type is application or library")
    known: set[str] = set()
    for one in found.get("dependencies") or ():
        _clean(one, ("name", "version", "repository", "condition", "tags"))
        alias = one.get("alias", "")
        if alias and not _ALIAS.fullmatch(alias):
            root.refuse(f"not an alias: {alias[:80]!r}")
        called = alias or one.get("name", "")
        if called in known:
            root.refuse(f"two dependencies are called {called[:80]!r}")
        known.add(called)


def _clean(fields: dict[str, Any], names: Any) -> None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str):
            fields[name] = _printable(value)
        elif isinstance(value, list):
            fields[name] = [_printable(one) for one in value]


def _printable(text: str) -> str:
    spaced = (" " if character in _SPACES else character for character in text)
    return "".join(character for character in spaced if character.isprintable())


def _written(found: Mapping[str, Any], fields: Mapping[str, _Decode]) -> dict[str, Any]:
    """The fields as Go writes them: in order, without what is empty."""
    said: dict[str, Any] = {}
    for name in fields:
        value = found.get(name)
        if name == "maintainers":
            value = [_written(one, _MAINTAINER) for one in value or ()]
        elif name == "dependencies":
            value = [_written(one, _DEPENDENCY) for one in value or ()]
        elif name == "annotations":
            value = dict(sorted((value or {}).items()))
        if value or (fields is _DEPENDENCY and name in _ALWAYS):
            said[name] = value or ""
    return said
