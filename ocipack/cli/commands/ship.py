"""`ocipack ship`."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ocipack.cli.checking import Checked, Checking, checked, checking_options
from ocipack.cli.clock import now
from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plural, size
from ocipack.cli.outcome import Outcome
from ocipack.cli.packing import Packed, Packer, Packing, Seen, packing_options
from ocipack.cli.passwords import password, password_options
from ocipack.cli.places import example_option, opened, place
from ocipack.cli.projects import Excuses, Selected, placed, placing, selected, was_given
from ocipack.cli.several import each
from ocipack.cli.signing import Binding, binding_options, form_option, key_option, signing_key
from ocipack.cli.trusted import exempted_option, from_files, policy_option
from ocipack.errors import Misuse, OcipackError
from ocipack.files.workspace import Workspace
from ocipack.oci.artifact import Artifact
from ocipack.oci.location import Location
from ocipack.project import Part
from ocipack.report import Report
from ocipack.ship import DEFAULT_TAG, Shipped, ship as deliver
from ocipack.sign import Form
from ocipack.trust.keys import PrivateKey
from ocipack.trust.policy import Policy

if TYPE_CHECKING:
    from ocipack.oci.store import Store
    from ocipack.verify.contents import Asked


@click.argument("directory")
@click.option(
    "--to",
    default="",
    metavar="PLACE",
    help="Where to; :latest if no tag. A project's artifacts go to repositories below it.",
)
@key_option
@password_options
@form_option
@example_option
@policy_option
@exempted_option
@binding_options
@click.option("--dry-run", is_flag=True, help="Do everything up to the first write.")
@checking_options
@packing_options
def ship(
    app: App,
    *,
    directory: str,
    to: str,
    key: str,
    password_file: str | None,
    password_stdin: bool,
    **options: Any,
) -> Outcome:
    """Pack, check, push, sign and verify a tree, then move its tags.

    A failure stops before anything becomes visible under a tag. Content that is there already,
    under that tag and properly signed, is unchanged: nothing is written. With --policy it is
    verified as those who will use it do. Prints the pinned place.

    A directory whose ocipack.yaml lists artifacts (docs/project.md) is shipped as all of them, or
    those that --artifact or the environment names, each by itself: one that fails does not stop
    the others. The exit code is then 1 if any was refused, else 3 if any could not be decided.
    Flags describe this run and win over the file, which describes the repository.
    """
    checking, packing = Checking.pop(options), Packing.pop(options)
    found = selected(
        app, directory, options.pop("project"), options.pop("artifacts"), options["environment"]
    )
    signer = signing_key(app, key, lambda: password(password_file, stdin=password_stdin))
    run = _Run(app, found, signer, _How.of(found, **options))
    jobs = run.jobs(_destination(found, to), checking, packing)
    packer = Packer(app, directory)
    seen = packer.look((job.top, job.part.root, job.packing) for job in jobs)
    if not found.listed:
        return run.alone(jobs[0], seen[0], packer)
    return run.together(jobs, seen, packer)


@dataclass(frozen=True, slots=True)
class _How:
    """What the options say of signing and verifying, over what the project file says."""

    form: Form
    binding: Binding
    policies: tuple[str, ...]
    allow_example_key: bool
    allow_exempted: bool
    dry_run: bool

    @classmethod
    def of(
        cls, found: Selected, *, form: Form, bind: tuple[str, ...], environment: str, **rest: Any
    ) -> _How:
        sign = found.project.sign
        chosen: Any = form if was_given("form") else sign.format or form
        found.project.check_format(chosen)
        return cls(chosen, Binding.of(bind or sign.bind, environment), **rest)


@dataclass(frozen=True, slots=True)
class _Job:
    """One artifact to deliver: from where, to where, and under which policy."""

    part: Part
    top: str
    where: Location
    policy: Policy
    ours: Policy | None
    checking: Checking
    packing: Packing


@dataclass(frozen=True, slots=True)
class _Done:
    """What became of a job."""

    job: _Job
    packed: Packed
    checked: Checked
    shipped: Shipped

    @property
    def state(self) -> str:
        """In a word or two."""
        done = self.shipped
        return "unchanged" if done.unchanged else "shipped" if done.verified else "would ship"

    @property
    def place(self) -> str:
        """The pinned place."""
        where, done = self.job.where, self.shipped
        known = done.verified.descriptor.digest if done.verified else done.artifact.root.digest
        return str(where.tagged(where.reference.tag or DEFAULT_TAG).at(known))

    @property
    def digest(self) -> str:
        """The digest of the manifest there."""
        return self.place.partition("@")[2]

    @property
    def forms(self) -> list[str]:
        """The forms of signatures that are there."""
        signed = self.shipped.signed
        return [*signed.written, *signed.found] if signed else []

    @property
    def tags(self) -> list[str]:
        """The tags that name it after a run that delivered."""
        tagged = self.shipped.tagged
        return [*tagged.written, *tagged.unchanged] if tagged else []

    def as_dict(self, key: str) -> dict[str, Any]:
        """The members of the JSON form."""
        return {
            "state": self.state.replace(" ", "-"),
            "artifact": {"place": self.place, **self.packed.as_dict(), "digest": self.digest},
            "objects": len(self.checked.rendered.resources),
            "signature": {"key": key, "forms": self.forms},
            "tags": self.tags,
        }


@dataclass(frozen=True, slots=True)
class _Run:
    """What all jobs of a run share."""

    app: App
    found: Selected
    signer: PrivateKey
    how: _How

    def jobs(self, base: Location, checking: Checking, packing: Packing) -> list[_Job]:
        """What is to be done; whatever is malformed is Misuse before anything has begun."""
        found = self.found
        checking.about(found)
        if base.reference.digest is not None and len(found.artifacts) > 1:
            raise Misuse(f"{base}: several artifacts cannot have one digest")
        made = []
        for one in found.artifacts:
            where = base.below(one.repository) if found.listed else base
            how, (policy, ours) = checking.of(found, one), self._policies(one, where)
            packs = packing.of(found.project, one)
            made.append(_Job(one, found.top(one), where, policy, ours, how, packs))
        return made

    def _policies(self, part: Part, where: Location) -> tuple[Policy, Policy | None]:
        """What is verified: what the flags name, else all that the file says, else this key.

        Where files say it, what is there already must be signed by this key, bound so, as well.
        """
        example = self.how.allow_example_key or where.is_layout
        here = self.found.environment.policy if self.found.environment else ()
        own = [self.found.beside(path) for path in dict.fromkeys((*part.policy, *here))]
        ours = self.how.binding.policy(self.signer.public, allow_example_keys=example)
        if files := self.how.policies or own:
            return from_files(files, 1, allow_example_keys=example), ours
        return ours, None

    def alone(self, job: _Job, seen: Seen | OcipackError, packer: Packer) -> Outcome:
        """Deliver the whole tree as one artifact."""
        done = self._deliver(job, seen, packer, Excuses.of(self.found))
        return Outcome(
            done.place,
            done.as_dict(self.signer.public.id),
            done.shipped.report,
            summary=self._summary(done),
            checked=[str(one) for one in done.checked.rendered.resources],
        )

    def together(
        self, jobs: list[_Job], seen: Sequence[Seen | OcipackError], packer: Packer
    ) -> Outcome:
        """Deliver artifacts one after the other; one that fails does not stop the others."""
        excuses = Excuses.of(self.found)
        work = [
            (job.part.name, partial(self._deliver, job, one, packer, excuses))
            for job, one in zip(jobs, seen, strict=True)
        ]
        results = each(self.app, work)
        excuses.whole &= not results.failures
        done = [one for _, one in results.good]
        return results.outcome(
            "\n".join(one.place for one in done),
            lambda one: one.as_dict(self.signer.public.id),
            sum((one.shipped.report for one in done), excuses.stale()),
            summary=_line,
            checked=[str(item) for one in done for item in one.checked.rendered.resources],
        )

    def _deliver(
        self, job: _Job, seen: Seen | OcipackError, packer: Packer, excuses: Excuses
    ) -> _Done:
        if isinstance(seen, OcipackError):
            raise seen
        how, where = self.how, job.where
        with Workspace() as workspace, opened(self.app, where, write=True) as store:
            stages = _Stages(
                self.app,
                workspace,
                packer,
                store,
                job=job,
                seen=seen,
                excuses=excuses,
                allow_exempted=how.allow_exempted,
            )
            done = deliver(
                store,
                where.reference,
                pack=stages.pack,
                check=stages.check,
                signer=self.signer,
                policy=job.policy,
                ours=job.ours,
                watch=self.app.console.stage,
                form=how.form,
                created=now(),
                content=where.is_layout,
                dry_run=how.dry_run,
                bind=how.binding.names,
                environment=how.binding.environment,
                allow_exempted=how.allow_exempted,
            )
        assert stages.packed is not None  # both ran, or an error was raised
        assert stages.checked is not None
        return _Done(job, stages.packed, stages.checked, done)

    def _summary(self, done: _Done) -> list[tuple[str, str]]:
        packed, where = done.packed, done.job.where
        tag = where.reference.tag or DEFAULT_TAG
        forms = ", ".join(done.forms)
        return [
            (done.state, where.tagged(tag).bare),
            ("files", f"{len(packed.tree.files)}, {size(packed.tree.size)}"),
            ("objects", f"{len(done.checked.rendered.resources)}"),
            ("digest", done.digest),
            ("layer", f"{packed.layer.digest}, {size(packed.layer.size)}"),
            ("signatures", f"{forms} by {self.signer.public.id}" if forms else ""),
            ("tags", ", ".join(done.tags) or (tag if done.shipped.unchanged else "")),
        ]


def _line(one: _Done) -> str:
    """The summary of one of several."""
    files = plural(len(one.packed.tree.files), "file")
    objects = plural(len(one.checked.rendered.resources), "object")
    return f"{one.state:<10} {one.digest}  {files}, {objects}"


class _Stages:
    """The stages that need files: what `deliver` calls, and what they found."""

    def __init__(
        self,
        app: App,
        workspace: Workspace,
        packer: Packer,
        store: Store,
        *,
        job: _Job,
        seen: Seen,
        excuses: Excuses,
        allow_exempted: bool,
    ) -> None:
        self._app, self._workspace, self._packer, self._store = app, workspace, packer, store
        self._job, self._seen, self._excuses = job, seen, excuses
        self._allow_exempted = allow_exempted
        self.packed: Packed | None = None
        self.checked: Checked | None = None

    def pack(self) -> Artifact:
        self.packed = self._packer.pack(self._seen, self._workspace)
        return self.packed.artifact

    def check(self, artifact: Artifact) -> Report:
        job = self._job
        where = job.where.tagged(job.where.reference.tag or DEFAULT_TAG).at(artifact.root.digest)
        wanted = self._wanted(where)
        self.checked = checked(
            self._app,
            self._workspace,
            artifact,
            # what has no digest is the policy's to judge, if it has something to say about it
            replace(job.checking, allow_tags=True) if wanted else job.checking,
            self._excuses,
            prefix=job.part.prefix,
        )
        report = self.checked.report + (self.packed.report if self.packed else Report())
        return report + self._inside(artifact, where, wanted) if wanted else report

    def _wanted(self, where: Location) -> tuple[Asked, ...]:
        """What the policy has to say about contents, if anything."""
        policy = self._job.policy
        if all(one.contents is None for one in policy.policies):
            return ()
        from ocipack.verify.contents import asked  # noqa: PLC0415 - start-up

        return asked(policy, where.reference)

    def _inside(self, artifact: Artifact, where: Location, wanted: tuple[Asked, ...]) -> Report:
        """What the policy says of the contents, as `verify --contents` will say it."""
        from ocipack.cli.contents import Looking, deliverable, summary  # noqa: PLC0415 - start-up

        job, prefix = self._job, self._job.part.prefix
        with self._app.console.stage("contents") as stage, placing(prefix):
            looking = Looking(self._app, job.checking.roots)
            found = looking.before(
                self._workspace, where, self._store, artifact, wanted=wanted, policy=job.policy
            )
            report = deliverable(found, allow_exempted=self._allow_exempted)
            stage.say(summary(found))
        return placed(report, prefix)


def _destination(found: Selected, to: str) -> Location:
    """Where to: what the flag says, or the environment; the tag, too."""
    environment = found.environment
    if to:
        where = place(to)
    elif environment is None or not environment.to:
        hint = "give --to, or an --environment whose `to` the project file says"
        raise Misuse("it is not said where to ship to", hint=hint)
    else:
        where = Location.parse(environment.to, cwd=posixpath.abspath(found.home))
    reference = where.reference
    if environment is not None and environment.tag and not (reference.tag or reference.digest):
        return where.tagged(environment.tag)
    return where


command = outcome_command(ship)
