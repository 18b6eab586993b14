"""`ocipack keys`: make, import and read signing keys."""

from __future__ import annotations

import secrets

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome
from ocipack.cli.passwords import password, password_options
from ocipack.errors import Misuse
from ocipack.signers import file as key_file
from ocipack.trust.keys import PrivateKey, PublicKey

_STEM = click.option(
    "-o",
    "--output-key-prefix",
    "stem",
    default="cosign",
    show_default=True,
    metavar="STEM",
    help="Write STEM.key and STEM.pub.",
)
_FORCE = click.option("--force", is_flag=True, help="Replace existing key files.")


@click.group()
def command() -> None:
    """Make, import and read signing keys."""


def _described(key: PublicKey, **more: str) -> dict[str, object]:
    return {"key": {"id": key.id, "algorithm": key.algorithm, "pem": key.pem.decode(), **more}}


def _write(app: App, key: PrivateKey, secret: bytes, stem: str, *, force: bool) -> Outcome:
    sealed = key.seal(secret, secrets.token_bytes)
    key_file.write_pair(stem, sealed, key.public, force=force)
    app.console.note(f"wrote {stem}.key (private, encrypted) and {stem}.pub: key {key.public.id}")
    return Outcome(
        f"{stem}.pub", _described(key.public, private=f"{stem}.key", public=f"{stem}.pub")
    )


@_STEM
@_FORCE
@password_options
def generate(
    app: App, *, stem: str, force: bool, password_file: str | None, password_stdin: bool
) -> Outcome:
    """Make an ECDSA P-256 key pair, encrypted in cosign's format.

    Prints the name of the public key file.
    """
    secret = password(password_file, stdin=password_stdin, confirm=True, what="new key")
    return _write(app, PrivateKey.generate(secrets.token_bytes), secret, stem, force=force)


@click.argument("file")
@_STEM
@_FORCE
@password_options
def import_(
    app: App,
    *,
    file: str,
    stem: str,
    force: bool,
    password_file: str | None,
    password_stdin: bool,
) -> Outcome:
    """Encrypt an existing key (PEM: PKCS#8, SEC1 or PKCS#1) in cosign's format.

    Only ECDSA P-256 signs what every verifier reads, so nothing else is taken.
    """
    key = key_file.read_plain(file)
    secret = password(password_file, stdin=password_stdin, confirm=True, what="imported key")
    return _write(app, key, secret, stem, force=force)


@click.argument("file")
@password_options
def public(_: App, *, file: str, password_file: str | None, password_stdin: bool) -> Outcome:
    """Print the public half of a private key, or a public key in its canonical form."""
    try:
        key = key_file.read_public(file)
    except Misuse:
        secret = lambda: password(password_file, stdin=password_stdin)  # noqa: E731 - asked late
        key = key_file.read_private(file, secret).public
    return Outcome(key.pem.decode(), _described(key))


for _function in (generate, import_, public):
    command.add_command(outcome_command(_function, connects=False))
