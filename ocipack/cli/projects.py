"""The project file on the command line: which artifacts a run is about, and what is excused."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ocipack.cli.clock import now
from ocipack.cli.command import App
from ocipack.errors import Misuse, Rejected
from ocipack.files.seam import printable
from ocipack.report import Report
from ocipack.tree.ignore import PROJECT_FILE

if TYPE_CHECKING:
    from datetime import date

    from ocipack.project import Environment, Part, Project

_F = TypeVar("_F", bound=Callable[..., Any])


def project_option(function: _F) -> _F:
    """Add `--project`."""
    return click.option(
        "--project",
        "project",
        default="",
        metavar="FILE",
        help=f"The project file; else {PROJECT_FILE} at the top of the directory, if there is one.",
    )(function)


def artifact_option(function: _F) -> _F:
    """Add `--artifact`."""
    return click.option(
        "--artifact",
        "artifacts",
        multiple=True,
        metavar="NAME",
        help="Only this artifact of the project file, which else means all; repeatable.",
    )(function)


def was_given(option: str) -> bool:
    """Whether the running command got `option` on its command line.

    A flag wins over the project file, and the default of a flag does not.
    """
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def home_of(directory: str) -> str:
    """Where the project file of a directory is, or of a single file: beside it."""
    return directory if os.path.isdir(directory) else posixpath.dirname(directory)  # noqa: PTH112 - start-up


def has_project(given: str, base: str) -> bool:
    """Whether there is anything that `read_project` would read, or complain of."""
    return bool(given) or os.path.lexists(posixpath.join(base or ".", PROJECT_FILE))


def read_project(given: str, base: str) -> Project:
    """The project file: the one that was `given`, else the one in the directory `base`, or none.

    Misuse if the given one is not there, or if what is there is no project file.
    """
    from ocipack.files.manifests import reader  # noqa: PLC0415 - start-up
    from ocipack.k8s.yaml.strict import BYTES  # noqa: PLC0415 - start-up
    from ocipack.project import Project  # noqa: PLC0415 - start-up
    from ocipack.project.reader import read  # noqa: PLC0415 - start-up

    path = given or posixpath.join(base or ".", PROJECT_FILE)
    stranger = not given and os.path.islink(path)  # noqa: PTH114 - start-up
    if stranger or not os.path.isfile(path):  # noqa: PTH113 - start-up
        if given or os.path.lexists(path):
            raise Misuse(f"{printable(path)}: no such file, or not a plain one")
        return Project()
    found = bytearray()
    for block in reader(path)():
        found += block
        if len(found) > BYTES:
            break
    return read(bytes(found), file=os.path.relpath(path, base or "."))


@dataclass(frozen=True, slots=True)
class Selected:
    """What a run is about: some `artifacts` of a `project`, or its tree as one.

    `directory` is the one that their roots count from, `home` the one of the project file, which
    the paths in it count from.
    """

    project: Project
    artifacts: tuple[Part, ...]
    directory: str
    home: str
    environment: Environment | None = None

    @property
    def listed(self) -> bool:
        """Whether the project lists artifacts: then places get the names of their repositories."""
        return bool(self.project.artifacts)

    @property
    def whole(self) -> bool:
        """Whether nothing of the project is left out of this run."""
        return len(self.artifacts) == max(1, len(self.project.artifacts))

    def beside(self, path: str) -> str:
        """A `path` of the project file as seen from here; Misuse if a link leads out of its home.

        The file may be a stranger's: it must not have us read what is not in the repository.
        """
        found = posixpath.join(self.home, path)
        self._stays(found)
        return found

    def _stays(self, path: str) -> None:
        real, home = posixpath.realpath(path), posixpath.realpath(self.home)
        if posixpath.commonpath([real, home]) != home:
            raise Misuse(f"{printable(path)}: leads out of the directory of the project file")

    def crd(self, text: str) -> str:
        """One of the project's `crds` as `--crd` would name it; what is below it stays, too."""
        if text.startswith("oci://"):
            return text
        from ocipack.files.manifests import listing  # noqa: PLC0415 - start-up

        found = self.beside(text)
        for path in listing(found).files.values():
            self._stays(path)
        return found

    def top(self, part: Part) -> str:
        """The directory that becomes the artifact; Misuse if a link stands on the way to it."""
        if not part.root:
            return self.directory
        found = posixpath.join(self.directory, part.root)
        real = posixpath.realpath(found)
        if real != posixpath.join(posixpath.realpath(self.directory), part.root):
            raise Misuse(
                f"{printable(found)}: there is a symbolic link on the way to the root of "
                f"{part.name}",
                hint="a root is a directory of the repository itself",
            )
        return found


def selected(
    app: App, directory: str, given: str, names: Iterable[str] = (), environment: str = ""
) -> Selected:
    """What the command line and the project file say to work on.

    From here on no other registries are contacted than those that the file allows. Misuse for
    artifacts and environments that it does not have.
    """
    base = home_of(directory)
    project = read_project(given, base)
    if project.artifacts and base != directory:
        raise Misuse(
            f"{printable(directory)}: a project with artifacts is a directory",
            hint="name the directory of the project file, and --artifact for one of them",
        )
    app.registries.confine(project.registries)
    return Selected(
        project,
        project.select(names, environment),
        directory,
        posixpath.dirname(given) or "." if given else base or ".",
        project.environment(environment) if environment else None,
    )


def confine(app: App, given: str, base: str) -> None:
    """Contact no other registries than those that the project file allows, if there is one."""
    if has_project(given, base):
        app.registries.confine(read_project(given, base).registries)


def placed(report: Report, prefix: str) -> Report:
    """`report` on a part of a tree, its files as seen from the top."""
    if not prefix:
        return report
    return Report.of(
        replace(one, file=prefix + one.file) if one.file else one for one in report.findings
    )


@contextmanager
def placing(prefix: str) -> Iterator[None]:
    """Do the same to the report of a refusal."""
    try:
        yield
    except Rejected as e:
        if e.report is not None:
            e.report = placed(e.report, prefix)
        raise


def settled(
    report: Report,
    project: Project,
    names: Iterable[str],
    read: Callable[[str], bytes],
    *,
    whole: bool,
) -> Report:
    """`report` after the ignores of `project` and of the comments in the files called `names`.

    `whole` says whether all of the tree was looked at, so that an unused ignore is one.
    """
    from ocipack.validate.ignores import Ignores  # noqa: PLC0415 - start-up

    ignores = Ignores.of(project, names, read)
    return ignores.apply(report, today=_today(), whole=whole)


@dataclass
class Excuses:
    """The ignores of a project over a run about its tree, or about several artifacts of it.

    One that no artifact needed is unused, if all were looked at (`whole`): what there is to say
    about ignores is said at the end then, by `stale`, and else with everything else.
    """

    project: Project
    several: bool
    whole: bool
    used: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, found: Selected) -> Excuses:
        """Those of a run."""
        return cls(found.project, found.listed, found.whole)

    def settled(
        self,
        report: Report,
        names: Iterable[str],
        read: Callable[[str], bytes],
        prefix: str,
        *,
        whole: bool,
    ) -> Report:
        """As the function of this name, about the part of the tree below `prefix`."""
        from ocipack.validate.ignores import Ignores  # noqa: PLC0415 - start-up

        self.whole &= whole
        found = Ignores.of(
            self.project,
            [prefix + name for name in names],
            lambda name: read(name.removeprefix(prefix)),
        )
        used = self.used if self.several else None
        return found.apply(placed(report, prefix), today=_today(), whole=whole, used=used)

    def stale(self) -> Report:
        """What there is to say about the ignores of several artifacts, once all were looked at."""
        from ocipack.validate.ignores import stale  # noqa: PLC0415 - start-up

        if not self.several:
            return Report()
        return Report.of(stale(self.project.ignores, _today(), self.used, whole=self.whole))


def _today() -> date:
    from datetime import date  # noqa: PLC0415 - start-up

    return date.fromisoformat(now()[:10])
