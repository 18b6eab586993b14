"""`ocipack mirror`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plain, plural, size
from ocipack.cli.mapping import Writing, write
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import map_options
from ocipack.cli.projects import confine, project_option
from ocipack.cli.repositories import Repositories, charts
from ocipack.cli.trusted import Trust, from_files, proof_options
from ocipack.copy import Transfers
from ocipack.errors import Misuse, OcipackError, Rejected, StoreError
from ocipack.files.seam import read_bytes
from ocipack.lock import BYTES as LOCK_BYTES, Lock
from ocipack.mirror.maps import Pair, pairs
from ocipack.mirror.model import Mirror, Source
from ocipack.mirror.plan import Plan, Shard, plan
from ocipack.mirror.reader import BYTES, read
from ocipack.mirror.report import PLACED, Result, code, counts, failed, kinds
from ocipack.mirror.run import How, Mirroring, Prove
from ocipack.oci.location import REGISTRY, Location
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source as Readable
from ocipack.report import Report
from ocipack.trust.policy import Policy
from ocipack.verify import Exempted, Verified, decide, verify

if TYPE_CHECKING:
    from ocipack.cli.charts import Along

FILE = "mirror.yaml"


@click.option(
    "--file", "-f", default=FILE, show_default=True, metavar="FILE", help="What is to be mirrored."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option(
    "--overwrite", is_flag=True, help="Follow the source where a tag at the target is elsewhere."
)
@click.option(
    "--full", is_flag=True, help="Look below tags, too, that name the right content already."
)
@click.option(
    "--require-signatures", is_flag=True, help="Refuse what has no signature attached to it."
)
@click.option(
    "--shard",
    default="0/1",
    metavar="I/N",
    help="Do part I of N, counted from 0: parts share the work and need not talk.",
)
@map_options
@click.option(
    "--strict", is_flag=True, help="Fail if an image of a chart could not be told (images: true)."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=8, show_default=True)
@proof_options
@project_option
def mirror(
    app: App,
    *,
    file: str,
    project: str,
    shard: str,
    map_out: str,
    writes: tuple[str, ...],
    jobs: int,
    strict: bool,
    **options: Any,
) -> Outcome:
    """Bring images, artifacts, charts and whole locks to another registry.

    FILE says what, and how it is called there (docs/mirror.md). Each is verified as the policy of
    the file or of the command line says, then copied with its signatures and all else that is
    attached to it, looked at again, and tagged last. A tag that names something else there is
    left alone. One that fails keeps no other from being mirrored: run again for the rest. Prints
    what became of each: the outcome, the pinned place, and the source.
    """
    how = {name: options.pop(name) for name in _HOW}
    part, trust = Shard.parse(shard), Trust(**options)
    confine(app, project, posixpath.dirname(file))
    wanted = read(read_bytes(file, limit=BYTES), file=file, lock=_lock_beside(file))
    prove = _proving(trust, wanted, file)
    maps = Writing.wanted(map_out, writes)
    if maps and (part.count > 1 or how["dry_run"]):
        raise Misuse(
            f"a {'dry run' if how['dry_run'] else 'part'} does not know the whole map",
            hint="write it in a run for all: where everything is there, it costs little",
        )
    with Transfers(jobs) as transfers:
        places = Repositories(app, transfers, charts(wanted))
        made, charted = _planned(app, wanted, places, part)
        _mapped(maps, pairs(made.items) if maps else [], places)  # refused before anything moves
        run = Mirroring(transfers, places, How(prove, everything=trust.given, **how))
        results = _collected(app, run, made, places)
    there = (one.item for one in results if one.outcome in PLACED)
    failures = [(_name(source), error) for source, error in made.failed]
    failures += [(str(one.item.reference), one.error) for one in results if one.error is not None]
    try:
        write(_mapped(maps, pairs(there) if maps else [], places))
    except StoreError as error:  # everything is there all the same, and the report says so
        failures.append(("the map", error))
    return _outcome(
        app, made, results, part, failures=failures, charted=charted.report(strict=strict)
    )


def _mapped(maps: Iterable[Writing], found: list[Pair], places: Repositories) -> dict[Path, str]:
    files: dict[Path, str] = {}
    for one in maps:
        files |= one.files(found, places.is_plain)
    return files


_ALL = Shard()
_HOW = ("dry_run", "overwrite", "full", "require_signatures")


def _beside(file: str, name: str) -> str:
    return posixpath.join(posixpath.dirname(file), name)


def _lock_beside(file: str) -> Any:
    def find(name: str) -> Lock:
        path = _beside(file, name)
        return Lock.parse(read_bytes(path, limit=LOCK_BYTES), file=path)

    return find


def _proving(trust: Trust, wanted: Mirror, file: str) -> Prove | None:
    """How sources are verified; None if it is said that nothing need be."""
    where = Location(REGISTRY, wanted.sources[0].bare)
    if trust.given or trust.allow_unsigned:
        trust.check_tagging(where)
    policy: Policy | None = None
    if trust.given:
        policy = trust.policy([where])
    elif wanted.policies and not trust.allow_unsigned:
        paths = [_beside(file, name) for name in wanted.policies]
        policy = from_files(paths, trust.threshold, allow_example_keys=trust.allow_example_key)
    if policy is not None:
        return _prove(policy, decides=trust.allow_exempted)
    nothing = trust.allow_unsigned or wanted.unsigned
    if not nothing and not all(source.unsigned for source in wanted.sources):
        raise Misuse(
            f"{file}: only what has been verified is mirrored, and nothing says by whose signature",
            hint="give policies in the file, --policy or --key; or unsigned: true in the file, or "
            "--allow-unsigned",
        )
    return None


def _prove(policy: Policy, *, decides: bool) -> Prove:
    def prove(source: Readable, reference: Reference) -> Verified | Exempted:
        return (decide if decides else verify)(source, reference, policy)

    return prove


def _planned(app: App, wanted: Mirror, places: Repositories, part: Shard) -> tuple[Plan, Along]:
    """What is to be done, and what was found about the charts whose images come along."""
    from ocipack.cli.charts import with_images  # noqa: PLC0415 - start-up

    tags = cache(lambda repository: tuple(places.tags(repository)))  # listed once, asked for twice

    def planned(mirror: Mirror, shard: Shard = _ALL) -> Plan:
        return plan(
            mirror,
            listing=tags,
            target_listing=places.target_tags,
            resolve=lambda reference: places.asked(reference).resolve(reference.name).digest,
            shard=shard,
        )

    wanted, more = with_images(app, wanted, planned, places.source)
    with app.console.stage("plan") as stage:
        made = planned(wanted, part)
        made = replace(made, failed=(*made.failed, *more.failed))
        said = plural(len(made.items), "item")
        if part.count > 1:
            said += f" of {made.total}, part {part.index} of {part.count}"
        said += f", {plural(len(made.failed), 'source')} failed" if made.failed else ""
        stage.say(said)
    return made, more


def _collected(app: App, run: Mirroring, made: Plan, places: Repositories) -> list[Result]:
    """Every result, in the order of the plan."""
    order = {id(item): number for number, item in enumerate(made.items)}
    found: list[Result] = []
    places.expect((item.source.bare, item.target) for item in made.items)
    with app.console.stage("mirror") as stage:
        for result in run.results(made.items):
            places.done(result.item.source.bare, result.item.target)
            found.append(result)
            stage.progress(f"{len(found)} of {len(made.items)}")
        moved = sum(one.done.copied_bytes - one.done.mounted_bytes for one in found)
        said = [f"{count} {outcome}" for outcome, count in counts(found).items()]
        parts = [f"{count} {kind}" for kind, count in kinds(found).items()]
        what = "; ".join(filter(None, [", ".join(said), size(moved), ", ".join(parts)]))
        stage.say(what if said else "nothing to do")
    return sorted(found, key=lambda one: order[id(one.item)])


def _outcome(
    app: App,
    made: Plan,
    results: list[Result],
    part: Shard,
    *,
    failures: list[tuple[str, OcipackError]],
    charted: Report,
) -> Outcome:
    for name, error in failures:
        said = str(error)
        app.console.error(said if said.startswith(name) else f"{name}: {said}", error.hint)
    if not made.total and not failures:
        raise Rejected("nothing to mirror", hint="no source has anything that is wanted")
    found = [finding for one in results for finding in one.findings()]
    data = {
        "counts": counts(results),
        "kinds": kinds(results),
        "items": [one.as_dict() for one in results],
        "sources": [{"source": _name(source), **failed(error)} for source, error in made.failed],
    }
    if part.count > 1:
        data["shard"] = {"index": part.index, "count": part.count, "total": made.total}
    return Outcome(
        "\n".join(plain(_row(one)) for one in results),
        data,
        Report.of(found) + charted,
        code=code(results, (error for _, error in failures)) if charted.ok else 1,
        failures=failures,
        checked=[str(one.item.reference) for one in results if one.error is None],
    )


def _name(source: Source) -> str:
    return str(source.reference)


def _row(one: Result) -> str:
    return f"{one.outcome:<16}{one.place}  {one.item.reference}"


command = outcome_command(mirror)
