"""Keys whose private halves are public knowledge: they ship with ocipack."""

from __future__ import annotations

from collections.abc import Iterable

from ocipack.errors import Rejected
from ocipack.trust.keys import PublicKey

EXAMPLES = {
    "9ba590455b27acf269f87bd7d2aa11324a68621d234443ce676b166ba7450d62": "keys-example/cosign.key",
    "1976bd3df634f7e930aaf1a2a045652a88c7ffd415afd2041802b890709f3b1a": "test key number 1",
    "4a213825b4fa896336c41f67ffbf266d6d70baeb4ce63409827c8b860bbad936": "test key alice",
    "f4b87d2440b8708361adad4fb4effb23dc53092e09bd992758a046684f01aec4": "test key bob",
    "18ce1e4be570915bcff71a6003285c22b534fa84823a7e3a079235b7c000bdae": "test key ed25519",
    "e4f49fd28e08e9b93d5eb3d3a1ea6559c28d36135de744c3986ba04ff1f1f77e": "test key p384",
    "fc73c2f04319ea2183040841e7af2c8678276594b96db332a96c6fe502eb78df": "test key rsa2048",
}
"""By the hash that names a key: which of the keys that we publish it is."""


def refuse(keys: Iterable[PublicKey]) -> None:
    """Reject every key that anyone could sign with."""
    for key in keys:
        if key.id in EXAMPLES:
            raise Rejected(
                f"the key {key.id} is an example ({EXAMPLES[key.id]}), and anyone can sign with it",
                hint="make a key of your own with `ocipack keys generate`; "
                "--allow-example-key is for trying things out",
            )
