"""A repository in which signatures of every sort, good and bad, can be put in their places.

The documents are written out here, from the formats' own texts, so that no test compares our
writer with our reader.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ocipack.oci.artifact import Artifact
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.manifest import Manifest
from ocipack.oci.reference import Reference
from ocipack.stores.memory import MemoryStore
from ocipack.trust.keys import PrivateKey, PublicKey

VECTORS = Path(__file__).parent / "vectors" / "cosign"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"
ANNOTATION = "dev.cosignproject.cosign/signature"
SIGN = "https://sigstore.dev/cosign/sign/v1"
REFERENCE = Reference.parse("registry.example.com/team/app:v1")
ZERO = "sha256:" + "0" * 64


@cache
def key(name: str) -> PrivateKey:
    """A key of our own for each name; new in every run, so that nobody else has it."""
    assert name
    return PrivateKey.generate(os.urandom)


def published(name: str) -> PublicKey:
    """A public key of the vectors."""
    return PublicKey.parse((VECTORS / "keys" / f"{name}.pub").read_bytes())


def text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def compact(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


class Place(MemoryStore):
    """A store that lists what it is told to, and fails where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.hearsay: list[Descriptor] = []
        self.broken: dict[str, Exception] = {}
        self.log: list[str] = []

    def resolve(self, name: str) -> Descriptor:
        self._meet("resolve", name)
        return super().resolve(name)

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        self._meet("fetch", str(target.digest))
        return super().fetch(target)

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        self._meet("referrers", "referrers")
        yield from super().referrers(subject)
        yield from self.hearsay

    def push(self, target: Descriptor, source: Any) -> None:
        self._meet("push", str(target.digest))
        super().push(target, source)

    def tag(self, target: Descriptor, name: str, *, was: Any = ...) -> None:
        self._meet("tag", name)
        super().tag(target, name, was=was)

    def _meet(self, what: str, name: str) -> None:
        self.log.append(f"{what} {name}")
        for at in (name, f"{what} {name}"):
            if at in self.broken:
                raise self.broken[at]


class World:
    """A place with one artifact, `subject`, under the tag v1."""

    def __init__(self) -> None:
        self.store = Place()
        self.subject = self.image("v1")
        self.layers: list[dict[str, Any]] = []

    def image(self, name: str) -> Descriptor:
        config, layer = b"{}", f"content of {name}".encode()
        return self.put(
            {
                "schemaVersion": 2,
                "mediaType": OCI_MANIFEST,
                "config": self.blob("application/vnd.oci.empty.v1+json", config),
                "layers": [self.blob("application/octet-stream", layer)],
            },
            tag=name,
        )

    def blob(self, media_type: str, data: bytes) -> dict[str, Any]:
        descriptor = Descriptor.of(media_type, data)
        self.store.content[descriptor.digest] = data
        return descriptor.to_dict()

    def put(self, document: dict[str, Any], *, tag: str = "") -> Descriptor:
        manifest = Manifest(compact(document), document["mediaType"])
        self.store.content[manifest.descriptor.digest] = manifest.raw
        self.store.manifests[manifest.descriptor.digest] = manifest.descriptor
        if tag:
            self.store.names[tag] = manifest.descriptor
        return manifest.descriptor

    @property
    def tag(self) -> str:
        return f"sha256-{self.subject.digest.hex}.sig"

    def payload(self, digest: str = "", **members: Any) -> bytes:
        critical = {
            "identity": {"docker-reference": "registry.example.com/team/app"},
            "image": {"docker-manifest-digest": digest or str(self.subject.digest)},
            "type": "cosign container image signature",
        }
        return compact({"critical": critical, "optional": None} | members)

    def layer(
        self,
        payload: bytes = b"",
        *,
        by: str = "alice",
        proof: str | None = "",
        media_type: str = SIMPLE,
        stored: bytes = b"",
    ) -> Descriptor:
        """Add a layer to the `.sig` manifest; `proof` None leaves the annotation out."""
        payload = payload or self.payload()
        node = self.blob(media_type, stored or payload)
        if proof is not None:
            node["annotations"] = {ANNOTATION: proof or text(key(by).sign(payload))}
        self.layers.append(node)
        return self.put(
            {
                "schemaVersion": 2,
                "mediaType": OCI_MANIFEST,
                "config": self.blob("application/vnd.oci.image.config.v1+json", b'{"a":1}'),
                "layers": self.layers,
            },
            tag=self.tag,
        )

    def statement(self, *, without: tuple[str, ...] = (), **members: Any) -> bytes:
        document = {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": self.subject.digest.hex}, "annotations": {}}],
            "predicateType": SIGN,
            "predicate": {},
        } | members
        return compact({name: value for name, value in document.items() if name not in without})

    def envelope(
        self,
        payload: bytes = b"",
        *,
        by: str = "alice",
        kind: str = "application/vnd.in-toto+json",
        proofs: list[bytes] | None = None,
    ) -> dict[str, Any]:
        payload = payload or self.statement()
        if proofs is None:
            proofs = [key(by).sign(pae(kind, payload))]
        return {
            "payload": text(payload),
            "payloadType": kind,
            "signatures": [{"sig": text(proof)} for proof in proofs],
        }

    def document(
        self, envelope: dict[str, Any] | None = None, *, by: str = "alice"
    ) -> dict[str, Any]:
        hint = text(hashlib.sha256(key(by).public.spki).digest())
        return {
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": hint}},
            "dsseEnvelope": envelope or self.envelope(by=by),
        }

    def attach(
        self,
        bundle: dict[str, Any] | bytes | None = None,
        *,
        by: str = "alice",
        layer_type: str = BUNDLE,
        to: Descriptor | None = None,
        more: dict[str, Any] | None = None,
        layers: int = 1,
    ) -> Descriptor:
        """Attach a bundle; with `to` its manifest names that subject and is merely listed here."""
        raw = bundle if isinstance(bundle, bytes) else compact(bundle or self.document(by=by))
        document = {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": self.blob("application/vnd.oci.empty.v1+json", b"{}"),
            "layers": [self.blob(layer_type, raw)] * layers,
            "annotations": {
                "dev.sigstore.bundle.content": "dsse-envelope",
                "dev.sigstore.bundle.predicateType": SIGN,
            },
            "subject": (to or self.subject).to_dict(),
            "artifactType": BUNDLE,
        } | (more or {})
        document = {name: value for name, value in document.items() if value is not None}
        descriptor = self.put(document)
        if to is not None:
            self.store.hearsay.append(descriptor)
        return descriptor

    def listed(self, descriptor: Descriptor) -> Descriptor:
        """List `descriptor` as a referrer, whatever it is."""
        self.store.hearsay.append(descriptor)
        return descriptor

    def unlisted(self, descriptor: Descriptor) -> Descriptor:
        """Keep the content of `descriptor`, but forget that it is a manifest."""
        del self.store.manifests[descriptor.digest]
        return descriptor

    def sign(self, statement: bytes, *, by: str = "alice", **members: Any) -> Descriptor:
        """Attach a well-signed bundle of `statement`."""
        return self.attach(self.document(self.envelope(statement, by=by), by=by) | members, by=by)


def pae(kind: str, payload: bytes) -> bytes:
    return b" ".join(
        [b"DSSEv1", str(len(kind)).encode(), kind.encode(), str(len(payload)).encode(), payload]
    )


class LayoutDouble(Place):
    """An OCI layout read into memory; the fallback tag counts as a listing of referrers."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        for path in (root / "blobs" / "sha256").iterdir():
            self.content[Digest("sha256", path.name)] = path.read_bytes()
        index = json.loads((root / "index.json").read_bytes())
        for node in index["manifests"]:
            found = Descriptor.from_dict(node)
            self.manifests[found.digest] = found.plain
            name = found.annotations.get("org.opencontainers.image.ref.name")
            if name:
                self.names[name] = found.plain
        for index_root in [d for d in self.manifests.values() if d.media_type == OCI_INDEX]:
            for entry in json.loads(self.content[index_root.digest])["manifests"]:
                child = Descriptor.from_dict(entry)
                self.manifests[child.digest] = child.plain

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:
        listing = self.names.get(f"sha256-{subject.digest.hex}")
        if listing is None:
            yield from super().referrers(subject)
            return
        document = json.loads(self.content[listing.digest])
        for node in document.get("manifests", [listing.to_dict()]):
            yield Descriptor.from_dict(node)


def pushed(artifact: Artifact, store: MemoryStore) -> None:
    """Push `artifact` whole."""
    for child in artifact.manifest.children:
        store.push(child, artifact)
    store.push(artifact.root, artifact)
