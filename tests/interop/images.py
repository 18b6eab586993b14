"""What is copied where copying is counted and timed, and whether all of it arrived."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from interop.wire import CONFIG, INDEX, LAYER, MANIFEST, Repository

MIB = 1024 * 1024
EMPTY = "application/vnd.oci.empty.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
_SIGNS = {"dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1"}
_PLATFORMS = ("amd64", "arm64/v8", "arm/v7", "arm/v6", "386", "ppc64le", "s390x", "riscv64")


@dataclass(slots=True)
class Wanted:
    """What a copy must bring: `jobs` are `repository:tag`; the rest is (repository, …) each.

    `attached` are digests of manifests that are there as signatures, attestations or referrers.
    """

    jobs: list[str] = field(default_factory=list)
    manifests: list[tuple[str, str]] = field(default_factory=list)
    blobs: list[tuple[str, str, int]] = field(default_factory=list)
    tags: list[tuple[str, str, str]] = field(default_factory=list)
    referrers: list[tuple[str, str, str]] = field(default_factory=list)
    attached: set[str] = field(default_factory=set)


def noise(seed: str, size: int) -> bytes:
    """Make bytes that do not compress, the same in every run."""
    return hashlib.shake_128(seed.encode()).digest(size)


class Writer:
    """Puts images into one registry and notes what it put."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.wanted = Wanted()

    def blob(self, name: str, data: bytes, media_type: str) -> dict[str, Any]:
        """Put a blob into the repository `name`; return its descriptor."""
        made = Repository(self.host, name).put_blob(data)
        self.wanted.blobs.append((name, made["digest"], made["size"]))
        return {"mediaType": media_type, **made}

    def big(self, name: str, mib: int) -> dict[str, Any]:
        """Put one blob of so many MiB, which is never held whole."""
        hasher = hashlib.sha256()
        for number in range(mib):
            hasher.update(noise(f"big-{number}", MIB))
        digest = f"sha256:{hasher.hexdigest()}"
        at = Repository(self.host, name)
        where = at.ask("POST", "blobs/uploads/", b"")[2]["Location"]
        path = where.partition(self.host)[2] or where
        connection = http.client.HTTPConnection(self.host)
        connection.request(
            "PUT",
            f"{path}{'&' if '?' in path else '?'}digest={digest}",
            (noise(f"big-{number}", MIB) for number in range(mib)),
            {"Content-Length": str(mib * MIB), "Content-Type": "application/octet-stream"},
        )
        answer = connection.getresponse()
        assert answer.status == http.HTTPStatus.CREATED, answer.read()
        connection.close()
        self.wanted.blobs.append((name, digest, mib * MIB))
        return {"mediaType": LAYER, "digest": digest, "size": mib * MIB}

    def put(self, name: str, document: dict[str, Any], tag: str = "") -> dict[str, Any]:
        """Put a manifest or index, under a tag if one is given; return its descriptor."""
        digest = Repository(self.host, name).put_manifest(document, tag)
        self.wanted.manifests.append((name, digest))
        if tag:
            self.wanted.tags.append((name, tag, digest))
        size = len(json.dumps(document, separators=(",", ":")).encode())
        return {"mediaType": document["mediaType"], "digest": digest, "size": size}

    def image(
        self, name: str, layers: list[dict[str, Any]], tag: str = "", **config: Any
    ) -> dict[str, Any]:
        """Put an image of `layers`, with a config of its own."""
        said = {"architecture": "amd64", "os": "linux", "layers": layers, **config}
        made = self.blob(name, json.dumps(said).encode(), CONFIG)
        document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": made, "layers": layers}
        return self.put(name, document, tag)

    def referrer(self, name: str, subject: dict[str, Any], kind: str) -> dict[str, Any]:
        """Attach something of the type `kind` to `subject`."""
        config = self.blob(name, b"{}", EMPTY)
        layer = self.blob(name, f'{{"about":"{subject["digest"]}"}}'.encode(), kind)
        made = self.put(
            name,
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "artifactType": kind,
                "config": config,
                "layers": [layer],
                "subject": subject,
                "annotations": _SIGNS if kind == BUNDLE else {},
            },
        )
        self.wanted.referrers.append((name, subject["digest"], made["digest"]))
        self.wanted.attached.add(made["digest"])
        return made

    def tagged(self, name: str, subject: dict[str, Any], suffix: str) -> None:
        """Attach something to `subject` by a digest tag, as cosign does."""
        text = f'{{"critical":"{subject["digest"]}{suffix}"}}'.encode()
        layer = self.blob(name, text, "application/vnd.dev.cosign.simplesigning.v1+json")
        tag = subject["digest"].replace(":", "-") + suffix
        made = self.image(name, [layer], tag, of=subject["digest"], **{"as": suffix})
        self.wanted.attached.add(made["digest"])


def layer(writer: Writer, mib: int) -> None:
    """Put one image with one layer of so many MiB."""
    writer.image("a/big", [writer.big("a/big", mib)], "v1")
    writer.wanted.jobs = ["a/big:v1"]


def shared(writer: Writer, images: int, size: int) -> None:
    """Put images in repositories of their own: of eight layers four are the same for all."""
    for number in range(images):
        name = f"b/app-{number:02}"
        seeds = [f"base-{n}" for n in range(4)] + [f"own-{number}-{n}" for n in range(4)]
        layers = [writer.blob(name, noise(seed, size), LAYER) for seed in seeds]
        writer.image(name, layers, "v1")
        writer.wanted.jobs.append(f"{name}:v1")


def index(writer: Writer, size: int) -> None:
    """Put an index of eight platforms and sixteen attestations, each signed in both forms."""
    name, children = "c/multi", []
    for said in _PLATFORMS:
        architecture, _, variant = said.partition("/")
        runs = {"architecture": architecture, "os": "linux"}
        runs |= {"variant": variant} if variant else {}
        seeds = ("shared", f"one-{said}", f"two-{said}")
        layers = [writer.blob(name, noise(seed, size), LAYER) for seed in seeds]
        image = writer.image(name, layers, **runs)
        children.append({**image, "platform": runs})
        for number in range(2):
            text = f'{{"statement":"{said}-{number}"}}'.encode()
            statement = writer.blob(name, text, "application/vnd.in-toto+json")
            made = writer.image(name, [statement], architecture="unknown", os="unknown")
            about = {
                "vnd.docker.reference.type": "attestation-manifest",
                "vnd.docker.reference.digest": image["digest"],
            }
            nothing = {"architecture": "unknown", "os": "unknown"}
            children.append({**made, "annotations": about, "platform": nothing})
    plain = [{key: child[key] for key in ("mediaType", "digest", "size")} for child in children]
    document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": children}
    root = writer.put(name, document, "v1")
    for subject in (root, *plain):
        made = writer.referrer(name, subject, BUNDLE)
        writer.tagged(name, subject, ".sig")
        if subject is root:
            writer.referrer(name, made, "application/spdx+json")
            writer.tagged(name, root, ".att")
    writer.wanted.jobs = [f"{name}:v1"]


def tags(writer: Writer, count: int) -> None:
    """Put small images under so many tags of one repository."""
    base = writer.blob("d/many", noise("base", 4096), LAYER)
    for number in range(count):
        own = writer.blob("d/many", noise(f"own-{number}", 1024), LAYER)
        writer.image("d/many", [base, own], f"t{number:03}")
        writer.wanted.jobs.append(f"d/many:t{number:03}")


def lost(host: str, wanted: Wanted) -> Iterator[str]:
    """Yield what of `wanted` is not at `host`, by kind: `referrers 0/26`; nothing if all is."""
    for kind, checks in _checks(host, wanted).items():
        there = sum(checks)
        if there < len(checks):
            yield f"{kind} {there}/{len(checks)}"


def _checks(host: str, wanted: Wanted) -> dict[str, list[bool]]:
    found: dict[str, list[bool]] = {}

    def note(kind: str, *, there: bool) -> None:
        found.setdefault(kind, []).append(there)

    for name, digest in wanted.manifests:
        kind = "attached" if digest in wanted.attached else "manifests"
        note(kind, there=Repository(host, name).digest(digest) == digest)
    for name, digest, size in wanted.blobs:
        there = Repository(host, name)
        if size > 8 * MIB:  # what the registry took it has hashed
            note("blobs", there=there.has_blob(digest))
        else:
            status, data, _ = there.ask("GET", f"blobs/{digest}")
            same = f"sha256:{hashlib.sha256(data).hexdigest()}" == digest
            note("blobs", there=status == http.HTTPStatus.OK and same)
    for name, tag, digest in wanted.tags:
        kind = "digest tags" if tag.startswith("sha256-") else "tags"
        note(kind, there=Repository(host, name).digest(tag) == digest)
    listings: dict[tuple[str, str], set[str]] = {}
    for name, subject, digest in wanted.referrers:
        if (name, subject) not in listings:
            listings[name, subject] = _listed(Repository(host, name), subject)
        note("referrers", there=digest in listings[name, subject])
    return found


def _listed(there: Repository, subject: str) -> set[str]:
    status, body, headers = there.ask("GET", f"referrers/{subject}")
    if status != http.HTTPStatus.OK or headers.get("Content-Type", "") != INDEX:
        status, body, _ = there.ask("GET", f"manifests/{subject.replace(':', '-')}", Accept=INDEX)
    if status != http.HTTPStatus.OK:
        return set()
    return {entry["digest"] for entry in json.loads(body).get("manifests") or ()}
