"""Files over HTTP, whole and bounded: with the transport, settings and credentials of registries.

1. Credentials are those of the very host that is asked (docker's configuration), sent when it
   asks for them.
2. Plain HTTP is for hosts that may be asked so, and nothing reached by TLS leads there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ocipack.errors import IntegrityError, Misuse, StoreError
from ocipack.stores.auth.config import Credentials
from ocipack.stores.auth.credential import Credential
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.coding import NotGzip, gunzip
from ocipack.stores.http.transport import Transport
from ocipack.stores.http.url import Url
from ocipack.stores.registry.client import explain
from ocipack.stores.registry.refusal import UNAUTHORIZED

OK: Final = 200
FILE: Final = 64 * 1024 * 1024
"""Bytes of a file that is fetched by its address."""

_PIECE: Final = 256 * 1024


class Downloads:
    """Fetches files; safe for threads."""

    def __init__(self, transport: Transport, credentials: Credentials) -> None:
        self._transport, self._credentials = transport, credentials
        self._login: dict[str, Credential] = {}

    def address(self, text: str) -> Url:
        """Read an address. Misuse if it is none, or plain HTTP where that is not allowed (2)."""
        try:
            url = Url.parse(text)
        except StoreError as e:
            raise Misuse("not an address that can be asked", hint="write https://host/path") from e
        if url.scheme == "http" and not self.is_plain(url):
            raise Misuse(
                f"{url.shown}: plain HTTP, which anybody on the way can read and change",
                hint=f"use https://, or allow it with --plain-http {url.netloc}",
            )
        return url

    def is_plain(self, url: Url) -> bool:
        """Whether the host of `url` may be asked by plain HTTP."""
        return self._transport.base(url.netloc).scheme == "http"

    def file(self, text: str, limit: int = FILE) -> bytes:
        """The file at an address, as its server keeps it."""
        answer, raw = self.get(self.address(text), limit, {OK})
        return bare(answer, raw, limit)

    def get(
        self, url: Url, limit: int, ok: Collection[int], told: Url | None = None
    ) -> tuple[Answer, bytes]:
        """Read a file whole, again if that can help, in the coding in which it came.

        `told` is the address whose content named `url`. Any status of `ok` will do; the body is
        that of a 200 alone. IntegrityError if it is longer than `limit` bytes.
        """

        def once() -> tuple[Answer, bytes]:
            answer = self._asked(url, ok, told)
            if answer.status != OK:
                answer.finish()
                return answer, b""
            return answer, _limited(answer, limit)

        return self._transport.patience.retry(once)

    def _asked(self, url: Url, ok: Collection[int], told: Url | None) -> Answer:
        credential = self._login.get(url.netloc)
        answer = self._sent(url, credential, told)
        if answer.status == UNAUTHORIZED and credential is None:
            credential = self._credentials.find(url.netloc, "")  # (1)
            if credential.username:
                answer.finish()
                self._login[url.netloc] = credential
                answer = self._sent(url, credential, told)
        if answer.status in ok:
            return answer
        tried = credential or Credential("anonymous; the server asked for no credentials")
        raise explain(answer, tried, tried.secrets)

    def _sent(self, url: Url, credential: Credential | None, told: Url | None) -> Answer:
        headers = {"Authorization": credential.basic} if credential is not None else {}
        sender = told if told is not None and told.origin != url.origin else None
        return self._transport.exchange("GET", url, headers=headers, sent_by=sender)  # (2)


def _limited(answer: Answer, limit: int) -> bytes:
    """The body as it came; IntegrityError if it is longer than `limit` bytes."""
    if (answer.length or 0) > limit:
        answer.drop()
        raise IntegrityError(f"{answer.at.what}: the answer is longer than {limit} bytes")
    pieces, total = [], 0
    for piece in answer.chunks():
        total += len(piece)
        if total > limit:
            answer.drop()
            raise IntegrityError(f"{answer.at.what}: the answer is longer than {limit} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def bare(answer: Answer, raw: bytes, limit: int) -> bytes:
    """`raw` without the coding that its header says; as it is if it has none, or is too long."""
    if not answer.is_gzipped:
        return raw
    pieces, total = [], 0
    try:
        for piece in gunzip([raw], _PIECE):
            total += len(piece)
            if total > limit:
                return raw
            pieces.append(piece)
    except NotGzip:
        return raw
    return b"".join(pieces)
