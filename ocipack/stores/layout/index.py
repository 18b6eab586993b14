"""`index.json` and fallback listings: documents of others that we edit and do not own.

Entries are kept as the JSON objects they are. What we do not know (members, annotations,
platforms) stays as it was; only what we add or rename is ours (OCI image-spec, image-layout.md,
"index.json file"; distribution-spec, "Referrers Tag Schema").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ocipack.errors import IntegrityError, Misuse, Rejected, malformed
from ocipack.oci import jsontext
from ocipack.oci.descriptor import INDEX, Descriptor
from ocipack.oci.layout import REF_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ocipack.oci.digest import Digest

ENTRIES = 10_000
"""Entries of an index that we are ready to read or write."""

BYTES = 8 * 1024 * 1024
"""Bytes of an index.json that we are ready to read or write."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Index:
    """A parsed index document, `where` it was found, and its entries; edits give a new one."""

    where: str
    document: Mapping[str, Any]
    entries: tuple[Entry, ...]

    @classmethod
    def empty(cls, where: str) -> Index:
        """Start an index without entries."""
        return cls(where, {"schemaVersion": 2, "mediaType": INDEX, "manifests": []}, ())

    @classmethod
    def parse(cls, raw: bytes, where: str, *, hint: str = "") -> Index:
        """Read an index; IntegrityError if it is none, or has more than ENTRIES entries.

        The `hint` says what to do about one that is not JSON.
        """
        with malformed(where, hint=hint):
            document = jsontext.decode(raw)
        if not isinstance(document, dict) or document.get("mediaType", INDEX) != INDEX:
            raise IntegrityError(f"{where}: not an OCI image index")
        entries = document.get("manifests")
        entries = [] if entries is None else entries  # Go writes null for an empty list
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise IntegrityError(f"{where}: manifests must be a list of JSON objects")
        if len(entries) > ENTRIES:
            raise IntegrityError(
                f"{where}: {len(entries)} entries, and at most {ENTRIES} are read",
                hint="split the layout",
            )
        return cls(where, document, tuple(entries))

    def encode(self) -> bytes:
        """Write the document; Rejected if we would not read it again."""
        raw = jsontext.encode({**self.document, "manifests": list(self.entries)})
        if len(self.entries) > ENTRIES or len(raw) > BYTES:
            raise Rejected(
                f"{self.where}: would have {len(self.entries)} entries in {len(raw)} bytes, and at "
                f"most {ENTRIES} in {BYTES} are read again",
                hint="start another layout, or remove old tags",
            )
        return raw

    def tags(self) -> set[str]:
        """Every name that an entry has."""
        return {name for entry in self.entries if (name := _name(entry)) is not None}

    def of(self, name: str) -> list[Entry]:
        """Find the entries that have the tag `name`: one, unless others wrote more."""
        return [entry for entry in self.entries if _name(entry) == name]

    def named(self, name: str) -> Descriptor | None:
        """Find what the tag `name` points at; IntegrityError if that is two different things."""
        with malformed(f"{self.where}: the entry of tag {name}"):
            targets = dict.fromkeys(Descriptor.from_dict(e).plain for e in self.of(name))
        if len(targets) > 1:
            both = ", ".join(str(target.digest) for target in targets)
            raise IntegrityError(
                f"{self.where}: tag {name} is ambiguous: {both}", hint="ask for one by its digest"
            )
        return next(iter(targets), None)

    def readable(self) -> Iterator[tuple[Descriptor, bool]]:
        """Yield each entry that is a manifest we can name, and whether it has a tag."""
        for entry in self.entries:
            try:
                target = Descriptor.from_dict(entry)
            except (Misuse, KeyError):
                continue  # another digest algorithm, or no descriptor: not ours to use or remove
            if target.is_manifest:
                yield target, _name(entry) is not None

    def lists(self, digest: Digest) -> bool:
        """Whether an entry without a tag names `digest`."""
        return any(e.get("digest") == str(digest) and _name(e) is None for e in self.entries)

    def holds(self, digest: Digest) -> bool:
        """Whether any entry names `digest`."""
        return any(entry.get("digest") == str(digest) for entry in self.entries)

    def without(self, targets: Iterable[Descriptor]) -> Index:
        """Drop the entries that say nothing but that one of `targets` is there."""
        bare = [target.plain.to_dict() for target in targets]
        kept = tuple(entry for entry in self.entries if entry not in bare) if bare else self.entries
        return Index(self.where, self.document, kept)

    def with_entry(self, target: Descriptor) -> Index:
        """Add `target` as an entry without a tag."""
        return Index(self.where, self.document, (*self.entries, target.to_dict()))

    def with_tag(self, target: Descriptor, name: str, *, forget: bool = False) -> Index:
        """Point `name` at `target`.

        What it named before stays listed without a name, as it is in no other place, unless
        another entry lists it or it is to be forgotten. Such an entry of `target` that says
        nothing else goes, or moving a tag to and fro would pile them up.
        """
        bare = target.plain.to_dict()
        kept = [entry for entry in self.entries if _name(entry) != name and entry != bare]
        listed = {str(target.digest), *(str(entry.get("digest")) for entry in kept)}
        for entry in () if forget else self.of(name):
            if str(entry.get("digest")) not in listed:
                kept.append(_nameless(entry))
                listed.add(str(entry.get("digest")))
        ours = {**bare, "annotations": {REF_NAME: name}}
        return Index(self.where, self.document, (*kept, ours))


def _name(entry: Entry) -> str | None:
    annotations = entry.get("annotations")
    name = annotations.get(REF_NAME) if isinstance(annotations, dict) else None
    return name if isinstance(name, str) else None


def _nameless(entry: Entry) -> Entry:
    annotations = {k: v for k, v in entry["annotations"].items() if k != REF_NAME}
    if annotations:
        return {**entry, "annotations": annotations}
    return {k: v for k, v in entry.items() if k != "annotations"}
