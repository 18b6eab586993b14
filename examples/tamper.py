"""Alter one byte of the artifact tagged `stable` in an OCI layout: of its manifest or its layer.

Usage: tamper.py LAYOUT manifest|layer. For the demo, and to try what `verify` and `pull` say.
"""

import json
import pathlib
import sys

REF_NAME = "org.opencontainers.image.ref.name"


def main() -> None:
    """Flip the last byte of what the arguments name."""
    layout, what = pathlib.Path(sys.argv[1]), sys.argv[2]
    index = json.loads((layout / "index.json").read_text())
    entry = next(
        e for e in index["manifests"] if e.get("annotations", {}).get(REF_NAME) == "stable"
    )
    path = layout / "blobs" / entry["digest"].replace(":", "/")
    if what == "layer":
        layer = json.loads(path.read_text())["layers"][0]
        path = layout / "blobs" / layer["digest"].replace(":", "/")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


main()
