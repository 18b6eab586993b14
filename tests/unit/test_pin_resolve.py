"""Each reference is asked for once; what a source says is bounded and typed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ocipack.errors import IntegrityError, Misuse, NotFound, Unavailable
from ocipack.lock import Attached, Entry, Platform
from ocipack.oci.descriptor import INDEX, MANIFEST, Descriptor
from ocipack.oci.digest import DIGEST_TAGS, Digest
from ocipack.oci.reference import Reference
from ocipack.pin import resolve
from ocipack.pin.mirrors import Mirrors

A, B = Reference.parse("r.io/a:1"), Reference.parse("r.io/b:1")
CHILD = {"mediaType": MANIFEST, "digest": "sha256:" + "1" * 64, "size": 5}


class Source:
    """One manifest under every tag but those that end in `.sig`, `.att`, `.sbom`."""

    def __init__(
        self, document: dict[str, Any], media_type: str = INDEX, tags: tuple[str, ...] = ()
    ) -> None:
        self.raw = json.dumps({"schemaVersion": 2, "mediaType": media_type, **document}).encode()
        self.found = Descriptor.of(media_type, self.raw)
        self.tags = tags
        self.listed: list[Descriptor] = []

    def resolve(self, name: str) -> Descriptor:
        if name.endswith(DIGEST_TAGS) and not name.endswith(self.tags or ("-",)):
            raise NotFound(name)
        return self.found

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        assert target == self.found
        yield self.raw

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        assert subject == self.found
        return iter(self.listed)


def test_each_is_asked_once_and_an_error_is_an_answer() -> None:
    asked: list[str] = []
    lock = threading.Lock()

    def ask(reference: Reference) -> str:
        with lock:
            asked.append(str(reference))
        if reference == B:
            raise Unavailable("down")
        return "yes"

    found = resolve.each([A, B, A, A, B], ask)
    assert sorted(asked) == [str(A), str(B)]
    assert found[A] == "yes"
    assert isinstance(found[B], Unavailable)
    assert resolve.each([], ask) == {}


def test_a_bug_is_no_answer() -> None:
    def ask(_: Reference) -> str:
        raise KeyError

    with pytest.raises(KeyError):
        resolve.each([A], ask)


def test_what_is_no_manifest_is_refused() -> None:
    with pytest.raises(IntegrityError, match="is not an image"):
        resolve.resolve(Source({}, "application/octet-stream"), A)


def test_an_index_is_recorded_with_its_platforms_and_what_is_attached() -> None:
    odd = [{"os": "linux", "architecture": "arm", "variant": "v7"}, "no", {"os": 5}, None]
    entries = [{**CHILD, "platform": platform} for platform in odd] + [CHILD]
    source = Source({"manifests": entries}, tags=(".sig",))
    source.listed = [Descriptor(MANIFEST, Digest("sha256", "2" * 64), 1, artifact_type="x/y")]
    found = resolve.record(source, A.at(source.found.digest), "image")
    child = Digest.parse(str(CHILD["digest"]))
    assert found.reference == A
    assert found.content == source.found
    assert found.platforms == (
        Platform("", "", "", child, 5),
        Platform("linux", "arm", "v7", child, 5),
    )
    sig = f"sha256-{source.found.digest.hex}.sig"
    assert found.attached == (
        Attached("referrer", "", "x/y", Digest("sha256", "2" * 64)),
        Attached("tag", sig, "", source.found.digest),
    )


def test_the_type_of_an_artifact_is_recorded_and_an_images_is_not() -> None:
    config = {
        "mediaType": "application/vnd.cncf.helm.config.v1+json",
        **{k: CHILD[k] for k in ("digest", "size")},
    }
    source = Source({"config": config, "layers": []}, MANIFEST)
    assert resolve.record(source, A, "artifact").artifact_type == config["mediaType"]
    assert resolve.record(source, A, "image").artifact_type == ""


def test_what_is_attached_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "ATTACHED", 2)
    source = Source({"manifests": []})
    source.listed = [Descriptor(MANIFEST, Digest("sha256", f"{n:064x}"), 1) for n in range(3)]
    with pytest.raises(IntegrityError, match="more than 2"):
        resolve.record(source, A, "image")


def test_a_lock_answers_with_one_digest_or_not_at_all() -> None:
    one = Entry(A, Descriptor(INDEX, Digest("sha256", "1" * 64), 1))
    other = Entry(A, Descriptor(INDEX, Digest("sha256", "2" * 64), 1))
    assert resolve.answered([one], A) == one.content
    with pytest.raises(NotFound):
        resolve.answered([], A)
    with pytest.raises(Misuse, match="several"):
        resolve.answered([one, other], A)


@pytest.mark.parametrize(
    ("reference", "where"),
    [
        ("docker.io/library/nginx:1", "m.io/hub/library/nginx:1"),
        ("ghcr.io/team/app:1", "m.io/team/app:1"),
        ("ghcr.io/team", "m.io/team"),
        ("ghcr.io/teams/app:1", "ghcr.io/teams/app:1"),
        ("ghcr.io/other", "ghcr.io/other"),
        ("ghcr.io/team/deep/x@sha256:" + "1" * 64, "n.io/x@sha256:" + "1" * 64),
    ],
)
def test_the_longest_name_of_a_map_wins(reference: str, where: str) -> None:
    text = b"ghcr.io/team: m.io/team\ndocker.io: m.io/hub\nghcr.io/team/deep: n.io\n"
    found = Mirrors.parse(text, file="m.yaml").where(Reference.parse(reference))
    assert str(found) == where
