"""Places as the command line names them: `oci://…` for a registry, `ocidir://…` for a layout.

A chart of a classic Helm repository, which can only be read, is `helm+https://…/NAME:VERSION`.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from typing import Self

from ocipack.errors import Misuse
from ocipack.oci.digest import Digest
from ocipack.oci.reference import TAG, Reference

REGISTRY = "oci"
LAYOUT = "ocidir"
CHARTS = ("helm+https", "helm+http")

_OTHERS = frozenset({"https", "http", "docker"})

_TAIL = re.compile(
    rf"(?P<path>.*?)(?::(?P<tag>{TAG.pattern}))?(?:@(?P<digest>sha\d+:[0-9a-f]+))?", re.DOTALL
)
_FOREIGN = r"[^a-z0-9]+"
_CHART = re.compile(
    r"(?P<path>[\x21-\x7e]+)/(?P<name>[^/:@\s]+)(?::(?P<version>[^/:@\s]+))?"
    r"(?:@(?P<digest>sha\d+:[0-9a-f]+))?"
)


@dataclass(frozen=True, slots=True)
class Location:
    """A repository and what is asked of it: `scheme`, for a layout its `path`, and a reference.

    `oci://host[:port]/repository[:tag][@digest]` is a repository in a registry;
    `ocidir://path[:tag][@digest]` is an OCI image layout, a directory or a `.tar` file, which
    holds one repository. A layout has no name of its own, so signatures call it
    `localhost/<name of the directory>`, in lower case and with `-` for whatever a repository
    name cannot hold.

    `helm+https://host[:port][/path]/name[:version][@digest]` is a chart of the classic repository
    at `https://host[:port][/path]`. The reference is then what it is called where names are those
    of registries, with a `_` for each `+` of the version, and `path` all of the address.
    """

    scheme: str
    reference: Reference
    path: str = ""

    @classmethod
    def parse(cls, text: str, *, cwd: str) -> Self:
        """Read a place; a layout's path is taken relative to `cwd`. Misuse if it is none."""
        scheme, separator, rest = text.partition("://")
        if scheme in CHARTS:
            return cls._chart(scheme, rest)
        if not separator or scheme not in (REGISTRY, LAYOUT):
            raise Misuse(f"not a place: {text[:300]!r}", hint=_scheme(text))
        if scheme == REGISTRY:
            return cls(scheme, Reference.parse(rest))
        match = _TAIL.fullmatch(rest)
        if match is None or not match["path"]:
            raise Misuse(f"a layout needs a path: {text!r}")
        path = posixpath.normpath(posixpath.join(cwd, match["path"]))
        digest = Digest.parse(match["digest"]) if match["digest"] else None
        name = re.sub(_FOREIGN, "-", posixpath.basename(path).removesuffix(".tar").lower()).strip(
            "-"
        )
        return cls(scheme, Reference("localhost", name or "layout", match["tag"], digest), path)

    @classmethod
    def _chart(cls, scheme: str, rest: str) -> Self:
        match = _CHART.fullmatch(rest)
        if match is None or "?" in rest or "#" in rest or "@" in match["path"]:
            raise Misuse(
                f"not a chart: {scheme}://{rest.rpartition('@')[2].partition('?')[0][:300]}",
                hint="write helm+https://host/path/NAME:VERSION, without user and query",
            )
        host, *parts = match["path"].lower().split("/")
        if "." not in host and ":" not in host and host != "localhost":
            host += ":443" if scheme == CHARTS[0] else ":80"
        names = (_part(part) for part in (*parts, match["name"].lower()))
        reference = Reference(
            host,
            "/".join(name for name in names if name),
            match["version"].replace("+", "_") if match["version"] else None,
            Digest.parse(match["digest"]) if match["digest"] else None,
        )
        return cls(scheme, reference, f"{match['path'].rstrip('/')}/{match['name']}")

    @property
    def is_chart(self) -> bool:
        """Whether this is a chart of a classic Helm repository, which is only read."""
        return self.scheme in CHARTS

    @property
    def chart(self) -> tuple[str, str]:
        """The address of the classic repository, and the name of the chart in it."""
        above, _, name = self.path.rpartition("/")
        return f"{self.scheme.removeprefix('helm+')}://{above}", name

    @property
    def is_layout(self) -> bool:
        """Whether this is an OCI layout rather than a registry."""
        return self.scheme == LAYOUT

    def below(self, name: str) -> Self:
        """The repository `name` below this one, with the same tag and digest.

        For a layout that is a directory in a directory. Misuse if this is a file, which holds one.
        """
        if self.is_chart:
            raise Misuse(f"{self}: nothing is below a chart")
        if not self.is_layout:
            inner = f"{self.reference.repository}/{name}"
            return replace(self, reference=replace(self.reference, repository=inner))
        if self.path.endswith(".tar"):
            raise Misuse(f"{self}: a .tar holds one repository", hint="name a directory")
        found = self.parse(f"{self.scheme}://{self.path}/{name}", cwd="/")
        tag, digest = self.reference.tag, self.reference.digest
        return replace(found, reference=replace(found.reference, tag=tag, digest=digest))

    @property
    def bare(self) -> str:
        """The repository alone, as it would be typed."""
        return f"{self.scheme}://{self.path or self.reference.bare}"

    def tagged(self, tag: str) -> Self:
        """Name `tag` here, and no digest."""
        return replace(self, reference=replace(self.reference, tag=tag, digest=None))

    def at(self, digest: Digest) -> Self:
        """Name `digest` here, keeping the tag."""
        return replace(self, reference=self.reference.at(digest))

    def __str__(self) -> str:
        tag = f":{self.reference.tag}" if self.reference.tag is not None else ""
        digest = f"@{self.reference.digest}" if self.reference.digest is not None else ""
        return f"{self.bare}{tag}{digest}"


def _scheme(text: str) -> str:
    """How to begin `text`, which names no scheme of ours."""
    scheme, separator, rest = text.partition("://")
    try:
        if separator and scheme in _OTHERS:
            return f"did you mean {REGISTRY}://{Reference.parse(rest)}?"
        if not separator:
            return f"did you mean {REGISTRY}://{Reference.parse(text)}?"
    except Misuse:
        pass
    return (
        "write oci://registry/repository[:tag][@digest] for a registry, or "
        "ocidir://path[:tag][@digest] for an OCI layout (a directory or a .tar file); "
        "helm+https://host/path/NAME:VERSION is a chart to read"
    )


def _part(text: str) -> str:
    """A part of an address as a part of a repository's name; empty if nothing of it can be one."""

    def joint(match: re.Match[str]) -> str:
        found = match[0]
        return found if found in (".", "_", "__") or found == "-" * len(found) else "-"

    return re.sub(_FOREIGN, joint, text).strip("-._")
