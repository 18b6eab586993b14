"""`ocipack vendor`."""

from __future__ import annotations

import os
import posixpath
from dataclasses import replace
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plain, plural
from ocipack.cli.outcome import Outcome
from ocipack.cli.projects import confine, project_option
from ocipack.cli.vendored import Tree
from ocipack.errors import Misuse
from ocipack.files.seam import read_bytes
from ocipack.k8s.yaml.strict import BYTES
from ocipack.vendor.check import check as checked
from ocipack.vendor.lock import BYTES as LOCK_BYTES, VendorLock
from ocipack.vendor.model import Vendor
from ocipack.vendor.reader import read
from ocipack.vendor.run import How, Outcome as Done, Step, steps

FILE = "vendor.yaml"


@click.argument("only", nargs=-1, metavar="[INTO...]")
@click.option(
    "--file", "-f", default=FILE, show_default=True, metavar="FILE", help="What is to be vendored."
)
@click.option(
    "--check",
    "checking",
    is_flag=True,
    help="Compare the tree with the lock, without network, and write nothing.",
)
@click.option("--update", is_flag=True, help="Take what is there now, whatever the lock says.")
@click.option("--force", is_flag=True, help="Replace files that were changed or put there.")
@project_option
def vendor(
    app: App,
    *,
    only: tuple[str, ...],
    file: str,
    checking: bool,
    update: bool,
    force: bool,
    project: str,
) -> Outcome:
    """Bring manifests, CRDs and charts from elsewhere into the tree, and lock them.

    FILE says what, and into which directories, each of which holds nothing else (docs/vendor.md);
    INTO names some of them. The lock beside FILE says what was fetched: sha256 or commit, and
    every file. Without --update exactly that is brought back, and nothing is fetched if it is
    there. --check exits with 1 if the tree is not as the lock says. Prints what became of each.
    """
    base = posixpath.dirname(file) or os.curdir
    wanted = read(read_bytes(file, limit=BYTES), file=file)
    only = tuple(posixpath.normpath(one) for one in only)
    _known(wanted, only)
    lock_file = f"{file.removesuffix('.yaml').removesuffix('.yml')}.lock"
    tree = Tree(base, lock_file)
    lock = _lock(lock_file)
    if checking:
        if update or force or only:
            raise Misuse("--check looks at everything, and changes nothing")
        return _check(app, wanted, lock, tree)
    from ocipack.cli.vendoring import Fetching  # noqa: PLC0415 - start-up of --check
    from ocipack.files.workspace import Workspace  # noqa: PLC0415 - as above

    confine(app, project, base)
    with Workspace() as workspace, app.console.stage("vendor") as stage:
        how = How(update=update, force=force)
        fetch = Fetching(app, workspace)
        done = steps(wanted, lock, only, fetch=fetch, look=tree.look, how=how)
        for step in done:
            lock = _applied(tree, step, lock)
        if not done:
            tree.write_lock(lock)
        counts = [(one, sum(step.outcome is one for step in done)) for one in Done]
        stage.say(", ".join(f"{count} {one}" for one, count in counts if count))
    return Outcome(
        "\n".join(plain(_row(step)) for step in done),
        {"vendored": [_described(step) for step in done]},
    )


def _known(wanted: Vendor, only: tuple[str, ...]) -> None:
    names = {item.into for item in wanted.items}
    for one in only:
        if one not in names:
            raise Misuse(f"no entry is vendored into {one!r}", hint=f"known: {', '.join(names)}")


def _lock(path: str) -> VendorLock:
    if not os.path.lexists(path):
        return VendorLock({})
    return VendorLock.parse(read_bytes(path, limit=LOCK_BYTES), file=path)


def _check(app: App, wanted: Vendor, lock: VendorLock, tree: Tree) -> Outcome:
    with app.console.stage("check") as stage:
        report = checked(wanted, lock, lock_file=tree.lock, look=tree.look)
        base = "" if tree.base == os.curdir else f"{tree.base}/"
        own = [
            one if one.rule == "vendor-stale" else replace(one, file=base + one.file)
            for one in report.findings
        ]
        report = type(report).of(own)
        files = sum(len(one.files) for one in lock.entries.values())
        stage.say(f"{plural(files, 'file')}, {plural(len(report.findings), 'finding')}")
    return Outcome(report=report, code=0 if report.ok else 1)


def _applied(tree: Tree, step: Step, lock: VendorLock) -> VendorLock:
    entries: dict[str, Any] = {k: v for k, v in lock.entries.items() if k != step.into}
    if step.entry is not None:
        entries[step.into] = step.entry
    after = VendorLock(entries)
    tree.write(step, after)
    return after


def _row(step: Step) -> str:
    known = f"  {step.entry.named} {step.entry.resolved}" if step.entry is not None else ""
    return f"{step.outcome:<10}{step.into}{known}"


def _described(step: Step) -> dict[str, Any]:
    said: dict[str, Any] = {"into": step.into, "outcome": str(step.outcome)}
    if step.entry is not None:
        said |= {step.entry.named: step.entry.resolved, "files": len(step.entry.files)}
    return said


command = outcome_command(vendor)
