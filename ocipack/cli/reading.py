"""From paths on the command line to what `ocipack validate` judges raw, and what it renders."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError, Misuse, OcipackError, Unavailable
from ocipack.files.manifests import Listing, listing, reader
from ocipack.files.seam import printable, translated
from ocipack.report import Finding
from ocipack.tree.ignore import defaults
from ocipack.validate.inputs import KUSTOMIZATIONS, PROJECT, SUFFIXES, sort_out
from ocipack.validate.sources import Source

if TYPE_CHECKING:
    from ocipack.files.workspace import Workspace
    from ocipack.validate.roots import Roots

STDIN = "-"
STREAM = 16 * 1024 * 1024 * 1024
"""Bytes of standard input that are read, into a private file."""

CONTROL = 16 * 1024 * 1024
"""Bytes of a kustomization or an ignore file."""

_BLOCK = 1024 * 1024


@dataclass(slots=True)
class Directory:
    """A directory that was named, and what kustomize builds there; no `roots` if nothing.

    `files` are those that arrive, by their names below it: where each is.
    """

    path: str
    prefix: str
    roots: Roots | None = None
    files: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Gathered:
    """Everything that the paths name.

    `failures` are the paths that gave nothing, with the reason; `skipped` maps files to why they
    are not judged.
    """

    sources: list[Source] = field(default_factory=list)
    directories: list[Directory] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    failures: list[tuple[str, OcipackError]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gathering:
    """How to look: `ignored` patterns, whether to `render`, and a place for what is streamed.

    Names of files count from the one directory that was named, else from where it was run.
    """

    workspace: Callable[[], Workspace]
    ignored: tuple[str, ...] = ()
    render: bool = True

    def gather(self, paths: tuple[str, ...]) -> Gathered:
        """Look at every path. One that is bad does not stop the others."""
        found = Gathered()
        alone = len(paths) == 1
        for path in dict.fromkeys(paths):
            try:
                if path == STDIN:
                    found.sources.append(self._stream())
                else:
                    self._path(path, found, alone=alone)
            except OcipackError as e:
                found.failures.append((path, e))
        return found

    def below(self, path: str, prefix: str) -> Gathered:
        """Look at one directory, whose files get a `prefix` that says where it is."""
        found = Gathered()
        try:
            self._directory(path, prefix, listing(path), found)
        except OcipackError as e:
            found.failures.append((path, e))
        return found

    def _stream(self) -> Source:
        if sys.stdin.isatty():
            raise Misuse("`-` reads manifests from standard input, which is a terminal")
        again = self.workspace().spool(_bounded())
        return Source("<stdin>", again, named=True)

    def _path(self, path: str, found: Gathered, *, alone: bool) -> None:
        listed = listing(path)
        if not listed.single:
            prefix = "" if alone else f"{path.rstrip('/') or '/'}/"
            self._directory(path, prefix, listed, found)
            return
        name = os.path.normpath(path)
        if Path(name).name in KUSTOMIZATIONS:
            raise Misuse(
                f"{printable(path)}: a kustomization is no manifest",
                hint="name its directory, and what it builds is checked",
            )
        again = reader(path)
        if not Path(path).is_file():  # a pipe, which gives its content once
            again = self.workspace().spool(reader(path, special=True)())
        found.sources.append(Source(name, again, named=True))

    def _directory(self, path: str, prefix: str, listed: Listing, found: Gathered) -> None:
        left_out = defaults("\n".join(self.ignored))
        names = {n: p for n, p in listed.files.items() if not (self.ignored and left_out(n))}
        names.pop(PROJECT, None)
        found.findings += _odd(listed, prefix)
        result = sort_out(names, lambda name: content(names[name]))
        found.skipped |= {prefix + name: why for name, why in result.skipped.items()}
        directory = Directory(path, prefix, files={n: names[n] for n in result.arriving})
        found.directories.append(directory)
        used: frozenset[str] = frozenset()
        if self.render and result.kustomized:
            from ocipack.validate.roots import roots  # noqa: PLC0415 - only where something is built

            directory.roots = roots(result.arriving, lambda name: content(names[name]))
            used = directory.roots.used
        for name in result.manifests:
            raw = reader(names[name])
            found.sources.append(Source(prefix + name, raw, judged=name not in used))


def content(path: str) -> bytes:
    """A whole file that says how to read others."""
    found = bytearray()
    for block in reader(path)():
        found += block
        if len(found) > CONTROL:
            raise IntegrityError(f"{printable(path)}: more than {CONTROL} bytes")
    return bytes(found)


def _odd(listed: Listing, prefix: str) -> Iterator[Finding]:
    """What stands among manifests and cannot be read as one."""
    for name in listed.special:
        if name.endswith(SUFFIXES):
            yield Finding(
                "special-file",
                "a device, socket or pipe",
                file=prefix + name,
                hint="name it by itself if its content is wanted",
            )
    for name, error in listed.broken.items():
        yield Finding("file-unreadable", str(error), file=prefix + name, hint=error.hint)


def _bounded() -> Iterator[bytes]:
    """Standard input, block by block."""
    left = STREAM
    while True:
        with translated("standard input"):
            block = os.read(sys.stdin.fileno(), _BLOCK)
        if not block:
            return
        left -= len(block)
        if left < 0:
            raise Unavailable(f"standard input: more than {STREAM} bytes")
        yield block
