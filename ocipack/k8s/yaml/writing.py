"""Text as YAML that every reader takes for this very text, on one line."""

from __future__ import annotations

import json
import re
from typing import Final

from ocipack.k8s.yaml.scalars import Dialect, ScalarError, plain

_PLAIN: Final = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._/@:+*~-]*")
_CONTROL: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def scalar(text: str) -> str:
    """`text` on one line, in quotes where a reader could take it for something else."""
    if _PLAIN.fullmatch(text) and not text.endswith(":") and _is_text(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _is_text(text: str) -> bool:
    try:
        return all(plain(text, dialect) == text for dialect in Dialect)
    except ScalarError:
        return False
