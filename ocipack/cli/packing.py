"""From a directory on the command line to an artifact: what pack, render and ship share."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ocipack.cli.command import App
from ocipack.cli.console import plural, size
from ocipack.cli.pairs import pairs
from ocipack.cli.projects import placed, placing, was_given
from ocipack.errors import Misuse, OcipackError, Rejected
from ocipack.files.snapshot import snapshot
from ocipack.files.workspace import Workspace
from ocipack.flux import artifact as flux, origin
from ocipack.flux.origin import Checkout
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.pack import pack
from ocipack.report import Finding, Report, Severity
from ocipack.tools import git
from ocipack.tree import ignore
from ocipack.tree.archive import COMPRESSIONS
from ocipack.tree.tree import Tree

if TYPE_CHECKING:
    from ocipack.project import Part, Project

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--ignore",
        "ignored",
        multiple=True,
        metavar="PATTERN",
        help="Leave this out too; Flux's dialect, added to its defaults; repeatable.",
    ),
    click.option(
        "--symlinks",
        type=click.Choice(["refuse", "resolve"]),
        default="refuse",
        show_default=True,
        help="What to do about symbolic links; resolve follows them inside the tree.",
    ),
    click.option(
        "--compression",
        type=click.Choice(COMPRESSIONS),
        default=COMPRESSIONS[0],
        show_default=True,
        help="stored gives bytes that no compressor can change.",
    ),
    click.option(
        "--layer-type",
        type=click.Choice(list(flux.LAYER_TYPES)),
        default="flux",
        show_default=True,
        help="oci is what Argo CD needs.",
    ),
    click.option(
        "--annotation",
        "annotations",
        multiple=True,
        metavar="KEY=VALUE",
        help="Annotate the manifest; repeatable.",
    ),
    click.option("--source", default="", metavar="URL", help="Where the tree comes from."),
    click.option(
        "--revision",
        default="",
        metavar="NAME[@sha1:HEX]",
        help="Name of the branch or tag in the revision, or the whole revision.",
    ),
    click.option("--allow-dirty", is_flag=True, help="Pack a tree that differs from its commit."),
)


def packing_options(function: _F) -> _F:
    """Add the options of `Packing`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Packing:
    """What the options of `packing_options` say."""

    ignored: tuple[str, ...]
    symlinks: str
    compression: str
    layer_type: str
    annotations: tuple[str, ...]
    source: str
    revision: str
    allow_dirty: bool

    @classmethod
    def pop(cls, options: dict[str, Any]) -> Packing:
        """Take them out of the options of a command."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls)})

    def of(self, project: Project, part: Part) -> Packing:
        """How an artifact of a project is packed: flags win, and patterns are added to its own."""
        return replace(
            self,
            ignored=(*part.ignore, *self.ignored),
            symlinks=self.symlinks if was_given("symlinks") else part.symlinks,
            layer_type=self.layer_type if was_given("layer_type") else part.layer,
            source=self.source or project.source,
        )


@dataclass(frozen=True, slots=True)
class Packed:
    """An artifact and what it was made of; `layer` describes its one layer."""

    artifact: Artifact
    tree: Tree
    report: Report

    @property
    def layer(self) -> Descriptor:
        """The layer that holds the tree."""
        return self.artifact.manifest.layers[0]

    def summary(self) -> str:
        """How much it is, for people."""
        files = plural(len(self.tree.files), "file")
        return f"{files}, {size(self.tree.size)} → {size(self.layer.size)}  {self.layer.digest}"

    def as_dict(self) -> dict[str, Any]:
        """The members of the JSON form."""
        return {
            "digest": str(self.artifact.root.digest),
            "layer": {"digest": str(self.layer.digest), "size": self.layer.size},
            "files": len(self.tree.files),
            "size": self.tree.size,
            "annotations": dict(self.artifact.manifest.annotations),
        }


@dataclass(frozen=True, slots=True)
class Seen:
    """A directory that was looked at, and how it is to be packed; its contents are not read yet.

    `root` is where it is below the checkout, and `only` the file that it is about, if it is one.
    """

    where: str
    root: str
    only: str
    how: Packing
    left_out: ignore.Matcher
    tree: Tree
    report: Report


class Packer:
    """Packs a directory, or several below one: git is asked about them all at once.

    It begins to ask when it is made, and compares files once `look` has seen them all.
    """

    def __init__(self, app: App, directory: str) -> None:
        self._app = app
        self._alone = not os.path.isdir(directory)  # noqa: PTH112 - start-up, as all paths here
        app.base = posixpath.dirname(directory) if self._alone else directory
        self._directory = directory
        self._looking = _Looking(app.base or ".")

    def look(self, wanted: Iterable[tuple[str, str, Packing]]) -> list[Seen | OcipackError]:
        """Look at directories, each with its name below the checkout, and how to pack it.

        What must not be packed gives its error; Misuse is raised.
        """
        found: list[Seen | OcipackError] = []
        try:
            for where, root, how in wanted:
                try:
                    found.append(self._see(where, root, how))
                except Misuse:
                    raise
                except OcipackError as e:
                    found.append(e)
        finally:
            self._looking.seen()
        return found

    def _see(self, where: str, root: str, how: Packing) -> Seen:
        left_out = ignore.defaults("\n".join([f"/{ignore.PROJECT_FILE}", *how.ignored]))
        with placing(_prefix(root)):
            found = snapshot(where, left_out=left_out, symlinks=how.symlinks)
        only = posixpath.basename(where) if self._alone else ""
        return Seen(where, root, only, how, left_out, found.tree, found.report)

    def pack(self, seen: Seen, workspace: Workspace) -> Packed:
        """Pack what was seen.

        Rejected for a tree that git says differs from its commit, unless that is allowed.
        """
        facts = [seen.report, _arrival(seen.tree)]
        prefix = _prefix(seen.root)

        def said() -> Mapping[str, str]:
            dirt = _dirt(self._looking.found(), seen)
            if dirt and not seen.how.allow_dirty:
                raise _dirty(seen.where, dirt)
            annotations, about = _annotations(self._looking.found(), seen.how, dirty=bool(dirt))
            facts.append(about)
            return annotations

        with self._app.console.stage("pack") as stage, placing(prefix):
            made = pack(
                seen.tree,
                spool=workspace.spool,
                annotations=said,
                compression=seen.how.compression,
                layer_type=seen.how.layer_type,
            )
            result = Packed(made, seen.tree, placed(sum(facts, Report()), prefix))
            stage.say(result.summary())
        return result


def _prefix(root: str) -> str:
    return f"{root}/" if root else ""


class _Looking(Thread):
    """Asks git about a directory while its files are looked at and read.

    Git compares them with the commit only after `seen` was called. What changes before that is
    dirt; what changes later is not what was seen, which reading finds out.
    """

    def __init__(self, directory: str) -> None:
        super().__init__(name="git", daemon=True)
        self._directory = directory
        self._seen = Event()
        self._ended: git.Found | Exception | None = None
        self.start()

    def run(self) -> None:
        """Ask."""
        try:
            self._ended = git.look(self._directory, environment=os.environ, ready=self._seen.wait)
        except Exception as e:  # noqa: BLE001 - raised again by whoever waits
            self._ended = e

    def seen(self) -> None:
        """Say that the files have been looked at."""
        self._seen.set()

    def found(self) -> git.Found:
        """Wait for the answer."""
        self.join()
        if isinstance(self._ended, git.Found):
            return self._ended
        raise self._ended or RuntimeError("git was not asked")


def _dirt(found: git.Found, seen: Seen) -> tuple[str, ...]:
    """What is packed and differs from the commit; of a single file, `only` that counts."""
    dirt = found.checkout.dirt(seen.left_out, seen.root) if found.checkout is not None else ()
    return tuple(name for name in dirt if not seen.only or name == seen.only)


def _annotations(
    found: git.Found, how: Packing, *, dirty: bool
) -> tuple[Mapping[str, str], Report]:
    """What the manifest says of where it comes from, and what was found on the way."""
    given = pairs(how.annotations, "--annotation")
    checkout = found.checkout
    findings: list[Finding] = [] if _says_all(how) else list(found.report.findings)
    revision = how.revision if "@" in how.revision else ""
    if checkout is not None and not revision:
        name = origin.ref_name(flag=how.revision, ci=_ci_name(), checkout=checkout)
        revision = origin.revision(name, checkout, dirty=dirty)
    source = origin.source(given=[how.source, *_ci_sources()], checkout=checkout)
    if checkout is not None and not source:
        findings.append(_no_source(checkout))
    said = {
        flux.CREATED: origin.created(
            epoch=os.environ.get("SOURCE_DATE_EPOCH", ""), checkout=checkout
        ),
        flux.SOURCE: source,
        flux.REVISION: revision,
    }
    return {key: value for key, value in said.items() if value} | given, Report.of(findings)


def _says_all(how: Packing) -> bool:
    return bool(how.source) and "@" in how.revision


def _dirty(directory: str, dirt: tuple[str, ...]) -> Rejected:
    shown = [Finding("tree-dirty", "differs from the commit", file=name) for name in dirt]
    return Rejected(
        f"{directory}: {plural(len(dirt), 'file')} that would be packed differ from the commit",
        report=Report.of(shown),
        hint="commit them, ignore them (--ignore), or give --allow-dirty, which the revision says",
    )


def _no_source(checkout: Checkout) -> Finding:
    reason = "the remote is not a network address" if checkout.remote else "there is no remote"
    return Finding(
        "no-source",
        f"{reason}: the artifact will not say where it comes from",
        Severity.WARNING,
        hint="say it with --source",
    )


def _ci_name() -> str:
    """The name of the branch or tag, as the CI systems that we know call it."""
    names = ("GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BITBUCKET_TAG", "BITBUCKET_BRANCH")
    return next((value for name in names if (value := os.environ.get(name))), "")


def _ci_sources() -> Iterator[str]:
    """The address of the repository, as the CI systems that we know call it."""
    server, project = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    if server and project:
        yield f"{server}/{project}"
    for name in ("CI_PROJECT_URL", "BITBUCKET_GIT_HTTP_ORIGIN"):
        if value := os.environ.get(name):
            yield value


def _arrival(tree: Tree) -> Report:
    """What source-controller will leave out of what we pack."""
    return ignore.arrival(tree.files, ignore.rules(tree.files, lambda name: _read(tree, name)))


def _read(tree: Tree, name: str) -> bytes:
    return b"".join(tree.files[name].open())
