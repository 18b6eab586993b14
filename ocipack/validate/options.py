"""What decides a verdict beside the content and the definitions of custom kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.k8s.yaml.scalars import Dialect

if TYPE_CHECKING:
    from ocipack.k8s.resource import Resource


@dataclass(frozen=True, slots=True)
class Options:
    """How to judge.

    `kubernetes` and `flux` are the target versions (empty: the newest known), `skip` names kinds
    (`Kind` or `group/version/Kind`) whose objects are counted but not judged.
    """

    kubernetes: str = ""
    dialect: Dialect = Dialect.FLUX
    require_schema: bool = False
    skip: tuple[str, ...] = ()
    flux: str = ""

    def skips(self, resource: Resource) -> bool:
        """Whether objects of this kind are passed over."""
        kind = resource.kind
        return kind in self.skip or f"{resource.api_version}/{kind}" in self.skip
