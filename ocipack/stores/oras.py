"""oras-py: how docker's configuration is written, ECR's tokens, and our transport under scripts.

The only module that imports it. `Registry` is an `oras.provider.Registry` whose every request
runs over our transport, for scripts that are written on oras-py:

    from ocipack.stores.oras import Registry
    from ocipack.stores.registry.registries import Registries

    client = Registry(Registries())
    client.pull(target="registry.example/team/app@sha256:…", outdir="app")

They get what the rest of ocipack has: TLS that is always verified, credentials that go to exactly
their host, redirects that lead nowhere else, retries, and content held against its digest. What
oras-py does with content once it has it (unpacking a directory, for one) stays as it is there.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import responses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import requests
from oras.auth.ecr import EcrAuth
from oras.main.login import DockerClient
from oras.provider import Registry as OrasRegistry

from ocipack.errors import IntegrityError, Misuse, StoreError, malformed
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.store import MANIFEST_LIMIT
from ocipack.stores.auth.credential import Credential
from ocipack.stores.auth.tokens import scope
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.url import Url
from ocipack.stores.registry.client import PULL, PUSH, Client
from ocipack.stores.registry.pages import LISTING_LIMIT, at_home
from ocipack.stores.registry.registries import Registries
from ocipack.stores.registry.upload import check_digest

_API = re.compile(r"/v2/(?P<name>.+)/(?P<room>manifests|blobs|tags|referrers)/(?P<what>[^/]+)")
_OK = 200
_READS = frozenset({"GET", "HEAD"})
_OURS = frozenset({"authorization", "content-length", "host", "accept-encoding", "user-agent"})
"""Headers that the transport sets itself."""


def entered(document: dict[str, Any], key: str, username: str, password: str) -> dict[str, Any]:
    """Add a registry to docker's configuration, as oras-py does, which wants a file for that.

    The file is private and does not outlive the call.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.touch(0o600)
        path.write_text(json.dumps(document), encoding="utf-8")
        DockerClient().login(username, password, key, str(path))
        made: dict[str, Any] = json.loads(path.read_bytes())
    return made


def is_ecr(registry: str) -> bool:
    """Whether `registry` is a private one of Amazon's."""
    return EcrAuth.AWS_ECR_PATTERN.fullmatch(registry) is not None


def ecr(registry: str, challenge: str) -> Credential:
    """Get a password for ECR, which lives twelve hours, with the AWS credentials of the run.

    `challenge` is the WWW-Authenticate header of the registry. Misuse without boto3, StoreError
    if AWS gives nothing.
    """
    if f'realm="https://{registry}/"' not in challenge:
        raise StoreError(f"{registry} does not ask for a password as ECR does")
    refused = SimpleNamespace(headers={"Www-Authenticate": challenge})
    try:
        headers, _ = EcrAuth().authenticate_request(refused, {})
    except ImportError as e:
        raise Misuse(
            f"{registry}: boto3 is needed to ask AWS for a password",
            hint="install boto3, or name ecr-login as a helper in docker's configuration",
        ) from e
    except Exception as e:  # botocore has a class for each service and fault
        raise StoreError(
            f"{registry}: AWS gave no password ({type(e).__name__})",
            hint="aws sts get-caller-identity says whose credentials these are",
        ) from e
    kind, _, pair = str(headers.get("Authorization", "")).partition(" ")
    with malformed(f"the answer of AWS for {registry}"):
        username, colon, password = base64.b64decode(pair, validate=True).decode().partition(":")
        if kind != "Basic" or not colon:
            raise Misuse("no password in it")
    return Credential(f"AWS, for {registry}", username, password)


class _Silent:
    """Stands where oras-py keeps its own authentication: nothing is read, asked or kept there."""

    token = None

    def load_configs(self, *_: object, **__: object) -> None:
        """Credentials are looked up by the transport, when a registry asks."""

    def logout(self, hostname: str) -> None:
        """Nobody is logged in here."""

    def set_basic_auth(self, *_: object) -> None:
        """Refuse: credentials belong to one registry, and this names none."""
        raise Misuse(
            "set_basic_auth names no registry",
            hint="run `ocipack login`, or give Registries credentials of its own",
        )

    set_token_auth = set_basic_auth


class Registry(OrasRegistry):  # type: ignore[misc] # oras publishes no types
    """An oras-py client over our transport; `registries` says how registries are reached."""

    def __init__(self, registries: Registries, hostname: str | None = None) -> None:
        super().__init__(hostname)
        self.auth = _Silent()
        self._registries = registries
        self._led: dict[tuple[tuple[str, str, int], str], Client] = {}

    def login(self, *_: object, **__: object) -> dict[str, str]:
        """Refuse: it would write a password where others can read it."""
        raise Misuse("log in by `ocipack login`", hint="see `ocipack login --help`")

    def do_request(  # noqa: PLR0917 - oras-py's signature
        self,
        url: str,
        method: str = "GET",
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        json: Any = None,
        stream: bool = False,  # noqa: FBT001, FBT002 - oras-py's signature
    ) -> requests.Response:
        """Make one request; an answer of any status, as `requests` would have it.

        Our errors when there is no answer, and IntegrityError for content that is not what its
        digest says: of a stream before its last piece, of anything else at once.
        """
        client, where = self._place(url)
        sent = {k: v for k, v in (headers or {}).items() if k.lower() not in _OURS}
        body = _serialised(json) if json is not None else data
        match = _API.fullmatch(where.path)
        name = match["name"] if match is not None else ""
        scopes = (scope(name, PULL if method in _READS else PUSH),) if name else ()

        def once() -> Answer:
            return client.once(
                method,
                where,
                name,
                scopes,
                ok=None,
                headers=sent,
                body=body,
                size=0,
                elsewhere=True,
            )

        answer = client.patience.retry(once) if method in _READS else once()
        self._follow(client, answer)
        return _response(answer, method, match, stream=stream)

    def _place(self, url: str) -> tuple[Client, Url]:
        """Which registry an address belongs to, and the address as we reach it."""
        asked = Url.parse(url)
        led = self._led.get((asked.origin, asked.path))
        if led is not None:
            return led, asked
        client = self._registries.client(asked.netloc)
        base = client.base
        return client, Url(base.scheme, base.host, base.port, asked.path, asked.query)

    def _follow(self, client: Client, answer: Answer) -> None:
        """Remember who sent us to an address elsewhere, as those do that keep uploads there.

        The address alone: who names a host must not become its registry.
        """
        location = answer.header("Location")
        if location:
            there = at_home(client, answer.at.url.join(location))
            if there.origin != client.base.origin:
                self._led[there.origin, there.path] = client

    def download_blob(self, container: Any, digest: str, outfile: str) -> str:
        """Download a blob to `outfile`, which appears whole and checked, or not at all."""
        target = Path(outfile)
        target.parent.mkdir(parents=True, exist_ok=True)
        response = self.get_blob(self.get_container(container), digest, stream=True)
        self._check_200_response(response)
        handle, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
        try:
            with os.fdopen(handle, "wb") as file:
                for piece in response.iter_content(1 << 18):
                    file.write(piece)
            Path(fresh).chmod(0o644)
            Path(fresh).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(fresh).unlink()
            raise
        return outfile


def _serialised(document: Any) -> bytes:
    return json.dumps(document).encode()


def _expected(match: re.Match[str] | None) -> Digest | None:
    """The digest that an answer's content must have; None if the address names none."""
    if match is None or match["room"] not in {"manifests", "blobs"}:
        return None
    return Digest.parse(match["what"]) if ":" in match["what"] else None


def _response(
    answer: Answer, method: str, match: re.Match[str] | None, *, stream: bool
) -> requests.Response:
    """What `requests` would have made of an answer."""
    made = requests.Response()
    made.status_code = answer.status
    made.reason = responses.get(answer.status, "")
    made.url = answer.at.url.shown
    made.headers.update(answer.fields)
    made.headers.pop("Content-Encoding", None)  # what is handed on has none any more
    made.request = requests.Request(method, made.url).prepare()
    room = match["room"] if match is not None else ""
    if answer.status != _OK or method != "GET":
        made._content = answer.excerpt()  # noqa: SLF001 - requests has no other way in
    elif room == "blobs":
        made.raw = _Body(_checked(answer, _expected(match)))
        _ = stream or made.content
    else:
        made._content = _document(answer, room, _expected(match))  # noqa: SLF001 - as above
    return made


def _document(answer: Answer, room: str, expected: Digest | None) -> bytes:
    """A manifest, held against its digest and what the registry calls it, or a listing."""
    if room != "manifests":
        return answer.read(LISTING_LIMIT)
    raw = answer.read(MANIFEST_LIMIT)
    if expected is not None:
        return b"".join(Descriptor("", expected, len(raw)).check([raw]))
    check_digest(answer, Digest.of(raw))
    return raw


def _checked(answer: Answer, expected: Digest | None) -> Iterator[bytes]:
    """The body; IntegrityError before its last piece if it has another digest."""
    hasher = expected.hasher() if expected is not None else None
    held = b""
    for piece in answer.chunks():
        if hasher is not None:
            hasher.update(piece)
        if held:
            yield held
        held = piece
    if hasher is not None and expected is not None and hasher.hexdigest() != expected.hex:
        actual = f"{expected.algorithm}:{hasher.hexdigest()}"
        raise IntegrityError(f"{answer.at.what}: content has the digest {actual}")
    yield held


class _Body:
    """A body as `requests` reads it."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        """The pieces as they come."""
        return self._pieces

    def close(self) -> None:
        """Let go of what was not read."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    def release_conn(self) -> None:
        """Let go."""
        self.close()
