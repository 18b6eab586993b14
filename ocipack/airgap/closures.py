"""Everything that belongs to an item, by the one walk that copying has."""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType
from typing import TYPE_CHECKING

from ocipack.errors import NotFound

if TYPE_CHECKING:
    from ocipack.copy import Plan, Transfers
    from ocipack.oci.descriptor import Descriptor
    from ocipack.oci.digest import Digest
    from ocipack.oci.store import Source


class _Nowhere:
    """A destination that has nothing, for plans of all there is; nothing is ever written to it."""

    def resolve(self, name: str) -> Descriptor:
        raise NotFound(f"there is no {name}")

    def fetch(self, target: Descriptor) -> Iterator[bytes]:
        raise NotFound(f"there is no {target.digest}")

    def referrers(self, subject: Descriptor) -> Iterator[Descriptor]:  # noqa: ARG002 - the protocol
        return iter(())

    def tags(self) -> Iterator[str]:
        return iter(())

    def exists(self, target: Descriptor) -> bool:  # noqa: ARG002 - the protocol
        return False

    def push(self, target: Descriptor, source: Source) -> None:
        raise NotImplementedError(target, source)

    def tag(
        self, target: Descriptor, name: str, *, was: Digest | EllipsisType | None = ...
    ) -> None:
        raise NotImplementedError(target, name, was)


def closure(source: Source, root: Descriptor, transfers: Transfers) -> Plan:
    """`root`, all below it, and all that is attached to any of that, with every manifest read."""
    return transfers.plan(source, _Nowhere(), root, attached=True)


def attached(plan: Plan) -> Iterator[Digest]:
    """Every blob that signatures and their like are made of: without them nothing is proven."""
    todo = [part.target for part in plan.parts if part.name or part.subject is not None]
    seen = set(todo)
    while todo:
        for child in plan.manifests[todo.pop()].children:
            if not child.is_manifest:
                yield child.digest
            elif child not in seen:
                seen.add(child)
                todo.append(child)
