"""From the packed tree to what kustomize builds of it.

Nothing here touches files or starts programs: the names of the tree, a reader for its files and a
builder come from outside. All roots are judged before the first is built, so that one hostile
kustomization means that kustomize never starts.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ocipack.errors import IntegrityError, Misuse, Rejected
from ocipack.k8s.kustomization.paths import View
from ocipack.k8s.kustomization.walk import EVERY, Read, Root, Walk, confined
from ocipack.k8s.resource import Resource, resources
from ocipack.k8s.yaml.documents import read as documents
from ocipack.k8s.yaml.events import Endless
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.report import Finding, Report, Severity
from ocipack.tree.ignore import IGNORE_FILE, dropped

Build = Callable[[Root], bytes]

_EMPTY = "{} builds to no object at all"
_WHY_EMPTY = "its files hold only comments or empty documents, or everything in it is local"


@dataclass(frozen=True, slots=True)
class Built:
    """One root: kustomize's bytes, and the objects in them in their order."""

    root: Root
    data: bytes
    resources: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The roots of a tree that hold objects, in the order of their names.

    There is at least one, unless whoever asked said that there need not be.
    """

    roots: tuple[Built, ...]
    report: Report

    @property
    def resources(self) -> list[Resource]:
        """The objects of all roots; `origin.root` says whose each is."""
        return [resource for built in self.roots for resource in built.resources]


def render(
    names: Iterable[str],
    read: Read,
    build: Build,
    *,
    roots: Sequence[str] | None = None,
    jobs: int = 2,
    empty: bool = False,
) -> Rendered:
    """Build `roots` (directories of the tree), or those that are found if None are given.

    EVERY among them stands for those that are found.

    `names` are the files of the tree, `read` reads one, `build` runs kustomize on one root; `jobs`
    of them run at once. What source-controller drops on arrival (CI files, `.sourceignore`) does
    not exist here, since it will not in the cluster. Raises Misuse for a root that is no
    directory, Rejected if a kustomization must not be built or there is nothing to render: in the
    whole tree, or in a root that was named. One that was found is only warned of: an overlay may
    wait for its first file. With `empty` that is all: the caller looks whether there is anything.
    What `build` raises comes through, of the first root in order.
    """
    walk = Walk(View.of(_arriving(list(names), read)), read)
    named = _normalised(roots, walk.view)
    targets = confined(named, walk)
    if not walk.report.ok:
        raise _refused(walk.report)
    _refuse_nothing(targets)
    _refuse_endless(targets, walk)
    every = zip(targets, _all(build, targets, jobs), strict=True)
    built = [_parsed(root, data, walk.view) for root, data in every]
    nothing = [one.root for one in built if not one.resources]
    for root in () if empty else nothing:
        if len(nothing) == len(built) or root.directory in (named or ()):
            raise Rejected(f"nothing to render: {_EMPTY.format(root)}", hint=_WHY_EMPTY)
    report = walk.report + Report(tuple(_warning(root, walk.view) for root in nothing))
    return Rendered(tuple(one for one in built if one.resources), report)


def _arriving(names: list[str], read: Read) -> set[str]:
    rules = {
        posixpath.dirname(name): read(name).decode(errors="replace")
        for name in names
        if posixpath.basename(name) == IGNORE_FILE
    }
    return {*names} - {name for name, _ in dropped(names, rules)}


def _normalised(roots: Sequence[str] | None, view: View) -> list[str] | None:
    if roots is None:
        return None
    found = []
    for root in roots:
        name = "/".join(part for part in root.split("/") if part not in ("", "."))
        if name == EVERY:
            found.append(name)
            continue
        if name not in view.directories or root.startswith("/"):
            raise Misuse(
                f"{root!r} is not a directory of the packed tree",
                hint="roots count from the top of the tree; ignored files are not packed",
            )
        found.append(name)
    if not found:
        raise Misuse("an empty list of roots")
    return found


def _refused(report: Report) -> Rejected:
    errors = [f for f in report.findings if f.severity is Severity.ERROR]
    first = errors[0]
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    return Rejected(
        f"{first.place}: {first.message}{more}; kustomize was not started",
        report=report,
        hint=first.hint,
    )


def _refuse_nothing(targets: list[Root]) -> None:
    """Silence means no: without a root, or a file in it, there is nothing to approve."""
    if not targets:
        raise Rejected(
            "nothing to render: every kustomization here is a Component or is named by another",
            hint="name the directories to build",
        )
    for root in targets:
        if root.resources == ():
            raise Rejected(
                f"nothing to render: {root} holds no kustomization and no .yaml or .yml file",
                hint="name the directories to build, or add manifests",
            )


def _refuse_endless(targets: list[Root], walk: Walk) -> None:
    """Read the files that use aliases: kustomize multiplies a bomb until the machine gives up.

    Whatever else is wrong with them is kustomize's to say, which reads patches differently.
    """
    named = {path for root in targets for path in root.resources or ()}
    for name in sorted((walk.yaml_files() | named) & walk.view.files):
        data = walk.read(name)
        if b"&" not in data or b"*" not in data:
            continue
        try:
            for _ in documents(data, Dialect.FLUX, strict=False, name=name):
                pass
        except Endless:
            raise
        except IntegrityError:
            continue


def _all(build: Build, targets: list[Root], jobs: int) -> list[bytes]:
    if len(targets) == 1 or jobs <= 1:
        return [build(root) for root in targets]
    pool = ThreadPoolExecutor(max_workers=min(jobs, len(targets)), thread_name_prefix="render")
    try:
        return list(pool.map(build, targets))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after a failure nothing more is started


def _file(root: Root, view: View) -> str:
    return next(iter(view.kustomizations(root.directory)), str(root))


def _warning(root: Root, view: View) -> Finding:
    message = _EMPTY.format(root)
    return Finding("root-empty", message, Severity.WARNING, file=_file(root, view), hint=_WHY_EMPTY)


def _parsed(root: Root, data: bytes, view: View) -> Built:
    file = _file(root, view)
    try:
        stream = documents(data, Dialect.FLUX)
        found = tuple(resources(stream, Dialect.FLUX, file=file, root=str(root)))
    except IntegrityError as e:
        raise IntegrityError(f"what kustomize built of {root}: {e}", hint=e.hint) from e
    return Built(root, data, found)
