"""Authorization for one registry: learnt from its first 401, then sent along.

Bearer tokens follow distribution's token specification (docs/spec/auth/token.md and oauth.md):
GET with Basic credentials, POST only for identity tokens. A token is for an exact set of scopes,
is fetched once whoever needs it, and is replaced before it expires.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from ocipack.errors import Denied, IntegrityError, Misuse, StoreError
from ocipack.stores.auth import challenge, realm
from ocipack.stores.auth.config import Credentials
from ocipack.stores.auth.credential import Credential
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.transport import Transport
from ocipack.stores.http.url import Url, printable

Scopes = tuple[str, ...]
"""`repository:NAME:ACTIONS`, the one that matters most first: some servers read only that."""

_LIMIT = 1024 * 1024
_LIFE = 60.0
_LONGEST = 3600.0
_USABLE = r"[A-Za-z0-9._~+/=-]{1,65536}"
_UNAUTHORIZED = 401
_NO_POST = frozenset({400, 401, 404, 405, 501})


@dataclass(slots=True)
class _Slot:
    """One token, and the lock under which it is fetched."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    value: str = field(default="", repr=False)
    until: float = 0.0


@dataclass(slots=True)
class Known:
    """What a registry has asked for so far; shared by everything that talks to it."""

    scheme: str = ""
    realm: Url | None = None
    service: str = ""


Failure = Callable[[Answer, Credential, Iterable[str]], StoreError]
"""Explains an answer: what came, the credential that was tried, what must not be shown."""


class Authorizer:
    """What to send to one registry, for one repository's credential; safe for threads."""

    def __init__(
        self,
        transport: Transport,
        credentials: Credentials,
        registry: str,
        repository: str,
        *,
        failure: Failure,
        known: Known,
    ) -> None:
        self._transport = transport
        self._credentials = credentials
        self._registry = registry
        self._repository = repository
        self._failure = failure
        self._base = transport.base(registry)
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._known = known
        self._slots: dict[Scopes, _Slot] = {}

    @property
    def credential(self) -> Credential:
        """What we log in with; looked up when it is first needed."""
        with self._lock:
            if self._credential is None:
                self._credential = self._credentials.find(self._registry, self._repository)
            return self._credential

    @property
    def tried(self) -> Credential:
        """The credential if it was ever looked up: for explaining a refusal."""
        return self._credential or Credential("anonymous; the registry asked for no credentials")

    @property
    def asked_for(self) -> str:
        """Words for how the registry wants us to log in; empty while it has not asked."""
        realm = self._known.realm
        if self._known.scheme == "bearer" and realm is not None:
            return f"a token from {realm.scheme}://{realm.netloc}{printable(realm.path, 100)}"
        return "a password" if self._known.scheme == "basic" else ""

    def header(self, scopes: Scopes) -> str:
        """The Authorization value for a request, empty while nothing was asked of us."""
        if self._known.scheme == "basic" and not self.credential.is_anonymous:
            return self.credential.basic
        if self._known.scheme == "bearer":
            return f"Bearer {self._token(scopes)}"
        return ""

    def answer(self, refused: Answer, scopes: Scopes, sent: str) -> str:
        """Learn from a 401 what to send instead of `sent`; empty if there is nothing better."""
        offered = {c.scheme: c for c in reversed(challenge.parse(_challenges(refused)))}
        bearer = offered.get("bearer")
        if bearer is not None and bearer.parameters.get("realm"):
            self._learn(bearer)
            self._forget(scopes, sent)
        elif "basic" in offered and not self.credential.is_anonymous:
            self._known.scheme = "basic"
        else:
            return ""
        better = self.header(scopes)
        if better == sent and self._renewed():
            better = self.header(scopes)
        return better if better != sent else ""

    def _renewed(self) -> bool:
        """Whether there is another credential now than the one that was refused."""
        with self._lock:
            before = self._credential
        found = self._credentials.renew(self._registry, self._repository)
        with self._lock:
            self._credential = found
        return before is not None and found != before

    def _learn(self, bearer: challenge.Challenge) -> None:
        named = self._base.join(bearer.parameters["realm"])
        settings = self._transport.settings
        allowed = settings.realms | settings.host(self._registry).realms
        realm.check(named, self._base, allowed, f"realms of {self._registry} in {settings.file}")
        with self._lock:
            self._known.realm = named
            self._known.service = bearer.parameters.get("service", "")
            self._known.scheme = "bearer"

    def _slot(self, scopes: Scopes) -> _Slot:
        with self._lock:
            return self._slots.setdefault(scopes, _Slot())

    def _forget(self, scopes: Scopes, sent: str) -> None:
        """Drop a token that was refused, unless somebody has already replaced it."""
        slot = self._slot(scopes)
        with slot.lock:
            if f"Bearer {slot.value}" == sent:
                slot.value = ""

    def _token(self, scopes: Scopes) -> str:
        given = self.credential.registry_token
        if given:
            if not re.fullmatch(_USABLE, given):
                raise Misuse(f"{self.credential.source}: registrytoken is not a token")
            return given
        slot, now = self._slot(scopes), self._transport.patience.monotonic
        with slot.lock:
            if not slot.value or now() >= slot.until:
                began = now()
                slot.value, life = self._transport.patience.retry(lambda: self._fetch(scopes))
                slot.until = began + life - min(10.0, life / 10)
            return slot.value

    def _fetch(self, scopes: Scopes) -> tuple[str, float]:
        """Ask the token service; the token and its life in seconds."""
        answer = self._ask(scopes)
        if answer.status == _UNAUTHORIZED and self._renewed():
            answer.finish()
            answer = self._ask(scopes)
        return self._read(answer)

    def _ask(self, scopes: Scopes) -> Answer:
        answer = self._post(scopes) if self.credential.identity_token else None
        return answer or self._get(scopes)

    def _post(self, scopes: Scopes) -> Answer | None:
        form = {
            "grant_type": "refresh_token",
            "service": self._known.service,
            "client_id": "ocipack",
            "scope": " ".join(scopes),
            "refresh_token": self.credential.identity_token,
        }
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode(form).encode()
        answer = self._transport.exchange("POST", self._where(), headers=kind, body=body)
        if answer.status in _NO_POST:
            answer.finish()
            return None
        return answer

    def _get(self, scopes: Scopes) -> Answer:
        url = self._where()
        for name, value in [("service", self._known.service), *(("scope", s) for s in scopes)]:
            url = url.plus(name, value) if value else url
        headers = {}
        login = self.credential
        if login.identity_token and not login.password:
            login = Credential(login.source, login.username or "<token>", login.identity_token)
        if login.username:
            headers["Authorization"] = login.basic
        return self._transport.exchange("GET", url, headers=headers, elsewhere=False)

    def _where(self) -> Url:
        if self._known.realm is None:
            raise StoreError(f"{self._registry} named no token service")
        return self._known.realm

    def _read(self, answer: Answer) -> tuple[str, float]:
        if answer.status != 200:  # noqa: PLR2004 - OK
            raise self._failure(answer, self.credential, self.secrets())
        try:
            document = json.loads(answer.read(_LIMIT))
        except (ValueError, RecursionError, IntegrityError):
            document = None
        document = document if isinstance(document, dict) else {}
        token = document.get("token") or document.get("access_token")
        if not isinstance(token, str) or not re.fullmatch(_USABLE, token):
            raise Denied(
                f"{answer.at.what}: the token service answered without a usable token",
                hint=f"is {answer.at.url.netloc} the token service of {self._registry}?",
            )
        return token, _life(document.get("expires_in"))

    def secrets(self) -> Iterable[str]:
        """Everything that must not be shown, should a server repeat it."""
        with self._lock:
            login = self._credential
            tokens = [slot.value for slot in self._slots.values() if slot.value]
        return [*(login.secrets if login is not None else ()), *tokens]


def _life(said: object) -> float:
    """Seconds a token lives; a minute unless something sane is said (token.md)."""
    if isinstance(said, bool) or not isinstance(said, int | float) or not said > 0:
        return _LIFE
    return float(min(said, _LONGEST))  # in this order: an int can be more than any float


def _challenges(answer: Answer) -> list[str]:
    return answer.headers("WWW-Authenticate")


def scope(repository: str, actions: str) -> str:
    """Name one repository and what we want there, as token services read it."""
    return f"repository:{quote(repository, safe='/')}:{actions}"
