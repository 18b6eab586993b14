"""Trees to ship."""

from __future__ import annotations

import os
from pathlib import Path


def tree(folder: Path, *, filler: int = 0, note: str = "") -> Path:
    """Write a small kustomization, and so many bytes of files that no compressor can shrink."""
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
        "namespace: shop\nresources:\n  - settings.yaml\n"
    )
    (folder / "settings.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"
        f"data:\n  note: {note or 'none'!r}\n"
    )
    piece = 1 << 20
    for number in range(0, filler, piece):
        (folder / f"noise-{number // piece:03}.bin").write_bytes(os.urandom(piece))
    return folder
