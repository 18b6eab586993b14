"""The rules that look at one object with the knowledge of its kind, in the order of a report.

schemas = SchemaCheck(Apis(Catalog.of("1.31")), require=False)
schemas.learn(given)      # definitions named on the command line
schemas.learn(resources)  # definitions in the tree
for rule in checks(schemas): …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ocipack.k8s.resource import Resource
from ocipack.report import Finding
from ocipack.validate.kinds import kinds
from ocipack.validate.lists import ListCheck
from ocipack.validate.names import names, placed, read_only
from ocipack.validate.schema import SchemaCheck
from ocipack.validate.sizes import sizes
from ocipack.validate.variables import patient


def checks(
    schemas: SchemaCheck, *, variables: bool = True
) -> tuple[Callable[[Resource], Iterable[Finding]], ...]:
    """Every rule about single objects; `schemas` knows the target version and custom kinds.

    With `variables` those that judge values know that Flux has not put in variables yet.
    """
    apis = schemas.apis
    lists = ListCheck(apis)
    values = (schemas, names, kinds)
    waiting = (patient(rule) for rule in values) if variables else values
    return apis, *waiting, lists, placed(apis), read_only, sizes
