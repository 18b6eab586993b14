"""`ocipack ship`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from ocipack.cli.checking import Checked, Checking, checked, checking_options
from ocipack.cli.clock import now
from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import size
from ocipack.cli.outcome import Outcome
from ocipack.cli.packing import Packed, Packing, packed, packing_options
from ocipack.cli.passwords import password, password_options
from ocipack.cli.places import example_option, opened, place
from ocipack.cli.signing import Binding, binding_options, form_option, key_option, signing_key
from ocipack.cli.trusted import exempted_option, from_files, policy_option
from ocipack.files.workspace import Workspace
from ocipack.oci.artifact import Artifact
from ocipack.oci.location import Location
from ocipack.report import Report
from ocipack.ship import DEFAULT_TAG, Shipped, ship as deliver
from ocipack.sign import Form
from ocipack.trust.keys import PrivateKey


@click.argument("directory")
@click.option(
    "--to", "destination", required=True, metavar="PLACE", help="Where to; :latest if no tag."
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
    destination: str,
    key: str,
    password_file: str | None,
    password_stdin: bool,
    form: Form,
    allow_example_key: bool,
    allow_exempted: bool,
    policies: tuple[str, ...],
    bind: tuple[str, ...],
    environment: str,
    dry_run: bool,
    **options: Any,
) -> Outcome:
    """Pack, check, push, sign and verify a tree, then move its tags.

    A failure stops before anything becomes visible under a tag. Content that is there already,
    under that tag and properly signed, is unchanged: nothing is written. With --policy it is
    verified as those who will use it do. Prints the pinned place.
    """
    where = place(destination)
    how = {field.name: options.pop(field.name) for field in fields(Checking)}
    signer = signing_key(app, key, lambda: password(password_file, stdin=password_stdin))
    example = allow_example_key or where.is_layout
    binding = Binding.of(bind, environment)
    if policies:
        policy = from_files(policies, 1, allow_example_keys=example)
    else:
        policy = binding.policy(signer.public, allow_example_keys=example)
    with Workspace() as workspace, opened(app, where, write=True) as store:
        run = _Run(app, workspace, directory, Packing(**options), Checking(**how))
        done = deliver(
            store,
            where.reference,
            pack=run.pack,
            check=run.check,
            signer=signer,
            policy=policy,
            watch=app.console.stage,
            form=form,
            created=now(),
            content=where.is_layout,
            dry_run=dry_run,
            bind=binding.names,
            environment=binding.environment,
            allow_exempted=allow_exempted,
        )
    return _outcome(where, run, done, signer)


class _Run:
    """The stages that need files: what `deliver` calls, and what they found."""

    def __init__(
        self, app: App, workspace: Workspace, directory: str, packing: Packing, checking: Checking
    ) -> None:
        self._app, self._workspace, self._directory = app, workspace, directory
        self._packing, self._checking = packing, checking
        self.packed: Packed | None = None
        self.checked: Checked | None = None

    def pack(self) -> Artifact:
        self.packed = packed(self._app, self._workspace, self._directory, self._packing)
        return self.packed.artifact

    def check(self, artifact: Artifact) -> Report:
        self.checked = checked(self._app, self._workspace, artifact, self._checking)
        return self.checked.report + (self.packed.report if self.packed else Report())


def _outcome(where: Location, run: _Run, done: Shipped, signer: PrivateKey) -> Outcome:
    packed_, checked_ = run.packed, run.checked
    assert packed_ is not None  # both ran, or an error was raised
    assert checked_ is not None
    known = done.verified.descriptor.digest if done.verified else done.artifact.root.digest
    tag = where.reference.tag or DEFAULT_TAG
    pinned = str(where.tagged(tag).at(known))
    state = "unchanged" if done.unchanged else "shipped" if done.verified else "would ship"
    forms = [
        *(done.signed.written if done.signed else ()),
        *(done.signed.found if done.signed else ()),
    ]
    tags = [*done.tagged.written, *done.tagged.unchanged] if done.tagged else []
    summary = [
        (state, where.tagged(tag).bare),
        ("files", f"{len(packed_.tree.files)}, {size(packed_.tree.size)}"),
        ("objects", f"{len(checked_.rendered.resources)}"),
        ("digest", str(known)),
        ("layer", f"{packed_.layer.digest}, {size(packed_.layer.size)}"),
        ("signatures", f"{', '.join(forms)} by {signer.public.id}" if forms else ""),
        ("tags", ", ".join(tags) or (tag if done.unchanged else "")),
    ]
    return Outcome(
        pinned,
        {
            "state": state.replace(" ", "-"),
            "artifact": {"place": pinned, **packed_.as_dict(), "digest": str(known)},
            "objects": len(checked_.rendered.resources),
            "signature": {"key": signer.public.id, "forms": forms},
            "tags": tags,
        },
        done.report,
        summary=summary,
        checked=[str(one) for one in checked_.rendered.resources],
    )


command = outcome_command(ship)
