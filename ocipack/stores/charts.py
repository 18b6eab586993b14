"""Classic Helm repositories, read as registries are: each version of a chart is an artifact.

The artifact is the one that `helm push` would make (`ocipack.helm.chart`), so what is copied from
here is what Helm pulls there. Nobody can write here, and nothing is attached to anything.

1. An archive is what the index says by sha256. Where the index says none it is refused, unless
   the digest of the artifact itself is asked for.
2. The archive must be of the chart and version that the index says.
3. Credentials are those of the very host that is asked (docker's configuration), sent when it
   asks for them, and not over plain HTTP but where that is allowed for the host.
4. An index reached by TLS cannot lead to plain HTTP, nor a public one to an inner address.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected, StoreError
from ocipack.helm import index
from ocipack.helm.chart import ARCHIVE, PROVENANCE_BYTES, SIGNED, Package, is_tag, tag
from ocipack.helm.metadata import is_version
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.stores.auth.config import Credentials
from ocipack.stores.auth.credential import Credential
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.coding import NotGzip, gunzip
from ocipack.stores.http.transport import Transport
from ocipack.stores.http.url import Url, printable
from ocipack.stores.registry.client import explain
from ocipack.stores.registry.refusal import UNAUTHORIZED

if TYPE_CHECKING:
    from ocipack.helm.index import Release

HELD: Final = 64 * 1024 * 1024
"""Bytes of archives that are kept between looking into them and handing them on."""

_OK: Final = 200
_ABSENT: Final = frozenset({403, 404, 410})
"""What a server says of a file that is not there; S3 says 403 to whoever may not list."""

_PIECE: Final = 256 * 1024


class ChartRepository:
    """The repository at `address`, below which `index.yaml` is; safe for threads.

    Misuse for plain HTTP where that is not allowed.
    """

    def __init__(self, transport: Transport, credentials: Credentials, address: str) -> None:
        self.address = address.rstrip("/")
        self._transport, self._credentials = transport, credentials
        self._base = Url.parse(f"{self.address}/{index.FILE}")
        self._lock = threading.Lock()
        self._charts: Mapping[str, tuple[Release, ...]] | None = None
        self._login: dict[str, Credential] = {}
        if self._base.scheme == "http" and not self._is_plain(self._base):
            raise Misuse(
                f"{self.address}: plain HTTP, which anybody on the way can read and change",
                hint=f"use https://, or allow it with --plain-http {self._base.netloc}",
            )

    def _is_plain(self, url: Url) -> bool:
        return self._transport.base(url.netloc).scheme == "http"

    def releases(self, name: str) -> tuple[Release, ...]:
        """The versions of a chart. NotFound if there is no such chart."""
        with self._lock:
            if self._charts is None:
                self._charts = index.read(self._get(self._base, index.BYTES))
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
        if url.scheme == "http" and self._base.scheme == "http" and not self._is_plain(url):
            raise StoreError(f"{self._base.shown} leads to plain HTTP ({url.shown})")  # (4)
        return url

    def _archive(self, url: Url, digest: Digest | None) -> bytes:
        """An archive, as it came or without the coding that a server put on it."""
        answered, raw = self._answer(url, ARCHIVE, {_OK})
        if digest is None or Digest.of(raw) == digest:
            return raw
        inner = _gunzipped(raw, ARCHIVE) if answered.is_gzipped else b""
        if Digest.of(inner) == digest:
            return inner
        raise IntegrityError(  # (1)
            f"{url.shown}: it is {Digest.of(raw)}, and the index says {digest}",
            hint="the archive was replaced, or the index is old; ask whoever publishes it",
        )

    def _provenance(self, url: Url) -> bytes | None:
        """The provenance file beside an archive; what is none, such as a page, is not there."""
        beside = Url(url.scheme, url.host, url.port, f"{url.path}.prov", url.query)
        answer, raw = self._answer(beside, PROVENANCE_BYTES, {_OK, *_ABSENT})
        return raw if answer.status == _OK and raw.startswith(SIGNED) else None

    def _get(self, url: Url, limit: int) -> bytes:
        answer, raw = self._answer(url, limit, {_OK})
        return (_gunzipped(raw, limit) or raw) if answer.is_gzipped else raw

    def _answer(self, url: Url, limit: int, ok: Collection[int]) -> tuple[Answer, bytes]:
        """Read a file whole, again if that can help; the body of a status but 200 is not read."""

        def once() -> tuple[Answer, bytes]:
            answer = self._asked(url, ok)
            if answer.status != _OK:
                answer.finish()
                return answer, b""
            return answer, _limited(answer, limit)

        return self._transport.patience.retry(once)

    def _asked(self, url: Url, ok: Collection[int]) -> Answer:
        credential = self._login.get(url.netloc)
        answer = self._sent(url, credential)
        if answer.status == UNAUTHORIZED and credential is None:
            credential = self._credentials.find(url.netloc, "")  # (3)
            if credential.username:
                answer.finish()
                self._login[url.netloc] = credential
                answer = self._sent(url, credential)
        if answer.status in ok:
            return answer
        tried = credential or Credential("anonymous; the server asked for no credentials")
        raise explain(answer, tried, tried.secrets)

    def _sent(self, url: Url, credential: Credential | None) -> Answer:
        headers = {"Authorization": credential.basic} if credential is not None else {}
        told = None if url.origin == self._base.origin else self._base
        return self._transport.exchange("GET", url, headers=headers, sent_by=told)  # (4)


def _limited(answer: Answer, limit: int) -> bytes:
    """The body as it came; IntegrityError if it is longer than `limit` bytes."""
    if (answer.length or 0) > limit:
        answer.drop()
        raise IntegrityError(f"{answer.at.what}: the answer is longer than {limit} bytes")
    pieces, total = [], 0
    for piece in answer.chunks():
        total += len(piece)
        if total > limit:
            answer.drop()
            raise IntegrityError(f"{answer.at.what}: the answer is longer than {limit} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _gunzipped(raw: bytes, limit: int) -> bytes:
    """`raw` without the coding that its header says; nothing if it has none, or is too long."""
    pieces, total = [], 0
    try:
        for piece in gunzip([raw], _PIECE):
            total += len(piece)
            if total > limit:
                return b""
            pieces.append(piece)
    except NotGzip:
        return b""
    return b"".join(pieces)


class ChartStore:
    """The chart `name` of a repository, as a Source and Listing.

    `hints` are tags under which a digest that is asked for is looked for.
    """

    def __init__(self, repository: ChartRepository, name: str, hints: Collection[str] = ()) -> None:
        self._repository, self._name, self._hints = repository, name, tuple(hints)
        self._lock = threading.Lock()
        self._known: Mapping[str, Release] | None = None
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
        found = self._releases().get(name)
        if found is None:
            raise NotFound(f"{self._shown}: there is no version {printable(name, 80)}")
        return found

    def _releases(self) -> Mapping[str, Release]:
        """The versions by tag. Rejected if one of them is there twice with two archives."""
        with self._lock:
            if self._known is None:
                self._known = self._by_tag()
            return self._known

    def _by_tag(self) -> Mapping[str, Release]:
        found: dict[str, Release] = {}
        for one in self._repository.releases(self._name):
            name = tag(one.version)
            if not is_version(one.version) or not is_tag(name):
                continue
            known = found.setdefault(name, one)
            if (known.digest, known.version) != (one.digest, one.version):
                raise Rejected(f"{self._shown}: the index has two archives for {one.version}")
        return found

    def _root(self, name: str, release: Release, wanted: Digest | None = None) -> Descriptor:
        """The artifact of a version, which is kept if it is the one that is `wanted`."""
        with self._lock:
            known = self._roots.get(name)
        if known is not None:
            return known
        package, archive = self._repository.package(self._name, release)
        root = package.artifact.root
        if wanted in (None, root.digest):
            self._keep(name, package, archive, release)
        return root

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
            found = self._root(hint, self._release(hint), digest)
            if found.digest == digest:
                return found
        raise NotFound(
            f"{self._shown}: there is no {digest}",
            hint="the version may have been published anew, with another archive"
            if self._hints
            else "say the version as well: :VERSION@sha256:…",
        )
