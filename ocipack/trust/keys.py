"""Keys that verify and keys that sign.

We sign with ECDSA P-256 and SHA-256 alone, because that is what every reader verifies; we verify
what others made with ECDSA, RSA and Ed25519. `cryptography`'s serialization package costs half of
what `verify` may spend on imports, so the usual forms of elliptic keys are read without it: their
DER is a constant prefix and a point (RFC 5480 §2, RFC 5915, RFC 5958).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from ocipack.errors import Misuse
from ocipack.trust import sealed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

PUBLIC = "PUBLIC KEY"
ENCRYPTED = "ENCRYPTED SIGSTORE PRIVATE KEY"
_ENCRYPTED = frozenset({ENCRYPTED, "ENCRYPTED COSIGN PRIVATE KEY"})
_PLAIN = frozenset({"PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"})

_PEM = re.compile(
    rb"-----BEGIN (?P<label>[A-Z0-9 ]{1,60})-----"
    rb"(?P<body>[A-Za-z0-9+/=\s]*)"
    rb"-----END (?P=label)-----"
)
_BEGIN = b"-----BEGIN "

_SPKI = {
    "P-256": bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200"),
    "P-384": bytes.fromhex("3076301006072a8648ce3d020106052b81040022036200"),
    "P-521": bytes.fromhex("30819b301006072a8648ce3d020106052b8104002303818600"),
}
_POINT = {"P-256": 65, "P-384": 97, "P-521": 133}
_PKCS8 = bytes.fromhex("308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420")
_PKCS8_POINT = bytes.fromhex("a144034200")
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_SCALAR = 32

_RSA_BITS = range(2048, 8193)

_Check = Callable[[bytes, bytes], bool]


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that can say whether it made a signature.

    `spki` is its SubjectPublicKeyInfo in the one canonical DER form (whatever was given), so that
    two spellings of one key are one key. `algorithm` is for people: `ECDSA P-256`, `RSA 3072`,
    `Ed25519`. Misuse for anything that we cannot or should not trust.
    """

    spki: bytes = field(repr=False)
    algorithm: str = field(init=False, compare=False)
    _check: _Check = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        spki, algorithm, check = _load(self.spki)
        object.__setattr__(self, "spki", spki)
        object.__setattr__(self, "algorithm", algorithm)
        object.__setattr__(self, "_check", check)

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Read PEM (`PUBLIC KEY`) or bare DER; Misuse if it is something else."""
        if _BEGIN not in data:
            return cls(data)
        blocks = list(_PEM.finditer(data))
        if len(blocks) > 1:
            raise Misuse("this file holds several keys", hint="give each key a file of its own")
        label, body = _block(data)
        if "PRIVATE" in label:
            raise Misuse(
                "a private key was given where a public one is needed",
                hint="make its public half with `ocipack keys public`",
            )
        if label != PUBLIC:
            raise Misuse(
                f"a public key file holds PUBLIC KEY, not {label}",
                hint="openssl rsa -RSAPublicKey_in -pubout, or openssl x509 -pubkey -noout, "
                "turns other forms into it",
            )
        return cls(body)

    @property
    def id(self) -> str:
        """How we name this key: the sha256 of its SPKI, in hex."""
        return hashlib.sha256(self.spki).hexdigest()

    @property
    def hint(self) -> str:
        """The same hash in base64: a Sigstore bundle's name for this key, and no proof of it."""
        return base64.b64encode(hashlib.sha256(self.spki).digest()).decode()

    @property
    def pem(self) -> bytes:
        """The text of a `.pub` file."""
        return sealed.armour(PUBLIC, self.spki)

    def verifies(self, signature: bytes, payload: bytes) -> bool:
        """Whether this key made `signature` over `payload`.

        ECDSA signatures are ASN.1 DER; the raw form r‖s is refused. P-384 and P-521 are tried
        with their own hash and with SHA-256, Ed25519 pure and pre-hashed: all of these exist.
        """
        return self._check(signature, payload)


@dataclass(frozen=True, slots=True, eq=False)
class PrivateKey:
    """An ECDSA P-256 key that signs. Neither its text form nor any error shows the secret."""

    _key: EllipticCurvePrivateKey = field(repr=False)
    public: PublicKey

    @classmethod
    def generate(cls, random: Callable[[int], bytes]) -> Self:
        """Make a key from `random(n)`, n unpredictable bytes (FIPS 186-5, A.2.1)."""
        return cls._of(int.from_bytes(random(_SCALAR + 8)) % (_ORDER - 1) + 1)

    @classmethod
    def open(cls, data: bytes, password: bytes) -> Self:
        """Read an encrypted key file of cosign's; Misuse if the password does not open it."""
        return cls._pkcs8(sealed.unseal(cls.sealed(data), password))

    @classmethod
    def sealed(cls, data: bytes) -> bytes:
        """Take the encrypted part out of a key file; Misuse if it is another kind of file.

        It needs no password, so whoever would ask for one can look first.
        """
        label, body = _block(data)
        _refuse_public(label)
        if label in _PLAIN:
            raise Misuse(
                f"this private key is not encrypted ({label})",
                hint="`ocipack keys import` makes an encrypted key file from it",
            )
        if label not in _ENCRYPTED:
            raise Misuse(f"a private key file holds {ENCRYPTED}, not {label}")
        return body

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Read an unencrypted PEM key (PKCS#8, SEC1, PKCS#1) for import."""
        label, body = _block(data)
        _refuse_public(label)
        if label in _ENCRYPTED:
            raise Misuse("this key is in the encrypted form already", hint="use it as it is")
        if label not in _PLAIN:
            raise Misuse(
                f"a key to import is PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY, not {label}",
                hint="openssl pkey -in FILE writes an unencrypted key",
            )
        return cls._pkcs8(body)

    def seal(self, password: bytes, random: Callable[[int], bytes]) -> bytes:
        """Write an encrypted key file as cosign does; `random(n)` gives salt and nonce."""
        secret = self._key.private_numbers().private_value.to_bytes(_SCALAR)
        point = self.public.spki[len(_SPKI["P-256"]) :]
        return sealed.armour(
            ENCRYPTED, sealed.seal(_PKCS8 + secret + _PKCS8_POINT + point, password, random)
        )

    def sign(self, payload: bytes) -> bytes:
        """Sign `payload` with SHA-256, deterministically (RFC 6979); ASN.1 DER."""
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - start-up
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - start-up

        return self._key.sign(payload, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))

    @classmethod
    def _of(cls, scalar: int) -> Self:
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - start-up

        key = ec.derive_private_key(scalar, ec.SECP256R1())
        numbers = key.public_key().public_numbers()
        point = b"\x04" + numbers.x.to_bytes(_SCALAR) + numbers.y.to_bytes(_SCALAR)
        return cls(key, PublicKey(_SPKI["P-256"] + point))

    @classmethod
    def _pkcs8(cls, der: bytes) -> Self:
        start, end = len(_PKCS8), len(_PKCS8) + _SCALAR
        scalar = int.from_bytes(der[start:end])
        if der.startswith(_PKCS8) and 0 < scalar < _ORDER:
            key = cls._of(scalar)
            if der[end:] == _PKCS8_POINT + key.public.spki[len(_SPKI["P-256"]) :]:
                return key
        return cls._of(_scalar(der))


def _block(data: bytes) -> tuple[str, bytes]:
    """Find the first PEM block: its label and its bytes."""
    match = _PEM.search(data)
    if match is None:
        raise Misuse(
            "no key is here" if _BEGIN not in data else "this PEM block is cut or has headers",
            hint="a key file is PEM text, from -----BEGIN to -----END",
        )
    try:
        body = base64.b64decode(b"".join(match["body"].split()), validate=True)
    except ValueError as e:
        raise Misuse("the base64 of this key is broken") from e
    return match["label"].decode(), body


def _refuse_public(label: str) -> None:
    if "PRIVATE" not in label and label.endswith("PUBLIC KEY"):
        raise Misuse(
            "a public key was given where a private one is needed",
            hint="signing needs the .key file of the pair",
        )


def _scalar(der: bytes) -> int:
    """The secret of a P-256 key in any form that OpenSSL reads; Misuse for every other kind."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - start-up
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - start-up
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - start-up
        load_der_private_key,
    )

    try:
        key = load_der_private_key(der, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise Misuse("this private key cannot be read, or is weak") from e
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
        return key.private_numbers().private_value
    raise Misuse(
        f"only ECDSA P-256 keys sign, and this is {_kind(key)}",
        hint="cosign does not verify its own P-384, P-521 and Ed25519 signatures, and Flux has no "
        "switch for them; make a key with `ocipack keys generate`",
    )


def _kind(key: object) -> str:
    """What sort of key `key` is, for people."""
    size = getattr(key, "key_size", "")
    name = type(key).__name__.removesuffix("Key").removesuffix("Private").removesuffix("Public")
    curve = getattr(getattr(key, "curve", None), "name", None)
    return f"ECDSA {curve}" if curve else f"{name} {size}".strip()


def _load(spki: bytes) -> tuple[bytes, str, _Check]:
    """Read an SPKI: its canonical bytes, its algorithm's name, and how to verify with it."""
    for curve, prefix in _SPKI.items():
        if spki.startswith(prefix) and len(spki) == len(prefix) + _POINT[curve]:
            return spki, f"ECDSA {curve}", _elliptic(curve, spki[len(prefix) :])
    return _rare(spki)


def _elliptic(curve: str, point: bytes) -> _Check:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - start-up
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - start-up
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - start-up

    kinds: dict[str, tuple[ec.EllipticCurve, tuple[hashes.HashAlgorithm, ...]]] = {
        "P-256": (ec.SECP256R1(), (hashes.SHA256(),)),
        "P-384": (ec.SECP384R1(), (hashes.SHA384(), hashes.SHA256())),
        "P-521": (ec.SECP521R1(), (hashes.SHA512(), hashes.SHA256())),
    }
    kind, algorithms = kinds[curve]
    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(kind, point)
    except ValueError as e:
        raise Misuse(f"this public key is no point of {curve}") from e

    def check(signature: bytes, payload: bytes) -> bool:
        for algorithm in algorithms:
            try:
                key.verify(signature, payload, ec.ECDSA(algorithm))
            except InvalidSignature:
                continue
            return True
        return False

    return check


def _rare(spki: bytes) -> tuple[bytes, str, _Check]:
    """Read what is not an elliptic key in its usual form."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415 - start-up
    from cryptography.hazmat.primitives.asymmetric import (  # noqa: PLC0415 - start-up
        ec,
        ed25519,
        rsa,
    )
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - start-up
        Encoding,
        PublicFormat,
        load_der_public_key,
    )

    try:
        key = load_der_public_key(spki)
    except (ValueError, TypeError, UnsupportedAlgorithm) as e:
        raise Misuse(
            "this public key cannot be read", hint="a public key is SubjectPublicKeyInfo, as PEM"
        ) from e
    canonical = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if isinstance(key, rsa.RSAPublicKey) and key.key_size in _RSA_BITS:
        return canonical, f"RSA {key.key_size}", _rsa(key)
    if isinstance(key, ed25519.Ed25519PublicKey):
        return canonical, "Ed25519", _edwards(key, key.public_bytes_raw())
    if isinstance(key, ec.EllipticCurvePublicKey) and canonical != spki:
        return _load(canonical)
    raise Misuse(
        f"a key of this kind is not trusted: {_kind(key)}",
        hint="ECDSA P-256, P-384 and P-521, RSA from 2048 to 8192 bits, and Ed25519 are",
    )


def _rsa(key: rsa.RSAPublicKey) -> _Check:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - start-up
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - start-up
    from cryptography.hazmat.primitives.asymmetric import padding  # noqa: PLC0415 - start-up

    def check(signature: bytes, payload: bytes) -> bool:
        try:
            key.verify(signature, payload, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        return True

    return check


def _edwards(key: ed25519.Ed25519PublicKey, raw: bytes) -> _Check:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - start-up

    def check(signature: bytes, payload: bytes) -> bool:
        try:
            key.verify(signature, payload)
        except InvalidSignature:
            return _prehashed(raw, signature, payload)
        return True

    return check


def _prehashed(raw: bytes, signature: bytes, payload: bytes) -> bool:
    """Ed25519ph (RFC 8032 §5.1), which is what cosign signs with an Ed25519 key."""
    from nacl import bindings  # noqa: PLC0415 - start-up
    from nacl.exceptions import CryptoError  # noqa: PLC0415 - start-up

    if len(signature) != bindings.crypto_sign_BYTES:
        return False
    state = bindings.crypto_sign_ed25519ph_state()
    bindings.crypto_sign_ed25519ph_update(state, payload)
    try:
        return bindings.crypto_sign_ed25519ph_final_verify(state, signature, raw)
    except CryptoError:
        return False
