"""Run every rule over what was rendered and will be delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.report import Finding, Report
from ocipack.validate import confidential, images, objects
from ocipack.validate.apis import Apis
from ocipack.validate.checks import checks
from ocipack.validate.schema import SchemaCheck

Rule = Callable[[Resource], Iterable[Finding]]
SetRule = Callable[[Iterable[Resource]], Iterable[Finding]]

EMPTY = "nothing-to-validate"

RULES: tuple[Rule, ...] = (objects.identity, confidential.plaintext, confidential.ciphertext)
SET_RULES: tuple[SetRule, ...] = (objects.duplicates,)


def schemas_for(
    kubernetes: str = "",
    definitions: Iterable[Resource] = (),
    *,
    require: bool = False,
    flux: str = "",
) -> SchemaCheck:
    """The schemas of a Kubernetes version (empty: the newest known) and of given definitions.

    With `require` a kind without a schema is an error. `flux` is the version that the cluster
    runs, as 2.8, if it is known. Misuse for an unknown version of Kubernetes.
    """
    schemas = SchemaCheck(Apis(Catalog.of(kubernetes), flux=flux), require=require)
    schemas.learn(definitions)
    return schemas


def validate(
    resources: Iterable[Resource],
    *,
    allow_tags: bool = False,
    schemas: SchemaCheck | None = None,
) -> Report:
    """What is wrong with `resources`; an empty set is an error, since it proves nothing.

    Definitions of custom kinds among them are added to `schemas`, and win over older ones.
    """
    known = schemas_for() if schemas is None else schemas
    found = list(resources)
    known.learn(found)
    return Report.of(_findings(found, known, allow_tags=allow_tags))


def _findings(
    resources: list[Resource], schemas: SchemaCheck, *, allow_tags: bool
) -> Iterator[Finding]:
    if not resources:
        yield Finding(EMPTY, "there is no object to check")
    rules: tuple[Rule, ...] = (
        *RULES,
        partial(images.pinned, allow_tags=allow_tags),
        *checks(schemas),
    )
    for resource in resources:
        for rule in rules:
            yield from rule(resource)
    for set_rule in SET_RULES:
        yield from set_rule(resources)
