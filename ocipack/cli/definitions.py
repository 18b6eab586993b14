"""Which Kubernetes is meant, and the custom kinds that the command line adds to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ocipack.cli.command import App
from ocipack.errors import IntegrityError, Misuse
from ocipack.files.manifests import listing, reader
from ocipack.k8s.yaml import limits
from ocipack.validate.inputs import SUFFIXES

if TYPE_CHECKING:
    from ocipack.k8s.resource import Resource

_F = TypeVar("_F", bound=Callable[..., Any])

_REMOTE = ("oci://", "ocidir://")
_KIND = "CustomResourceDefinition"

_OPTIONS = (
    click.option(
        "--kubernetes-version",
        default="",
        metavar="VERSION",
        help="Version that the cluster runs, as 1.34; the newest known if not given.",
    ),
    click.option(
        "--crd",
        "crds",
        multiple=True,
        metavar="PATH",
        help="File, directory or artifact (oci://, ocidir://) with CustomResourceDefinitions, "
        "beside those in the tree; repeatable.",
    ),
    click.option(
        "--require-schema", is_flag=True, help="Refuse objects of kinds that have no schema."
    ),
)


def target_options(function: _F) -> _F:
    """Add the options of `Target`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True)
class Target:
    """What the options of `target_options` say."""

    kubernetes_version: str
    crds: tuple[str, ...]
    require_schema: bool

    @classmethod
    def pop(cls, options: dict[str, Any]) -> Target:
        """Take the target out of the options of a command."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class Given:
    """What one `--crd` names: its files that hold definitions, and a digest of all its files."""

    text: str
    digest: bytes
    files: tuple[tuple[str, bytes], ...]

    def definitions(self) -> list[Resource]:
        """The definitions; Misuse if a file cannot be read as YAML, or if there is none."""
        found = [one for name, data in self.files for one in _definitions(name, data)]
        if not found:
            raise Misuse(
                f"--crd {self.text}: there is no {_KIND} in it",
                hint="name a file, a directory or an artifact that holds the definitions",
            )
        return found


def given(app: App, crds: tuple[str, ...]) -> list[Given]:
    """Look at what `--crd` names, in its order; Misuse for a path that is not there."""
    return [_given(app, text) for text in crds]


def in_tree(names: Iterable[str], read_file: Callable[[str], bytes]) -> Iterator[Resource]:
    """The definitions in the files of a tree, whether they are delivered with it or not.

    A file that cannot be read is passed over: whoever delivers it finds that out.
    """
    for name in sorted(names):
        if not name.endswith(SUFFIXES):
            continue
        data = read_file(name)
        if _KIND.encode() in data:
            with suppress(Misuse):
                yield from _definitions(name, data)


def _given(app: App, text: str) -> Given:
    digest, files = sha256(), []
    for name, data in _remote(app, text) if text.startswith(_REMOTE) else _local(text):
        digest.update(sha256(name.encode(errors="surrogateescape")).digest())
        digest.update(sha256(data).digest())
        if _KIND.encode() in data:
            files.append((name, data))
    return Given(text, digest.digest(), tuple(files))


def _definitions(name: str, data: bytes) -> Iterator[Resource]:
    from ocipack.k8s.resource import resources  # noqa: PLC0415 - start-up
    from ocipack.k8s.yaml.documents import read  # noqa: PLC0415 - start-up
    from ocipack.k8s.yaml.scalars import Dialect  # noqa: PLC0415 - start-up

    try:
        documents = read(data, Dialect.KUBECTL, strict=False, name=name)
        for resource in resources(documents, Dialect.KUBECTL, file=name):
            if resource.kind == _KIND:
                yield resource
    except IntegrityError as e:
        raise Misuse(f"--crd: {e}", hint=e.hint) from e


def _local(path: str) -> Iterator[tuple[str, bytes]]:
    listed = listing(path)
    for error in listed.broken.values():
        raise error
    for name, where in listed.files.items():
        if listed.single or name.endswith(SUFFIXES):
            yield (
                f"{path}/{name}" if name else path,
                _bounded(path, reader(where, special=listed.single)()),
            )


def _bounded(path: str, blocks: Iterator[bytes]) -> bytes:
    found = bytearray()
    for block in blocks:
        found += block
        if len(found) > limits.BYTES:
            raise Misuse(f"--crd {path}: more than {limits.BYTES} bytes")
    return bytes(found)


def _remote(app: App, text: str) -> Iterator[tuple[str, bytes]]:
    """The files of an artifact; nothing is known about who made it."""
    from ocipack.cli.places import opened, place  # noqa: PLC0415 - start-up
    from ocipack.flux import artifact as flux  # noqa: PLC0415 - start-up
    from ocipack.oci import store as stores  # noqa: PLC0415 - start-up
    from ocipack.tree import unarchive  # noqa: PLC0415 - start-up
    from ocipack.tree.limits import LIMITS  # noqa: PLC0415 - start-up

    where = place(text)
    with opened(app, where) as source:
        target = source.resolve(where.reference.name)
        content = flux.content(stores.manifest(source, target))
        promised = None
        if content.config is not None:
            config = stores.read(source, content.config, limit=flux.CONFIG_LIMIT)
            promised = flux.diff_id(config)
        layer = content.layer
        if layer.size > LIMITS.layer:
            raise Misuse(f"--crd {text}: its layer has {layer.size} bytes, which is too much")
        for entry in unarchive.read(source.fetch(layer), size=layer.size, diff_id=promised):
            data = b"".join(entry.content)
            if entry.name.endswith(SUFFIXES):
                yield f"{text}/{entry.name}", data
