"""How the scalars of what kustomize built, or of one document, are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ocipack.errors import IntegrityError
from ocipack.k8s.edit import Sheet, sheets
from ocipack.k8s.yaml.documents import read as documents
from ocipack.k8s.yaml.scalars import Dialect

if TYPE_CHECKING:
    from ocipack.k8s.images.site import Written
    from ocipack.verify.namings import Path


class Texts:
    """How the scalars of a stream are written: read only when somebody asks."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._chunks: dict[int, bytes] | None = None
        self._sheet: tuple[int, Sheet | None] = (-1, None)

    def written(self, index: int, at: Path) -> Written:
        """For the node at `at` of the document `index`."""

        def of(path: Path) -> str | None:
            sheet = self._sheet_of(index)
            return sheet.written((*at, *path)) if sheet is not None else None

        return of

    def _sheet_of(self, index: int) -> Sheet | None:
        if self._sheet[0] != index:
            if self._chunks is None:
                stream = documents(self._data, Dialect.FLUX, strict=False)
                self._chunks = {one.index: one.chunk for one in stream}
            try:
                found = next(iter(sheets(self._chunks[index])), None)
            except (KeyError, IntegrityError):
                found = None
            self._sheet = (index, found)
        return self._sheet[1]
