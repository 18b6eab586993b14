"""What is to be judged, and what one look at it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ocipack.k8s.yaml import limits
from ocipack.k8s.yaml.scalars import Dialect

if TYPE_CHECKING:
    from ocipack.k8s.yaml.documents import Document

PARTED: Final = 256 * 1024
"""Bytes above which a source is judged in parts, by several processes."""

LARGE: Final = 4 * 1024 * 1024
"""Bytes above which the content is not kept: it is read once more."""

HELD: Final = 64 * 1024 * 1024
"""Bytes of all sources that are kept from the first look for the second."""

DEFINITION: Final = b"CustomResourceDefinition"
EXCUSE: Final = b"ocipack:ignore"


@dataclass(frozen=True, slots=True)
class Source:
    """Something to judge under a `name`; `open` gives its blocks, again each time.

    `named` says that the user named it, so that it must be a manifest. With `judged` false it
    is only asked for definitions of custom kinds: kustomize will build something else of it.
    """

    name: str
    open: Callable[[], Iterable[bytes]]
    named: bool = False
    judged: bool = True


@dataclass(slots=True)
class Look:
    """One source after the first look.

    `digest` is its SHA-256, `data` its content if there was room for it. `defines` says whether
    it may define custom kinds, and `documents` are what was read for that, each with whether it
    may be unportable; `excuses` whether a comment in it may excuse findings. `is_json` is only
    asked for kubectl, which reads JSON values one after another: they cannot be cut unread.
    """

    source: Source
    digest: bytes = b""
    data: bytes | None = None
    size: int = 0
    defines: bool = False
    excuses: bool = False
    is_json: bool = False
    documents: list[tuple[Document, bool]] | None = None

    @property
    def parted(self) -> bool:
        """Whether it is judged in parts."""
        return self.size > (limits.PIECE if self.is_json else PARTED)

    def blocks(self) -> Iterable[bytes]:
        """The content again."""
        return (self.data,) if self.data is not None else self.source.open()

    def hashed(self) -> Iterator[bytes]:
        """The content again; `digest` is then that of what was read now."""
        digest = sha256()
        for block in self.blocks():
            digest.update(block)
            yield block
        self.digest = digest.digest()


def look(source: Source, dialect: Dialect, room: int) -> Look:
    """Read `source` once; keep it if it is not large and fits into `room` bytes.

    Raises what opening and reading it raises.
    """
    made = Look(source)
    digest, tail = sha256(), b""
    kept: list[bytes] = []
    for block in source.open():
        if not made.size and dialect is Dialect.KUBECTL:
            made.is_json = block.lstrip()[:1] == b"{"
        digest.update(block)
        made.size += len(block)
        seen = tail + block
        made.defines = made.defines or DEFINITION in seen
        made.excuses = made.excuses or EXCUSE in seen
        tail = block[-len(DEFINITION) :]
        if made.size <= LARGE:
            kept.append(block)
    made.digest = digest.digest()
    if made.size <= min(LARGE, room):
        made.data = b"".join(kept)
    return made
