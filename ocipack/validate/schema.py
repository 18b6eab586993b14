"""Fields, types and values of objects against the schemas of their kinds.

Built-in kinds have the schemas of one Kubernetes version; custom kinds have those of the
CustomResourceDefinitions that were given, and Flux's own else those that come with ocipack. The
target version is a parameter; without one it is the newest known, since an object that the newest
server refuses will be refused one day, and `api-removed` names the version in which that begins.

Schemas are compiled when the first object of their kind comes, and kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ocipack.errors import IntegrityError
from ocipack.k8s.resource import Resource
from ocipack.k8s.schemas.catalog import Catalog
from ocipack.report import Finding
from ocipack.validate import formats
from ocipack.validate.apis import Apis
from ocipack.validate.causes import Reader
from ocipack.validate.crd import Conversion, CustomKind, custom_kinds, without_bad_patterns
from ocipack.validate.defaults import Defaults
from ocipack.validate.rules import Path, found, spell

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kind, ready to judge: valid or not at once, errors and schema nodes when asked."""

    valid: Callable[[Any], bool]
    errors: Callable[[Any], Iterable[ValidationError]]
    schema_at: Callable[[Path], Mapping[str, Any]]
    defaults: Defaults | None = None


@dataclass(slots=True)
class SchemaCheck:
    """The rule that judges objects by their schemas; call it with each object.

    `require` makes a missing schema an error. `missing` counts the objects whose kind has none,
    by `apiVersion Kind`. What a definition says that cannot be used is found with its first
    object, or with itself if it is judged; a kind whose definition is no schema has none.
    """

    apis: Apis
    require: bool = False
    missing: Counter[str] = field(default_factory=Counter)
    _compiled: dict[tuple[str, str], Compiled | None] = field(default_factory=dict)
    _unsaid: list[Finding] = field(default_factory=list)

    def learn(self, definitions: Iterable[Resource]) -> None:
        """Make the kinds of CustomResourceDefinitions known; other objects are passed over.

        Given before any object is judged: first those named for the purpose, then those of the
        tree, since the later of two wins. One that cannot be read is found with the next object.
        """
        for resource in definitions:
            self._unsaid += self.apis.learn(resource)

    def __call__(self, resource: Resource) -> Iterator[Finding]:
        """The findings about `resource`."""
        compiled = self.compiled(resource.api_version, resource.kind)
        if resource.kind == "CustomResourceDefinition":
            self._declared(resource)
        yield from self._unsaid
        self._unsaid.clear()
        if compiled is None:
            yield from self._absent(resource)
            return
        value = compiled.defaults.apply(resource.value) if compiled.defaults else resource.value
        if encrypted := "sops" in value and isinstance(value["sops"], Mapping):
            value = {name: child for name, child in value.items() if name != "sops"}
        try:
            if compiled.valid(value):
                return
            errors = list(compiled.errors(value))
        except ValueError:  # the engine's stack: deeper than any reader of ours lets through
            yield found("object-too-large", resource, "nested deeper than can be checked")
            return
        if encrypted:  # what stands behind the ciphertext is nobody's business here
            errors = [error for error in errors if not _ciphertext(error.instance)]
        secret = resource.kind == "Secret" and not resource.group
        for problem in Reader(compiled.schema_at, secret).problems(errors):
            message = f"{spell(problem.path)}: {problem.text}"
            yield found(problem.rule, resource, message, problem.path, hint=problem.hint)

    def compiled(self, api_version: str, kind: str) -> Compiled | None:
        """The compiled schema of a kind, or None if there is none that can be used."""
        key = (api_version, kind)
        if key not in self._compiled:
            if name := self.apis.catalog.find(api_version, kind):
                self._compiled[key] = _built_in(self.apis.catalog, name)
            elif custom := self.apis.declared(api_version, kind):
                self._compiled[key] = self._custom(custom)
            else:
                self._compiled[key] = None
        return self._compiled[key]

    def _declared(self, resource: Resource) -> None:
        """Compile what a definition declares, so that its faults are found without objects."""
        try:
            kinds = custom_kinds(resource)
        except IntegrityError:
            return  # `Apis.learn` said so
        for kind in kinds:
            self.compiled(kind.api_version, kind.kind)

    def _custom(self, kind: CustomKind) -> Compiled | None:
        conversion = Conversion(kind)
        try:
            document = conversion.document(self.apis.catalog)
            validator = without_bad_patterns(conversion, document, _engine)
        except IntegrityError as e:
            path = kind.pointer
            self._unsaid.append(found("crd-invalid", kind.source, str(e), path))
            return None
        self._unsaid += conversion.findings
        return Compiled(
            validator.is_valid,
            validator.iter_errors,
            lambda path: _step(document, path),
            Defaults.of(kind.schema),
        )

    def _absent(self, resource: Resource) -> Iterator[Finding]:
        """No schema: an unknown kind is told from a custom one by `Apis`, so only counted here."""
        if not resource.api_version or not resource.kind or self.apis.refuses(resource):
            return
        name = f"{resource.api_version} {resource.kind}"
        self.missing[name] += 1
        if self.require:
            yield found("schema-required", resource, f"no schema for {name}")
        elif self.missing[name] == 1:
            yield found(
                "schema-missing", resource, f"no schema for {name}: its fields are unchecked"
            )


def _ciphertext(value: object) -> bool:
    """Whether SOPS wrote `value`."""
    return isinstance(value, str) and value.startswith("ENC[AES256_GCM,")


def _engine(document: Any) -> Any:
    """A validator of `document` (a dict, or JSON text); raises ValueError if it is no schema."""
    import jsonschema_rs  # noqa: PLC0415 - 30 ms that only validation needs

    return jsonschema_rs.Draft202012Validator(
        document,
        formats=formats.ALL,
        validate_formats=True,
        pattern_options=jsonschema_rs.RegexOptions(),
    )


def _built_in(catalog: Catalog, name: str) -> Compiled:
    validator = _engine(json.loads(catalog.document(name)))

    def schema_at(path: Path) -> Mapping[str, Any]:
        return _step(catalog.definition(str(path[1])), path[2:])

    return Compiled(validator.is_valid, validator.iter_errors, schema_at)


def _step(node: Any, path: Path) -> Mapping[str, Any]:
    """The schema node at `path`, or an empty one."""
    for part in path:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return node if isinstance(node, Mapping) else {}
