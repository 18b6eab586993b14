"""A registry in this process, on a real socket, that can misbehave as real ones do.

It speaks distribution-spec 1.1 and passes the specification's own conformance suite: pull (in
ranges too), push (whole, in chunks, streamed), mount, tags, referrers, deletion, and basic and
bearer authorization. `Switches` says what kind of registry it is and what goes wrong; `requests`
says what it was asked. Every instance is a token service too, and serves `static` paths, so a
second one can be the other host of a redirect or a realm, and records what it saw.

    with Registry(Switches(referrers=False)) as registry:
        ...registry.name...          # 127.0.0.1:port
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, urlsplit

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFESTS = {
    INDEX,
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
}


_ALGORITHMS = {"sha256", "sha512"}
_CUTS = {"cut", "deaf", "forget"}


@dataclass
class Fault:
    """What happens to requests whose `METHOD target` the pattern `when` is found in.

    `status` answers instead of the registry. `act` is one of

        reset     the connection is reset, and nothing was done
        lost      it was done, and the connection is reset instead of an answer
        silence   no answer, ever
        half      an answer that stops after half of its body
        stall     an answer that falls silent after half of its body
        spoil     the last byte of the body is changed
        digest    Docker-Content-Digest names other content
        nodigest  there is no Docker-Content-Digest
        endless   the body ends nowhere near where it should: after 32 MiB
        nolength  the body ends with the connection, half way
        gzip      the body is compressed, and says so, whatever was accepted
        stream    as gzip, without saying how long it is
        cut       the connection is reset after `after` bytes of the request's body, which are kept
        deaf      as cut, with silence instead of a reset
        forget    as cut, and the upload is forgotten

    The first `skip` such requests are spared, and so are those after `times` more.
    """

    when: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    act: str = ""
    after: int = 0
    skip: int = 0
    times: int = 1_000_000
    seen: int = 0

    def hits(self, line: str) -> bool:
        if not re.search(self.when, line):
            return False
        self.seen += 1
        return self.skip < self.seen <= self.skip + self.times


@dataclass
class Switches:
    """What kind of registry it is."""

    referrers: bool = True
    subject_header: bool = True
    referrers_type: str = INDEX
    name_unknown: bool = True  # False: a new repository lacks manifests, as in distribution 2
    empty_tags_404: bool = True
    tags_null: bool = False
    tags_sorted: bool = True
    page: int = 0  # entries of a page; 0 is all
    link: str = "relative"  # absolute, loop, elsewhere; none: there are more pages, nobody says so
    mount: bool = True
    mount_status: int = 0  # what a mount that is refused answers, instead of 202
    mount_anonymous: bool = True  # without `from`; False: 400, as Quay has it
    whole: bool = True  # False: an upload of one POST is none yet
    patch: bool = True  # False: no upload in chunks, 405
    patch_status: int = 202  # 201 is ECR's
    chunk_min: int = 0  # OCI-Chunk-Min-Length, and what chunks but the last are held to
    chunk_max: int = 0  # a longer chunk is refused, 413
    body_max: int = 0  # a proxy before the registry refuses longer bodies, 413
    moving: bool = False  # each answer to an upload names another Location
    status: bool = True  # False: nobody says how far an upload is
    range_header: str = ""  # what an upload says of itself, whatever it holds
    redirect_put: str = ""  # 307 to that host, at the end of an upload
    ranges: str = "yes"  # no: Range is ignored; wrong: 206 with other bytes
    etag: str = "strong"  # weak, new (another each time), none
    filters: bool = True  # referrers are filtered by artifactType
    delete: bool = True  # False: 405
    location: str = "relative"  # absolute, query, none, or the address of another host
    head: bool = True  # False: 405
    immutable: str = ""  # tags that never move
    sparse: bool = False  # an index is taken without its children
    dash_tag: bool = False  # `sha256-<hex>` is read as that digest
    auth: str = ""  # basic, bearer
    users: dict[str, str] = field(default_factory=lambda: {"user": "pass"})
    identities: set[str] = field(default_factory=lambda: {"identity"})
    realm: str = ""  # another token service
    challenge: list[str] = field(default_factory=list)  # instead of the usual
    token_post: bool = True
    token_answer: Mapping[str, Any] | None = None  # what a lying token service says
    token_member: str = "token"
    expires_in: int | None = 300
    scopes: str = "all"  # first, last: the token service reads no other
    revoke: str = ""  # the first such request finds its token revoked
    anonymous: str = "pull"  # what a token for nobody may do
    fail_at: int = 0  # this request, counted from 1, and ...
    fail_times: int = 1  # ... so many from there on ...
    fail_status: int = 500  # ... answer this; 0 resets the connection
    faults: list[Fault] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    """One request."""

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def line(self) -> str:
        return f"{self.method} {self.target}"


@dataclass
class Repository:
    blobs: set[str] = field(default_factory=set)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


@dataclass
class Reply:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    length: int | None = None


class Registry:
    """A running registry; also a context manager. State is open to tests."""

    def __init__(
        self,
        switches: Switches | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        tokens: dict[str, set[tuple[str, str]]] | None = None,
    ) -> None:
        self.switches = switches or Switches()
        self.requests: list[Seen] = []
        self.blobs: dict[str, bytes] = {}
        self.uploads: dict[str, bytearray] = {}
        self.chunks: dict[str, list[int]] = {}  # the lengths of what came by PATCH
        self.opened = 0
        self.endless = 0  # bytes of endless bodies that somebody took, or the sockets hold
        self.issued = 0
        self.forms: list[str] = []  # what the token service was sent by POST
        self.accepted = 0  # connections
        self.received: list[str] = []  # digests of blobs whose bytes were sent to us, each time
        self.repositories: dict[str, Repository] = {}
        self.static: dict[str, bytes] = {}
        self.tokens = {} if tokens is None else tokens
        self.lock = threading.RLock()
        self.ended = threading.Event()
        self._server = _Server((host, 0), _Handler)
        self._server.registry = self
        self.scheme = "https" if tls is not None else "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.host, self.port = host, self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def name(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.name}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()

    def lines(self, pattern: str = "") -> list[str]:
        """`METHOD target` of every request that `pattern` is found in."""
        return [seen.line for seen in self.requests if re.search(pattern, seen.line)]

    def repository(self, name: str) -> Repository:
        return self.repositories.setdefault(name, Repository())

    # what the handler asks

    def act(self, seen: Seen, body: bytes) -> tuple[Reply, str]:
        """Answer a request; and what to do to the answer."""
        with self.lock:
            self.requests.append(seen)
            number = len(self.requests)
            switches = self.switches
            if switches.fail_at and 0 <= number - switches.fail_at < switches.fail_times:
                if not switches.fail_status:
                    return Reply(500), "reset"
                return _error(switches.fail_status, "UNKNOWN", "told to fail"), ""
            for fault in switches.faults:
                if fault.act not in _CUTS and fault.hits(seen.line):
                    if fault.status:
                        return Reply(fault.status, dict(fault.headers), fault.body), fault.act
                    if fault.act in {"reset", "silence"}:
                        return Reply(500), fault.act
                    return self._answer(seen, body), fault.act
            return self._answer(seen, body), ""

    def _answer(self, seen: Seen, body: bytes) -> Reply:
        parts = urlsplit(seen.target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.path in self.static:
            return Reply(200, {"Content-Type": "application/octet-stream"}, self.static[parts.path])
        if parts.path == "/token":
            return self._token(seen, parts.query, body)
        match = re.fullmatch(
            r"/v2/(?P<name>.+?)/(?P<kind>manifests|blobs/uploads|blobs|tags|referrers)/(?P<rest>[^/]*)",
            parts.path,
        )
        if match is None:
            here = Reply(200) if parts.path == "/v2/" else None
            return self._refused(seen, ()) or here or _error(404, "NAME_INVALID", "no such path")
        needs = [(match["name"], "pull" if seen.method in {"GET", "HEAD"} else "push")]
        if "from" in query and "mount" in query:
            needs.append((query["from"], "pull"))
        refused = self._refused(seen, needs)
        if refused is not None:
            return refused
        kind = match["kind"].replace("/", "_")
        handler = getattr(self, f"_{kind}_{seen.method.lower()}", None)
        if handler is None or (seen.method == "HEAD" and not self.switches.head):
            return _error(405, "UNSUPPORTED", "the method is not allowed")
        reply: Reply = handler(match["name"], match["rest"], query, seen, body)
        return reply

    # authorization

    def _refused(self, seen: Seen, needs: Any) -> Reply | None:
        switches, given = self.switches, seen.headers.get("authorization", "")
        if switches.auth == "basic" and given != self._basic():
            return self._challenge(['Basic realm="here", charset="UTF-8"'])
        if switches.revoke and re.search(switches.revoke, seen.line):
            switches.revoke = ""
            self.tokens.clear()
        if switches.auth == "bearer":
            granted = self.tokens.get(given.removeprefix("Bearer "))
            if granted is None or not set(needs) <= granted:
                scope = " ".join(f"repository:{name}:{action}" for name, action in needs)
                realm = switches.realm or f"{self.url}/token"
                return self._challenge([f'Bearer realm="{realm}",service="tests",scope="{scope}"'])
        return None

    def _basic(self) -> str:
        user, password = next(iter(self.switches.users.items()))
        return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def _challenge(self, usual: list[str]) -> Reply:
        reply = _error(401, "UNAUTHORIZED", "authentication required")
        for number, value in enumerate(self.switches.challenge or usual):
            reply.headers["WWW-Authenticate" + "\0" * number] = value  # repeated headers
        return reply

    def _token(self, seen: Seen, query: str, body: bytes) -> Reply:
        switches = self.switches
        if switches.token_answer is not None:
            return _json(200, switches.token_answer)
        given = seen.headers.get("authorization", "")
        if seen.method == "POST":
            self.forms.append(body.decode())
            form = parse_qs(body.decode())
            if not switches.token_post:
                return _error(405, "UNSUPPORTED", "no POST here")
            if form.get("refresh_token", [""])[0] not in switches.identities:
                return _error(401, "UNAUTHORIZED", "no such identity")
            scopes, known = " ".join(form.get("scope", [])).split(), True
        else:
            scopes, known = parse_qs(query).get("scope", []), bool(given)
            identity = base64.b64encode(b"<token>:identity").decode()
            if given and given not in {self._basic(), f"Basic {identity}"}:
                return _error(401, "UNAUTHORIZED", "incorrect username or password")
        if switches.scopes != "all":
            scopes = scopes[:1] if switches.scopes == "first" else scopes[-1:]
        allowed = {"pull", "push"} if known else set(switches.anonymous.split(","))
        self.issued += 1
        token = f"token-{self.port}-{self.issued}"
        self.tokens[token] = {
            (name, action)
            for _, name, actions in (scope.split(":") for scope in scopes)
            for action in actions.split(",")
            if action in allowed
        }
        life = {} if switches.expires_in is None else {"expires_in": switches.expires_in}
        return _json(200, {switches.token_member: token, **life})

    # manifests

    def _find(self, name: str, reference: str) -> tuple[str, str, bytes] | Reply:
        found = self.repositories.get(name)
        if found is None or not (found.manifests or found.tags):
            if self.switches.name_unknown:
                return _error(404, "NAME_UNKNOWN", "repository name not known to registry")
            return _error(404, "MANIFEST_UNKNOWN", "manifest unknown")
        if self.switches.dash_tag and re.fullmatch("sha256-[0-9a-f]{64}", reference):
            reference = reference.replace("-", ":")
        digest = found.tags.get(reference, reference)
        if digest not in found.manifests:
            return _error(404, "MANIFEST_UNKNOWN", "manifest unknown")
        return (digest, *found.manifests[digest])

    def _manifests_get(self, name: str, reference: str, *_: Any) -> Reply:
        found = self._find(name, reference)
        if isinstance(found, Reply):
            return found
        digest, media_type, raw = found
        return Reply(200, {"Content-Type": media_type, "Docker-Content-Digest": digest}, raw)

    _manifests_head = _manifests_get

    def _manifests_put(self, name: str, reference: str, _: Any, seen: Seen, body: bytes) -> Reply:
        repository = self.repositories.get(name) or Repository()
        try:
            document = json.loads(body)
        except ValueError:
            return _error(400, "MANIFEST_INVALID", "manifest invalid")
        algorithm = reference.partition(":")[0] if ":" in reference else "sha256"
        if algorithm not in _ALGORITHMS:
            return _error(400, "DIGEST_INVALID", "provided digest is none")
        digest = f"{algorithm}:{hashlib.new(algorithm, body).hexdigest()}"
        if ":" in reference and reference != digest:
            return _error(400, "DIGEST_INVALID", "provided digest did not match")
        parts = [document["config"]] if "config" in document else []
        parts += document.get("layers") or []
        parts = [part for part in parts if "nondistributable" not in part.get("mediaType", "")]
        children = document.get("manifests") or []
        complete = all(part["digest"] in repository.blobs for part in parts) and (
            self.switches.sparse
            or all(child["digest"] in repository.manifests for child in children)
        )
        is_listing = re.fullmatch("sha(256|512)-[0-9a-f]{64}", reference)
        if not complete and not is_listing:
            return _error(404, "MANIFEST_BLOB_UNKNOWN", "blob unknown to registry")
        immutable = self.switches.immutable
        old = repository.tags.get(reference)
        if immutable and re.fullmatch(immutable, reference) and old not in {None, digest}:
            return _error(
                409, "TAG_INVALID", f"the tag {reference} already exists, it is immutable"
            )
        self.repositories[name] = repository
        repository.manifests[digest] = (seen.headers.get("content-type", ""), body)
        if ":" not in reference:
            repository.tags[reference] = digest
        headers = {"Location": f"/v2/{name}/manifests/{digest}", "Docker-Content-Digest": digest}
        subject = (document.get("subject") or {}).get("digest")
        if subject and self.switches.subject_header:
            headers["OCI-Subject"] = subject
        return Reply(201, headers)

    def _manifests_delete(self, name: str, reference: str, *_: Any) -> Reply:
        if not self.switches.delete:
            return _error(405, "UNSUPPORTED", "nothing is deleted here")
        found = self._find(name, reference)
        if isinstance(found, Reply):
            return found
        repository = self.repositories[name]
        if ":" in reference:
            del repository.manifests[reference]
            for tag in [tag for tag, digest in repository.tags.items() if digest == reference]:
                del repository.tags[tag]
        else:
            del repository.tags[reference]
        return Reply(202)

    # blobs

    def _blobs_head(self, name: str, digest: str, *_: Any) -> Reply:
        if digest not in self.repository(name).blobs:
            return _error(404, "BLOB_UNKNOWN", "blob unknown to registry")
        headers = {"Content-Type": "application/octet-stream", "Docker-Content-Digest": digest}
        self.opened += self.switches.etag == "new"
        tags = {"strong": f'"{digest}"', "weak": f'W/"{digest}"', "new": f'"{self.opened}"'}
        if self.switches.etag in tags:
            headers["ETag"] = tags[self.switches.etag]
        return Reply(200, headers | {"Accept-Ranges": "bytes"}, self.blobs[digest])

    def _blobs_get(self, name: str, digest: str, _: Any, seen: Seen, *__: Any) -> Reply:
        reply = self._blobs_head(name, digest)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", seen.headers.get("range", ""))
        condition = seen.headers.get("if-range")
        if reply.status != 200 or asked is None or self.switches.ranges == "no":
            return reply
        if condition is not None and condition != reply.headers.get("ETag"):
            return reply
        size = len(reply.body)
        first, last = int(asked[1]), min(int(asked[2] or size), size - 1)
        if first >= size or last < first:
            return Reply(416, {"Content-Range": f"bytes */{size}"})
        if self.switches.ranges == "wrong":
            first -= 1
        said = {"Content-Range": f"bytes {first}-{last}/{size}"}
        return Reply(206, reply.headers | said, reply.body[first : last + 1])

    def _blobs_delete(self, name: str, digest: str, *_: Any) -> Reply:
        if not self.switches.delete:
            return _error(405, "UNSUPPORTED", "nothing is deleted here")
        if digest not in self.repository(name).blobs:
            return _error(404, "BLOB_UNKNOWN", "blob unknown to registry")
        self.repository(name).blobs.discard(digest)
        return Reply(202)

    # uploads

    def _blobs_uploads_post(
        self, name: str, _: str, query: dict[str, str], __: Seen, body: bytes
    ) -> Reply:
        switches = self.switches
        if "mount" in query:
            mounted = self._mounted(name, query)
            if mounted is not None:
                return mounted
        if "digest" in query and switches.whole:
            return self._stored(name, query["digest"], body)
        self.opened += 1
        key = f"upload-{self.opened}"
        self.uploads[key], self.chunks[key] = bytearray(), []
        if switches.location == "none":
            return Reply(202)
        where = f"/v2/{name}/blobs/uploads/{key}"
        path = {"absolute": self.url + where, "query": f"{where}?_state=a%2Fb%3D"}.get(
            switches.location,
            where if switches.location == "relative" else switches.location + where,
        )
        headers = {"Location": path, "Range": switches.range_header or "0-0"}
        if switches.chunk_min:
            headers["OCI-Chunk-Min-Length"] = str(switches.chunk_min)
        return Reply(202, headers)

    def _mounted(self, name: str, query: dict[str, str]) -> Reply | None:
        switches, digest, origin = self.switches, query["mount"], query.get("from")
        if not origin and not switches.mount_anonymous:
            return _error(400, "NAME_INVALID", "from what repository?")
        there = self.repositories.get(origin or "", Repository()).blobs if origin else self.blobs
        if switches.mount and digest in there:
            self.repository(name).blobs.add(digest)
            headers = {"Location": f"/v2/{name}/blobs/{digest}"}
            return Reply(201, headers | {"Docker-Content-Digest": digest})
        if switches.mount_status:
            return _error(switches.mount_status, "DENIED", "no mounting here")
        return None

    def _blobs_uploads_get(self, name: str, key: str, *_: Any) -> Reply:
        if not self.switches.status:
            return _error(405, "UNSUPPORTED", "nobody knows")
        if key not in self.uploads:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
        return Reply(204, self._progress(name, key))

    def _blobs_uploads_delete(self, _: str, key: str, *__: Any) -> Reply:
        if key not in self.uploads:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
        del self.uploads[key]
        return Reply(204)

    def _progress(self, name: str, key: str) -> dict[str, str]:
        """Say where an upload is, and how far."""
        end = max(len(self.uploads[key]) - 1, 0)
        if self.switches.moving:
            data, sizes = self.uploads.pop(key), self.chunks.pop(key)
            self.opened += 1
            key = f"upload-{self.opened}"
            self.uploads[key], self.chunks[key] = data, sizes
        said = self.switches.range_header or f"0-{end}"
        return {"Location": f"/v2/{name}/blobs/uploads/{key}", "Range": said}

    def _out_of_order(self, name: str, key: str, seen: Seen, body: bytes) -> Reply | None:
        """Refuse a chunk that does not begin where the last one ended."""
        said = seen.headers.get("content-range", "")
        place = re.fullmatch(r"(\d+)-(\d+)", said)
        held = len(self.uploads[key])
        if not said or (place and int(place[1]) == held and int(place[2]) == held + len(body) - 1):
            return None
        return Reply(416, self._progress(name, key))

    def _blobs_uploads_patch(
        self, name: str, key: str, __: dict[str, str], seen: Seen, body: bytes
    ) -> Reply:
        switches = self.switches
        if not switches.patch:
            return _error(405, "UNSUPPORTED", "no chunks here")
        if key not in self.uploads:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
        refused = self._out_of_order(name, key, seen, body)
        if refused is not None:
            return refused
        sizes = self.chunks[key]
        if switches.chunk_max and len(body) > switches.chunk_max:
            return _error(413, "SIZE_INVALID", "the chunk is too long")
        if sizes and sizes[-1] < switches.chunk_min:
            return _error(400, "BLOB_UPLOAD_INVALID", "a chunk was too short")
        sizes.append(len(body))
        self.uploads[key] += body
        return Reply(switches.patch_status, self._progress(name, key))

    def _blobs_uploads_put(
        self, name: str, key: str, query: dict[str, str], seen: Seen, body: bytes
    ) -> Reply:
        if key not in self.uploads:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
        refused = self._out_of_order(name, key, seen, body) if body else None
        if refused is not None:
            return refused
        if self.switches.redirect_put:
            return Reply(307, {"Location": self.switches.redirect_put + seen.target})
        return self._stored(name, query.get("digest", ""), bytes(self.uploads.pop(key)) + body)

    def _stored(self, name: str, expected: str, data: bytes) -> Reply:
        algorithm = expected.partition(":")[0]
        if algorithm not in _ALGORITHMS:
            return _error(400, "DIGEST_INVALID", "provided digest is none")
        digest = f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"
        if digest != expected:
            return _error(400, "DIGEST_INVALID", "provided digest did not match")
        self.received.append(digest)
        self.blobs[digest] = data
        self.repository(name).blobs.add(digest)
        headers = {"Location": f"/v2/{name}/blobs/{digest}"}
        return Reply(201, headers | {"Docker-Content-Digest": digest})

    # what a connection loses

    def cuts(self, line: str) -> Fault | None:
        """Say whether a request's body is not taken to its end."""
        with self.lock:
            faults = (fault for fault in self.switches.faults if fault.act in _CUTS)
            return next((fault for fault in faults if fault.hits(line)), None)

    def keep(self, seen: Seen, piece: bytes, *, lost: bool = False) -> None:
        """Keep what came of a body, as registries do that write while they read."""
        with self.lock:
            self.requests.append(seen)
            key = urlsplit(seen.target).path.rpartition("/")[2]
            if key in self.uploads:
                self.uploads[key] += piece
            if lost:
                self.uploads.pop(key, None)

    # listings

    def _tags_get(self, name: str, _: str, query: dict[str, str], *__: Any) -> Reply:
        found = self.repositories.get(name) or Repository()
        if not found.tags and self.switches.empty_tags_404:
            return _error(404, "NAME_UNKNOWN", "repository name not known to registry")
        tags: list[Any] = sorted(found.tags)
        page, link = self._page(tags, query, f"/v2/{name}/tags/list", key=str)
        if not self.switches.tags_sorted:
            page.reverse()
        document = {"name": name, "tags": None if self.switches.tags_null else page}
        return _json(200, document, link)

    def _referrers_get(self, name: str, digest: str, query: dict[str, str], *_: Any) -> Reply:
        if not self.switches.referrers:
            return Reply(404, {"Content-Type": "text/plain"}, b"404 page not found\n")
        entries = []
        for own, (media_type, raw) in self.repository(name).manifests.items():
            document = json.loads(raw)
            if (document.get("subject") or {}).get("digest") != digest:
                continue
            kind = document.get("artifactType") or (document.get("config") or {}).get("mediaType")
            entry = {"mediaType": media_type, "digest": own, "size": len(raw)}
            entry |= {"artifactType": kind} if kind else {}
            notes = document.get("annotations")
            entries.append(entry | ({"annotations": notes} if notes else {}))
        headers = {"Content-Type": self.switches.referrers_type}
        wanted = query.get("artifactType")
        if wanted and self.switches.filters:
            entries = [entry for entry in entries if entry.get("artifactType") == wanted]
            headers["OCI-Filters-Applied"] = "artifactType"
        entries.sort(key=_digest)
        page, link = self._page(entries, query, f"/v2/{name}/referrers/{digest}", key=_digest)
        document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": page}
        return _json(200, document, headers | link)

    def _page(
        self, entries: list[Any], query: dict[str, str], path: str, *, key: Callable[[Any], str]
    ) -> tuple[list[Any], dict[str, str]]:
        """Cut a listing, sorted by `key`, as `n`, `last` and our own limit say."""
        rest = [entry for entry in entries if key(entry) > query.get("last", "")]
        sizes = [self.switches.page or len(rest)]
        sizes += [int(query["n"])] if query.get("n", "").isdigit() else []
        size, link = min(sizes), self.switches.link
        page = rest[:size]
        last = key(page[-1]) if page else ""
        target = {
            "absolute": f"{self.url}{path}?n={size}&last={last}",
            "loop": f"{path}?n={size}&last=0",
            "elsewhere": f"https://elsewhere.example{path}?last={last}",
        }.get(link, f"{path}?n={size}&last={last}")
        more = (size and len(rest) > size and link != "none") or (link == "loop" and entries)
        return page, {"Link": f'<{target}>; rel="next"'} if more else {}


def _digest(entry: Mapping[str, Any]) -> str:
    return str(entry["digest"])


def _json(status: int, document: object, headers: Mapping[str, str] | None = None) -> Reply:
    body = json.dumps(document, separators=(",", ":")).encode()
    return Reply(status, {"Content-Type": "application/json", **(headers or {})}, body)


def _error(status: int, code: str, message: str) -> Reply:
    return _json(status, {"errors": [{"code": code, "message": message}]})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    registry: Registry

    def __init__(self, *args: Any) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        self.registry.accepted += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """End idle keep-alive connections, so that no thread outlives the test."""
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, or does not trust us, is part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def handle_any(self) -> None:
        registry = self.server.registry
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.command, self.path, headers)
        fault, length = registry.cuts(seen.line), int(headers.get("content-length", 0))
        if fault is not None:
            taken = self.rfile.read(min(fault.after, length))
            registry.keep(seen, taken, lost=fault.act == "forget")
            if fault.act == "deaf":
                registry.ended.wait(30)
            self._reset()
            return
        most = registry.switches.body_max
        if most and length > most:
            registry.keep(seen, b"")
            self._send(Reply(413, {"Content-Type": "text/html"}, b"<html>too large"), "")
            self._body()  # a proxy lingers, or the answer would be lost with the connection
            return
        reply, act = registry.act(seen, self._body())
        if act in {"reset", "lost"}:
            self._reset()
            return
        if act == "silence":
            registry.ended.wait(30)
            self.close_connection = True
            return
        self._send(reply, act)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815 - the server's names

    def _reset(self) -> None:
        linger = struct.pack("ii", 1, 0)  # an RST rather than a FIN
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.close_connection = True
        self.connection.close()

    def _streamed(self) -> bytes:
        """Read a body in HTTP's own chunks (RFC 9112, 7.1)."""
        pieces = []
        while size := int(self.rfile.readline(64).partition(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline(8)
        while self.rfile.readline(1024).strip():
            continue
        return b"".join(pieces)

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return self._streamed()
        left = int(self.headers.get("Content-Length") or 0)
        pieces = []
        while left:
            piece = self.rfile.read(min(left, 1 << 20))
            if not piece:
                raise ConnectionError("the client hung up")
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    @staticmethod
    def _changed(reply: Reply, act: str) -> tuple[bytes, dict[str, str]]:
        """What a body and headers become on their way."""
        body, headers = reply.body, dict(reply.headers)
        if act == "spoil":
            body = body[:-1] + bytes([body[-1] ^ 1])
        if act == "digest":
            headers["Docker-Content-Digest"] = "sha256:" + "0" * 64
        if act == "nodigest":
            headers.pop("Docker-Content-Digest", None)
        if act in {"gzip", "stream"}:
            body = gzip.compress(body, 1, mtime=0)
            headers["Content-Encoding"] = "gzip"
        return body, headers

    def _send(self, reply: Reply, act: str) -> None:
        body, headers = self._changed(reply, act)
        self.send_response_only(reply.status)
        headers.setdefault("Date", self.date_time_string())
        for name, value in headers.items():
            self.send_header(name.rstrip("\0"), value)
        if act in {"endless", "nolength"}:
            self.send_header("Connection", "close")
        elif act == "stream":
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        elif reply.status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if act in {"half", "nolength", "stall"}:
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)
        if act == "stall":
            self.wfile.flush()
            self.server.registry.ended.wait(30)
        pieces = range(512 if act == "endless" else 0)  # 32 MiB: whoever takes all of it fails
        for _ in pieces:
            self.wfile.write(bytes(65536))
            self.server.registry.endless += 65536

    def log_message(self, *_: Any) -> None:
        """Say nothing; tests read `requests`."""
