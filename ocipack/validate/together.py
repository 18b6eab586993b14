"""From the verdicts about single files to what is known about all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from ocipack.report import Finding, Severity
from ocipack.validate.verdict import Known, Shape, Verdict


@dataclass(slots=True)
class Validation:
    """What is known in the end.

    `empty` are the names of sources with nothing but comments, `other` of those that are no
    manifests, `excusing` of those with comments that may excuse findings; `unreadable` are the
    errors of sources that gave no content, which are findings too. `subjects` are the objects.
    """

    findings: list[Finding] = field(default_factory=list)
    files: int = 0
    documents: int = 0
    objects: int = 0
    cached: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    empty: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)
    excusing: list[str] = field(default_factory=list)
    subjects: list[str] = field(default_factory=list)


def together(found: Iterable[tuple[str, Verdict | Finding]]) -> Validation:
    """Everything in the order of the sources: the name of each, and its verdict or why none."""
    whole = Validation()
    seen = _Seen()
    unknown: set[str] = set()
    for name, verdict in found:
        whole.files += 1
        if isinstance(verdict, Finding):
            whole.unreadable.append(replace(verdict, file=name))
            continue
        whole.documents += verdict.documents
        whole.objects += verdict.count
        whole.missing.update(verdict.missing)
        whole.subjects += map(str, verdict.objects)
        if verdict.shape is Shape.EMPTY:
            whole.empty.append(name)
        elif verdict.shape is Shape.OTHER:
            whole.other.append(name)
        for finding in (*verdict.findings, *seen.twice(name, verdict.objects)):
            if finding.rule == "schema-missing":
                if finding.message in unknown:
                    continue
                unknown.add(finding.message)
            whole.findings.append(replace(finding, file=name))
        whole.findings += verdict.strays
    whole.findings += whole.unreadable
    return whole


class _Seen:
    """Which objects there were.

    Twice in one file is an error, twice in a directory a warning: different directories are
    delivered separately as a rule, and single files at times.
    """

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[str, int, str]] = {}

    def twice(self, name: str, objects: Iterable[Known]) -> Iterator[Finding]:
        """The findings about objects of the file `name` that were there before."""
        directory = name.rpartition("/")[0]
        for known in objects:
            mark = "\0".join((directory, *known[:4])).encode(errors="surrogatepass")
            key = blake2b(mark, digest_size=16).digest()
            first = self._first.setdefault(key, (name, known.line, known.api_version))
            if first == (name, known.line, known.api_version):
                continue
            versions = {first[2], known.api_version}
            under = f" under {' and '.join(sorted(versions))}" if len(versions) > 1 else ""
            yield Finding(
                "object-duplicate",
                f"{known} is there twice{under}, first at {first[0]}:{first[1]}",
                Severity.ERROR if first[0] == name else Severity.WARNING,
                line=known.line,
                column=1,
                subject=str(known),
                hint="the cluster keeps one of them, whichever is applied last: remove the other",
            )
