"""Archives made in tests from places in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from content import image, index

from ocipack.airgap.check import earlier, everything
from ocipack.airgap.contents import Contents, Earlier, Wanted, gather
from ocipack.airgap.save import Saved, save
from ocipack.airgap.site import Site
from ocipack.copy import Transfers
from ocipack.oci.descriptor import Descriptor
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source
from ocipack.stores.layout.archive import Archive
from ocipack.stores.layout.stream import Stream
from ocipack.stores.memory import MemoryStore
from ocipack.trust.policy import Policy, VerificationPolicy
from ocipack.trust.policy.names import Glob
from ocipack.verify import Exempted, Verified, decide

ANYTHING = Policy(
    policies=[VerificationPolicy("all", (Glob("**"),), static="pass", reason="of no matter here")]
)
SIGNS = {"dev.sigstore.bundle.predicateType": "https://sigstore.dev/cosign/sign/v1"}
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"


def proof(source: Source, name: str) -> Verified | Exempted:
    """What lets `name` pass that is in `source`."""
    return decide(source, Reference.parse(name), ANYTHING)


def wanted(source: Source, name: str) -> Wanted:
    return Wanted(source, proof(source, name))


def contents(
    *things: Wanted, files: Mapping[str, bytes] | None = None, since: Earlier | None = None
) -> Contents:
    with Transfers() as transfers:
        return gather(things, transfers, files=files or {}, earlier=since)


def write(
    path: Path,
    *things: Wanted,
    files: Mapping[str, bytes] | None = None,
    since: Earlier | None = None,
    volume: int = 0,
) -> Saved:
    found = contents(*things, files=files, since=since)
    with Stream(path, volume=volume, replace=True) as out:
        return save(found, out)


def had(path: Path) -> Earlier:
    """What a later archive may leave out."""
    with Archive(path) as files, Transfers() as transfers:
        site = Site(files)
        return earlier(site, everything(site, transfers))


def attach(store: MemoryStore, subject: Descriptor, words: str) -> dict[str, Descriptor]:
    """Attach something to `subject` in each form: a `.sig` tag and a referrer."""
    legacy = image(store, f"legacy {words}".encode())
    store.names[f"sha256-{subject.digest.hex}.sig"] = legacy
    bundle = image(
        store,
        f"bundle {words}".encode(),
        subject=subject,
        artifactType=BUNDLE,
        annotations=SIGNS,
    )
    return {"legacy": legacy, "bundle": bundle}


@dataclass
class Team:
    """A repository with an index of two images, everything signed in both forms."""

    name: str = "registry.example/team/app"
    store: MemoryStore = field(default_factory=MemoryStore)
    words: str = ""
    attached: list[Descriptor] = field(default_factory=list)

    def __post_init__(self) -> None:
        base = b"shared by both" * 100
        self.children = [image(self.store, base, f"{self.words}{n}".encode()) for n in range(2)]
        self.root = index(self.store, *self.children)
        self.store.names["v1"] = self.root
        for number, node in enumerate((self.root, *self.children)):
            found = attach(self.store, node, f"{self.words}{number}")
            self.attached += found.values()
        deep = image(
            self.store, b"deep", subject=self.attached[1], artifactType="application/x.deep"
        )
        self.attached.append(deep)

    @property
    def wanted(self) -> Wanted:
        return wanted(self.store, f"{self.name}:v1")
