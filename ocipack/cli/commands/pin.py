"""`ocipack pin`."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plain, plural
from ocipack.cli.outcome import Outcome
from ocipack.cli.projects import artifact_option, has_project, project_option, selected
from ocipack.errors import Misuse, OcipackError, Rejected
from ocipack.files.rewriting import Place, create, manifests
from ocipack.files.seam import read_bytes
from ocipack.lock import BYTES, FILE, Entry, Lock
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.pin.locked import lock as made_lock
from ocipack.pin.mirrors import Mirrors
from ocipack.pin.rename import rename as renamed
from ocipack.pin.resolve import answered, each, record, resolve
from ocipack.pin.run import MOVED, Pinned, checked, finding, pin as pinned_run, wanted
from ocipack.pin.scan import Found, Scan, scan, why as places_of
from ocipack.report import Report, Severity
from ocipack.tree.ignore import defaults

_LINE = re.compile(r"[^\n]*\n|[^\n]+")

MIRRORS = 1024 * 1024
"""Bytes of a --map file."""


@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--check", is_flag=True, help="Change and ask nothing; exit 1 if a digest is missing."
)
@click.option("--diff", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--why", default="", metavar="IMAGE", help="Show where IMAGE is named, and stop.")
@click.option("--offline", is_flag=True, help="Ask no registry: the lock answers.")
@click.option(
    "--docker-hub",
    is_flag=True,
    help="Repositories in values that name no registry are Docker Hub's; else they are left alone.",
)
@click.option("--confirm", is_flag=True, help="Ask for every tag again before files are written.")
@click.option(
    "--map", "mirrors", default="", metavar="FILE", help="Ask these mirrors instead (docs/pin.md)."
)
@click.option(
    "--rename",
    is_flag=True,
    help="Write the names of --map's mirrors in the place of theirs, and ask nothing.",
)
@click.option(
    "--lock",
    "lock_file",
    default="",
    metavar="FILE",
    help=f"Write there what everything resolved to; {FILE} if that is there already.",
)
@artifact_option
@project_option
def pin(app: App, *, paths: tuple[str, ...], **options: Any) -> Outcome:
    """Give every image a digest, in place.

    PATH is a manifest, or a directory whose YAML files are looked at. Images are found in every
    place whose type or name says so (docs/pin.md), each tag is resolved once, and only the bytes
    of those scalars change. What cannot be told or written is reported and left as it is. An
    image that cannot be resolved keeps no other from being pinned; the exit code is then 3. What
    the ocipack.yaml of a directory leaves out of its artifacts is left alone.
    Prints the names of the files that changed.
    """
    keep = _keeping(app, paths, options.pop("project"), options.pop("artifacts"))
    how = _How(**options)
    run = _Run(app, how, _listed(paths, keep))
    if how.why:
        return run.why()
    if how.rename:
        return run.rename()
    if how.check and not how.diff:
        return run.check()
    return run.pin()


@dataclass(frozen=True, slots=True)
class _How:
    check: bool
    diff: bool
    why: str
    offline: bool
    docker_hub: bool
    confirm: bool
    mirrors: str
    rename: bool
    lock_file: str

    @property
    def lock_path(self) -> str:
        """The lock of this run; empty if there is none."""
        return self.lock_file or (FILE if os.path.lexists(FILE) else "")


def _keeping(
    app: App, paths: tuple[str, ...], given: str, names: tuple[str, ...]
) -> Callable[[Place], bool]:
    """Which files are looked at, by the project file of the directory, else by the one here.

    Those that some artifact may hold, and those that belong to none unless some are named: it
    costs nothing to have them pinned.
    """
    alone = len(paths) == 1 and os.path.isdir(paths[0])  # noqa: PTH112 - a path as it was typed
    base = paths[0] if alone else ""
    if names and not alone:
        raise Misuse("--artifact is about a project", hint="name its directory alone")
    if not (names or has_project(given, base)):
        return lambda _: True
    chosen = selected(app, base, given, names)
    if not alone:
        return lambda _: True
    parts = [(part.prefix, defaults("\n".join(part.ignore))) for part in chosen.artifacts]

    def keep(place: Place) -> bool:
        name = "/".join(place.parts)
        inside = [out(name.removeprefix(top)) for top, out in parts if name.startswith(top)]
        return not all(inside) if inside else not names

    return keep


def _listed(paths: tuple[str, ...], keep: Callable[[Place], bool]) -> dict[str, Place]:
    """Every file to look at, however often it is named; Rejected if there is none."""
    found: dict[str, Place] = {}
    seen: set[tuple[int, int]] = set()
    for path in paths:
        for name, place in manifests(path).items():
            if not keep(place):
                continue
            status = os.stat(place.path)  # noqa: PTH116 - a path as it was typed
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                found[name] = place
    if not found:
        raise Rejected(f"no manifests: {', '.join(paths)}", hint="files end in .yaml or .yml")
    return found


@dataclass
class _Run:
    app: App
    how: _How
    places: dict[str, Place]
    made: Scan = field(init=False)

    def __post_init__(self) -> None:
        self.made = scan(
            self.places,
            lambda name: self.places[name].read(),
            docker_hub=self.how.docker_hub,
        )

    def why(self) -> Outcome:
        """Where an image is named; 1 if nowhere."""
        found = list(places_of(self.made.found, self.how.why))
        lines = [
            f"{one.place}  {one.status.value}  {one.site.confidence.value}  {one.site.place}"
            f"  {one.pointer}" + (f"  ({one.reason})" if one.reason else "")
            for one in found
        ]
        if not found:
            raise Rejected(f"{self.how.why}: not named in these files")
        text = "\n".join(plain(line) for line in lines)
        return Outcome(text, {"images": [_described(one, _own(one)) for one in found]})

    def check(self) -> Outcome:
        """Whether everything has a digest, by the files alone."""
        report = Report.of(checked(self.made))
        images = [_described(one, _own(one)) for one in self.made.found]
        self._say(f"{plural(len(images), 'image')} in {plural(self.made.files, 'file')}")
        data = {"files": {"read": self.made.files, "changed": []}, "images": images}
        return Outcome("", data, report, code=0 if report.ok else 1)

    def rename(self) -> Outcome:
        """Write the names of mirrors; with --check say what is left to write, and exit 1."""
        if not self.how.mirrors:
            raise Misuse("--rename needs --map", hint="`ocipack mirror --map-out FILE` writes one")
        if self.how.offline or self.how.confirm or self.how.lock_file:
            raise Misuse("--rename asks nothing: --offline, --confirm and --lock belong to pinning")
        done = renamed(self.made, mirrors(self.how.mirrors))
        changed, report = sorted(done.files), Report.of(done.findings)
        writes = not (self.how.check or self.how.diff)
        for name in changed if writes else ():
            self.places[name].replace(*done.files[name])
        self._say(f"{plural(len(done.done), 'name')} in {plural(len(changed), 'file')}")
        images = [_described(one, _own(one)) for one in done.done]
        data = {"files": {"read": self.made.files, "changed": changed}, "images": images}
        text = "\n".join(plain(name) for name in changed)
        if self.how.diff:
            text = "".join(_diff(plain(name), *done.files[name]) for name in changed)
        left = self.how.check and (changed or report.count(Severity.WARNING))
        return Outcome(text, data, report, code=1 if left else 0)

    def pin(self) -> Outcome:
        """Resolve, rewrite, and write files and lock unless only the difference is wanted."""
        before, path = Lock(), self.how.lock_path
        if self.how.offline and not path:
            raise Misuse("--offline needs a lock", hint=f"name it with --lock, or put {FILE} here")
        if path and (self.how.offline or os.path.lexists(path)):
            before = Lock.parse(read_bytes(path, limit=BYTES), file=path)
        asked = _Asked(self.app, self.how, before)
        everything = bool(path) and not self.how.offline
        answers = asked.all(wanted(self.made, everything=everything))
        done = pinned_run(self.made, answers, before)
        if self.how.confirm and not self.how.offline:
            done.findings += asked.again(done)
        for reference, error in done.failed.items():
            said = str(error)
            named = said if str(reference) in said else f"{reference}: {said}"
            self.app.console.error(named, error.hint)
        if not self.how.diff:
            for name, (old, new) in done.files.items():
                self.places[name].replace(old, new)
            if everything:
                self._write_lock(path, done, answers, before)
        return self._outcome(done)

    def _write_lock(
        self, path: str, done: Pinned, answers: dict[Reference, Entry | OcipackError], before: Lock
    ) -> None:
        known = {
            (answer.reference, answer.content.digest): answer
            for answer in answers.values()
            if isinstance(answer, Entry)
        }
        top = Path(path).resolve().parent

        def named(name: str) -> str:
            real = os.path.realpath(self.places[name].path)
            return os.path.relpath(real, top)

        made = made_lock([*done.done, *done.already], known, named, before, done.failed)
        text = str(made).encode()
        if os.path.lexists(path):
            (place,) = manifests(path).values()
            old = place.read()
            if old != text:
                place.replace(old, text)
        else:
            create(path, text)

    def _outcome(self, done: Pinned) -> Outcome:
        digests = dict((*done.done, *done.already))
        images = [_described(one, digests.get(one)) for one in self.made.found]
        changed = sorted(done.files)
        self._say(
            f"{plural(len(done.done), 'image')} in {plural(len(changed), 'file')}, "
            f"{len(done.already)} pinned already, "
            f"{plural(len(done.failed), 'reference')} without an answer"
        )
        text = "\n".join(plain(name) for name in changed)
        if self.how.diff:
            text = "".join(_diff(plain(name), *done.files[name]) for name in changed)
        data = {"files": {"read": self.made.files, "changed": changed}, "images": images}
        code = done.code
        report = Report.of(done.findings)
        if self.how.check:
            report += Report.of(checked(self.made))
            code = code or (0 if report.ok else 1)
        failures = [(str(reference), error) for reference, error in done.failed.items()]
        return Outcome(text, data, report, code=code, failures=failures)

    def _say(self, text: str) -> None:
        with self.app.console.stage("pin") as stage:
            stage.say(text)


@dataclass
class _Asked:
    """Who answers: registries or their mirrors, or the lock."""

    app: App
    how: _How
    before: Lock
    mirrors: Mirrors = field(init=False)

    def __post_init__(self) -> None:
        self.mirrors = mirrors(self.how.mirrors)

    def all(self, kinds: dict[Reference, str]) -> dict[Reference, Entry | OcipackError]:
        """An answer for each of `kinds`, each asked once."""
        with self.app.console.stage("resolve"):
            return each(kinds, lambda reference: self._one(reference, kinds[reference]))

    def _one(self, reference: Reference, kind: str) -> Entry:
        if self.how.offline:
            return Entry(reference, answered(self.before.find(reference), reference), kind)
        whole = bool(self.how.lock_path)  # a lock says what is in the index, so that is read
        at = self.mirrors.where(reference)
        source = self.app.registries.store(at, write=False, prefetch=whole)
        if whole:
            return record(source, reference, kind)
        return Entry(reference, resolve(source, reference), kind)

    def again(self, done: Pinned) -> Iterator[Any]:
        """A warning for each tag that points elsewhere by now."""
        places: dict[Reference, tuple[Found, Digest]] = {}
        for one, digest in done.done:
            if one.reference is not None:
                places.setdefault(one.reference, (one, digest))
        now = each(places, lambda reference: self._one(reference, "image").content.digest)
        for reference, (one, digest) in places.items():
            answer = now[reference]
            if isinstance(answer, Digest) and answer != digest:
                message = f"{reference} moved during the run: {answer} now, {digest} written"
                yield finding(MOVED, message, one, Severity.WARNING)


def mirrors(path: str) -> Mirrors:
    """Read a --map file, if one was given."""
    return Mirrors.parse(read_bytes(path, limit=MIRRORS), file=path) if path else Mirrors()


def _own(one: Found) -> Digest | None:
    reference = one.site.reference
    return reference.digest if reference is not None else None


def _described(one: Found, digest: Digest | None) -> dict[str, Any]:
    """The JSON form of a place."""
    said = {
        "file": one.file,
        "line": one.line,
        "column": one.column,
        "pointer": one.pointer,
        "place": one.site.place,
        "text": one.site.text,
        "status": one.status.value,
        "confidence": one.site.confidence.value,
        "reference": str(one.reference) if one.reference is not None else "",
        "digest": str(digest) if digest is not None else "",
        "reason": one.reason,
    }
    return {key: value for key, value in said.items() if value != ""}


def _diff(name: str, old: bytes, new: bytes) -> str:
    """A unified diff that `git apply` takes: lines end at LF alone."""
    before, after = (_LINE.findall(data.decode(errors="replace")) for data in (old, new))
    shown = difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")
    end = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + end for line in shown)


command = outcome_command(pin)
