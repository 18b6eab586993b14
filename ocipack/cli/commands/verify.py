"""`ocipack verify`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.outcome import Outcome, failed, report_of
from ocipack.cli.places import key_options, opened, place
from ocipack.cli.trusted import policy
from ocipack.errors import Misuse, OcipackError, Rejected
from ocipack.oci.location import Location
from ocipack.report import Report, Severity
from ocipack.trust.policy import Policy
from ocipack.verify import Verified, verify as prove

AT_ONCE = 8
"""Artifacts verified at the same time."""


@click.argument("places", nargs=-1, required=True, metavar="PLACE...")
@key_options
@click.option("--require-digest", is_flag=True, help="Refuse a place without a digest.")
@click.option("--content", is_flag=True, help="Read and hash everything below the manifest too.")
@click.option("--explain", is_flag=True, help="Show every candidate and why it did or did not do.")
def verify(
    app: App,
    *,
    places: tuple[str, ...],
    keys: tuple[str, ...],
    threshold: int,
    allow_example_key: bool,
    require_digest: bool,
    content: bool,
    explain: bool,
) -> Outcome:
    """Prove that an artifact was signed by keys you trust, or say why not.

    Prints the pinned place of each artifact that was proven. With several, all are looked at:
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
    trusted = policy(keys, threshold, places=found, allow_example_key=allow_example_key)
    if len(found) == 1:
        return _outcome(found, [_prove(app, found[0], trusted, content=content)])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda one: _attempt(app, one, trusted, content=content), found))
    for location, result in zip(found, results, strict=True):
        if isinstance(result, OcipackError):
            app.console.findings(report_of(result))
            app.console.error(f"{location}: {result}", result.hint)
    return _outcome(found, results)


def _prove(app: App, location: Location, trusted: Policy, *, content: bool) -> Verified:
    with opened(app, location) as source:
        whole = content or location.is_layout
        return prove(source, location.reference, trusted, content=whole)


def _attempt(
    app: App, location: Location, trusted: Policy, *, content: bool
) -> Verified | OcipackError:
    try:
        return _prove(app, location, trusted, content=content)
    except Misuse:
        raise
    except OcipackError as error:
        return error


def _outcome(found: Sequence[Location], results: Sequence[Verified | OcipackError]) -> Outcome:
    pairs = list(zip(found, results, strict=True))
    codes = {result.exit_code for result in results if isinstance(result, OcipackError)}
    proven = [
        str(location.at(result.descriptor.digest))
        for location, result in pairs
        if isinstance(result, Verified)
    ]
    reports = [result.report for result in results if isinstance(result, Verified)]
    return Outcome(
        "\n".join(proven),
        {"artifacts": [_described(location, result) for location, result in pairs]},
        sum(reports, Report()),
        min(codes, default=0),
        failures=[
            (str(location), result)
            for location, result in pairs
            if isinstance(result, OcipackError)
        ],
    )


def _described(location: Location, result: Verified | OcipackError) -> dict[str, Any]:
    if isinstance(result, OcipackError):
        verdict = "rejected" if isinstance(result, Rejected) else "undecided"
        findings = [finding.as_dict() for finding in report_of(result).findings]
        return {"place": str(location), "verdict": verdict, **failed(result), "findings": findings}
    return {
        "place": str(location.at(result.descriptor.digest)),
        "verdict": "verified",
        "digest": str(result.descriptor.digest),
        "mediaType": result.descriptor.media_type,
        "signers": [
            {"key": signer.key, "form": signer.form, "place": signer.place}
            for signer in result.signers
        ],
    }


command = outcome_command(verify)
