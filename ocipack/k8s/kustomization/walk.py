"""Everything that kustomizations reach, each file read once, and every reason to stop."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from ocipack.k8s.kustomization.fields import Names
from ocipack.k8s.kustomization.paths import View, shown
from ocipack.k8s.kustomization.reader import Inspection, Use, kustomization, plugins
from ocipack.report import Finding, Report

LOADS: Final = 20_000
"""Paths that kustomize would load for one root. It builds a base again each time it is named, so
that thirty directories that name the next one twice would mean a billion."""

DEPTH: Final = 100
"""Kustomizations above one another."""

_YAML: Final = (Names.RESOURCE, Names.FILE, Names.PATCH)

EVERY: Final = "**"
"""In a list of directories to build: every kustomization that no other one names."""

Read = Callable[[str], bytes]


@dataclass(frozen=True, slots=True)
class Root:
    """What to build: a `directory` of the tree ("" is its top).

    `resources` is None if the directory has a kustomization of its own; else the paths, from the
    tree's top, that Flux would list in the kustomization it generates there.
    """

    directory: str
    resources: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.directory or "."


@dataclass(slots=True)
class Walk:
    """The kustomizations of one tree and what they name. Nothing is read twice."""

    view: View
    read: Read
    _seen: dict[str, Inspection] = field(default_factory=dict)
    _plugins: dict[tuple[str, str], Inspection] = field(default_factory=dict)
    _loads: dict[str, int] = field(default_factory=dict)
    _findings: list[Finding] = field(default_factory=list)

    @property
    def report(self) -> Report:
        """What was found so far; a walk with errors must not be built."""
        found = [
            f for seen in (*self._seen.values(), *self._plugins.values()) for f in seen.findings
        ]
        return Report.of((*found, *self._findings))

    def inspect(self, directory: str) -> Inspection:
        """The kustomization of `directory`, which must hold exactly one."""
        if directory not in self._seen:
            (file,) = self.view.kustomizations(directory)
            self._seen[directory] = kustomization(file, self.read(file), self.view)
        return self._seen[directory]

    def directories(self) -> list[str]:
        """Every directory with a kustomization; two in one directory are reported."""
        found = []
        for directory in sorted(self.view.directories):
            files = self.view.kustomizations(directory)
            if len(files) == 1:
                found.append(directory)
            elif files:
                names = " and ".join(posixpath.basename(f) for f in files)
                message = f"one directory holds {names}: kustomize takes neither"
                self._findings.append(Finding("kustomization-ambiguous", message, file=files[0]))
        return found

    def follow(self, directory: str) -> None:
        """Walk everything that `directory` reaches. Findings go to `report`."""
        self._enter(directory, ())

    def yaml_files(self) -> set[str]:
        """Every file that kustomize will read as YAML and that is not judged here already."""
        every = (*self._seen.values(), *self._plugins.values())
        uses = (use for seen in every for use in seen.uses if use.path in self.view.files)
        return {use.path for use in uses if use.names in _YAML}

    def _enter(self, directory: str, chain: tuple[str, ...]) -> int:
        """Check 8. The number of paths that building `directory` once would load."""
        if directory in self._loads:
            return self._loads[directory]
        inspection = self.inspect(directory)
        chain = (*chain, directory)
        costs = [self._cost(use, directory, chain) for use in inspection.uses]
        loads = 1 + sum(costs)
        if loads > LOADS >= max(costs):  # said once, at the lowest place
            (file,) = self.view.kustomizations(directory)
            message = f"building this loads more than {LOADS} files: bases are built anew each time"
            self._findings.append(Finding("kustomization-too-large", message, file=file))
        self._loads[directory] = min(loads, LOADS + 1)
        return self._loads[directory]

    def _cost(self, use: Use, directory: str, chain: tuple[str, ...]) -> int:
        if use.names is Names.PLUGIN:
            return 1 + len(self._plugin(use.path, directory).uses)
        return 1 if use.path in self.view.files else self._base(use, chain)

    def _plugin(self, file: str, directory: str) -> Inspection:
        key = (file, directory)
        if key not in self._plugins:
            self._plugins[key] = plugins(file, self.read(file), directory, self.view)
        return self._plugins[key]

    def _base(self, use: Use, chain: tuple[str, ...]) -> int:
        above = [seen for seen in chain if _holds(use.path, seen)]
        if above:
            way = " → ".join(name or "." for name in (*chain[chain.index(above[0]) :], use.path))
            self._refuse(use, "kustomization-cycle", f"{shown(use.text)} closes a cycle: {way}")
            return 1
        if len(chain) >= DEPTH:
            message = f"more than {DEPTH} kustomizations above one another"
            self._refuse(use, "kustomization-too-large", message)
            return 1
        kind = self.inspect(use.path).kind
        if (use.names is Names.COMPONENT) != (kind == "Component"):
            field_ = "components" if kind == "Component" else "resources"
            message = f"{shown(use.text)} is a {kind}; it belongs under {field_}"
            self._refuse(use, "kustomization-field", message)
        return self._enter(use.path, chain)

    def _refuse(self, use: Use, rule: str, message: str) -> None:
        line, column = use.place.line, use.place.column
        self._findings.append(Finding(rule, message, file=use.file, line=line, column=column))


def _holds(outer: str, inner: str) -> bool:
    """Whether `outer` is `inner` or a directory above it, which kustomize calls a cycle."""
    return outer in ("", inner) or inner.startswith(outer + "/")


def roots(walk: Walk) -> list[Root]:
    """The directories to build when none are given.

    Those that no other kustomization names, Components left out. What only a Component names that
    nobody uses, or a circle, is built as well: nothing is kept from being looked at by being named.
    Without any kustomization the tree's top, as Flux builds it.
    """
    directories = walk.directories()
    if not directories:
        return [generated("", walk.view)]
    own = _unnamed(directories, walk)
    for directory in own or directories:
        walk.follow(directory)
    return [Root(directory) for directory in own]


def _unnamed(directories: list[str], walk: Walk) -> list[str]:
    """Directories from which every kustomization is reached, but for Components that none uses."""
    uses = {one: {use.path for use in walk.inspect(one).uses} for one in directories}
    rest = [one for one in directories if walk.inspect(one).kind != "Component"]
    named = {path for paths in uses.values() for path in paths}
    fresh, found, reached = [one for one in rest if one not in named], list[str](), set[str]()
    while rest:
        found += fresh
        waiting = [*fresh]
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += uses.get(one, ())
        rest = [one for one in rest if one not in reached]
        named = {path for one in rest for path in uses[one]}
        fresh = [one for one in rest if one not in named] or rest  # circles
    return sorted(found)


def generated(directory: str, view: View) -> Root:
    """The kustomization that Flux generates for a directory without one (pkg/kustomize, Generator).

    Every `.yaml` and `.yml` below it in the order of a walk, hidden ones too; a sub-directory
    with its own kustomization is one resource and not descended.
    """
    own = {d for d in view.directories if view.kustomizations(d) and d != directory}
    found: set[str] = set()
    for name in view.files:
        if directory and not name.startswith(directory + "/"):
            continue
        parts = name[len(directory) + 1 if directory else 0 :].split("/")
        above = [posixpath.join(directory, *parts[:n]) for n in range(1, len(parts))]
        stop = next((d for d in above if d in own), None)
        if stop is not None:
            found.add(stop)
        elif name.endswith((".yaml", ".yml")):  # as Go tells endings: `.yaml` alone has one
            found.add(name)
    return Root(directory, tuple(sorted(found, key=lambda path: path.split("/"))))


def root(directory: str, walk: Walk) -> Root:
    """The root that a user named; its own kustomization, or what Flux would generate."""
    files = walk.view.kustomizations(directory)
    if len(files) == 1:
        walk.follow(directory)
        return Root(directory)
    if files:
        walk.directories()  # reports the two
        return Root(directory)
    made = generated(directory, walk.view)
    for path in made.resources or ():
        if len(walk.view.kustomizations(path)) == 1:
            walk.follow(path)
        elif path in walk.view.directories:
            walk.directories()  # as above
    return made


def confined(directories: Iterable[str] | None, walk: Walk) -> list[Root]:
    """The roots to build, everything they reach walked; see `walk.report` before building any.

    EVERY among the `directories` stands for those that are built when none are given, but for what
    is in the kustomizations that Flux generates for the others.
    """
    if directories is None:
        return roots(walk)
    given = list(dict.fromkeys(directories))
    made = {each: root(each, walk) for each in given if each != EVERY}
    if EVERY not in given:
        return list(made.values())
    named = {path for one in made.values() for path in one.resources or ()}
    every = {one.directory: one for one in roots(walk) if one.directory not in named}
    return list((every | made).values())
