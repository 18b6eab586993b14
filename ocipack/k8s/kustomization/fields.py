"""Every field of a kustomization and of the builtin plugins, and which of them name files.

Source: kustomize api/types (kustomization.go and the types it holds), api/internal/builtins and
api/internal/target at release 5.8; `Open` stands where nothing below can cause reading.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias


class Names(enum.Enum):
    """What a string names, and so what becomes of it."""

    FILE = "a file of YAML"
    DATA = "a file that is copied as it is"
    KEYED_DATA = "such a file, or key=file"
    RESOURCE = "a file, or a directory with a kustomization"
    COMPONENT = "a directory with a component"
    PATCH = "a patch, or a file with patches"
    PLUGIN = "a plugin's configuration, or a file with some"


@dataclass(frozen=True, slots=True)
class Open:
    """Anything: nothing below this can name a file."""


@dataclass(frozen=True, slots=True)
class Each:
    """A list of `shape`."""

    shape: Shape


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping with exactly these fields."""

    fields: Mapping[str, Shape]


@dataclass(frozen=True, slots=True)
class Refused:
    """A field that is known and not allowed, for this reason."""

    reason: str


Shape: TypeAlias = Names | Open | Each | Fields | Refused

_OPEN: Final = Open()
_HELM: Final = Refused("runs helm and fetches charts: commit what it renders")


def _open(*names: str) -> dict[str, Shape]:
    return dict.fromkeys(names, _OPEN)


_FRAME: Final = _open("apiVersion", "kind", "metadata")
_GENERATOR: Final[dict[str, Shape]] = {
    **_open("name", "namespace", "behavior", "literals", "options", "type"),
    "files": Each(Names.KEYED_DATA),
    "envs": Each(Names.DATA),
    "env": Names.DATA,
}
_PATCH: Final[dict[str, Shape]] = {**_open("patch", "target", "options"), "path": Names.FILE}
PATCH: Final = Fields(_PATCH)
"""An entry of `patches`; kustomize before 3.0 had names of files there."""

_REPLACEMENT: Final[dict[str, Shape]] = {
    **_open("source", "targets", "sourceValue"),
    "path": Names.FILE,
}
_IMAGE: Final = Fields(_open("name", "newName", "newTag", "tagSuffix", "digest"))
_LABEL: Final = Fields(
    _open("pairs", "includeSelectors", "includeTemplates", "includeVolumeClaimTemplates", "fields")
)

KUSTOMIZATION: Final = Fields(
    {
        **_FRAME,
        **_open("namePrefix", "nameSuffix", "namespace", "commonLabels", "commonAnnotations"),
        **_open("vars", "generatorOptions", "buildMetadata", "sortOptions"),
        "openapi": Fields({"path": Names.FILE, "version": _OPEN}),
        "labels": Each(_LABEL),
        "images": Each(_IMAGE),
        "imageTags": Each(_IMAGE),
        "replicas": Each(Fields(_open("name", "count"))),
        "patches": Each(PATCH),
        "patchesJson6902": Each(Fields(_PATCH)),
        "patchesStrategicMerge": Each(Names.PATCH),
        "replacements": Each(Fields(_REPLACEMENT)),
        "resources": Each(Names.RESOURCE),
        "bases": Each(Names.RESOURCE),
        "components": Each(Names.COMPONENT),
        "crds": Each(Names.FILE),
        "configurations": Each(Names.FILE),
        "configMapGenerator": Each(Fields(_GENERATOR)),
        "secretGenerator": Each(Fields(_GENERATOR)),
        "generators": Each(Names.PLUGIN),
        "transformers": Each(Names.PLUGIN),
        "validators": Each(Names.PLUGIN),
        "helmCharts": _HELM,
        "helmGlobals": _HELM,
        "helmChartInflationGenerator": _HELM,
    }
)

BUILTIN: Final = "builtin"
"""The apiVersion of plugins that are compiled into kustomize; all others run programs."""

PLUGINS: Final[Mapping[str, Shape]] = {
    "ConfigMapGenerator": Fields({**_FRAME, **_GENERATOR}),
    "SecretGenerator": Fields({**_FRAME, **_GENERATOR}),
    "PatchTransformer": Fields({**_FRAME, **_PATCH}),
    "PatchJson6902Transformer": Fields({**_FRAME, **_open("target", "jsonOp"), "path": Names.FILE}),
    "PatchStrategicMergeTransformer": Fields(
        {**_FRAME, "patches": _OPEN, "paths": Each(Names.PATCH)}
    ),
    "ReplacementTransformer": Fields({**_FRAME, "replacements": Each(Fields(_REPLACEMENT))}),
    "ValueAddTransformer": Fields(
        {**_FRAME, **_open("value", "targets"), "targetFilePath": Names.FILE}
    ),
    "HelmChartInflationGenerator": _HELM,
    **_open("AnnotationsTransformer", "HashTransformer", "IAMPolicyGenerator"),
    **_open("ImageTagTransformer", "LabelTransformer", "NamespaceTransformer"),
    **_open("PrefixTransformer", "SuffixTransformer", "ReplicaCountTransformer"),
    **_open("SortOrderTransformer"),
}
