"""Rules about secrets: neither in the clear, nor as ciphertext that nobody decrypts.

Source: kustomize-controller 1.9 applies SOPS ciphertext under `stringData`, in ConfigMaps and in
generated objects without a word (seen on a cluster), so what is left after rendering is an error.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ocipack.k8s.resource import Resource
from ocipack.k8s.yaml.documents import join
from ocipack.report import Finding, Severity
from ocipack.validate.objects import finding

PLAINTEXT = "secret-plaintext"
CIPHERTEXT = "secret-ciphertext"

_MARK = "ENC[AES256_GCM,"
_FILE = re.compile(r'"mac": "ENC\[|\bmac: ENC\[|sops_mac=ENC\[|\[sops\]')
_PLACEHOLDER = re.compile(
    r"\$\{[A-Za-z_]\w*\}"  # Flux or envsubst put a value here; a default would be in the clear
    r"|\$\([A-Za-z_]\w*\)"
    r"|<\w[\w .:/#|-]*>"  # argocd-vault-plugin, and what people write to be filled in
    r"|\{\{[^{}\"'`]*\}\}"
    r"|op://[^/\n]+/[^/\n]+(?:/[^/\n]+){1,2}"  # `op inject` looks it up in 1Password
)
_HINT = (
    "whoever can read the artifact can read it: use a SealedSecret or an ExternalSecret, or create "
    "the Secret in the cluster"
)


def plaintext(resource: Resource) -> Iterator[Finding]:
    """A `v1` Secret carries no values, generated or not.

    An empty value is a placeholder, and so is one that only names what a tool will put there.
    """
    if resource.api_version != "v1" or resource.kind != "Secret":
        return
    for field in ("data", "stringData"):
        values = resource.value.get(field)
        for key, value in values.items() if isinstance(values, Mapping) else ():
            encoded = field == "data"
            if value in (None, "") or _is_placeholder(value, encoded=encoded):
                continue
            if not _is_encrypted(value, encoded=encoded):
                message = f"{field} {key!r} is a secret in plain text"
                if field == "data":
                    message += " (base64 hides nothing)"
                pointer = join(field, key)
                yield finding(PLAINTEXT, message, resource, pointer=pointer, hint=_HINT)


def ciphertext(resource: Resource) -> Iterator[Finding]:
    """No object carries SOPS ciphertext after rendering."""
    return _ciphertext(resource, files=True)


def undecryptable(resource: Resource) -> Iterator[Finding]:
    """No object carries SOPS ciphertext that a kustomize-controller with a key would leave.

    It decrypts objects that are SOPS documents, and in `data` of Secrets whole SOPS files, which
    it knows by their marks (internal/decryptor, DecryptResource). What it would leave is a warning,
    the rest a note: who delivers it has an excuse, which is needed here as well.
    """
    sealed = [*_ciphertext(resource, files=True)]
    left = [] if not sealed or "sops" in resource.value else [*_ciphertext(resource, files=False)]
    severity = Severity.WARNING if left else Severity.NOTE
    for one in left or sealed:
        yield replace(one, severity=severity)


def _ciphertext(resource: Resource, *, files: bool) -> Iterator[Finding]:
    secret = resource.api_version == "v1" and resource.kind == "Secret"
    for pointer, value in _texts(resource.value, ""):
        encoded = secret and pointer.startswith("/data/")
        if encoded and not files and _FILE.search(_decoded(value)):
            continue
        if _is_encrypted(value, encoded=encoded):
            yield finding(
                CIPHERTEXT,
                "SOPS ciphertext is left after rendering",
                resource,
                pointer=pointer,
                hint="kustomize-controller applies some of these as they are, and says Ready: "
                "decrypt before packing, or ignore this if spec.decryption opens it",
            )
            return


def _is_placeholder(value: Any, *, encoded: bool) -> bool:
    if not isinstance(value, str):
        return False
    texts = (value, _decoded(value)) if encoded else (value,)
    return any(_PLACEHOLDER.fullmatch(text.strip()) for text in texts)


def _is_encrypted(value: Any, *, encoded: bool) -> bool:
    if not isinstance(value, str):
        return False
    if value.startswith(_MARK):
        return True
    if not encoded:
        return _MARK in value and "sops" in value  # a whole encrypted file as one value
    return _MARK in _decoded(value)


def _decoded(value: str) -> str:
    """What base64 hides, or nothing if it is none."""
    try:
        return base64.b64decode(value, validate=False).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Every text in `value` and the pointer to it; parts that aliases share come each time."""
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, pointer + join(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, f"{pointer}/{index}")
