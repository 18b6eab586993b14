"""`ocipack policy`: check, explain and test verification policies, without a registry."""

from __future__ import annotations

from typing import Any

import click

from ocipack.cli.clock import today
from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import plural
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import place
from ocipack.cli.policies import beside, content, policies as read_policies
from ocipack.oci.reference import Reference
from ocipack.report import Finding, Report, Severity
from ocipack.trust import examples
from ocipack.trust.policy import Policy, VerificationPolicy, cases as case_files
from ocipack.trust.policy.decision import ask, complaints, verdict
from ocipack.trust.policy.model import PASS, WARN
from ocipack.trust.policy.words import demands


@click.group()
def command() -> None:
    """Check, explain and test verification policies."""


@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def lint(_: App, *, files: tuple[str, ...]) -> Outcome:
    """Read policies strictly, and warn of what makes them weak.

    What is malformed, unknown or without effect is refused with exit code 2. Several files are
    read together, as they would be used. Prints the names of the policies.
    """
    policy = Policy(policies=read_policies(files), allow_example_keys=True, today=today())
    found = [finding for one in policy.policies for finding in _weak(policy, one)]
    return Outcome(
        "\n".join(one.name for one in policy.policies),
        {
            "policies": [
                {"name": one.name, "demands": list(demands(one))} for one in policy.policies
            ]
        },
        Report.of(found),
    )


def _weak(policy: Policy, one: VerificationPolicy) -> list[Finding]:
    said = []
    if one.mode == WARN:
        said.append(("policy-lax", "it only warns, and refuses nothing"))
    if one.static == PASS:
        said.append(("policy-lax", f"it passes everything: {one.reason}"))
    for key in dict.fromkeys(one.keys):
        if key.id in examples.EXAMPLES:
            message = f"it trusts a key that anyone can sign with ({examples.EXAMPLES[key.id]})"
            said.append(("policy-lax", message))
    contents = one.contents
    if contents is not None and not contents.require_digest:
        said.append(("policy-lax", "what is named inside need not be pinned"))
    ends = [(exemption.owner, exemption.until) for exemption in one.exemptions]
    if contents is not None:
        ends += [(excused.owner, excused.until) for excused in contents.exemptions]
    for owner, until in ends:
        if policy.today is not None and until < policy.today:
            message = f"the exemption by {owner} ended on {until.isoformat()}"
            said.append(("policy-expired", message))
    subject = f"policy {one.name}"
    return [Finding(rule, text, Severity.WARNING, subject=subject) for rule, text in said]


@click.argument("reference", metavar="REF")
@click.option(
    "--policy", "policies", multiple=True, required=True, metavar="FILE", help="Repeatable."
)
def explain(_: App, *, reference: str, policies: tuple[str, ...]) -> Outcome:
    """Say which policies cover a name, and what each of them asks.

    REF is a place, or an image as a Pod names it. Nothing is fetched. Exit code 1 if the name
    would be refused whatever was signed.
    """
    name = place(reference).reference if "://" in reference else Reference.familiar(reference)
    policy = Policy(policies=read_policies(policies), allow_example_keys=True, today=today())
    question = ask(policy, name)
    waived = {waiver.policy: str(waiver) for waiver in question.waivers}
    lines, data = [f"{name}"], []
    for one in policy.policies:
        covers = any(glob.covers(name) for glob in one.images)
        globs = ", ".join(glob.text for glob in one.images)
        lines.append(f"policy {one.name} {'covers' if covers else 'does not cover'} it ({globs})")
        if covers:
            if one.name in waived:
                lines.append(f"  not asked: {waived[one.name]}")
            lines += [f"  {line}" for line in demands(one)]
        said: dict[str, Any] = {"name": one.name, "covers": covers, "demands": list(demands(one))}
        if one.name in waived:
            said["waived"] = waived[one.name]
        data.append(said)
    report = Report.of((*question.refusals, *question.notes))
    document = {"reference": str(name), "policies": data}
    return Outcome("\n".join(lines), document, report, code=0 if report.ok else 1)


@click.argument("file", metavar="FILE")
@click.argument("cases", metavar="CASES")
def test(app: App, *, file: str, cases: str) -> Outcome:
    """Try a policy on cases: what was signed about a name, and what should follow.

    Signatures in a case are taken as checked. Exit code 1 if a case ends otherwise than it says;
    prints each case and its verdict.
    """
    given = case_files.read(content(cases), file=cases, key=beside(cases))
    day = given.today or today()
    policy = Policy(policies=read_policies([file]), allow_example_keys=True, today=day)
    lines, findings, data = [], [], []
    for case in given.cases:
        question = ask(policy, case.reference)
        found = verdict(question, case.evidence)
        good = found == case.expect
        lines.append(f"{'ok' if good else 'FAILED'}  {case.name}: {found}")
        data.append({"name": case.name, "expect": case.expect, "verdict": found})
        if not good:
            why = [*question.refusals, *complaints(question.asked, case.reference, case.evidence)]
            rest = f" ({'; '.join(one.message for one in why)})" if why else ""
            message = f"{case.name}: expected {case.expect}, and it is {found}{rest}"
            at = case.place
            findings.append(
                Finding("policy-case", message, file=cases, line=at.line, column=at.column)
            )
    report = Report.of(findings)
    failed = len(findings)
    app.console.note(f"{plural(len(lines), 'case')}, {failed} failed")
    return Outcome("\n".join(lines), {"cases": data}, report, code=0 if report.ok else 1)


for _function in (lint, explain, test):
    command.add_command(outcome_command(_function, connects=False))
