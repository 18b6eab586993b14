"""What a source is called at the target."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ocipack.errors import Misuse
from ocipack.mirror.model import Relocation, Source
from ocipack.oci.digest import Digest
from ocipack.oci.reference import Reference


@contextmanager
def about(source: Source) -> Iterator[None]:
    """Say of a Misuse which source it is about, and where the file says it."""
    try:
        yield
    except Misuse as e:
        where = f"{source.place}: " if source.place else ""
        raise Misuse(f"{where}{e}", hint=e.hint) from e


def repository(relocation: Relocation, source: Source) -> Reference:
    """The repository at the target. Misuse if nothing says it, or if it is no name.

    A registry is the same in any case, and a collision must be seen to be one.
    """
    bare = source.bare
    found = source.to or _by_rule(relocation, bare) or _by_name(relocation, bare)
    if found is None:
        found = _by_form(relocation, bare)
    found = replace(found, registry=found.registry.lower())
    if found == replace(bare, registry=bare.registry.lower()):
        raise Misuse(f"{bare} would be mirrored onto itself")
    return found


def is_flat(relocation: Relocation, source: Source) -> bool:
    """Whether `source` gets tags made of digests, in the one repository for all."""
    return (
        relocation.form == "flat" and str(repository(relocation, source)) == relocation.base.lower()
    )


def digest_tag(digest: Digest) -> str:
    """The tag that names content by its digest.

    Not `sha256-<hex>`: verifiers look there for what is attached to the digest.
    """
    return f"{digest.algorithm}.{digest.hex}"[:128]


def _by_rule(relocation: Relocation, bare: Reference) -> Reference | None:
    for rule in relocation.rules:
        filled = rule.match.fill(rule.to, str(bare))
        if filled is not None:
            return _parsed(filled, bare)
    return None


def _by_name(relocation: Relocation, bare: Reference) -> Reference | None:
    name = str(bare)
    for prefix, place in relocation.names:
        if name == prefix or name.startswith(f"{prefix}/"):
            return _parsed(place + name[len(prefix) :], bare)
    return None


def _by_form(relocation: Relocation, bare: Reference) -> Reference:
    if not relocation.base:
        raise Misuse(
            f"nothing says where {bare} goes",
            hint="give to for everything, or for this source, or a name or pattern in relocate",
        )
    if relocation.form == "flat":
        return _parsed(relocation.base, bare)
    path = bare.repository
    if relocation.form == "full":  # a port is no part of a name: host:5000 becomes host-5000
        registry = re.sub(r"[^a-z0-9.]+", "-", bare.registry.lower()).strip("-")
        path = f"{registry}/{path}"
    return _parsed(f"{relocation.base}/{path}", bare)


def _parsed(text: str, bare: Reference) -> Reference:
    try:
        found = Reference.parse(text)
    except Misuse as e:
        raise Misuse(f"{bare} would be called {text[:200]!r}, which is no name", hint=e.hint) from e
    if found.tag is not None or found.digest is not None:
        raise Misuse(f"{bare} would be called {text[:200]!r}, and a repository is needed")
    return found
