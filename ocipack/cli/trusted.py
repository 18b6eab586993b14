"""From keys and policies on the command line to a policy, and from a policy to proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from ocipack.cli.command import App
from ocipack.cli.console import plural
from ocipack.cli.places import example_option
from ocipack.errors import IntegrityError, Misuse
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.location import Location
from ocipack.oci.store import Source
from ocipack.signers import file as key_file
from ocipack.trust.policy import Policy
from ocipack.verify import Exempted, Verified, decide, verify

_F = TypeVar("_F", bound=Callable[..., Any])

policy_option = click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="FILE",
    help="What must be true, as a file (docs/policy.md); repeatable, and all must be.",
)
exempted_option = click.option(
    "--allow-exempted",
    is_flag=True,
    help="Take what its policy lets through without proof, too.",
)
_KEYS = (
    click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="FILE",
        help="Public key of someone who may have signed; repeatable. Short for a policy.",
    ),
    click.option(
        "--threshold", default=1, show_default=True, help="How many of the keys must have."
    ),
    policy_option,
)
_UNSIGNED = click.option(
    "--allow-unsigned", is_flag=True, help="Ask for no signature: nobody need have signed."
)


def verify_options(function: _F) -> _F:
    """Add the options that say what must be true."""
    return _added(function, (*_KEYS, example_option))


def trust_options(function: _F) -> _F:
    """Add the options of whatever uses what has been verified."""
    return _added(function, (*_KEYS, example_option, exempted_option))


def proof_options(function: _F) -> _F:
    """Add the options of whatever gives tags: what must be true, or that nothing need be."""
    return _added(function, (*_KEYS, example_option, exempted_option, _UNSIGNED))


def _added(function: _F, options: Sequence[Callable[[_F], _F]]) -> _F:
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Trust:
    """What the options above say."""

    keys: tuple[str, ...]
    threshold: int
    policies: tuple[str, ...]
    allow_example_key: bool
    allow_exempted: bool = False
    allow_unsigned: bool = False

    @property
    def given(self) -> bool:
        """Whether it is said who must have signed."""
        return bool(self.keys or self.policies)

    def check_tagging(self, where: Location) -> None:
        """Misuse if it is neither said what must be true nor that nothing need be."""
        if self.allow_unsigned and self.given:
            given = "--key" if self.keys else "--policy"
            raise Misuse(f"{given} and --allow-unsigned exclude each other")
        if not self.given and not self.allow_unsigned:
            raise Misuse(
                f"{where}: a tag is given only to what has been verified, and neither --key nor "
                "--policy says by whom",
                hint="give --key or --policy, or --allow-unsigned",
            )

    def policy(self, places: Sequence[Location]) -> Policy:
        """The policy they ask for.

        Keys that ship with ocipack count only for layouts on disk, or when allowed.
        """
        example = self.allow_example_key or all(place.is_layout for place in places)
        if self.keys and self.policies:
            raise Misuse("--key and --policy exclude each other", hint="name the key in the policy")
        if self.policies:
            return from_files(self.policies, self.threshold, allow_example_keys=example)
        if not self.keys:
            raise Misuse(
                "neither --key nor --policy says who must have signed",
                hint="give the public key with --key",
            )
        found = tuple(key_file.read_public(path) for path in self.keys)
        return Policy(found, self.threshold, allow_example_keys=example)


def from_files(paths: Sequence[str], threshold: int, *, allow_example_keys: bool) -> Policy:
    """The policy in the files at `paths`, as of today."""
    if threshold != 1:
        raise Misuse("--threshold belongs to --key", hint="a policy has thresholds of its own")
    from ocipack.cli.clock import today  # noqa: PLC0415 - start-up
    from ocipack.cli.policies import policies  # noqa: PLC0415 - start-up: it loads YAML

    return Policy(policies=policies(paths), allow_example_keys=allow_example_keys, today=today())


def proven(
    app: App, source: Source, where: Location, trust: Trust, names: Sequence[str] = ()
) -> Descriptor:
    """What `where` names, verified as `trust` asks, or just resolved if nothing need be true.

    Under policies it is verified as each of `names`, the tags it will have: what may be called
    one need not be allowed to be called another.
    """
    trust.check_tagging(where)
    if trust.allow_unsigned:
        return source.resolve(where.reference.name)
    trusted = trust.policy([where])
    if not trust.policies or not names:
        return prove(app, source, where, trusted, trust).descriptor
    target = source.resolve(where.reference.name)
    if where.reference.digest not in (None, target.digest):
        raise IntegrityError(f"{where}: the source answered with {target.digest}")
    for name in names:
        prove(app, source, where.tagged(name).at(target.digest), trusted, trust)
    return target


def prove(
    app: App, source: Source, where: Location, trusted: Policy, trust: Trust
) -> Verified | Exempted:
    """Verify as a stage of a longer command.

    Of a layout everything below the manifest is hashed too: nobody has checked it before us.
    """
    with app.console.stage("verify") as stage:
        check = decide if trust.allow_exempted else verify
        proof = check(source, where.reference, trusted, content=where.is_layout)
        signatures = plural(len(proof.signers), "signature")
        said = "exempted" if isinstance(proof, Exempted) else signatures
        stage.say(f"{proof.descriptor.digest}  {said}")
    return proof
