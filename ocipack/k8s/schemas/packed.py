"""The form of derived data files: one xz stream of lines, the first of them a JSON header."""

from __future__ import annotations

import json
import lzma
import pkgutil
from typing import Any


def unpacked(name: str) -> tuple[dict[str, Any], list[str]]:
    """Header and all lines (the header's own included, so that line numbers are indexes).

    `name` is a file beside this module.
    """
    packed = pkgutil.get_data(__package__, name)
    if packed is None:  # a zip importer without data: a broken installation, never user input
        raise FileNotFoundError(name)
    lines = lzma.decompress(packed).decode().split("\n")
    return json.loads(lines[0]), lines
