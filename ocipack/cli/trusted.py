"""From key files on the command line to a policy, and from a policy to proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from ocipack.cli.command import App
from ocipack.cli.console import plural
from ocipack.cli.places import example_option
from ocipack.errors import Misuse
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.location import Location
from ocipack.oci.store import Source
from ocipack.signers import file as key_file
from ocipack.trust.policy import Policy
from ocipack.verify import Verified, verify

_F = TypeVar("_F", bound=Callable[..., Any])


def policy(
    keys: Sequence[str], threshold: int, *, places: Sequence[Location], allow_example_key: bool
) -> Policy:
    """The policy that `--key` and `--threshold` ask for.

    Keys that ship with ocipack count only for layouts on disk, or when allowed.
    """
    example = allow_example_key or all(place.is_layout for place in places)
    found = tuple(key_file.read_public(path) for path in keys)
    return Policy(found, threshold, allow_example_keys=example)


def proof_options(function: _F) -> _F:
    """Add the options of whatever gives tags: who must have signed, or that nobody need have."""
    for option in (
        click.option(
            "--allow-unsigned", is_flag=True, help="Give tags to what nobody need have signed."
        ),
        example_option,
        click.option(
            "--threshold", default=1, show_default=True, help="How many of the keys must have."
        ),
        click.option(
            "--key",
            "keys",
            multiple=True,
            metavar="FILE",
            help="Public key of someone who must have signed; repeatable.",
        ),
    ):
        function = option(function)
    return function


def proven(
    app: App,
    source: Source,
    where: Location,
    *,
    keys: Sequence[str],
    threshold: int,
    allow_example_key: bool,
    allow_unsigned: bool,
) -> Descriptor:
    """What `where` names, verified under `keys`, or just resolved if that was asked for.

    Misuse if it is neither said who must have signed nor that nobody need have.
    """
    if allow_unsigned:
        if keys:
            raise Misuse("--key and --allow-unsigned exclude each other")
        return source.resolve(where.reference.name)
    if not keys:
        raise Misuse(
            "a tag is given only to what has been verified, and no --key says by whom",
            hint="give --key, or --allow-unsigned",
        )
    trusted = policy(keys, threshold, places=[where], allow_example_key=allow_example_key)
    return prove(app, source, where, trusted).descriptor


def prove(app: App, source: Source, where: Location, trusted: Policy) -> Verified:
    """Verify as a stage of a longer command.

    Of a layout everything below the manifest is hashed too: nobody has checked it before us.
    """
    with app.console.stage("verify") as stage:
        proof = verify(source, where.reference, trusted, content=where.is_layout)
        stage.say(f"{proof.descriptor.digest}  {plural(len(proof.signers), 'signature')}")
    return proof
