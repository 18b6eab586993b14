"""What a registry says when it says no (distribution-spec, "Error Codes")."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ocipack.errors import Denied, NotFound, StoreError, Unavailable
from ocipack.stores.auth.credential import Credential
from ocipack.stores.http.advice import client_hint, secure_hint
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.attempt import Attempt
from ocipack.stores.http.faults import Transient
from ocipack.stores.http.patience import RETRYABLE, retry_after
from ocipack.stores.http.url import printable

UNAUTHORIZED, FORBIDDEN, MISSING, TOO_BIG, TOO_MANY = 401, 403, 404, 413, 429
_SERVER_ERROR = 500

_DOORS: Mapping[str, Callable[[Attempt], str]] = {
    "no required ssl certificate": lambda at: f"it wants a client certificate: {client_hint(at)}",
    "ssl certificate error": lambda at: f"it does not accept our certificate {at.certificate}",
    "to https port": lambda at: f"it speaks TLS there: {secure_hint(at)}",
    "to an https server": lambda at: f"it speaks TLS there: {secure_hint(at)}",
}
"""What servers before a registry (nginx, Go's) answer instead of it, and what that means."""

_NO_REPOSITORY = "there is no such repository there, or this account may not see it"
_SPENT_HINT = (
    "what this account, or this address without one, may pull for now is used up: log in, wait "
    "some hours, or read through a mirror (registries.yaml)"
)
_IMMUTABLE = r"(?i)immutab|already[ _]?exists|overwrit|cannot be (?:changed|updated)"
_IMMUTABLE_STATUSES = frozenset({400, 403, 405, 409, 412, 422})


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failed answer, explained: the registry's own code and message, bounded and printable."""

    what: str
    status: int
    code: str = ""
    message: str = ""
    html: bool = False
    hint: str = ""
    after: float | None = None
    spent: bool = False

    @classmethod
    def read(cls, answer: Answer, secrets: Iterable[str] = ()) -> Refusal:
        """Read and drop the body of `answer`; `secrets` are blacked out wherever they appear."""
        body = answer.excerpt()
        text = body.decode(errors="replace")
        code, message = _first(body)
        if not code and answer.media_type.startswith("text/plain"):
            message = text
        for secret in secrets:
            code, message = code.replace(secret, "***"), message.replace(secret, "***")
        html = "html" in answer.media_type or text.lstrip()[:15].lower().startswith("<!doctype")
        return cls(
            answer.at.what,
            answer.status,
            printable(code.strip(), 60),
            printable(" ".join(message.split()), 200),
            html=html,
            hint=_door(answer.at, text.lower()),
            after=retry_after(answer),
            spent=answer.status == TOO_MANY and _is_spent(answer, text),
        )

    @property
    def said(self) -> str:
        """Status, code and message, as messages show them."""
        words = " ".join(word for word in (str(self.status), self.code) if word)
        if self.message:
            return f"{words}: {self.message}"
        return f"{words} (an HTML page, so perhaps not a registry)" if self.html else words

    @property
    def is_new_repository(self) -> bool:
        """Whether the registry says that there is no such repository (yet)."""
        return self.status == MISSING and self.code == "NAME_UNKNOWN"

    @property
    def is_immutable(self) -> bool:
        """Whether a tag could not be written since it must not move."""
        return self.status in _IMMUTABLE_STATUSES and bool(
            re.search(_IMMUTABLE, f"{self.code} {self.message}")
        )

    def error(self, credential: Credential) -> StoreError:
        """The exception for this refusal, by status."""
        words = f"{self.what}: {self.said}"
        if self.status in (UNAUTHORIZED, FORBIDDEN):
            return Denied(f"{words} (credentials: {credential.source})", hint=_login(credential))
        if self.status == MISSING:
            return NotFound(words, hint=_NO_REPOSITORY if self.is_new_repository else "")
        if self.status in RETRYABLE:
            return self._passing(words)
        hint = self.hint
        if self.status == TOO_BIG:
            hint = "a proxy before the registry limits the size of uploads (client_max_body_size)"
        return StoreError(words, hint=hint)

    def _passing(self, words: str) -> StoreError:
        if self.spent and self.after is None:
            return Unavailable(words, hint=_SPENT_HINT)
        if self.after is not None:
            words += f"; the registry asks to wait {self.after:g} s"
        if self.status == TOO_MANY:
            hint = "log in or ask less often: this registry limits how often it may be asked"
        else:
            hint = (
                "the registry has a problem; try again later"
                if self.status >= _SERVER_ERROR
                else ""
            )
        return Transient(words, hint=hint, after=self.after)


def _door(at: Attempt, text: str) -> str:
    return next((hint(at) for words, hint in _DOORS.items() if words in text), "")


def _is_spent(answer: Answer, text: str) -> bool:
    """Whether a quota of hours is used up, as against asking too fast: no short pause helps."""
    left = answer.header("RateLimit-Remaining").partition(";")[0].strip()
    return left == "0" or "pull rate limit" in text.lower()


def _login(credential: Credential) -> str:
    if credential.is_anonymous:
        return "log in to the registry first (ocipack login, docker login, or a credential helper)"
    return "check that this account is right and may do that in this repository"


def _first(body: bytes) -> tuple[str, str]:
    """The first code and message of an error document, whichever of its known shapes it has."""
    try:
        document: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "", ""
    errors = document.get("errors") if isinstance(document, dict) else None
    entry = errors[0] if isinstance(errors, list) and errors else document
    if not isinstance(entry, dict):
        return "", ""
    code = entry.get("code") or entry.get("error") or ""
    message = entry.get("message") or entry.get("error_description") or entry.get("detail") or ""
    return _text(code), _text(message)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
