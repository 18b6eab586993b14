"""What judges, made when it is known that something has to be: loading it takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import jsonschema_rs

from ocipack.errors import IntegrityError, OcipackError
from ocipack.k8s.resource import Resource, resources
from ocipack.k8s.yaml.documents import Document, parsed
from ocipack.k8s.yaml.pieces import cut
from ocipack.k8s.yaml.scalars import Dialect
from ocipack.k8s.yaml.values import Reader
from ocipack.validate.check import schemas_for
from ocipack.validate.judge import Judge
from ocipack.validate.options import Options
from ocipack.validate.sources import DEFINITION, Look

ENGINE = jsonschema_rs.__name__
"""Loaded here, so that processes that are forked afterwards have it."""


def engine(
    given: Callable[[], Iterable[Resource]],
) -> Callable[[Options, list[Look]], tuple[Judge, list[Resource]]]:
    """A maker of judges that know the `given` definitions, and then those of the sources."""

    def make(options: Options, looks: list[Look]) -> tuple[Judge, list[Resource]]:
        definitions = [
            *given(),
            *(one for look in looks if look.defines for one in _definitions(look, options.dialect)),
        ]
        schemas = schemas_for(
            options.kubernetes, definitions, require=options.require_schema, flux=options.flux
        )
        return Judge(options, schemas), definitions

    return make


def _definitions(made: Look, dialect: Dialect) -> Iterable[Resource]:
    for document, _ in _documents(made, dialect):
        try:
            yield from resources((document,), dialect, file=made.source.name)
        except IntegrityError:
            continue  # said when it is judged


def _documents(made: Look, dialect: Dialect) -> list[tuple[Document, bool]]:
    """The documents of a source that may define kinds, and whether each may be unportable.

    Those of a small source are kept for judging; what is broken is said then.
    """
    reader = Reader(dialect)
    found, broken = [], False
    try:
        for index, piece in enumerate(cut(made.blocks(), dialect)):
            if made.parted and DEFINITION not in piece.chunk:
                continue
            before = reader.odd
            try:
                document = parsed(reader, piece, index)
            except IntegrityError:
                broken = True
                continue
            if document is not None:
                found.append((document, reader.odd != before))
    except OcipackError:
        broken = True
    if not (made.parted or broken or dialect is Dialect.KUBECTL):
        made.documents = found
    return found
