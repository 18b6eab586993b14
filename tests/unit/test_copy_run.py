"""A run of many copies: what they share, how many requests are in flight, who goes first."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from types import EllipsisType

import pytest
from content import image, index
from doubles import Double
from registry import Registry, Switches

from ocipack.copy import Transfers
from ocipack.copy.crew import Crew
from ocipack.copy.names import ASKED, Names
from ocipack.errors import NotFound, StoreError, Unavailable
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source
from ocipack.stores.http.transport import Transport
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry.registries import Registries

PATIENCE = 30.0


def shelves(origin: MemoryStore, count: int) -> list[Descriptor]:
    """Images that have a layer in common."""
    return [image(origin, b"shared", b"own %d" % n) for n in range(count)]


# once for all


@pytest.mark.parametrize("jobs", [1, 8])
def test_a_layer_of_many_images_is_sent_once_and_mounted_for_the_others(jobs: int) -> None:
    origin = MemoryStore()
    roots = shelves(origin, 12)
    with Registry() as server, Transfers(jobs) as run:
        registries = Registries(Transport())

        def one(number: int) -> int:
            reference = Reference.parse(f"{server.name}/team/app-{number}")
            dest = registries.store(reference, writes=True)
            return run.copy(origin, dest, roots[number], tag="v1").mounted

        mounted = sum(run.each(one, range(12)))
        assert mounted == 11
        assert set(Counter(server.received).values()) == {1}
        assert not server.lines("^HEAD .*blobs"), "the repositories are new"


def test_where_nothing_mounts_each_sends_its_own() -> None:
    origin = MemoryStore()
    roots = shelves(origin, 4)
    with Registry(Switches(mount=False)) as server, Transfers() as run:
        registries = Registries(Transport())
        for number, root in enumerate(roots):
            reference = Reference.parse(f"{server.name}/team/app-{number}")
            done = run.copy(origin, registries.store(reference, writes=True), root)
            assert (done.copied, done.mounted) == (4, 0)
        assert max(Counter(server.received).values()) == 4


def test_others_wait_for_the_first_and_hold_no_thread() -> None:
    crew = Crew(2)
    try:
        job = crew.job()
        begun, go_on, order = threading.Event(), threading.Event(), list[str]()

        def first() -> None:
            begun.set()
            assert go_on.wait(PATIENCE)
            order.append("first")

        crew.lead("blob", job, first)
        assert begun.wait(PATIENCE)
        for _ in range(5):
            crew.lead("blob", job, lambda: order.append("follower"))
        crew.lead("another", job, go_on.set)  # one thread is free for it
        job.wait()
        assert order == ["first", *["follower"] * 5]
    finally:
        crew.close()


def test_when_the_first_fails_the_next_goes_first() -> None:
    crew = Crew(4)
    try:
        failing, other, third = crew.job(), crew.job(), crew.job()
        begun, go_on = threading.Event(), threading.Event()
        at_once, most = Counter[str](), list[int]()

        def fails() -> None:
            begun.set()
            assert go_on.wait(PATIENCE)
            raise Unavailable("the root cause")

        def works() -> None:
            at_once["now"] += 1
            most.append(at_once["now"])

        crew.lead("blob", failing, fails)
        assert begun.wait(PATIENCE)
        crew.lead("blob", other, works)
        crew.lead("blob", third, works)
        go_on.set()
        with pytest.raises(Unavailable, match="root cause"):
            failing.wait()
        other.wait()
        third.wait()
        assert most == [1, 2]
    finally:
        crew.close()


def test_a_job_that_has_failed_leads_nobody_astray() -> None:
    crew = Crew(1)
    try:
        failed, other = crew.job(), crew.job()
        done = threading.Event()

        def fails() -> None:
            raise Unavailable("first")

        failed.start(fails)
        crew.lead("blob", failed, lambda: pytest.fail("begun after a failure"))
        crew.lead("blob", other, done.set)
        with pytest.raises(Unavailable):
            failed.wait()
        other.wait()
        assert done.is_set()
    finally:
        crew.close()


# in flight


class Busy(Double):
    """Counts how many fetches are under way at once."""

    def __init__(self, inner: Source) -> None:
        super().__init__(inner)
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield from self.inner.fetch(target)
        finally:
            with self.lock:
                self.now -= 1


def test_all_items_together_keep_to_the_number_of_jobs() -> None:
    origin = MemoryStore()
    roots = [image(origin, *(b"%d %d" % (one, n) for n in range(20))) for one in range(6)]
    source = Busy(origin)
    with Transfers(3) as run:
        done = list(run.each(lambda root: run.copy(source, MemoryStore(), root), roots))
    assert sum(one.copied for one in done) == 6 * 22
    assert source.most <= 3


class Endless(Double):
    """Fails for one layer once the other is under way, which goes on for ever."""

    def __init__(self, inner: Source) -> None:
        super().__init__(inner)
        self.under_way, self.pieces = threading.Event(), 0

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        if target.size == 5:
            assert self.under_way.wait(PATIENCE)
            raise NotFound("the root cause")
        return self.pour() if target.size == 6 else self.inner.fetch(target)

    def pour(self) -> Iterator[bytes]:
        while True:
            self.pieces += 1
            self.under_way.set()
            yield b""


def test_what_is_in_flight_is_given_up_when_something_fails() -> None:
    origin = MemoryStore()
    root = image(origin, b"fails", b"pours.")
    source = Endless(origin)
    with pytest.raises(NotFound, match="root cause"), Transfers(4) as run:
        run.copy(source, MemoryStore(), root)
    assert source.pieces > 0


def test_items_are_read_as_they_are_needed() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1_000_000):
            taken.append(number)
            yield number

    with Transfers(4) as run:
        for found in run.each(lambda number: number, items()):
            if found > 20:
                break
    assert len(taken) < 100


def test_an_error_ends_each_after_what_is_under_way() -> None:
    def work(number: int) -> int:
        if number == 3:
            raise NotFound("the fourth")
        return number

    with Transfers(2) as run, pytest.raises(NotFound, match="fourth"):
        list(run.each(work, range(100)))


def test_a_run_keeps_no_store_alive() -> None:
    """Ten thousand repositories are mirrored by one run."""
    gc.collect()
    gc.disable()
    try:
        with Transfers() as run:
            origin, dest = MemoryStore(), MemoryStore()
            root = index(origin, *shelves(origin, 3))
            run.copy(origin, dest, root, attached=True)
            gone = [weakref.ref(origin), weakref.ref(dest)]
            del origin, dest
            assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()


# names


class Listed(MemoryStore):
    """Says which of its tags were asked for, and how often they were listed."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.listed = 0

    def resolve(self, name: str) -> Descriptor:
        self.asked.append(name)
        return super().resolve(name)

    def tags(self) -> Iterator[str]:
        self.listed += 1
        return super().tags()


def test_names_are_listed_once_for_all_items() -> None:
    origin = Listed()
    roots = shelves(origin, 5)
    origin.tag(image(origin, b"signature"), f"sha256-{roots[0].digest.hex}.sig")
    dest = MemoryStore()
    with Transfers() as run:
        for root in roots:
            run.copy(origin, dest, root, attached=True)
    assert (origin.listed, origin.asked) == (1, [f"sha256-{roots[0].digest.hex}.sig"])


def test_what_somebody_listed_already_is_not_listed_again() -> None:
    origin = Listed()
    root = image(origin, b"1")
    with Transfers() as run:
        run.knows_tags(origin, ["v1", "v2"])
        run.copy(origin, MemoryStore(), root, attached=True)
    assert (origin.listed, origin.asked) == (0, [])


class Paged(Listed):
    """A registry whose list has many pages, or is refused."""

    few: Callable[[], frozenset[str] | None]

    def few_tags(self) -> frozenset[str] | None:
        return self.few()


def refused() -> None:
    raise StoreError("there is no list of tags")


@pytest.mark.parametrize(
    "few", [refused, lambda: None, frozenset], ids=["refused", "pages", "none"]
)
def test_without_a_list_each_name_is_asked_for(few: Callable[[], frozenset[str] | None]) -> None:
    origin = Paged()
    origin.few = few
    root = image(origin, b"1")
    signature = image(origin, b"signature")
    origin.tag(signature, f"sha256-{root.digest.hex}.sig")
    origin.asked.clear()
    dest = MemoryStore()
    with Transfers() as run:
        run.copy(origin, dest, root, attached=True)
    assert sorted(origin.asked) == sorted(
        f"sha256-{root.digest.hex}{suffix}" for suffix in (".sig", ".att", ".sbom")
    )
    assert list(dest.tags()) == [f"sha256-{root.digest.hex}.sig"]


def test_a_long_list_is_read_when_many_names_are_wanted() -> None:
    assert ASKED == 64
    origin = Paged()
    origin.few = lambda: None
    origin.tag(image(origin, b"1"), "v1")
    names = Names()
    for number in range(ASKED):
        assert names.may_have(f"sha256-{number:064x}.sig", origin)
    assert origin.listed == 0
    assert not names.may_have(f"sha256-{ASKED:064x}.sig", origin)
    assert origin.listed == 1


def test_names_that_are_no_digests_are_not_kept() -> None:
    names = Names()
    names.told(["v1", f"sha256-{1:064x}.sig", "sha256-short.sig"])
    assert not names.may_have("v1", MemoryStore())
    assert names.may_have(f"sha256-{1:064x}.sig", MemoryStore())
    assert not names.may_have("sha256-short.sig", MemoryStore())


# the order


class Recorder(MemoryStore):
    """A store that notes what is written, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def push(self, target: Descriptor, source: Source) -> None:
        super().push(target, source)
        self.log.append(str(target.digest))

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        super().tag(target, name, was=was)
        self.log.append(name)


def test_what_is_attached_is_there_before_what_it_is_attached_to() -> None:
    origin, dest = MemoryStore(), Recorder()
    images = shelves(origin, 3)
    root = index(origin, *images)
    names = []
    for number, subject in enumerate((root, *images)):
        image(origin, b"bundle %d" % number, subject=subject)
        names.append(f"sha256-{subject.digest.hex}.sig")
        origin.tag(image(origin, b"signature %d" % number), names[-1])
    with Transfers() as run:
        run.copy(origin, dest, root, attached=True, tag="v1")
    subjects = [dest.log.index(str(one.digest)) for one in (root, *images)]
    attached = [dest.log.index(name) for name in names]
    attached += [
        dest.log.index(str(one.digest)) for subject in images for one in origin.referrers(subject)
    ]
    assert max(attached) < min(subjects)
    assert dest.log[-1] == "v1"
