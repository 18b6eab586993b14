"""Encrypted private keys as cosign keeps them (pkg/cosign/keys.go; securesystemslib/encrypted).

Compact JSON around scrypt and NaCl's secretbox, in a PEM block:

    {"kdf":{"name":"scrypt","params":{"N":65536,"r":8,"p":1},"salt":"<base64>"},
     "cipher":{"name":"nacl/secretbox","nonce":"<base64, 24 bytes>"},"ciphertext":"<base64>"}

The ciphertext begins with its 16-byte tag; the plaintext is PKCS#8 DER. PyNaCl is imported late:
whoever only verifies never needs it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from ocipack.errors import Misuse
from ocipack.oci import jsontext
from ocipack.trust import wire

COSTS = frozenset({(32768, 8, 1), (65536, 8, 1), (131072, 8, 1)})
"""The scrypt parameters (N, r, p) that cosign reads; anything else would also be a way to make
us spend memory."""

COST = 65536
"""scrypt's N of the keys we write; what cosign writes, and what every cosign reads."""

_SALT, _NONCE, _KEY = 32, 24, 32

_SHAPE: wire.Shape = {
    "kdf!": {
        "name!": wire.TEXT,
        "params!": {"N!": wire.INTEGER, "r!": wire.INTEGER, "p!": wire.INTEGER},
        "salt!": wire.BASE64,
    },
    "cipher!": {"name!": wire.TEXT, "nonce!": wire.BASE64},
    "ciphertext!": wire.BASE64,
}


def unseal(text: bytes, password: bytes) -> bytes:
    """Decrypt the JSON text `text`.

    Misuse for a wrong password, for parameters that cosign does not read either, and for a file
    that is not in this form.
    """
    try:
        document = jsontext.decode(text)
        wire.check(document, _SHAPE)
    except (ValueError, RecursionError) as e:
        raise Misuse(f"not an encrypted private key: {e}") from e
    kdf, cipher = document["kdf"], document["cipher"]
    cost = tuple(int(kdf["params"][name]) for name in ("N", "r", "p"))
    if kdf["name"] != "scrypt" or cost not in COSTS:
        raise Misuse(
            f"this key is sealed with {kdf['name'][:40]!r} and the parameters {cost}; "
            "only scrypt with N=32768, 65536 or 131072, r=8, p=1 is read",
            hint="cosign does not read it either; seal the key again with `ocipack keys import`",
        )
    nonce = base64.b64decode(cipher["nonce"])
    if cipher["name"] != "nacl/secretbox" or len(nonce) != _NONCE:
        raise Misuse(f"this key is sealed with {cipher['name'][:40]!r}; expected nacl/secretbox")
    key = _derive(password, base64.b64decode(kdf["salt"]), cost[0])
    return _open(base64.b64decode(document["ciphertext"]), nonce, key)


def seal(secret: bytes, password: bytes, random: Callable[[int], bytes]) -> bytes:
    """Encrypt `secret` as the JSON text that cosign would write.

    `random(n)` gives n unpredictable bytes; it is asked for the salt, then for the nonce.
    """
    from nacl.bindings import crypto_secretbox  # noqa: PLC0415 - start-up

    salt, nonce = random(_SALT), random(_NONCE)
    ciphertext = crypto_secretbox(secret, nonce, _derive(password, salt, COST))
    document: dict[str, Any] = {
        "kdf": {
            "name": "scrypt",
            "params": {"N": COST, "r": 8, "p": 1},
            "salt": base64.b64encode(salt).decode(),
        },
        "cipher": {"name": "nacl/secretbox", "nonce": base64.b64encode(nonce).decode()},
        "ciphertext": base64.b64encode(ciphertext).decode(),
    }
    return jsontext.encode(document)


def _derive(password: bytes, salt: bytes, cost: int) -> bytes:
    """Scrypt (RFC 7914) by OpenSSL, which takes two thirds of libsodium's time."""
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt  # noqa: PLC0415 - start-up

    return Scrypt(salt, _KEY, cost, 8, 1).derive(password)


def _open(ciphertext: bytes, nonce: bytes, key: bytes) -> bytes:
    from nacl.bindings import crypto_secretbox_open  # noqa: PLC0415 - start-up
    from nacl.exceptions import CryptoError  # noqa: PLC0415 - start-up

    try:
        return crypto_secretbox_open(ciphertext, nonce, key)
    except CryptoError as e:
        raise Misuse(
            "the password does not open this private key",
            hint="it may be that of another key; one final newline is not part of it",
        ) from e


def armour(label: str, body: bytes) -> bytes:
    """Write a PEM block (RFC 7468), 64 columns wide."""
    text = binascii.b2a_base64(body, newline=False).decode()
    lines = [text[i : i + 64] for i in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""]).encode()
