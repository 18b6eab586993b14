"""Run every rule over what was rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ocipack.k8s.resource import Resource
from ocipack.report import Finding, Report
from ocipack.validate import confidential, images, objects

Rule = Callable[[Resource], Iterable[Finding]]
SetRule = Callable[[Iterable[Resource]], Iterable[Finding]]

EMPTY = "nothing-to-validate"

RULES: tuple[Rule, ...] = (objects.identity, confidential.plaintext, confidential.ciphertext)
SET_RULES: tuple[SetRule, ...] = (objects.duplicates,)


def validate(resources: Iterable[Resource], *, allow_tags: bool = False) -> Report:
    """What is wrong with `resources`; an empty set is an error, since it proves nothing."""
    return Report.of(_findings(list(resources), allow_tags=allow_tags))


def _findings(resources: list[Resource], *, allow_tags: bool) -> Iterator[Finding]:
    if not resources:
        yield Finding(EMPTY, "there is no object to check")
    rules: tuple[Rule, ...] = (*RULES, partial(images.pinned, allow_tags=allow_tags))
    for resource in resources:
        for rule in rules:
            yield from rule(resource)
    for set_rule in SET_RULES:
        yield from set_rule(resources)
