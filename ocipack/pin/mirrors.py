"""Where to ask for images instead of where they are named: a mirror has the same digests.

    # mirrors.yaml
    docker.io: harbor.example/dockerhub
    ghcr.io/team: harbor.example/team

The longest name that fits wins; what none fits is asked for where it is named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Mapping, Scalar, compose
from ocipack.oci.reference import Reference


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Pairs of a name (registry, or registry and the first parts of a repository) and a place."""

    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, data: bytes, *, file: str) -> Mirrors:
        """Read the file; Misuse says what is wrong, and where."""
        composed = compose(data)
        for problem in composed.problems:
            place = f"{file}:{problem.place.line}:{problem.place.column}"
            raise Misuse(f"{place}: {problem.message}")
        root = composed.root
        if not isinstance(root, Mapping):
            raise Misuse(f"{file}: not a mapping", hint="write `docker.io: registry.example/hub`")
        pairs = []
        for pair in root.pairs:
            value = pair.value
            place = f"{file}:{pair.place.line}:{pair.place.column}"
            if not isinstance(value, Scalar) or not value.is_text:
                raise Misuse(f"{place}: {pair.key[:60]!r} should have a text")
            for name in (pair.key, value.text):
                try:
                    Reference.parse(f"{name}/x")
                except Misuse as e:
                    raise Misuse(f"{place}: not the beginning of a reference: {name!r}") from e
            pairs.append((pair.key, value.text))
        return cls(tuple(sorted(pairs, key=lambda pair: len(pair[0]), reverse=True)))

    def where(self, reference: Reference) -> Reference:
        """Where `reference` is asked for."""
        for name, place in self.pairs:
            if reference.bare == name or reference.bare.startswith(f"{name}/"):
                target = Reference.parse(place + reference.bare[len(name) :])
                return replace(reference, registry=target.registry, repository=target.repository)
        return reference

    def below(self, name: str) -> str | None:
        """Where everything is that is called `name`, or that stands below it; None if nowhere.

        Several repositories below it must all have the same place, each under its own name.
        """
        for pair, place in self.pairs:
            if name == pair or name.startswith(f"{pair}/"):
                return place + name[len(pair) :]
        found = {
            place.removesuffix(pair[len(name) :]) if place.endswith(pair[len(name) :]) else ""
            for pair, place in self.pairs
            if pair.startswith(f"{name}/")
        }
        return (next(iter(found)) or None) if len(found) == 1 else None
