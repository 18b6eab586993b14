"""What a registry can do, found out by asking: for reading only, nothing changes there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ocipack.errors import Denied, IntegrityError, Rejected, StoreError, malformed
from ocipack.oci import jsontext
from ocipack.oci.descriptor import INDEX
from ocipack.oci.digest import Digest
from ocipack.oci.reference import TAG
from ocipack.stores.auth import challenge
from ocipack.stores.auth.credential import Credential
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.patience import RETRYABLE
from ocipack.stores.http.url import printable
from ocipack.stores.registry import manifests
from ocipack.stores.registry.client import PULL, Client, Repository
from ocipack.stores.registry.pages import LISTING_LIMIT
from ocipack.stores.registry.refusal import FORBIDDEN, MISSING, UNAUTHORIZED
from ocipack.trust.presented import Presented

_OK, _PARTIAL = 200, 206
_PAGE = 100
_ACCEPT = {"Accept": INDEX}
_NOBODY = Digest("sha256", "0" * 64)
_NO_API = (
    "the address is not that of a registry: a proxy must pass /v2/ on, Nexus has a port or a path "
    "for each repository, and the path belongs into the name"
)


class Outcome(StrEnum):
    """Whether something works; UNKNOWN is not having found out."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that was looked at. `needed` says that nothing works without it."""

    name: str
    outcome: Outcome
    detail: str
    hint: str = ""
    needed: bool = False

    @classmethod
    def failed(cls, name: str, error: StoreError, *, needed: bool = False) -> Found:
        """What an error means: refused is no, anything else is not known."""
        denied = isinstance(error, Denied)
        return cls(name, Outcome.NO if denied else Outcome.UNKNOWN, str(error), error.hint, needed)


def refused(name: str, at: Repository, answer: Answer, *, needed: bool = False) -> Found:
    """What an answer means that is not the one of a registry that can do it."""
    refusal = at.refused(answer)
    error = refusal.error(at.log_in().tried)
    outcome = Outcome.UNKNOWN if refusal.status in RETRYABLE else Outcome.NO
    return Found(name, outcome, refusal.said, error.hint, needed)


def attempt(name: str, step: Callable[[], Found], *, needed: bool = False) -> Found:
    """Take one step; what it raises becomes what was found."""
    try:
        return step()
    except StoreError as e:
        return Found.failed(name, e, needed=needed)
    except Rejected as e:  # other content, or a redirect that leads where nobody may go
        return Found(name, Outcome.NO, str(e), e.hint, needed)


def reading(client: Client, repository: str = "") -> Iterator[Found]:
    """Ask what can be found out without changing anything, most important first.

    Ends early where nothing further can be asked. With a `repository`, what depends on one is
    asked there; it need not exist.
    """
    try:
        answer, denied = knock(client, repository)
    except StoreError as e:
        yield Found("connection", Outcome.NO, str(e), e.hint, needed=True)
        return
    at = Repository(client, repository, PULL)
    yield _connection(client)
    api = _api(at, answer)
    yield api
    if api.outcome is Outcome.YES:
        auth = _auth(at, answer, denied)
        yield auth
        if auth.outcome is Outcome.YES and repository:
            yield from _content(at)


def knock(client: Client, repository: str = "") -> tuple[Answer | None, Denied | None]:
    """Ask for the API itself; Denied is what a token service answered instead of a token."""

    def once() -> tuple[Answer | None, Denied | None]:
        try:
            answer = client.once(
                "GET",
                client.base,
                repository,
                (),
                ok=None,
                headers={},
                body=None,
                size=0,
                elsewhere=False,
            )
        except Denied as e:
            return None, e
        return answer, None

    return client.patience.retry(once)


def prove(client: Client, credential: Credential) -> bool:
    """Find out whether a registry takes the `credential` that `client` has; Denied if not.

    False if it asked for none, so that nothing is proven.
    """
    answer, denied = knock(client)
    if denied is not None:
        raise denied
    assert answer is not None  # it is there unless we were denied
    at = Repository(client, "")
    if answer.status != _OK:
        raise at.refused(answer).error(credential)
    answer.finish()
    return bool(at.log_in().asked_for)


def _connection(client: Client) -> Found:
    shown = client.look()
    if client.base.scheme == "http":
        return Found("connection", Outcome.YES, "plain HTTP", needed=True)
    if shown is None or not shown.certificate:
        return Found("connection", Outcome.YES, "TLS", needed=True)
    try:
        words = str(Presented.parse(shown.certificate))
    except IntegrityError:
        words = "a certificate that cannot be shown"
    return Found("connection", Outcome.YES, f"{shown.version}: {words}", needed=True)


def _api(at: Repository, answer: Answer | None) -> Found:
    if answer is None:
        return Found("api", Outcome.YES, "it asks for a token", needed=True)
    version = printable(answer.header("Docker-Distribution-API-Version"), 60)
    known = answer.status in (_OK, UNAUTHORIZED, FORBIDDEN)
    html = "html" in answer.media_type and not version
    if known and not html:
        return Found("api", Outcome.YES, version or "version not said", needed=True)
    found = refused("api", at, answer, needed=True)
    hint = _NO_API if found.outcome is Outcome.NO else found.hint
    return Found("api", found.outcome, found.detail, hint, needed=True)


def _auth(at: Repository, answer: Answer | None, denied: Denied | None) -> Found:
    login = at.log_in()
    asked = login.asked_for
    if denied is not None:
        return Found("auth", Outcome.NO, str(denied), denied.hint, needed=True)
    assert answer is not None  # it is there unless we were denied
    if answer.status != _OK:
        found = refused("auth", at, answer, needed=True)
        schemes = [one.scheme for one in challenge.parse(answer.headers("WWW-Authenticate"))]
        wanted = asked or " or ".join(schemes)[:100] or "it asks for nothing"
        detail = f"{found.detail}; asks for {wanted}"
        words = f"{detail}; credentials: {login.tried.source}"
        return Found("auth", Outcome.NO, words, found.hint, needed=True)
    answer.finish()
    words = f"{asked}; credentials: {login.tried.source}" if asked else "it asks for none"
    return Found("auth", Outcome.YES, words, needed=True)


def _content(at: Repository) -> Iterator[Found]:
    names: list[str] = []
    yield attempt("tags", lambda: _tags(at, names))
    tag = next((name for name in names if not name.startswith("sha256-")), "")
    root: list[Digest] = []
    if tag:
        yield attempt("head", lambda: _head(at, tag, root))
        yield attempt("ranges", lambda: _ranges(at, tag))
    yield attempt("referrers", lambda: referrers(at, root[0] if root else _NOBODY))


def _tags(at: Repository, names: list[str]) -> Found:
    answer = at.once("GET", f"tags/list?n={_PAGE}", None, elsewhere=False)
    if answer.status == MISSING:
        said = at.refused(answer).said
        hint = "there is no such repository, or it may not be seen"
        return Found("tags", Outcome.UNKNOWN, said, hint)
    if answer.status != _OK:
        return refused("tags", at, answer, needed=answer.status in (UNAUTHORIZED, FORBIDDEN))
    more = bool(answer.header("Link"))
    with malformed(answer.at.what):
        listed = jsontext.decode(answer.read(LISTING_LIMIT)).get("tags") or []
        names += [name for name in listed if isinstance(name, str) and TAG.fullmatch(name)]
    count = f"{len(names)} tag{'' if len(names) == 1 else 's'}" + (
        " on the first page" if more else ""
    )
    return Found("tags", Outcome.YES, count)


def _head(at: Repository, tag: str, root: list[Digest]) -> Found:
    found = manifests.head(at, tag)
    if found is None:
        detail = f"HEAD of {tag} does not say digest, size and type: each tag costs a GET"
        return Found("head", Outcome.NO, detail)
    root.append(found.digest)
    return Found("head", Outcome.YES, f"{tag} is {found.digest}")


def _ranges(at: Repository, tag: str) -> Found:
    """Whether a download can go on where it was cut."""
    _, manifest = manifests.get(at, tag)
    blobs = [child for child in manifest.children if not child.is_manifest and child.size > 1]
    if not blobs:
        return Found("ranges", Outcome.UNKNOWN, f"{tag} has no blob to ask for")
    answer = at.once("GET", f"blobs/{blobs[0].digest}", None, headers={"Range": "bytes=1-1"})
    if answer.status not in (_OK, _PARTIAL):
        return refused("ranges", at, answer)
    answer.drop()
    if answer.status == _PARTIAL:
        return Found("ranges", Outcome.YES, "a download that is cut goes on where it was")
    return Found("ranges", Outcome.NO, "a download that is cut begins anew")


def referrers(at: Repository, subject: Digest) -> Found:
    """Whether there is a referrers API: 200 with exactly the media type of an index."""
    answer = at.once("GET", f"referrers/{subject}", None, headers=_ACCEPT, elsewhere=False)
    kind = answer.header("Content-Type").strip()
    if answer.status == _OK and kind == INDEX:
        answer.finish()
        return Found("referrers", Outcome.YES, "listed by the API")
    if answer.status in (UNAUTHORIZED, FORBIDDEN) or answer.status in RETRYABLE:
        return refused("referrers", at, answer)
    refusal = at.refused(answer)
    if refusal.is_new_repository:
        return Found("referrers", Outcome.UNKNOWN, f"{refusal.said}: no such repository yet")
    said = printable(kind, 60) if answer.status == _OK else refusal.said
    detail = f"no API ({said}): signatures are listed under tags sha256-<hex>"
    return Found("referrers", Outcome.NO, detail)
