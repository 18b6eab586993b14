"""The mirror file, read strictly.

    apiVersion: ocipack.dev/v1alpha1
    kind: Mirror
    to: oci://registry.example/mirror
    policies: [policy.yaml]
    sources:
    - image: ghcr.io/org/app
      select: {semver: ">=1.2", limit: 5}

The same is said for machines by docs/schemas/mirror-v1alpha1.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Mapping, Node
from ocipack.k8s.yaml.strict import Reader
from ocipack.lock import Lock
from ocipack.mirror.model import (
    FORMS,
    KINDS,
    SORTS,
    Mirror,
    Relocation,
    Rule,
    Selection,
    Source,
    glob,
)
from ocipack.mirror.pattern import Pattern
from ocipack.mirror.versions import Range
from ocipack.oci.location import Location
from ocipack.oci.reference import Reference

KIND: Final = "Mirror"

BYTES: Final = 4 * 1024 * 1024
"""Bytes of a mirror file."""

FindLock = Callable[[str], Lock]
"""Reads the lock that a mirror file names."""

_ROOT: Final = ("to", "relocate", "policies", "unsigned", "sources")
_SOURCE: Final = (
    *("to", "platforms", "attached", "requireSignatures", "overwrite", "unsigned"),
    *("tags", "select", "include", "immutableTags"),
)
_LOCKED: Final = ("lock", "kinds", *_SOURCE[:6])
_SELECT: Final = (
    *("pattern", "extract", "semver", "prereleases", "exclude", "sort", "limit", "minTags"),
)
_EXAMPLE: Final = "{image: registry.example/app, tags: [v1]}"
_SCHEME: Final = "oci://"


def read(data: bytes, *, file: str, lock: FindLock) -> Mirror:
    """The mirror that the content of `file` says; Misuse says what is wrong, and where."""
    reader = Reader(file, BYTES)
    root = reader.ours(data, _ROOT, kind=KIND)
    sources = [
        source
        for node in reader.items(root.get("sources"), "sources", empty=True)
        for source in _sources(reader, node, lock)
    ]
    if not sources:
        place = (root.get("sources") or root).place
        reader.refuse(place, "there are no sources", f"write sources: [{_EXAMPLE}]")
    with reader.about(root):
        return Mirror(
            tuple(sources),
            _relocation(reader, root),
            reader.texts(root.get("policies"), "policies", "policy"),
            reader.flag(root.get("unsigned"), "unsigned", default=False),
        )


def _relocation(reader: Reader, root: Mapping) -> Relocation:
    base, node = _place(reader, root.get("to"), "to"), root.get("relocate")
    if node is None:
        return Relocation(base)
    found = reader.mapping(node, "relocate", ("form", "names", "patterns"))
    form = reader.choice(found.get("form"), "form", FORMS)
    with reader.about(found):
        return Relocation(
            base,
            next(one for one in FORMS if one == form),
            tuple(_names(reader, found.get("names"))),
            tuple(_rule(reader, one) for one in reader.items(found.get("patterns"), "patterns")),
        )


def _names(reader: Reader, node: Node | None) -> Iterator[tuple[str, str]]:
    if node is None:
        return
    if not isinstance(node, Mapping):
        reader.refuse(node.place, "names should be a mapping", "as docker.io: oci://host/hub")
    for pair in node.pairs:
        yield pair.key.removeprefix(_SCHEME), _place(reader, pair.value, pair.key)


def _rule(reader: Reader, node: Node) -> Rule:
    found = reader.mapping(node, "a pattern", ("match", "to"), ("match", "to"))
    with reader.about(found):
        return Rule(
            Pattern(reader.text(found.get("match"), "match")), _place(reader, found.get("to"), "to")
        )


def _place(reader: Reader, node: Node | None, what: str) -> str:
    """A place in a registry, without `oci://`; empty if it is absent."""
    text = reader.text(node, what)
    if node is not None and not text.startswith(_SCHEME):
        reader.refuse(node.place, f"{what} is no place in a registry", "write oci://registry/…")
    return text.removeprefix(_SCHEME)


def _sources(reader: Reader, node: Node, lock: FindLock) -> Iterator[Source]:
    if isinstance(node, Mapping) and node.get("lock") is not None:
        yield from _locked(reader, reader.mapping(node, "a lock", _LOCKED), lock)
        return
    if not isinstance(node, Mapping):
        reader.refuse(node.place, "a source should be a mapping", f"write {_EXAMPLE}")
    found = reader.mapping(node, "a source", (*KINDS, "lock", "repository", "images", *_SOURCE))
    kinds = [kind for kind in KINDS if found.get(kind) is not None]
    if len(kinds) != 1:
        hint = f"a source is one of {', '.join(KINDS)} and lock"
        reader.refuse(found.place, "the source does not say what it is", hint)
    kind = kinds[0]
    with reader.about(found):
        reference, repository = _named(reader, found, kind)
        source = Source(
            kind,
            reference,
            reader.texts(found.get("tags"), "tags", "tag"),
            _selection(reader, found.get("select"), is_chart=kind == "chart"),
            reader.texts(found.get("include"), "include", "tag"),
            _immutable(reader, found),
            place=_at(reader, found),
            repository=repository,
            images=reader.flag(found.get("images"), "images", default=False),
        )
        if source.images and kind != "chart":
            reader.refuse(found.place, "images belongs to charts")
        yield _how(reader, found, source)


def _named(reader: Reader, found: Mapping, kind: str) -> tuple[Reference, Location | None]:
    """What a source is called, and where it is if that is a classic Helm repository."""
    text, node = reader.text(found.get(kind), kind), found.get("repository")
    if node is None:
        return Reference.parse(text.removeprefix(_SCHEME)), None
    address = reader.text(node, "repository")
    if kind != "chart" or not address.startswith(("https://", "http://")):
        hint = "write https://…; a chart in a registry is chart: oci://…, without repository"
        reader.refuse(node.place, "repository is the address of a classic Helm repository", hint)
    if "/" in text:
        reader.refuse(found.place, "chart is its name alone, where repository says the rest")
    where = Location.parse(f"helm+{address.rstrip('/')}/{text}", cwd="/")
    return where.reference, where


def _immutable(reader: Reader, found: Mapping) -> Pattern | None:
    text = reader.text(found.get("immutableTags"), "immutableTags")
    return glob(text) if text else None


def _how(reader: Reader, found: Mapping, source: Source) -> Source:
    """`source` with what images and locks can both say."""
    to = _place(reader, found.get("to"), "to")
    target = Reference.parse(to) if to else None
    if target is not None and (target.tag is not None or target.digest is not None):
        raise Misuse(f"to is a repository, and {to!r} names content in one")
    return replace(
        source,
        to=target,
        platforms=reader.texts(found.get("platforms"), "platforms", "platform"),
        attached=reader.flag(found.get("attached"), "attached", default=True),
        require_signatures=reader.flag(
            found.get("requireSignatures"), "requireSignatures", default=False
        ),
        overwrite=reader.flag(found.get("overwrite"), "overwrite", default=False),
        unsigned=reader.flag(found.get("unsigned"), "unsigned", default=False),
    )


def _selection(reader: Reader, node: Node | None, *, is_chart: bool) -> Selection | None:
    if node is None:
        return None
    found = reader.mapping(node, "select", _SELECT)
    pattern, semver = (reader.text(found.get(name), name) for name in ("pattern", "semver"))
    if not pattern and not semver:
        hint = 'pattern: ".*" is every tag'
        reader.refuse(found.place, "select has neither pattern nor semver", hint)
    usual = "semver" if semver or is_chart else "alphabetical"
    sort = reader.choice(found.get("sort"), "sort", SORTS) if found.get("sort") else usual
    with reader.about(found):
        return Selection(
            Pattern(pattern) if pattern else None,
            reader.text(found.get("extract"), "extract"),
            Range(semver) if semver else None,
            reader.flag(found.get("prereleases"), "prereleases", default=False),
            tuple(glob(one) for one in reader.texts(found.get("exclude"), "exclude", "glob")),
            next(one for one in SORTS if one == sort),
            reader.whole(found.get("limit"), "limit", 0),
            reader.whole(found.get("minTags"), "minTags", 1),
        )


def _locked(reader: Reader, found: Mapping, lock: FindLock) -> Iterator[Source]:
    """A source for every entry of a lock: its digest, under its tag."""
    path = reader.text(found.get("lock"), "lock")
    kinds = reader.texts(found.get("kinds"), "kinds", "kind") or ("image", "artifact")
    for kind in kinds:
        if kind not in ("image", "artifact"):
            reader.refuse(found.place, "kinds are image and artifact")
    with reader.about(found):
        entries = [entry for entry in lock(path).entries if entry.kind in kinds]
        if not entries:
            raise Misuse(f"{path} has no such entries", hint="`ocipack pin --lock FILE` fills it")
        for entry in entries:
            source = Source(
                entry.kind,
                entry.reference.at(entry.content.digest),
                locked=True,
                recorded=frozenset(one.digest for one in entry.attached if one.via == "referrer"),
                place=_at(reader, found),
            )
            yield _how(reader, found, source)


def _at(reader: Reader, node: Node) -> str:
    return f"{reader.file}:{node.place.line}:{node.place.column}"
