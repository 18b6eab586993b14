"""What a registry really holds, read with nothing of ours: plain requests, plain JSON."""

from __future__ import annotations

import hashlib
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
BUNDLE = "application/vnd.dev.sigstore.bundle"
SIGNATURE = "dev.cosignproject.cosign/signature"
_ACCEPT = f"{MANIFEST}, {INDEX}, application/vnd.docker.distribution.manifest.v2+json"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of a registry on loopback."""

    host: str
    name: str

    def __str__(self) -> str:
        return f"{self.host}/{self.name}"

    @property
    def place(self) -> str:
        """How ocipack is told of it."""
        return f"oci://{self}"

    def ask(
        self, method: str, tail: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        """Ask for `/v2/<name>/<tail>`, or for an absolute URL."""
        url = tail if "://" in tail else f"http://{self.host}/v2/{self.name}/{tail}"
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read(), dict(answer.headers)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read(), dict(refusal.headers)

    def raw(self, name: str) -> bytes | None:
        """Read the manifest that a tag or digest names; None if there is none."""
        status, body, _ = self.ask("GET", f"manifests/{name}", Accept=_ACCEPT)
        assert status in {200, 404}, (status, body)
        return body if status == 200 else None

    def manifest(self, name: str) -> dict[str, Any]:
        """Read a manifest that is there."""
        raw = self.raw(name)
        assert raw is not None, f"{self}: no {name}"
        document: dict[str, Any] = json.loads(raw)
        return document

    def digest(self, tag: str) -> str:
        """Hash what a tag names; empty if there is no such tag."""
        raw = self.raw(tag)
        return "" if raw is None else digest(raw)

    def tags(self) -> list[str]:
        """List the tags."""
        status, body, _ = self.ask("GET", "tags/list")
        return sorted(json.loads(body)["tags"] or []) if status == 200 else []

    def has_blob(self, wanted: str) -> bool:
        """Whether a blob is there."""
        return self.ask("HEAD", f"blobs/{wanted}")[0] == 200

    def blob(self, wanted: str) -> bytes:
        """Read a blob."""
        status, body, _ = self.ask("GET", f"blobs/{wanted}")
        assert status == 200, (status, body)
        assert digest(body) == wanted
        return body

    def put_blob(self, data: bytes) -> dict[str, Any]:
        """Push a blob."""
        status, body, headers = self.ask("POST", "blobs/uploads/", b"")
        assert status == 202, (status, body)
        where = headers["Location"]
        where = where if "://" in where else f"http://{self.host}{where}"
        where += f"{'&' if '?' in where else '?'}digest={digest(data)}"
        kind = {"Content-Type": "application/octet-stream"}
        status, body, _ = self.ask("PUT", where, data, **kind)
        assert status == 201, (status, body)
        return {"digest": digest(data), "size": len(data)}

    def put_manifest(self, document: dict[str, Any], tag: str = "") -> str:
        """Push a manifest; return its digest."""
        raw = json.dumps(document, separators=(",", ":")).encode()
        kind = {"Content-Type": document["mediaType"]}
        status, body, _ = self.ask("PUT", f"manifests/{tag or digest(raw)}", raw, **kind)
        assert status == 201, (status, body)
        return digest(raw)

    def put_image(self, content: str, tag: str = "") -> dict[str, Any]:
        """Push a small image that only `content` tells from others; return its descriptor."""
        config = {"architecture": "amd64", "os": "linux", "config": {"Labels": {"is": content}}}
        parts = [self.put_blob(json.dumps(config).encode()), self.put_blob(content.encode())]
        document = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"mediaType": CONFIG, **parts[0]},
            "layers": [{"mediaType": "application/octet-stream", **parts[1]}],
        }
        made = self.put_manifest(document, tag)
        size = len(json.dumps(document, separators=(",", ":")))
        return {"mediaType": MANIFEST, "digest": made, "size": size}

    def legacy(self, subject: str) -> int:
        """Count the signatures in the legacy form: layers of the `.sig` tag that carry one."""
        raw = self.raw(f"{subject.replace(':', '-')}.sig")
        layers = [] if raw is None else json.loads(raw)["layers"]
        return sum(SIGNATURE in layer.get("annotations", {}) for layer in layers)

    def bundles(self, subject: str) -> int:
        """Count the signatures in the bundle form: listed referrers whose layer is a bundle."""
        status, body, _ = self.ask("GET", f"referrers/{subject}")
        if status != 200:
            body = self.raw(subject.replace(":", "-")) or b"{}"
        found = 0
        for entry in json.loads(body).get("manifests") or []:
            document = self.manifest(entry["digest"])
            assert document["subject"]["digest"] == subject
            found += document["layers"][0]["mediaType"].startswith(BUNDLE)
        return found

    def forms(self, subject: str) -> tuple[int, int]:
        """Count the signatures of `subject`: those in the legacy form, those in bundles."""
        return self.legacy(subject), self.bundles(subject)

    def listed(self, subject: str) -> list[str]:
        """List the digests of what refers to `subject`: by the API, else by the fallback tag."""
        status, body, headers = self.ask("GET", f"referrers/{subject}")
        if status != 200 or headers.get("Content-Type") != INDEX:
            body = self.raw(subject.replace(":", "-")) or b"{}"
        return [entry["digest"] for entry in json.loads(body).get("manifests") or []]

    def missing(self, name: str) -> list[str]:
        """List what the manifest `name` needs, transitively, and is not there."""
        raw = self.raw(name)
        if raw is None:
            return [name]
        document = json.loads(raw)
        blobs = [document["config"], *document["layers"]] if "config" in document else []
        gone = [part["digest"] for part in blobs if not self.has_blob(part["digest"])]
        for child in document.get("manifests", []):
            gone += self.missing(child["digest"])
        return gone


def digest(data: bytes) -> str:
    """Hash bytes as a registry names them."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
