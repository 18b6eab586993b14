"""What kustomize builds in a tree, and which files it reads for that: the rest is read raw."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ocipack.k8s.kustomization.paths import View
from ocipack.k8s.kustomization.walk import Read, Walk, roots as find
from ocipack.report import Report


@dataclass(frozen=True, slots=True)
class Roots:
    """`build` are the directories to build ("" is the top), `components` those that are none.

    `used` are the files that some kustomization names; `report` is what confinement found in
    those that no root reaches, as well as in the others.
    """

    build: tuple[str, ...]
    components: tuple[str, ...]
    used: frozenset[str]
    report: Report


def roots(arriving: Collection[str], read: Read) -> Roots:
    """The roots of a tree that has at least one kustomization."""
    view = View.of(arriving)
    walk = Walk(view, read)
    build = [root.directory for root in find(walk)]
    directories = walk.directories()
    uses = {use.path for each in directories for use in walk.inspect(each).uses}
    components = [each for each in directories if walk.inspect(each).kind == "Component"]
    return Roots(tuple(build), tuple(components), frozenset(uses & view.files), walk.report)
