"""A place where an image or an artifact is named, and what is known about it."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from ocipack.errors import Misuse
from ocipack.oci.reference import Reference

Path: TypeAlias = tuple[str, ...]
Written: TypeAlias = Callable[[Path], str | None]
"""What is written at a path, whatever it means; None if no scalar is."""

_OPEN: Final = re.compile(r"\{\{|\$\(|\$\{|\*")


class Confidence(enum.Enum):
    """How sure it is that this is an image reference.

    CERTAIN is a field whose type says so, LIKELY one whose name does; what is only MAYBE one is
    reported and never rewritten.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    MAYBE = "maybe"


class Style(enum.Enum):
    """How a digest is written there.

    APPEND: behind the text of the scalar. FILL: into the empty `digest`. HEX: into an empty field
    that takes the hex digits alone. KEY: as a `digest` beside the tag.
    """

    APPEND = "append"
    FILL = "fill"
    HEX = "hex"
    KEY = "key"


@dataclass(frozen=True, slots=True)
class Site:
    """One place that names an image.

    `path` leads to what names it, `at` to the scalar that is edited. `text` is the reference as
    whoever pulls it reads it; `place` says for people what it is; `kind` is `image` or
    `artifact`. `reason` is why nobody can say what it names, empty if one can.
    """

    path: Path
    at: Path
    text: str
    place: str
    confidence: Confidence
    style: Style = Style.APPEND
    kind: str = "image"
    reason: str = ""

    @property
    def reference(self) -> Reference | None:
        """What is named, or None if nobody can say."""
        if self.reason:
            return None
        try:
            return Reference.familiar(self.text)
        except Misuse:
            return None


def judged(text: str) -> str:
    """Why `text` names no image that could be asked for; empty if it does."""
    if _OPEN.search(text):
        return "a template, a variable or a pattern, filled in later"
    try:
        Reference.familiar(text)
    except Misuse as e:
        return str(e)
    return ""


def is_open(text: str) -> bool:
    """Whether `text` is a template, a variable or a pattern, to be filled in later."""
    return _OPEN.search(text) is not None


def as_path(pointer: str) -> Path:
    """The path of an RFC 6901 pointer."""
    tokens = pointer.split("/")[1:]
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)
