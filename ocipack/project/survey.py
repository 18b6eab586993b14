"""What a tree seems to be delivered as, by what Flux is told in it: the first project file says so.

A Flux Kustomization names a source and a directory of it. Where all directories that are asked of
one source are there, seen from some directory, that is what the source delivers. Directories that
hold such Kustomizations, and that no source delivers, are what a cluster begins with. A tree that
tells Flux nothing is delivered by its folders. What kustomizations name elsewhere comes along.

These are guesses about honest trees, written down for people to read; nothing is decided by them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ocipack.errors import IntegrityError, Misuse
from ocipack.k8s.kustomization.paths import View
from ocipack.k8s.kustomization.walk import EVERY, Walk, generated
from ocipack.k8s.resource import Resource, resources
from ocipack.k8s.yaml.documents import read as documents
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.tree.tree import check_name

_SUFFIXES: Final = (".yaml", ".yml")
_MARKS: Final = (b"fluxcd.io/", b"fluxcd.controlplane.io/")
_SYNC: Final = "flux-system"
_TEMPLATE: Final = re.compile(r"[$<{*]")
_VERSION: Final = re.compile(r"\s*v?(2\.[0-9]{1,2})(?:\.|\Z)")
_COMMENT: Final = re.compile(rb"^# Flux Version: v(2\.[0-9]{1,2})\.", re.MULTILINE)
_BESIDE: Final = frozenset({"clusters", "tenants", "teams", "components"})
"""Folders that hold one independent thing in each of their own."""

Read = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Proposal:
    """An artifact: its `root` ("": the top), and `why`, for people.

    `keep` are the names at the top that belong to it, if its root is the top (none: all do).
    `render` are directories to build, if those that are found without being told are not all.
    """

    root: str
    why: str
    keep: tuple[str, ...] = ()
    render: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found: artifacts, sources that are `elsewhere`, and the version of Flux, if said."""

    proposals: tuple[Proposal, ...]
    elsewhere: tuple[str, ...] = ()
    flux: str = ""


def survey(names: Iterable[str], read: Read, *, remote: str = "") -> Survey:
    """Look at the files called `names`, which `read` reads, of a repository known as `remote`.

    What no artifact can hold under its name is passed over: packing says so.
    """
    return _Surveyor(View.of(filter(_sayable, names)), read, remote).survey()


@dataclass(slots=True)
class _Source:
    """What is asked of one source: directories to build, and others that are wanted."""

    kind: str
    name: str
    urls: set[str] = field(default_factory=set)
    build: set[str] = field(default_factory=set)
    want: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    @property
    def paths(self) -> set[str]:
        return self.build | self.want

    @property
    def hints(self) -> set[str]:
        """Names that its directory may have."""
        return {self.name, *(posixpath.basename(url.rstrip("/")) for url in self.urls)}

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(slots=True)
class _Surveyor:
    view: View
    read: Read
    remote: str
    walk: Walk = field(init=False)
    sources: dict[tuple[str, str], _Source] = field(default_factory=dict)
    entries: dict[str, str] = field(default_factory=dict)
    flux: str = ""

    def __post_init__(self) -> None:
        self.walk = Walk(self.view, self.read)

    def survey(self) -> Survey:
        for name in sorted(self.view.files):
            if name.endswith(_SUFFIXES):
                self._file(name)
        roots: dict[str, list[_Source]] = {}
        elsewhere = []
        for source in self.sources.values():
            root = self._root(source)
            if root is None and source.files:
                elsewhere.append(str(source))
            elif root is not None:
                roots.setdefault(root, []).append(source)
        begin = self._begin(roots)
        made = [self._delivered(root, found, begin) for root, found in roots.items()]
        if "" not in roots:
            made += [self._entered(root) for root in begin]
        return Survey(
            tuple(self._lifted(made or self._folders())), tuple(sorted(elsewhere)), self.flux
        )

    # what the files say

    def _file(self, name: str) -> None:
        data = self.read(name)
        if not any(mark in data for mark in _MARKS):
            return
        if match := _COMMENT.search(data):
            self.flux = match[1].decode()
        try:
            found = list(resources(documents(data, Dialect.FLUX, strict=False), Dialect.FLUX))
        except IntegrityError:
            return  # whoever builds it says what is wrong with it
        for resource in found:
            self._object(name, resource)

    def _object(self, file: str, found: Resource) -> None:
        spec = _mapping(found.value, "spec")
        if found.group == "kustomize.toolkit.fluxcd.io" and found.kind == "Kustomization":
            reference = _mapping(spec, "sourceRef")
            if not reference:
                return  # a patch of one
            source = self._source(reference)
            source.files.add(file)
            source.build |= _paths(spec.get("path", ""))
            self.entries[posixpath.dirname(file)] = file
        elif found.group == "fluxcd.controlplane.io" and found.kind == "FluxInstance":
            self._instance(file, spec)
        elif found.group == "source.toolkit.fluxcd.io" and isinstance(spec.get("url"), str):
            self._source({"kind": found.kind, "name": found.name}).urls.add(spec["url"])
        elif found.group == "helm.toolkit.fluxcd.io":
            chart = _mapping(_mapping(spec, "chart"), "spec")
            reference = _mapping(chart, "sourceRef")
            if reference.get("kind") in ("GitRepository", "Bucket"):
                self._source(reference).want |= _paths(chart.get("chart"))

    def _instance(self, file: str, spec: Mapping[str, Any]) -> None:
        version = _mapping(spec, "distribution").get("version")
        if isinstance(version, str) and (match := _VERSION.match(version)):
            self.flux = match[1]
        sync = _mapping(spec, "sync")
        if sync:
            source = self._source({"kind": sync.get("kind"), "name": _SYNC})
            source.files.add(file)
            source.build |= _paths(sync.get("path", ""))
            if isinstance(sync.get("url"), str):
                source.urls.add(sync["url"])

    def _source(self, reference: Mapping[str, Any]) -> _Source:
        kind, name = (
            text if isinstance(text := reference.get(key), str) else "" for key in ("kind", "name")
        )
        return self.sources.setdefault((kind, name), _Source(kind, name))

    # where it is

    def _root(self, source: _Source) -> str | None:
        """The directory that this source delivers; None if it is not here."""
        if not source.files and not source.want:
            return None
        if source.kind == "GitRepository":
            foreign = source.name != _SYNC and source.urls and not self._ours(source.urls)
            own = source.paths if source.name == _SYNC else source.paths - {""}
            there = any(path in self.view.directories for path in own)
            return "" if there and not foreign else None
        fitting = [
            root
            for root in sorted(self.view.directories, key=lambda name: (name.count("/"), name))
            if all(_join(root, path) in self.view.directories for path in source.paths)
        ]
        if source.name == _SYNC and "" in fitting:
            return ""
        named = [root for root in fitting if posixpath.basename(root) in source.hints]
        if not any(source.paths):  # all of it: what it is called says where, if it is ours at all
            return named[0] if named and self._related(source.urls) else None
        apart = [root for root in fitting if not any(_in(file, root) for file in source.files)]
        return next(iter([*named, *(apart if len(apart) == 1 else [])]), None)

    def _ours(self, urls: Iterable[str]) -> bool:
        return any(_bare(url) == _bare(self.remote) for url in urls)

    def _related(self, urls: Iterable[str]) -> bool:
        """Whether addresses of artifacts have the repository's name in them, or there is none."""
        own = posixpath.basename(_bare(self.remote))
        return not own or all(own in _bare(url).split("/") for url in urls)

    def _begin(self, roots: Iterable[str]) -> list[str]:
        """The directories that clusters begin with: they tell Flux what to do, and are in no root.

        What stands at the top among others is applied by hand.
        """
        inner = [root for root in roots if root]
        free = [each for each in self.entries if not any(_in(each, root) for root in inner)]
        deep = [each for each in free if each] or free
        return sorted(
            each for each in deep if not any(each != one and _in(each, one) for one in deep)
        )

    # what it is

    def _delivered(self, root: str, found: list[_Source], begin: list[str]) -> Proposal:
        paths = {path for source in found for path in source.paths}
        build = {path for source in found for path in source.build}
        why = f"{', '.join(sorted(map(str, found)))}: {_shown(build or paths)}"
        if root:
            return Proposal(root, why, (), self._render(root, build))
        keep = {path.split("/")[0] for path in (*paths, *begin)}
        keep = set() if "" in keep else self._closed(keep)
        return Proposal("", why, tuple(sorted(keep)), self._render("", {*build, *begin}))

    def _entered(self, root: str) -> Proposal:
        return Proposal(root, "tells Flux what a cluster applies", (), self._render(root, {""}))

    def _closed(self, keep: set[str]) -> set[str]:
        """`keep`, and what kustomizations in there name elsewhere."""
        waiting, found = list(keep), set(keep)
        while waiting:
            for path in self._uses(waiting.pop()):
                top = path.split("/")[0]
                if top not in found:
                    found.add(top)
                    waiting.append(top)
        return found

    def _uses(self, root: str) -> Iterator[str]:
        """What kustomizations below `root` name."""
        for directory in self.walk.directories():
            if _in(directory, root):
                for use in self.walk.inspect(directory).uses:
                    if use.path in self.view.files or use.path in self.view.directories:
                        yield use.path

    def _render(self, root: str, paths: Iterable[str]) -> tuple[str, ...]:
        """The directories to build, if those that are found anyhow are not all that is applied."""
        own = [each for each in self.walk.directories() if _in(each, root)]
        if not own:
            return ()  # all of it is built, as Flux does it
        used = {path for each in own for use in self.walk.inspect(each).uses for path in [use.path]}
        missing = [
            path
            for path in sorted(paths)
            if (where := _join(root, path)) in self.view.directories
            and not self.view.kustomizations(where)
            and {*(generated(where, self.view).resources or ())} - used - {*own}
        ]
        if "" in missing:
            return (".",)
        reached = set(used)
        for path in missing:
            reached |= {*(generated(_join(root, path), self.view).resources or ())}
        components = {each for each in own if self.walk.inspect(each).kind == "Component"}
        every = () if {*own} <= reached | components else (EVERY,)
        return (*every, *missing) if missing else ()

    def _folders(self) -> list[Proposal]:
        """A tree that tells Flux nothing: its folders, if each of them is by itself."""
        manifests = [name for name in self.view.files if name.endswith(_SUFFIXES)]
        if any("/" not in name for name in manifests) or not manifests:
            return [Proposal("", "manifests at the top")]
        folders = {name.split("/")[0] for name in manifests}
        for folder in sorted(folders & _BESIDE):
            inner = [name for name in manifests if _in(name, folder)]
            apart = {"/".join(name.split("/")[:2]) for name in inner}
            if all(name.count("/") > 1 for name in inner) and all(map(self._alone, apart)):
                folders = (folders - {folder}) | apart
        if not all(map(self._alone, folders)):
            keep = tuple(sorted({name.split("/")[0] for name in folders}))
            return [Proposal("", "folders that name each other", keep)]
        return [Proposal(folder, "a folder by itself") for folder in sorted(folders)]

    def _alone(self, root: str) -> bool:
        return all(_in(path, root) for path in self._uses(root))

    def _lifted(self, made: Iterable[Proposal]) -> Iterator[Proposal]:
        """Roots that hold all that their kustomizations name; one that is in such a root is it."""
        made = list(made)
        lifted = {one.root: self._holding(one.root) for one in made}
        wide = {holder for root, holder in lifted.items() if holder != root}
        for holder in sorted(wide):
            if not any(holder != one and _in(holder, one) for one in wide):
                inner = sorted(one.root for one in made if _in(one.root, holder))
                keep = (
                    () if holder else tuple(sorted(self._closed({r.split("/")[0] for r in inner})))
                )
                yield Proposal(holder, f"{_shown(inner)} need what is beside them", keep)
        for one in made:
            if not any(_in(one.root, holder) for holder in wide):
                yield one

    def _holding(self, root: str) -> str:
        while root:
            outside = [path for path in self._uses(root) if not _in(path, root)]
            if not outside:
                break
            root = posixpath.commonpath([f"/{root}", *(f"/{path}" for path in outside)])[1:]
        return root


def _sayable(name: str) -> bool:
    try:
        check_name(name)
    except Misuse:
        return False
    return True


def _mapping(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _paths(text: object) -> set[str]:
    """A path as Flux reads it, from the top of its source; none if it cannot be said."""
    if not isinstance(text, str) or _TEMPLATE.search(text):
        return set()
    path = posixpath.normpath(text.lstrip("/") or ".")
    return set() if path.startswith("..") else {"" if path == "." else path}


def _join(root: str, path: str) -> str:
    return "/".join(part for part in (root, path) if part)


def _in(name: str, root: str) -> bool:
    """Whether `name` is `root` or below it."""
    return not root or name == root or name.startswith(f"{root}/")


def _bare(url: str) -> str:
    """An address without what says how to get there."""
    text = url.lower().partition("://")[2] or url.lower().replace(":", "/", 1)
    return text.rpartition("@")[2].removesuffix("/").removesuffix(".git")


def _shown(paths: Iterable[str]) -> str:
    every = sorted(set(paths))
    outer = (path for path in every if not any(path != one and _in(path, one) for one in every))
    names = [path or "." for path in outer]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""  # noqa: PLR2004 - enough to know it by
    return ", ".join(names[:3]) + more
