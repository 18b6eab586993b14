"""`ocipack lock`: what references resolved to, and whether they still do."""

from __future__ import annotations

import posixpath
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.commands.pin import mirrors
from ocipack.cli.console import plain, plural, size
from ocipack.cli.outcome import Outcome
from ocipack.cli.projects import confine, project_option
from ocipack.errors import Rejected
from ocipack.files.seam import read_bytes
from ocipack.lock import BYTES, FILE, Entry, Lock
from ocipack.oci.location import REGISTRY, Location
from ocipack.pin.standing import Standing, Verdict, check as standing


@click.group()
def command() -> None:
    """Show what references resolved to, and whether they still do."""


def _read(path: str) -> Lock:
    lock = Lock.parse(read_bytes(path, limit=BYTES), file=path)
    if not lock.entries:
        raise Rejected(f"{path}: the lock is empty", hint="`ocipack pin --lock FILE` fills it")
    return lock


def locked(path: str, mirror_file: str) -> list[tuple[Location, Location]]:
    """The entries of a lock by their digests, each with the place where it is looked for.

    A lock says what to look at, not what is true of it: whoever asks verifies each.
    """
    elsewhere = mirrors(mirror_file)
    found = []
    for entry in _read(path).entries:
        name = entry.reference.at(entry.content.digest)
        where = elsewhere.where(name)
        found.append((Location(REGISTRY, name), Location(REGISTRY, where)))
    return found


def _described(entry: Entry) -> dict[str, Any]:
    return {
        "reference": str(entry.reference),
        "kind": entry.kind,
        "digest": str(entry.content.digest),
        "mediaType": entry.content.media_type,
        "size": entry.content.size,
        "platforms": [
            "/".join(part for part in (one.os, one.architecture, one.variant) if part)
            for one in entry.platforms
        ],
        "attached": [str(one.digest) for one in entry.attached],
        "origins": [f"{one.file}#{one.document}{one.pointer}" for one in entry.origins],
    }


@click.argument("file", default=FILE)
def show(_: App, *, file: str) -> Outcome:
    """Show the entries of a lock: reference, digest, platforms, size, and how often it is named."""
    lock = _read(file)
    rows = []
    for entry in lock.entries:
        count = plural(len(entry.platforms), "platform") if entry.platforms else entry.kind
        named = plural(len(entry.origins), "place")
        shown = size(entry.content.size)
        rows.append(
            f"{plain(str(entry.reference))}  {entry.content.digest}  {count}  {shown}  {named}"
        )
    return Outcome("\n".join(rows), {"entries": [_described(entry) for entry in lock.entries]})


@click.argument("file", default=FILE)
@click.option("--map", "mirror_file", default="", metavar="FILE", help="Ask these mirrors instead.")
@project_option
def check(app: App, *, file: str, mirror_file: str, project: str) -> Outcome:
    """Ask again for every entry of a lock: unchanged, moved, gone, or a signature lost.

    What the lock says is taken for no answer. Exits with 1 if anything is not as it was, with 3
    if that could not be found out.
    """
    lock, elsewhere = _read(file), mirrors(mirror_file)
    confine(app, project, posixpath.dirname(file))
    with app.console.stage("resolve") as stage:
        found = standing(
            lock,
            lambda key: app.registries.store(elsewhere.where(key), write=False, prefetch=False),
        )
        counts = [(kind, sum(one.standing is kind for one in found)) for kind in Standing]
        stage.say(", ".join(f"{count} {kind.value}" for kind, count in counts if count))
    for one in found:
        if one.error is not None:
            app.console.error(f"{one.entry.reference}: {one.error}", one.error.hint)
    rows = [f"{one.standing.value:<14}  {_said(one)}" for one in found]
    kinds = {one.standing for one in found}
    code = 1 if kinds & {Standing.MOVED, Standing.GONE, Standing.LOST} else 0
    if Standing.UNDECIDED in kinds:
        code = code or 3
    return Outcome("\n".join(rows), {"entries": [_verdict(one) for one in found]}, code=code)


def _said(one: Verdict) -> str:
    text = f"{plain(str(one.entry.reference))}  {one.entry.content.digest}"
    if one.standing is Standing.MOVED:
        return f"{text} → {one.now or 'nothing'}"
    return text + "".join(f"  {lost.name or lost.digest}" for lost in one.lost)


def _verdict(one: Verdict) -> dict[str, Any]:
    said = {"reference": str(one.entry.reference), "digest": str(one.entry.content.digest)}
    said |= {"standing": one.standing.value}
    if one.now is not None and one.now != one.entry.content.digest:
        said["now"] = str(one.now)
    if one.error is not None:
        said["error"] = str(one.error)
    lost = [str(attached.digest) for attached in one.lost]
    return {**said, **({"lost": lost} if lost else {})}


command.add_command(outcome_command(show, connects=False))
command.add_command(outcome_command(check))
