"""Reports about several versions of Kubernetes as one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ocipack.report import Finding, Report


def across(reports: Mapping[str, Report]) -> Report:
    """One report of those about several versions of Kubernetes.

    What is not found for all of them says for which it is.
    """
    if len(reports) == 1:
        return next(iter(reports.values()))
    found: dict[Finding, list[str]] = {}
    for version, report in reports.items():
        for finding in report.findings:
            found.setdefault(finding, []).append(version)
    return Report.of(
        finding
        if len(versions) == len(reports)
        else replace(finding, message=f"{finding.message} (Kubernetes {', '.join(versions)})")
        for finding, versions in found.items()
    )
