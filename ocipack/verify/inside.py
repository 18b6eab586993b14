"""What a packed tree names: in what its roots build, and in every manifest besides.

The rule, which docs/verification.md explains:

1. the roots are those that `render` builds, or those that were asked for; what kustomize builds
   of them counts, so that a tag which an overlay replaces by a digest is none
2. a directory that a Flux Kustomization in the tree has built is a root too, unless its source is
   another artifact
3. a manifest that no root uses as one counts as it stands, read as Flux and as kubectl read it:
   somebody may apply it. So does one that a root uses from outside of every kustomization's
   directory, unless it was said what is built: Flux lists it in what it generates above, and so
   does one that looks like part of a chart, if it is an object as it stands
4. whatever is left is listed as not looked at
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ocipack.errors import IntegrityError, Misuse, Rejected
from ocipack.flux import sources
from ocipack.flux.sources import Address, Link
from ocipack.k8s.kustomization.fields import Names
from ocipack.k8s.kustomization.paths import FILE_NAMES, View
from ocipack.k8s.kustomization.walk import Root, Walk, confined
from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import Document, join, read as documents, split
from ocipack.k8s.yaml.events import YamlError
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.report import Finding, Report, Severity
from ocipack.validate.inputs import sort_out
from ocipack.verify.named import named, objects
from ocipack.verify.namings import Named, Unseen
from ocipack.verify.texts import Texts

if TYPE_CHECKING:
    from ocipack.k8s.images.site import Written
    from ocipack.oci.reference import Reference
    from ocipack.render import Built, Rendered
    from ocipack.trust.policy.contents import Part

PLACES: Final = 100_000
"""Places in the contents of one artifact that name something."""

ROOTS: Final = 2_000
"""Directories of one artifact that are built to see what they name."""

MANIFEST: Final = 64 * 1024 * 1024
"""Bytes of a manifest in the contents of an artifact."""

UNREADABLE: Final = "contents-unreadable"

_BATCH: Final = 8  # roots whose objects are in memory at the same time
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff", b"\x00")
_CLAIM: Final = ("apiVersion", "kind")

Render = Callable[[Sequence[str]], "Rendered"]
"""Builds directories of the tree, all or none; Rejected for what cannot be built."""


@dataclass(frozen=True, slots=True)
class Where:
    """A place that names something: in a file, or in an object that `root` builds.

    `file` is then the root's kustomization, and `line` is 0. `what` is for people.
    """

    file: str
    pointer: str
    subject: str
    what: str
    root: str = ""
    line: int = 0
    column: int = 0


@dataclass(slots=True)
class Inside:
    """Everything found: each part with its places, and by reason what was not looked at.

    `findings` are what could not be read, `objects` how many objects there are.
    """

    parts: dict[Part, list[Where]] = field(default_factory=dict)
    unseen: dict[Unseen, set[str]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    objects: int = 0


def look(
    sizes: Mapping[str, int],
    read: Callable[[str], bytes],
    render: Render,
    *,
    own: Reference,
    roots: Sequence[str] = (),
) -> Inside:
    """Find what the tree of the artifact `own` names.

    `sizes` has the name and length in bytes of every file, `read` gives one, `render` builds
    directories. `roots` are those to build; if none are given, those that nothing else names.
    Rejected if something must not be built, if there is too much, or nothing at all.
    """
    search = _Search(sizes, read, render, own)
    search.build(roots)
    search.stand()
    search.follow()
    search.rest()
    made = search.made
    if not made.objects and not made.parts and not made.findings:
        raise Rejected(
            f"{own}: there is no object in it, so nothing can be said of its contents",
            hint="manifests end in .yaml, .yml or .json, or are named by a kustomization",
        )
    return made


class _Search:
    def __init__(
        self, sizes: Mapping[str, int], read: Callable[[str], bytes], render: Render, own: Reference
    ) -> None:
        self.made = Inside()
        self._sizes, self._read, self._render, self._own = sizes, read, render, own
        self._sorted = sort_out(list(sizes), read)
        self._walk = Walk(View.of(self._sorted.arriving), read)
        self._used: set[str] = set()
        self._reached: set[str] = set()
        self._given = False
        self._done: set[str] = set()
        self._places = 0
        self._sources: dict[Link, set[str]] = {}
        self._links: list[tuple[Link, str]] = []
        self._paths: list[tuple[str, Link | None, str]] = []
        self._charts: list[tuple[Named, Where]] = []

    def build(self, given: Sequence[str]) -> None:
        """Build the roots (1)."""
        self._given = bool(given)
        targets = confined([self._directory(one) for one in given] or None, self._walk)
        if not self._walk.report.ok:
            raise _refused(self._walk.report)
        if not given and all(root.resources is not None for root in targets):
            return  # no kustomization anywhere: every manifest counts as it stands
        self._batches([root.directory for root in targets])

    def stand(self) -> None:
        """Look at every manifest that no kustomization uses (3)."""
        named = {path for one in self._walk.directories() for path in self._uses(one)}
        for name in sorted(self._sorted.manifests):
            if self._given or self._is_kustomized(name):
                if name in self._used:
                    continue
                is_named = name in named
            else:
                is_named = False  # where Flux generates a kustomization it lists this anyhow
            if is_named:
                reason = "files of a kustomization that nothing builds"
                self._unseen(Unseen(reason, Severity.WARNING), name)
            else:
                self._file(name)
        for name, reason in self._sorted.skipped.items():
            if name in self._sorted.arriving and name not in self._used:
                self._file(name, reason)

    def _is_kustomized(self, name: str) -> bool:
        """Whether a kustomization stands beside the file, or above it."""
        parts = name.split("/")[:-1]
        above = ["/".join(parts[:length]) for length in range(len(parts) + 1)]
        return any(self._walk.view.kustomizations(directory) for directory in above)

    def follow(self) -> None:
        """Build what Flux will, as far as objects of this artifact say so (2).

        What cannot be built there is not deployed.
        """
        while fresh := {one: who for one, who in self._wanted() if one not in self._done}:
            for directory, who in fresh.items():
                try:
                    self._batches([directory])
                except IntegrityError:
                    raise
                except Rejected as e:
                    if e.report is not None:  # it must not be built: who knows what Flux does
                        raise
                    reason = f"a path of Flux that does not build: {e}"
                    self._unseen(Unseen(reason, Severity.WARNING), who)

    def rest(self) -> None:
        """Settle charts whose repository is here, and list what was not looked at (4)."""
        for chart, where in self._charts:
            self._add(self._placed(chart), where)
        for name in self._sizes.keys() - self._sorted.arriving:
            # a source with `operation: copy` does not, and ocipack packs no such file
            self._unseen(Unseen("source-controller leaves it out", Severity.WARNING), name)
        for name in self._reached - self._done:
            if self._walk.inspect(name).kind != "Component":
                self._unseen(Unseen("a base alone: what is built of it is judged"), name)
        listed = {*self._sorted.manifests, *self._sorted.skipped, *self._used}
        for name in self._sorted.arriving - listed:
            if posixpath.basename(name) not in FILE_NAMES:
                self._unseen(Unseen("no manifest by its name"), name)
        for link, who in self._links:
            if link not in self._sources:
                self._unseen(Unseen("its source is no part of this artifact"), who)

    def _directory(self, text: str) -> str:
        """A root that was asked for, as the walk calls it."""
        name = "/".join(part for part in text.split("/") if part not in ("", "."))
        if name not in self._walk.view.directories or text.startswith("/"):
            raise Misuse(f"{text!r} is not a directory of {self._own}")
        return name

    def _batches(self, directories: list[str]) -> None:
        for start in range(0, len(directories), _BATCH):
            group = directories[start : start + _BATCH]
            self._done.update(group)
            if len(self._done) > ROOTS:
                raise Rejected(f"{self._own}: more than {ROOTS} directories to build")
            for built in self._render([one or "." for one in group]).roots:
                self._built(built)

    def _built(self, built: Built) -> None:
        self._use(built.root)
        files = self._walk.view.kustomizations(built.root.directory)
        file, root = files[0] if files else str(built.root), str(built.root)
        texts = Texts(built.data)
        for resource in built.resources:
            self.made.objects += 1
            origin = resource.origin
            written = texts.written(origin.document, split(origin.pointer))
            place = Where(file, "", str(resource), "", root)
            for one in self._of(resource, file, written, str(resource)):
                self._take(one, replace(place, pointer=join(*one.path), what=one.place))

    def _use(self, root: Root) -> None:
        """Mark the files that `root` builds objects of, or changes them by."""
        waiting = [root.directory] if root.resources is None else list(root.resources)
        seen: set[str] = set()
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            if path in self._walk.view.files:
                self._used.add(path)
            else:
                self._reached.add(path)
                waiting += self._uses(path)

    def _uses(self, directory: str) -> list[str]:
        """What a kustomization names, but for files whose text it copies."""
        data = (Names.DATA, Names.KEYED_DATA)
        return [use.path for use in self._walk.inspect(directory).uses if use.names not in data]

    def _file(self, name: str, aside: str = "") -> None:
        """One manifest as it stands, as each reader reads it; `aside` is why it may be none."""
        if self._sizes[name] > MANIFEST:
            self._unreadable(name, f"longer than {MANIFEST} bytes")
            return
        data = self._read(name)
        known: set[tuple[Part, int, str]] = set()
        for dialect in Dialect:
            try:
                for document in documents(data, dialect, strict=not aside, name=name):
                    self._document(name, document, known, aside)
            except IntegrityError as e:
                if not aside:
                    self._unread(name, data, e)
                    return
                self._unseen(Unseen(aside), name)  # and what the other reader takes counts

    def _unread(self, name: str, data: bytes, e: IntegrityError) -> None:
        wide = data.startswith(_WIDE) or b"\x00" in data[:4]
        if wide or b"\\" in data or all(mark.encode() in data for mark in _CLAIM):
            line, column = (e.line, e.column) if isinstance(e, YamlError) else (0, 0)
            message = str(e).removeprefix(f"{name}:{line}:{column}: ")
            self._unreadable(name, message, line, column, e.hint)
        else:
            self._unseen(Unseen("neither YAML nor a Kubernetes object"), name)

    def _document(
        self, name: str, document: Document, known: set[tuple[Part, int, str]], aside: str
    ) -> None:
        """Take everything in one document that is not `known` from another reading."""
        texts = Texts(document.chunk)
        fresh: list[tuple[Named, Where]] = []
        for at, value in objects(document.value):
            resource = Resource(value)
            if aside and not (resource.kind and resource.api_version):
                self._unseen(Unseen(aside), name)
                continue
            if not resource.kind and not resource.api_version:
                self._unseen(Unseen("no Kubernetes object"), name)
            else:
                self.made.objects += 1
            who = str(resource) if resource.kind else ""
            for one in self._of(resource, name, texts.written(0, at), who or name):
                if aside and "{{" in one.part.text:
                    self._unseen(Unseen(aside), name)
                    continue
                pointer = join(*at, *one.path)
                key = (one.part, document.line, pointer)
                if key not in known:
                    known.add(key)
                    fresh.append((one, Where(name, pointer, who, one.place)))
        places = document.places([where.pointer for _, where in fresh]) if fresh else {}
        for one, where in fresh:
            line, column = places[where.pointer]
            self._take(one, replace(where, line=line, column=column))

    def _of(self, resource: Resource, file: str, written: Written, who: str) -> Iterator[Named]:
        """What an object names; what it does not say is noted on the way."""
        for found in named(resource.value, file, written):
            if isinstance(found, Unseen):
                self._unseen(found, who)
            else:
                yield found
        group, kind, value = resource.group, resource.kind, resource.value
        links = list(sources.links(group, kind, value))
        self._links += [(link, who) for link in links]
        self._paths += [(path, link, who) for path, link in sources.paths(group, kind, value)]
        for fetch in sources.fetches(group, kind, value):
            link = Link(kind, resource.namespace, resource.name)
            self._sources.setdefault(link, set()).add(str(fetch.address))

    def _wanted(self) -> Iterator[tuple[str, str]]:
        """Directories of this tree that Flux builds, and the object that says so."""
        own = str(Address.parse(f"oci://{self._own.registry}/{self._own.repository}"))
        for text, link, who in self._paths:
            path = posixpath.normpath(posixpath.join("/", text))[1:]
            if path not in self._walk.view.directories:
                continue
            if link is None or own in self._sources.get(link, {own}):
                yield path, who
            else:
                self._unseen(Unseen("a path that Flux takes from another artifact"), who)

    def _placed(self, chart: Named) -> Part:
        """A chart with the address of its repository, if there is one and it says where."""
        assert chart.link is not None  # what makes it a chart
        known = self._sources.get(chart.link, set())
        try:
            (where,) = known
            address = Address.parse(f"{where}/{chart.part.text.split()[1]}")
        except (ValueError, Misuse):
            return chart.part
        return replace(chart.part, address=address)

    def _take(self, one: Named, where: Where) -> None:
        if one.link is not None:
            self._charts.append((one, where))
        self._count()
        if one.link is None:
            self._add(one.part, where)

    def _add(self, part: Part, where: Where) -> None:
        self.made.parts.setdefault(part, []).append(where)

    def _count(self) -> None:
        self._places += 1
        if self._places > PLACES:
            raise Rejected(f"{self._own}: more than {PLACES} places in it name something")

    def _unseen(self, what: Unseen, who: str) -> None:
        self.made.unseen.setdefault(what, set()).add(who)

    def _unreadable(
        self, name: str, message: str, line: int = 0, column: int = 0, hint: str = ""
    ) -> None:
        self.made.findings.append(
            Finding(UNREADABLE, message, file=name, line=line, column=column, hint=hint)
        )


def _refused(report: Report) -> Rejected:
    first = next(one for one in report.findings if one.severity is Severity.ERROR)
    message = f"{first.place}: {first.message}; nothing was built"
    return Rejected(message, report=report, hint=first.hint)
