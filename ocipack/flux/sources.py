"""What controllers fetch: sources and charts of Flux, and those of Argo CD's Applications.

Sources: the API references of source-controller (OCIRepository, GitRepository, HelmRepository,
HelmChart, Bucket), source-watcher (ArtifactGenerator), helm-controller (HelmRelease) and
flux-operator (FluxInstance); Argo CD's Application and ApplicationSet specifications. What fixes
the content differs: a digest, a commit, an exact version of a chart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self, TypeAlias

from ocipack.errors import Misuse
from ocipack.oci.digest import Digest
from ocipack.oci.reference import TAG, Reference

Path: TypeAlias = tuple[str, ...]

SCHEMES: Final = ("oci", "https", "http", "ssh")
"""How an address may be reached."""

_PORTS: Final = {"oci": "443", "https": "443", "http": "80", "ssh": "22"}
_HUB: Final = frozenset({"index.docker.io", "registry-1.docker.io"})
_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z]+)://(?:[A-Za-z0-9._-]+@)?"
    r"(?P<host>\[[0-9A-Fa-f:]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)"
    r"(?::(?P<port>[0-9]{1,5}))?(?P<path>(?:/[A-Za-z0-9._~+-]+)*)/?",
    re.ASCII,
)
_SCP: Final = re.compile(r"[A-Za-z0-9._-]+@(?P<host>[A-Za-z0-9.-]+):(?P<path>[^/:].*)", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_VERSION: Final = re.compile(
    r"v?(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)
_NUMBER: Final = re.compile(r"v?[0-9]", re.ASCII)
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Address:
    """Where something is fetched, in one spelling.

    `host` has a port if it is not the scheme's own, `path` no `/` at its ends. User, `.git` at
    the end and upper case of the host are left out.
    """

    scheme: str
    host: str
    path: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL; Misuse for what two readers could take for two places.

        That is every escape, query, password, `.` and `..`, and whatever is not ASCII.
        """
        match = _URL.fullmatch(text)
        scheme = match["scheme"].lower() if match is not None else ""
        segments = match["path"].split("/")[1:] if match is not None else []
        if match is None or scheme not in SCHEMES or {".", ".."} & set(segments):
            raise Misuse(f"not a plain address: {text[:_SHOWN]!r}")
        host = match["host"].lower()
        if scheme == "oci" and host in _HUB:
            host = "docker.io"
        port = (match["port"] or "").lstrip("0")
        if port not in ("", _PORTS[scheme]):
            host = f"{host}:{port}"
        return cls(scheme, host, "/".join(segments).removesuffix(".git"))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}/{self.path}".rstrip("/")


@dataclass(frozen=True, slots=True)
class Link:
    """An object that another one fetches from, by what identifies it; what it is lies with it."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def to(cls, reference: Any, value: Mapping[str, Any]) -> Self:
        """What a `reference` in the object `value` leads to: in its namespace, unless it says."""
        namespace = _text(reference, "namespace") or _text(_get(value, "metadata"), "namespace")
        return cls(_text(reference, "kind"), namespace, _text(reference, "name"))


@dataclass(frozen=True, slots=True)
class Fetch:
    """Something that a controller fetches: the `path` in the object that says so, and what it is.

    `text` is for people. `address` is where; None if another object says it, or if `reason` says
    why nobody can tell. `reference` is an OCI artifact's. `pinned` is whether what is fetched can
    only be one thing; `missing` says what would fix it, and `ranges` whether it names no version
    but several. `link` is the repository of a chart.
    """

    path: Path
    text: str
    address: Address | None = None
    reference: Reference | None = None
    pinned: bool = False
    missing: str = ""
    reason: str = ""
    link: Link | None = None
    ranges: bool = False


def fetches(group: str, kind: str, value: Mapping[str, Any]) -> Iterator[Fetch]:
    """What the object `value` has fetched."""
    found = _READERS.get((group, kind))
    if found is not None:
        yield from found(value)


def links(group: str, kind: str, value: Mapping[str, Any]) -> Iterator[Link]:
    """The source objects that `value` leans on."""
    paths = _LINKS.get((group, kind), ())
    for path in paths:
        link = Link.to(_get(value, *path), value)
        if link.kind and link.name:
            yield link
    if (group, kind) == _GIT:
        for one in _list(_get(value, "spec", "include")):
            name = {"kind": kind, "name": _text(_get(one, "repository"), "name")}
            yield Link.to(name, value)
    if (group, kind) == _GENERATOR:
        for one in _list(_get(value, "spec", "sources")):
            yield Link.to(one, value)


def paths(group: str, kind: str, value: Mapping[str, Any]) -> Iterator[tuple[str, Link | None]]:
    """Directories that Flux builds for the object `value`, and the source they are in, if named."""
    if (group, kind) == _KUSTOMIZATION:
        yield _text(_get(value, "spec"), "path"), next(links(group, kind, value), None)
    elif (group, kind) == _INSTANCE and _get(value, "spec", "sync") is not None:
        yield _text(_get(value, "spec", "sync"), "path"), None


def _oci(value: Mapping[str, Any]) -> Iterator[Fetch]:
    url, ref = _text(_get(value, "spec"), "url"), _get(value, "spec", "ref")
    semver = _text(ref, "semver")  # even an exact one is a range, which Flux looks up
    version = semver or _text(ref, "tag") or "latest"
    said = _artifact(url, version, _text(ref, "digest"), ("spec", "url"), tags=not semver)
    yield replace(said, missing="a digest in ref.digest")


def _artifact(url: str, version: str, digest: str, path: Path, *, tags: bool) -> Fetch:
    """An OCI artifact; `version` is a range unless it can be a tag, which `tags` says."""
    tag = version if tags and TAG.fullmatch(version) else ""
    text = f"{url}:{version}" + (f"@{digest}" if digest else "")
    address, reason = _address(url)
    reference = None
    if address is not None and address.scheme != "oci":
        address, reason = None, f"{url[:_SHOWN]!r} is no oci:// address"
    if address is not None:
        try:
            whole = f"{address.host}/{address.path}" + (f":{tag}" if tag else "")
            reference = Reference.familiar(whole)
            if digest:
                reference = reference.at(Digest.parse(digest))
        except Misuse as e:
            reference, reason = None, str(e)
    pinned = reference is not None and reference.digest is not None
    ranges = not tag and not digest
    return Fetch(path, text, address, reference, pinned, reason=reason, ranges=ranges)


def _git(value: Mapping[str, Any]) -> Iterator[Fetch]:
    url, ref = _text(_get(value, "spec"), "url"), _get(value, "spec", "ref")
    commit = _text(ref, "commit")
    said = next((_text(ref, key) for key in ("name", "semver", "tag", "branch")), "")
    address, reason = _address(url)
    yield Fetch(
        ("spec", "url"),
        f"{url} {commit or said}".strip(),
        address,
        pinned=_COMMIT.fullmatch(commit) is not None,
        missing="a commit in ref.commit",
        reason=reason,
    )


def _instance(value: Mapping[str, Any]) -> Iterator[Fetch]:
    """What a FluxInstance has synchronised, and the artifact that Flux itself comes from."""
    sync = _get(value, "spec", "sync")
    if isinstance(sync, Mapping):
        path, url, ref = ("spec", "sync", "url"), _text(sync, "url"), _text(sync, "ref")
        missing = "an object of its own: a FluxInstance follows a tag or branch"
        if _text(sync, "kind") in ("", "OCIRepository"):
            said = _artifact(url, ref or "latest", "", path, tags=True)
        else:
            address, reason = _address(url)
            said = Fetch(path, f"{url} {ref}".strip(), address, reason=reason)
        yield replace(said, missing=missing)
    text = _text(_get(value, "spec", "distribution"), "artifact")
    if text:
        bare, _, digest = text.partition("@")
        url, colon, tag = bare.rpartition(":")
        url, tag = (url, tag) if colon and "/" not in tag else (bare, "")
        made = _artifact(
            url, tag or "latest", digest, ("spec", "distribution", "artifact"), tags=True
        )
        yield replace(made, missing="a digest")


def _helm_repository(value: Mapping[str, Any]) -> Iterator[Fetch]:
    url = _text(_get(value, "spec"), "url")
    address, reason = _address(url)
    yield Fetch(("spec", "url"), url, address, pinned=True, reason=reason)


def _bucket(value: Mapping[str, Any]) -> Iterator[Fetch]:
    spec = _get(value, "spec")
    scheme = "http" if _get(spec, "insecure") is True else "https"
    text = f"{scheme}://{_text(spec, 'endpoint')}/{_text(spec, 'bucketName')}"
    address, reason = _address(text)
    missing = "another kind of source: a bucket cannot be pinned"
    yield Fetch(("spec", "endpoint"), text, address, missing=missing, reason=reason)


def _helm_chart(value: Mapping[str, Any]) -> Iterator[Fetch]:
    yield _chart(value, ("spec",))


def _helm_release(value: Mapping[str, Any]) -> Iterator[Fetch]:
    path = ("spec", "chart", "spec")
    if isinstance(_get(value, *path), Mapping):
        yield _chart(value, path)


def _chart(value: Mapping[str, Any], path: Path) -> Fetch:
    spec = _get(value, *path)
    name, version = _text(spec, "chart"), _text(spec, "version")
    link = Link.to(_get(spec, "sourceRef"), value)
    own = link.kind in ("GitRepository", "Bucket")  # it is a path there, and pinned with it
    text = f"chart {name}" if own else f"chart {name} {version or '*'}"
    exact = _VERSION.fullmatch(version) is not None
    missing = "an exact version"
    return Fetch((*path, "version"), text, pinned=own or exact, missing=missing, link=link)


def _application(value: Mapping[str, Any]) -> Iterator[Fetch]:
    yield from _argo(_get(value, "spec"), ("spec",))


def _application_set(value: Mapping[str, Any]) -> Iterator[Fetch]:
    yield from _argo(_get(value, "spec", "template", "spec"), ("spec", "template", "spec"))


def _argo(spec: Any, path: Path) -> Iterator[Fetch]:
    several = _get(spec, "sources")
    found = [((*path, "source"), _get(spec, "source"))]
    for index, one in enumerate(several if isinstance(several, list) else ()):
        found.append(((*path, "sources", str(index)), one))
    for where, one in found:
        if isinstance(one, Mapping):
            yield _argo_source(one, (*where, "repoURL"))


def _argo_source(one: Mapping[str, Any], path: Path) -> Fetch:
    url, chart, version = (_text(one, key) for key in ("repoURL", "chart", "targetRevision"))
    scp = _SCP.fullmatch(url)
    if scp is not None:
        url = f"ssh://{scp['host']}/{scp['path']}"
    if chart:
        address, reason = _address(url if "://" in url else f"oci://{url}")
        text = f"{url} chart {chart} {version or '*'}"
        exact = _VERSION.fullmatch(version) is not None
        return Fetch(path, text, address, pinned=exact, missing="an exact version", reason=reason)
    if url.startswith("oci://"):
        digest = version if version.startswith(("sha256:", "sha512:")) else ""
        tag = "latest" if digest or not version else version
        tags = _VERSION.fullmatch(tag) is not None or not _NUMBER.match(tag)
        said = _artifact(url, tag, digest, path, tags=tags)
        return replace(said, missing="a digest in targetRevision")
    address, reason = _address(url)
    return Fetch(
        path,
        f"{url} {version}".strip(),
        address,
        pinned=_COMMIT.fullmatch(version) is not None,
        missing="a commit in targetRevision",
        reason=reason,
    )


def _address(url: str) -> tuple[Address | None, str]:
    """The address, or why it is none."""
    try:
        return Address.parse(url), ""
    except Misuse as e:
        return None, str(e)


def _get(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any, key: str) -> str:
    found = _get(value, key)
    return found if isinstance(found, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_SOURCE: Final = "source.toolkit.fluxcd.io"
_KUSTOMIZATION: Final = ("kustomize.toolkit.fluxcd.io", "Kustomization")
_INSTANCE: Final = ("fluxcd.controlplane.io", "FluxInstance")
_GENERATOR: Final = ("source.extensions.fluxcd.io", "ArtifactGenerator")
_GIT: Final = (_SOURCE, "GitRepository")
_RELEASE: Final = ("helm.toolkit.fluxcd.io", "HelmRelease")
_READERS: Final = {
    (_SOURCE, "OCIRepository"): _oci,
    _GIT: _git,
    (_SOURCE, "HelmRepository"): _helm_repository,
    (_SOURCE, "HelmChart"): _helm_chart,
    (_SOURCE, "Bucket"): _bucket,
    _RELEASE: _helm_release,
    _INSTANCE: _instance,
    ("argoproj.io", "Application"): _application,
    ("argoproj.io", "ApplicationSet"): _application_set,
}
_LINKS: Final[Mapping[tuple[str, str], tuple[Path, ...]]] = {
    _RELEASE: (("spec", "chart", "spec", "sourceRef"), ("spec", "chartRef")),
    (_SOURCE, "HelmChart"): (("spec", "sourceRef"),),
    _KUSTOMIZATION: (("spec", "sourceRef"),),
}
