"""Where an artifact comes from, as its annotations say it: pure rules over facts found elsewhere.

The same commit, name and source give the same annotations on every machine, so what differs
between two clones (the transport of the remote, credentials in it, time zone) is left out.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ocipack.errors import Misuse

_COMMIT = r"[0-9a-f]{40}|[0-9a-f]{64}"
_SCP = r"(?:[^@/:\s]+@)?(?P<host>\[[0-9a-fA-F:]+\]|[^@/:\s]{2,}):(?!//)(?P<path>[^\s]+)"
_HOST = r"\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?"
_NAME = r"[^\x00-\x20\x7f-\x9f~^:?*\[\\]+"
_SECONDS = r"[0-9]{1,12}"
_LAST_SECOND = 253402300799  # of the year 9999, the last that RFC 3339 can write


@dataclass(frozen=True, slots=True)
class Checkout:
    """What git says about a directory.

    `commit` is its full hex id (40 digits of sha1, 64 of sha256), `time` the committer's, in
    seconds since 1970. `tag` is one that points exactly at the commit. `remote` is a URL as git
    has it, credentials and all: it leaves here only through `public_url`. `changed` are names
    below the directory that differ from the commit: modified, deleted, or unknown to git, whether
    git was told to ignore them or not.
    """

    commit: str
    time: int
    branch: str = ""
    tag: str = ""
    remote: str = ""
    changed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(_COMMIT, self.commit):
            raise Misuse(f"not a commit: {self.commit[:100]!r}")

    def __repr__(self) -> str:
        return f"Checkout({self.commit!r})"  # the remote may hold a token

    @property
    def algorithm(self) -> str:
        """The hash that names objects here."""
        return "sha1" if len(self.commit) == 40 else "sha256"  # noqa: PLR2004 - hex digits of sha1

    def dirt(self, left_out: Callable[[str], bool], root: str = "") -> tuple[str, ...]:
        """The names whose change reaches the artifact: all but those that packing leaves out.

        An artifact that is made of the directory `root` alone sees its names below that, and `.`
        if git knows nothing of what is in it. What changed elsewhere does not reach it.
        """
        return tuple(name for name in _below(self.changed, root) if not left_out(name))


def _below(names: Iterable[str], root: str) -> Iterator[str]:
    inside = f"{root}/" if root else ""
    for name in names:
        if not name or inside.startswith(f"{name.removesuffix('/')}/"):
            yield "."
        elif name.startswith(inside):
            yield name.removeprefix(inside)


def ref_name(*, flag: str = "", ci: str = "", checkout: Checkout | None = None) -> str:
    """The name in front of the commit: flag, CI's name, exact tag, branch, else `HEAD`."""
    known = (flag, ci, checkout.tag if checkout else "", checkout.branch if checkout else "")
    return next((name for name in known if name), "HEAD")


def revision(name: str, checkout: Checkout, *, dirty: bool = False) -> str:
    """`<name>@sha1:<commit>` (Flux RFC-0005); the name of a dirty tree ends in `-dirty`."""
    if not re.fullmatch(_NAME, name):
        raise Misuse(f"not a name of a branch or tag: {name!r}")
    suffix = "-dirty" if dirty else ""
    return f"{name}{suffix}@{checkout.algorithm}:{checkout.commit}"


def created(*, epoch: str = "", checkout: Checkout | None = None) -> str:
    """The time of the content, RFC 3339 in UTC; empty if nothing says one.

    `epoch` is SOURCE_DATE_EPOCH (reproducible-builds.org), in seconds, and goes before the
    commit's time. Misuse if it is not a number of seconds that a date can show.
    """
    if not epoch and checkout is None:
        return ""
    text = epoch or str(checkout.time if checkout else 0)
    if not re.fullmatch(_SECONDS, text) or int(text) > _LAST_SECOND:
        raise Misuse(
            f"not a time: {text[:100]!r}",
            hint="SOURCE_DATE_EPOCH holds seconds since 1970, in digits",
        )
    moment = dt.datetime.fromtimestamp(int(text), dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def source(*, given: Iterable[str] = (), checkout: Checkout | None = None) -> str:
    """The URL to name: the first that is `given` (flag, project file, CI), else the remote.

    Empty if there is none, or if the remote is a directory: its path means nothing elsewhere.
    Credentials are taken out of all of them.
    """
    said = next((text for text in given if text), "")
    if said:
        return without_credentials(said)
    return public_url(checkout.remote) if checkout else ""


def public_url(remote: str) -> str:
    """A git remote as people open it: https, no credentials, no `.git`; empty if it is local.

    A port belongs to its scheme: that of http or https stays (and http with one stays http),
    that of ssh goes.
    """
    scheme, _, _ = remote.partition("://")
    if scheme == remote:
        match = re.fullmatch(_SCP, remote)
        if match is None:
            return ""
        scheme, host, port, path = "ssh", match["host"].lower(), None, match["path"]
    else:
        from urllib.parse import urlsplit  # noqa: PLC0415 - start-up, where there is no remote

        try:
            parts = urlsplit(remote)
            host, port, path = parts.hostname or "", parts.port, parts.path
        except ValueError:
            return ""
        host = f"[{host}]" if ":" in host else host
    if scheme.lower() not in _NETWORK or not re.fullmatch(_HOST, host):
        return ""
    keeps_port = port is not None and scheme.lower() in {"http", "https"}
    shown = "http" if keeps_port and scheme.lower() == "http" else "https"
    place = f"{host}:{port}" if keeps_port else host
    return f"{shown}://{place}/{path.strip('/').removesuffix('.git').rstrip('/')}".rstrip("/")


_NETWORK = frozenset({"http", "https", "ssh", "git", "git+ssh", "ssh+git"})


def without_credentials(text: str) -> str:
    """`text` as it is, unless it is a URL with user, password, query or fragment: without them."""
    scheme, mark, rest = text.partition("://")
    rest = re.sub(_USERINFO, "", rest if mark else text, count=1)
    if not mark:
        return rest
    if scheme.lower() in _NETWORK:
        rest = re.split(r"[?#]", rest)[0]
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


_USERINFO = r"\A(?://)?[^/?#@:\[\s]*:(?![0-9]*(?:[/?#]|\Z))[^@\s]*@"
"""`user:password@`, whatever the password holds: a `/`, `?` or `#` in it would end the authority,
and what stands before it would be shown. What is a port is none."""
