"""Deliver: nothing gets a tag that is not checked, complete, signed and verified.

The order, which is the whole argument:

1. note where the moving tag points
2. pack; what is checked from here on is the packed tree, read back
3. render and check it; a finding that is an error ends the run
4. if what the tag names has the same content, verifies now and is still there, it is unchanged:
   nothing moves
5. copy by digest: blobs, then the manifest
6. sign
7. verify what was signed, under the policy that consumers will use
8. the immutable tag, then the moving one, which must still point where it did in (1)

Whatever fails or is killed before (8) leaves content that no tag names; the next run finds it there
and goes on. Nothing is written before (5).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ocipack.copy import Copied, copy
from ocipack.errors import NotFound, Rejected
from ocipack.flux import artifact as flux
from ocipack.oci import store as stores
from ocipack.sign import Form, Signed, binding, sign
from ocipack.tag import Tagged, moved, standing, tag
from ocipack.verify import Exempted, Verified, decide, verify

if TYPE_CHECKING:
    from ocipack.oci.artifact import Artifact
    from ocipack.oci.digest import Digest
    from ocipack.oci.manifest import Manifest
    from ocipack.oci.reference import Reference
    from ocipack.oci.store import Store
    from ocipack.report import Report
    from ocipack.trust.keys import PrivateKey
    from ocipack.trust.policy import Policy

DEFAULT_TAG = "latest"

_ORIGIN = frozenset({flux.CREATED, flux.SOURCE, flux.REVISION})


class Stage(Protocol):
    """A stage that is being watched."""

    def say(self, text: str) -> None:
        """Set what the finished stage reports."""


Watch = Callable[[str], AbstractContextManager[Stage]]


@dataclass(frozen=True, slots=True)
class Shipped:
    """What a run delivered.

    `verified` is the proof about what the tag names now, or the exemption that was allowed in its
    place; None after a dry run that would have delivered. `copied`, `signed` and `tagged` are None
    where nothing had to move.
    """

    artifact: Artifact
    report: Report
    verified: Verified | Exempted | None = None
    copied: Copied | None = None
    signed: Signed | None = None
    tagged: Tagged | None = None

    @property
    def unchanged(self) -> bool:
        """Whether the tag named this content already, properly signed."""
        return self.verified is not None and self.tagged is None


def ship(
    store: Store,
    reference: Reference,
    *,
    pack: Callable[[], Artifact],
    check: Callable[[Artifact], Report],
    signer: PrivateKey,
    policy: Policy,
    watch: Watch,
    ours: Policy | None = None,
    form: Form = "both",
    created: str | None = None,
    content: bool = False,
    dry_run: bool = False,
    bind: tuple[str, ...] = (),
    environment: str = "",
    allow_exempted: bool = False,
) -> Shipped:
    """Deliver what `pack` makes to `store`, which is called `reference`.

    The moving tag is the reference's, else `latest`; a digest there must be the artifact's own.
    `check` raises for what cannot be rendered. `content` makes verification hash everything below
    the manifest. `bind` and `environment` are what the signature binds the content to
    (`ocipack.sign.binding`); `ours` is what holds of such a signature, if `policy` does not say it:
    what is there already is unchanged only if that holds too. `allow_exempted` delivers also what
    the policy lets through without proof; it is signed all the same. Rejected, with the report, if
    the tree must not be delivered, or if the tag was moved meanwhile.
    """
    name = reference.tag or DEFAULT_TAG
    reference = replace(reference, tag=name)
    before = standing(store, [name])  # (1)
    artifact = pack()  # (2)
    _expected(reference, artifact)
    report = check(artifact)  # (3)
    if not report.ok:
        raise Rejected("the tree must not be delivered as it is", report=report)
    said = binding(bind, reference=reference, manifest=artifact.manifest, environment=environment)
    policies = [policy, *([ours] if ours is not None else [])]
    known = _unchanged(store, reference, before[name], artifact, policies, content=content)  # (4)
    if known is not None:
        _still(store, name, before[name])
    if known is not None or dry_run:
        return Shipped(artifact, report, known)
    with watch("copy") as stage:
        copied = copy(artifact, store, artifact.root)  # (5)
        stage.say(f"{copied.copied} moved, {copied.skipped} there already")
    with watch("sign") as stage:
        signed = sign(  # (6)
            store,
            artifact.root,
            reference,
            signer,
            form=form,
            created=created,
            annotations=said,
            allow_example_keys=policy.allow_example_keys,
        )
        stage.say(f"{', '.join(signed.written) or 'signed already'}  key {signed.key[:12]}")
    with watch("verify") as stage:
        prove = decide if allow_exempted else verify
        proof = prove(store, reference.at(artifact.root.digest), policy, content=content)  # (7)
        stage.say(str(proof.descriptor.digest))
    with watch("tag") as stage:
        tagged = tag(store, proof.descriptor, before)  # (8)
        stage.say(", ".join(tagged.written) or "there already")
    return Shipped(artifact, report, proof, copied, signed, tagged)


def _still(store: Store, name: str, was: Digest | None) -> None:
    """Refuse to call unchanged what somebody changed while we looked."""
    now = standing(store, [name])[name]
    if now != was:
        raise moved(name, was, now)


def _expected(reference: Reference, artifact: Artifact) -> None:
    if reference.digest not in (None, artifact.root.digest):
        raise Rejected(
            f"the tree packs to {artifact.root.digest}, and {reference} asks for another digest",
            hint="leave the digest out, or pack the commit that it was made of",
        )


def _unchanged(
    store: Store,
    reference: Reference,
    before: Digest | None,
    artifact: Artifact,
    policies: list[Policy],
    *,
    content: bool,
) -> Verified | None:
    """Proof of what the tag names, if that is the same content and its signature holds now.

    It is proof under the first of `policies`, and all of them hold.

    An annotation, a tag or a listing at the store says nothing: layers are compared by digest,
    and the signature is checked again.
    """
    if before is None:
        return None
    try:
        known = stores.manifest(store, store.resolve(str(before)))
        if not _same(known, artifact.manifest):
            return None
        proofs = [verify(store, reference.at(before), one, content=content) for one in policies]
        return proofs[0]
    except (Rejected, NotFound):  # gone, altered or not ours: delivering makes it good
        return None


def _same(known: Manifest, fresh: Manifest) -> bool:
    """Whether two manifests deliver the same: content, form, and what the user asked to say.

    Commit, source and time may differ: a commit that changes nothing here moves nothing. But what
    was made of uncommitted changes gives way to the same content from a commit.
    """
    if known.is_index or (known.config, known.layers) != (fresh.config, fresh.layers):
        return False
    return _said(known) == _said(fresh) and not (_dirty(known) and not _dirty(fresh))


def _dirty(manifest: Manifest) -> bool:
    """Whether the revision says that the tree differed from its commit (`origin.revision`)."""
    return "-dirty@" in manifest.annotations.get(flux.REVISION, "")


def _said(manifest: Manifest) -> dict[str, str]:
    return {key: value for key, value in manifest.annotations.items() if key not in _ORIGIN}
