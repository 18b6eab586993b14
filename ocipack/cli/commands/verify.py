"""`ocipack verify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome, failed, report_of
from ocipack.cli.places import opened, place
from ocipack.cli.trusted import Trust, verify_options
from ocipack.errors import Misuse, OcipackError, Rejected
from ocipack.oci.location import Location
from ocipack.report import Report, Severity
from ocipack.trust.policy import Policy
from ocipack.trust.statement import SIGN
from ocipack.verify import Exempted, Signature, Verified, decide

Proof = Verified | Exempted

AT_ONCE = 8
"""Artifacts verified at the same time."""


@click.argument("places", nargs=-1, required=True, metavar="PLACE...")
@verify_options
@click.option("--require-digest", is_flag=True, help="Refuse a place without a digest.")
@click.option("--content", is_flag=True, help="Read and hash everything below the manifest too.")
@click.option("--explain", is_flag=True, help="Show every candidate and why it did or did not do.")
def verify(
    app: App,
    *,
    places: tuple[str, ...],
    require_digest: bool,
    content: bool,
    explain: bool,
    **options: Any,
) -> Outcome:
    """Prove that an artifact was signed by keys you trust, or say why not.

    Prints the pinned place of each artifact that was proven, or that a policy exempts, which is a
    warning. With several, all are looked at:
    the exit code is 1 if any was refused, else 3 if any could not be decided.
    """
    found = [place(text) for text in places]
    for location in found:
        if require_digest and location.reference.digest is None:
            raise Misuse(
                f"{location} has no digest, and --require-digest was given",
                hint="a tag can move between the check and the use; name what you mean: @sha256:…",
            )
    if explain:
        app.console.least = Severity.NOTE
    trusted = Trust(**options).policy(found)
    if len(found) == 1:
        return _outcome(found, [_prove(app, found[0], trusted, content=content)])
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - start-up, for one place

    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda one: _attempt(app, one, trusted, content=content), found))
    for location, result in zip(found, results, strict=True):
        if isinstance(result, OcipackError):
            app.console.findings(report_of(result))
            app.console.error(f"{location}: {result}", result.hint)
    return _outcome(found, results)


def _prove(app: App, location: Location, trusted: Policy, *, content: bool) -> Proof:
    with opened(app, location) as source:
        whole = content or location.is_layout
        return decide(source, location.reference, trusted, content=whole)


def _attempt(
    app: App, location: Location, trusted: Policy, *, content: bool
) -> Proof | OcipackError:
    try:
        return _prove(app, location, trusted, content=content)
    except Misuse:
        raise
    except OcipackError as error:
        return error


def _outcome(found: Sequence[Location], results: Sequence[Proof | OcipackError]) -> Outcome:
    pairs = list(zip(found, results, strict=True))
    codes = {result.exit_code for result in results if isinstance(result, OcipackError)}
    proven = [
        str(location.at(result.descriptor.digest))
        for location, result in pairs
        if not isinstance(result, OcipackError)
    ]
    failures = [(str(where), one) for where, one in pairs if isinstance(one, OcipackError)]
    reports = [result.report for result in results if not isinstance(result, OcipackError)]
    return Outcome(
        "\n".join(proven),
        {"artifacts": [_described(location, result) for location, result in pairs]},
        sum(reports, Report()),
        min(codes, default=0),
        failures=failures,
        refused=sum((report_of(error) for _, error in failures), Report()),
    )


def _described(location: Location, result: Proof | OcipackError) -> dict[str, Any]:
    if isinstance(result, OcipackError):
        verdict = "rejected" if isinstance(result, Rejected) else "undecided"
        findings = [finding.as_dict() for finding in report_of(result).findings]
        return {"place": str(location), "verdict": verdict, **failed(result), "findings": findings}
    return {
        "place": str(location.at(result.descriptor.digest)),
        "verdict": "exempted" if isinstance(result, Exempted) else "verified",
        "digest": str(result.descriptor.digest),
        "mediaType": result.descriptor.media_type,
        "signers": [_signer(signer) for signer in result.signers],
        **_waivers(result),
    }


def _signer(signer: Signature) -> dict[str, str]:
    said = {"key": signer.key, "form": signer.form, "place": signer.place}
    if signer.predicate_type != SIGN:
        said["predicateType"] = signer.predicate_type
    return said


def _waivers(result: Proof) -> dict[str, Any]:
    """What let an exempted artifact through; nothing for one that was proven."""
    if isinstance(result, Verified):
        return {}
    said = [{f.name: getattr(waiver, f.name) for f in fields(waiver)} for waiver in result.waivers]
    return {"waivers": [{name: text for name, text in one.items() if text} for one in said]}


command = outcome_command(verify)
