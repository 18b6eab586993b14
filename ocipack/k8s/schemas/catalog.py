"""The built-in kinds of one Kubernetes version, read lazily from the derived data file.

`kubernetes.xz` is one xz stream of lines, made by `scripts/make_schemas.py`. The first is a JSON
header, each further one a definition in JSON Schema 2020-12. Nothing is read on import; reading
costs a few milliseconds once, and a definition is parsed only when it is asked for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from ocipack.errors import Misuse
from ocipack.k8s.schemas.packed import unpacked

_VERSION = re.compile(r"v?(1\.\d+)(\.\d+)?([-+].*)?")
_REFERENCE = re.compile(r'"\$ref":"#/\$defs/([^"]+)"')
OBJECT_META = "apimachinery.pkg.apis.meta.v1.ObjectMeta"


class Life(NamedTuple):
    """When a kind of an API version is served; an empty `since` is before the oldest known."""

    since: str
    removed: str
    deprecated: str
    instead: str


@cache
def _data() -> tuple[dict[str, Any], list[str]]:
    return unpacked("kubernetes.xz")


def versions() -> tuple[str, ...]:
    """The Kubernetes versions that are known, oldest first, as `1.25`."""
    return tuple(_data()[0]["versions"])


def time_zones() -> frozenset[str]:
    """The names of the time zones that an API server knows, and `UTC`."""
    return frozenset(_data()[0]["zones"])


def _api_rank(api_version: str) -> tuple[int, ...]:
    """Order of preference between versions of one group: v1 before v1beta2 before v1alpha1."""
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", api_version.rpartition("/")[2])
    if not found:
        return (0,)
    stage = {"alpha": 1, "beta": 2}.get(found[2] or "", 3)
    return stage, int(found[1]), int(found[3] or 0)


@dataclass(frozen=True, slots=True)
class Catalog:
    """What one Kubernetes version serves. `version` is one of `versions()`."""

    version: str
    index: int = field(init=False)

    def __post_init__(self) -> None:
        known = versions()
        if self.version not in known:
            raise Misuse(
                f"no schemas for Kubernetes {self.version}",
                hint=f"known are {known[0]} to {known[-1]}",
            )
        object.__setattr__(self, "index", known.index(self.version))

    @classmethod
    def of(cls, version: str = "") -> Catalog:
        """Catalog of `version`, written as people do (`1.31`, `v1.31.4`); empty is the newest.

        Raises Misuse for anything else and for versions that are not known.
        """
        if not version:
            return cls(versions()[-1])
        found = _VERSION.fullmatch(version)
        if not found:
            raise Misuse(
                f"{version!r} is no Kubernetes version", hint="write it as 1.31 or v1.31.4"
            )
        return cls(found[1])

    def find(self, api_version: str, kind: str) -> str:
        """Name of the definition of a served kind, or empty."""
        entry = _data()[0]["kinds"].get(api_version, {}).get(kind)
        return entry[0] if entry and entry[1] <= self.index <= entry[2] else ""

    def life(self, api_version: str, kind: str) -> Life | None:
        """When `kind` of `api_version` is served, or None if it never was in a known version."""
        header = _data()[0]
        key = f"{api_version} {kind}"
        if gone := header["gone"].get(key):
            return Life("", gone[0], "", gone[1])
        entry = header["kinds"].get(api_version, {}).get(kind)
        if not entry:
            return None
        known = versions()
        _, first, last = entry
        return Life(
            known[first] if first else "",
            known[last + 1] if last + 1 < len(known) else "",
            header["deprecated"].get(key, ""),
            header["instead"].get(key, "") or self.newest(api_version, kind),
        )

    def newest(self, api_version: str, kind: str) -> str:
        """The best other version of the same group that serves `kind`, or empty."""
        group = api_version.rpartition("/")[0]
        others = [api for api in self.serving(kind) if api.rpartition("/")[0] == group]
        return max((api for api in others if api != api_version), key=_api_rank, default="")

    def serving(self, kind: str) -> list[str]:
        """Each apiVersion that serves `kind`."""
        return [api for api in _data()[0]["kinds"] if self.find(api, kind)]

    def served(self, api_version: str) -> list[str]:
        """The kinds that `api_version` serves, in the order of the alphabet."""
        kinds = _data()[0]["kinds"].get(api_version, {})
        return [kind for kind in kinds if self.find(api_version, kind)]

    def api_versions(self) -> list[str]:
        """Each apiVersion that serves something."""
        return [api for api in _data()[0]["kinds"] if self.served(api)]

    @staticmethod
    def groups() -> frozenset[str]:
        """The API groups of Kubernetes itself, of all versions; the core group is empty."""
        header = _data()[0]
        names = [*header["kinds"], *(key.partition(" ")[0] for key in header["gone"])]
        return frozenset(name.rpartition("/")[0] for name in names)

    @staticmethod
    def namespaced(group: str, kind: str) -> bool:
        """Whether objects of a built-in kind live in a namespace; meaningless for other kinds."""
        return f"{group}/{kind}" not in _data()[0]["cluster"]

    def line(self, name: str) -> str:
        """The definition `name` as JSON text; raises KeyError if this version has none."""
        header, lines = _data()
        spans: list[tuple[int, int, int]] = header["definitions"][name]
        for first, last, number in spans:
            if first <= self.index <= last:
                return lines[number]
        raise KeyError(name)

    def definition(self, name: str) -> dict[str, Any]:
        """The definition `name`, parsed; the caller may keep but must not change it."""
        return _parsed(self.line(name))

    def document(self, name: str) -> str:
        """The definition `name` and all it refers to, as one JSON Schema document."""
        return f'{{"$ref":"#/$defs/{name}","$defs":{self.definitions(name)}}}'

    def definitions(self, *names: str) -> str:
        """`names` and all that they refer to, as the JSON text of a `$defs` object."""
        return "{" + ",".join(f'"{name}":{self.line(name)}' for name in self.closure(*names)) + "}"

    def closure(self, *names: str) -> list[str]:
        """`names` and all that they refer to, directly or not."""
        found: dict[str, None] = {}
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in found:
                found[name] = None
                todo += _REFERENCE.findall(self.line(name))
        return list(found)


@cache
def _parsed(line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(line)
    return found
