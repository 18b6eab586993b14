"""Archives that cross an air gap, as commands open, prove and show them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ocipack.airgap import check
from ocipack.airgap.check import Whole, everything
from ocipack.airgap.contents import Earlier
from ocipack.airgap.site import Site
from ocipack.cli.command import App
from ocipack.cli.console import plural, size
from ocipack.cli.trusted import Trust
from ocipack.copy import Transfers
from ocipack.errors import Misuse, OcipackError
from ocipack.files.seam import read_bytes
from ocipack.oci.location import Location
from ocipack.oci.reference import Reference
from ocipack.oci.store import Source
from ocipack.stores.layout.archive import Archive
from ocipack.trust.policy import Policy, VerificationPolicy
from ocipack.trust.policy.names import EVERYTHING, Glob
from ocipack.verify import Exempted, Verified, decide, verify

Proof = Verified | Exempted

_T = TypeVar("_T")

AT_ONCE = 8
"""Items verified at the same time."""

_UNSIGNED = "allow-unsigned"


@contextmanager
def archive(path: str, since: str = "") -> Iterator[tuple[Archive, Site]]:
    """Open the archive at `path`, with what it left out taken from the one at `since`."""
    if since:
        with archive(since) as (_, before), Archive(Path(path)) as files:
            site = Site(files, before)
            _check_since(site, before, since)
            yield files, site
    else:
        with Archive(Path(path)) as files:
            yield files, Site(files)


def _check_since(site: Site, before: Site, path: str) -> None:
    if site.since not in (None, before.digest):
        raise Misuse(
            f"{path} is not the archive that this one builds on: it is {before.digest}, and "
            f"{site.since} is needed"
        )


def earlier(path: str) -> Earlier:
    """What the archive at `path` had, or the list of digests that is there instead of it."""
    if os.path.isfile(path):  # noqa: PTH113 - a path as it was typed
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            first = file.read(64)
        if check.is_list(first):
            return check.parse(read_bytes(path, limit=check.LIST_BYTES), path)
    with archive(path) as (_, site), Transfers() as transfers:
        return check.earlier(site, everything(site, transfers))


def policy(trust: Trust, places: Sequence[Location]) -> Policy:
    """What must be true; with --allow-unsigned nothing need be, and nothing counts as proven."""
    if not trust.allow_unsigned:
        return trust.policy(places)
    if trust.given:
        raise Misuse("--allow-unsigned says that nobody need have signed: leave out who must have")
    allows = VerificationPolicy(
        _UNSIGNED, (Glob(EVERYTHING),), static="pass", reason="--allow-unsigned was given"
    )
    return Policy(policies=[allows])


def prove(trust: Trust, source: Source, reference: Reference, trusted: Policy) -> Proof:
    """The proof of one item."""
    lenient = trust.allow_exempted or trust.allow_unsigned
    return (decide if lenient else verify)(source, reference, trusted)


def each(
    app: App, work: Callable[[_T], Proof], items: Sequence[_T], name: Callable[[_T], str]
) -> list[Proof]:
    """Prove `items`, several at once, and every one of them before any failure is raised.

    Each that failed is said: a refusal is raised if there is one, else what could not be found out.
    """

    def attempt(item: _T) -> Proof | OcipackError:
        try:
            return work(item)
        except OcipackError as error:
            return error

    with app.console.stage("verify") as stage:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(attempt, items))
        errors = [
            (name(item), result)
            for item, result in zip(items, results, strict=True)
            if isinstance(result, OcipackError)
        ]
        if errors:
            _raise(app, errors)
        proofs = [result for result in results if not isinstance(result, OcipackError)]
        stage.say(_proven(proofs))
    return proofs


def _raise(app: App, errors: list[tuple[str, OcipackError]]) -> None:
    worst = min((error for _, error in errors), key=lambda error: error.exit_code)
    for what, error in errors:
        if error is not worst:
            said = str(error)
            app.console.error(said if what in said else f"{what}: {said}", error.hint)
    raise worst


def _proven(proofs: Iterable[Proof]) -> str:
    exempted = sum(isinstance(one, Exempted) for one in proofs)
    proven = sum(isinstance(one, Verified) for one in proofs)
    rest = f", {exempted} exempted" if exempted else ""
    return f"{plural(proven, 'item')} proven{rest}"


def proven_items(
    app: App, site: Site, items: Sequence[Whole], trust: Trust, trusted: Policy
) -> list[Proof]:
    """The proof of each of `items`, by what is in the archive alone."""

    def one(whole: Whole) -> Proof:
        return prove(trust, site.at(whole.item.bare), whole.item.reference, trusted)

    return each(app, one, items, lambda whole: str(whole.item.reference))


def checked(
    app: App, files: Archive, site: Site, transfers: Transfers, *, since: bool
) -> tuple[Whole, ...]:
    """Read and hash the whole archive; all its items, of which nothing is missing.

    With `since`, what was left out is read and hashed in the earlier archive.
    """
    with app.console.stage("check") as stage:
        files.check(app.console.moved)
        items = everything(site, transfers)
        left_out = {target for one in items for target in one.left_out}
        for target in left_out if since else ():
            for _ in site.fetch(target):
                pass
        stage.say(f"{plural(len(site.blobs), 'blob')}, {size(files.size)}")
    return items


def described(one: Whole, proof: Proof | None = None) -> dict[str, Any]:
    """The JSON form of an item, and of the proof of it if there is one."""
    said: dict[str, Any] = {
        "reference": str(one.item.reference),
        "digest": str(one.item.target.digest),
        "mediaType": one.item.target.media_type,
        "size": one.size,
        "contents": one.plan.kinds,
        "signatures": len(one.plan.signatures),
    }
    if kind := artifact_type(one):
        said["artifactType"] = kind
    if one.left_out:
        left = sum(target.size for target in one.left_out)
        said["leftOut"] = {"count": len(one.left_out), "bytes": left}
    if proof is not None:
        said["verdict"] = "exempted" if isinstance(proof, Exempted) else "verified"
        said["signers"] = [
            {"key": signer.key, "form": signer.form, "place": signer.place}
            for signer in proof.signers
        ]
    return said


def artifact_type(one: Whole) -> str:
    """What a manifest says that it is; an index says nothing."""
    return one.plan.manifests[one.item.target].artifact_type


def whence(site: Site) -> dict[str, Any]:
    """The JSON form of what an archive says about itself."""
    said: dict[str, Any] = {"digest": str(site.digest), "files": sorted(site.papers)}
    if site.since is not None:
        left = sum(one.size for one in site.left_out.values())
        said["since"] = str(site.since)
        said["leftOut"] = {"count": len(site.left_out), "bytes": left}
    return said
