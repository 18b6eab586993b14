"""A tree of files: what a commit holds, without what differs from machine to machine."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from ocipack.errors import IntegrityError, Misuse
from ocipack.report import Finding, Report, Severity
from ocipack.tree.limits import DEPTH_LIMIT, PATH_LIMIT, SEGMENT_LIMIT

_SHORT = min(PATH_LIMIT, SEGMENT_LIMIT, DEPTH_LIMIT)
"""Characters that cannot be too many bytes, nor too deep."""

_FORBIDDEN = r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]"


@dataclass(frozen=True, slots=True)
class File:
    """Content that can be opened again; `size` is in bytes.

    Owners, times and other modes are not here, so they cannot reach a digest. Each call of `open`
    streams the content from its beginning.
    """

    size: int
    executable: bool
    open: Callable[[], Iterable[bytes]] = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.size < 0:
            raise Misuse(f"not a size: {self.size}")

    @classmethod
    def of(cls, data: bytes, *, executable: bool = False) -> Self:
        """A file whose content is at hand."""
        return cls(len(data), executable, lambda: iter((data,)))

    def read(self, *, limit: int) -> bytes:
        """The whole content; IntegrityError if it is longer than `limit` bytes."""
        if self.size > limit:
            raise IntegrityError(f"{self.size} bytes, and at most {limit} are read")
        return b"".join(self.open())


@dataclass(frozen=True, slots=True)
class Entry:
    """One file as a stream brings it: `size` in bytes, `content` once, before the next entry."""

    name: str
    size: int
    executable: bool
    content: Iterator[bytes] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Tree:
    """Relative POSIX names and their files, in the bytewise order of the names.

    Raises Misuse for a name that is not safe everywhere (see `check_name`) and for one that is
    both a file and a directory. Directories exist only because something is in them: `directories`
    are those that do, without the root.
    """

    files: Mapping[str, File]
    directories: frozenset[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in self.files:
            check_name(name)
        # the order of code points is that of UTF-8's bytes: surrogates are refused
        ordered = {name: self.files[name] for name in sorted(self.files)}
        object.__setattr__(self, "files", MappingProxyType(ordered))
        object.__setattr__(self, "directories", _directories(ordered))
        for directory in sorted(self.directories & ordered.keys()):
            raise Misuse(f"both a file and a directory: {directory!r}")

    @classmethod
    def of(cls, entries: Iterable[tuple[str, File]]) -> Self:
        """Collect `entries`; Misuse if a name comes twice."""
        files: dict[str, File] = {}
        for name, file in entries:
            if name in files:
                raise Misuse(f"there twice: {name!r}")
            files[name] = file
        return cls(files)

    @property
    def size(self) -> int:
        """Bytes of all contents."""
        return sum([file.size for file in self.files.values()])

    def entries(self) -> Iterator[Entry]:
        """The files as whoever reads an archive gets them."""
        for name, file in self.files.items():
            yield Entry(name, file.size, file.executable, iter(file.open()))

    def case_clashes(self) -> Report:
        """Warn of names that a file system without case, or with one Unicode form, takes for one.

        Whoever unpacks there loses a file without a word. What is below two such directories is
        not listed again.
        """
        groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        names = (*self.files, *self.directories)
        folded = "\n".join(names).lower()  # no name holds a line's end
        if folded.isascii() and len(set(folded.split("\n"))) == len(names):
            return Report()
        for name in sorted(names):
            parent, _, last = name.rpartition("/")
            groups[parent, _folded(last)].append(name)
        return Report.of(
            Finding(
                "name-case",
                f"differs from {names[0]!r} only in case or Unicode form",
                Severity.WARNING,
                file=name,
                hint="some file systems keep only one of them: rename one",
            )
            for names in groups.values()
            for name in names[1:]
        )


def _directories(names: Iterable[str]) -> frozenset[str]:
    nearest = {name.rpartition("/")[0] for name in names} - {""}
    found = set(nearest)
    for name in nearest:
        found.update(parents(name, found))
    return frozenset(found)


def parents(name: str, known: frozenset[str] | set[str] = frozenset()) -> Iterator[str]:
    """The directories above `name`, nearest first, up to the first that is `known`."""
    while (cut := name.rfind("/")) >= 0:
        name = name[:cut]
        if name in known:
            return
        yield name


def check_name(name: str) -> None:
    """Misuse unless `name` is relative, plain, and means one file on every system.

    Refused: empty, absolute, a segment that is empty, `.` or `..`, a backslash (a separator on
    Windows, and Flux refuses it), control characters (they forge listings), what is not UTF-8,
    and more than PATH_LIMIT, SEGMENT_LIMIT or DEPTH_LIMIT.
    """
    if len(name) < _SHORT and name.isascii() and _plain(name):
        return
    if not _plain(name):
        raise Misuse(f"{_reason(name)}: {shown(name)}")
    raw = name.encode()
    if len(raw) > PATH_LIMIT or name.count("/") >= DEPTH_LIMIT:
        raise Misuse(f"a name longer or deeper than any system takes: {shown(name)}")
    if len(raw) > SEGMENT_LIMIT and any(len(s) > SEGMENT_LIMIT for s in raw.split(b"/")):
        raise Misuse(f"a name with a part of more than {SEGMENT_LIMIT} bytes: {shown(name)}")


def _plain(name: str) -> bool:
    simple = name.isascii() and name.isprintable()
    if "\\" in name or not (simple or re.search(_FORBIDDEN, name) is None):
        return False
    around = f"/{name}/"
    return not ("//" in around or "/./" in around or "/../" in around)


def shown(name: str) -> str:
    """`name` quoted for a message: printable, and not longer than a line."""
    return ascii(name[:200]) if not name.isprintable() else repr(name[:200])


def _reason(name: str) -> str:
    segments = name.split("/")
    reasons = {
        "an empty name": not name,
        "an absolute name": name.startswith("/"),
        "a name that leads out of the tree": ".." in segments,
        "a name with an empty or '.' part": "" in segments or "." in segments,
        "a name with a backslash": "\\" in name,
        "a name that is not UTF-8": re.search(r"[\ud800-\udfff]", name) is not None,
    }
    return next((text for text, true in reasons.items() if true), "a name with control characters")


def _folded(segment: str) -> str:
    if segment.isascii():
        return segment.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", segment).casefold())
