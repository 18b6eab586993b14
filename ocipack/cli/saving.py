"""What `airgap save` is asked to save, and the files that come along."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ocipack.airgap.contents import Wanted
from ocipack.airgap.record import FILE_BYTES
from ocipack.cli.archives import Proof, each, policy, prove
from ocipack.cli.command import App
from ocipack.cli.places import place
from ocipack.cli.trusted import Trust
from ocipack.errors import Misuse
from ocipack.files.seam import read_bytes
from ocipack.lock import BYTES, Lock
from ocipack.oci.location import REGISTRY, Location
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source
from ocipack.pin.mirrors import Mirrors
from ocipack.stores.layout import LayoutStore
from ocipack.stores.layout.volumes import SMALLEST
from ocipack.trust.keys import PublicKey

_SIZE = re.compile(r"([1-9][0-9]{0,14})(B|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB)?")
_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def volume(text: str) -> int:
    """The bytes of a volume: `4GiB`, `700MB`, or a number; 0 if nothing is said."""
    if not text:
        return 0
    match = _SIZE.fullmatch(text)
    if match is None:
        raise Misuse(f"--volume-size {text[:40]!r}: not a size", hint="write 4GiB or 700MB")
    found = int(match[1]) * _UNITS[match[2] or "B"]
    if found < SMALLEST:
        raise Misuse(f"--volume-size {text}: a volume has at least {SMALLEST} bytes")
    return found


def named(places: Iterable[str], lock: str) -> list[Location]:
    """The places on the command line, and everything in a lock; Misuse if that is nothing."""
    found = [place(text) for text in places]
    if lock:
        entries = Lock.parse(read_bytes(lock, limit=BYTES), file=lock).entries
        found += [Location(REGISTRY, one.reference.at(one.content.digest)) for one in entries]
    if not found:
        raise Misuse("nothing to save", hint="name places, or a lock with --lock")
    return list(dict.fromkeys(found))


@dataclass
class Sources:
    """The stores of a run, one for each repository; `mirrors` are asked instead of the origin."""

    app: App
    mirrors: Mirrors = field(default_factory=Mirrors)
    _open: dict[str, Source] = field(default_factory=dict)

    def of(self, where: Location) -> Source:
        """The repository of `where`."""
        if where.is_layout:
            return self._open.setdefault(where.bare, LayoutStore(where.path))
        at = self.mirrors.where(where.reference)
        known = self._open.get(at.bare)
        return known or self._open.setdefault(at.bare, self.app.registries.store(at, write=False))


def proven(app: App, found: Sequence[Location], sources: Sources, trust: Trust) -> list[Wanted]:
    """Everything to save, each with its proof, and each once whatever named it."""
    trusted = policy(trust, found)
    for where in found:
        sources.of(where)

    def one(where: Location) -> Proof:
        return prove(trust, sources.of(where), _tagged(where), trusted)

    proofs = each(app, one, found, str)
    wanted: dict[Reference, Wanted] = {}
    for where, proof in zip(found, proofs, strict=True):
        wanted.setdefault(proof.reference, Wanted(sources.of(where), proof))
    return list(wanted.values())


def _tagged(where: Location) -> Reference:
    """The name to save it by: what no tag and no digest names is `latest`."""
    reference = where.reference
    if reference.tag is None and reference.digest is None:
        return Reference(reference.registry, reference.repository, reference.name)
    return reference


def papers(paths: Iterable[str], policies: Iterable[str]) -> dict[str, bytes]:
    """The files that come along, by the path that they have from what is above all of them.

    So the keys that a policy names stay where the policy looks for them.
    """
    found: dict[str, bytes] = {}
    for path in [*paths, *policies, *_keys(policies)]:
        real = os.path.realpath(path)
        if real not in found:
            found[real] = read_bytes(path, limit=FILE_BYTES)
    if not found:
        return {}
    top = os.path.commonpath([os.path.dirname(path) for path in found])  # noqa: PTH120 - text
    return {os.path.relpath(path, top): content for path, content in found.items()}


def _keys(policies: Iterable[str]) -> Iterator[str]:
    """The key files that policies name."""
    from ocipack.cli.policies import content  # noqa: PLC0415 - start-up: it loads YAML
    from ocipack.trust.policy.reader import read  # noqa: PLC0415 - as above

    for path in policies:
        names: list[str] = []
        read(content(path), file=path, key=_noting(path, names))
        yield from (str(Path(path).parent / name) for name in names)


def _noting(path: str, names: list[str]) -> Callable[[str], PublicKey]:
    """Finds keys as the policy at `path` has them, and notes which it was asked for."""
    from ocipack.cli.policies import beside  # noqa: PLC0415 - start-up

    find = beside(path)

    def key(name: str) -> PublicKey:
        names.append(name)
        return find(name)

    return key
