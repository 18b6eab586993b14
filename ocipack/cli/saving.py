"""What `airgap save` is asked to save, and the files that come along."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocipack.airgap.contents import Contents, Wanted, gather
from ocipack.airgap.record import FILE_BYTES
from ocipack.airgap.save import Saved, save as stream
from ocipack.cli.archives import Proof, each, earlier, policy, prove
from ocipack.cli.command import App
from ocipack.cli.commands.pin import mirrors as read_mirrors
from ocipack.cli.console import plain, plural, size
from ocipack.cli.inside import Inside
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import place
from ocipack.cli.projects import confine
from ocipack.cli.repositories import charts
from ocipack.cli.trusted import Trust
from ocipack.copy import Transfers
from ocipack.errors import Misuse
from ocipack.files.seam import read_bytes
from ocipack.lock import BYTES, Lock
from ocipack.mirror.model import Mirror
from ocipack.mirror.plan import Plan, Shard, plan
from ocipack.mirror.reader import BYTES as MIRROR_BYTES, read as read_mirror
from ocipack.oci.location import REGISTRY, Location
from ocipack.oci.reference import Reference
from ocipack.pin.mirrors import Mirrors
from ocipack.stores.layout import LayoutStore
from ocipack.stores.layout.stream import Stream
from ocipack.stores.layout.volumes import SMALLEST
from ocipack.stores.registry.store import RegistryStore
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy.names import Glob

if TYPE_CHECKING:
    from ocipack.stores.charts import ChartStore

_SIZE = re.compile(r"([1-9][0-9]{0,14})(B|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB)?")
_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def volume(text: str) -> int:
    """The bytes of a volume: `4GiB`, `700MB`, or a number; 0 if nothing is said."""
    if not text:
        return 0
    match = _SIZE.fullmatch(text)
    if match is None:
        raise Misuse(f"--volume-size {text[:40]!r}: not a size", hint="write 4GiB or 700MB")
    found = int(match[1]) * _UNITS[match[2] or "B"]
    if found < SMALLEST:
        raise Misuse(f"--volume-size {text}: a volume has at least {SMALLEST} bytes")
    return found


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is to be saved, and from where: see the options of `airgap save`."""

    places: tuple[str, ...]
    lock: str = ""
    mirror: str = ""
    map_file: str = ""
    files: tuple[str, ...] = ()
    since: str = ""
    contents: bool = False
    without: tuple[str, ...] = ()
    project: str = ""

    def named(self, sources: Sources) -> list[Location]:
        """The places on the command line, all in the lock, all that the mirror file picks.

        Misuse if that is nothing.
        """
        found = [place(text) for text in self.places]
        if self.mirror:
            found += _picked(self.mirror, sources)
        if self.lock:
            entries = Lock.parse(read_bytes(self.lock, limit=BYTES), file=self.lock).entries
            found += [Location(REGISTRY, one.reference.at(one.content.digest)) for one in entries]
        if not found:
            raise Misuse("nothing to save", hint="name places, --lock or --mirror")
        return list(dict.fromkeys(found))

    def papers(self, trust: Trust) -> dict[str, bytes]:
        """The files that come along, by the path that they have in the archive.

        Those are the same wherever the files lie here: the same archive has the same bytes on
        every machine, and says nothing of any. Misuse where two would have one path.
        """
        named = [(os.path.basename(path), path) for path in (self.lock, self.mirror) if path]  # noqa: PTH119 - text
        named += [(f"keys/{os.path.basename(path)}", path) for path in trust.keys]  # noqa: PTH119 - text
        named += [(f"files/{os.path.basename(path)}", path) for path in self.files]  # noqa: PTH119 - text
        for number, path in enumerate(trust.policies, 1):
            named += _with_keys(path, f"policies/{number}")
        found: dict[str, bytes] = {}
        for name, path in named:
            content = read_bytes(path, limit=FILE_BYTES)
            if found.setdefault(name, content) != content:
                raise Misuse(f"{path}: another file comes along as {name} already")
        return found


@dataclass(frozen=True, slots=True)
class Into:
    """Where the archive goes and how: see the options of `airgap save`."""

    path: str
    volume_size: str = ""
    force: bool = False
    dry_run: bool = False
    jobs: int = 8

    def stream(self) -> Stream:
        """What writes it."""
        return Stream(Path(self.path), volume=volume(self.volume_size), replace=self.force)


def run(app: App, inputs: Inputs, trust: Trust, into: Into) -> Outcome:
    """Prove what `inputs` name, and write the archive."""
    confine(app, inputs.project, os.path.dirname(inputs.mirror or inputs.lock))  # noqa: PTH120 - text
    sources, out = Sources(app, read_mirrors(inputs.map_file)), into.stream()
    files = inputs.papers(trust)
    before = earlier(inputs.since) if inputs.since else None
    found = inputs.named(sources)
    with nullcontext() if into.dry_run else out, Transfers(into.jobs) as transfers:
        wanted = proven(app, found, sources, trust)
        if inputs.contents:
            inside = Inside(app, tuple(map(Glob, inputs.without)))
            wanted = inside.added(wanted, lambda places: proven(app, places, sources, trust))
        with app.console.stage("list") as stage:
            contents = gather(wanted, transfers, files=files, earlier=before)
            stage.say(_listed(contents))
        if into.dry_run:
            names = sorted(contents.plans)
            return Outcome("\n".join(map(plain, names)), _items(contents), checked=names)
        with app.console.stage("save") as stage:
            done = stream(contents, out, jobs=into.jobs, moved=app.console.moved)
            said = f", {plural(done.kept, 'file')} there already" if done.kept else ""
            stage.say(f"{plural(done.written, 'file')}, {size(done.written_bytes)}{said}")
    return Outcome(into.path, _described(into.path, out, contents, done))


def _described(path: str, out: Stream, contents: Contents, done: Saved) -> dict[str, Any]:
    files = zip(out.files, out.checksums, strict=True)
    return {
        "archive": {
            "path": path,
            "size": out.size,
            "files": [{"path": str(name), "sha256": digest} for name, digest in files],
            **_left(contents),
        },
        "written": {"count": done.written, "bytes": done.written_bytes},
        "kept": {"count": done.kept, "bytes": done.kept_bytes},
        **_items(contents),
    }


def _items(contents: Contents) -> dict[str, Any]:
    return {
        "size": contents.size,
        "items": [
            {"reference": name, "digest": str(plan.root.digest), "contents": plan.kinds}
            for name, plan in sorted(contents.plans.items())
        ],
    }


def _listed(contents: Contents) -> str:
    left = sum(one.size for one in contents.record.left_out)
    out = f", {size(left)} left out" if contents.record.since is not None else ""
    return f"{plural(len(contents.plans), 'item')}, {size(contents.size)}{out}"


def _left(contents: Contents) -> dict[str, Any]:
    if contents.record.since is None:
        return {}
    left = contents.record.left_out
    return {
        "since": str(contents.record.since),
        "leftOut": {"count": len(left), "bytes": sum(one.size for one in left)},
    }


@dataclass
class Sources:
    """The stores of a run, one for each repository; `mirrors` are asked instead of the origin."""

    app: App
    mirrors: Mirrors = field(default_factory=Mirrors)
    _open: dict[str, LayoutStore | RegistryStore] = field(default_factory=dict)
    _charts: dict[str, ChartStore] = field(default_factory=dict)

    def of(self, where: Location) -> LayoutStore | RegistryStore | ChartStore:
        """The repository of `where`."""
        if where.is_chart:
            name = str(where)  # a digest is looked for under the version that stands beside it
            return self._charts.setdefault(name, self.app.registries.chart(where))
        if where.is_layout:
            return self._open.setdefault(where.bare, LayoutStore(where.path))
        at = self.mirrors.where(where.reference)
        known = self._open.get(at.bare)
        return known or self._open.setdefault(at.bare, self.app.registries.store(at, write=False))


def _picked(path: str, sources: Sources) -> Iterator[Location]:
    """Everything that a mirror file picks, at its source; where it goes there is of no matter."""
    from ocipack.cli.charts import with_images  # noqa: PLC0415 - start-up

    def lock(name: str) -> Lock:
        beside = str(Path(path).parent / name)
        return Lock.parse(read_bytes(beside, limit=BYTES), file=beside)

    wanted = read_mirror(read_bytes(path, limit=MIRROR_BYTES), file=path, lock=lock)
    known = charts(wanted)

    def at(reference: Reference) -> Location:
        chart = known.get(Reference(reference.registry, reference.repository))
        found = chart.where if chart is not None else Location(REGISTRY, reference)
        return replace(found, reference=reference)

    def store(reference: Reference) -> LayoutStore | RegistryStore | ChartStore:
        return sources.of(at(reference))

    def planned(mirror: Mirror) -> Plan:
        return plan(
            mirror,
            listing=lambda repository: store(repository).tags(),
            target_listing=lambda _: (),
            resolve=lambda reference: store(reference).resolve(reference.name).digest,
            shard=Shard(),
        )

    wanted, more = with_images(sources.app, wanted, planned, store)
    sources.app.console.findings(more.report(strict=False))
    made = planned(wanted)
    made = replace(made, failed=(*made.failed, *more.failed))
    for source, error in made.failed:
        sources.app.console.error(f"{source.reference}: {error}", error.hint)
    if made.failed:
        raise made.failed[0][1]
    if any(item.source.platforms for item in made.items):
        sources.app.console.warn(f"{path}: all platforms are saved, whatever platforms says")
    yield from (at(item.reference) for item in made.items)


def proven(app: App, found: Sequence[Location], sources: Sources, trust: Trust) -> list[Wanted]:
    """Everything to save, each with its proof, and each once whatever named it."""
    trusted = policy(trust, found)
    for where in found:
        sources.of(where)

    def one(where: Location) -> Proof:
        return prove(trust, sources.of(where), _tagged(where), trusted)

    proofs = each(app, one, found, str)
    wanted: dict[Reference, Wanted] = {}
    for where, proof in zip(found, proofs, strict=True):
        wanted.setdefault(proof.reference, Wanted(sources.of(where), proof))
    return list(wanted.values())


def _tagged(where: Location) -> Reference:
    """The name to save it by: what no tag and no digest names is `latest`."""
    reference = where.reference
    if reference.tag is None and reference.digest is None:
        return Reference(reference.registry, reference.repository, reference.name)
    return reference


def _with_keys(path: str, folder: str) -> list[tuple[str, str]]:
    """A policy and the key files that it names, so that it finds them in `folder` as it does here.

    Those that it names by absolute paths are beside it, and it does not find them there.
    """
    from ocipack.cli.policies import content  # noqa: PLC0415 - start-up: it loads YAML
    from ocipack.trust.policy.reader import read  # noqa: PLC0415 - as above

    names: list[str] = []
    read(content(path), file=path, key=_noting(path, names))
    relative = [posixpath.normpath(name) for name in names if not name.startswith("/")]
    above = max((name.split("/").count("..") for name in relative), default=0)
    at = posixpath.join(folder, *["policy"] * above)
    here = os.path.dirname(path)  # noqa: PTH120 - text
    found = [(f"{at}/{os.path.basename(path)}", path)]  # noqa: PTH119 - text
    for name in names:
        there = posixpath.basename(name) if name.startswith("/") else name
        found.append((posixpath.normpath(f"{at}/{there}"), os.path.join(here, name)))  # noqa: PTH118 - text
    return found


def _noting(path: str, names: list[str]) -> Callable[[str], PublicKey]:
    """Finds keys as the policy at `path` has them, and notes which it was asked for."""
    from ocipack.cli.policies import beside  # noqa: PLC0415 - start-up

    find = beside(path)

    def key(name: str) -> PublicKey:
        names.append(name)
        return find(name)

    return key
