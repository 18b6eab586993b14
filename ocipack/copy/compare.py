"""Whether a place has all that belongs to some content: asked, listed, and compared."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

from ocipack.errors import NotFound

if TYPE_CHECKING:
    from ocipack.copy.crew import Job
    from ocipack.copy.plan import Part, Plan
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.store import Store


class Comparison:
    """A plan held against a store, whoever filled it."""

    def __init__(self, plan: Plan, dest: Store, job: Job) -> None:
        self._plan, self._dest, self._job = plan, dest, job
        self._lock = threading.Lock()
        self._missing: set[Part] = set()

    def missing(self) -> tuple[Part, ...]:
        """The parts that are absent, not what they should be, unnamed, or not listed."""
        content: dict[Descriptor, list[Part]] = defaultdict(list)
        subjects: dict[Descriptor, list[Part]] = defaultdict(list)
        for part in self._plan.parts:
            content[part.target].append(part)
            if part.name:
                self._job.start(self._name, part)
            if part.subject is not None:
                subjects[part.subject].append(part)
        for target, parts in content.items():
            self._job.start(self._content, target, parts)
        for subject, parts in subjects.items():
            self._job.start(self._listing, subject, parts)
        self._job.wait()
        return tuple(part for part in self._plan.parts if part in self._missing)

    def _note(self, parts: list[Part]) -> None:
        with self._lock:
            self._missing.update(parts)

    def _content(self, target: Descriptor, parts: list[Part]) -> None:
        if not self._dest.exists(target):
            self._note(parts)

    def _name(self, part: Part) -> None:
        try:
            there = self._dest.resolve(part.name).digest
        except NotFound:
            there = None
        if there != part.target.digest:
            self._note([part])

    def _listing(self, subject: Descriptor, parts: list[Part]) -> None:
        listed = {one.digest for one in self._dest.referrers(subject)}
        self._note([part for part in parts if part.target.digest not in listed])
