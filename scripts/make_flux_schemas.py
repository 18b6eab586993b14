"""Derive `ocipack/k8s/schemas/flux.xz` from the Go modules of Flux's controllers.

    python scripts/make_flux_schemas.py            fetch the pinned modules, write the file
    python scripts/make_flux_schemas.py --check    derive it again and compare; exit 1 if it differs

Each controller (Apache-2.0) holds the CustomResourceDefinitions that it reads in
`config/crd/bases`; the versions are those that one release of Flux installs. The Go command
fetches a module and holds it to Go's checksum database; the sums are part of the derived file.

The file is one xz stream of lines. The first is a JSON header (see `ocipack/k8s/schemas/flux.py`),
each further one a definition, reduced to what decides about an object: no texts, no columns, no
expressions (`x-kubernetes-validations`, which nothing here evaluates). Same input, same bytes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import subprocess
import sys
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from ocipack.k8s.schemas.flux import VERSION
from ocipack.k8s.yaml.documents import read
from ocipack.k8s.yaml.scalars import Dialect

RELEASE = "2.9.3"
"""The release of Flux that installs exactly these (its `manifests/bases`)."""

MODULES = (
    "github.com/fluxcd/helm-controller@v1.6.3",
    "github.com/fluxcd/image-automation-controller@v1.2.3",
    "github.com/fluxcd/image-reflector-controller@v1.2.3",
    "github.com/fluxcd/kustomize-controller@v1.9.4",
    "github.com/fluxcd/notification-controller@v1.9.2",
    "github.com/fluxcd/source-controller@v1.9.3",
    "github.com/fluxcd/source-watcher/v2@v2.2.2",
)
BASES = "config/crd/bases"
OUTPUT = Path(__file__).resolve().parents[1] / "ocipack" / "k8s" / "schemas" / "flux.xz"
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 23}]

DROPPED = {"description", "title", "example", "externalDocs", "x-kubernetes-validations"}
NAMED = {"properties", "patternProperties", "definitions"}
"""Words whose value maps names of the author's choosing to schemas: nothing is dropped by name."""
DATA = {"default", "enum", "required"}
"""Words whose value is no schema."""
VERSIONED = {"name", "served", "deprecated", "deprecationWarning"}
OPERATED = ("FluxInstance", "ResourceSet", "ResourceSetInputProvider")
"""Kinds of Flux Operator, which adds them to lists when it installs Flux: not refused here."""

LISTS = {"Alert": "eventSources", "Receiver": "resources"}
Json = dict[str, Any]


def schema(node: Any) -> Any:
    """A structural schema reduced to what decides."""
    if isinstance(node, list):
        return [schema(child) for child in node]
    if not isinstance(node, Mapping):
        return node
    out: Json = {}
    for word, value in node.items():
        if word in DATA:
            out[word] = deepcopy(value)
        elif word in NAMED:
            out[word] = {name: schema(child) for name, child in value.items()}
        elif word not in DROPPED:
            out[word] = schema(value)
    return out


def version(node: Json) -> Json:
    """One version of a definition."""
    kept = {word: value for word, value in node.items() if word in VERSIONED}
    return {**kept, "schema": {"openAPIV3Schema": schema(node["schema"]["openAPIV3Schema"])}}


def operated(kind: str, node: Json) -> Json:
    """One version with what Flux Operator adds to the kinds that a field may name."""
    if field := LISTS.get(kind):
        spec = node["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["properties"][field]["items"]["properties"]["kind"]["enum"] += OPERATED
    return node


def definition(node: Json) -> Json:
    """One CustomResourceDefinition; a form that this does not know stops the script."""
    spec = node["spec"]
    kind = spec["names"]["kind"]
    unknown = {*spec} - {"group", "names", "scope", "versions"}
    if node["apiVersion"] != "apiextensions.k8s.io/v1" or unknown:
        sys.exit(f"{node['metadata']['name']}: not understood: {sorted(unknown)}")
    return {
        "apiVersion": node["apiVersion"],
        "kind": node["kind"],
        "metadata": {"name": node["metadata"]["name"]},
        "spec": {
            "group": spec["group"],
            "names": {"kind": kind, "plural": spec["names"]["plural"]},
            "scope": spec["scope"],
            "versions": [operated(kind, version(one)) for one in spec["versions"]],
        },
    }


def derive(files: Iterable[bytes], source: list[str]) -> bytes:
    """The bytes of the data file, from the definitions in `files`."""
    found = [definition(one.value) for data in files for one in read(data, Dialect.KUBECTL)]
    found.sort(key=lambda one: (one["spec"]["group"], one["spec"]["names"]["kind"]))
    groups: dict[str, list[int]] = {}
    for number, one in enumerate(found, 1):
        groups.setdefault(one["spec"]["group"], []).append(number)
    header = {"format": 1, "flux": RELEASE, "source": source, "groups": groups}
    text = "\n".join(map(compact, (header, *found)))
    return lzma.compress(text.encode(), lzma.FORMAT_XZ, lzma.CHECK_CRC32, filters=FILTERS)


def compact(value: Any) -> str:
    """JSON without spaces, keys sorted."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def module(name: str) -> tuple[Path, str]:
    """The folder of a module and its name with its sum; the script ends if it cannot be had."""
    command = ("go", "mod", "download", "-json", name)
    try:
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("there is no go, which fetches the modules of Flux")
    found = json.loads(done.stdout) if done.stdout.strip() else {}
    if done.returncode or "Dir" not in found:
        sys.exit(f"{name} cannot be had: {found.get('Error') or done.stderr.strip()}")
    return Path(found["Dir"]), f"{name} {found['Sum']}"


def main() -> int:
    """Write the file, or compare it; 1 if it differs."""
    parser = argparse.ArgumentParser(description="derive ocipack's schemas of Flux")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    if RELEASE.rpartition(".")[0] != VERSION:
        sys.exit(f"flux.VERSION is {VERSION}, the modules are those of {RELEASE}")
    modules = [module(name) for name in MODULES]
    files = [path.read_bytes() for at, _ in modules for path in sorted((at / BASES).glob("*.yaml"))]
    data = derive(files, [source for _, source in modules])
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
