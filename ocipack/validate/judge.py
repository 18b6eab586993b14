"""One file or stream: read it, apply every rule, say where."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import MAPS, Resource, resources
from ocipack.k8s.yaml.documents import Document, parsed, read, split
from ocipack.k8s.yaml.events import Endless, YamlError
from ocipack.k8s.yaml.pieces import WIDE, Piece, cut
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.k8s.yaml.unportable import folded, unportable
from ocipack.k8s.yaml.values import Reader
from ocipack.report import Finding, Severity
from ocipack.validate import confidential, images, objects
from ocipack.validate.checks import checks
from ocipack.validate.options import Options
from ocipack.validate.schema import SchemaCheck
from ocipack.validate.sizes import sizes
from ocipack.validate.variables import patient
from ocipack.validate.verdict import Known, Shape, Verdict

UNREADABLE: Final = "yaml-unreadable"
UNPORTABLE: Final = "yaml-unportable"
NO_OBJECT: Final = "not-an-object"

_MARKS: Final = (b"apiVersion", b"kind")
_COMMENTS: Final = re.compile(rb"(?:[ \t]*(?:(?:---|\.\.\.)?[ \t]*(?:#[^\n]*)?)\r?(?:\n|\Z))*\Z")
_CLAIM: Final = re.compile(rb"""^[ \t{,]*["']?(?:apiVersion|kind)["']?[ \t]*:""", re.MULTILINE)
_SMALL: Final = 64 * 1024  # bytes of text that without aliases are no object over any limit
_TEMPLATE: Final = "an unrendered template? {% … %} is no YAML; --ignore leaves files out"
_SOPS: Final = b"ENC[AES256_GCM,"

Rule = Callable[[Resource], Iterable[Finding]]


@dataclass(slots=True)
class Judge:
    """Judges what comes from files as it is there, before anything renders or decrypts it.

    The sizes of objects are only looked at where the text allows that they are too large.
    """

    options: Options
    schemas: SchemaCheck
    _rules: tuple[Rule, ...] = field(init=False)

    def __post_init__(self) -> None:
        flux = self.options.dialect is Dialect.FLUX
        pinned = _demoted(images.pinned, Severity.NOTE, images.DIGEST)
        self._rules = (
            objects.identity_before_hooks,
            *(rule for rule in checks(self.schemas, variables=flux) if rule is not sizes),
            _demoted(confidential.plaintext, Severity.WARNING),
            patient(pinned) if flux else pinned,
        )

    def file(self, data: bytes, *, named: bool) -> Verdict:
        """Judge a file that is in memory; `named` by the user, not found in a directory.

        A file that was only found may be anything: unless it claims to be a Kubernetes object
        it is OTHER, and nothing is found in it.
        """
        if not named and (shape := _no_manifest(data)):
            return Verdict(shape)
        if self.options.dialect is Dialect.KUBECTL and data.lstrip()[:1] == b"{":
            verdict = self._json(data)
        else:
            verdict = self.part(cut((data,), self.options.dialect), 0)
        verdict.settle(named=named)
        return verdict

    def part(self, pieces: Iterable[Piece], first: int) -> Verdict:
        """Judge some pieces of a stream; the first of them is its piece number `first`."""
        verdict = self._begun()
        reader = Reader(self.options.dialect)
        for index, piece in enumerate(pieces, first):
            before = reader.odd
            try:
                document = parsed(reader, _text(piece, self.options.dialect), index)
            except YamlError as e:
                _unreadable(e, piece, verdict)
                if isinstance(e, Endless):
                    verdict.endless = True
                    break
                continue
            if document is not None:
                self._document(document, verdict, odd=reader.odd != before)
        return self._ended(verdict)

    def documents(self, documents: Iterable[tuple[Document, bool]], *, named: bool) -> Verdict:
        """Judge the documents of a file that were read already: each, and whether it is odd."""
        verdict = self._begun()
        for document, odd in documents:
            self._document(document, verdict, odd=odd)
        self._ended(verdict).settle(named=named)
        return verdict

    def built(self, found: Iterable[Resource]) -> Iterator[Finding]:
        """The findings about objects that were built, each by itself and all together."""
        every = [resource for resource in found if not self.options.skips(resource)]
        for resource in every:
            for rule in self._rules:
                yield from rule(resource)
            yield from sizes(resource)
            yield from confidential.undecryptable(resource)
        yield from objects.duplicates(every)

    def _document(self, document: Document, verdict: Verdict, *, odd: bool) -> None:
        """Judge one document and add to `verdict`; `odd` if its text may be unportable."""
        verdict.documents += 1
        found: list[Finding] = []
        rules = self._rules_for(document.chunk)
        try:
            for resource in resources((document,), self.options.dialect):
                found += self._resource(resource, rules, verdict)
                odd = odd or _retold(resource, document)
        except IntegrityError as e:
            text = str(e).partition(": ")[2] or str(e)
            found.append(Finding(NO_OBJECT, text, line=document.line))
        chunk = document.chunk
        if (odd or folded(chunk)) and not chunk.startswith(WIDE):
            found += _warned(document)
        if self._claims(document.value):
            verdict.claims += 1
            _place(found, document, verdict, verdict.findings)
        else:
            found = found or [Finding("object-identity", "not a Kubernetes object")]
            _place(found, document, verdict, verdict.held)

    def _claims(self, value: Any) -> bool:
        """Whether a document says that it is a Kubernetes object.

        Many programs have configuration files with apiVersion and kind, but without metadata:
        those count only if their kind is known.
        """
        if not isinstance(value, MAPS) or not ("apiVersion" in value or "kind" in value):
            return False
        if "metadata" in value or "items" in value:
            return True
        api, kind = value.get("apiVersion"), value.get("kind")
        if not isinstance(api, str) or not isinstance(kind, str):
            return False
        apis = self.schemas.apis
        return bool(apis.catalog.find(api, kind)) or apis.declared(api, kind) is not None

    def _rules_for(self, chunk: bytes) -> tuple[Rule, ...]:
        """The rules that can find something in an object of this text.

        Asked once for a document: a List may hold many objects.
        """
        rules = self._rules
        if len(chunk) > _SMALL or b"&" in chunk:
            rules = (*rules, sizes)
        return (*rules, confidential.undecryptable) if _SOPS in chunk else rules

    def _resource(
        self, resource: Resource, rules: tuple[Rule, ...], verdict: Verdict
    ) -> list[Finding]:
        verdict.count += 1
        if resource.kind and resource.name:
            line = resource.origin.line
            verdict.objects.append(Known(*resource.identity, resource.api_version, line))
        if self.options.skips(resource):
            return []
        return [finding for rule in rules for finding in rule(resource)]

    def _json(self, data: bytes) -> Verdict:
        verdict = self._begun()
        try:
            for document in read(data, self.options.dialect):
                self._document(document, verdict, odd=False)
        except YamlError as e:
            _unreadable(e, Piece(data, 1), verdict)
        return self._ended(verdict)

    def _begun(self) -> Verdict:
        self.schemas.missing.clear()
        return Verdict()

    def _ended(self, verdict: Verdict) -> Verdict:
        verdict.missing.update(self.schemas.missing)
        return verdict


def _text(piece: Piece, dialect: Dialect) -> Piece:
    """Refuse bytes that are no text, which kubectl would replace without a word."""
    if dialect is Dialect.KUBECTL and not piece.chunk.startswith(WIDE):
        try:
            piece.chunk.decode()
        except UnicodeDecodeError as e:
            line = piece.chunk.count(b"\n", 0, e.start) + piece.line
            raise YamlError("bytes that are not UTF-8", line, 1) from e
    return piece


def _unreadable(error: YamlError, piece: Piece, verdict: Verdict) -> None:
    """Add what could not be read; whether it was meant to be an object, the text may say."""
    found = Finding(
        UNREADABLE,
        re.sub(r"^line \d+, column \d+: ", "", str(error)),
        line=error.line,
        column=error.column,
        hint=error.hint or (_TEMPLATE if b"{%" in piece.chunk else ""),
    )
    if piece.fault or piece.chunk.startswith(WIDE) or _CLAIM.search(piece.chunk):
        verdict.claims += 1
        verdict.findings.append(found)
    else:
        verdict.held.append(found)


def _demoted(rule: Rule, severity: Severity, only: str = "") -> Rule:
    """The rule about what must not be delivered, where nothing is delivered yet."""

    def milder(resource: Resource) -> Iterator[Finding]:
        for finding in rule(resource):
            milden = not only or finding.rule == only
            yield replace(finding, severity=severity) if milden else finding

    return milder


def _retold(resource: Resource, document: Document) -> bool:
    """Whether kustomize makes text of annotations that are none: kubectl would refuse them."""
    value: Any = document.value
    for part in split(resource.origin.pointer):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value is not resource.value


def _warned(document: Document) -> Iterator[Finding]:
    for pointer, line, column, message, hint in unportable(document.chunk):
        yield Finding(
            UNPORTABLE,
            message,
            Severity.WARNING,
            line=document.line + line - 1,
            column=column,
            pointer=pointer,
            hint=hint,
        )


def _place(found: list[Finding], document: Document, verdict: Verdict, into: list[Finding]) -> None:
    """Add the findings of one document, with line and column where they have a pointer alone."""
    own = [finding for finding in found if not finding.file]
    verdict.strays += [finding for finding in found if finding.file]
    wanted = {finding.pointer for finding in own if not finding.column}
    places = document.places(wanted) if wanted else {}
    for finding in own:
        line, column = places.get(finding.pointer, (0, 0)) if not finding.column else (0, 0)
        into.append(replace(finding, line=line, column=column) if column else finding)


def _no_manifest(data: bytes) -> Shape | None:
    """What a file is that cannot hold an object, since it does not even hold the words."""
    if data.startswith(WIDE) or any(mark in data for mark in _MARKS):
        return None
    return Shape.EMPTY if _COMMENTS.match(data) else Shape.OTHER
