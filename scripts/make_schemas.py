"""Derive `ocipack/k8s/schemas/kubernetes.xz` from two published wheels.

    python scripts/make_schemas.py            download the pinned wheels, write the file
    python scripts/make_schemas.py --check    derive it again and compare; exit 1 if it differs
    python scripts/make_schemas.py --wheels DIR [--check]    take the wheels from DIR

`kubernetes-validate` (Apache-2.0) holds the OpenAPI documents of each Kubernetes version as JSON
Schema; `tzdata` holds the names of the time zones that an API server knows. What the server
enforces beyond its document is `constraints.toml`, beside this script.

The file is one xz stream of lines. The first is a JSON header (see `ocipack/k8s/schemas`), each
further one a definition: JSON Schema 2020-12 whose references are `#/$defs/NAME`. Definitions
that several versions share are there once. Same input, same bytes: keys are sorted, the xz
filters are fixed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

SOURCE, ZONES = "kubernetes-validate==1.37.0", "tzdata==2026.6"
HERE = Path(__file__).resolve().parent
OUTPUT = HERE.parent / "ocipack" / "k8s" / "schemas" / "kubernetes.xz"
TABLE = "kubernetes_validate/kubernetes-json-schema/v{}-local-strict/_definitions.json"
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 23}]

INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}
META = "apimachinery.pkg.apis.meta.v1."
FREE = re.compile(r"\.(JSON|JSONSchemaPropsOr\w+|FieldsV1|Patch|RawExtension)$")
SPECIAL: dict[str, dict[str, Any]] = {
    "apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string", "null"], **INT32},
    "apimachinery.pkg.api.resource.Quantity": {
        "type": ["number", "string", "null"],
        "format": "quantity",
    },
    META + "Time": {"type": ["string", "null"], "format": "go-time"},
    META + "MicroTime": {"type": ["string", "null"], "format": "go-micro-time"},
}
KEPT = {
    *("type", "properties", "required", "items", "additionalProperties", "$ref"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
}
RANGE = re.compile(r"(-?\d+)\.\.(\d*)")
Json = dict[str, Any]


def short(name: str) -> str:
    """A definition's name without the prefixes that all share."""
    return name.removeprefix("io.k8s.").removeprefix("api.")


def schema(node: Json) -> Json:
    """`node` reduced to what decides: no texts, formats as bounds, references by short name."""
    kept = {key: value for key, value in node.items() if key in KEPT}
    if node.get("x-kubernetes-list-type") == "atomic":
        kept.pop("x-kubernetes-list-type")
    if "$ref" in kept:
        kept["$ref"] = "#/$defs/" + short(kept["$ref"].rpartition("/")[2])
    if node.get("format") == "int32":
        kept |= INT32
    elif node.get("format") == "byte":
        kept["format"] = "byte"
    if re.search(r"\bDeprecated[:.] ", node.get("description", "")):
        kept["deprecated"] = True
    if "properties" in kept:
        kept["properties"] = {name: schema(value) for name, value in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = schema(kept[key])
    if kept.get("x-kubernetes-list-type") == "map":
        kept["items"]["type"] = "object"  # an entry without its keys is no entry: never null
    return kept


def definition(name: str, node: Json, table: Json) -> Json:
    """One definition, with what the server enforces beyond its document."""
    if name in SPECIAL:
        return SPECIAL[name]
    found = schema(node)
    found.pop("deprecated", None)
    if "properties" not in found and found.get("type") == ["object", "null"]:
        found |= {} if FREE.search(name) else {"properties": {}, "additionalProperties": False}
    relax(found, table["relaxed"].get(name, []))
    for place, words in table["fields"].get(name, {}).items():
        field = re.match(r"\w+", place)
        if field and field[0] in found["properties"]:
            constrain(found, field[0], place[field.end() :], words)
    for field in found.get("required", []):
        if "$ref" in found["properties"][field]:
            found["properties"][field].setdefault("type", _solid(found["properties"][field]))
    if needed := found.pop("required", []):
        found["required"] = sorted(needed)
    return found


def relax(found: Json, fields: list[str]) -> None:
    """Make required fields optional, and null for them possible."""
    for field in {*fields} & {*found.get("required", [])}:
        found["required"].remove(field)
        _nullable(found["properties"][field])


def _solid(node: Json) -> Any:
    """The type of a required reference: its own, without null."""
    special = SPECIAL.get(node["$ref"].removeprefix("#/$defs/"), {"type": ["object"]})
    return [kind for kind in special["type"] if kind != "null"]


def _nullable(node: Json) -> None:
    if isinstance(node.get("type"), str):
        node["type"] = [node["type"], "null"]


def constrain(parent: Json, field: str, part: str, words: str | list[str]) -> None:
    """Apply one line of the table to `field` of `parent`, or to its items, values or keys."""
    node = parent["properties"][field]
    if part == "{*}":
        node["propertyNames"] = {"format": words}
        return
    if part:
        node = node["items" if part == "[]" else "additionalProperties"]
    tokens = words if isinstance(words, list) else words.split()
    required = "!" in tokens
    if required and not part:
        parent["required"] = sorted({*parent.get("required", []), field})
    if required:
        solid(node)
    if isinstance(words, list):
        values = [value for value in words if value != "!"]
        node["enum"] = values if required else [*values, "", None]
        return
    for word in tokens:
        if limits := RANGE.fullmatch(word):
            node["minimum"] = int(limits[1])
            node.update({"maximum": int(limits[2])} if limits[2] else {})
        elif word.startswith("<="):
            node["maxItems"] = int(word[2:])
        elif word != "!":
            node["format"] = word


def solid(node: Json) -> None:
    """Neither null nor empty."""
    if "$ref" in node:
        node["type"] = _solid(node)
        return
    kinds = node["type"] if isinstance(node["type"], list) else [node["type"]]
    node["type"] = next(kind for kind in kinds if kind != "null")
    if node["type"] == "string":
        node["minLength"] = 1
    elif node["type"] == "array":
        node["minItems"] = 1


class Scopes:
    """Which kinds live in a namespace; a kind that the table does not know stops the script."""

    def __init__(self, table: Json) -> None:
        self.table = table
        self.unknown: set[str] = set()

    def of(self, group: str, kind: str) -> str:
        """`cluster`, `namespaced`, or `none` for what no manifest can hold."""
        name = f"{group}/{kind}" if group else kind
        for scope in ("none", "cluster", "namespaced"):
            if name in self.table[scope] or (scope == "none" and kind in self.table[scope]):
                return scope
        for scope in ("cluster", "namespaced"):
            if f"{group}/*" in self.table[scope]:
                return scope
        self.unknown.add(name)
        return "none"


def derive(source: Path, zones: Path) -> bytes:
    """The bytes of the data file."""
    table = tomllib.loads((HERE / "constraints.toml").read_text())
    with zipfile.ZipFile(source) as wheel:
        names = [re.search(r"/v(1\.(\d+)\.0)-local-strict/_def", n) for n in wheel.namelist()]
        versions = sorted({(int(m[2]), m[1]) for m in names if m})
        documents = [json.loads(wheel.read(TABLE.format(v)))["$defs"] for _, v in versions]
    with zipfile.ZipFile(zones) as wheel:
        known = wheel.read("tzdata/zones").decode().split()
    lines, definitions, kinds, cluster = collect(documents, table)
    header = {
        "format": 1,
        "source": [SOURCE, ZONES],
        "versions": [f"1.{minor}" for minor, _ in versions],
        "definitions": definitions,
        "kinds": kinds,
        "cluster": sorted(cluster),
        "gone": {
            f"{row['api']} {kind}": [row["removed"], row["use"]]
            for row in table["gone"]
            for kind in row["kinds"]
        },
        "deprecated": table["deprecated"],
        "instead": table["instead"],
        "zones": sorted(known),
    }
    text = "\n".join([compact(header), *lines])
    return lzma.compress(text.encode(), lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=FILTERS)


def collect(documents: list[Json], table: Json) -> tuple[list[str], Json, Json, set[str]]:
    """Unique definitions as lines, and by name and kind where they apply.

    `definitions[name]` is a list of `[first version, last version, line]`, `kinds[apiVersion]`
    maps a kind to `[definition, first version, last version]`; versions are indexes, lines count
    from 1, after the header.
    """
    lines: dict[str, int] = {}
    definitions: dict[str, list[list[int]]] = {}
    kinds: dict[str, dict[str, list[Any]]] = {}
    cluster: set[str] = set()
    scopes = Scopes(table["scope"])
    for index, document in enumerate(documents):
        for full, node in sorted(document.items()):
            name = short(full)
            text = compact(definition(name, node, table))
            line = lines.setdefault(text, len(lines) + 1)
            spans = definitions.setdefault(name, [])
            if spans and spans[-1][1] == index - 1 and spans[-1][2] == line:
                spans[-1][1] = index
            else:
                spans.append([index, index, line])
            for gvk in node.get("x-kubernetes-group-version-kind", []):
                group, kind = gvk["group"], gvk["kind"]
                if kind.endswith("List") or (scope := scopes.of(group, kind)) == "none":
                    continue
                api = f"{group}/{gvk['version']}".removeprefix("/")
                kinds.setdefault(api, {}).setdefault(kind, [name, index, index])[2] = index
                if scope == "cluster":
                    cluster.add(f"{group}/{kind}")
    if scopes.unknown:
        sys.exit(f"constraints.toml does not say where these live: {sorted(scopes.unknown)}")
    return list(lines), definitions, kinds, cluster


def compact(value: Any) -> str:
    """JSON without spaces, keys sorted."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def wheels(directory: str) -> tuple[Path, Path]:
    """The two pinned wheels in `directory`, downloaded if they are not there."""
    found = []
    for pin in (SOURCE, ZONES):
        name, _, version = pin.partition("==")
        pattern = f"{name.replace('-', '_')}-{version}-*.whl"
        if not list(Path(directory).glob(pattern)):
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", pin]
            subprocess.run([*command, "--dest", directory], check=True)
        found.append(next(Path(directory).glob(pattern)))
    return found[0], found[1]


def main() -> int:
    """Write the file, or compare it; 1 if it differs."""
    parser = argparse.ArgumentParser(description="derive ocipack's Kubernetes schemas")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--wheels", help="directory of the wheels")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data = derive(*wheels(arguments.wheels or directory))
    if not arguments.check:
        OUTPUT.write_bytes(data)
        print(f"{OUTPUT.name}: {len(data)} bytes")
        return 0
    # the content decides: another liblzma may pack the same lines into other bytes
    same = lzma.decompress(OUTPUT.read_bytes()) == lzma.decompress(data)
    print(f"{OUTPUT.name}: {'as derived' if same else 'differs from what the sources give'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
