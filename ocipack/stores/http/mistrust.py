"""TLS that failed, explained: which certificate, which CAs, which name, and what to put where.

Numbers are OpenSSL's X509_V_ERR_* (openssl/x509_vfy.h), words its names of alerts.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

from ocipack.errors import IntegrityError, StoreError
from ocipack.stores.http.advice import OURS, advice, certs, client_hint
from ocipack.stores.http.attempt import Attempt
from ocipack.stores.http.url import printable
from ocipack.trust.presented import Presented, vouching

_EARLY, _EXPIRED, _SELF_SIGNED, _NAME, _ADDRESS = 9, 10, 18, 62, 64

_CA_FILE = 1024 * 1024
"""Bytes of a CA file that are read to say what it holds."""

_PLAIN = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")
_OURS = (
    *("UNKNOWN_CA", "BAD_CERTIFICATE", "CERTIFICATE_EXPIRED", "CERTIFICATE_REVOKED"),
    *("CERTIFICATE_UNKNOWN", "UNSUPPORTED_CERTIFICATE", "ACCESS_DENIED", "DECRYPT_ERROR"),
    "HANDSHAKE_FAILURE",
)
_VERSION = ("PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL")
_WANTED = "CERTIFICATE_REQUIRED"


class Shown:
    """What a server that speaks TLS shows: its certificate (DER), and the alert that followed.

    The certificate and the `version` of TLS are empty if it breaks off before, the alert if none
    came. `error` is why we did not believe it.
    """

    def __init__(
        self,
        certificate: bytes = b"",
        alert: str = "",
        version: str = "",
        error: ssl.SSLCertVerificationError | None = None,
    ) -> None:
        self.certificate = certificate
        self.alert = alert
        self.version = version
        self.error = error

    @property
    def wants_ours(self) -> bool:
        """Whether it let us go for lack of a certificate, as TLS 1.3 or TLS 1.2 say that."""
        return self.alert.endswith((_WANTED, "HANDSHAKE_FAILURE", "BAD_CERTIFICATE"))


Look = Callable[[bool], Shown | None]
"""Asks a server again only to see what it shows; None if it shows nothing.

With True it is asked as in earnest, with our certificate; with False as nobody, who believes all.
"""


def explain(error: BaseException, at: Attempt, look: Look) -> StoreError:
    """Say why TLS with the server of `at` failed, and what would mend it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(error, at, look(False) or Shown())  # noqa: FBT003 - see Look
    return alerted(at, str(getattr(error, "reason", None) or error))


def broken_off(at: Attempt, look: Look) -> StoreError | None:
    """Say why a server hung up that has never answered; None if it does not let us know.

    The alert that says so is lost when a connection is reset.
    """
    shown = look(True)  # noqa: FBT003 - see Look
    return alerted(at, shown.alert) if shown is not None and shown.alert else None


def speaks_tls(at: Attempt, look: Look) -> StoreError | None:
    """Say why a server gave no answer to plain HTTP: it speaks TLS; None if it does not.

    Both are about asking it by TLS, so that one message says all that is missing for that.
    """
    if look(False) is None:  # noqa: FBT003 - see Look
        return None
    shown = look(True) or Shown()  # noqa: FBT003 - see Look
    if shown.error is not None:
        return explain(shown.error, at, look)
    if shown.alert:
        return alerted(at, shown.alert)
    return StoreError(at.what, hint=advice(at, {}))


def alerted(at: Attempt, reason: str) -> StoreError:
    """Explain an alert of the server, or what else OpenSSL calls a reason."""
    if _WANTED in reason:
        why = "it wants a client certificate, and there is none for it"
        return _failed(at, why, client_hint(at))
    if any(word in reason for word in _OURS):
        return _refused(at, reason)
    return _failed(at, *_broken(at, reason))


def _broken(at: Attempt, reason: str) -> tuple[str, str]:
    """Words and a hint for a handshake that came to nothing before any certificate did."""
    if any(word in reason for word in _PLAIN):
        hint = advice(at, {"plainHTTP": "true"}, f"or give --plain-http {at.url.netloc}")
        return "TLS failed: the server speaks plain HTTP", f"if it should, {hint}"
    if "UNRECOGNIZED_NAME" in reason:
        hint = advice(at, {"serverName": "NAME"}, "NAME is what it calls itself")
        return f"it knows no server called {at.expected!r}", hint
    if any(word in reason for word in _VERSION):
        hint = "TLS 1.2 and 1.3 are spoken here; the server needs one of them"
        return "it speaks no version of TLS that we do", hint
    return f"TLS failed: {printable(reason, 160)}", client_hint(at)


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
    if not is_name and code not in (_EXPIRED, _EARLY) and shown.certificate:
        why += "".join(_held(file, shown.certificate) for file in at.files)
    if code in (_EXPIRED, _EARLY):
        hint = "renew the certificate of the registry, or set the clock of this machine"
        return _failed(at, why, hint)
    return _failed(at, why, _mend(at, found, shown, is_name=is_name, alone=code == _SELF_SIGNED))


def _held(file: str, certificate: bytes) -> str:
    """What a CA file that somebody named holds instead of the CA of `certificate`."""
    try:
        with Path(file).open("rb") as opened:
            words = vouching(opened.read(_CA_FILE), certificate)
    except OSError:
        return ""
    return f"; {file} holds {words}" if words else ""


def _mend(at: Attempt, found: Presented | None, shown: Shown, *, is_name: bool, alone: bool) -> str:
    """What to write where, for everything that is known to be missing at once."""
    fields, notes = dict[str, str](), list[str]()
    if not is_name:
        fields["ca"] = "CA.crt"
        whose = f"of {found.issuer}" if found is not None and not alone else "of its CA"
        notes.append(
            f"CA.crt, beside it, is the certificate {'that it shows' if alone else whose}, from "
            f"whoever runs the registry (else --ca-file CA.crt, or save it as {certs(at)}/ca.crt)"
        )
    if is_name or (found is not None and not found.is_for(at.expected)):
        fields["serverName"] = _name(found)
        notes.append(_whether(found))
    if shown.wants_ours and not at.certificate:
        fields |= OURS
        notes.append(
            "it also wants a certificate of ours: client.crt and its key, client.key, beside it"
        )
    return advice(at, fields, *notes)


def _name(found: Presented | None) -> str:
    names = found.names if found is not None else ()
    return next((name for name in names if "*" not in name), "NAME")


def _whether(found: Presented | None) -> str:
    """On what condition a certificate for another name may be taken for the one we want."""
    if found is None:
        return "NAME is a name that its certificate lists, if that is whom you want to talk to"
    if not found.names:
        return "but its certificate lists no name: it must be issued again, with a subjectAltName"
    return f"serverName only if it is {_name(found)} that you want to talk to"


def _refused(at: Attempt, reason: str) -> StoreError:
    """An alert about us; without a certificate of ours it may mean that one is wanted."""
    alert = printable(reason.lower().replace("_", " "), 80)
    if not at.certificate:
        why = f"it broke off the handshake ({alert}): it may want a client certificate"
        return _failed(at, why, client_hint(at))
    why = f"it does not accept our certificate {at.certificate} ({alert})"
    hint = (
        f"openssl x509 -noout -issuer -enddate -in {at.certificate} says who issued it and until "
        "when it holds; whoever runs the registry knows which CA it must be from"
    )
    return _failed(at, why, hint)
