"""The definitions of Flux's own kinds, read lazily from the derived data file.

`flux.xz` is one xz stream of lines, made by `scripts/make_flux_schemas.py`. The first is a JSON
header, each further one a CustomResourceDefinition without texts, as Flux installs it. Nothing is
read on import, and nothing at all where no object is of a group that is Flux's by its name.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from ocipack.k8s.schemas.packed import unpacked

VERSION: Final = "2.9"
"""The Flux whose definitions these are."""

_DOMAINS: Final = (".toolkit.fluxcd.io", ".extensions.fluxcd.io")


@cache
def _data() -> tuple[dict[str, Any], list[str]]:
    return unpacked("flux.xz")


def definitions(group: str) -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of an API group, in the order of the alphabet; else none."""
    if not group.endswith(_DOMAINS):
        return []
    header, lines = _data()
    return [json.loads(lines[number]) for number in header["groups"].get(group, ())]


def before(version: str) -> bool:
    """Whether `version`, as 2.8, is an older Flux than the one that is known."""
    return _numbers(version) < _numbers(VERSION)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def groups() -> tuple[str, ...]:
    """The API groups that Flux defines."""
    return tuple(_data()[0]["groups"])
