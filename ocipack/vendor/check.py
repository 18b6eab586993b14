"""The tree against the lock, and the lock against the vendor file: no network, nothing written."""

from __future__ import annotations

from collections.abc import Iterator

from ocipack.report import Finding, Report
from ocipack.vendor.lock import Held, Vendored, VendorLock
from ocipack.vendor.model import Vendor
from ocipack.vendor.run import Look

_AGAIN = "`ocipack vendor` brings it back; changes belong elsewhere, as in a kustomize patch"


def check(vendor: Vendor, lock: VendorLock, *, lock_file: str, look: Look) -> Report:
    """What is not as it was when it was vendored."""
    return Report.of(_findings(vendor, lock, lock_file, look))


def _findings(vendor: Vendor, lock: VendorLock, lock_file: str, look: Look) -> Iterator[Finding]:
    for item in vendor.items:
        known = lock.entries.get(item.into)
        file, line, column = item.place.rsplit(":", 2)
        if known is None or not known.answers(item):
            said = "is not in" if known is None else "asks for something else than"
            yield Finding(
                "vendor-stale",
                f"{item.into} {said} {lock_file}",
                file=file,
                line=int(line),
                column=int(column),
                hint="run `ocipack vendor` and commit what it writes",
            )
            continue
        yield from _compared(known, look(item.into) or frozenset())
    named = {item.into for item in vendor.items}
    for into in sorted(lock.entries.keys() - named):
        yield Finding(
            "vendor-stale",
            f"{into} is in the lock, and the vendor file does not name it",
            file=lock_file,
            hint="run `ocipack vendor`, which removes it",
        )


def _compared(known: Vendored, there: frozenset[Held]) -> Iterator[Finding]:
    here = {one.name: one for one in there}
    for wanted in known.files:
        found = here.pop(wanted.name, None)
        path = f"{known.into}/{wanted.name}"
        if found is None:
            yield Finding("vendor-missing", "it is not there", file=path, hint=_AGAIN)
        elif found.sha256 != wanted.sha256:
            said = f"it is {found.sha256}, and the lock says {wanted.sha256}"
            yield Finding("vendor-changed", said, file=path, hint=_AGAIN)
        elif found != wanted:
            said = f"it is {'' if found.executable else 'not '}executable, and was not vendored so"
            yield Finding("vendor-changed", said, file=path, hint=_AGAIN)
    for name in sorted(here):
        said = "no entry brought it"
        hint = "keep it outside of the directory, in which nothing else may be"
        yield Finding("vendor-extra", said, file=f"{known.into}/{name}", hint=hint)
