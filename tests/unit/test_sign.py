"""Signing: what is written, what is found, and what happens when others are at it too."""

from __future__ import annotations

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from world import BUNDLE, OCI_INDEX, REFERENCE, SIGN, World, key

from ocipack.copy import copy
from ocipack.errors import (
    Denied,
    Misuse,
    NotFound,
    OcipackError,
    Rejected,
    StoreError,
    Unavailable,
)
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.sign import Signed, sign
from ocipack.stores.layout import LayoutStore
from ocipack.trust.keys import PrivateKey
from ocipack.trust.policy import Policy
from ocipack.verify import verify

ALICE, BOB = key("alice"), key("bob")


def put(world: World, signer: PrivateKey = ALICE, **options: Any) -> Signed:
    return sign(world.store, world.subject, REFERENCE, signer, **options)


def sig(world: World) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(world.store.content[world.store.names[world.tag].digest])
    return found


def referrers(world: World) -> list[Descriptor]:
    return list(world.store.referrers(world.subject))


def writes(world: World) -> list[str]:
    return [line for line in world.store.log if line.startswith(("push", "tag"))]


@pytest.mark.parametrize(
    ("form", "forms"),
    [("both", ("legacy", "bundle")), ("legacy", ("legacy",)), ("bundle", ("bundle",))],
)
def test_what_is_signed_verifies(form: Any, forms: tuple[str, ...]) -> None:
    world = World()
    done = put(world, form=form)
    assert done == Signed(world.subject, ALICE.public.id, forms, ())
    found = verify(world.store, REFERENCE, Policy((ALICE.public,)))
    assert [one.form for one in found.signers] == [forms[0]]
    assert (world.tag in world.store.names) == ("legacy" in forms)
    assert len(referrers(world)) == ("bundle" in forms)


def test_bytes_of_both_forms() -> None:
    world = World()
    put(world, created="2026-11-30T12:00:00Z")
    (layer,) = sig(world)["layers"]
    payload = world.store.content[Digest.parse(layer["digest"])]
    assert payload == world.payload()
    proof = base64.b64decode(layer["annotations"]["dev.cosignproject.cosign/signature"])
    assert ALICE.public.verifies(proof, payload)
    (listed,) = referrers(world)
    assert listed.artifact_type == BUNDLE
    assert listed.annotations["dev.sigstore.bundle.predicateType"] == SIGN
    assert listed.annotations["org.opencontainers.image.created"] == "2026-11-30T12:00:00Z"
    manifest = Manifest(world.store.content[listed.digest], listed.media_type)
    bundle = json.loads(world.store.content[manifest.layers[0].digest])
    assert base64.b64decode(bundle["dsseEnvelope"]["payload"]) == world.statement()


def test_the_legacy_form_stands_before_the_bundle() -> None:
    """A bundle hides `.sig` from cosign: whoever dies in between leaves what verifies."""
    world = World()
    put(world)
    asked = [line.split()[0] for line in world.store.log]
    assert [what for what in asked if what != "fetch"] == [
        *["resolve", "push", "push", "push", "tag", "resolve"],
        *["referrers", "push", "push", "push"],
    ]


@pytest.mark.parametrize("form", ["both", "legacy", "bundle"])
def test_signing_twice_writes_nothing(form: Any) -> None:
    world = World()
    put(world, form=form)
    world.store.log.clear()
    done = put(world, form=form, created="2027-01-01T00:00:00Z")
    assert done.written == ()
    assert done.found == {"both": ("legacy", "bundle")}.get(form, (form,))
    assert writes(world) == []


def test_a_signature_by_cosign_is_found_too() -> None:
    """Its bytes differ from what we would write; whose it is does not."""
    world = World()
    world.layer()
    world.attach(by="bob")
    world.sign(world.statement(without=("predicate",)))
    assert put(world).written == ()


def test_other_signers_and_other_claims_are_kept() -> None:
    world = World()
    put(world, BOB)
    theirs = sig(world)["layers"]
    put(world)
    put(world, annotations={"env": "prod"})
    layers = sig(world)["layers"]
    assert layers[:1] == theirs
    assert len(layers) == 3
    assert len(referrers(world)) == 3
    policy = Policy((ALICE.public, BOB.public), 2)
    assert len(verify(world.store, REFERENCE, policy).signers) == 2
    assert put(world, annotations={"env": "prod"}).written == ()


def test_junk_is_no_signature_of_ours() -> None:
    world = World()
    world.layer(proof="####")
    world.layer(proof=None)
    world.layer(proof="AAAA")
    world.layer(stored=world.payload(more=1))  # our signature, beside another payload
    world.attach(b"junk")
    world.attach(world.document(world.envelope(by="bob"), by="alice"))
    assert put(world).written == ("legacy", "bundle")
    assert len(sig(world)["layers"]) == 5
    assert verify(world.store, REFERENCE, Policy((ALICE.public,))).signers


def test_an_attestation_of_ours_is_no_signature_of_ours() -> None:
    world = World()
    world.sign(world.statement(predicateType="https://slsa.dev/provenance/v1"))
    assert put(world, form="bundle").written == ("bundle",)


def test_a_referrer_that_cannot_be_read_does_not_stop_us() -> None:
    world = World()
    other = world.attach(by="bob")
    world.store.broken[str(other.digest)] = Unavailable("later")
    assert put(world, form="bundle").written == ("bundle",)


def test_attestations_are_not_read_to_find_out_whether_we_signed() -> None:
    world = World()
    kind = "https://spdx.dev/Document"
    more = {"annotations": {"dev.sigstore.bundle.predicateType": kind}}
    other = world.attach(
        world.document(world.envelope(world.statement(predicateType=kind))), more=more
    )
    assert put(world, form="bundle").written == ("bundle",)
    assert f"fetch {other.digest}" not in world.store.log


def test_annotations_are_signed_in_both_forms() -> None:
    world = World()
    put(world, annotations={"env": "a<b", "app": "x"})
    (layer,) = sig(world)["layers"]
    payload = world.store.content[Digest.parse(layer["digest"])]
    assert payload.endswith(b'"optional":{"app":"x","env":"a\\u003cb"}}')


def test_names() -> None:
    world = World()
    put(world, form="legacy", docker_reference="mirror.example.com/app")
    hub = Reference.parse("docker.io/library/app:v1")
    sign(world.store, world.subject, hub, ALICE, form="legacy")
    payloads = [
        json.loads(world.store.content[Digest.parse(layer["digest"])])
        for layer in sig(world)["layers"]
    ]
    assert [p["critical"]["identity"]["docker-reference"] for p in payloads] == [
        "mirror.example.com/app",
        "index.docker.io/library/app",
    ]


# other signers at the same time


def interfere(world: World, times: int) -> None:
    """Another signer replaces the tag right after ours, as if it had never seen it."""
    store, left = world.store, [times]
    move = store.tag

    def tag(target: Descriptor, name: str, *, was: Any = ...) -> None:
        move(target, name, was=was)
        if left[0]:
            left[0] -= 1
            world.layer(world.payload(n=left[0]), by="bob")

    store.tag = tag  # type: ignore[method-assign] # the double misbehaves


def test_a_lost_signature_is_written_again() -> None:
    world = World()
    interfere(world, 3)
    assert put(world, form="legacy").written == ("legacy",)
    assert len(sig(world)["layers"]) == 4
    assert verify(world.store, REFERENCE, Policy((ALICE.public,))).signers


def test_it_gives_up_in_the_end() -> None:
    world = World()
    interfere(world, 100)
    with pytest.raises(Unavailable, match="written 32 times"):
        put(world)
    assert referrers(world) == []


def test_eight_signers_at_once_lose_nothing(tmp_path: Path) -> None:
    world = World()
    copy(world.store, LayoutStore(tmp_path), world.subject, tag="v1")
    keys = [key(f"signer {i}") for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda one: sign(LayoutStore(tmp_path), world.subject, REFERENCE, one), keys))
    policy = Policy(tuple(one.public for one in keys), 8)
    found = verify(LayoutStore(tmp_path), REFERENCE, policy, content=True)
    assert {one.form for one in found.signers} == {"legacy"}
    assert len(list(LayoutStore(tmp_path).referrers(world.subject))) == 8


def test_a_tag_that_moves_before_ours_is_read_again() -> None:
    world = World()
    move, first = world.store.tag, [True]

    def tag(target: Descriptor, name: str, *, was: Any = ...) -> None:
        if first.pop() if first else False:
            world.layer(by="bob")
        move(target, name, was=was)

    world.store.tag = tag  # type: ignore[method-assign] # the double misbehaves
    put(world)
    assert len(sig(world)["layers"]) == 2
    policy = Policy((ALICE.public, BOB.public), 2)
    assert len(verify(world.store, REFERENCE, policy).signers) == 2


@pytest.mark.parametrize("error", [Rejected("immutable"), Denied("no"), StoreError("400")])
def test_a_tag_that_may_not_move(error: OcipackError) -> None:
    world = World()
    world.layer(by="bob")
    world.store.broken[f"tag {world.tag}"] = error
    with pytest.raises(type(error), match="cannot be moved") as caught:
        put(world)
    assert "--format bundle" in caught.value.hint
    assert referrers(world) == []
    assert put(world, form="bundle").written == ("bundle",)


@pytest.mark.parametrize("error", [Unavailable("later"), NotFound("gone")])
def test_what_may_pass_is_said_as_it_is(error: StoreError) -> None:
    world = World()
    world.layer(by="bob")
    world.store.broken[f"tag {world.tag}"] = error
    with pytest.raises(type(error), match=str(error)) as caught:
        put(world)
    assert caught.value is error


def test_who_may_not_write_at_all_is_told_so() -> None:
    world = World()
    world.store.broken[f"tag {world.tag}"] = Denied("no")
    with pytest.raises(Denied, match=r"^no$"):
        put(world)


def test_a_place_taken_by_something_else() -> None:
    world = World()
    world.put({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": []}, tag=world.tag)
    with pytest.raises(Rejected, match="no manifest of signatures"):
        put(world)


# what is not signed


def test_published_keys_do_not_sign() -> None:
    world = World()
    root = Path(__file__).parents[2] / "keys-example"
    example = PrivateKey.open((root / "cosign.key").read_bytes(), b"ocipack-example")
    with pytest.raises(Rejected, match="is an example"):
        put(world, example)
    assert writes(world) == []
    assert put(world, example, allow_example_keys=True).written


def test_only_manifests_with_sha256_are_signed() -> None:
    world = World()
    blob = Descriptor.of("application/octet-stream", b"x")
    with pytest.raises(Misuse, match="only manifests"):
        sign(world.store, blob, REFERENCE, ALICE)
    big = Descriptor(world.subject.media_type, Digest("sha512", "0" * 128), 1)
    with pytest.raises(Misuse, match="only a sha256"):
        sign(world.store, big, REFERENCE, ALICE)
    with pytest.raises(Misuse, match="not a form"):
        put(world, form="none")
    assert world.store.log == []


def test_an_index_is_signed_as_itself() -> None:
    world = World()
    child = world.subject
    world.subject = world.put(
        {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [child.to_dict()]}, tag="v1"
    )
    put(world)
    assert verify(world.store, REFERENCE, Policy((ALICE.public,))).manifest.is_index
    with pytest.raises(Rejected):
        verify(world.store, REFERENCE.at(child.digest), Policy((ALICE.public,)))
