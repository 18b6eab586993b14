"""Flux's ignore dialect, its default lists, and what a cluster will drop later.

The dialect is that of fluxcd/pkg sourceignore (its gitignore package, from go-git 5.16), and it is
not git's:

- the last pattern that matches decides; `!` takes files back in;
- a pattern without a slash (but at its end) matches any part of a path, so `*.png` also leaves out
  all of a directory `x.png`;
- a pattern with a slash is anchored and matches a beginning of the path; `**` stands for any
  number of parts, and only as a whole part;
- a directory that is left out is still looked into, so `!` works below it;
- `#` starts a comment only in the first column, blanks at the end do not count;
- parts match as Go's path.Match: `*`, `?`, `[a-z]`, `[^a-z]`, and a backslash before any of them;
  a part that is malformed matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ocipack.errors import IntegrityError
from ocipack.report import Finding, Report, Severity

IGNORE_FILE = ".sourceignore"
VCS = (".git/", ".gitignore", ".gitmodules", ".gitattributes")
EXTENSIONS = ("*.jpg", "*.jpeg", "*.gif", "*.png", "*.wmv", "*.flv", "*.tar.gz", "*.zip")
CI = (
    *(".github/", ".circleci/", ".travis.yml", ".gitlab-ci.yml", "appveyor.yml", ".drone.yml"),
    *("cloudbuild.yaml", "codeship-services.yml", "codeship-steps.yml"),
)
EXTRA = ("**/.goreleaser.yml", "**/.sops.yaml", "**/.flux.yaml")

PROJECT_FILE = "ocipack.yaml"
"""The project file: at the top of a tree it is never packed."""

DEFAULTS = (*VCS, *EXTENSIONS)
"""What `flux push artifact` leaves out unless told otherwise."""

_FLAGS = re.DOTALL

LINE_LIMIT = 64 * 1024
"""Bytes of a line at which Flux stops reading an ignore file."""

FILE_LIMIT = 1024 * 1024
"""Bytes of one `.sourceignore` that we are ready to read."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file that stands in the directory `domain` (no parts: the root).

    `includes` is whether it takes back what an earlier pattern left out, `directory_only` whether
    a plain file does not match by its own name, `parts` what stands between its slashes: one
    part if it matches any part of a path.
    """

    text: str
    domain: tuple[str, ...] = ()
    includes: bool = field(init=False, compare=False)
    directory_only: bool = field(init=False, compare=False)
    parts: tuple[str, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        bare = self.text.removeprefix("!")
        bare = bare if bare.endswith("\\ ") else bare.rstrip(" ")
        object.__setattr__(self, "includes", self.text.startswith("!"))
        object.__setattr__(self, "directory_only", bare.endswith("/"))
        object.__setattr__(self, "parts", tuple(bare.removesuffix("/").split("/")))

    def matches(self, path: tuple[str, ...], *, directory: bool) -> bool:
        """Whether this pattern has something to say about `path`."""
        depth = len(self.domain)
        if len(path) <= depth or path[:depth] != self.domain:
            return False
        path, parts = path[depth:], self.parts
        if len(parts) > 1:
            used = _anchored(parts, path)
        else:
            hits = (i + 1 for i, part in enumerate(path) if _matches(parts[0], part))
            used = next(hits, 0)
        only = self.directory_only and not directory
        return used > 0 and not (only and used == len(path))


def parse(text: str, domain: tuple[str, ...] = ()) -> tuple[Pattern, ...]:
    """The patterns of an ignore file, one a line."""
    found = []
    for line in text.split("\n"):
        if len(line.encode(errors="surrogateescape")) >= LINE_LIMIT:
            break
        line = line.removesuffix("\r")  # noqa: PLW2901 - the rest of the loop is about this line
        if not line.startswith("#") and line.strip():
            found.append(Pattern(line, domain))
    return tuple(found)


class Matcher:
    """Decides which paths to leave out; later patterns overrule earlier ones.

    What the patterns say of a name follows from its directory and from what they can see of its
    last part (`_Parts.kind`), so it is worked out once for all names that have both in common.
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = tuple(reversed(tuple(patterns)))
        self.takes_back = any(pattern.includes for pattern in self._patterns)
        """Whether something below a directory that is left out may still be wanted."""
        self._parts = _Parts(self._patterns)
        self._known: tuple[str, dict[tuple[_Kind, bool], Pattern | None]] = ("", {})

    def __call__(self, name: str, *, directory: bool = False) -> bool:
        """Whether `name`, a relative POSIX path, is left out."""
        decides = self.decisive(name, directory=directory)
        return decides is not None and not decides.includes

    def decisive(self, name: str, *, directory: bool = False) -> Pattern | None:
        """The pattern that decides about `name`, if one does."""
        above, _, base = name.rpartition("/")
        where, known = self._known
        if where != above:
            known = {}
            self._known = (above, known)  # of one directory only: memory stays flat
        key = self._parts.kind(base), directory
        if key not in known:
            known[key] = self._ask(name, key[0], directory=directory)
        return known[key]

    def _ask(self, name: str, kind: _Kind, *, directory: bool) -> Pattern | None:
        path = tuple(name.split("/"))
        if kind is None and not any(map(self._parts.kind, path)):
            return None
        found = (p for p in self._patterns if p.matches(path, directory=directory))
        return next(found, None)


_Kind = tuple[object, ...] | None


class _Parts:
    """What some patterns can see of a single part of a path.

    Most parts of patterns are plain, or a star and plain text, and most names end in nothing that
    any pattern asks for: two look-ups say so, where each pattern would be tried in turn.
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        found = {part for pattern in patterns for part in _own(pattern.parts)}
        self._names = frozenset(part for part in found if not _SPECIAL & set(part))
        ends = {p for p in found - self._names if p[0] == "*" and not _SPECIAL & set(p[1:])}
        self._ends = tuple(sorted(part[1:] for part in ends))
        rest = map(_compiled, sorted(found - self._names - ends))
        self._rest = tuple(pattern for pattern in rest if pattern is not None)

    def kind(self, part: str) -> _Kind:
        """What tells `part` from others; None for all those that no part of a pattern matches."""
        named = part in self._names
        if not (named or part.endswith(self._ends) or self._rest):
            return None
        ends = (end for end in self._ends if part.endswith(end))
        found = (*ends, *(one for one in self._rest if one.fullmatch(part)))
        return (part if named else None, *found) if named or found else None


_SPECIAL = frozenset("*?[\\")


def _own(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts that have to match one of a path: `**` and what is before a first slash do not."""
    return parts if len(parts) == 1 else tuple(part for part in parts if part not in {"", "**"})


def defaults(extra: str = "") -> Matcher:
    """What packing leaves out: Flux's own list, then the user's patterns, one a line."""
    return Matcher((*map(Pattern, DEFAULTS), *parse(extra)))


def rules(names: Iterable[str], read: Callable[[str], bytes]) -> dict[str, str]:
    """Read every `.sourceignore` among `names`: its directory ("" for the root) and its text.

    IntegrityError, naming the file, for one of more than FILE_LIMIT bytes.
    """
    found = {}
    for name in names:
        directory, _, base = name.rpartition("/")
        if base == IGNORE_FILE:
            raw = read(name)
            if len(raw) > FILE_LIMIT:
                raise IntegrityError(f"{name}: {len(raw)} bytes, and at most {FILE_LIMIT} are read")
            found[directory] = raw.decode("utf-8", "replace")
    return found


def dropped(
    names: Iterable[str], ignore_files: Mapping[str, str], spec_ignore: str = ""
) -> Iterator[tuple[str, Pattern]]:
    """Say which of `names` source-controller will leave out of what it serves, and why.

    `ignore_files` maps the directory of each `.sourceignore` ("" for the root) to its text,
    `spec_ignore` is the `ignore` of the OCIRepository. As soon as there is one pattern of either
    kind, only the list of version control files is left of the defaults (fluxcd/pkg,
    artifact/storage). With `layerSelector.operation: copy` nothing is dropped.
    """
    patterns: list[Pattern] = []
    for directory in sorted(ignore_files, key=lambda name: name.encode().split(b"/")):
        domain = tuple(directory.split("/")) if directory else ()
        if ".git" not in domain:
            patterns += parse(ignore_files[directory], domain)
    patterns += parse(spec_ignore)
    lists = VCS if patterns else (*VCS, *EXTENSIONS, *CI, *EXTRA)
    matcher = Matcher((*map(Pattern, lists), *patterns))
    for name in names:
        decides = matcher.decisive(name)
        if decides is not None and not decides.includes:
            yield name, decides


def arrival(names: Iterable[str], ignore_files: Mapping[str, str], spec_ignore: str = "") -> Report:
    """Warn of files that are packed and will not arrive in the cluster (see `dropped`).

    What a `.sourceignore` or the OCIRepository leaves out was asked for and is only noted.
    """
    lists = frozenset((*VCS, *EXTENSIONS, *CI, *EXTRA))
    return Report.of(
        Finding(
            "dropped-in-cluster",
            f"source-controller will drop this file ({pattern.text.strip()})",
            Severity.WARNING if pattern.text in lists and not pattern.domain else Severity.NOTE,
            file=name,
            hint=f"rename it, leave it out, or take it back with !{name} in {IGNORE_FILE}",
        )
        for name, pattern in dropped(names, ignore_files, spec_ignore)
    )


def _anchored(parts: tuple[str, ...], path: tuple[str, ...]) -> int:
    """How many parts of `path` the pattern takes, from the left; 0 if it does not match."""
    at, matched, anywhere = 0, False, False
    for i, part in enumerate(parts):
        if part == "":
            anywhere = False
        elif part == "**":
            if i == len(parts) - 1:
                break
            anywhere = True
        elif "**" in part or at == len(path):
            return 0
        else:
            reach = len(path) if anywhere else at + 1
            hit = next((k for k in range(at, reach) if _matches(part, path[k])), None)
            if hit is None and not anywhere:
                return 0
            matched, at, anywhere = hit is not None, len(path) if hit is None else hit + 1, False
    return at if matched else 0


def _matches(pattern: str, part: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is not None and compiled.fullmatch(part) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Go's path.Match as a regular expression; None if the pattern is malformed.

    Between stars a chunk is taken where it first fits and never tried elsewhere, as Go does, so
    that a hostile pattern cannot make matching explode.
    """
    chunks = [""]
    for element in _elements(pattern):
        if element is None:
            return None
        if element == "*":
            chunks.append("")
        else:
            chunks[-1] += element
    first, *rest = chunks
    middle = "".join(f"(?>.*?{chunk})" for chunk in rest[:-1])
    end = f".*{rest[-1]}" if rest else ""
    return re.compile(first + middle + end, _FLAGS)


_ITEM = r"(?:\\.|[^\]\\-])"
_ELEMENT = rf"(?s)\*|\?|\\(.)|\[(\^|(?!\^))((?:{_ITEM}(?:-{_ITEM})?)+)\]|([^\\\[])"
_RANGE = r"(?s)\\?(.)(?:-\\?(.))?"


def _elements(pattern: str) -> Iterator[str | None]:
    """The regular expression of each element, `*` for a star, None where it is malformed."""
    element, at = re.compile(_ELEMENT), 0
    while at < len(pattern):
        match = element.match(pattern, at)
        if match is None:
            yield None
            return
        at = match.end()
        escaped, negated, ranges, plain = match.groups()
        if ranges is not None:
            yield _class(negated, ranges)
        elif match[0] == "*":
            yield "*"
        else:
            yield "." if match[0] == "?" else re.escape(escaped or plain)


def _class(negated: str, ranges: str) -> str:
    """A character class; a range that is upside down holds nothing, as in Go."""
    spans = ((m[1], m[2] or m[1]) for m in re.finditer(_RANGE, ranges))
    body = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in spans if low <= high)
    if body:
        return f"[{negated}{body}]"
    return "." if negated else r"(?!)"
