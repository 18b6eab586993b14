"""TLS that failed, explained: which certificate, which CAs, which name, and what to put where.

Numbers are OpenSSL's X509_V_ERR_* (openssl/x509_vfy.h), words its names of alerts.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from ocipack.errors import IntegrityError, StoreError
from ocipack.stores.http.attempt import Attempt
from ocipack.stores.http.url import printable
from ocipack.trust.presented import Presented

_EARLY, _EXPIRED, _SELF_SIGNED, _NAME, _ADDRESS = 9, 10, 18, 62, 64

_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_OURS = (
    *("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_EXPIRED", "CERTIFICATE_REVOKED"),
    *("CERTIFICATE_UNKNOWN", "UNSUPPORTED_CERTIFICATE", "ACCESS_DENIED", "DECRYPT_ERROR"),
    "HANDSHAKE_FAILURE",
)
_VERSION = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL")
_WANTED = "CERTIFICATE_REQUIRED"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a server shows to whoever asks: its certificate (DER), and whether it wants ours."""

    certificate: bytes = b""
    wants_ours: bool = False


Look = Callable[[], Shown | None]
"""Asks a server again only to see its certificate; None if it shows none."""


def explain(error: BaseException, at: Attempt, look: Look) -> StoreError:
    """Say why TLS with the server of `at` failed, and what would mend it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error, at, look() or Shown())
    reason = str(getattr(error, "reason", None) or error)
    if _WANTED in reason:
        return wants_ours(at)
    if any(word in reason for word in _OURS):
        return _refused(at, reason)
    return _failed(at, *_broken(at, reason))


def _broken(at: Attempt, reason: str) -> tuple[str, str]:
    """Words and a hint for a handshake that came to nothing before any certificate did."""
    if any(word in reason for word in _PLAIN):
        hint = _advice(at, {"plainHTTP": "true"}, f"or give --plain-http {at.url.netloc}")
        return "TLS failed: the server speaks plain HTTP", f"if it should, {hint}"
    if "UNRECOGNIZED_NAME" in reason:
        hint = _advice(at, {"serverName": "NAME"}, "where NAME is what it calls itself")
        return f"it knows no server called {at.expected!r}", hint
    if any(word in reason for word in _VERSION):
        hint = "TLS 1.2 and 1.3 are spoken here; the server needs one of them"
        return "it speaks no version of TLS that we do", hint
    return f"TLS failed: {printable(reason, 160)}", _client_hint(at)


def wants_ours(at: Attempt) -> StoreError:
    """A server that lets nobody in without a certificate, and we have none for it."""
    return _failed(at, "it wants a client certificate, and there is none for it", _client_hint(at))


def speaks_tls(at: Attempt) -> StoreError:
    """A server that was asked by plain HTTP, and speaks TLS."""
    name = at.url.netloc
    hint = _advice(at, {"plainHTTP": "false"}, f"and leave out --plain-http {name}")
    return StoreError(f"{at.what}: asked by plain HTTP, and the server speaks TLS", hint=hint)


def _failed(at: Attempt, why: str, hint: str) -> StoreError:
    return StoreError(f"{at.what}: {why} (trusted: {at.authorities})", hint=hint)


def _unverified(error: ssl.SSLCertVerificationError, at: Attempt, shown: Shown) -> StoreError:
    try:
        found = Presented.parse(shown.certificate) if shown.certificate else None
    except IntegrityError:
        found = None
    code, said = error.verify_code, printable(str(error.verify_message), 120)
    is_name = code in (_NAME, _ADDRESS)
    if is_name:
        why = f"its certificate is not for {at.expected!r}, the name that we expected"
    elif code in (_EXPIRED, _EARLY):
        passed = "expired" if code == _EXPIRED else "not valid yet"
        why = f"its certificate, or one that it rests on, is {passed}"
    else:
        why = f"its certificate for {at.expected!r} is signed by nobody that we trust ({said})"
    if found is not None:
        why += f"; it shows {found}"
    if code in (_EXPIRED, _EARLY):
        hint = "renew the certificate of the registry, or set the clock of this machine"
        return _failed(at, why, hint)
    return _failed(at, why, _mend(at, found, shown, is_name=is_name, alone=code == _SELF_SIGNED))


def _mend(at: Attempt, found: Presented | None, shown: Shown, *, is_name: bool, alone: bool) -> str:
    """What to write where, for everything that is known to be missing at once."""
    fields, words = {}, []
    if not is_name:
        fields["ca"] = "CA.crt"
        whose = f"of {found.issuer}" if found is not None and not alone else "itself"
        words.append(
            f"where CA.crt holds the certificate {whose}, from whoever runs the registry "
            f"(also possible: --ca-file CA.crt, or {at.places.certs or 'certs.d'}/ca.crt)"
        )
    if is_name or (found is not None and not found.is_for(at.expected)):
        fields["serverName"] = _name(found)
        words.append(
            f"and if it really is {fields['serverName']} that answers there"
            if found is not None and found.names
            else "and have it issued again with the name as subjectAltName: it lists none"
        )
    if shown.wants_ours and not at.certificate:
        fields |= {"clientCertificate": "client.crt", "clientKey": "client.key"}
        words.append("and client.crt, client.key are the certificate it wants of us and its key")
    return _advice(at, fields, ", ".join(words))


def _name(found: Presented | None) -> str:
    names = found.names if found is not None else ()
    return next((name for name in names if "*" not in name), "NAME")


def _refused(at: Attempt, reason: str) -> StoreError:
    """An alert about us; without a certificate of ours it may mean that one is wanted."""
    alert = printable(reason.lower().replace("_", " "), 80)
    if not at.certificate:
        why = f"it broke off the handshake ({alert}): it may want a client certificate"
        return _failed(at, why, _client_hint(at))
    why = f"it does not accept our certificate {at.certificate} ({alert})"
    hint = (
        f"openssl x509 -noout -issuer -enddate -in {at.certificate} says who issued it and until "
        "when it holds; whoever runs the registry knows which CA it must be from"
    )
    return _failed(at, why, hint)


def _client_hint(at: Attempt) -> str:
    fields = {"clientCertificate": "client.crt", "clientKey": "client.key"}
    place = at.places.certs or f"certs.d/{at.url.netloc}"
    also = f"or put the two as client.cert and client.key into {place}"
    return "if it wants a certificate of ours, " + _advice(at, fields, also)


def _advice(at: Attempt, fields: dict[str, str], words: str) -> str:
    """Lines of registries.yaml on one line, as YAML writes that, and the file they belong in."""
    flow = ", ".join(f"{name}: {value}" for name, value in fields.items())
    entry = f'{{host: "{at.url.netloc}", {flow}}}'
    if at.places.entry:
        said = f"add to the entry at {at.places.entry}: {flow}"
    elif at.places.exists:
        said = f"add to registries in {at.places.file}: - {entry}"
    else:
        head = "apiVersion: ocipack.dev/v1alpha1, kind: RegistrySettings"
        said = f"write into {at.places.file}: {{{head}, registries: [{entry}]}}"
    return f"{said} {words}".rstrip()
