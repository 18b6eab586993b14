"""`ocipack verify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome, failed, report_of
from ocipack.cli.places import opened, place
from ocipack.cli.trusted import Trust, verify_options
from ocipack.errors import Misuse, OcipackError, Rejected
from ocipack.oci.location import Location
from ocipack.report import Report, Severity
from ocipack.trust.policy import Policy
from ocipack.trust.statement import SIGN
from ocipack.verify import EXPLAIN, Exempted, Signature, Verified, decide

if TYPE_CHECKING:
    from ocipack.oci.store import Source
    from ocipack.trust.policy.decision import Waiver
    from ocipack.verify.contents import Judgement

Proof = Verified | Exempted

AT_ONCE = 8
"""Artifacts verified at the same time."""

BUILT = 2
"""Artifacts whose contents are built and judged at the same time: each starts programs."""


@dataclass(frozen=True, slots=True)
class _How:
    content: bool
    contents: bool
    lock_file: str
    map_file: str
    roots: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.contents and self.lock_file:
            hint = "what a lock names are images; give the artifact for --contents"
            raise Misuse("--contents and --lock exclude each other", hint=hint)
        if self.map_file and not (self.contents or self.lock_file):
            raise Misuse("--map belongs to --contents and --lock")
        if self.roots and not self.contents:
            raise Misuse("--root belongs to --contents")

    def targets(self, places: tuple[str, ...]) -> list[tuple[Location, Location]]:
        """What is verified under which name, and where it is looked for."""
        found = [(one, one) for one in map(place, places)]
        if self.lock_file:
            from ocipack.cli.commands.lock import locked  # noqa: PLC0415 - start-up: YAML

            found += locked(self.lock_file, self.map_file)
        if not found:
            raise Misuse("it is not said what to verify", hint="give a PLACE, or --lock FILE")
        return found


@dataclass(frozen=True, slots=True)
class _Result:
    """What became of one place; its contents are judged only once it is proven itself."""

    where: Location
    proof: Proof | None = None
    error: OcipackError | None = None
    judgement: Judgement | None = None

    @property
    def report(self) -> Report:
        """What was found about what was not refused."""
        inside = self.judgement.report if self.judgement is not None else Report()
        if self.proof is None or self.error is not None:
            return Report()
        return self.proof.report + inside

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """What let it through without proof."""
        own = self.proof.waivers if isinstance(self.proof, Exempted) else ()
        return own + (self.judgement.waivers if self.judgement is not None else ())


@click.argument("places", nargs=-1, metavar="[PLACE...]")
@verify_options
@click.option("--require-digest", is_flag=True, help="Refuse a place without a digest.")
@click.option("--content", is_flag=True, help="Read and hash everything below the manifest too.")
@click.option(
    "--contents",
    is_flag=True,
    help="Judge every image and source that the artifact names inside: pinned, and allowed by "
    "`contents` of the policy.",
)
@click.option(
    "--lock",
    "lock_file",
    default="",
    metavar="FILE",
    help="Verify every entry of this lock, too, each by its digest.",
)
@click.option(
    "--map",
    "map_file",
    default="",
    metavar="FILE",
    help="With --contents and --lock: look for images in these mirrors instead (docs/pin.md).",
)
@click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="DIR",
    help="With --contents: directory of the tree to build; repeatable. Else every kustomization "
    "that no other one names.",
)
@click.option("--explain", is_flag=True, help="Show every candidate and why it did or did not do.")
def verify(
    app: App,
    *,
    places: tuple[str, ...],
    require_digest: bool,
    content: bool,
    contents: bool,
    lock_file: str,
    map_file: str,
    roots: tuple[str, ...],
    explain: bool,
    **options: Any,
) -> Outcome:
    """Prove that an artifact was signed by keys you trust, or say why not.

    Prints the pinned place of each artifact that was proven, or that a policy exempts, which is a
    warning. With several, all are looked at:
    the exit code is 1 if any was refused, else 3 if any could not be decided.
    """
    how = _How(content, contents, lock_file, map_file, roots)
    targets = how.targets(places)
    for location, _ in targets:
        if require_digest and location.reference.digest is None:
            raise Misuse(
                f"{location} has no digest, and --require-digest was given",
                hint="a tag can move between the check and the use; name what you mean: @sha256:…",
            )
    if explain:
        app.console.least, app.console.followed = Severity.NOTE, EXPLAIN
    trust = Trust(**options)
    trusted = trust.policy([location for location, _ in targets])

    run = _Run(app, how, trusted, by_key=not trust.policies)
    if len(targets) == 1:
        result = run.prove(*targets[0])
        if result.error is not None and result.proof is None:
            raise result.error
        return _outcome(app, [result])
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - start-up, for one place

    with ThreadPoolExecutor(BUILT if contents else AT_ONCE) as pool:
        return _outcome(app, list(pool.map(lambda target: run.prove(*target), targets)))


@dataclass(frozen=True, slots=True)
class _Run:
    """What all places of a run are verified by; `by_key` if there is no policy file."""

    app: App
    how: _How
    trusted: Policy
    by_key: bool

    def prove(self, location: Location, where: Location) -> _Result:
        """What becomes of `location`, which is looked for at `where`; only Misuse is raised."""
        proof = None
        try:
            with opened(self.app, where) as source:
                whole = self.how.content or where.is_layout
                proof = decide(source, location.reference, self.trusted, content=whole)
                if not self.how.contents:
                    return _Result(location, proof)
                judgement = self._judged(location, source, proof)
            return _Result(location, proof, judgement.error, judgement)
        except Misuse:
            raise
        except OcipackError as error:
            return _Result(location, proof, error)

    def _judged(self, location: Location, source: Source, proof: Proof) -> Judgement:
        from ocipack.cli.contents import Looking  # noqa: PLC0415 - start-up
        from ocipack.files.workspace import Workspace  # noqa: PLC0415 - start-up

        looking = Looking(self.app, self.how.roots, self.how.map_file)
        with Workspace() as workspace:
            return looking.judge(
                workspace, location, source, proof, self.trusted, by_key=self.by_key
            )


def _outcome(app: App, results: Sequence[_Result]) -> Outcome:
    for one in results:
        if one.judgement is not None:
            from ocipack.cli.contents import summary  # noqa: PLC0415 - start-up

            app.console.note(f"contents  {summary(one.judgement)}")
        if one.error is not None:
            app.console.findings(report_of(one.error))
            lead = "" if one.proof is not None else f"{one.where}: "
            app.console.error(f"{lead}{one.error}", one.error.hint)
    codes = {one.error.exit_code for one in results if one.error is not None}
    proven = [_pinned(one) for one in results if one.error is None]
    failures = [(str(one.where), one.error) for one in results if one.error is not None]
    return Outcome(
        "\n".join(proven),
        {"artifacts": [_described(one) for one in results]},
        sum((one.report for one in results), Report()),
        min(codes, default=0),
        failures=failures,
        refused=sum((report_of(error) for _, error in failures), Report()),
    )


def _pinned(one: _Result) -> str:
    assert one.proof is not None  # whoever asks knows that there is no error
    return str(one.where.at(one.proof.descriptor.digest))


def _described(one: _Result) -> dict[str, Any]:
    said: dict[str, Any] = {"place": str(one.where) if one.proof is None else _pinned(one)}
    if one.error is not None:
        said["verdict"] = "rejected" if isinstance(one.error, Rejected) else "undecided"
        said |= failed(one.error)
        said["findings"] = [finding.as_dict() for finding in report_of(one.error).findings]
    else:
        said["verdict"] = "exempted" if one.waivers else "verified"
    if one.proof is not None:
        said["digest"] = str(one.proof.descriptor.digest)
        said["mediaType"] = one.proof.descriptor.media_type
        said["signers"] = [_signer(signer) for signer in one.proof.signers]
    if one.judgement is not None:
        from ocipack.cli.contents import described  # noqa: PLC0415 - start-up

        said["contents"] = described(one.judgement)
    return {**said, **_waivers(one.waivers)}


def _signer(signer: Signature) -> dict[str, str]:
    said = {"key": signer.key, "form": signer.form, "place": signer.place}
    if signer.predicate_type != SIGN:
        said["predicateType"] = signer.predicate_type
    return said


def _waivers(waivers: tuple[Waiver, ...]) -> dict[str, Any]:
    """What let an artifact through; nothing for one that was proven."""
    if not waivers:
        return {}
    said = [{f.name: getattr(waiver, f.name) for f in fields(waiver)} for waiver in waivers]
    return {"waivers": [{name: text for name, text in one.items() if text} for one in said]}


command = outcome_command(verify)
