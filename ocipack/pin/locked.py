"""What a run found, as a lock, and where that differs from the lock before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ocipack.lock import Entry, Lock, Origin
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.pin.scan import Found


def lock(
    found: Iterable[tuple[Found, Digest]],
    answers: Mapping[tuple[Reference, Digest], Entry],
    named: Callable[[str], str],
    before: Lock,
    kept: Iterable[Reference] = (),
) -> Lock:
    """The lock of a run: an entry for each reference and digest that a place has now.

    `answers` are entries without origins; `named` says how the lock calls a file. References that
    could not be asked for (`kept`) stay as they were in the lock `before`.
    """
    origins: dict[tuple[Reference, Digest], list[Origin]] = {}
    for one, digest in found:
        assert one.reference is not None  # it was asked for
        origin = Origin(named(one.file), one.document, one.pointer, one.site.style.value)
        origins.setdefault((one.reference, digest), []).append(origin)
    made = {
        key: replace(answers[key], origins=tuple(places))
        for key, places in origins.items()
        if key in answers
    }
    entries = {entry.key: entry for entry in made.values()}
    for reference in kept:
        for entry in before.find(reference):
            entries.setdefault(entry.key, entry)
    return Lock(tuple(entries.values()))


def moved(before: Lock, reference: Reference, digest: Digest) -> Digest | None:
    """What the lock `before` says `reference` is, if that is something else; None if not."""
    said = [entry.content.digest for entry in before.find(reference)]
    return said[0] if said and digest not in said else None
