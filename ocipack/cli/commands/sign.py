"""`ocipack sign`."""

from __future__ import annotations

import click

from ocipack.cli.clock import now
from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.cli.pairs import pairs
from ocipack.cli.passwords import password, password_options
from ocipack.cli.places import example_option, opened, place
from ocipack.cli.signing import Binding, binding_options, form_option, key_option, signing_key
from ocipack.errors import Misuse
from ocipack.oci import store as stores
from ocipack.sign import Form, Signed, binding, sign as attach

OLD_COSIGN = (
    "cosign 2.6 verifies this only with --trusted-root FILE, even by key, where FILE holds "
    '{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}; '
    "it needs none after --format legacy"
)


@click.argument("location", metavar="PLACE")
@key_option
@password_options
@form_option
@click.option(
    "--annotation",
    "annotations",
    multiple=True,
    metavar="KEY=VALUE",
    help="Sign this along with the digest; repeatable.",
)
@binding_options
@click.option(
    "--docker-reference",
    default="",
    metavar="REPOSITORY",
    help="Name this repository in the legacy form, for content that will be mirrored there.",
)
@example_option
def sign(
    app: App,
    *,
    location: str,
    key: str,
    password_file: str | None,
    password_stdin: bool,
    form: Form,
    annotations: tuple[str, ...],
    bind: tuple[str, ...],
    environment: str,
    docker_reference: str,
    allow_example_key: bool,
) -> Outcome:
    """Sign what is in a repository or layout, so that cosign agrees.

    Signs the digest that PLACE resolves to, and prints the pinned place. Signing again with the
    same key changes nothing.
    """
    where = place(location)
    signer = signing_key(app, key, lambda: password(password_file, stdin=password_stdin))
    said = pairs(annotations, "--annotation")
    bound = Binding.of(bind, environment)
    twice = [name for name in bound.names if name in said]
    if twice:
        raise Misuse(f"{twice[0]} is both bound and given as an annotation")
    with opened(app, where, write=True) as store, app.console.stage("sign") as stage:
        subject = store.resolve(where.reference.name)
        if bound.names:
            said |= binding(
                bound.names,
                reference=where.reference,
                manifest=stores.manifest(store, subject),
                environment=environment,
            )
        done = attach(
            store,
            subject,
            where.reference,
            signer,
            form=form,
            created=now(),
            docker_reference=docker_reference,
            annotations=said,
            allow_example_keys=allow_example_key or where.is_layout,
        )
        stage.say(described(done))
    if "bundle" in done.written and "legacy" in (*done.written, *done.found):
        app.console.note(OLD_COSIGN)
    return Outcome(
        str(where.at(subject.digest)),
        {
            "artifact": {"place": str(where.at(subject.digest)), "digest": str(subject.digest)},
            "signature": {
                "key": done.key,
                "written": list(done.written),
                "found": list(done.found),
            },
        },
    )


def described(done: Signed) -> str:
    """What signing did, for people."""
    parts = [f"{form} written" for form in done.written]
    parts += [f"{form} was there" for form in done.found]
    return f"{', '.join(parts)} (key {done.key[:12]})"


command = outcome_command(sign)
