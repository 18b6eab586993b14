"""What every command that signs shares: the key and the form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import click

from ocipack.cli.command import App
from ocipack.errors import Misuse
from ocipack.sign import BINDABLE, Form
from ocipack.signers import file as key_file
from ocipack.trust.examples import EXAMPLES
from ocipack.trust.keys import PrivateKey, PublicKey
from ocipack.trust.policy import Policy, VerificationPolicy
from ocipack.trust.policy.conditions import Condition
from ocipack.trust.policy.model import BINDINGS, Authority
from ocipack.trust.policy.names import EVERYTHING, Glob

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


_F = TypeVar("_F", bound=Callable[..., Any])


def binding_options(function: _F) -> _F:
    """Add the options of `Binding`."""
    for option in (
        click.option(
            "--environment",
            default="",
            metavar="NAME",
            help="Bind the signature to this environment: a policy can ask for it.",
        ),
        click.option(
            "--bind",
            multiple=True,
            metavar="NAME,...",
            help=f"Bind the signature to these, as signed annotations: {', '.join(BINDABLE)}.",
        ),
    ):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Binding:
    """What a signature is to bind content to: `names` of BINDABLE, and the `environment`."""

    names: tuple[str, ...]
    environment: str

    @classmethod
    def of(cls, bind: Iterable[str], environment: str) -> Binding:
        """Read --bind, which takes several names, and --environment, which binds by itself."""
        names = [name.strip() for text in bind for name in text.split(",")]
        for name in names:
            if name not in BINDABLE:
                raise Misuse(f"nothing can be bound as {name[:60]!r}", hint=", ".join(BINDABLE))
        if environment:
            names.append("environment")
        elif "environment" in names:
            raise Misuse("--bind environment needs a name", hint="give --environment NAME")
        return cls(tuple(dict.fromkeys(names)), environment)

    def policy(self, key: PublicKey, *, allow_example_keys: bool) -> Policy:
        """What holds of content that `key` has signed with this binding, wherever it is.

        Content signed before without it, or for another environment, must be signed again.
        """
        said = tuple(
            (
                name,
                Condition("equals", self.environment)
                if name == "environment"
                else Condition("like", "**"),
            )
            for name in self.names
            if name not in BINDINGS
        )
        bound = tuple(name for name in self.names if name in BINDINGS)
        one = VerificationPolicy(
            "key",
            (Glob(EVERYTHING),),
            (Authority("key", (key,)),),
            annotations=said,
            bind=bound,
        )
        return Policy(policies=(one,), allow_example_keys=allow_example_keys)
