"""`ocipack airgap`: images, charts and artifacts in one file, with all that proves them."""

from __future__ import annotations

from typing import Any, Literal

import click

from ocipack.airgap import check
from ocipack.airgap.check import everything
from ocipack.airgap.compare import Change, Difference, compare
from ocipack.cli.archives import (
    archive,
    artifact_type,
    checked,
    described,
    policy,
    proven_items,
    whence,
)
from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plain, plural, size
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import map_options
from ocipack.cli.projects import project_option
from ocipack.cli.trusted import Trust, proof_options
from ocipack.copy import Transfers

_since_option = click.option(
    "--since",
    default="",
    metavar="ARCHIVE",
    help="The earlier archive that has what this one left out.",
)


@click.group()
def command() -> None:
    """Carry images, charts and artifacts across an air gap, with their signatures."""


@click.argument("places", nargs=-1, metavar="[PLACE...]")
@click.option("-o", "--output-file", "path", required=True, metavar="FILE", help="The archive.")
@click.option("--lock", default="", metavar="FILE", help="Save everything in this lock, too.")
@click.option(
    "-f", "--mirror", default="", metavar="FILE", help="Save all that this mirror file picks, too."
)
@click.option(
    "--contents",
    is_flag=True,
    help="Save what artifacts and charts name, too: images, charts in registries, artifacts.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="GLOB",
    help="Leave out what --contents finds and this fits, as in policies; repeatable.",
)
@click.option("--map", "map_file", default="", metavar="FILE", help="Ask these mirrors instead.")
@click.option(
    "--since",
    default="",
    metavar="FILE",
    help="Leave out blobs that this earlier archive had; a list of its digests will do.",
)
@click.option(
    "--volume-size", default="", metavar="SIZE", help="Write FILE.001 and so on, as 4GiB each."
)
@click.option(
    "--with",
    "files",
    multiple=True,
    metavar="FILE",
    help="Bring this file along, such as a trust root; repeatable. The lock, policies and keys "
    "come anyway.",
)
@click.option("--force", is_flag=True, help="Replace an archive that is there.")
@click.option("--dry-run", is_flag=True, help="Verify and list what would be saved; write nothing.")
@click.option("--jobs", type=click.IntRange(1, 64), default=8, show_default=True)
@proof_options
@project_option
def save(
    app: App,
    *,
    project: str,
    places: tuple[str, ...],
    path: str,
    lock: str,
    mirror: str,
    contents: bool,
    without: tuple[str, ...],
    map_file: str,
    since: str,
    volume_size: str,
    files: tuple[str, ...],
    force: bool,
    dry_run: bool,
    jobs: int,
    **options: Any,
) -> Outcome:
    """Verify everything, then write it into one archive.

    The archive is an OCI image layout in a tar (docs/airgap.md). With each PLACE goes all that
    belongs to it: platforms, signatures and attestations in every form, and what is attached to
    those. The same content gives the same bytes. FILE is there when all of it is; an interrupted
    run goes on where it was. Prints FILE.
    """
    from ocipack.cli.saving import Inputs, Into, run  # noqa: PLC0415 - start-up

    inputs = Inputs(places, lock, mirror, map_file, files, since, contents, without, project)
    return run(app, inputs, Trust(**options), Into(path, volume_size, force, dry_run, jobs))


@click.argument("path", metavar="ARCHIVE")
@click.option("--to", "target", required=True, metavar="oci://HOST[/PATH]", help="Where to.")
@click.option(
    "--names",
    type=click.Choice(["full", "path"]),
    default="full",
    show_default=True,
    help="What repositories are called below PATH: with the registry they came from, or without.",
)
@click.option("--overwrite", is_flag=True, help="Move tags that stand for something else.")
@click.option("--dry-run", is_flag=True, help="Check and verify, say what would be done, no more.")
@map_options
@_since_option
@click.option("--jobs", type=click.IntRange(1, 64), default=8, show_default=True)
@proof_options
def load(
    app: App,
    *,
    path: str,
    target: str,
    names: Literal["full", "path"],
    overwrite: bool,
    dry_run: bool,
    map_out: str,
    writes: tuple[str, ...],
    since: str,
    jobs: int,
    **options: Any,
) -> Outcome:
    """Verify an archive, then bring it into a registry.

    Nothing is written unless every byte of the archive is right and every item proven by your own
    --policy or --key; what came in the archive is never asked. Run again what was interrupted.
    Prints what became of each: the outcome, the pinned place, and the name it came by.
    """
    from ocipack.cli.loading import Where, run  # noqa: PLC0415 - start-up

    where = Where(target, names, map_out, writes, overwrite=overwrite, dry_run=dry_run)
    return run(app, path, where, Trust(**options), since=since, jobs=jobs)


@click.argument("path", metavar="ARCHIVE")
@_since_option
@proof_options
def verify(app: App, *, path: str, since: str, **options: Any) -> Outcome:
    """Prove that an archive is whole and signed.

    Every byte is hashed; nothing is asked of any network. Prints what was proven.
    """
    trust = Trust(**options)
    trusted = policy(trust, ())  # before everything is hashed in vain; keys of examples may do
    with archive(path, since) as (files, site), Transfers() as transfers:
        items = checked(app, files, site, transfers, since=bool(since))
        proofs = proven_items(app, site, items, trust, trusted)
        if site.left_out and not since:
            app.console.warn(
                f"{plural(len(site.left_out), 'blob')} were left out, since the archive "
                f"{site.since} had them; they were not read"
            )
        text = "\n".join(str(one.item.reference) for one in items)
        said = [described(one, proof) for one, proof in zip(items, proofs, strict=True)]
        return Outcome(text, {"archive": whence(site), "items": said}, checked=text.splitlines())


@click.argument("path", metavar="ARCHIVE")
@click.option("--digests", is_flag=True, help="Print the list that `save --since` takes.")
def list_(_: App, *, path: str, digests: bool) -> Outcome:
    """Show what is in an archive.

    That is names, sizes, how many signatures each has, and what it is. Only manifests are read;
    `verify` hashes everything.
    """
    with archive(path) as (_files, site), Transfers() as transfers:
        items = everything(site, transfers)
        rows = [
            f"{plain(str(one.item.reference))}  {size(one.size)}"
            f"  {plural(len(one.plan.signatures), 'signature')}"
            f"  {plain(artifact_type(one) or 'index')}"
            for one in items
        ]
        if digests:
            rows = list(check.listed(check.earlier(site, items)))
        data = {"archive": whence(site), "items": [described(one) for one in items]}
    return Outcome("\n".join(rows), data)


@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
def diff(_: App, *, before: str, after: str) -> Outcome:
    """Show what changed between two archives.

    That is names that came, went, moved or were signed anew, and the bytes that only one has.
    """
    with Transfers() as transfers, archive(before) as (_old, old), archive(after) as (_new, new):
        found = compare(everything(old, transfers), everything(new, transfers))
    rows = [f"{one.word:<8}  {plain(one.name)}  {_moved(one)}" for one in found.changes]
    return Outcome("\n".join(rows), _difference(found), summary=_summary(found))


def _moved(one: Change) -> str:
    if one.word == "attached":
        return f"+{one.came} -{one.went}"
    return " → ".join(str(digest) for digest in (one.before, one.after) if digest is not None)


def _summary(found: Difference) -> list[tuple[str, str]]:
    return [
        ("unchanged", str(found.unchanged)),
        ("only before", size(found.removed_bytes)),
        ("only after", size(found.added_bytes)),
    ]


def _difference(found: Difference) -> dict[str, Any]:
    changes = []
    for one in found.changes:
        said: dict[str, Any] = {"name": one.name, "change": one.word}
        said |= {"before": str(one.before)} if one.before is not None else {}
        said |= {"after": str(one.after)} if one.after is not None else {}
        if one.word == "attached":
            said |= {"came": one.came, "went": one.went}
        changes.append(said)
    return {
        "changes": changes,
        "unchanged": found.unchanged,
        "bytes": {"added": found.added_bytes, "removed": found.removed_bytes},
    }


@click.argument("path", metavar="ARCHIVE")
@click.option(
    "-o", "--output-dir", "directory", required=True, metavar="DIR", help="Where to write them."
)
@click.option("--force", is_flag=True, help="Replace what is in DIR, as a whole.")
def files(_: App, *, path: str, directory: str, force: bool) -> Outcome:
    """Take out the files that came with an archive.

    These are the lock, policies and keys. They are copies, and nothing vouches for who wrote them.
    Prints DIR.
    """
    from ocipack.files.unpack import write_tree  # noqa: PLC0415 - start-up
    from ocipack.tree.tree import Entry  # noqa: PLC0415 - start-up

    with archive(path) as (_files, site):
        names = sorted(site.papers)
        entries = (
            Entry(name, len(content), executable=False, content=iter([content]))
            for name in names
            for content in [site.paper(name)]
        )
        write_tree(entries, directory, force=force)
    return Outcome(directory, {"directory": directory, "files": names})


command.add_command(outcome_command(save))
command.add_command(outcome_command(load))
command.add_command(outcome_command(verify, connects=False))
command.add_command(outcome_command(list_, connects=False))
command.add_command(outcome_command(diff, connects=False))
command.add_command(outcome_command(files, connects=False))
