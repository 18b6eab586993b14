"""Listings that come in pages (distribution-spec, "Listing Tags" and "Listing Referrers")."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ocipack.errors import StoreError
from ocipack.stores.http.answer import Answer
from ocipack.stores.http.url import Url
from ocipack.stores.registry.client import Client, Repository

PAGES = 1000
"""Pages of one listing that are read; a registry that names more is not believed."""

LISTING_LIMIT = 8 * 1024 * 1024
"""Bytes of one page: ten thousand referrers with annotations fit, and no more."""

LISTING_TOTAL = 64 * 1024 * 1024
"""Bytes of all pages of one listing: entries that repeat count too."""

_CUTS = frozenset({50, 100, 500, 1000, 5000, 10_000})
"""At which lengths registries cut lists, those too that forget to say so."""

_LINK = r'<([^<>]*)>((?:\s*;\s*[A-Za-z*]+\s*=\s*(?:"[^"]*"|[^\s;,"]+))*)'
_RELATION = r'(?i);\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))'


def following(at: Repository, answer: Answer, raw: bytes, *, accept: str) -> Iterator[bytes]:
    """Yield `raw`, the first page, and every further one.

    StoreError when a page is named on another host, twice, or beyond the limit: an incomplete
    listing must not look like a complete one.
    """
    seen, total = {answer.at.url.target}, len(raw)
    yield raw
    for _ in range(PAGES):
        url = _next(at.client, answer)
        if url is None:
            return
        if url.origin != at.client.base.origin:
            raise StoreError(f"{answer.at.what}: the next page is said to be at {url.shown}")
        if url.target in seen:
            raise StoreError(f"{answer.at.what}: its pages lead in a circle")
        seen.add(url.target)
        answer, raw = at.read(url, {200}, LISTING_LIMIT, accept=accept, elsewhere=False)
        total += len(raw)
        if total > LISTING_TOTAL:
            raise StoreError(f"{answer.at.what}: its pages have more than {LISTING_TOTAL} bytes")
        yield raw
    raise StoreError(f"{answer.at.what}: more than {PAGES} pages")


def is_cut(count: int) -> bool:
    """Whether a list of so many entries may be a page, though it names no next one."""
    return count in _CUTS


def has_more(at: Repository, answer: Answer) -> bool:
    """Whether `answer` is a page that another one follows."""
    return _next(at.client, answer) is not None


def _next(client: Client, answer: Answer) -> Url | None:
    for header in answer.headers("Link"):
        for match in re.finditer(_LINK, header):
            if _is_next(match[2]):
                return at_home(client, answer.at.url.join(match[1]))
    return None


def _is_next(parameters: str) -> bool:
    """Whether one of the relations (RFC 8288, 3.3) is `next`; in linear time."""
    found = (match[1] or match[2] or "" for match in re.finditer(_RELATION, parameters))
    return any("next" in relation.lower().split() for relation in found)


def at_home(client: Client, url: Url) -> Url:
    """Read an address of the registry itself as we reach it.

    Behind a proxy that ends TLS, registries name themselves as plain HTTP, or with that port.
    """
    base = client.base
    if url.host == base.host and url.scheme == "http" and base.scheme == "https":
        return Url(base.scheme, base.host, base.port, url.path, url.query)
    return url
