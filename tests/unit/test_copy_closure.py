"""What belongs to content: found wherever it is attached, once, and nothing that only says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from content import image, index, put
from doubles import Double
from registry import Fault, Registry, Switches

from ocipack.copy import ATTACHED, Kind, Part, Plan, Transfers, copy, survey
from ocipack.copy.plan import attached_kind, child_kind
from ocipack.errors import IntegrityError, NotFound, Rejected, StoreError
from ocipack.oci import closure as limits
from ocipack.oci.descriptor import INDEX, MANIFEST, Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source
from ocipack.stores.http.patience import Patience
from ocipack.stores.http.transport import Transport
from ocipack.stores.memory import MemoryStore
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.store import RegistryStore

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
PREDICATE = "dev.sigstore.bundle.predicateType"
SIGN = "https://sigstore.dev/cosign/sign/v1"


def opened(server: Registry, name: str = "team/app") -> RegistryStore:
    patience = Patience(sleep=lambda _: None)
    registries = Registries(Transport(patience=patience))
    return registries.store(Reference.parse(f"{server.name}/{name}"), writes=True)


def tag(subject: Descriptor, suffix: str = "") -> str:
    return f"sha256-{subject.digest.hex}{suffix}"


def bundle(store: MemoryStore, subject: Descriptor, text: bytes, **members: Any) -> Descriptor:
    said = {"artifactType": BUNDLE, "annotations": {PREDICATE: SIGN}, **members}
    return image(store, text, subject=subject, **said)


def moved(
    source: Source, dest: MemoryStore | RegistryStore, root: Descriptor, **how: Any
) -> dict[str, int]:
    with Transfers() as run:
        return dict(run.copy(source, dest, root, attached=True, **how).kinds)


def site(store: MemoryStore) -> tuple[Descriptor, list[Descriptor]]:
    """An index whose entries have a bundle and a `.sig` each, and nothing at the index itself."""
    images = [image(store, b"%d" % n) for n in range(2)]
    for one in images:
        bundle(store, one, b"bundle of " + one.digest.hex.encode())
        store.tag(image(store, b"signature of " + one.digest.hex.encode()), tag(one, ".sig"))
    return index(store, *images), images


@pytest.fixture(params=[True, False], ids=["referrers API", "fallback tags"])
def server(request: pytest.FixtureRequest) -> Iterator[Registry]:
    switches = Switches(referrers=request.param, name_unknown=request.param)
    with Registry(switches) as running:
        yield running


# found


def test_what_is_attached_to_entries_of_an_index_comes_along(server: Registry) -> None:
    origin, back = MemoryStore(), MemoryStore()
    root, images = site(origin)
    there = opened(server)
    kinds = moved(origin, there, root, tag="v1")
    assert kinds == {"indexes": 1, "manifests": 2, "blobs": 12, "signatures": 4, "digest tags": 2}
    again = opened(server)
    assert moved(again, back, again.resolve("v1")) == kinds
    assert back.content == {d: c for d, c in origin.content.items() if d in back.content}
    assert set(back.content) == set(origin.content)
    for one in images:
        assert back.resolve(tag(one, ".sig")) == origin.resolve(tag(one, ".sig"))
        assert len(list(back.referrers(one))) == 1


def test_one_list_for_each_subject_and_one_request_for_each_digest_tag(server: Registry) -> None:
    origin = MemoryStore()
    root, images = site(origin)
    for n in range(5):
        bundle(origin, images[0], b"more %d" % n)
    moved(origin, opened(server), root)
    for one in images:
        assert len(server.lines(f"^PUT .*{tag(one, '.sig')}")) == 1
        assert not server.lines(f"^(GET|HEAD) .*{tag(one, '.sig')}")
        lists = server.lines(f"PUT .*/{tag(one)}$")
        assert len(lists) == (0 if server.switches.referrers else 1)
        assert len(server.lines(f"GET .*referrers/{one.digest}")) <= 1
    signature = origin.resolve(tag(images[0], ".sig"))
    assert not server.lines(f"manifests/{signature.digest}"), "it went straight under its tag"
    assert len(list(opened(server).referrers(images[0]))) == 6


def test_what_is_attached_later_by_the_same_store_loses_nothing() -> None:
    """The list is not read before its first writing into a new repository, and is after that."""
    origin = MemoryStore()
    root, images = site(origin)
    with Registry(Switches(referrers=False)) as old, Transfers() as run:
        dest = opened(old)
        run.copy(origin, dest, root, attached=True)
        lists = [line.split()[0] for line in old.lines(f"manifests/{tag(images[0])}$")]
        assert lists == ["PUT", "GET"]
        late = bundle(origin, images[0], b"signed later")
        plan = run.plan(origin, dest, root, attached=True)
        run.deliver(plan, dest)
        assert [part.target.digest for part in plan.missing if part.subject] == [late.digest]
        assert len(list(opened(old).referrers(images[0]))) == 2


def test_what_is_listed_and_gone_is_brought_again() -> None:
    """A fallback tag that outlived what it lists, as garbage collection leaves it."""
    origin = MemoryStore()
    root, images = site(origin)
    (referrer,) = origin.referrers(images[0])
    with Registry(Switches(referrers=False, name_unknown=False)) as old:
        moved(origin, opened(old), root)
        del old.repository("team/app").manifests[str(referrer.digest)]
        moved(origin, opened(old), root)
        assert opened(old).resolve(str(referrer.digest)) == referrer.plain
        assert len(list(opened(old).referrers(images[0]))) == 1


def test_what_the_source_lists_and_does_not_have_is_said_to_be_gone() -> None:
    origin, dest = MemoryStore(), MemoryStore()
    root, images = site(origin)
    (referrer,) = origin.referrers(images[0])
    with Registry(Switches(referrers=False, name_unknown=False)) as old, Transfers() as run:
        moved(origin, opened(old), root)
        del old.repository("team/app").manifests[str(referrer.digest)]
        with pytest.raises(NotFound):
            run.plan(opened(old), dest, root, attached=True)
        plan = run.plan(opened(old), dest, root, attached=True, gone_ok=True)
        assert plan.gone == {referrer.digest}
        run.deliver(plan, dest)
        assert list(dest.referrers(images[0])) == []
        assert len(list(dest.referrers(images[1]))) == 1


def test_entries_of_lists_are_limited_for_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert survey.LISTED == 10_000
    origin = MemoryStore()
    root, _ = site(origin)  # two lists of one entry
    monkeypatch.setattr(survey, "LISTED", 2)
    moved(origin, MemoryStore(), root)
    monkeypatch.setattr(survey, "LISTED", 1)
    with pytest.raises(Rejected, match="more than 1 referrers are listed"):
        moved(origin, MemoryStore(), root)


def test_a_warm_copy_writes_nothing_and_sees_what_is_new(server: Registry) -> None:
    origin = MemoryStore()
    root, images = site(origin)
    moved(origin, opened(server), root)
    server.requests.clear()
    with Transfers() as run:
        assert run.copy(origin, opened(server), root, attached=True).copied == 0
    assert not server.lines("^(PUT|POST|PATCH)")
    late = bundle(origin, images[1], b"signed later")
    moved(origin, opened(server), root)
    assert late.digest in {one.digest for one in opened(server).referrers(images[1])}


def test_an_index_without_its_children_is_made_whole() -> None:
    """Registries exist that take one; it is not believed for being there."""
    origin = MemoryStore()
    root, images = site(origin)
    with Registry(Switches(sparse=True)) as server, Transfers() as run:
        first = run.plan(
            origin,
            opened(server),
            root,
            attached=True,
            choose=lambda _: frozenset({images[0].digest}),
        )
        run.deliver(first, opened(server))
        assert first.left_out == {images[1].digest}
        assert images[1].digest not in {part.target.digest for part in first.parts}
        store = opened(server)
        assert store.exists(root)
        with pytest.raises(NotFound):
            store.resolve(str(images[1].digest))
        moved(origin, opened(server), root)
        assert (
            run.missing(run.plan(origin, MemoryStore(), root, attached=True), opened(server)) == ()
        )


def test_attestations_that_an_index_lists_stay_as_they_are() -> None:
    origin, dest = MemoryStore(), MemoryStore()
    real, statement = image(origin, b"real"), image(origin, b"statement")
    entries = [
        {**real.to_dict(), "platform": {"os": "linux", "architecture": "amd64"}},
        {
            **statement.to_dict(),
            "platform": {"os": "unknown", "architecture": "unknown"},
            "annotations": {
                "vnd.docker.reference.type": "attestation-manifest",
                "vnd.docker.reference.digest": str(real.digest),
            },
        },
    ]
    raw = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
    root = put(origin, raw, INDEX)
    assert moved(origin, dest, root)["attestations"] == 1
    assert dest.content[root.digest] == raw


# once


def test_a_signature_that_is_tagged_and_a_referrer_is_one() -> None:
    """Harbor has the same manifest in both places."""
    origin, dest = MemoryStore(), MemoryStore()
    root = image(origin, b"1")
    signature = bundle(origin, root, b"signature")
    origin.tag(signature, tag(root, ".sig"))
    assert moved(origin, dest, root) == {
        "manifests": 1,
        "blobs": 4,
        "signatures": 1,
        "digest tags": 1,
    }
    assert dest.resolve(tag(root, ".sig")) == signature
    assert [one.digest for one in dest.referrers(root)] == [signature.digest]


def test_tags_that_lead_back_end() -> None:
    origin, dest = MemoryStore(), MemoryStore()
    one = image(origin, b"1")
    root = index(origin, one)
    origin.tag(one, tag(one, ".sig"))
    origin.tag(root, tag(one, ".att"))
    origin.tag(root, tag(root, ".sbom"))
    moved(origin, dest, root)
    assert {name: dest.resolve(name) for name in dest.tags()} == {
        tag(one, ".sig"): one,
        tag(one, ".att"): root,
        tag(root, ".sbom"): root,
    }


def test_a_referrer_that_holds_what_it_refers_to_ends() -> None:
    origin, dest = MemoryStore(), MemoryStore()
    root = image(origin, b"1")
    entry = root.to_dict()
    raw = json.dumps(
        {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry], "subject": entry}
    ).encode()
    holder = put(origin, raw, INDEX)
    moved(origin, dest, root)
    assert [one.digest for one in dest.referrers(root)] == [holder.digest]


# not everything that says so


def test_a_fallback_tag_is_never_copied_as_it_is() -> None:
    """`cosign copy` leaves the subject itself under its own fallback tag."""
    origin = MemoryStore()
    root = image(origin, b"1")
    real = bundle(origin, root, b"signature")
    with Registry(Switches(referrers=False, name_unknown=False)) as old:
        copy(origin, opened(old), root, tag=tag(root))
        source, dest = opened(old), MemoryStore()
        moved(source, dest, root)
        assert list(dest.tags()) == []
        assert list(dest.referrers(root)) == []
    with Registry(Switches(referrers=False, name_unknown=False)) as old:
        copy(origin, opened(old), root, tag="v1")
        copy(origin, opened(old), real)
        assert opened(old).resolve(tag(root)).media_type == INDEX
        source, dest = opened(old), MemoryStore()
        moved(source, dest, root)
        assert list(dest.tags()) == []
        assert [one.digest for one in dest.referrers(root)] == [real.digest]


def test_a_registry_that_reads_such_a_tag_as_a_digest_lists_nothing() -> None:
    """GitLab answers with the subject where nobody ever wrote a tag."""
    origin, dest = MemoryStore(), MemoryStore()
    root = image(origin, b"1")
    with Registry(Switches(referrers=False, dash_tag=True, name_unknown=False)) as old:
        copy(origin, opened(old), root, tag="v1")
        assert moved(opened(old), dest, root) == {"manifests": 1, "blobs": 2}


def test_a_thousand_are_attached_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ATTACHED == 1000
    origin = MemoryStore()
    root, _ = site(origin)  # four
    monkeypatch.setattr(survey, "ATTACHED", 4)
    moved(origin, MemoryStore(), root)
    monkeypatch.setattr(survey, "ATTACHED", 3)
    with pytest.raises(Rejected, match="more than 3 manifests are attached"):
        moved(origin, MemoryStore(), root)


def test_what_is_attached_counts_for_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = MemoryStore()
    root, _ = site(origin)
    monkeypatch.setattr(limits, "NODES", len(origin.content))
    moved(origin, MemoryStore(), root)
    monkeypatch.setattr(limits, "NODES", len(origin.content) - 1)
    dest = MemoryStore()
    with pytest.raises(IntegrityError, match="manifests and blobs"):
        moved(origin, dest, root)
    assert not dest.content, "refused before anything was written"


class Refusing(MemoryStore):
    """A store whose listings are refused."""

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        raise StoreError(f"no answer about {subject.digest}")


def test_referrers_that_cannot_be_listed_are_an_error() -> None:
    origin = Refusing()
    root = image(origin, b"1")
    with pytest.raises(StoreError, match="no answer"):
        moved(origin, MemoryStore(), root)


# what stands at the destination


def signed(store: MemoryStore, *texts: bytes) -> Descriptor:
    return image(store, *texts)


def test_a_digest_tag_moves_where_nothing_is_lost(server: Registry) -> None:
    origin = MemoryStore()
    root = image(origin, b"1")
    origin.tag(signed(origin, b"alice"), tag(root, ".sig"))
    moved(origin, opened(server), root)
    both = signed(origin, b"alice", b"bob")
    origin.tag(both, tag(root, ".sig"))
    moved(origin, opened(server), root)
    assert opened(server).resolve(tag(root, ".sig")) == both


def test_a_digest_tag_stays_where_something_would_be_lost(server: Registry) -> None:
    origin, there = MemoryStore(), MemoryStore()
    root = image(origin, b"1")
    origin.tag(signed(origin, b"alice"), tag(root, ".sig"))
    copy(origin, opened(server), root)
    ours = signed(there, b"alice", b"ours")
    copy(there, opened(server), ours, tag=tag(root, ".sig"))
    server.requests.clear()
    with pytest.raises(Rejected, match="other content"):
        moved(origin, opened(server), root)
    assert not server.lines("^(PUT|POST|PATCH)"), "refused before anything was written"
    moved(origin, opened(server), root, overwrite=True)
    assert opened(server).resolve(tag(root, ".sig")) == origin.resolve(tag(root, ".sig"))


def test_the_same_payload_signed_by_another_is_another_signature() -> None:
    origin, dest = MemoryStore(), MemoryStore()
    root = image(origin, b"1")
    for store, who in ((origin, "theirs"), (dest, "ours")):
        layer = put(store, b"payload", "application/vnd.dev.cosign.simplesigning.v1+json")
        config = put(store, b"{}", "application/vnd.oci.image.config.v1+json")
        entry = {**layer.to_dict(), "annotations": {"dev.cosignproject.cosign/signature": who}}
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config.to_dict()}
        made = put(store, json.dumps({**document, "layers": [entry]}).encode(), MANIFEST)
        store.tag(made, tag(root, ".sig"))
    with pytest.raises(Rejected, match="other content"):
        moved(origin, dest, root)


def test_a_tag_written_in_between_is_seen(server: Registry) -> None:
    """What others wrote after the plan was made, where they could have, is not replaced."""
    origin, there = MemoryStore(), MemoryStore()
    root = image(origin, b"1")
    origin.tag(signed(origin, b"alice"), tag(root, ".sig"))
    copy(origin, opened(server), root, tag="v1")
    with Transfers() as run:
        dest = opened(server)
        plan = run.plan(origin, dest, root, attached=True)
        ours = signed(there, b"ours")
        copy(there, opened(server), ours, tag=tag(root, ".sig"))
        with pytest.raises(Rejected, match="points at"):
            run.deliver(plan, dest)
    assert opened(server).resolve(tag(root, ".sig")) == ours


# the last look


def test_a_registry_that_takes_referrers_and_lists_none_is_found_out() -> None:
    origin = MemoryStore()
    root = image(origin, b"1")
    bundle(origin, root, b"signature")
    with Registry() as server:
        listing = Fault(
            "GET .*/referrers/",
            status=200,
            headers={"Content-Type": INDEX},
            body=json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}).encode(),
        )
        server.switches.faults = [listing]
        with pytest.raises(StoreError, match="not in the list of referrers"):
            moved(origin, opened(server), root, tag="v1")
        assert "v1" not in server.repository("team/app").tags
        listing.seen, listing.times = 0, 2  # a listing that comes late
        moved(origin, opened(server), root, tag="v1")


class Losing(MemoryStore):
    """Takes tags, and has some of them no more."""

    def tag(self, target: Descriptor, name: str, **how: Any) -> None:
        super().tag(target, name, **how)
        if name.endswith(".sig"):
            del self.names[name]


def test_a_digest_tag_that_is_lost_is_found_out() -> None:
    origin = MemoryStore()
    root, _ = site(origin)
    with pytest.raises(StoreError, match="nothing there now"):
        moved(origin, Losing(), root)


def test_missing_says_what_is_not_there() -> None:
    origin, dest = MemoryStore(), MemoryStore()
    root, images = site(origin)
    with Transfers() as run:
        plan = run.plan(origin, MemoryStore(), root, attached=True)
        assert set(run.missing(plan, dest)) == set(plan.parts) == set(plan.missing)
        run.copy(origin, dest, root, attached=True)
        assert run.missing(plan, dest) == ()

        def lacks(*, names: list[str], content: list[Digest]) -> tuple[Part, ...]:
            there = MemoryStore()
            there.content = {d: c for d, c in dest.content.items() if d not in content}
            there.manifests = {d: m for d, m in dest.manifests.items() if d not in content}
            there.names = {n: m for n, m in dest.names.items() if n not in names}
            return run.missing(plan, there)

        (lost,) = lacks(names=[tag(images[0], ".sig")], content=[])
        assert (lost.name, lost.kind) == (tag(images[0], ".sig"), Kind.SIGNATURE)
        (referrer,) = list(dest.referrers(images[1]))
        (lost,) = lacks(names=[], content=[referrer.digest])
        assert (lost.target.digest, lost.subject) == (referrer.digest, images[1])
        blob = next(part for part in plan.parts if part.kind is Kind.BLOB).target
        assert blob in {part.target for part in lacks(names=[], content=[blob.digest])}


class Forgetful(MemoryStore):
    """Has everything, and lists nothing."""

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:  # noqa: ARG002 - the protocol
        return iter(())


def test_missing_says_what_is_not_listed() -> None:
    origin, dest = MemoryStore(), Forgetful()
    root, images = site(origin)
    with Transfers() as run:
        plan = run.plan(origin, MemoryStore(), root, attached=True)
        run.copy(origin, dest, root, attached=True)
        lost = run.missing(plan, dest)
    assert {part.subject for part in lost} == set(images)


# what it is called


@pytest.mark.parametrize(
    ("artifact_type", "annotations", "kind"),
    [
        (BUNDLE, {PREDICATE: SIGN}, Kind.SIGNATURE),
        (BUNDLE, {"dev.sigstore.bundle.content": "message-signature"}, Kind.SIGNATURE),
        (BUNDLE, {PREDICATE: "https://slsa.dev/provenance/v1"}, Kind.ATTESTATION),
        (BUNDLE, {}, Kind.ATTESTATION),
        ("application/vnd.cncf.notary.signature", {}, Kind.SIGNATURE),
        ("application/vnd.dev.cosign.artifact.sig.v1+json", {}, Kind.SIGNATURE),
        ("application/vnd.in-toto+json", {}, Kind.ATTESTATION),
        ("application/spdx+json", {}, Kind.SBOM),
        ("application/vnd.cyclonedx+json", {}, Kind.SBOM),
        ("application/vnd.example.scan", {}, Kind.REFERRER),
        ("", {}, Kind.REFERRER),
    ],
)
def test_kinds(artifact_type: str, annotations: dict[str, str], kind: Kind) -> None:
    digest = Digest("sha256", "0" * 64)
    assert attached_kind(Descriptor(MANIFEST, digest, 1, annotations, artifact_type)) is kind


def test_kinds_of_entries() -> None:
    digest = Digest("sha256", "0" * 64)
    said = {"vnd.docker.reference.type": "attestation-manifest"}
    assert child_kind(Descriptor(MANIFEST, digest, 1, said)) is Kind.ATTESTATION
    assert child_kind(Descriptor(MANIFEST, digest, 1)) is Kind.MANIFEST
    assert child_kind(Descriptor(INDEX, digest, 1)) is Kind.INDEX
    assert child_kind(Descriptor("text/plain", digest, 1, said)) is Kind.BLOB


def test_signatures_are_those_of_the_root() -> None:
    origin = MemoryStore()
    root, images = site(origin)

    def plan() -> Plan:
        with Transfers() as run:
            return run.plan(origin, MemoryStore(), root, attached=True)

    assert plan().signatures == (), "those of the entries do not count"
    bundle(origin, root, b"for all")
    origin.tag(image(origin, b"legacy"), tag(root, ".sig"))
    origin.tag(image(origin, b"a statement"), tag(root, ".att"))
    assert len(plan().signatures) == 2
    assert images


def test_an_untrue_subject_is_not_listed_twice() -> None:
    """The manifest decides what it refers to, not the listing that shows it."""

    class Lying(Double):
        def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
            return iter([*self.inner.referrers(subject), stranger])

    origin, dest = MemoryStore(), MemoryStore()
    root, other = image(origin, b"1"), image(origin, b"2")
    stranger = bundle(origin, other, b"of the other")
    moved(Lying(origin), dest, root)
    assert Manifest(origin.content[stranger.digest], MANIFEST).subject is not None
    assert stranger.digest not in dest.content
