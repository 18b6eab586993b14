"""The model of a policy: who must have signed or attested what, for which names.

Several policies can cover a name: all of them must be met. A policy is met by any one of its
authorities. An authority asks for signatures by some of its keys, for attestations, or for both.
Whoever is covered by no policy is refused: silence means no.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.errors import Misuse
from ocipack.trust import examples
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy.names import EVERYTHING, Glob
from ocipack.trust.statement import SIGN

if TYPE_CHECKING:
    from datetime import date

    from ocipack.trust.policy.age import Floor
    from ocipack.trust.policy.conditions import Condition, Field
    from ocipack.trust.policy.contents import Contents

KEYS = 64
"""Keys of one policy: each may be tried on each signature, and those are counted too."""

ENFORCE, WARN = "enforce", "warn"
PASS, FAIL = "pass", "fail"
FORMS = ("legacy", "bundle")
"""The forms in which something can be signed: the `.sig` and `.att` tags, and bundles."""

BINDINGS = ("tag", "repository")
"""Signed annotations that can be compared with the name that was asked for."""

_WORDS = 500


@dataclass(frozen=True, slots=True)
class Attestation:
    """A statement of `predicate_type` that `threshold` of `keys` must have made about the subject.

    All `conditions` must hold of one and the same predicate.
    """

    name: str
    predicate_type: str
    keys: tuple[PublicKey, ...]
    threshold: int = 1
    conditions: tuple[Field, ...] = ()

    def __post_init__(self) -> None:
        if not self.predicate_type or self.predicate_type == SIGN:
            raise Misuse(f"attestation {self.name!r}: {self.predicate_type!r} is no attestation")
        object.__setattr__(self, "keys", _keys(self.keys, self.threshold))


@dataclass(frozen=True, slots=True)
class Authority:
    """Who must have approved: `threshold` of `keys` by signature, and every attestation.

    Without `signature` attestations alone are asked for. `forms` are those that count. A key given
    twice is one key. Misuse without keys, or with a threshold that is below one or cannot be met.
    """

    name: str
    keys: tuple[PublicKey, ...]
    threshold: int = 1
    signature: bool = True
    forms: tuple[str, ...] = FORMS
    attestations: tuple[Attestation, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", _keys(self.keys, self.threshold))
        if not self.signature and not self.attestations:
            raise Misuse(f"authority {self.name!r} asks for neither signature nor attestation")
        if not self.forms or set(self.forms) - set(FORMS):
            raise Misuse(f"authority {self.name!r}: the forms are {' and '.join(FORMS)}")


@dataclass(frozen=True, slots=True)
class Exemption:
    """Names that a policy is not asked about until the day `until` is over, and who says so."""

    images: tuple[Glob, ...]
    owner: str
    reason: str
    until: date

    def __post_init__(self) -> None:
        if not self.images or not self.owner.strip() or not self.reason.strip():
            raise Misuse("an exemption needs images, an owner and a reason")
        if max(len(self.owner), len(self.reason)) > _WORDS:
            raise Misuse(f"owner and reason of an exemption have at most {_WORDS} characters")


@dataclass(frozen=True, slots=True)
class VerificationPolicy:
    """What must be true of the names that `images` cover.

    `annotations`, `bind` and `not_older_than` are asked of each signature that is to count: what a
    signed annotation says, that it equals the name asked for, and that it is recent. A `static`
    policy, `pass` or `fail` with its `reason`, asks for nothing. In mode `warn` a policy that is
    not met refuses nothing. `contents` is what may be named inside; without it the policy has no
    say in that. Misuse for a policy that could never be met, and for one that says
    things which would have no effect.
    """

    name: str
    images: tuple[Glob, ...]
    authorities: tuple[Authority, ...] = ()
    mode: str = ENFORCE
    annotations: tuple[tuple[str, Condition], ...] = ()
    bind: tuple[str, ...] = ()
    not_older_than: Floor | None = None
    exemptions: tuple[Exemption, ...] = ()
    static: str = ""
    reason: str = ""
    contents: Contents | None = None

    def __post_init__(self) -> None:
        if not self.images:
            raise Misuse(f"policy {self.name!r} covers no image")
        if self.mode not in (ENFORCE, WARN):
            raise Misuse(f"policy {self.name!r}: the mode is {ENFORCE} or {WARN}")
        if set(self.bind) - set(BINDINGS):
            raise Misuse(f"policy {self.name!r}: only {' and '.join(BINDINGS)} can be bound")
        if self.static:
            self._check_static()
        elif not self.authorities:
            raise Misuse(f"policy {self.name!r} without authorities would refuse everything")
        about_signatures = self.annotations or self.bind or self.not_older_than
        if about_signatures and not all(one.signature for one in self.authorities):
            raise Misuse(
                f"policy {self.name!r} asks what signatures say, of an authority that needs none",
                hint="leave out signature: false, or annotations, bind and notOlderThan",
            )

    def _check_static(self) -> None:
        if self.static not in (PASS, FAIL):
            raise Misuse(f"policy {self.name!r}: static is {PASS} or {FAIL}")
        if not self.reason.strip():
            raise Misuse(f"policy {self.name!r}: a static policy needs a reason")
        about = (
            *(self.annotations, self.bind, self.not_older_than, self.authorities),
            self.contents,
        )
        inert = any(about) or (self.static == PASS and (self.mode == WARN or self.exemptions))
        if inert:
            raise Misuse(f"policy {self.name!r} is static, so what else it says has no effect")

    @property
    def keys(self) -> Iterator[PublicKey]:
        """Every key that matters to it."""
        for authority in self.authorities:
            if authority.signature:
                yield from authority.keys
            for attestation in authority.attestations:
                yield from attestation.keys


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """What verification is asked to prove: every one of `policies` that covers the name.

    `Policy(keys, threshold)` is the short form: one policy for every name, one authority.
    `today` decides which exemptions still hold; without it none does. Rejected for a key that
    ships with ocipack, unless `allow_example_keys`; Misuse for two policies of one name, and for
    more than KEYS keys.
    """

    policies: tuple[VerificationPolicy, ...]
    allow_example_keys: bool
    today: date | None

    def __init__(
        self,
        keys: Iterable[PublicKey] = (),
        threshold: int = 1,
        *,
        allow_example_keys: bool = False,
        policies: Iterable[VerificationPolicy] = (),
        today: date | None = None,
    ) -> None:
        found = tuple(policies) or (_short_form(tuple(keys), threshold),)
        object.__setattr__(self, "policies", found)
        object.__setattr__(self, "allow_example_keys", allow_example_keys)
        object.__setattr__(self, "today", today)
        names = [one.name for one in found]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise Misuse(f"two policies have the name {twice!r}")
        if len(self.keys) > KEYS:
            raise Misuse(f"a policy has at most {KEYS} keys, not {len(self.keys)}")
        if not allow_example_keys:
            examples.refuse(self.keys)

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """Every key of every policy, each once."""
        return tuple(dict.fromkeys(key for one in self.policies for key in one.keys))


def _short_form(keys: tuple[PublicKey, ...], threshold: int) -> VerificationPolicy:
    authority = Authority("key", keys, threshold)
    return VerificationPolicy("key", (Glob(EVERYTHING),), (authority,))


def _keys(keys: tuple[PublicKey, ...], threshold: int) -> tuple[PublicKey, ...]:
    """`keys`, each once; Misuse unless `threshold` of them can have signed."""
    found = tuple(dict.fromkeys(keys))
    if not found:
        raise Misuse("a policy without keys would refuse everything", hint="give --key")
    if not 1 <= threshold <= len(found):
        raise Misuse(
            f"a threshold of {threshold} cannot be asked of {len(found)} different "
            f"key{'s' if len(found) > 1 else ''}"
        )
    return found
