"""Charts made by hand, and a classic Helm repository on a real socket."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from serving import Serving
from tars import entry, layer

SHOP = "apiVersion: v2\nname: shop\nversion: {}\n"


def chart(text: str, files: Mapping[str, str | bytes] | None = None, *, top: str = "shop") -> bytes:
    """The archive of a chart whose Chart.yaml is `text`."""
    parts = [entry(f"{top}/Chart.yaml", text.encode())]
    for name, data in (files or {}).items():
        parts.append(entry(f"{top}/{name}", data.encode() if isinstance(data, str) else data))
    return layer(*parts)


def shop(version: str = "1.2.0", files: Mapping[str, str | bytes] | None = None) -> bytes:
    """A chart called shop."""
    return chart(SHOP.format(version), files)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def provenance(archive: bytes) -> bytes:
    """A file that says what a provenance file says; nobody signed it."""
    return (
        "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nname: shop\n\n...\nfiles:\n"
        f"  shop.tgz: sha256:{sha256(archive)}\n-----BEGIN PGP SIGNATURE-----\n\nnone\n"
        "-----END PGP SIGNATURE-----\n"
    ).encode()


def index(entries: Mapping[str, Iterable[Mapping[str, object]]]) -> bytes:
    """An index.yaml; what is not text is written as it is."""
    lines = ["apiVersion: v1", "entries:" if entries else "entries: {}"]
    for name, versions in entries.items():
        lines.append(f"  {name}:")
        for one in versions:
            lines.append("  - name: " + name)
            lines += [f"    {key}: {value}" for key, value in one.items()]
    return "\n".join([*lines, "generated: 2026-01-01T00:00:00Z", ""]).encode()


@dataclass(frozen=True)
class Seen:
    """One request."""

    path: str
    authorization: str = ""


@dataclass
class Shelf(Serving):
    """Serves `files` by path; with `users` only to them. `moved` answers 302, `status` that.

    `headers` go with the answer for a path; how long those of `unsized` are is not said.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    status: dict[str, int] = field(default_factory=dict)
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    unsized: set[str] = field(default_factory=set)
    requests: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.serve(_Handler)

    @property
    def address(self) -> str:
        """The repository below `/stable`."""
        return f"http://{self.host}/stable"

    def publish(
        self, versions: Mapping[str, bytes], *, prov: bool = False, digest: bool = True
    ) -> None:
        """Publish `versions` of shop, and an index of them."""
        entries = []
        for version, archive in versions.items():
            name = f"shop-{version}.tgz"
            self.files[f"/stable/{name}"] = archive
            if prov:
                self.files[f"/stable/{name}.prov"] = provenance(archive)
            said = {"version": version, "urls": f"[{name}]"}
            entries.append(said | ({"digest": sha256(archive)} if digest else {}))
        self.files["/stable/index.yaml"] = index({"shop": entries})

    def paths(self) -> list[str]:
        return [one.path for one in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        shelf: Shelf = self.server.owner  # type: ignore[attr-defined] # see Serving
        said = self.headers.get("Authorization", "")
        shelf.requests.append(Seen(self.path, said))
        known = {
            "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
            for name, password in shelf.users.items()
        }
        if shelf.users and said not in known:
            self._answer(401, b"", {"WWW-Authenticate": 'Basic realm="charts"'})
        elif self.path in shelf.moved:
            self._answer(302, b"", {"Location": shelf.moved[self.path]})
        elif self.path in shelf.status or self.path not in shelf.files:
            self._answer(shelf.status.get(self.path, 404), b"no")
        else:
            self._answer(200, shelf.files[self.path], shelf.headers.get(self.path, {}))

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        shelf: Shelf = self.server.owner  # type: ignore[attr-defined] # see Serving
        if self.path in shelf.unsized:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
