"""What a path in a kustomization may look like, and what it names in the tree."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

FILE_NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""How a kustomization file may be called; a directory may hold one of them."""

_ADDRESS: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*::?/?/?"  # https://, file://, git::, s3::, gh:, host:path, c:
    r"|[^/]*@"  # git@host
    r"|github\.com/|gitlab\.com/|bitbucket\.org/"
    r"|.*(?://|\?|_git/|\.git(?:/|$))",
    re.IGNORECASE | re.DOTALL,
)
_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f\\{}\[\]*&!|>'\"%`#,]*")
_SHOWN: Final = 120


class PathError(ValueError):
    """A path that is refused: `rule` is the finding's slug, `hint` what to do."""

    def __init__(self, rule: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.hint = hint


@dataclass(frozen=True, slots=True)
class View:
    """The names of the packed tree: its files, and the directories that hold them.

    The root is the directory "". Names are relative, `/`-separated and normalised.
    """

    files: frozenset[str]
    directories: frozenset[str]

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """A view of the files called `names`."""
        files = frozenset(names)
        directories = {""}
        for name in files:
            parent = posixpath.dirname(name)
            while parent and parent not in directories:
                directories.add(parent)
                parent = posixpath.dirname(parent)
        return cls(files, frozenset(directories))

    def kustomizations(self, directory: str) -> list[str]:
        """The kustomization files of `directory`: none, one, or more than kustomize allows."""
        return [
            name
            for name in (posixpath.join(directory, file) for file in FILE_NAMES)
            if name in self.files
        ]

    def file(self, base: str, text: str) -> str:
        """The file that `text` names, seen from the directory `base`; PathError if it is none."""
        path = self._resolve(base, text)
        if path in self.files and not text.endswith("/"):
            return path
        if path in self.directories:
            raise PathError("kustomization-missing", f"{shown(text)} is a directory, not a file")
        raise _missing(text)

    def directory(self, base: str, text: str) -> str | None:
        """The directory that `text` names, or None if it names a file; PathError if neither."""
        path = self._resolve(base, text)
        if path in self.files:
            return None
        if path not in self.directories:
            raise _missing(text)
        return path

    def is_outside(self, base: str, text: str) -> bool:
        """Whether `text`, joined and cleaned as Go does it, leads out of the tree."""
        path = posixpath.normpath(posixpath.join(base, text))
        return path.startswith(("../", "/")) or path == ".."

    def _resolve(self, base: str, text: str) -> str:
        """Check 3 and check 4: `text` is a plain relative path that stays inside."""
        _check_form(text)
        path = posixpath.normpath(posixpath.join(base, text))
        if self.is_outside(base, text):
            raise PathError(
                "kustomization-outside",
                f"{shown(text)} leads out of the tree",
                "move what it names into the tree, or pack a directory above",
            )
        return "" if path == "." else path


def _check_form(text: str) -> None:
    if not text.strip():
        raise PathError("kustomization-outside", "an empty path")
    if text.startswith("/"):
        place = " (the runner's processes)" if re.match(r"/+proc(/|$)", text) else ""
        raise PathError(
            "kustomization-outside",
            f"{shown(text)} is an absolute path{place}",
            "name files of the tree by relative paths",
        )
    if _ADDRESS.match(text):
        raise PathError(
            "kustomization-address",
            f"{shown(text)} is an address, which kustomize would fetch",
            "bring it into the tree with `ocipack vendor` and refer to it by a relative path",
        )
    if not _PLAIN.fullmatch(text):
        raise PathError(
            "kustomization-outside",
            f"{shown(text)} holds characters that a path in a kustomization may not",
            "rename the file: control characters, quotes, brackets and \\ are refused",
        )


def _missing(text: str) -> PathError:
    return PathError(
        "kustomization-missing",
        f"{shown(text)} is not in the tree",
        "symbolic links and ignored files are not packed; an address has to be vendored",
    )


def shown(text: str) -> str:
    """`text` as messages show it: quoted, on one line, not too long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
