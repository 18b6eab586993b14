"""Many files, judged in a few processes, each of them once.

1. look at every file: its digest, and whether it may define custom kinds
2. take from the cache what has not changed
3. read the definitions, since an object may stand before the definition of its kind
4. judge the rest, spread over processes; larger files are cut into parts for that
5. put everything together in the order of the files
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from ocipack.errors import OcipackError
from ocipack.k8s.yaml.pieces import Piece, cut
from ocipack.report import Finding
from ocipack.validate.cache import Cache, Keys
from ocipack.validate.options import Options
from ocipack.validate.sources import HELD, Look, Source, look
from ocipack.validate.together import Validation, together
from ocipack.validate.verdict import Verdict

if TYPE_CHECKING:
    from ocipack.k8s.resource import Resource
    from ocipack.validate.judge import Judge

BATCH: Final = 64 * 1024
"""Bytes that one task of a process is worth."""

UNREADABLE: Final = "file-unreadable"

Task = tuple[int, int, list[Piece]] | list[int]
"""Pieces of a large source (its number, the number of the first piece), or numbers of sources."""

Done = list[tuple[int, Verdict | Finding]]
Spread = Callable[[Iterable[Task], Callable[[Task], Done], Callable[[], None], int], Iterator[Done]]
"""Applies a function to tasks in several processes: results in the order of the tasks.

The third argument is called once the processes are at work; the fourth is how many bytes there
are to read, roughly, which decides whether processes are worth their start.
"""


Engine = Callable[[Options, "list[Look]"], "tuple[Judge, list[Resource]]"]
"""Makes what judges, once it is known that something has to be: `judge.engine`, which loads
everything that this module does without. The second result are the definitions in the sources."""


class Run:
    """One run over sources with one set of options and definitions.

    `engine` is asked when a source has to be judged, `given` are digests of the definitions of
    custom kinds that it knows already, which are part of the cache keys.
    """

    def __init__(
        self,
        options: Options,
        engine: Engine,
        spread: Spread,
        *,
        cache: Cache | None = None,
        given: Iterable[bytes] = (),
    ) -> None:
        self._options = options
        self._spread = spread
        self._cache = cache
        self._given = list(given)
        self._engine = engine
        self._looks: list[Look] = []
        self._found: dict[int, Verdict | Finding] = {}
        self._keys: Keys | None = None
        self._made: tuple[Judge, list[Resource]] | None = None

    def judge(self, sources: Iterable[Source]) -> Validation:
        """Judge every source. What cannot be read is a finding, and does not stop the rest."""
        self._look(sources)
        cached = self._cached() if self._cache is not None else 0
        todo = [number for number in self._judged() if number not in self._found]
        if todo:
            self._judge(todo)
        judged = [(self._looks[number], self._found[number]) for number in self._judged()]
        whole = together((look.source.name, verdict) for look, verdict in judged)
        whole.cached = cached
        whole.excusing = [look.source.name for look in self._looks if look.excuses]
        return whole

    def _judged(self) -> Iterator[int]:
        return (number for number, look in enumerate(self._looks) if look.source.judged)

    def engine(self) -> tuple[Judge, list[Resource]]:
        """What judges the sources, and the definitions of custom kinds that are in them."""
        if self._made is None:
            self._made = self._engine(self._options, self._looks)
        return self._made

    def _look(self, sources: Iterable[Source]) -> None:
        room = HELD
        for source in sources:
            try:
                made = look(source, self._options.dialect, room)
            except OcipackError as e:
                made = Look(source)
                self._found[len(self._looks)] = _unreadable(e)
            room -= len(made.data or b"")
            self._looks.append(made)

    def _cached(self) -> int:
        """Take from the cache what has not changed; how much it was."""
        assert self._cache is not None  # the caller asked
        digests = list(self._given)
        for made in self._looks:
            if made.defines:
                digests += [sha256(made.source.name.encode(errors="surrogateescape")).digest()]
                digests += [made.digest]
        self._keys = Keys.of(self._options, digests)
        before = len(self._found)
        for number, made in enumerate(self._looks):
            if number not in self._found and made.source.judged:
                verdict = self._cache.find(self._key(made))
                if verdict is not None:
                    self._found[number] = verdict
        return len(self._found) - before

    def _key(self, made: Look) -> str:
        assert self._keys is not None  # made when the cache was asked
        return self._keys.key(made.digest, named=made.source.named)

    def _judge(self, todo: list[int]) -> None:
        judge, _ = self.engine()
        late = [number for number in todo if self._looks[number].documents is None]

        def work(task: Task) -> Done:
            if isinstance(task, list):
                return [(number, self._one(judge, number)) for number in task]
            number, first, pieces = task
            return [(number, judge.part(pieces, first))]

        def meanwhile() -> None:
            for number in sorted({*todo} - {*late}):
                made = self._looks[number]
                verdict = judge.documents(made.documents or (), named=made.source.named)
                self._found[number] = self._own(verdict, made)
                made.documents = None

        size = sum(self._looks[number].size for number in late)
        for done in self._spread(self._tasks(late), work, meanwhile, size):
            for number, verdict in done:
                self._add(number, verdict)
        for number in late:
            made, verdict = self._looks[number], self._found[number]
            if made.parted and isinstance(verdict, Verdict):
                verdict.settle(named=made.source.named)
                self._own(verdict, made)

    def _add(self, number: int, verdict: Verdict | Finding) -> None:
        known = self._found.get(number)
        if isinstance(known, Verdict) and isinstance(verdict, Verdict):
            known.add(verdict)
        elif known is None:
            self._found[number] = verdict

    def _tasks(self, numbers: list[int]) -> Iterator[Task]:
        """Small sources in batches, then the pieces of large ones as they come."""
        batch: list[int] = []
        size = 0
        for number in numbers:
            if self._looks[number].parted:
                continue
            batch.append(number)
            size += self._looks[number].size
            if size >= BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch
        for number in numbers:
            if self._looks[number].parted:
                try:
                    yield from self._parts(number)
                except OcipackError as e:
                    self._found[number] = _unreadable(e)

    def _parts(self, number: int) -> Iterator[Task]:
        first, size = 0, 0
        batch: list[Piece] = []
        for piece in cut(self._looks[number].hashed(), self._options.dialect):
            batch.append(piece)
            size += len(piece.chunk)
            if size >= BATCH:
                known = self._found.get(number)
                if isinstance(known, Verdict) and known.endless:
                    return
                yield number, first, batch
                first += len(batch)
                batch, size = [], 0
        yield number, first, batch

    def _one(self, judge: Judge, number: int) -> Verdict | Finding:
        made = self._looks[number]
        try:
            data = made.data if made.data is not None else b"".join(made.hashed())
        except OcipackError as e:
            return _unreadable(e)
        return self._own(judge.file(data, named=made.source.named), made)

    def _own(self, verdict: Verdict, made: Look) -> Verdict:
        """Take findings about the source itself from the strays, and keep the verdict."""
        name = made.source.name
        own = [replace(finding, file="") for finding in verdict.strays if finding.file == name]
        verdict.findings += own
        verdict.strays = [finding for finding in verdict.strays if finding.file != name]
        if self._cache is not None:
            self._cache.keep(self._key(made), verdict)
        return verdict


def _unreadable(error: OcipackError) -> Finding:
    return Finding(UNREADABLE, str(error), hint=error.hint)
