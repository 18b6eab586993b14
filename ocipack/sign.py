"""Attach a signature to something that is in a store already.

Two forms: the legacy one, a layer under the tag `sha256-<hex>.sig`, which every verifier reads, and
the bundle, a manifest that refers to the subject. `both` writes the legacy one first, because a
bundle hides `.sig` signatures from cosign 2.6.3 and later: a run that dies in between then leaves
something that verifies. A signature of this key that is there already is found and left alone, so
signing again does not pile up; signature bytes are never compared.

The pieces are pushed rather than copied: each was made a moment ago, so asking whether it is there
would cost a request for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from ocipack.errors import IntegrityError, Misuse, NotFound, Rejected, StoreError, Unavailable
from ocipack.oci import store as stores
from ocipack.oci.digest import Digest
from ocipack.trust import bundle, cosign, dsse, examples, statement
from ocipack.trust.policy.decision import bound
from ocipack.trust.policy.model import BINDINGS
from ocipack.verify import judge
from ocipack.verify.gather import Search

if TYPE_CHECKING:
    from ocipack.oci.artifact import Artifact
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.reference import Reference
    from ocipack.oci.store import Store
    from ocipack.trust.keys import PrivateKey, PublicKey

Form = Literal["both", "legacy", "bundle"]

TRIES = 32
"""How often a `.sig` tag that others keep moving is written: at each try one signer gets through,
so this is how many may sign the same digest at the same moment."""

_BUNDLE_HINT = "a registry may forbid moving tags; sign with --format bundle, which needs none"
_NOTHING: Mapping[str, str] = MappingProxyType({})


BINDABLE = statement.BINDABLE
"""What a signature can bind content to, in signed annotations of these names."""

_MANIFEST = "org.opencontainers.image."


def binding(
    names: Iterable[str], *, reference: Reference, manifest: Manifest, environment: str = ""
) -> dict[str, str]:
    """The annotations to sign, so that content cannot pass for what it is not.

    `tag` and `repository` come from `reference`, `environment` is given, the others are what the
    annotations of `manifest` say. Misuse for a name that is not BINDABLE, or has nothing to say.
    """
    found = {}
    for name in names:
        if name not in BINDABLE:
            raise Misuse(f"nothing can be bound as {name[:60]!r}", hint=", ".join(BINDABLE))
        if name in BINDINGS:
            said = bound(reference, name) or ""
        elif name == "environment":
            said = environment
        else:
            said = manifest.annotations.get(_MANIFEST + name, "")
        if not said:
            raise Misuse(f"there is no {name} to bind the signature to", hint=_whence(name))
        found[name] = said
    return found


def _whence(name: str) -> str:
    """Where the value of a binding comes from."""
    if name == "tag":
        return "name the tag, not the digest alone"
    if name == "environment":
        return "give --environment"
    return f"the manifest has no annotation {_MANIFEST}{name}"


@dataclass(frozen=True, slots=True)
class Signed:
    """What signing did: `written` and `found` are the forms made now and those there already."""

    subject: Descriptor
    key: str
    written: tuple[str, ...]
    found: tuple[str, ...]


def sign(
    store: Store,
    subject: Descriptor,
    reference: Reference,
    signer: PrivateKey,
    *,
    form: Form = "both",
    created: str | None = None,
    docker_reference: str = "",
    annotations: Mapping[str, str] = _NOTHING,
    allow_example_keys: bool = False,
) -> Signed:
    """Sign `subject`, which `store` holds and calls `reference`.

    `created` (RFC 3339, UTC, to the second) goes into the referrer's manifest, unsigned;
    `annotations` are signed. `docker_reference` is the repository that the legacy form names
    instead of `reference`'s own, for content that will be mirrored. Misuse for a subject that is
    not a sha256 manifest; Rejected for an example key, and if the store refuses to move the tag.
    """
    if form not in get_args(Form):
        raise Misuse(f"not a form of signature: {form!r}", hint="both, legacy or bundle")
    if not subject.is_manifest:
        raise Misuse(f"{subject.digest}: only manifests are signed, not {subject.media_type!r}")
    tag = cosign.tag(subject.digest)
    if not allow_example_keys:
        examples.refuse([signer.public])
    new: dict[str, bool] = {}
    if form != "bundle":
        name = docker_reference or cosign.docker_reference(reference.bare)
        payload = cosign.payload(name, subject.digest, annotations)
        new[judge.LEGACY] = _legacy(store, tag, payload, signer)
    if form != "legacy":
        new[judge.BUNDLE] = _bundle(store, subject, annotations, signer, created)
    return Signed(
        subject,
        signer.public.id,
        tuple(name for name, fresh in new.items() if fresh),
        tuple(name for name, fresh in new.items() if not fresh),
    )


def _legacy(store: Store, tag: str, payload: bytes, signer: PrivateKey) -> bool:
    """Make sure that `tag` lists our signature; whether it had to be written.

    There is no lock on a registry's tag, so what was written is read again, and written again
    if another signer replaced it in the meantime.
    """
    proof = signer.sign(payload)
    for attempt in range(TRIES + 1):
        existing = _existing(store, tag)
        if existing is not None and _lists(existing, payload, signer.public):
            return attempt > 0
        if attempt == TRIES:
            break
        artifact = cosign.append(existing, payload, proof)
        _push(store, artifact)
        _move(store, artifact.root, tag, existing.descriptor.digest if existing else None)
    raise Unavailable(
        f"{tag}: written {TRIES} times, and other signers replaced it each time",
        hint="try again once they are done",
    )


def _existing(store: Store, tag: str) -> Manifest | None:
    try:
        root = store.resolve(tag)
    except NotFound:
        return None
    return stores.manifest(store, root)


def _lists(existing: Manifest, payload: bytes, key: PublicKey) -> bool:
    """Whether `existing` has a signature by `key` over exactly `payload`."""
    wanted = Digest.of(payload)
    for layer in cosign.payloads(existing):
        if layer.digest != wanted:
            continue
        try:
            proof = cosign.signature(layer)
        except IntegrityError:
            continue  # junk beside a good signature
        if key.verifies(proof, payload):
            return True
    return False


def _move(store: Store, root: Descriptor, tag: str, was: Digest | None) -> None:
    """Point `tag` at `root`; a tag that another signer moved first is no error.

    A store that refuses although nobody moved it does not let this tag move at all.
    """
    try:
        store.tag(root, tag, was=was)
    except (Unavailable, NotFound):
        raise
    except Rejected as e:
        now = _existing(store, tag)
        if (now.descriptor.digest if now else None) == was:
            raise Rejected(f"{tag} cannot be moved: {e}", hint=_BUNDLE_HINT) from e
    except StoreError as e:
        if was is None:
            raise
        raise type(e)(f"{tag} cannot be moved: {e}", hint=_BUNDLE_HINT) from e


def _bundle(
    store: Store,
    subject: Descriptor,
    annotations: Mapping[str, str],
    signer: PrivateKey,
    created: str | None,
) -> bool:
    """Make sure that a bundle of ours refers to `subject`; whether it had to be written."""
    if _refers(store, subject, annotations, signer.public):
        return False
    payload = statement.signing(subject.digest, annotations)
    proof = signer.sign(dsse.pae(dsse.IN_TOTO, payload))
    raw = bundle.build(dsse.Envelope(dsse.IN_TOTO, payload, (proof,)), signer.public)
    _push(store, bundle.artifact(subject, raw, statement.SIGN, created))
    return True


def _refers(
    store: Store, subject: Descriptor, annotations: Mapping[str, str], key: PublicKey
) -> bool:
    """Whether a bundle by `key` says the same already; what cannot be read does not count."""
    for candidate in Search(store, subject).bundles(only_likely=True):
        claim = judge.claim(candidate, subject.digest)
        if (
            isinstance(claim, judge.Claim)
            and dict(claim.annotations) == dict(annotations)
            and key.verifies(claim.signature, claim.signed)
        ):
            return True
    return False


def _push(store: Store, artifact: Artifact) -> None:
    """Push what `artifact` brings, blobs first."""
    for child in artifact.manifest.children:
        if child.digest in artifact.blobs:
            store.push(child, artifact)
    store.push(artifact.root, artifact)
