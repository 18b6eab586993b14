"""Looking inside an artifact for what it names; loaded only where somebody asks for that."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocipack.cli.commands.pin import mirrors
from ocipack.cli.console import plural
from ocipack.errors import NotFound, Rejected
from ocipack.flux import artifact as flux
from ocipack.oci import store as stores
from ocipack.pin.mirrors import Mirrors
from ocipack.pull import pull
from ocipack.render import Rendered, render
from ocipack.report import Finding, Report
from ocipack.tools.kustomize import PROGRAMS, TIMEOUT, Kustomize, Program
from ocipack.tree import ignore, unarchive
from ocipack.trust.policy.contents import PINNED, Part
from ocipack.verify.contents import Asked, Judged, Judgement, Spot, asked, judge
from ocipack.verify.inside import Inside, Where, look

if TYPE_CHECKING:
    from ocipack.cli.command import App
    from ocipack.files.workspace import Workspace
    from ocipack.oci.artifact import Artifact
    from ocipack.oci.location import Location
    from ocipack.oci.reference import Reference
    from ocipack.oci.store import Source
    from ocipack.tree.tree import Entry
    from ocipack.trust.policy import Policy
    from ocipack.verify import Exempted, Verified


@dataclass(frozen=True, slots=True)
class Looking:
    """How to look inside: which `roots` to build, and the file that says where images are."""

    app: App
    roots: tuple[str, ...] = ()
    map_file: str = ""

    def judge(
        self,
        workspace: Workspace,
        where: Location,
        source: Source,
        proof: Verified | Exempted,
        policy: Policy,
        *,
        by_key: bool = False,
    ) -> Judgement:
        """Judge the contents of what was proven; `by_key` if there is no policy file to say how."""
        reference = where.reference.at(proof.descriptor.digest)
        # by the name that was asked for: a digest that was added to it covers fewer globs
        wanted = (Asked("key", PINNED),) if by_key else asked(policy, where.reference)
        copy = _Copy(workspace)
        if wanted:
            pull(source, proof, copy.take)
        found = self._inside(workspace, copy, reference) if wanted else Inside()
        return judge(reference, found, wanted, policy, _Places(self, where, source).find)

    def before(
        self,
        workspace: Workspace,
        where: Location,
        source: Source,
        artifact: Artifact,
        *,
        wanted: tuple[Asked, ...],
        policy: Policy,
    ) -> Judgement:
        """Judge the contents of an artifact that is about to be delivered to `where`."""
        content = flux.content(artifact.manifest)
        assert content.config is not None  # ours has one
        config = stores.read(artifact, content.config, limit=flux.CONFIG_LIMIT)
        copy, layer = _Copy(workspace), content.layer
        diff_id = flux.diff_id(config)
        copy.take(unarchive.read(artifact.fetch(layer), size=layer.size, diff_id=diff_id))
        found = self._inside(workspace, copy, where.reference)
        return judge(where.reference, found, wanted, policy, _Places(self, where, source).find)

    def inside(self, workspace: Workspace, source: Source, proof: Verified | Exempted) -> Inside:
        """What is named inside an artifact that was proven, whatever any policy says of it."""
        copy = _Copy(workspace)
        pull(source, proof, copy.take)
        return self._inside(workspace, copy, proof.reference)

    def _inside(self, workspace: Workspace, copy: _Copy, own: Reference) -> Inside:
        program = Program.find(PROGRAMS[0], os.environ.get("PATH", os.defpath))
        jobs = len(os.sched_getaffinity(0))
        private = workspace.directory()
        with Kustomize(program, copy.path, private, timeout=TIMEOUT) as kustomize:

            def build(directories: Iterable[str]) -> Rendered:
                roots = list(directories)
                return render(copy.sizes, copy.read, kustomize.build, roots=roots, jobs=jobs)

            return look(copy.sizes, copy.read, build, own=own, roots=self.roots)


class _Copy:
    """A tree in a private directory, as it arrives in a cluster: the size of each file by name."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.sizes: dict[str, int] = {}
        self.path = Path()

    def take(self, entries: Iterable[Entry]) -> None:
        """Write the files, then remove those that source-controller leaves out.

        `sizes` still has them. Ignore files stay: they are read again, and may name themselves.
        """
        self.path = self._workspace.extract(self._counted(entries))
        rules = ignore.rules(self.sizes, self.read)
        for name, _ in list(ignore.dropped(self.sizes, rules)):
            if Path(name).name != ignore.IGNORE_FILE:
                (self.path / name).unlink()

    def read(self, name: str) -> bytes:
        """The content of one file."""
        return (self.path / name).read_bytes()

    def _counted(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        for entry in entries:
            self.sizes[entry.name] = entry.size
            yield entry


@dataclass
class _Places:
    """Where images are looked for: in the layout that holds the artifact, then at their mirrors.

    A layout is a directory that anybody may have written: what is found there is hashed as a whole.
    """

    how: Looking
    where: Location
    source: Source
    mirrors: Mirrors = field(init=False)

    def __post_init__(self) -> None:
        self.mirrors = mirrors(self.how.map_file)

    def find(self, reference: Reference) -> Spot:
        """Where `reference` is looked for. Its name stays what it is."""
        if self.where.is_layout and reference.digest is not None:
            try:
                self.source.resolve(str(reference.digest))
            except NotFound:
                pass
            else:
                return Spot(self.source, content=True)
        at = self.mirrors.where(reference)
        return Spot(self.how.app.registries.store(at, write=False))


def deliverable(judgement: Judgement, *, allow_exempted: bool) -> Report:
    """What was found; it has errors if the artifact must not be delivered.

    StoreError if nobody can know; Rejected if a policy only warns, unless that is allowed.
    """
    if judgement.error is not None and not isinstance(judgement.error, Rejected):
        raise judgement.error
    if judgement.waivers and judgement.error is None and not allow_exempted:
        first = judgement.waivers[0]
        raise Rejected(
            f"{judgement.artifact}: its contents are exempted, not proven: policy {first.policy}: "
            f"{first}",
            report=judgement.report,
            hint="--allow-exempted takes what its policy lets through without proof",
        )
    return judgement.report


def summary(judgement: Judgement) -> str:
    """What a judgement found, in one line."""
    counts = Counter(one.verdict for one in judgement.parts)
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    unseen = sum(len(names) for _, _, names in judgement.unseen)
    rest = f"; {plural(unseen, 'thing')} not looked at" if unseen else ""
    return f"{plural(len(judgement.parts), 'name')}{': ' if said else ''}{said}{rest}"


def described(judgement: Judgement) -> dict[str, Any]:
    """The JSON form of a judgement."""
    return {
        "references": [_judged(one) for one in judgement.parts],
        "notLookedAt": [
            {"reason": reason, "severity": severity.value, "names": list(names)}
            for reason, severity, names in judgement.unseen
        ],
    }


def _judged(one: Judged) -> dict[str, Any]:
    said = {**_part(one.part), "verdict": one.verdict, "places": [_where(w) for w in one.places]}
    reasons = [_reason(finding) for finding in one.findings]
    return {**said, **({"reasons": reasons} if reasons else {})}


def _part(part: Part) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": part.kind, "text": part.text, "pinned": part.pinned}
    if part.reference is not None:
        said["reference"] = str(part.reference)
    if part.address is not None:
        said["address"] = str(part.address)
    return said


def _where(where: Where) -> dict[str, Any]:
    said = {
        "file": where.file,
        "line": where.line,
        "column": where.column,
        "root": where.root,
        "object": where.subject,
        "pointer": where.pointer,
        "place": where.what,
    }
    return {name: value for name, value in said.items() if value not in ("", 0)}


def _reason(finding: Finding) -> dict[str, str]:
    return {"rule": finding.rule, "message": finding.message, "severity": finding.severity.value}
