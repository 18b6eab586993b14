"""Policy files from disk; loaded only where --policy is given, since it brings the YAML reader."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ocipack.errors import Misuse
from ocipack.k8s.yaml.strict import BYTES
from ocipack.signers import file as key_file
from ocipack.trust.keys import PublicKey
from ocipack.trust.policy import VerificationPolicy
from ocipack.trust.policy.reader import FindKey, read


def policies(paths: Iterable[str]) -> tuple[VerificationPolicy, ...]:
    """The policies in the files at `paths`; Misuse says what is wrong, and where."""
    found: list[VerificationPolicy] = []
    for path in paths:
        found += read(content(path), file=path, key=beside(path))
    return tuple(found)


def content(path: str) -> bytes:
    """What is in a file, as far as a policy may be long; Misuse if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(BYTES + 1)
    except OSError as e:
        raise Misuse(f"{path}: cannot be read: {e.strerror}") from e


def beside(path: str) -> FindKey:
    """Finds the keys that the file at `path` names: their paths count from its directory."""

    def key(name: str) -> PublicKey:
        return key_file.read_public(str(Path(path).parent / name))

    return key
