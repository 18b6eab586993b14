"""One registry, shared by the stores of its repositories: authorization, retries, what is known."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ocipack.errors import StoreError
from ocipack.oci.digest import Digest
from ocipack.stores.auth.config import Credentials
from ocipack.stores.auth.credential import Credential
from ocipack.stores.auth.tokens import Authorizer, Known, Scopes, scope
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.mistrust import Shown
from ocipack.stores.http.transport import Body, Transport
from ocipack.stores.http.url import Url
from ocipack.stores.registry.refusal import UNAUTHORIZED, Refusal

PULL, PUSH = "pull", "pull,push"
_PLACES = 100_000
UNRELATED = Credential("none: not the registry's own host")
"""What is sent to whatever other host a registry names."""


@dataclass(slots=True)
class Features:
    """What a registry has shown of itself in this run; None is not known yet.

    `misses` counts big blobs that were looked for in new repositories, in vain.
    """

    referrers: bool | None = None
    self_mount: bool = True
    misses: int = 0
    streams: bool = True


@dataclass(slots=True)
class _Busy:
    """A lock, and how many threads hold it or wait for it: forgotten when nobody does."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class Client:
    """Talks to one registry (`host[:port]`); safe for threads."""

    def __init__(self, transport: Transport, credentials: Credentials, registry: str) -> None:
        self.registry = registry
        self.base = transport.base(registry)
        self.features = Features()
        self.patience = transport.patience
        self._transport = transport
        self._credentials = credentials
        self._known = Known()
        self._lock = threading.Lock()
        self._authorizers: dict[str, Authorizer] = {}
        self._places: dict[Digest, str] = {}
        self._busy: dict[str, _Busy] = {}

    def look(self) -> Shown | None:
        """What the registry shows to whoever connects; None behind a proxy."""
        return self._transport.look(self.base)

    def authorizer(self, repository: str) -> Authorizer:
        """What logs in for `repository`; credentials can differ between repositories."""
        with self._lock:
            if repository not in self._authorizers:
                self._authorizers[repository] = Authorizer(
                    self._transport,
                    self._credentials,
                    self.registry,
                    repository,
                    failure=explain,
                    known=self._known,
                )
            return self._authorizers[repository]

    def place(self, digest: Digest) -> str:
        """Name a repository here that is known to hold a blob, or nothing."""
        return self._places.get(digest, "")

    def placed(self, digest: Digest, repository: str) -> None:
        """Remember where a blob is, so that it is mounted rather than sent again."""
        with self._lock:
            if len(self._places) < _PLACES:
                self._places.setdefault(digest, repository)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """Let one thread of this process at a time change `what`."""
        with self._lock:
            entry = self._busy.setdefault(what, _Busy())
            entry.users += 1
        try:
            with entry.lock:
                yield
        finally:
            with self._lock:
                entry.users -= 1
                if not entry.users:
                    del self._busy[what]

    def once(
        self,
        method: str,
        url: Url,
        repository: str,
        scopes: Scopes,
        *,
        ok: Collection[int] | None,
        headers: Mapping[str, str],
        body: Body | None,
        size: int,
        elsewhere: bool,
    ) -> Answer:
        """Ask once, logging in if asked to; `ok` None takes any status."""
        own = url.origin == self.base.origin
        login = self.authorizer(repository) if own else None

        def exchange(authorization: str) -> Answer:
            sent = {**headers, "Authorization": authorization} if authorization else headers
            return self._transport.exchange(
                method,
                url,
                headers=sent,
                body=body,
                size=size,
                elsewhere=elsewhere,
                sent_by=None if own else self.base,
            )

        sent = login.header(scopes) if login is not None else ""
        answer = exchange(sent)
        if answer.status == UNAUTHORIZED and login is not None:
            try:
                better = login.answer(answer, scopes, sent)
            except BaseException:
                answer.drop()
                raise
            if better:
                answer.finish()
                answer = exchange(better)
        if ok is None or answer.status in ok:
            return answer
        raise self._error(answer, login)

    def _error(self, answer: Answer, login: Authorizer | None) -> StoreError:
        if login is None:
            return explain(answer, UNRELATED, ())
        return explain(answer, login.tried, login.secrets())


def explain(answer: Answer, credential: Credential, secrets: Iterable[str]) -> StoreError:
    """Turn a refusal into the exception that says what happened."""
    return Refusal.read(answer, secrets).error(credential)


@dataclass(frozen=True, slots=True)
class Repository:
    """One repository of a registry, and what we want to do there."""

    client: Client
    name: str
    actions: str = PULL

    def url(self, tail: str) -> Url:
        """The address of `tail` below this repository."""
        return self.client.base.join(f"/v2/{self.name}/{tail}")

    @property
    def shown(self) -> str:
        """`registry/repository`, for messages."""
        return f"{self.client.registry}/{self.name}"

    def once(
        self,
        method: str,
        where: str | Url,
        ok: Collection[int] | None,
        *,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        size: int = 0,
        elsewhere: bool = True,
        also: str = "",
    ) -> Answer:
        """Ask once; `also` names a second repository that we must be able to read."""
        scopes = (scope(self.name, self.actions), *((scope(also, PULL),) if also else ()))
        return self.client.once(
            method,
            self.url(where) if isinstance(where, str) else where,
            self.name,
            scopes,
            ok=ok,
            headers=headers or {},
            body=body,
            size=size,
            elsewhere=elsewhere,
        )

    def call(
        self,
        method: str,
        where: str | Url,
        ok: Collection[int],
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        elsewhere: bool = True,
    ) -> Answer:
        """Ask, again if that can help: for what may be repeated."""
        return self.client.patience.retry(
            lambda: self.once(method, where, ok, headers=headers, body=body, elsewhere=elsewhere)
        )

    def read(
        self,
        where: str | Url,
        ok: Collection[int],
        limit: int,
        *,
        accept: str = "",
        elsewhere: bool = True,
    ) -> tuple[Answer, bytes]:
        """GET a document whole; a cut body is asked for again. The body of a 404 is not read."""

        def once() -> tuple[Answer, bytes]:
            headers = {"Accept": accept} if accept else {}
            answer = self.once("GET", where, ok, headers=headers, elsewhere=elsewhere)
            return answer, answer.read(limit) if answer.status == 200 else b""  # noqa: PLR2004 - OK

        return self.client.patience.retry(once)

    def log_in(self) -> Authorizer:
        """What logs in here."""
        return self.client.authorizer(self.name)

    def refused(self, answer: Answer) -> Refusal:
        """Explain an answer that was let through by `ok`."""
        return Refusal.read(answer, self.log_in().secrets())
