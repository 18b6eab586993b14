"""What every command that signs shares: the key and the form."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import click

from ocipack.cli.command import App
from ocipack.sign import Form
from ocipack.signers import file as key_file
from ocipack.trust.examples import EXAMPLES
from ocipack.trust.keys import PrivateKey

key_option = click.option(
    "--key", required=True, metavar="FILE", help="Encrypted private key, in cosign's format."
)
form_option = click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Form)),
    default="both",
    show_default=True,
    help="legacy: the .sig tag, which every verifier reads; bundle: a referrer, cosign 3's form; "
    "both: cosign 2.6 then needs --trusted-root even with a key (docs/verification.md).",
)


def signing_key(app: App, path: str, password: Callable[[], bytes]) -> PrivateKey:
    """Open the key file at `path`, warning if others can read what is no example."""
    key = key_file.read_private(path, password)
    exposed = key_file.exposed(path)
    if exposed is not None and key.public.id not in EXAMPLES:
        app.console.warn(f"{path}: {exposed.message} ({exposed.hint})")
    return key
