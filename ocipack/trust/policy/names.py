"""Which names a policy covers.

A glob is `registry/repository[:tag][@digest]`, or `**` alone, which is every name.

- In the registry `*` stands for characters of one label: never a dot, never a port, so that
  `*.example.com` is neither `example.com` nor `a.b.example.com` nor `a.example.com:5000`.
- In the repository `*` stands for characters of one component, and a component `**` for any number
  of components; at the end, where it means "everything below", for at least one.
- In the tag `*` stands for any characters. Without a tag every tag is meant, and none.
- A digest is written out; such a glob covers only what was asked for by that digest.

Spellings of one place are one name: the registry is compared in lower case, without `:443`, an
IPv6 address in its short form, and Docker Hub under its one name `docker.io`, with `library/`.
Otherwise an image could step out of a strict policy by being asked for in another spelling.

ClusterImagePolicy has its own dialect (sigstore/policy-controller, pkg/apis/glob): one text, tag or
digest and all, in which `*` stops at `/` alone and `**` nowhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ocipack.errors import Misuse
from ocipack.oci.reference import Reference
from ocipack.trust.policy.wildcards import Pattern, Piece, directories, literal, some, star

EVERYTHING = "**"

LONGEST = 500
"""Characters of a glob."""

_HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
REGISTRY = r"(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9*](?:[A-Za-z0-9.*-]*[A-Za-z0-9*])?)(?::[0-9]{1,5})?"
"""A registry in which `*` may stand, as a regular expression."""

_PATH = r"[a-z0-9._*-]+(?:/[a-z0-9._*-]+)*"
_GLOB = (
    r"(?P<registry>\[[^\]/]*\](?::[^/]*)?|[^/\[\]]+)/(?P<path>[^:@]+)"
    r"(?::(?P<tag>[A-Za-z0-9_.*-]+))?(?:@(?P<digest>sha(?:256|512):[0-9a-f]{64,128}))?"
)
_FOREIGN = r"[a-zA-Z0-9_:/*.-]+"


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern of names, `foreign`: in ClusterImagePolicy's dialect. Misuse if it is none."""

    text: str
    foreign: bool = False
    _pattern: Pattern | None = field(init=False, repr=False, compare=False)
    _digest: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.text or len(self.text) > LONGEST:
            raise Misuse(f"a glob has 1 to {LONGEST} characters")
        pieces, digest = None, ""
        if self.foreign:
            pieces = _foreign(self.text)
        elif self.text != EVERYTHING:
            pieces, digest = _own(self.text)
        object.__setattr__(self, "_pattern", None if pieces is None else Pattern(pieces))
        object.__setattr__(self, "_digest", digest)

    def covers(self, reference: Reference) -> bool:
        """Whether `reference`, as it was asked for, is one of these names."""
        if self._pattern is None:
            return True
        registry, repository = _settled(reference.registry, reference.repository)
        tag = reference.tag or ("" if reference.digest else "latest")
        digest = f"@{reference.digest}" if reference.digest else ""
        if not self.foreign:
            named = self._pattern.matches(f"{registry}/{repository}:{tag}")
            return named and self._digest in ("", digest)
        bare = f"{'index.docker.io' if registry == 'docker.io' else registry}/{repository}"
        written = f"{bare}:{reference.tag}" if reference.tag else bare
        whole = bare + digest if digest else f"{bare}:{tag}"
        return any(self._pattern.matches(text) for text in (whole, written + digest))


def _settled(registry: str, repository: str) -> tuple[str, str]:
    """The one spelling of a place."""
    host, port = registry.lower(), ""
    if not host.endswith("]") and ":" in host:
        host, _, port = host.rpartition(":")
    if host.startswith("["):
        host = _short(host)
    if host in _HUB and port in ("", "443"):
        host, port = "docker.io", ""
        if "/" not in repository and repository != EVERYTHING:
            repository = f"library/{repository}"
    number = port.lstrip("0")
    return (f"{host}:{number}" if number not in ("", "443") else host), repository


def _short(host: str) -> str:
    """An IPv6 address in brackets, in its short form; as it is if it is none."""
    from ipaddress import AddressValueError, IPv6Address  # noqa: PLC0415 - weight, for few

    try:
        return f"[{IPv6Address(host[1:-1])}]"
    except AddressValueError:
        return host


def _own(text: str) -> tuple[list[Piece], str]:
    """The pieces of a glob in our own dialect, and the digest it names."""
    match = re.fullmatch(_GLOB, text)
    if match is None:
        raise Misuse(
            f"not a glob of names: {text!r}",
            hint="write registry/repository[:tag][@digest] with * and **, or ** for every name",
        )
    registry, path = match["registry"], match["path"]
    bare = not set(registry) & set(".:[") and registry != "localhost"  # what no name can have
    if not re.fullmatch(REGISTRY, registry) or "**" in registry or bare:
        raise Misuse(
            f"{text!r}: not a registry: {registry!r}",
            hint="a registry has a dot, a port or is localhost; * stands for part of one label",
        )
    parts = path.split("/")
    if not re.fullmatch(_PATH, path) or any("**" in part and part != "**" for part in parts):
        raise Misuse(
            f"{text!r}: not a repository: {path!r}",
            hint="** stands for whole components: team/**, or team/**/app",
        )
    registry, path = _settled(registry, path)
    tag = match["tag"]
    ending = star("") if tag is None else stars(tag, "") if tag.strip("*") else some("")
    pieces = [*stars(registry, "./:"), *literal("/"), *components(path), *literal(":"), *ending]
    return pieces, f"@{match['digest']}" if match["digest"] else ""


def components(path: str) -> list[Piece]:
    """The pieces of a repository."""
    *above, last = path.split("/")
    out: list[Piece] = []
    for part in above:
        out += directories() if part == "**" else [*stars(part, "/:@"), *literal("/")]
    return out + (some(":@") if last == "**" else stars(last, "/:@"))


def _foreign(text: str) -> list[Piece]:
    """The pieces of a glob in the dialect of ClusterImagePolicy."""
    if not re.fullmatch(_FOREIGN, text):
        raise Misuse(f"not a glob of ClusterImagePolicy: {text!r}")
    text = {"*": "index.docker.io/library/*", "*/*": "index.docker.io/*/*"}.get(text, text)
    host, slash, rest = text.partition("/")
    if slash and "*" not in host:
        settled, _ = _settled(host, "")
        host = "index.docker.io" if settled == "docker.io" else settled
    pieces = re.split(r"(\*\*|\*)", host.lower() + slash + rest if slash else text)
    known = {"**": star(""), "*": star("/")}
    return [one for piece in pieces for one in known.get(piece) or literal(piece)]


def stars(text: str, but: str) -> list[Piece]:
    """The pieces of `text`, in which a run of stars stands for characters not in `but`."""
    pieces = re.split(r"(\*+)", text)
    return [
        one for piece in pieces for one in (star(but) if piece.startswith("*") else literal(piece))
    ]
