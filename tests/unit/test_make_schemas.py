"""The script that derives the schemas, on small documents: what is kept, added and shared."""

from __future__ import annotations

import importlib.util
import json
import lzma
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_schemas.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_schemas", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        for name, text in files.items():
            out.writestr(name, text)
    return path


SPEC: dict[str, Any] = {
    "type": ["object", "null"],
    "description": "text",
    "required": ["containers"],
    "properties": {
        "containers": {
            "type": "array",
            "items": {"$ref": "#/$defs/io.k8s.api.core.v1.Container"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-strategy": "merge",
        },
        "serviceAccount": {"type": ["string", "null"], "description": "Old. Deprecated: use b."},
        "priority": {"type": ["integer", "null"], "format": "int32"},
    },
    "additionalProperties": False,
}
CONTAINER: dict[str, Any] = {
    "type": ["object", "null"],
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "description": {"type": ["string", "null"], "description": "a field of that name"},
        "imagePullPolicy": {"type": ["string", "null"]},
    },
    "additionalProperties": False,
}
POD: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {"spec": {"$ref": "#/$defs/io.k8s.api.core.v1.PodSpec"}},
    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
}


def document(**more: Any) -> str:
    names = {"PodSpec": SPEC, "Container": CONTAINER, "Pod": POD, **more}
    return json.dumps(
        {"$defs": {f"io.k8s.api.core.v1.{name}": node for name, node in names.items()}}
    )


@pytest.fixture
def derived(script: ModuleType, tmp_path: Path) -> tuple[dict[str, Any], list[str], bytes]:
    """Header, lines and bytes of two versions; the second has one field and one kind more."""
    node = {
        **POD,
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Node"}],
    }
    longer = {
        **SPEC,
        "properties": {**SPEC["properties"], "hostIPC": {"type": ["boolean", "null"]}},
    }
    source = wheel(
        tmp_path / "source.whl",
        {
            script.TABLE.format("1.30.0"): document(),
            script.TABLE.format("1.31.0"): document(PodSpec=longer, Node=node),
        },
    )
    zones = wheel(tmp_path / "zones.whl", {"tzdata/zones": "Europe/Rome\nAfrica/Accra\n"})
    data = script.derive(source, zones)
    assert data == script.derive(source, zones)
    header, *lines = lzma.decompress(data).decode().split("\n")
    return json.loads(header), lines, data


def test_versions_kinds_and_zones(derived: tuple[dict[str, Any], list[str], bytes]) -> None:
    header, lines, _ = derived
    assert header["versions"] == ["1.30", "1.31"]
    assert header["kinds"] == {"v1": {"Pod": ["core.v1.Pod", 0, 1], "Node": ["core.v1.Node", 1, 1]}}
    assert header["cluster"] == ["/Node"]
    assert header["zones"] == ["Africa/Accra", "Europe/Rome"]
    # shared by both versions, one line each; Pod and Node look alike
    assert header["definitions"]["core.v1.Container"] == [[0, 1, 1]]
    assert [span[:2] for span in header["definitions"]["core.v1.PodSpec"]] == [[0, 0], [1, 1]]
    assert len(lines) == 4


def test_definitions(derived: tuple[dict[str, Any], list[str], bytes]) -> None:
    header, lines, _ = derived

    def definition(name: str) -> Any:
        return json.loads(lines[header["definitions"][name][0][2] - 1])

    assert definition("core.v1.PodSpec")["properties"]["containers"] == {
        "type": "array",
        "minItems": 1,
        "items": {"$ref": "#/$defs/core.v1.Container", "type": "object"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    assert definition("core.v1.PodSpec")["properties"]["serviceAccount"]["deprecated"] is True
    assert definition("core.v1.PodSpec")["properties"]["priority"] == {
        "type": ["integer", "null"],
        "minimum": -2147483648,
        "maximum": 2147483647,
    }
    container = definition("core.v1.Container")
    assert container["properties"]["name"] == {
        "type": "string",
        "minLength": 1,
        "format": "dns-label",
    }
    assert container["properties"]["description"] == {"type": ["string", "null"]}
    assert container["properties"]["imagePullPolicy"]["enum"] == [
        *("Always", "IfNotPresent", "Never", "", None)
    ]


def test_a_kind_whose_scope_nobody_knows_stops_the_script(
    script: ModuleType, tmp_path: Path
) -> None:
    new = {
        **POD,
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "New"}],
    }
    source = wheel(tmp_path / "a.whl", {script.TABLE.format("1.30.0"): document(New=new)})
    with pytest.raises(SystemExit, match="New"):
        script.derive(source, wheel(tmp_path / "b.whl", {"tzdata/zones": ""}))
