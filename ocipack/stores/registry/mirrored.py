"""A repository that is read through mirrors (docs/registries.md, "Mirrors")."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from ocipack.errors import IntegrityError, NotFound, StoreError, Unavailable
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.stores.http.faults import Silent
from ocipack.stores.registry.client import Repository
from ocipack.stores.registry.store import RegistryStore

_REASON, _REASONS = 200, 3  # characters, and mirrors, that a failure quotes


class Copy:
    """A mirror of one repository; `believed` about what tags point at and what is attached."""

    __slots__ = ("believed", "store")

    def __init__(self, store: RegistryStore, *, believed: bool) -> None:
        self.store = store
        self.believed = believed


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
        tried: list[StoreError] = []
        for copy in self._copies:
            if ":" not in name and not copy.believed:  # (3)
                continue
            try:
                with self._reading(copy):
                    return copy.store.resolve(name)
            except StoreError as e:
                tried.append(e)
                absent = e if copy.believed and isinstance(e, NotFound) else absent
        with self._asking(tried, absent):
            return super().resolve(name)

    def claimed(self, target: Descriptor) -> Iterator[bytes]:
        """Stream what is said to be `target`, for whoever hashes it: `fetch`, for one."""
        done = 0  # (2): what is passed on already is a part of what they hash
        tried: list[StoreError] = []
        for copy in self._copies:
            try:
                with self._reading(copy):
                    for piece in _after(done, copy.store.fetch(target)):
                        done += len(piece)
                        yield piece
                    return
            except StoreError as e:
                tried.append(e)
        with self._asking(tried):
            yield from _after(done, super().claimed(target))

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        """List what refers to `subject`: from everywhere, each once, lazily."""
        seen: set[Digest] = set()
        answered = False
        tried: list[StoreError] = []
        for copy in self._copies:
            try:
                with self._reading(copy):
                    yield from _new(copy.store.referrers(subject), seen)
                answered = answered or copy.believed
            except StoreError as e:
                tried.append(e)
        try:
            with self._asking(tried):
                yield from _new(super().referrers(subject), seen)
        except Unavailable:
            if not answered:  # (4)
                raise

    def tags(self) -> Iterator[str]:
        """Every tag, as the first believed mirror has them, else the repository itself."""
        tried: list[StoreError] = []
        for copy in self._copies:
            if copy.believed:
                try:
                    with self._reading(copy):
                        return copy.store.tags()
                except StoreError as e:
                    tried.append(e)
        with self._asking(tried):
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
    def _asking(
        self, tried: Sequence[StoreError], absent: NotFound | None = None
    ) -> Iterator[None]:
        """Ask the repository itself, unless it is known to be out of reach: then `absent` stands.

        That is what a believed mirror said, if one did. A failure says what was `tried` before.
        """
        if self._reach.lost is not None:
            raise absent or _told(self._reach.lost, tried)
        try:
            yield
        except Unavailable as e:
            if type(e) in (Unavailable, Silent):  # what another try may mend is of another class
                self._reach.lost = Unavailable(str(e), hint=e.hint)
            if absent is not None:
                raise absent from e
            raise _told(e, tried) from e


def _told(error: Unavailable, tried: Sequence[StoreError]) -> Unavailable:
    """The same error, with what the mirrors said."""
    if not tried:
        return error
    said = "; ".join(str(one)[:_REASON] for one in tried[:_REASONS])
    return Unavailable(str(error), hint=f"its mirrors were asked before: {said}")


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
