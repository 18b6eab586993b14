"""Sources that break their promises, and one that counts what it is asked."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ocipack.errors import NotFound, Unavailable
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.store import Source


@dataclass
class Double:
    """A Source that does what `inner` does; each kind of misbehaviour overrides a part."""

    inner: Source

    def resolve(self, name: str) -> Descriptor:
        return self.inner.resolve(name)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        return self.inner.fetch(target)

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        return self.inner.referrers(subject)


@dataclass
class Spoiled(Double):
    """Serves `bad` in place of the content `digest`, and does not check it."""

    digest: Digest
    bad: Iterable[bytes]

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        return iter(self.bad) if target.digest == self.digest else self.inner.fetch(target)


def wrong(inner: Source, target: Descriptor) -> Spoiled:
    """The right number of bytes, and the last one is wrong."""
    data = bytearray(b"".join(inner.fetch(target)))
    data[-1] ^= 1
    return Spoiled(inner, target.digest, [bytes(data)])


def short(inner: Source, target: Descriptor) -> Spoiled:
    """One byte is missing at the end, without an error."""
    return Spoiled(inner, target.digest, [b"".join(inner.fetch(target))[:-1]])


def long(inner: Source, target: Descriptor) -> Spoiled:
    """One byte too many."""
    return Spoiled(inner, target.digest, [*inner.fetch(target), b"!"])


class Endless(Double):
    """A body that never ends. `taken` counts the bytes that someone took of it."""

    taken = 0

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        yield from self.inner.fetch(target)
        while True:
            self.taken += 1024
            if self.taken > 1 << 22:
                raise AssertionError("an endless body was read on and on")
            yield bytes(1024)


@dataclass
class Vanishing(Double):
    """Has lost the content `digest`, though it still names it."""

    digest: Digest

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        if target.digest == self.digest:
            raise NotFound(f"there is no {target.digest} any more")
        return self.inner.fetch(target)


@dataclass
class Breaking(Double):
    """Stops half way through the content `digest`."""

    digest: Digest

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        if target.digest != self.digest:
            yield from self.inner.fetch(target)
            return
        data = b"".join(self.inner.fetch(target))
        yield data[: len(data) // 2]
        raise Unavailable("the connection was reset")


@dataclass
class Failing(Double):
    """Fails at its n-th fetch, counted from 1, and at each one after."""

    n: int
    fetched: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        with self.lock:
            self.fetched += 1
            number = self.fetched
        if number >= self.n:
            raise Unavailable(f"request {number} failed")
        return self.inner.fetch(target)


@dataclass
class LyingSize(Double):
    """Resolves names to a size that is off by one."""

    def resolve(self, name: str) -> Descriptor:
        found = self.inner.resolve(name)
        return replace(found, size=found.size + 1)


@dataclass
class Counting(Double):
    """Counts fetches by digest."""

    fetched: Counter[Digest] = field(default_factory=Counter)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        self.fetched[target.digest] += 1
        return self.inner.fetch(target)
