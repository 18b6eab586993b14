"""Blobs in: POST and PUT, or a mount, or pieces (distribution-spec, "Pushing Blobs").

A blob that the registry already holds in another repository is mounted. When nothing is known
about the repository, the POST asks to mount the blob from the repository itself: that finds what
an interrupted run left behind and opens the upload otherwise, with one request instead of a HEAD
and a POST.

An upload that is cut goes on where the registry says that it was cut, by PATCH; one that is too
long for a proxy on the way is sent in pieces. Neither is trusted: the registry hashes the whole at
the end, and what it then refuses is sent anew, once, in one body. Only what comes by PATCH can be
expected to be kept: so what is big, and what was cut once, is streamed in one from the beginning,
as docker does, for one request more. (distribution keeps nothing of a request that is cut.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ocipack.errors import IntegrityError, Misuse, NotFound, StoreError
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.digest import Digest
from ocipack.oci.store import Source
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.faults import Silent, Transient
from ocipack.stores.http.transport import REDIRECTS, Body
from ocipack.stores.http.url import Url
from ocipack.stores.registry.client import UNRELATED, Repository
from ocipack.stores.registry.pages import at_home
from ocipack.stores.registry.refusal import TOO_BIG

CREATED, ACCEPTED = 201, 202
PIECES = (4 * 1024 * 1024, 512 * 1024)
"""Bytes of a piece: what GHCR takes at most, then half of what nginx lets pass if nobody says."""

RESUMED = 1024 * 1024
"""Bytes up to which asking how far an upload came costs more than sending it again."""

STREAMED = 64 * 1024 * 1024
"""Bytes from which on another request costs less than losing all of it once would."""

_MOST = 16 * 1024 * 1024
_NOTHING: Mapping[str, str] = {}
_DONE = frozenset({200, CREATED, 204})
_TAKEN = frozenset({200, CREATED, ACCEPTED, 204})
_REPLAYED = frozenset({307, 308})
_OK, _LOST, _OUT_OF_ORDER = 200, 404, 416
"""The blob is there; the upload is forgotten; a piece does not begin where the last one ended."""
_MISFITS = 2


_PIECES_HINT = (
    "it goes in pieces since the whole is too long for a proxy before the registry "
    "(client_max_body_size), and the registry does not take them"
)
_CREATE_HINT = (
    "some registries do not create a repository when something is pushed to it: create it there "
    "first (on ECR the repository, on Harbor and GitLab its project)"
)


def push(at: Repository, target: Descriptor, source: Source, *, origin: str = "") -> None:
    """Upload `target`, or mount it from repository `origin` of the same registry.

    What can succeed is tried again, from where it was cut if the registry knows, which asks
    `source` again.
    """
    sending = _Sending(at, target, source, origin)
    at.client.patience.retry(sending.attempt, lambda: sending.held)
    at.client.placed(target.digest, at.name)


class _Otherwise(Exception):
    """What was refused may be taken in another way, at once."""


class _Sending:
    """One blob on its way. `held` is how much of it the registry is known to have."""

    def __init__(self, at: Repository, target: Descriptor, source: Source, origin: str) -> None:
        self._at, self._target, self._source, self._origin = at, target, source, origin
        self._where: Url | None = None
        self._opened_once = False
        self._continued = False
        self._misfits = 0
        self._lost = False
        self._resumes = target.size > RESUMED
        self._streams = target.size >= STREAMED and at.client.features.streams
        self._piece = 0
        self._least = 0
        self.held = 0

    def attempt(self) -> None:
        """Bring the blob there; what is raised as Transient may be tried again."""
        while True:
            if self._where is None or not self._found():
                self._begin()
            if self._where is None:
                return
            try:
                self._send(self._where)
            except _Otherwise:
                continue
            except Silent as e:
                if self._found() and self.held:  # it has come far: no reason to give up
                    raise Transient(str(e), hint=e.hint) from e
                raise
            else:
                return

    def _begin(self) -> None:
        """Open an upload, perhaps not for the first time; nothing is open when all is there."""
        again = self._opened_once
        self._where = None if again and self._arrived() else self._open()
        self.held, self._continued, self._opened_once = 0, False, True
        if again:
            self._streams = self._resumes and self._at.client.features.streams

    def _open(self) -> Url | None:
        """Open an upload; None when the blob was mounted instead."""
        at, origin = self._at, self._origin
        if origin:
            url = at.url("blobs/uploads/").plus("mount", str(self._target.digest))
            also = origin if origin != at.name else ""
            answer = at.once("POST", url.plus("from", origin), None, also=also)
            if answer.status == CREATED:
                answer.finish()
                return None
            if answer.status == ACCEPTED:
                return self._opened(answer)
            answer.finish()  # refused in any way: a mount is only a shortcut
            if origin == at.name:
                at.client.features.self_mount = False
        answer = at.once("POST", "blobs/uploads/", {ACCEPTED, _LOST})
        if answer.status == _LOST:
            refusal = at.refused(answer)
            raise NotFound(f"{refusal.what}: {refusal.said}", hint=_CREATE_HINT)
        return self._opened(answer)

    def _opened(self, answer: Answer) -> Url:
        least = answer.header("OCI-Chunk-Min-Length")
        self._least = int(least) if re.fullmatch("[0-9]{1,12}", least) else 0
        where = self._location(answer)
        if where is None:
            raise StoreError(f"{answer.at.what}: opened an upload and did not say where")
        return where

    def _location(self, answer: Answer) -> Url | None:
        """Read where the upload goes on.

        A host that the registry sent us to does not send us back: it could name anything there,
        and we would do it with our credentials.
        """
        named = answer.header("Location")
        answer.finish()
        if not named:
            return None
        base = self._at.client.base
        url = at_home(self._at.client, answer.at.url.join(named))
        if url.origin == base.origin != answer.at.url.origin:
            raise StoreError(f"{answer.at.what}: sends the upload back to {url.shown}")
        return url

    def _arrived(self) -> bool:
        """Whether all that was lost of an upload is the answer to its end."""
        if self._target.size <= RESUMED:
            return False
        answer = self._at.once("HEAD", f"blobs/{self._target.digest}", None)
        answer.finish()
        return answer.status == _OK and answer.length == self._target.size

    def _found(self) -> bool:
        """Ask how far the upload came; whoever does not say is sent it anew."""
        if self._where is None or not self._resumes:
            return False
        try:
            answer = self._at.once("GET", self._where, _TAKEN, elsewhere=False)
            end = re.fullmatch(r"(?:bytes=)?0-([0-9]{1,19})", answer.header("Range"))
            self._where = self._location(answer) or self._where
        except StoreError:
            return False
        held = int(end[1]) + 1 if end else -1
        self.held, self._continued = (0 if held == 1 else held), True  # 0-0 is nothing, too
        return 0 <= self.held <= self._target.size

    def _send(self, where: Url) -> None:
        whole = not (self.held or self._piece or self._streams)
        where = where if whole else self._send_pieces(where)
        size = self._target.size if whole else 0
        body: Body = (lambda: _content(self._target, self._source)) if whole else b""
        answer = self._ask("PUT", where.plus("digest", str(self._target.digest)), body, size)
        if answer.status not in _DONE:
            raise self._refusal(answer, size)
        check_digest(answer, self._target.digest)
        answer.finish()

    def _send_pieces(self, where: Url) -> Url:
        """Send what is missing, in one piece or in many; where the upload ends."""
        for body, size in self._pieces():
            streamed = not (self.held or self._piece)
            place = {} if streamed else {"Content-Range": f"{self.held}-{self.held + size - 1}"}
            answer = self._ask("PATCH", where, body, size, place)
            if answer.status not in _TAKEN:
                raise self._refusal(answer, size)
            where = self._location(answer) or where
            self._where, self.held = where, self.held + size
        return where

    def _pieces(self) -> Iterator[tuple[Body, int]]:
        begin = self.held
        if begin == self._target.size:
            return
        if not self._piece:
            yield lambda: _content(self._target, self._source, begin), self._target.size - begin
            return
        size, piece = max(self._piece, min(self._least, _MOST)), b""
        for chunk in _content(self._target, self._source, begin):
            piece += chunk
            while len(piece) > size:
                yield piece[:size], size
                piece = piece[size:]
        yield piece, len(piece)

    def _ask(
        self, method: str, url: Url, body: Body, size: int, more: Mapping[str, str] = _NOTHING
    ) -> Answer:
        """Send a part; where the registry sends us on with it, it is sent there."""
        headers = {"Content-Type": "application/octet-stream", **more}
        for _ in range(REDIRECTS + 1):
            answer = self._at.once(method, url, None, headers=headers, body=body, size=size)
            named = self._location(answer) if answer.status in _REPLAYED else None
            if named is None:
                return answer
            url = named
        raise StoreError(f"{method} {url.shown}: more than {REDIRECTS} redirects")

    def _refusal(self, answer: Answer, size: int) -> Exception:
        """What a refused part means: another way, another try, or the end."""
        refusal = self._at.refused(answer)
        own = answer.at.url.origin == self._at.client.base.origin
        error = refusal.error(self._at.log_in().tried if own else UNRELATED)
        smaller = [n for n in PIECES if n < size and n < (self._piece or size)]
        if refusal.status == TOO_BIG and smaller:
            self._piece = smaller[0]
            return _Otherwise()
        if refusal.status == _LOST and not (self._streams and self._lost):
            self._where, self._lost = None, True  # a restart, or another instance of that name
            return Transient(str(error))
        if refusal.status == _OUT_OF_ORDER and self._resumes and self._misfits < _MISFITS:
            self._misfits += 1
            return Transient(str(error))  # it was still writing; the next try asks how far it is
        if not isinstance(error, Transient) and (self._continued or self._streams):
            if self._continued:  # not as it said that it would: anew, in no parts that it has
                self._resumes = False
            else:  # a registry without PATCH
                self._at.client.features.streams = self._opened_once = False
            self._streams = False
            return _Otherwise()
        if self._piece:
            error.hint = error.hint or _PIECES_HINT
        return error


def _content(target: Descriptor, source: Source, begin: int = 0) -> Iterable[bytes]:
    """Open the content, and have its first piece, before anything of the request is sent.

    A source that fails at once costs no upload, and one that is the same server is not asked while
    that waits for our body. What comes before `begin` is read and hashed, and not sent.
    """
    chunks = target.check(source.fetch(target))
    first = b""
    while begin >= len(first):
        begin -= len(first)
        first = next(chunks, b"")
        if not first:
            break
    return chain([first[begin:]], chunks)


def check_digest(answer: Answer, digest: Digest) -> None:
    """Compare what the registry says it holds; IntegrityError if it is something else.

    A missing header is common, and one of another algorithm says nothing.
    """
    said = answer.header("Docker-Content-Digest")
    if not said:
        return
    try:
        other = Digest.parse(said)
    except Misuse:
        answer.drop()
        raise IntegrityError(f"{answer.at.what}: Docker-Content-Digest is not a digest") from None
    if other.algorithm == digest.algorithm and other != digest:
        answer.drop()
        raise IntegrityError(f"{answer.at.what}: the registry calls {digest} {other}")
