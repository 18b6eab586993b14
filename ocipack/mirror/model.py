"""What a mirror file says: what to bring, from where, under which names (docs/mirror.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Literal, Self

from ocipack.errors import Misuse
from ocipack.mirror.pattern import Pattern
from ocipack.mirror.versions import Range
from ocipack.oci.digest import Digest
from ocipack.oci.location import Location
from ocipack.oci.reference import TAG, Reference

Sort = Literal["semver", "numeric", "alphabetical"]
Form = Literal["full", "path", "flat"]

SORTS: Final[tuple[Sort, ...]] = ("semver", "numeric", "alphabetical")
FORMS: Final[tuple[Form, ...]] = ("full", "path", "flat")
KINDS: Final = ("image", "artifact", "chart")

_PLATFORM: Final = re.compile(r"[a-z0-9_.-]+/[a-z0-9_.-]+(?:/[a-z0-9_.-]+)?", re.ASCII)


def is_beginning(name: str) -> bool:
    """Whether `name` is a registry, or a registry and the first parts of a repository."""
    try:
        found = Reference.parse(f"{name}/x")
    except Misuse:
        return False
    return found.tag is None and found.digest is None


def glob(text: str) -> Pattern:
    """The pattern that the glob `text` means: `*` is any characters, `?` is one."""
    pieces = {"*": ".*", "?": "."}
    return Pattern("".join(pieces.get(part, re.escape(part)) for part in text))


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the tags that a repository has; whatever is not said lets all of them through.

    In this order: `pattern` fits, no glob of `exclude` does, the version (the tag, or `extract`
    filled from the pattern) is in `versions`, and is one if that is how they are sorted. At least
    `min_tags` must be left; of them, the greatest first by `sort`, `limit` are taken (0: all).
    """

    pattern: Pattern | None = None
    extract: str = ""
    versions: Range | None = None
    prereleases: bool = False
    exclude: tuple[Pattern, ...] = ()
    sort: Sort = "alphabetical"
    limit: int = 0
    min_tags: int = 1

    def __post_init__(self) -> None:
        if self.extract and self.pattern is None:
            raise Misuse("extract takes groups of a pattern, and there is none")
        if self.pattern is not None:
            self.pattern.check(self.extract)
        if self.prereleases and self.versions is None:
            raise Misuse("prereleases belongs to semver")
        if self.limit and self.limit < self.min_tags:
            raise Misuse(f"a limit of {self.limit} never leaves the {self.min_tags} of minTags")


@dataclass(frozen=True, slots=True)
class Source:
    """One repository, and what of it is wanted.

    `reference` is the repository; with a digest it is that content, which gets its tag, or a tag
    made of the digest. Otherwise `tags` are taken as they are, `selection` picks from a listing,
    and `include` comes with what it picked. `to` is the repository at the target, if the file says
    it for this source; `recorded` are referrers that a lock saw. `place` is where the file says it.
    `repository` is the classic Helm repository that a chart is in, if it is in none of registries;
    `reference` is then what it is called among them. `images`: what a chart runs comes along.
    """

    kind: str
    reference: Reference
    tags: tuple[str, ...] = ()
    selection: Selection | None = None
    include: tuple[str, ...] = ()
    immutable: Pattern | None = None
    platforms: tuple[str, ...] = ()
    to: Reference | None = None
    attached: bool = True
    require_signatures: bool = False
    overwrite: bool = False
    unsigned: bool = False
    locked: bool = False
    recorded: frozenset[Digest] = frozenset()
    place: str = ""
    repository: Location | None = None
    images: bool = False

    def __post_init__(self) -> None:
        for tag in (*self.tags, *self.include):
            if not TAG.fullmatch(tag):
                raise Misuse(f"not a tag: {tag[:80]!r}")
        for platform in self.platforms:
            if not _PLATFORM.fullmatch(platform):
                raise Misuse(f"not a platform: {platform[:80]!r}", hint="as linux/arm64/v8")
        said = bool(self.tags) + (self.selection is not None)
        said += self.reference.digest is not None or self.reference.tag is not None
        if said != 1:
            raise Misuse(
                f"{self.reference}: {'nothing says' if not said else 'it is said twice'} which "
                "tags are wanted",
                hint="give the tag or digest with the name, or tags, or select",
            )
        if self.include and self.selection is None:
            raise Misuse("include adds to what select picks, and there is no select")
        if self.require_signatures and not self.attached:
            raise Misuse("signatures are required, and attached: false leaves them behind")

    @property
    def lists(self) -> bool:
        """Whether the tags of the repository have to be listed."""
        return self.selection is not None

    @property
    def bare(self) -> Reference:
        """The repository alone."""
        return Reference(self.reference.registry, self.reference.repository)


@dataclass(frozen=True, slots=True)
class Rule:
    """Sources whose repository `match` fits go to `to`, with the groups of the match in it."""

    match: Pattern
    to: str

    def __post_init__(self) -> None:
        self.match.check(self.to)


@dataclass(frozen=True, slots=True)
class Relocation:
    """What a repository is called at the target.

    The first rule that fits decides, else the longest of `names` (pairs of the beginning of a
    name and what stands instead) that fits, else `form` below `base`, a registry or a place in it:
    `full` keeps registry and repository, `path` the repository, `flat` puts everything into `base`
    itself, which is a repository, under tags made of digests.
    """

    base: str = ""
    form: Form = "full"
    names: tuple[tuple[str, str], ...] = ()
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.base, *(part for pair in self.names for part in pair)):
            if name and not is_beginning(name):
                raise Misuse(f"not the beginning of a name: {name[:80]!r}", hint="as docker.io")
        if self.form == "flat" and "/" not in self.base:
            raise Misuse("flat needs the repository that everything goes to", hint="to: oci://…")
        longest = sorted(self.names, key=lambda pair: len(pair[0]), reverse=True)
        object.__setattr__(self, "names", tuple(longest))


@dataclass(frozen=True, slots=True)
class Mirror:
    """All that a file says.

    `policies` are files beside it that say what must be true of everything; `unsigned` says that
    nothing need be.
    """

    sources: tuple[Source, ...]
    relocation: Relocation = field(default_factory=Relocation)
    policies: tuple[str, ...] = ()
    unsigned: bool = False

    def __post_init__(self) -> None:
        if self.policies and self.unsigned:
            raise Misuse("policies and unsigned exclude each other")

    @classmethod
    def of(cls, *sources: Source) -> Self:
        """A mirror of `sources` alone: each says itself where it goes."""
        return cls(sources)
