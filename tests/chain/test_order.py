"""The order of delivery, seen from the store: what is written when, and what stops it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import EllipsisType
from typing import Any

import pytest

from ocipack.errors import Rejected, Unavailable
from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source
from ocipack.pack import pack
from ocipack.report import Finding, Report
from ocipack.ship import ship
from ocipack.stores.memory import MemoryStore
from ocipack.tree.tree import File, Tree
from ocipack.trust.keys import PrivateKey
from ocipack.trust.policy import Policy
from ocipack.verify import verify

REFERENCE = Reference.parse("registry.example/team/app:stable")
KEY = PrivateKey.generate(lambda n: b"\x07" * n)


class Watched(MemoryStore):
    """A store that notes every write, and fails at the n-th if told so."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []
        self.fail_at = -1

    def _note(self, what: str) -> None:
        if len(self.writes) == self.fail_at:
            raise Unavailable(f"no room for {what}")
        self.writes.append(what)

    def push(self, target: Descriptor, source: Source) -> None:
        self._note("manifest" if target.is_manifest else "blob")
        super().push(target, source)

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        self._note(f"tag {name}")
        super().tag(target, name, was=was)


class Silent:
    def say(self, text: str) -> None:
        assert text


@contextmanager
def watch(_: str) -> Iterator[Silent]:
    yield Silent()


def made(content: bytes = b"kind: A\n") -> Artifact:
    return pack(Tree({"a.yaml": File.of(content)}), spool=b"".join)


def deliver(store: MemoryStore, artifact: Artifact, **options: Any) -> Any:
    return ship(
        store,
        REFERENCE,
        pack=lambda: artifact,
        check=options.pop("check", lambda _: Report()),
        signer=KEY,
        policy=Policy((KEY.public,)),
        watch=watch,
        **options,
    )


def test_tags_come_last_the_moving_one_at_the_very_end() -> None:
    store, artifact = Watched(), made()
    deliver(store, artifact)
    digest = artifact.root.digest
    names = [write for write in store.writes if write.startswith("tag ")]
    assert names == [
        f"tag sha256-{digest.hex}.sig",
        f"tag stable-{digest.hex[:12]}",
        "tag stable",
    ]
    assert store.writes[-2:] == names[-2:]
    assert store.writes.index("manifest") > store.writes.index("blob")


def test_wherever_a_write_fails_no_tag_names_anything_unsigned() -> None:
    whole = Watched()
    deliver(whole, made())
    for number in range(len(whole.writes)):
        store, artifact = Watched(), made()
        store.fail_at = number
        with pytest.raises(Unavailable):
            deliver(store, artifact)
        for name in ("stable", f"stable-{artifact.root.digest.short}"):
            if name in store.names:
                proof = verify(
                    store, REFERENCE.at(store.resolve(name).digest), Policy((KEY.public,))
                )
                assert proof.descriptor.digest == artifact.root.digest
        store.fail_at = -1
        assert deliver(store, artifact).verified is not None


def test_nothing_is_written_when_the_check_says_no_or_raises() -> None:
    store = Watched()
    report = Report((Finding("bad", "no"),))
    with pytest.raises(Rejected) as caught:
        deliver(store, made(), check=lambda _: report)
    assert caught.value.report is report

    def outside(_: Artifact) -> Report:
        raise Rejected("names something outside")

    with pytest.raises(Rejected, match="outside"):
        deliver(store, made(), check=outside)
    assert store.writes == []


def test_a_dry_run_writes_nothing() -> None:
    store = Watched()
    done = deliver(store, made(), dry_run=True)
    assert (store.writes, done.verified, done.unchanged) == ([], None, False)


def test_unchanged_needs_the_signature_to_hold_now() -> None:
    store, artifact = Watched(), made()
    deliver(store, artifact)
    count = len(store.writes)
    assert deliver(store, artifact).unchanged
    assert len(store.writes) == count
    stranger = Policy((PrivateKey.generate(lambda n: b"\x09" * n).public,))
    done = ship(
        store,
        REFERENCE,
        pack=lambda: artifact,
        check=lambda _: Report(),
        signer=PrivateKey.generate(lambda n: b"\x09" * n),
        policy=stranger,
        watch=watch,
    )
    assert not done.unchanged
    assert done.signed is not None


def test_what_has_lost_a_blob_is_delivered_again() -> None:
    store, artifact = Watched(), made()
    deliver(store, artifact)
    (layer,) = artifact.manifest.layers
    del store.content[layer.digest]
    done = deliver(store, artifact, content=True)
    assert not done.unchanged
    assert layer.digest in store.content
    assert deliver(store, artifact, content=True).unchanged


def test_a_tag_moved_during_the_run_is_not_overwritten() -> None:
    store, other = Watched(), made(b"kind: B\n")
    deliver(store, other)
    third = made(b"kind: C\n")
    deliver(store, third)

    def meanwhile(_: Artifact) -> Report:
        MemoryStore.tag(store, other.root, "stable")
        return Report()

    with pytest.raises(Rejected):
        deliver(store, made(b"kind: D\n"), check=meanwhile)
    assert store.resolve("stable") == other.root


def test_a_tag_moved_during_the_run_is_not_unchanged() -> None:
    store, artifact, other = Watched(), made(), made(b"kind: B\n")
    deliver(store, other)
    deliver(store, artifact)

    def meanwhile(_: Artifact) -> Report:
        MemoryStore.tag(store, other.root, "stable")
        return Report()

    with pytest.raises(Rejected, match="was moved during this run"):
        deliver(store, artifact, check=meanwhile)
    assert store.resolve("stable") == other.root


@pytest.mark.parametrize(("revision", "unchanged"), [("main", True), ("main-dirty", False)])
def test_content_of_a_dirty_tree_gives_way_to_the_same_from_a_commit(
    revision: str,
    unchanged: bool,  # noqa: FBT001 - a column of the table
) -> None:
    key, commit = "org.opencontainers.image.revision", "@sha1:" + "a" * 40
    tree, store = Tree({"a.yaml": File.of(b"kind: A\n")}), Watched()
    deliver(store, pack(tree, spool=b"".join, annotations={key: revision + commit}))
    clean = pack(tree, spool=b"".join, annotations={key: "main@sha1:" + "b" * 40})
    assert deliver(store, clean).unchanged == unchanged


def test_an_immutable_tag_that_names_something_else_stops_the_run() -> None:
    store, other, artifact = Watched(), made(b"kind: B\n"), made()
    deliver(store, other)
    MemoryStore.tag(store, other.root, f"stable-{artifact.root.digest.short}")
    with pytest.raises(Rejected, match="never moves"):
        deliver(store, artifact)
    assert store.resolve("stable") == other.root
