"""`ocipack login`."""

from __future__ import annotations

import sys

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.cli.passwords import login_password
from ocipack.errors import Misuse, StoreError
from ocipack.stores.auth.credential import Credential
from ocipack.stores.http.host import place
from ocipack.stores.registry.probe import knock, prove


@click.argument("registry", metavar="HOST[:PORT]")
@click.option("--username", "-u", default="", metavar="NAME", help="Else asked for on a terminal.")
@click.option("--password-stdin", is_flag=True, help="Read the password from stdin.")
def login(app: App, *, registry: str, username: str, password_stdin: bool) -> Outcome:
    """Log in at a registry, and keep the credentials as docker does.

    They are tried at the registry first. A credential helper keeps them if docker's
    configuration names one, else the configuration itself, which nobody else may read. For a
    private registry of ECR without --username the password comes from AWS.
    """
    from ocipack.stores.oras import entered, is_ecr  # noqa: PLC0415 - a tenth of a second

    name = place(registry)
    if is_ecr(name) and not username and not password_stdin:
        given = _from_aws(app, name)
    else:
        user = username or _username(password_stdin=password_stdin)
        given = Credential("what was given", user, login_password(stdin=password_stdin))
    proven = prove(app.registries.trial(name, given), given)
    if not proven:
        app.console.warn(f"{name} asked for no credentials, so these were not tried")
    kept = app.registries.keeper().keep(name, given.username, given.password, entered)
    app.console.note(f"logged in at {name} as {given.username}; kept in {kept}")
    if not kept.startswith("docker-credential-"):
        app.console.note(
            "it is kept unencrypted; a credential helper (credsStore) would encrypt it"
        )
    return Outcome(
        "", {"registry": name, "username": given.username, "proven": proven, "kept": kept}
    )


def _username(*, password_stdin: bool) -> str:
    if password_stdin or not sys.stdin.isatty():
        raise Misuse("the name of the account is missing", hint="give it by --username")
    asked: str = click.prompt("Username", err=True)
    return asked


def _from_aws(app: App, name: str) -> Credential:
    """Ask AWS for a password, as the registry says that it wants one."""
    from ocipack.stores.oras import ecr  # noqa: PLC0415 - as above

    answer, _ = knock(app.registries.trial(name, Credential("anonymous")))
    if answer is None:
        raise StoreError(f"{name} does not ask for a password as ECR does")
    challenge = answer.header("WWW-Authenticate")
    answer.finish()
    return ecr(name, challenge)


command = outcome_command(login)
