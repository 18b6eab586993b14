"""Where content lives: what a place to read from and a place to write to promise.

Every implementation passes `tests/contract/`. All of them may be used from several threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ocipack.errors import IntegrityError
from ocipack.oci.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.digest import Digest

MANIFEST_LIMIT = 4 * 1024 * 1024
"""Bytes of a manifest or index that we are ready to read (distribution's own limit)."""


class Source(Protocol):
    """Content we may read: one repository, one layout, one artifact."""

    def resolve(self, name: str) -> Descriptor:
        """Find the manifest behind a tag or digest.

        NotFound if there is none. The result is plain: no annotations, no artifact type.
        """

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """Stream content, blob or manifest.

        NotFound if it is absent; IntegrityError before the end if it is not what `target` says;
        Unavailable if it stops short.
        """

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """List the manifests that name `subject` as their subject, each once, lazily.

        The listing is hearsay: it may hold what does not belong there, so whoever believes one
        reads the manifest and compares its subject. None is an empty listing, not an error.
        """


class Store(Source, Protocol):
    """Content we may also write."""

    def exists(self, target: Descriptor) -> bool:
        """Whether pushing `target` would add nothing.

        Yes means that its bytes are here, that a manifest has all its children here, and that
        one with a subject is listed among the subject's referrers: `copy` then leaves it and
        everything below it alone. A layout looks and hashes; a registry, which refuses a
        manifest without its children, answers by having the manifest. What is here but altered,
        or of another size, does not exist.
        """

    def push(self, target: Descriptor, source: Source) -> None:
        """Take `target` from `source`, which may be asked more than once; needs its children.

        Refuses bytes that do not match `target`, whatever `source` promised, and leaves nothing
        of them. Refuses a manifest whose children are not here. A manifest with a subject is
        listed among its subject's referrers when this returns; the subject need not be here.
        """

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        """Point `name` at the manifest `target`, which is here already (else NotFound).

        With `was`, only if `name` still points at that digest (None: at nothing), else Rejected
        in words that say where it points now. A name that points at `target` already is done,
        whatever `was` says, and costs no write. A layout does this in one step; a registry asks
        immediately before it writes. Misuse if `name` cannot be a tag.
        """


class Listing(Source, Protocol):
    """A source that can also say which tags it has."""

    def tags(self) -> Iterator[str]:
        """Every tag, sorted bytewise; fallback tags of referrers and `.sig` tags included."""


@runtime_checkable
class Remote(Store, Protocol):
    """A store in which every write is a request, and which therefore takes several at once.

    `shared` names what it shares blobs with: stores that say the same can take a blob from each
    other without its bytes being sent, once one of them has it.
    """

    @property
    def shared(self) -> str:
        """Name the registry."""

    def take(self, target: Descriptor, source: Source, *, name: str = "") -> bool:
        """Do what `push` does, but list no referrer; whether a blob came without being sent.

        A manifest goes straight under the tag `name`, if one is given, whatever that names now.
        """

    def attach(self, subject: Descriptor, referrers: Sequence[Descriptor]) -> None:
        """List `referrers`, which are here, among those of `subject`; none is lost meanwhile.

        They come as a listing shows them, with artifact type and annotations. Returns when a
        reading has shown all of them.
        """


@dataclass(frozen=True, slots=True)
class Watched:
    """A source whose content is given up between two pieces once `check` raises.

    What is in flight when a run fails, or is interrupted, would else be sent to its end.
    """

    source: Source
    check: Callable[[], None]

    def resolve(self, name: str) -> Descriptor:
        """See Source."""
        return self.source.resolve(name)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """See Source; raises what `check` raises."""
        return self.watch(self.source.fetch(target))

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """See Source."""
        return self.source.referrers(subject)

    def watch(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Pass `pieces` on as long as `check` does not raise."""
        for piece in pieces:
            self.check()
            yield piece


def read(source: Source, target: Descriptor, *, limit: int) -> bytes:
    """Read `target` whole, which must be at most `limit` bytes long; IntegrityError if it is not.

    The size is refused before anything is fetched. What is read is hashed here once more: no
    decision about content hangs on a source having kept its promise.
    """
    if target.size > limit:
        raise IntegrityError(
            f"{target.digest}: {target.size} bytes, and at most {limit} are read of a "
            f"{target.media_type or 'blob'}"
        )
    return b"".join(target.check(source.fetch(target)))


def manifest(source: Source, target: Descriptor) -> Manifest:
    """Read the manifest or index `target`; IntegrityError unless it is one, and of sane size."""
    if not target.is_manifest:
        raise IntegrityError(f"{target.digest}: {target.media_type!r} is not a manifest or index")
    found = Manifest(read(source, target, limit=MANIFEST_LIMIT), target.media_type)
    _ = found.children
    return found
