"""The project file, `ocipack.yaml`: what a project decides for itself.

    apiVersion: ocipack.dev/v1alpha1
    source: https://git.example.com/platform/fleet
    kubernetes: ["1.33", "1.34"]
    flux: "2.8"
    registries: [registry.example.com]
    policy: [policies/delivery.yaml]
    sign: {bind: [tag, source], format: both}
    artifacts:
      - name: infra
        root: infra
    environments:
      production: {to: oci://registry.example.com/fleet, tag: production}
    validate:
      ignore:
        - {rule: image-digest, path: overlays/staging/**, owner: team-shop, reason: …, until: …}

docs/project.md describes every field, docs/schemas/project-v1alpha1.json says the same for
machines. It is read strictly: whatever is not described there is Misuse that names file, line and
column. Flags describe a run, this file describes the repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from ipaddress import ip_network
from typing import Final

from ocipack.errors import Misuse
from ocipack.oci.location import Location
from ocipack.oci.reference import TAG
from ocipack.project.ignore import Ignore
from ocipack.tree.ignore import PROJECT_FILE
from ocipack.tree.tree import check_name

FILE: Final = PROJECT_FILE
"""How the file is called; at the top of a tree it is never packed."""

FORMATS: Final = ("both", "legacy", "bundle")
"""Forms of signatures (`ocipack.sign.Form`)."""

LAYERS: Final = ("flux", "oci")
"""Types of layers (`ocipack.flux.artifact.LAYER_TYPES`)."""

SYMLINKS: Final = ("refuse", "resolve")
"""What to do about links (`ocipack.files.snapshot.SYMLINKS`)."""

ARTIFACTS: Final = 256
"""Artifacts of one project, and environments."""

_READS_BUNDLES: Final = (2, 8)
"""The first Flux that finds Sigstore bundles (source-controller 1.8)."""

_NAME: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_REPOSITORY: Final = re.compile(rf"{_NAME.pattern}(?:/{_NAME.pattern})*")
_ENVIRONMENT: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_LONGEST: Final = 63
_KUBERNETES: Final = re.compile(r"1\.[1-9][0-9]?")
_FLUX: Final = re.compile(r"2\.(0|[1-9][0-9]?)")
_LABELS: Final = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_HOST: Final = re.compile(rf"\*\.{_LABELS}|({_LABELS}|\[[0-9a-f:.]+\])(:[0-9]{{1,5}})?")


@dataclass(frozen=True, slots=True)
class Part:
    """One artifact of a project: what it is made of, with what the file says for all of them.

    `root` is the directory that becomes `.`, by its name from the top ("" is the top itself), and
    `repository` what is added to the destination. `ignore` are patterns of what is left out,
    `render` the directories to build (none: found as without a project), `kubernetes` the versions
    to check against (none: the newest), `policy` and `crds` files beside the project file, `crds`
    pinned artifacts (oci://) too.

    The one without a name is the tree of a project that lists none. Raises Misuse for names,
    directories and versions that cannot be.
    """

    name: str = ""
    root: str = ""
    repository: str = ""
    ignore: tuple[str, ...] = ()
    render: tuple[str, ...] = ()
    kubernetes: tuple[str, ...] = ()
    policy: tuple[str, ...] = ()
    crds: tuple[str, ...] = ()
    symlinks: str = SYMLINKS[0]
    layer: str = LAYERS[0]

    def __post_init__(self) -> None:
        if self.name and not (_NAME.fullmatch(self.name) and len(self.name) <= _LONGEST):
            hint = f"lower case letters, digits, and . _ - between them; at most {_LONGEST}"
            raise Misuse(f"{self.name[:80]!r} is no name of an artifact", hint=hint)
        if self.repository and not _REPOSITORY.fullmatch(self.repository):
            hint = "as at the end of a reference: lower case, parts between slashes"
            raise Misuse(f"{self.repository[:80]!r} is no name of a repository", hint=hint)
        for path in (self.root, *self.render):
            if path:
                check_name(path)
        for path in (*self.policy, *(one for one in self.crds if not one.startswith("oci://"))):
            check_name(path)
        for version in self.kubernetes:
            if not _KUBERNETES.fullmatch(version):
                raise Misuse(f"{version[:80]!r} is no Kubernetes version", hint='as "1.34"')
        for one in self.crds:
            if one.startswith("oci://") and Location.parse(one, cwd="/").reference.digest is None:
                hint = "what a tag names can change, and the verdict with it"
                raise Misuse(f"{one} has no digest", hint=hint)

    @property
    def prefix(self) -> str:
        """What its files have in front of their names, seen from the top."""
        return f"{self.root}/" if self.root else ""


@dataclass(frozen=True, slots=True)
class Environment:
    """A place that artifacts are delivered to, under a name.

    `to` is a place without tag or digest, `tag` what moves there (empty: not said), `policy` files
    whose policies hold there besides, and `artifacts` the names of those that belong there (none:
    all do). Raises Misuse for anything else.
    """

    name: str
    to: str = ""
    tag: str = ""
    policy: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _ENVIRONMENT.fullmatch(self.name) or len(self.name) > _LONGEST:
            raise Misuse(f"{self.name[:80]!r} is no name of an environment")
        if self.tag and not TAG.fullmatch(self.tag):
            raise Misuse(f"{self.tag[:150]!r} is no tag")
        if self.to:
            said = Location.parse(self.to, cwd="/").reference
            if said.tag is not None or said.digest is not None:
                raise Misuse(f"{self.to} has a tag or a digest", hint="the tag has its own field")
        for path in self.policy:
            check_name(path)


@dataclass(frozen=True, slots=True)
class Signing:
    """How signatures are made: what they `bind` content to, and the `format` (empty: not said)."""

    bind: tuple[str, ...] = ()
    format: str = ""


@dataclass(frozen=True, slots=True)
class Project:
    """What a project file says.

    `whole` is the tree as one artifact, with what the file says for all; `artifacts` are those
    that it lists. `flux` is the oldest version among the consumers', `registries` are the hosts,
    `*.domains` and networks that may be contacted at all (none: any). Raises Misuse for two
    artifacts of one name or repository, and for environments that name an unknown one.
    """

    ignores: tuple[Ignore, ...] = ()
    source: str = ""
    flux: str = ""
    registries: tuple[str, ...] = ()
    sign: Signing = Signing()
    require_schema: bool = False
    whole: Part = Part()
    artifacts: tuple[Part, ...] = ()
    environments: tuple[Environment, ...] = ()

    def __post_init__(self) -> None:
        if self.flux and not _FLUX.fullmatch(self.flux):
            raise Misuse(f"{self.flux[:80]!r} is no version of Flux", hint='as "2.8"')
        for host in self.registries:
            _check_registry(host)
        _check_once("artifacts are called", [one.name for one in self.artifacts])
        _check_once("artifacts go to", [one.repository for one in self.artifacts])
        for environment in self.environments:
            self.named(environment.artifacts)
        if self.sign.format:
            self.check_format(self.sign.format)

    def named(self, names: Iterable[str]) -> tuple[Part, ...]:
        """The artifacts of these names, in the order of the file; Misuse for one it has not."""
        known = {one.name: one for one in self.artifacts}
        wanted = set(names)
        for name in sorted(wanted - set(known)):
            raise _unknown("artifact", name, known)
        return tuple(one for one in self.artifacts if one.name in wanted)

    def environment(self, name: str) -> Environment:
        """The environment called `name`.

        Misuse for one that is not listed, unless none is: then every name will do.
        """
        known = {one.name: one for one in self.environments}
        if known and name not in known:
            raise _unknown("environment", name, known)
        return known.get(name) or Environment(name)

    def select(self, names: Iterable[str], environment: str = "") -> tuple[Part, ...]:
        """The artifacts to work on: those named, else those of the environment, else all.

        A project without artifacts gives its tree as one. Misuse for a name that it does not have,
        or that does not belong to the environment.
        """
        wanted = tuple(names)
        if not self.artifacts:
            if wanted:
                hint = "list them as artifacts in the project file"
                raise Misuse(f"this project has no artifact {wanted[0][:80]!r}", hint=hint)
            return (self.whole,)
        belonging = self.environment(environment).artifacts if environment else ()
        found = self.named(wanted or belonging or [one.name for one in self.artifacts])
        for one in found:
            if belonging and one.name not in belonging:
                hint = f"these do: {', '.join(belonging)}"
                raise Misuse(f"{one.name} does not belong to {environment}", hint=hint)
        return found

    def check_format(self, form: str) -> None:
        """Misuse if Flux of the version that the file targets finds no signature of this form."""
        if form != "bundle" or not self.flux:
            return
        if tuple(map(int, self.flux.split("."))) < _READS_BUNDLES:
            least = ".".join(map(str, _READS_BUNDLES))
            raise Misuse(
                f"Flux {self.flux}, which this project targets, does not find bundles",
                hint=f"sign in format legacy or both, or target Flux {least}",
            )


def _unknown(what: str, name: str, known: Iterable[str]) -> Misuse:
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names[:20])}"
    return Misuse(f"this project has no {what} {name[:80]!r}", hint=hint)


def _check_once(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise Misuse(f"two {what} {name}")


def _check_registry(entry: str) -> None:
    """Misuse unless `entry` can be in the list of a Gate (`ocipack.stores.http.gate`)."""
    try:
        if "/" in entry:
            ip_network(entry)
            return
    except ValueError:
        pass
    if not _HOST.fullmatch(entry.lower()):
        hint = "write host, host:port, *.domain or a network such as 10.0.0.0/8"
        raise Misuse(f"{entry[:80]!r} is no registry", hint=hint)
