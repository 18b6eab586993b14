"""Values that are not put together yet: kustomize-controller replaces `${name}` after the build.

What it puts there (`postBuild` of a Flux Kustomization) is in the cluster or in another
directory, so that a name, a number or a choice with a variable in it is neither right nor wrong
yet. Source: https://fluxcd.io/flux/components/kustomize/kustomizations/#post-build-variable-substitution
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import split
from ocipack.report import Finding, Severity

Rule = Callable[[Resource], Iterable[Finding]]

HINT: Final = "kustomize-controller may put another value there (postBuild): judged as it stands"

_VALUES: Final = frozenset(
    {"image-malformed", "invalid-format", "invalid-name", "out-of-range", "pattern-mismatch"}
    | {"schema-combination", "secret-content", "unsupported-value", "wrong-type"}
)
"""The rules about what a value is. A field that does not exist will not exist later either."""

_VARIABLE: Final = re.compile(r"(?<!\$)(?:\$\$)*\$\{#?[A-Za-z_]")
"""The beginning of a variable; `$$` stands for one `$` that begins none."""


def patient(rule: Rule) -> Rule:
    """The same rule, but what it finds wrong with a value that holds a variable is a note."""

    def judged(resource: Resource) -> Iterator[Finding]:
        for finding in rule(resource):
            own = finding.rule in _VALUES and finding.subject == str(resource)
            if own and _varies(resource, finding.pointer):
                yield replace(finding, severity=Severity.NOTE, hint=HINT)
            else:
                yield finding

    return judged


def _varies(resource: Resource, pointer: str) -> bool:
    """Whether the value at `pointer` of the file is a text that holds a variable."""
    value: Any = resource.value
    for part in split(pointer.removeprefix(resource.origin.pointer)):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, TypeError, ValueError):
            return False  # what is missing is not there to vary
    return isinstance(value, str) and bool(_VARIABLE.search(value))
