"""What a vendor file says: what to fetch, from where, into which directory (docs/vendor.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Final

from ocipack.errors import Misuse
from ocipack.mirror.model import glob
from ocipack.oci.digest import Digest
from ocipack.oci.location import CHARTS, REGISTRY, Location
from ocipack.tree.tree import check_name

URL, GIT, CHART = "url", "git", "chart"
KINDS: Final = (URL, GIT, CHART)

_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_REF: Final = re.compile(r"(?!-)[A-Za-z0-9._/+-]{1,200}")
_ARCHIVES: Final = (".tar.gz", ".tgz")


@dataclass(frozen=True, slots=True)
class Item:
    """Files from one place, and the directory `into` that holds them and nothing else.

    `kind` says what `address` is: a file or tar.gz (`url`), a repository (`git`, at `ref`), or a
    chart. `pin` is what the content must be, if the vendor file says it: a sha256, a commit, or
    the digest of the chart's artifact. Of archives, repositories and charts it is what stands
    below `path`, that fits a glob of `include`, if there are some, and none of `exclude`. A file
    is called `name`. `place` is where the vendor file says it.
    """

    into: str
    kind: str
    address: str
    ref: str = ""
    pin: str = ""
    name: str = ""
    path: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    place: str = ""

    def __post_init__(self) -> None:
        check_name(self.into)
        if any(part.lower() == ".git" for part in self.into.split("/")):
            raise Misuse(f"into leads into a git repository: {self.into!r}")
        if self.path:
            check_name(self.path)
        for pattern in (*self.include, *self.exclude):
            glob(pattern)
        {URL: self._check_url, GIT: self._check_git, CHART: self._check_chart}[self.kind]()

    def _check_url(self) -> None:
        _check_address(self.address)
        if self.pin and not _SHA256.fullmatch(self.pin):
            raise Misuse(f"not a sha256: {self.pin[:80]!r}", hint="64 lower-case hex digits")
        if self.ref:
            raise Misuse("ref belongs to git")
        if self.is_archive:
            return
        if self.path or self.include or self.exclude:
            raise Misuse("path, include and exclude choose from an archive, and this is one file")
        check_name(self.file)
        if "/" in self.file:
            raise Misuse(f"name is that of a file in {self.into!r}, and no path: {self.file!r}")

    def _check_git(self) -> None:
        _check_address(self.address)
        if self.pin and not _COMMIT.fullmatch(self.pin):
            raise Misuse(f"not a commit: {self.pin[:80]!r}", hint="write all its hex digits")
        if not self.ref and not self.pin:
            raise Misuse("git has neither ref nor commit", hint="as ref: v1.2.0")
        if self.ref and (not _REF.fullmatch(self.ref) or ".." in self.ref):
            raise Misuse(f"not a ref: {self.ref[:80]!r}", hint="a tag, a branch, or refs/…")

    def _check_chart(self) -> None:
        if self.ref:
            raise Misuse("ref belongs to git")
        if self.where.reference.tag is None:
            raise Misuse(f"{self.address} has no version", hint="as NAME:1.2.0")
        if self.pin:
            Digest.parse(self.pin)

    @property
    def is_archive(self) -> bool:
        """Whether an address is that of a tar.gz, by its name."""
        return self.address.endswith(_ARCHIVES) and not self.name

    @property
    def file(self) -> str:
        """What a single file is called."""
        return self.name or self.address.rpartition("/")[2]

    @property
    def where(self) -> Location:
        """The place of a chart."""
        found = Location.parse(self.address, cwd="/")
        if found.scheme not in (REGISTRY, *CHARTS):
            raise Misuse(f"a chart is in a registry or a repository: {self.address!r}")
        return found

    @property
    def request(self) -> Mapping[str, str | tuple[str, ...]]:
        """What is asked for: all that decides which files there are, but for `pin`."""
        said: dict[str, str | tuple[str, ...]] = {self.kind: self.address}
        names = ("ref", "name", "path", "include", "exclude")
        return said | {name: found for name in names if (found := getattr(self, name))}


def _check_address(text: str) -> None:
    if not text.startswith(("https://", "http://")) or re.search(r"[^\x21-\x7e]", text):
        raise Misuse(f"not an address: {text[:200]!r}", hint="https://host/path")
    host, slash, rest = text.partition("://")[2].partition("/")
    if "@" in host:
        raise Misuse(
            "credentials in an address are refused", hint="`ocipack login HOST` keeps them"
        )
    if not slash or not rest or re.search(r"[?#]", rest):
        shown = re.split(r"[?#]", text)[0][:200]
        raise Misuse(f"not the address of a file or repository: {shown!r}", hint="without a query")


@dataclass(frozen=True, slots=True)
class Vendor:
    """All that a file says. Misuse if two directories are one, or one is inside another."""

    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        names = sorted(((f"{one.into.lower()}/", one) for one in self.items), key=itemgetter(0))
        for (one, first), (other, second) in pairwise(names):
            if other.startswith(one):
                raise Misuse(
                    f"{second.place}: {second.into} is inside of {first.into}",
                    hint="each entry has a directory of its own, in which nothing else is",
                )
