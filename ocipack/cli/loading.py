"""What `airgap load` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ocipack.airgap.load import Load, Loader, moves
from ocipack.cli.archives import archive, checked, policy, proven_items
from ocipack.cli.command import App
from ocipack.cli.console import plain, size
from ocipack.cli.mapping import Writing, write
from ocipack.cli.outcome import Outcome
from ocipack.cli.repositories import Repositories
from ocipack.cli.trusted import Trust
from ocipack.copy import Transfers
from ocipack.errors import Misuse, OcipackError
from ocipack.mirror.maps import pairs
from ocipack.mirror.model import Relocation
from ocipack.mirror.report import PLACED, Result, code, counts
from ocipack.mirror.run import How
from ocipack.oci.location import REGISTRY, Location
from ocipack.report import Report


@dataclass(frozen=True, slots=True)
class Where:
    """Where to, and which maps of it to write: see the options of `airgap load`."""

    target: str
    names: Literal["full", "path"]
    map_out: str
    writes: tuple[str, ...]
    overwrite: bool
    dry_run: bool

    @property
    def relocation(self) -> Relocation:
        """What repositories are called there."""
        scheme, _, rest = self.target.partition("://")
        if scheme != REGISTRY or not rest:
            hint = "write oci://HOST[:PORT][/PATH]"
            raise Misuse(f"--to {self.target}: not a registry", hint=hint)
        return Relocation(rest.rstrip("/"), self.names)

    @property
    def maps(self) -> list[Writing]:
        """What to write about it."""
        return Writing.wanted(self.map_out, self.writes)


def run(app: App, path: str, where: Where, trust: Trust, *, since: str, jobs: int) -> Outcome:
    """Check, prove and load the archive at `path`."""
    maps, relocation = where.maps, where.relocation
    with archive(path, since) as (files, site), Transfers(jobs) as transfers:
        found = moves(site, relocation)
        trusted = policy(trust, [Location(REGISTRY, one.target) for one in found])
        items = checked(app, files, site, transfers, since=bool(since))
        proofs = proven_items(app, site, items, trust, trusted)
        targets = Repositories(app, transfers)
        forms = [one.files(pairs(found), targets.is_plain) for one in maps]  # before it is too late
        loads = list(map(Load, found, items, proofs))
        with app.console.stage("load") as stage:
            how = How(overwrite=where.overwrite, dry_run=where.dry_run)
            results = Loader(site, relocation, targets, transfers, how).run(loads)
            stage.say(_counted(results))
    if all(one.outcome in PLACED for one in results):
        for form in forms:
            write(form)
    return _loaded(app, results)


def _counted(results: Sequence[Result]) -> str:
    sent = sum(one.done.copied_bytes - one.done.mounted_bytes for one in results)
    said = [f"{count} {word}" for word, count in counts(results).items()]
    return f"{', '.join(said)}; {size(sent)}"


def _loaded(app: App, results: Sequence[Result]) -> Outcome:
    failures: list[tuple[str, OcipackError]] = [
        (str(one.item.reference), one.error) for one in results if one.error is not None
    ]
    for name, error in failures:
        app.console.error(f"{name}: {error}", error.hint)
    rows = (f"{one.outcome:<16}{one.place}  {one.item.reference}" for one in results)
    return Outcome(
        "\n".join(map(plain, rows)),
        {"counts": counts(results), "items": [one.as_dict() for one in results]},
        Report.of(finding for one in results for finding in one.findings()),
        code=code(results, ()),
        failures=failures,
        checked=[one.place for one in results],
    )
