"""Which addresses that controllers fetch from a policy covers.

A glob of sources is `scheme://host/path`, or `**` alone: the scheme is written out, host and path
have the same wildcards as registry and repository, and user, `.git` and the usual port do not
matter. There is nothing after the path: what fixes a source is not part of its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ocipack.errors import Misuse
from ocipack.flux.sources import SCHEMES, Address
from ocipack.trust.policy.names import EVERYTHING, LONGEST, REGISTRY, components, stars
from ocipack.trust.policy.wildcards import Pattern, Piece, literal


@dataclass(frozen=True, slots=True)
class SourceGlob:
    """A pattern of addresses that controllers fetch from. Misuse if it is none."""

    text: str
    _pattern: Pattern | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.text or len(self.text) > LONGEST:
            raise Misuse(f"a glob has 1 to {LONGEST} characters")
        pieces = _source(self.text) if self.text != EVERYTHING else None
        object.__setattr__(self, "_pattern", None if pieces is None else Pattern(pieces))

    def covers(self, address: Address) -> bool:
        """Whether `address` is one of these."""
        return self._pattern is None or self._pattern.matches(str(address))


def _source(text: str) -> list[Piece]:
    """The pieces of a glob of sources."""
    scheme, separator, rest = text.partition("://")
    host, slash, path = rest.partition("/")
    parts = path.split("/")
    if not separator or scheme not in SCHEMES or not slash:
        raise Misuse(
            f"not a glob of sources: {text!r}",
            hint=f"write scheme://host/path with one of {', '.join(SCHEMES)}, or ** for every one",
        )
    if not re.fullmatch(REGISTRY, host) or "**" in host:
        raise Misuse(f"{text!r}: not a host: {host!r}", hint="* stands for part of one label")
    good = re.fullmatch(r"[A-Za-z0-9._~+*-]+(?:/[A-Za-z0-9._~+*-]+)*", path)
    if not good or {".", ".."} & set(parts) or any("**" in p and p != "**" for p in parts):
        raise Misuse(
            f"{text!r}: not a path: {path!r}",
            hint="** stands for whole components: team/**, or team/**/app",
        )
    plain = Address.parse(f"{scheme}://{host.replace('*', 'x')}")  # drops the usual port
    if "*" not in host:
        host = plain.host
    elif ":" not in plain.host:
        host = host.partition(":")[0]
    pieces = [*literal(f"{scheme}://"), *stars(host.lower(), "./:"), *literal("/")]
    return pieces + components(path.removesuffix(".git"))
