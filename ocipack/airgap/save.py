"""Stream the members of an archive, in their order, into whatever writes it.

Small blobs are fetched ahead, `jobs` at once, so that a registry far away is not waited for once a
blob; large ones pass through piece by piece. Memory is flat: AHEAD bytes, and a few pieces. What
was fetched ahead is what a run that is killed has to fetch again.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from ocipack.oci.store import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ocipack.airgap.contents import Contents
    from ocipack.oci.layout import Member

SMALL: Final = 4 * 1024 * 1024
"""Blobs up to this many bytes are fetched ahead."""

AHEAD: Final = 32 * 1024 * 1024
"""Bytes of blobs that were fetched and are not written yet."""


class Out(Protocol):
    """What writes the archive: the edge's stream."""

    def begin(self, members: Sequence[Member]) -> int:
        """Say what will be written; return how many members are there already, from the first."""

    def put(self, chunks: Iterable[bytes]) -> None:
        """Write the next member."""


@dataclass(frozen=True, slots=True)
class Saved:
    """How many members a run wrote and how many it found, with their bytes."""

    written: int
    written_bytes: int
    kept: int
    kept_bytes: int


def _ignore(_: int) -> None:
    pass


def save(
    contents: Contents, out: Out, *, jobs: int = 8, moved: Callable[[int], None] = _ignore
) -> Saved:
    """Write `contents`; every byte is hashed on its way (IntegrityError), and fetched once.

    `moved` is told of every so many bytes that were written.
    """
    done = out.begin(contents.members)
    kept, todo = contents.members[:done], contents.members[done:]
    with ThreadPoolExecutor(jobs, thread_name_prefix="save") as pool:
        for chunks in _ahead(contents, todo, pool, jobs):
            out.put(_told(chunks, moved))
    return Saved(len(todo), sum(one.size for one in todo), len(kept), sum(one.size for one in kept))


def _told(chunks: Iterable[bytes], moved: Callable[[int], None]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        moved(len(chunk))


def _ahead(
    contents: Contents, members: Sequence[Member], pool: ThreadPoolExecutor, jobs: int
) -> Iterator[Iterable[bytes]]:
    """The content of each of `members`, in turn."""
    waiting: deque[tuple[Member, Future[bytes] | None]] = deque()
    rest, held, fetching = iter(members), 0, 0
    following = next(rest, None)
    try:
        while waiting or following is not None:
            while following is not None and (
                not waiting or (fetching < jobs and held + following.size <= AHEAD)
            ):
                future = _fetching(contents, following, pool)
                if future is not None:
                    held, fetching = held + following.size, fetching + 1
                waiting.append((following, future))
                following = next(rest, None)
            member, future = waiting.popleft()
            if future is None:
                yield _content(contents, member)
                continue
            yield [future.result()]
            held, fetching = held - member.size, fetching - 1
    finally:
        for _, future in waiting:
            if future is not None:
                future.cancel()


def _fetching(contents: Contents, member: Member, pool: ThreadPoolExecutor) -> Future[bytes] | None:
    if member.name in contents.held or member.size > SMALL:
        return None
    target, source = contents.blobs[member.name]
    return pool.submit(read, source, target, limit=SMALL)


def _content(contents: Contents, member: Member) -> Iterable[bytes]:
    if member.name in contents.held:
        return [contents.held[member.name]]
    target, source = contents.blobs[member.name]
    return target.check(source.fetch(target))
