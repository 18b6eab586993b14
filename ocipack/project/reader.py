"""The reading of a project file, described in docs/project.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ocipack.k8s.yaml.nodes import Mapping, Node, Sequence
from ocipack.k8s.yaml.strict import Reader
from ocipack.project import (
    ARTIFACTS,
    FILE,
    FORMATS,
    LAYERS,
    SYMLINKS,
    Environment,
    Part,
    Project,
    Signing,
    ignore,
)
from ocipack.trust.statement import BINDABLE

_SHARED: Final = ("kubernetes", "ignore", "render", "policy", "crds", "symlinks", "layer")
_FIELDS: Final = (
    *("source", "flux", "registries", "sign", "artifacts", "environments", "validate"),
    *_SHARED,
)


def read(data: bytes, *, file: str = FILE) -> Project:
    """The project in the content of `file`; Misuse says what is wrong, and where."""
    reader = Reader(file)
    root = reader.ours(data, _FIELDS)
    whole = _shared(reader, root, Part())
    artifacts = reader.items(root.get("artifacts"), "artifacts")
    if artifacts and whole.render:
        hint = "say it of the artifact"
        reader.refuse(root.place, "render is of a tree without artifacts", hint)
    _few(reader, root.get("artifacts"), artifacts)
    ignores, require_schema = _validate(reader, root.get("validate"))
    with reader.about(root):
        return Project(
            ignores,
            reader.text(root.get("source"), "source"),
            reader.text(root.get("flux"), "flux"),
            reader.texts(root.get("registries"), "registries", "a registry"),
            _signing(reader, root.get("sign")),
            require_schema,
            whole,
            tuple(_artifact(reader, node, whole) for node in artifacts),
            _environments(reader, root.get("environments")),
        )


def _shared(reader: Reader, said: Mapping, above: Part) -> Part:
    """What the file says of all artifacts, or an artifact of itself, over what is said `above`.

    Patterns, policies and definitions are added to those above: nothing that is demanded of all
    can be taken away. Everything else replaces what is said above.
    """
    with reader.about(said):
        return replace(
            above,
            ignore=(*above.ignore, *_list(reader, said, "ignore", "a pattern")),
            render=tuple(
                "" if one == "." else one for one in _list(reader, said, "render", "a directory")
            ),
            kubernetes=_versions(reader, said.get("kubernetes")) or above.kubernetes,
            policy=_joined(above.policy, _list(reader, said, "policy", "a policy")),
            crds=_joined(above.crds, _list(reader, said, "crds", "a path")),
            symlinks=_choice(reader, said, "symlinks", SYMLINKS, above.symlinks),
            layer=_choice(reader, said, "layer", LAYERS, above.layer),
        )


def _artifact(reader: Reader, node: Node, whole: Part) -> Part:
    said = reader.mapping(node, "an artifact", ("name", "root", "repository", *_SHARED), ("name",))
    name = reader.text(said.get("name"), "name")
    root = reader.text(said.get("root"), "root")
    with reader.about(said):
        return _shared(
            reader,
            said,
            replace(
                whole,
                name=name,
                root="" if root == "." else root.removesuffix("/"),
                repository=reader.text(said.get("repository"), "repository") or name,
            ),
        )


def _environments(reader: Reader, node: Node | None) -> tuple[Environment, ...]:
    if node is None:
        return ()
    if not isinstance(node, Mapping) or not node.pairs:
        reader.refuse(node.place, "environments should be a mapping that says something")
    _few(reader, node, node.pairs)
    found = []
    for pair in node.pairs:
        fields = ("to", "tag", "policy", "artifacts")
        said = reader.mapping(pair.value, "an environment", fields)
        with reader.about(said):
            found.append(
                Environment(
                    pair.key,
                    reader.text(said.get("to"), "to"),
                    reader.text(said.get("tag"), "tag"),
                    _list(reader, said, "policy", "a policy"),
                    _list(reader, said, "artifacts", "an artifact"),
                )
            )
    return tuple(found)


def _signing(reader: Reader, node: Node | None) -> Signing:
    if node is None:
        return Signing()
    said = reader.mapping(node, "sign", ("bind", "format"))
    bind = reader.items(said.get("bind"), "bind")
    return Signing(
        tuple(dict.fromkeys(reader.choice(one, "bind", BINDABLE) for one in bind)),
        reader.choice(said.get("format"), "format", ("", *FORMATS)),
    )


def _validate(reader: Reader, node: Node | None) -> tuple[tuple[ignore.Ignore, ...], bool]:
    if node is None:
        return (), False
    said = reader.mapping(node, "validate", ("ignore", "requireSchema"))
    listed = reader.items(said.get("ignore"), "ignore", empty=True)
    return (
        tuple(ignore.read(reader, one) for one in listed),
        reader.flag(said.get("requireSchema"), "requireSchema", default=False),
    )


def _versions(reader: Reader, node: Node | None) -> tuple[str, ...]:
    """One version, or a list of them."""
    if isinstance(node, Sequence):
        return reader.texts(node, "kubernetes", "a version")
    return (reader.text(node, "kubernetes"),) if node is not None else ()


def _list(reader: Reader, said: Mapping, field: str, each: str) -> tuple[str, ...]:
    return reader.texts(said.get(field), field, each)


def _choice(
    reader: Reader, said: Mapping, field: str, words: tuple[str, ...], otherwise: str
) -> str:
    node = said.get(field)
    return reader.choice(node, field, words) if node is not None else otherwise


def _joined(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _few(reader: Reader, node: Node | None, items: tuple[object, ...]) -> None:
    if node is not None and len(items) > ARTIFACTS:
        reader.refuse(node.place, f"more than {ARTIFACTS}")
