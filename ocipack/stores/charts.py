"""Classic Helm repositories, read as registries are: each version of a chart is an artifact.

The artifact is the one that `helm push` would make (`ocipack.helm.chart`), so what is copied from
here is what Helm pulls there. Nobody can write here, and nothing is attached to anything.

1. An archive is what the index says by sha256. Where the index says none it is refused, unless
   the digest of the artifact itself is asked for.
2. The archive must be of the chart and version that the index says.
3. Credentials, and plain HTTP, are as `stores.downloads` has them.
4. An index reached by TLS cannot lead to plain HTTP, nor a public one to an inner address.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from ocipack.errors import IntegrityError, NotFound, Rejected, StoreError
from ocipack.helm import index
from ocipack.helm.chart import ARCHIVE, PROVENANCE_BYTES, SIGNED, Package, is_tag, tag
from ocipack.helm.metadata import is_version
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.stores.auth.config import Credentials
from ocipack.stores.downloads import OK, Downloads, bare
from ocipack.stores.http.transport import Transport
from ocipack.stores.http.url import Url, printable

if TYPE_CHECKING:
    from ocipack.helm.index import Release

HELD: Final = 64 * 1024 * 1024
"""Bytes of archives that are kept between looking into them and handing them on."""

_ABSENT: Final = frozenset({403, 404, 410})
"""What a server says of a file that is not there; S3 says 403 to whoever may not list."""


class ChartRepository:
    """The repository at `address`, below which `index.yaml` is; safe for threads.

    Misuse for plain HTTP where that is not allowed.
    """

    def __init__(self, transport: Transport, credentials: Credentials, address: str) -> None:
        self.address = address.rstrip("/")
        self._downloads = Downloads(transport, credentials)  # (3)
        self._base = self._downloads.address(f"{self.address}/{index.FILE}")
        self._lock = threading.Lock()
        self._charts: Mapping[str, tuple[Release, ...]] | None = None

    def releases(self, name: str) -> tuple[Release, ...]:
        """The versions of a chart. NotFound if there is no such chart."""
        with self._lock:
            if self._charts is None:
                answer, raw = self._downloads.get(self._base, index.BYTES, {OK})
                self._charts = index.read(bare(answer, raw, index.BYTES))
            found = self._charts.get(name)
        if found is None:
            raise NotFound(f"{self.address}: there is no chart {name!r} in its {index.FILE}")
        return found

    def package(self, name: str, release: Release) -> tuple[Package, bytes]:
        """A version of a chart, and its archive. IntegrityError if it is not what is said."""
        url = self._url(release)
        archive = self._archive(url, release.digest)
        package = Package.of(archive, self._provenance(url))
        said = package.metadata
        if (said.name, said.version) != (name, release.version):  # (2)
            raise IntegrityError(
                f"{url.shown}: the index says {name} {release.version}, and the archive "
                f"{said.name} {said.version}"
            )
        return package, archive

    def archive(self, release: Release, content: Descriptor) -> bytes:
        """The archive `content` once more."""
        return self._archive(self._url(release), content.digest)

    def _url(self, release: Release) -> Url:
        if release.url.startswith("oci://"):
            raise Rejected(
                f"{self.address}: {release.version} is kept in a registry: {release.url[:300]}",
                hint="name the chart there: oci://registry/repository",
            )
        url = Url.parse(urljoin(f"{self.address}/", release.url))
        if url.scheme == self._base.scheme == "http" and not self._downloads.is_plain(url):
            raise StoreError(f"{self._base.shown} leads to plain HTTP ({url.shown})")  # (4)
        return url

    def _archive(self, url: Url, digest: Digest | None) -> bytes:
        """An archive, as it came or without the coding that a server put on it."""
        answer, raw = self._downloads.get(url, ARCHIVE, {OK}, self._base)  # (4)
        if digest is None or Digest.of(raw) == digest:
            return raw
        inner = bare(answer, raw, ARCHIVE)
        if Digest.of(inner) == digest:
            return inner
        raise IntegrityError(  # (1)
            f"{url.shown}: it is {Digest.of(raw)}, and the index says {digest}",
            hint="the archive was replaced, or the index is old; ask whoever publishes it",
        )

    def _provenance(self, url: Url) -> bytes | None:
        """The provenance file beside an archive; what is none, such as a page, is not there."""
        beside = Url(url.scheme, url.host, url.port, f"{url.path}.prov", url.query)
        answer, raw = self._downloads.get(beside, PROVENANCE_BYTES, {OK, *_ABSENT}, self._base)
        return raw if answer.status == OK and raw.startswith(SIGNED) else None


class ChartStore:
    """The chart `name` of a repository, as a Source and Listing.

    `hints` are tags under which a digest that is asked for is looked for.
    """

    def __init__(self, repository: ChartRepository, name: str, hints: Collection[str] = ()) -> None:
        self._repository, self._name, self._hints = repository, name, tuple(hints)
        self._lock = threading.Lock()
        self._known: Mapping[str, Sequence[Release]] | None = None
        self._roots: dict[str, Descriptor] = {}
        self._made: dict[Digest, Artifact] = {}
        self._contents: dict[Digest, tuple[Descriptor, Release]] = {}
        self._held: OrderedDict[Digest, bytes] = OrderedDict()

    def tags(self) -> Iterator[str]:
        """See Listing: the versions, with `_` for `+`."""
        return iter(sorted(self._releases()))

    def resolve(self, name: str) -> Descriptor:
        """See Source. A tag is a version, whose archive has to be looked into.

        Rejected for a version of which the index says no sha256 (1), or two.
        """
        if ":" in name:
            return self._pinned(Digest.parse(name))
        release = self._release(name)
        if release.digest is None:
            raise Rejected(
                f"{self._shown}: the index says no sha256 for {release.version}, so whatever is "
                "there would be taken",
                hint="give the digest of the artifact as well: :VERSION@sha256:…",
            )
        return self._root(name, release)

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:  # noqa: ARG002 - the protocol
        """See Source: a classic repository attaches nothing."""
        return iter(())

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """See Source."""
        with self._lock:
            content = self._contents.get(target.digest)
            held = self._held.get(target.digest)
            made = self._made.get(target.digest)
        if content is not None:
            return target.check([held or self._repository.archive(content[1], content[0])])
        if made is None:
            raise NotFound(f"{self._shown}: there is no {target.digest}")
        return made.fetch(target)

    @property
    def _shown(self) -> str:
        return f"{self._repository.address}/{self._name}"

    def _release(self, name: str) -> Release:
        """A version. Rejected if the index has two archives for it."""
        found = self._releases().get(name, ())
        if not found:
            raise NotFound(f"{self._shown}: there is no version {printable(name, 80)}")
        if len({(one.digest, one.version) for one in found}) > 1:
            raise Rejected(f"{self._shown}: the index has two archives for {found[0].version}")
        return found[0]

    def _releases(self) -> Mapping[str, Sequence[Release]]:
        """What the index says of each version that can be a tag, by tag."""
        with self._lock:
            if self._known is None:
                known: dict[str, list[Release]] = {}
                for one in self._repository.releases(self._name):
                    name = tag(one.version)
                    if is_version(one.version) and is_tag(name):
                        known.setdefault(name, []).append(one)
                self._known = known
            return self._known

    def _root(self, name: str, release: Release) -> Descriptor:
        """The artifact of a version."""
        with self._lock:
            known = self._roots.get(name)
        if known is not None:
            return known
        package, archive = self._repository.package(self._name, release)
        self._keep(name, package, archive, release)
        return package.artifact.root

    def _keep(self, name: str, package: Package, archive: bytes, release: Release) -> None:
        root, content = package.artifact.root, package.content
        blobs = {key: data for key, data in package.artifact.blobs.items() if key != content.digest}
        light = Artifact(package.artifact.manifest, blobs)
        with self._lock:
            self._roots[name] = root
            self._made |= dict.fromkeys((root.digest, *blobs), light)
            self._contents[content.digest] = (content, release)
            self._held[content.digest] = archive
            while sum(map(len, self._held.values())) > HELD:
                self._held.popitem(last=False)

    def _pinned(self, digest: Digest) -> Descriptor:
        with self._lock:
            known = self._made.get(digest)
        if known is not None and known.root.digest == digest:
            return known.root
        for hint in self._hints:
            found = self._root(hint, self._release(hint))
            if found.digest == digest:
                return found
        raise NotFound(
            f"{self._shown}: there is no {digest}",
            hint="the version may have been published anew, with another archive"
            if self._hints
            else "say the version as well: :VERSION@sha256:…",
        )
