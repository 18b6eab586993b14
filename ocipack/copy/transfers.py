"""A run of copies that share threads, and what is learnt on the way."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Self, TypeVar
from weakref import WeakKeyDictionary

from ocipack.copy.compare import Comparison
from ocipack.copy.crew import Crew
from ocipack.copy.delivery import Delivery
from ocipack.copy.names import Names
from ocipack.copy.survey import Survey, Wanted
from ocipack.errors import IntegrityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import EllipsisType, TracebackType

    from ocipack.copy.count import Copied
    from ocipack.copy.plan import Part, Plan
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.digest import Digest
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.store import Source, Store

_T = TypeVar("_T")
_R = TypeVar("_R")


class Transfers:
    """Copies items, many at once, with at most `jobs` requests in flight for all of them.

    Every method may be called from several threads, of which none is one of ours; `each` makes
    some. What several items need is sent once and mounted after, tags are listed once for each
    source. Give items of one repository the same store: it knows what it has been told. Use it in
    a `with` block, which waits for what is in flight.
    """

    def __init__(self, jobs: int = 8) -> None:
        self._jobs = jobs
        self._crew = Crew(jobs)
        self._lock = threading.Lock()
        self._names: WeakKeyDictionary[Source, Names] = WeakKeyDictionary()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._crew.close()

    def knows_tags(self, source: Source, tags: Iterable[str]) -> None:
        """Tell which tags `source` has, all of them, so that they need not be listed again."""
        self._named(source).told(tags)

    def plan(
        self,
        source: Source,
        dest: Store,
        root: Descriptor,
        *,
        attached: bool = False,
        choose: Callable[[Manifest], frozenset[Digest]] | None = None,
        overwrite: bool = False,
        gone_ok: bool = False,
    ) -> Plan:
        """Find out what copying `root` comes to, writing nothing.

        With `attached`, what others have attached to it and to all manifests below it belongs to
        it: referrers and theirs, and the digest tags `.sig`, `.att` and `.sbom`. `choose` names
        the entries wanted of an index, whose bytes stay as they are. A digest tag that stands at
        the destination with other content is Rejected, unless `overwrite`, or unless the source
        has all that is there. With `gone_ok` a referrer that the source lists and does not have is
        in the plan's `gone`; else it is NotFound. IntegrityError if `root` is no manifest, if
        anything is not what its descriptor says, or if it is all beyond the limits of
        `oci.closure`; Rejected beyond `survey.ATTACHED` and `survey.LISTED`.
        """
        if not root.is_manifest:
            raise IntegrityError(f"{root.digest}: {root.media_type!r} is not a manifest or index")
        wanted = Wanted(attached, choose, overwrite, gone_ok)
        names = (self._named(source), self._named(dest, target=True))
        job = self._crew.job()
        return Survey(source, dest, root.plain, job=job, wanted=wanted, names=names).plan()

    def deliver(self, plan: Plan, dest: Store) -> Copied:
        """Write what `plan`, made for `dest`, says; no tag but digest tags.

        When this returns, the destination's own listings have shown all that is attached.
        """
        return Delivery(plan, dest, self._crew, self._crew.job()).run()

    def copy(
        self,
        source: Source,
        dest: Store,
        root: Descriptor,
        *,
        attached: bool = False,
        tag: str | None = None,
        was: Digest | EllipsisType | None = ...,
        choose: Callable[[Manifest], frozenset[Digest]] | None = None,
        overwrite: bool = False,
    ) -> Copied:
        """Plan, deliver, and point `tag` at it if one is given; `was` is for `dest.tag`."""
        plan = self.plan(source, dest, root, attached=attached, choose=choose, overwrite=overwrite)
        done = self.deliver(plan, dest)
        if tag is not None:
            self._crew.job().call(lambda: dest.tag(root.plain, tag, was=was))
        return done

    def missing(self, plan: Plan, dest: Store) -> tuple[Part, ...]:
        """List what belongs to `plan` and is not at `dest`: asked there, listed, and compared.

        What a store knows from this run it is not asked again; for an honest answer give one that
        was opened anew.
        """
        return Comparison(plan, dest, self._crew.job()).missing()

    def each(self, work: Callable[[_T], _R], items: Iterable[_T]) -> Iterator[_R]:
        """Do `work` on each of `items`, several at once, and yield what it returns as it ends.

        `items` is read as far as it is needed, so that there may be any number. What `work`
        raises is raised here, once what is under way has ended.
        """
        with ThreadPoolExecutor(self._jobs, thread_name_prefix="item") as threads:
            under_way: set[Future[_R]] = set()
            for item in items:
                under_way.add(threads.submit(work, item))
                if len(under_way) >= self._jobs:
                    done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                    yield from (one.result() for one in done)
            while under_way:
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)

    def _named(self, source: Source, *, target: bool = False) -> Names:
        with self._lock:
            try:
                found = self._names.get(source)
            except TypeError:  # an artifact, which has no names to speak of
                return Names()
            if found is None:
                found = self._names[source] = Names(target=target)
            return found
