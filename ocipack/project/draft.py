"""A first project file, as text for people to read and to go on with."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ocipack.k8s.kustomization.walk import EVERY
from ocipack.k8s.yaml.strict import API
from ocipack.k8s.yaml.writing import scalar
from ocipack.project.survey import Proposal, Survey
from ocipack.tree.ignore import EXTENSIONS, Matcher, Pattern

_FOREIGN: Final = re.compile(r"[^a-z0-9]+")
_LONGEST: Final = 63
_REGISTRY: Final = "registry.example.com"


@dataclass(frozen=True, slots=True)
class Named:
    """A proposal with the name and the repository that its artifact gets."""

    proposal: Proposal
    name: str
    repository: str


def named(survey: Survey, whole: str) -> list[Named]:
    """The artifacts of `survey`, each with a name of its own; the top is called `whole`."""
    found: list[Named] = []
    taken: set[str] = set()
    for one in survey.proposals:
        parts = [_plain(part) for part in (one.root or whole).split("/")]
        repository = "/".join(part for part in parts if part) or "tree"
        name = repository.replace("/", "-")[:_LONGEST].rstrip("-")
        while name in taken:
            name, repository = f"{name[: _LONGEST - 2]}-2", f"{repository}-2"
        taken.add(name)
        found.append(Named(one, name, repository))
    return found


def draft(survey: Survey, artifacts: list[Named], names: Iterable[str], *, source: str) -> str:
    """The text of a project file; `names` are the files of the tree, `source` its address."""
    alone = len(artifacts) == 1 and not artifacts[0].proposal.root
    lines = [*_head(), *_source(source), *_targets(survey.flux)]
    if alone:
        lines += _whole(artifacts[0].proposal, names)
    else:
        lines += [*_artifacts(artifacts, names)]
    lines += _rest([] if alone else artifacts, artifacts[0].name)
    return "\n".join(lines) + "\n"


def _head() -> Iterator[str]:
    yield "# What this repository is delivered as: a first draft by `ocipack init`, to go on with."
    yield "# Flags describe a run and win over this file. docs/project.md describes every field."
    yield f"apiVersion: {API}"


def _source(source: str) -> Iterator[str]:
    yield ""
    yield "# Where the repository is; artifacts say so."
    yield f"source: {scalar(source)}" if source else "# source: https://git.example.com/team/fleet"


def _targets(flux: str) -> Iterator[str]:
    yield ""
    yield "# The versions of Kubernetes that manifests are checked against; the newest if not said."
    yield '# kubernetes: ["1.33", "1.34"]'
    yield ""
    yield "# The oldest Flux that reads the artifacts; before 2.8 it finds no Sigstore bundles."
    yield f'flux: "{flux}"' if flux else '# flux: "2.8"'
    yield ""
    yield "# The only hosts that may be contacted: host, host:port, *.domain, or a network."
    yield f"# registries: [{_REGISTRY}]"


def _whole(one: Proposal, names: Iterable[str]) -> Iterator[str]:
    ignored = _ignored(one, names)
    if ignored:
        yield ""
        yield f"# What is left out: all but what is delivered ({_comment(one.why)})."
        yield "ignore:"
        yield from (f"  - {scalar(text)}" for text in ignored)
    yield from _render(one, "")


def _artifacts(artifacts: list[Named], names: Iterable[str]) -> Iterator[str]:
    names = list(names)
    yield ""
    yield "# Each is an artifact with tags and a signature of its own. Its root becomes its top:"
    yield "# paths in Flux Kustomizations count from there."
    yield "artifacts:"
    for one in artifacts:
        yield f"  # {_comment(one.proposal.why)}"
        yield f"  - name: {scalar(one.name)}"
        yield f"    root: {scalar(one.proposal.root) if one.proposal.root else '.'}"
        if one.repository != one.name:
            yield f"    repository: {scalar(one.repository)}"
        ignored = _ignored(one.proposal, names)
        if ignored:
            yield "    ignore:"
            yield from (f"      - {scalar(text)}" for text in ignored)
        yield from _render(one.proposal, "    ")


def _render(one: Proposal, indent: str) -> Iterator[str]:
    if not one.render:
        return
    if not indent:
        yield ""
    if EVERY in one.render:
        yield f'{indent}# What is built; "{EVERY}" is each kustomization that no other one names.'
    elif not indent:
        yield "# What is built."
    yield f"{indent}render:"
    for path in one.render:
        yield f"{indent}  - {path if path == '.' else scalar(path)}"


def _rest(artifacts: list[Named], name: str) -> Iterator[str]:
    yield ""
    yield "# Policies that consumers verify under; `ship` delivers nothing that does not meet them."
    yield "# policy: [policies/delivery.yaml]"
    yield ""
    yield "# What signatures bind content to, so that it cannot pass for something else."
    yield "# sign: {bind: [tag, environment, source]}"
    clusters = [one for one in artifacts if one.proposal.root.startswith("clusters/")]
    others = [one.name for one in artifacts if one not in clusters]
    yield ""
    yield "# Where `ship --environment NAME` delivers to."
    yield "# environments:"
    to = f"oci://{_REGISTRY}/{'fleet' if artifacts else name}"
    if not clusters:
        yield f"#   production: {{to: {to}, tag: production}}"
    for one in clusters:
        called = posixpath.basename(one.proposal.root)
        yield f"#   {called}:"
        yield f"#     to: {to}"
        yield f"#     tag: {called}"
        yield f"#     artifacts: [{', '.join([*others, one.name])}]"


def _ignored(one: Proposal, names: Iterable[str]) -> list[str]:
    """Patterns that leave out what is at the top and does not belong to it.

    Taking folders back takes back what Flux leaves out by itself: that is said again.
    """
    if not one.keep:
        return []
    kept = [name for name in names if name.split("/")[0] in one.keep]
    again = [text for text in EXTENSIONS if any(map(Matcher([Pattern(text)]), kept))]
    return ["/*", *(f"!/{name}" for name in one.keep), *again]


def _plain(text: str) -> str:
    return _FOREIGN.sub("-", text.lower()).strip("-")


def _comment(text: str) -> str:
    """`text` for a comment: a name that could end the line would go on as a field."""
    return re.sub(r"[^ -~]", "?", text)
