"""Text that kubectl and kustomize read differently: what it is depends on the way to the cluster.

`helm` and `kubectl apply` read as kubectl does, Flux and `kubectl apply -k` as kustomize does.
Reading a document notices at no cost whether it holds such text (`Reader.odd`) and `folded` finds
the other cause; the second pass here says what and where, and is made for those documents alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from yaml.events import ScalarEvent

from ocipack.k8s.yaml.documents import join
from ocipack.k8s.yaml.events import at, steps
from ocipack.k8s.yaml.scalars import Dialect, ScalarError, plain, portable

_FOLDED: Final = re.compile(rb"[:\-?][ \t]+(?:[&!][^\s]*[ \t]+)*>[-+0-9]*[ \t]*(?:#.*)?\r?\n")
_CHANGED: Final = re.compile(r"\n[ \t]|\n\n\Z")
_ANNOTATIONS: Final = ("metadata", "annotations")
QUOTE: Final = "quote it, and every reader takes it for text"
KEEP: Final = "write it with | instead of >, or quote it"


def folded(chunk: bytes) -> bool:
    """Whether `chunk` may hold a folded block text."""
    return (b" >" in chunk and _FOLDED.search(chunk) is not None) or b"\t>" in chunk


class Unportable(NamedTuple):
    """What stands at `line` and `column` of a chunk (from 1), below `pointer`."""

    pointer: str
    line: int
    column: int
    message: str
    hint: str


def unportable(chunk: bytes) -> Iterator[Unportable]:
    """Every text of the first document of `chunk` that the two readers take for different values.

    The chunk must be one that can be read.
    """
    for path, event, is_key in steps(chunk, keys=True):
        if not isinstance(event, ScalarEvent) or event.tag is not None:
            continue
        message, hint = "", QUOTE
        if event.style == ">" and _CHANGED.search(event.value):
            message = "kustomize adds an empty line to folded text with deeper or empty last lines"
            hint = KEEP
        elif event.implicit[0]:  # not quoted
            annotation = not is_key and path[-3:-1] == _ANNOTATIONS
            message = _differs(event.value, annotation=annotation)
        if message:
            line, column = at(event)
            yield Unportable(join(*path), line, column, message, hint)


def _differs(text: str, *, annotation: bool) -> str:
    """How the two readers see an unquoted scalar differently, or empty."""
    theirs, flux = _shown(text, Dialect.KUBECTL), _shown(text, Dialect.FLUX)
    if annotation:
        if theirs.startswith("text"):
            return ""  # kustomize keeps the text of an annotation, dates too
        return f"kubectl refuses the annotation {text}, which is {theirs}; kustomize makes it text"
    if portable(text):
        return ""
    return f"{text} is {theirs} to kubectl and {flux} to kustomize"


def _shown(text: str, dialect: Dialect) -> str:
    try:
        value: Any = plain(text, dialect)
    except ScalarError:
        return "nothing it can read"
    if isinstance(value, str):
        return "text" if value == text else f"text ({value})"
    if value is None:
        return "null"
    return ("true" if value else "false") if isinstance(value, bool) else "a number"
