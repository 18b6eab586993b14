"""Keys, from the formats' texts and vectors, and from files that OpenSSL writes."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from world import VECTORS, key, published

from ocipack.errors import Misuse, Rejected
from ocipack.trust import examples
from ocipack.trust.keys import PrivateKey, PublicKey

SPKI = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAErpDwJwewocduJN5dFl295N8bnDbQ1oMFR18oXHKfP/GYzlTLuOPW"
    "vvph9KI/Xhue+KJVu5S6AVGjCLG4ktPD9Q=="
)
CIPHERTEXT = (
    "C4wcTAIx68hdCnBzM/0TLSRt9252XxJIOIK6E9w+HKr9r+COgz7nOiwkyImOotY1l7Dg4H9+VnO3oeF0Pr2Lu1sk"
    "RQr70c9TRASlvb9WoUM6tA0tmmspCpc6xiqF5a/e6/Ht2nckSfBshM4GaguyLwb/HUNWWktq+2eo7w7lEITxP7eQ"
    "Zvh8R8lknwWDrtpvInibNTU9tnbdQA=="
)
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

Sec = ec.EllipticCurvePrivateKey


def number_one() -> PrivateKey:
    """The key of the vectors: 1 + (SHA-256("ocipack interop test key 1") mod (n-1))."""
    seed = int.from_bytes(hashlib.sha256(b"ocipack interop test key 1").digest())
    return PrivateKey.generate(seed.to_bytes)


def chosen(*parts: bytes) -> Callable[[int], bytes]:
    """Randomness that we know; it checks how much is asked."""
    left = list(parts)

    def random(n: int) -> bytes:
        part = left.pop(0)
        assert len(part) == n
        return part

    return random


def block(data: bytes) -> bytes:
    return base64.b64decode(b"".join(data.splitlines()[1:-1]))


def test_the_vector_s_public_key() -> None:
    public = number_one().public
    assert base64.b64encode(public.spki).decode() == SPKI
    assert public.hint == "GXa9PfY09+kwqvGioEVlKojH/9QVr9IEGAK4kHCfOxo="
    assert public.id == "1976bd3df634f7e930aaf1a2a045652a88c7ffd415afd2041802b890709f3b1a"
    assert public.algorithm == "ECDSA P-256"
    assert PublicKey.parse(public.pem) == PublicKey.parse(public.spki) == public


def test_the_vector_s_key_file() -> None:
    data = number_one().seal(b"test", chosen(bytes(range(32)), bytes(range(24))))
    lines = data.decode().split("\n")
    assert lines[0] == "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----"
    assert lines[-2:] == ["-----END ENCRYPTED SIGSTORE PRIVATE KEY-----", ""]
    assert {len(line) for line in lines[1:-3]} == {64}
    body = block(data)
    assert len(body) == 414
    assert (
        hashlib.sha256(body).hexdigest()
        == "184bf08101d81fc9c41783a42a8e2c761bce7c6be9b35b5a553ea9fe8143fea3"
    )
    assert json.loads(body)["ciphertext"] == CIPHERTEXT
    assert PrivateKey.open(data, b"test").public == number_one().public


def test_the_vector_s_signatures() -> None:
    digest = "sha256:" + "ab" * 32
    payload = (
        '{"critical":{"identity":{"docker-reference":"registry.example.com/team/app"},'
        f'"image":{{"docker-manifest-digest":"{digest}"}},'
        '"type":"cosign container image signature"},"optional":null}'
    ).encode()
    assert base64.b64encode(number_one().sign(payload)).decode() == (
        "MEUCIQCftmAS6wbCUqcOkViU+nV/PKUa5r2YdkyHixE3QAIsjAIgN/Zz6FpuBxWVBk+NWVzzpVxETpoDbB4jeLvK"
        "B+A8AF8="
    )


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_key_files_of_both_cosigns(name: str) -> None:
    data = (VECTORS / "keys" / f"{name}.key").read_bytes()
    assert PrivateKey.open(data, b"ocipack-example").public == published(name)


# the three vectors of securesystemslib's `encrypted` package hold for every cost


@pytest.mark.parametrize("cost", [32768, 65536, 131072])
@pytest.mark.parametrize("label", ["SIGSTORE", "COSIGN"])
def test_every_cost_and_label_that_cosign_reads(cost: int, label: str) -> None:
    from nacl.secret import SecretBox  # noqa: PLC0415 - an independent writer

    private = ec.generate_private_key(ec.SECP256R1())
    der = private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    salt, nonce = os.urandom(32), os.urandom(24)
    derived = hashlib.scrypt(b"pw", salt=salt, n=cost, r=8, p=1, dklen=32, maxmem=2**28)
    sealed = SecretBox(derived).encrypt(der, nonce).ciphertext
    body = {
        "kdf": {
            "name": "scrypt",
            "params": {"N": cost, "r": 8, "p": 1},
            "salt": base64.b64encode(salt).decode(),
        },
        "cipher": {"name": "nacl/secretbox", "nonce": base64.b64encode(nonce).decode()},
        "ciphertext": base64.b64encode(sealed).decode(),
    }
    found = PrivateKey.open(pem(f"ENCRYPTED {label} PRIVATE KEY", json.dumps(body)), b"pw")
    assert found.public.spki == spki(private.public_key())


def pem(label: str, body: str | bytes) -> bytes:
    raw = body.encode() if isinstance(body, str) else body
    body_text = base64.encodebytes(raw).decode()
    return f"-----BEGIN {label}-----\n{body_text}-----END {label}-----\n".encode()


def spki(public: ec.EllipticCurvePublicKey) -> bytes:
    return public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


SEALED = number_one().seal(b"pw", os.urandom)


def changed(**members: object) -> bytes:
    document = json.loads(block(SEALED))
    return pem("ENCRYPTED SIGSTORE PRIVATE KEY", json.dumps(document | members))


@pytest.mark.parametrize(
    "data",
    [
        SEALED.replace(b"\n", b"\r\n"),
        SEALED.rstrip(),
        b"a line before\n" + SEALED,
        SEALED + SEALED,
        SEALED.replace(b"SIGSTORE", b"COSIGN"),
        b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n"
        + b"".join(SEALED.splitlines()[1:-1])
        + b"\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----",
    ],
    ids=["crlf", "no newline", "text before", "two blocks", "old label", "one line"],
)
def test_files_that_cosign_reads_too(data: bytes) -> None:
    assert PrivateKey.open(data, b"pw").public == number_one().public


def params(n: int, r: int, p: int) -> dict[str, object]:
    kdf: dict[str, object] = json.loads(block(SEALED))["kdf"]
    return kdf | {"params": {"N": n, "r": r, "p": p}}


PLAIN = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
)

REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "no key is here"),
    "junk": (b"\x00\xff" * 9, "no key is here"),
    "cut": (SEALED[:200], "cut"),
    "base64": (SEALED.replace(b"=", b"").replace(b"\n-----END", b"A\n-----END"), "base64"),
    "public": (key("alice").public.pem, "a public key was given"),
    "plain": (PLAIN, "not encrypted"),
    "certificate": (pem("CERTIFICATE", b"x"), "not CERTIFICATE"),
    "not json": (pem("ENCRYPTED SIGSTORE PRIVATE KEY", b"{"), "not an encrypted private key"),
    "more": (changed(more=1), "unknown member"),
    "less": (pem("ENCRYPTED SIGSTORE PRIVATE KEY", b"{}"), "has no 'kdf'"),
    "N low": (changed(kdf=params(16384, 8, 1)), "16384"),
    "N high": (changed(kdf=params(1 << 40, 8, 1)), "only scrypt with"),
    "r": (changed(kdf=params(65536, 16, 1)), "only scrypt with"),
    "p": (changed(kdf=params(65536, 8, 2)), "only scrypt with"),
    "kdf": (changed(kdf=params(65536, 8, 1) | {"name": "pbkdf2"}), "pbkdf2"),
    "nonce": (changed(cipher={"name": "nacl/secretbox", "nonce": "AAAA"}), "secretbox"),
    "cipher": (changed(cipher={"name": "aes", "nonce": "A" * 32}), "aes"),
    "tag": (changed(ciphertext="AAAA"), "does not open"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_no_encrypted_key(name: str) -> None:
    data, why = REFUSED[name]
    with pytest.raises(Misuse, match=why) as caught:
        PrivateKey.open(data, b"pw")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("password", [b"", b"pw\n", b"PW"])
def test_a_wrong_password_is_said_to_be_one(password: bytes) -> None:
    with pytest.raises(Misuse, match="the password does not open") as caught:
        PrivateKey.open(SEALED, password)
    assert "newline" in caught.value.hint


def test_the_empty_password_is_a_password() -> None:
    data = number_one().seal(b"", os.urandom)
    assert PrivateKey.open(data, b"").public == number_one().public


def test_what_is_sealed_must_be_a_key() -> None:
    from ocipack.trust import sealed  # noqa: PLC0415 - beside the rest of this test

    body = sealed.seal(b"not a key", b"pw", os.urandom)
    with pytest.raises(Misuse, match="cannot be read"):
        PrivateKey.open(pem("ENCRYPTED SIGSTORE PRIVATE KEY", body), b"pw")


def test_a_public_half_that_does_not_belong_is_refused() -> None:
    der = bytearray(block(PLAIN))
    der[-1] ^= 1
    with pytest.raises(Misuse, match="cannot be read"):
        PrivateKey.load(pem("PRIVATE KEY", bytes(der)))


@pytest.mark.parametrize("scalar", [1, 2, ORDER - 1])
def test_generation_covers_the_whole_range(scalar: int) -> None:
    made = PrivateKey.generate((scalar - 1).to_bytes)
    assert made.public.spki == spki(ec.derive_private_key(scalar, ec.SECP256R1()).public_key())
    assert PrivateKey.generate((scalar + ORDER - 2).to_bytes).public == made.public


def test_no_text_shows_the_secret() -> None:
    secret = "EllipticCurvePrivateKey"
    assert secret not in repr(number_one())
    assert repr(number_one()) == "PrivateKey(public=PublicKey(algorithm='ECDSA P-256'))"


# import


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_import(form: PrivateFormat) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    data = private.private_bytes(Encoding.PEM, form, NoEncryption())
    found = PrivateKey.load(data)
    assert found.public.spki == spki(private.public_key())
    private.public_key().verify(found.sign(b"x"), b"x", ec.ECDSA(hashes.SHA256()))


RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHERS: dict[str, tuple[Sec | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey, str]] = {
    "P-384": (ec.generate_private_key(ec.SECP384R1()), "secp384r1"),
    "P-521": (ec.generate_private_key(ec.SECP521R1()), "secp521r1"),
    "secp256k1": (ec.generate_private_key(ec.SECP256K1()), "secp256k1"),
    "RSA": (RSA_KEY, "RSA 2048"),
    "Ed25519": (ed25519.Ed25519PrivateKey.generate(), "Ed25519"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_only_p256_signs(name: str) -> None:
    private, why = OTHERS[name]
    data = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(Misuse, match=f"only ECDSA P-256 keys sign, and this is .*{why}") as caught:
        PrivateKey.load(data)
    assert "ocipack keys generate" in caught.value.hint


def test_pkcs1_is_read_and_refused_for_what_it_is() -> None:
    data = RSA_KEY.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    with pytest.raises(Misuse, match="RSA 2048"):
        PrivateKey.load(data)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_other_encryptions_are_refused(form: PrivateFormat) -> None:
    data = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, form, BestAvailableEncryption(b"pw")
    )
    with pytest.raises(Misuse):
        PrivateKey.load(data)


def test_an_encrypted_key_needs_no_import() -> None:
    with pytest.raises(Misuse, match="encrypted form already"):
        PrivateKey.load(SEALED)
    with pytest.raises(Misuse, match="a public key was given"):
        PrivateKey.load(number_one().public.pem)


# public keys


def test_a_private_key_given_as_public() -> None:
    for data in (SEALED, PLAIN):
        with pytest.raises(Misuse, match="a private key was given") as caught:
            PublicKey.parse(data)
        assert "ocipack keys public" in caught.value.hint


def test_two_keys_in_one_file() -> None:
    with pytest.raises(Misuse, match="several keys"):
        PublicKey.parse(published("alice").pem + published("bob").pem)


@pytest.mark.parametrize("data", [b"", b"junk", b"\x30\x00", number_one().public.spki + b"\x00"])
def test_what_is_no_public_key(data: bytes) -> None:
    with pytest.raises(Misuse, match="cannot be read"):
        PublicKey.parse(data)


def test_a_point_that_is_not_on_the_curve() -> None:
    spki = bytearray(number_one().public.spki)
    spki[-1] ^= 1
    with pytest.raises(Misuse, match="no point"):
        PublicKey(bytes(spki))


@pytest.mark.parametrize("label", ["RSA PUBLIC KEY", "CERTIFICATE"])
def test_other_blocks(label: str) -> None:
    with pytest.raises(Misuse, match=f"not {label}"):
        PublicKey.parse(pem(label, b"x"))


def test_kinds_that_are_not_trusted() -> None:
    k1 = ec.generate_private_key(ec.SECP256K1()).public_key()
    with pytest.raises(Misuse, match="not trusted: ECDSA secp256k1"):
        PublicKey(spki(k1))
    numbers = rsa.RSAPublicNumbers(65537, (1 << 1023) + 1155)
    weak = numbers.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(Misuse, match="RSA 1024"):
        PublicKey(weak)


def test_two_spellings_of_a_key_are_one_key() -> None:
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    compressed = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + point
    assert PublicKey(compressed) == PublicKey(spki(public))
    assert PublicKey(compressed).id == PublicKey(spki(public)).id


CURVES: list[tuple[ec.EllipticCurve, hashes.HashAlgorithm, bool]] = [
    (ec.SECP256R1(), hashes.SHA256(), True),
    (ec.SECP256R1(), hashes.SHA384(), False),
    (ec.SECP256R1(), hashes.SHA512(), False),
    (ec.SECP384R1(), hashes.SHA384(), True),
    (ec.SECP384R1(), hashes.SHA256(), True),
    (ec.SECP384R1(), hashes.SHA512(), False),
    (ec.SECP521R1(), hashes.SHA512(), True),
    (ec.SECP521R1(), hashes.SHA256(), True),
    (ec.SECP521R1(), hashes.SHA384(), False),
]


@pytest.mark.parametrize(
    ("curve", "algorithm", "good"), CURVES, ids=lambda v: getattr(v, "name", str(v))
)
def test_elliptic_hashes(
    curve: ec.EllipticCurve, algorithm: hashes.HashAlgorithm, *, good: bool
) -> None:
    private = ec.generate_private_key(curve)
    public = PublicKey(spki(private.public_key()))
    signature = private.sign(b"payload", ec.ECDSA(algorithm))
    assert public.verifies(signature, b"payload") is good
    assert not public.verifies(signature, b"payloae")
    assert not public.verifies(signature + b"\x00", b"payload")
    assert not public.verifies(b"", b"payload")


def test_rsa() -> None:
    from cryptography.hazmat.primitives.asymmetric import padding  # noqa: PLC0415 - here alone

    public = PublicKey(
        RSA_KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    )
    assert public.algorithm == "RSA 2048"
    good = RSA_KEY.sign(b"payload", padding.PKCS1v15(), hashes.SHA256())
    assert public.verifies(good, b"payload")
    assert not public.verifies(good, b"payloae")
    for other in (
        RSA_KEY.sign(b"payload", padding.PKCS1v15(), hashes.SHA1()),
        RSA_KEY.sign(b"payload", padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256()),
        b"",
        good[1:],
    ):
        assert not public.verifies(other, b"payload")


def test_ed25519_pure_and_prehashed() -> None:
    from nacl import bindings  # noqa: PLC0415 - an independent signer

    public_raw, secret = bindings.crypto_sign_keypair()
    public = PublicKey(bytes.fromhex("302a300506032b6570032100") + public_raw)
    assert public.algorithm == "Ed25519"
    pure = bindings.crypto_sign(b"payload", secret)[:64]
    state = bindings.crypto_sign_ed25519ph_state()
    bindings.crypto_sign_ed25519ph_update(state, b"payload")
    prehashed = bindings.crypto_sign_ed25519ph_final_create(state, secret)
    for good in (pure, prehashed):
        assert public.verifies(good, b"payload")
        assert not public.verifies(good, b"payloae")
        assert not public.verifies(good[1:], b"payload")


# published keys


@pytest.mark.parametrize("name", ["alice", "bob", "p384", "rsa2048", "ed25519"])
def test_keys_of_the_vectors_are_known(name: str) -> None:
    with pytest.raises(Rejected, match="is an example") as caught:
        examples.refuse([published(name)])
    assert "--allow-example-key" in caught.value.hint


def test_the_example_key_and_number_one_are_known() -> None:
    root = Path(__file__).parents[2] / "keys-example"
    public = PublicKey.parse((root / "cosign.pub").read_bytes())
    assert PrivateKey.open((root / "cosign.key").read_bytes(), b"ocipack-example").public == public
    for one in (public, number_one().public):
        with pytest.raises(Rejected):
            examples.refuse([one])
    examples.refuse([key("alice").public])


def test_every_public_key_in_the_tree_is_known() -> None:
    root = Path(__file__).parents[2]
    found = [*root.glob("tests/**/*.pub"), *root.glob("keys-example/*.pub")]
    assert len(found) >= 6
    for path in found:
        assert PublicKey.parse(path.read_bytes()).id in examples.EXAMPLES, path


def test_an_elliptic_key_needs_little() -> None:
    """`verify` is bound by imports: neither PyNaCl nor the serialization package is loaded."""
    code = (
        "import sys; from ocipack.trust.keys import PublicKey;"
        f"PublicKey.parse({published('alice').pem!r}).verifies(b'', b'');"
        "print([m for m in sys.modules if m.startswith(('nacl', 'cryptography'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "nacl" not in done.stdout
    assert "primitives.serialization" not in done.stdout
    assert "asymmetric.ec" in done.stdout
