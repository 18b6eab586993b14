"""Where an artifact is named (distribution-spec, "Pulling manifests"; distribution/reference)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Self

from ocipack.errors import Misuse
from ocipack.oci.digest import Digest

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = (
    rf"(?:localhost|\[[0-9a-fA-F:]+\]|{_LABEL}(?:\.{_LABEL})+|{_LABEL}(?=:[0-9]))(?::[0-9]{{1,5}})?"
)
_REPOSITORY = rf"{_PART}(?:/{_PART})*"
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_TAIL = rf"(?::(?P<tag>{TAG.pattern}))?(?:@(?P<digest>[a-z0-9]+:[0-9a-f]+))?"
_REFERENCE = re.compile(rf"(?P<registry>{_HOST})/(?P<repository>{_REPOSITORY}){_TAIL}")
_SHORT = rf"(?P<repository>{_REPOSITORY}){_TAIL}"
_LOOSE = re.compile(_REFERENCE.pattern, re.IGNORECASE)
_LIMIT = 255


def _mended(text: str) -> str:
    """What to write instead of `text`, which is no reference."""
    loose = _LOOSE.fullmatch(text)
    if loose is not None:
        start, end = loose.span("repository")
        return (
            f"repositories are in lower case: {text[:start]}{text[start:end].lower()}{text[end:]}"
        )
    if re.search(r"\s", text):
        return "it has a blank in it"
    if re.fullmatch(rf"{_HOST}/?", text):
        return f"name a repository: {text.rstrip('/')}/REPOSITORY; registries do not list theirs"
    return (
        "write registry/repository[:tag][@sha256:…] in full; a registry has a dot, a port or is "
        "localhost"
    )


@dataclass(frozen=True, slots=True)
class Reference:
    """`registry/repository[:tag][@digest]`; no default registry, no default tag.

    Raises Misuse for anything that would need guessing.
    """

    registry: str
    repository: str
    tag: str | None = None
    digest: Digest | None = None

    def __post_init__(self) -> None:
        if not _REFERENCE.fullmatch(str(self)):
            raise Misuse(f"not a reference: {str(self)!r}")
        _, _, port = self.registry.rpartition(":")
        if port.isdigit() and int(port) > 65535:  # noqa: PLR2004 - the last TCP port
            raise Misuse(f"not a port: {port} in {str(self)!r}")
        if len(self.repository) > _LIMIT:
            raise Misuse(f"a repository name has at most {_LIMIT} characters: {self.repository!r}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a full reference."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise Misuse(f"not a reference: {text[:300]!r}", hint=_mended(text))
        return cls._from(match, match["registry"], match["repository"])

    @classmethod
    def familiar(cls, text: str) -> Self:
        """Read a pod's image field as containerd and docker do.

        No registry means docker.io, one path component there means `library/`; a missing tag
        stays missing. Only for images in Kubernetes objects.
        """
        full = _REFERENCE.fullmatch(text)
        if full is not None:
            registry, repository, match = full["registry"], full["repository"], full
        else:
            short = re.fullmatch(_SHORT, text)
            if short is None:
                raise Misuse(f"not an image reference: {text[:300]!r}")
            registry, repository, match = "docker.io", short["repository"], short
        if registry == "index.docker.io":
            registry = "docker.io"
        if registry == "docker.io" and "/" not in repository:
            repository = f"library/{repository}"
        return cls._from(match, registry, repository)

    @classmethod
    def _from(cls, match: re.Match[str], registry: str, repository: str) -> Self:
        digest = match["digest"]
        return cls(registry, repository, match["tag"], Digest.parse(digest) if digest else None)

    @property
    def name(self) -> str:
        """What a store resolves: the digest when there is one, else the tag, else `latest`."""
        if self.digest is not None:
            return str(self.digest)
        return self.tag or "latest"

    @property
    def bare(self) -> str:
        """`registry/repository`: what signatures call the docker-reference."""
        return f"{self.registry}/{self.repository}"

    def at(self, digest: Digest) -> Self:
        """Pin this reference to `digest`, keeping its tag."""
        return replace(self, digest=digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag is not None else ""
        digest = f"@{self.digest}" if self.digest is not None else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"
