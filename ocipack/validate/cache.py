"""Verdicts kept between runs, found again by what decides them.

The key is a digest of everything that a verdict depends on: the content, the options, the
definitions of custom kinds, and this program (its source and its schemas). An entry carries a
digest of itself; one that was damaged, cut short or written by somebody else's version is not
there. Where entries are kept is the caller's business, as is who may write there: whoever can
write to the cache can make a bad manifest pass.

An entry holds what a report would print, never the content itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.machinery import SourceFileLoader as FileLoader
from typing import Final

from ocipack import __version__
from ocipack.errors import IntegrityError
from ocipack.k8s import schemas
from ocipack.validate.options import Options
from ocipack.validate.verdict import Verdict

FORMAT: Final = "1"
UNREADABLE: Final = "yaml-unreadable"
_SIZE: Final = 32  # bytes of SHA-256


@dataclass(frozen=True, slots=True)
class Cache:
    """Two callables: `load` gives the entry of a key (hex) or None, `save` keeps one.

    Neither raises: a cache that cannot be read or written is an empty one.
    """

    load: Callable[[str], bytes | None]
    save: Callable[[str, bytes], None]

    def find(self, key: str) -> Verdict | None:
        """The verdict under `key`, None if there is none that is whole."""
        entry = self.load(key)
        if entry is None or sha256(key.encode() + entry[_SIZE:]).digest() != entry[:_SIZE]:
            return None
        try:
            return Verdict.load(entry[_SIZE:])
        except IntegrityError:
            return None

    def keep(self, key: str, verdict: Verdict) -> None:
        """Keep `verdict`, unless it says something about other files than its own.

        What could not be read is not kept either: the reason may quote any text of the file.
        """
        quotes = any(finding.rule == UNREADABLE for finding in verdict.findings)
        if not verdict.strays and not quotes:
            body = verdict.dump()
            self.save(key, sha256(key.encode() + body).digest() + body)


@dataclass(frozen=True, slots=True)
class Keys:
    """Makes keys: `context` is the digest of all that is the same for every file of a run."""

    context: bytes

    @classmethod
    def of(cls, options: Options, definitions: list[bytes]) -> Keys:
        """Keys for runs with these options and these digests of definitions of custom kinds."""
        parts = (FORMAT, __version__, _program(), repr(options), *(d.hex() for d in definitions))
        return cls(sha256("\n".join(parts).encode()).digest())

    def key(self, content: bytes, *, named: bool) -> str:
        """The key of a file whose SHA-256 is `content`."""
        return sha256(self.context + content + bytes([named])).hexdigest()


@cache
def _program() -> str:
    """A digest of all schemas; the version stands for the code."""
    loader = schemas.__loader__
    assert isinstance(loader, FileLoader)  # what Python installs packages for
    digest = sha256()
    for name in ("kubernetes.xz", "flux.xz"):
        digest.update(sha256(loader.get_data(f"{schemas.__path__[0]}/{name}")).digest())
    return digest.hexdigest()
