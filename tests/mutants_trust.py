"""Faults to plant in `ocipack/trust`, `verify`, `sign` and `signers`: each must make a test fail.

`FAULTS` holds (file, what stands there, what to put in its place); `tests/mutants.py` plants them.
"""

from __future__ import annotations

TESTS = [
    *("tests/unit/test_verify.py", "tests/unit/test_sign.py", "tests/unit/test_bundle.py"),
    *("tests/unit/test_keys.py", "tests/unit/test_key_files.py", "tests/unit/test_policy.py"),
    "tests/vectors/test_cosign.py",
]

TRUST, VERIFY = "ocipack/trust/", "ocipack/verify/"
POLICY = TRUST + "policy/"

FAULTS: list[tuple[str, str, str]] = [
    (VERIFY + "judge.py", "if said.digest != digest:  # (3)", "if False:"),
    (VERIFY + "judge.py", "if found.subject != digest:  # (5)", "if False:"),
    (VERIFY + "judge.py", "if bundle.hint is None:  # (7)", "if False:"),
    (VERIFY + "judge.py", "if envelope.payload_type != dsse.IN_TOTO:  # (8)", "if False:"),
    (VERIFY + "judge.py", "if statement.predicate_type not in wanted:  # (10, 16)", "if False:"),
    (VERIFY + "judge.py", "if subject is None:  # (11)", "if not statement.subjects:"),
    (VERIFY + "__init__.py", "if key.verifies(claim.signature, claim.signed):", "if True:"),
    (POLICY + "decision.py", "if len(signed) < authority.threshold:", "if not signed:"),
    (
        POLICY + "decision.py",
        "signed.setdefault(one.key, one)",
        "signed.setdefault(one.place, one)",
    ),
    (
        VERIFY + "__init__.py",
        "if reference.digest is not None and subject.digest != reference.digest:",
        "if False:",
    ),
    (VERIFY + "__init__.py", "if content:", "if False:"),
    (VERIFY + "__init__.py", "if search.unread:\n        return _und", "if False:\n        return _und"),
    (VERIFY + "__init__.py", "if self._checks < len(self.keys):", "if False:"),
    (VERIFY + "__init__.py", "elif judge.promising(claim, self.keys):", "elif True:"),
    (VERIFY + "__init__.py", "pinned = reference.at(subject.digest)", "pinned = reference"),
    (VERIFY + "gather.py", "if number == LISTED:", "if False:"),
    (VERIFY + "gather.py", "if len(found) == LISTED and", "if False and"),
    (VERIFY + "gather.py", "limit=limit)", "limit=2**40)"),
    (VERIFY + "gather.py", "if target.size > self._left:", "if False:"),
    (
        VERIFY + "gather.py",
        "self.unread.append((place, e))\n        except",
        "pass\n        except",
    ),
    (VERIFY + "gather.py", "if target.digest not in self._blobs:", "if True:"),
    (
        VERIFY + "gather.py",
        "key=lambda listed: not bundle.likely(listed)",
        "key=lambda listed: bundle.likely(listed)",
    ),
    (VERIFY + "gather.py", "if listed.digest == self._subject.digest:", "if False:"),
    (
        VERIFY + "gather.py",
        'return\n            place = f"referrer',
        'pass\n            place = f"referrer',
    ),
    (TRUST + "bundle.py", "if version not in _READ:", "if False:"),
    (TRUST + "bundle.py", "            wire.check(document, _SHAPE)\n", "            pass\n"),
    (TRUST + "bundle.py", 'or "messageSignature" in document', ""),
    (TRUST + "bundle.py", "if len(envelope.signatures) != 1:", "if not envelope.signatures:"),
    (
        TRUST + "bundle.py",
        'if len(signers) != 1 or signers == ["x509CertificateChain"]:',
        "if not signers:",
    ),
    (
        TRUST + "bundle.py",
        'if len(signers) != 1 or signers == ["x509CertificateChain"]:',
        "if len(signers) != 1:",
    ),
    (TRUST + "bundle.py", "if len(manifest.layers) != 1:", "if False:"),
    (TRUST + "bundle.py", "said == SIGN and", "True and"),
    (TRUST + "statement.py", "if unknown:", "if False:"),
    (TRUST + "statement.py", 'if document["_type"] not in (V1, V0_1):', "if False:"),
    (TRUST + "statement.py", 'wire.check(predicate, wire.OBJECT, "predicate")', "pass"),
    (TRUST + "statement.py", "== digest.hex),", ".lower() == digest.hex),"),
    (
        TRUST + "statement.py",
        "s.digests.get(digest.algorithm) == digest.hex",
        "digest.hex in s.digests.values()",
    ),
    (TRUST + "dsse.py", '        wire.check(raw, SHAPE, "dsseEnvelope")\n', "        pass\n"),
    (TRUST + "wire.py", "if name not in known:", "if False:"),
    (TRUST + "wire.py", "if len(value) > most:", "if False:"),
    (TRUST + "cosign.py", 'if critical["type"] != KIND:', "if False:"),
    (
        TRUST + "cosign.py",
        "return base64.b64decode(text, validate=True)",
        "return base64.b64decode(text)",
    ),
    (TRUST + "cosign.py", "if len(existing.layers) >= LAYERS:", "if False:"),
    (TRUST + "cosign.py", "if not isinstance(name, str) or", "if False and"),
    (TRUST + "cosign.py", "or not isinstance(optional, dict)", ""),
    (
        TRUST + "cosign.py",
        '*document["layers"], *layers',
        "*(d.to_dict() for d in existing.layers), *layers",
    ),
    (TRUST + "keys.py", '        object.__setattr__(self, "spki", spki)\n', "        pass\n"),
    (
        TRUST + "keys.py",
        "if isinstance(key, rsa.RSAPublicKey) and key.key_size in _RSA_BITS:",
        "if isinstance(key, rsa.RSAPublicKey):",
    ),
    (TRUST + "keys.py", "if der[end:] == _PKCS8_POINT", "if True or der[end:] == _PKCS8_POINT"),
    (TRUST + "keys.py", "deterministic_signing=True", "deterministic_signing=False"),
    (TRUST + "keys.py", "if len(blocks) > 1:", "if False:"),
    (TRUST + "keys.py", "(hashes.SHA384(), hashes.SHA256())", "(hashes.SHA384(),)"),
    (TRUST + "keys.py", "return _prehashed(raw, signature, payload)", "return False"),
    (TRUST + "sealed.py", "or cost not in COSTS", ""),
    (POLICY + "model.py", "if not allow_example_keys:", "if False:"),
    (POLICY + "model.py", "tuple(dict.fromkeys(keys))", "tuple(keys)"),
    ("ocipack/sign.py", "if not allow_example_keys:", "if False:"),
    (
        "ocipack/sign.py",
        "if existing is not None and _lists(",
        "if attempt or existing is not None and _lists(",
    ),
    ("ocipack/sign.py", "if key.verifies(proof, payload):", "if True:"),
    ("ocipack/sign.py", "            and key.verifies(claim.signature, claim.signed)\n", "\n"),
    ("ocipack/sign.py", "            and dict(claim.annotations) == dict(annotations)\n", "\n"),
    ("ocipack/sign.py", "if layer.digest != wanted:", "if False:"),
    ("ocipack/sign.py", "return attempt > 0", "return True"),
    ("ocipack/sign.py", "existing.descriptor.digest if existing else None)\n", "...)\n"),
    (
        "ocipack/sign.py",
        "Search(store, subject).bundles(only_likely=True)",
        "Search(store, subject).bundles()",
    ),
    ("ocipack/sign.py", "if (now.descriptor.digest if now else None) == was:", "if False:"),
    ("ocipack/signers/file.py", "os.O_EXCL | os.O_NOFOLLOW", "os.O_TRUNC"),
    ("ocipack/signers/file.py", "if len(data) > LIMIT:", "if False:"),
    ("ocipack/signers/file.py", "0o600)", "0o644)"),
]
