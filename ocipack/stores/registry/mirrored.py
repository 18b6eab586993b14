"""A repository that is read through mirrors (docs/registries.md, "Mirrors")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ocipack.errors import IntegrityError, NotFound, StoreError, Unavailable
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.stores.registry.client import Repository
from ocipack.stores.registry.store import RegistryStore


@dataclass(frozen=True, slots=True)
class Copy:
    """A mirror of one repository; `believed` about what tags point at and what is attached."""

    store: RegistryStore
    believed: bool


@dataclass(slots=True)
class Reach:
    """Whether a registry could be reached; shared by all of its repositories, for one run.

    In a closed network each try ends only after the time-out.
    """

    lost: Unavailable | None = None


class MirroredStore(RegistryStore):
    """A repository with mirrors, for reading only; safe for threads.

    Content comes from the first mirror that has it, else from the repository itself, and is held
    against its digest whoever sends it. Checks, numbered in the code:

    1. a mirror that hands out other content ends the run;
    2. a mirror that fails in the middle is replaced by the next, and the whole is hashed once
       more: what was passed on already must be its beginning;
    3. only believed mirrors are asked about tags;
    4. what is attached is listed by all, and by the repository itself unless that cannot be
       reached and a believed mirror has answered.
    """

    def __init__(
        self, at: Repository, copies: Sequence[Copy], reach: Reach, *, prefetch: bool = True
    ) -> None:
        super().__init__(at, prefetch=prefetch)
        self._copies = copies
        self._reach = reach

    def resolve(self, name: str) -> Descriptor:
        """Find the manifest behind a tag or digest."""
        absent: NotFound | None = None
        for copy in self._copies:
            if ":" not in name and not copy.believed:  # (3)
                continue
            try:
                with self._reading(copy):
                    return copy.store.resolve(name)
            except NotFound as e:
                absent = e if copy.believed else absent
            except StoreError:
                continue
        with self._asking(absent):
            return super().resolve(name)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        """Stream content, checked against `target`."""
        yield from target.check(self._pieces(target))  # (2)

    def claimed(self, target: Descriptor) -> Iterator[bytes]:
        """Stream content, checked: it comes from several places."""
        return self.fetch(target)

    def _pieces(self, target: Descriptor) -> Iterator[bytes]:
        done = 0
        for copy in self._copies:
            try:
                with self._reading(copy):
                    for piece in _after(done, copy.store.fetch(target)):
                        done += len(piece)
                        yield piece
                    return
            except StoreError:
                continue
        with self._asking(None):
            yield from _after(done, super().claimed(target))

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """List what refers to `subject`: from everywhere, each once, lazily."""
        seen: set[Digest] = set()
        answered = False
        for copy in self._copies:
            try:
                with self._reading(copy):
                    yield from _new(copy.store.referrers(subject), seen)
                answered = answered or copy.believed
            except StoreError:
                continue
        try:
            with self._asking(None):
                yield from _new(super().referrers(subject), seen)
        except Unavailable:
            if not answered:  # (4)
                raise

    def tags(self) -> Iterator[str]:
        """Every tag, as the first believed mirror has them, else the repository itself."""
        for copy in self._copies:
            if copy.believed:
                try:
                    with self._reading(copy):
                        return copy.store.tags()
                except StoreError:
                    continue
        with self._asking(None):
            return super().tags()

    def few_tags(self) -> frozenset[str] | None:
        """Nothing: what one of several places lists is not all there is."""
        return None

    @contextmanager
    def _reading(self, copy: Copy) -> Iterator[None]:
        """Say of content that is not what it should be whose it is."""
        try:
            yield
        except IntegrityError as e:  # (1)
            raise IntegrityError(
                f"{copy.store.at.shown}, a mirror of {self.at.shown}: {e}",
                hint="take the mirror out of registries.yaml, or find out who changes its content",
            ) from e

    @contextmanager
    def _asking(self, absent: NotFound | None) -> Iterator[None]:
        """Ask the repository itself, unless it is known to be out of reach: then `absent` stands.

        That is what a believed mirror said, if one did.
        """
        if self._reach.lost is not None:
            raise absent or self._reach.lost
        try:
            yield
        except Unavailable as e:
            if type(e) is Unavailable:  # what another try may mend is a class of its own
                self._reach.lost = e
            if absent is not None:
                raise absent from e
            raise


def _after(done: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Leave out the first `done` bytes."""
    for piece in pieces:
        kept = piece[done:]
        done = max(0, done - len(piece))
        if kept:
            yield kept


def _new(found: Iterable[Descriptor], seen: set[Digest]) -> Iterator[Descriptor]:
    for one in found:
        if one.digest not in seen:
            seen.add(one.digest)
            yield one
