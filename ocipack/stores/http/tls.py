"""Whom we trust to be a registry: CA sets and client certificates per host.

Verification is always on, and there is no switch to turn it off. What registries.yaml says of a
host comes first. What it leaves open follows the convention of docker and the containers tools:
`certs.d/<host[:port]>/` holds `*.crt` (CAs, added to the system's) and pairs `X.cert`, `X.key`
(our certificate for that host). See docs.docker.com/engine/security/certificates and
containers-certs.d(5).
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ocipack.errors import Misuse
from ocipack.stores.http.host import Host

_LABEL = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,60})-----")
_LONGEST = 1024 * 1024
_KINDS = {
    b"CERTIFICATE": "a certificate",
    b"PRIVATE KEY": "a private key",
    b"PUBLIC KEY": "a public key",
}


@dataclass(frozen=True, slots=True)
class Trust:
    """A TLS context, the words for the CA set in it, and the file of our own certificate.

    `files` are the CA files that somebody named.
    """

    context: ssl.SSLContext
    authorities: str
    certificate: str = ""
    files: tuple[str, ...] = ()


def directory(certs: tuple[str, ...], netloc: str) -> Path | None:
    """Find the first `certs.d` directory that has an entry for `netloc` (`host[:port]`)."""
    places = (Path(root) / netloc for root in certs)
    return next((place for place in places if place.is_dir()), None)


def trust(ca_file: str, place: Path | None, host: Host) -> Trust:
    """Build the context for a host, and say what is in it.

    The CAs are those of `host` alone if it names some, else the system's and what `place` holds;
    `ca_file` is added to either. Misuse if a file that was named cannot be used.
    """
    context, words = _authorities(place, host)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # who is named is trusted, root or not
    if ca_file:
        _add(context, ca_file)
        words.append(ca_file)
    places = ("", "")
    if host.certificate:
        places = _named(host, "clientCertificate"), _named(host, "clientKey")
        pairs = [(Path(host.certificate), Path(host.key))]
    else:
        pairs = _pairs(place) if place is not None else []
    for certificate, key in pairs:
        _client(context, certificate, key, places)
    own = " + ".join(str(pair[0]) for pair in pairs)
    named = tuple(file for file in (host.authorities, ca_file) if file)
    return Trust(context, " + ".join(words), own, named)


def _authorities(place: Path | None, host: Host) -> tuple[ssl.SSLContext, list[str]]:
    if host.authorities:
        with _reading(host.authorities, _named(host, "ca")):
            context = ssl.create_default_context(cafile=host.authorities)
        return context, [f"only {host.authorities}"]
    context, words = ssl.create_default_context(), [_system()]
    for file in _listed(place, "*.crt") if place is not None else []:
        _add(context, str(file))
        words.append(str(file))
    return context, words


def _system() -> str:
    """Words for the system's CAs, with the place they come from (SSL_CERT_FILE included)."""
    paths = ssl.get_default_verify_paths()
    found = paths.cafile or paths.capath
    return f"the system's CAs ({found})" if found else "no CAs of the system, which has none"


def _listed(place: Path, pattern: str) -> list[Path]:
    try:
        return sorted(file for file in place.iterdir() if file.match(pattern))
    except OSError as e:
        raise Misuse(f"{place} cannot be read: {_reason(e)}") from e


def _add(context: ssl.SSLContext, file: str) -> None:
    with _reading(file):
        context.load_verify_locations(cafile=file)


@contextmanager
def _reading(file: str, named: str = "") -> Iterator[None]:
    """Say what is wrong with a CA file, which `named` names (see `_named`)."""
    try:
        yield
    except ssl.SSLError as e:
        raise Misuse(
            f"no CA certificates could be read from {file}: it holds {_held(file)}",
            hint="it must hold one or more certificates in PEM form",
        ) from e
    except OSError as e:
        raise Misuse(
            f"no CA certificates could be read from {file}: {_reason(e)}", hint=named
        ) from e


def _named(host: Host, field: str) -> str:
    """A hint: where `field` names a file, and how that is read."""
    file, _, _ = host.where.rpartition(":")
    line = dict(host.lines).get(field)
    if line is None:
        return ""
    return f"{field} at {file}:{line} names it; paths count from that file, and ~ is not expanded"


def _held(file: str) -> str:
    """What a file holds, by the words of its PEM form."""
    try:
        with Path(file).open("rb") as opened:
            labels = set(_LABEL.findall(opened.read(_LONGEST)))
    except OSError:
        return "nothing that can be read"
    if any(b"SIGSTORE" in label or b"COSIGN" in label for label in labels):
        return "a key for signatures of content"
    found = [words for word, words in _KINDS.items() if any(word in label for label in labels)]
    return " and ".join(found) or "nothing in PEM form"


def _pairs(place: Path) -> list[tuple[Path, Path]]:
    """The certificates of ours in a directory, each with its key; neither comes alone."""
    certificates = _listed(place, "*.cert")
    for certificate in certificates:
        if not certificate.with_suffix(".key").is_file():
            lacking = certificate.with_suffix(".key")
            raise Misuse(f"{certificate} has no key beside it: {lacking} is missing")
    for key in _listed(place, "*.key"):
        if key.with_suffix(".cert") not in certificates:
            lacking = key.with_suffix(".cert")
            raise Misuse(
                f"{key} has no certificate beside it: {lacking} is missing",
                hint="*.crt are CAs; our own certificate ends in .cert",
            )
    return [(certificate, certificate.with_suffix(".key")) for certificate in certificates]


def _client(context: ssl.SSLContext, certificate: Path, key: Path, named: tuple[str, str]) -> None:
    """Load a certificate of ours; `named` are hints where the two are named (see `_named`)."""

    def no_password() -> str:
        raise _Encrypted  # an encrypted key must not wait for somebody to type

    try:
        context.load_cert_chain(certificate, key, password=no_password)
    except _Encrypted:
        raise Misuse(
            f"the key {key} is encrypted, and there is nobody to ask for its password",
            hint=f"openssl pkey -in {key} writes it without",
        ) from None
    except ssl.SSLError as e:
        if e.reason == "KEY_VALUES_MISMATCH":
            raise Misuse(
                f"the key {key} is not that of the certificate {certificate}",
                hint="one of the two is of another pair; compare what openssl x509 -pubkey and "
                "openssl pkey -pubout print",
            ) from e
        raise _unfit(certificate, key, e) from e
    except OSError as e:
        missing = next((file for file in (certificate, key) if not file.is_file()), certificate)
        hint = named[missing == key]
        raise Misuse(f"{missing} cannot be read: {_reason(e)}", hint=hint) from e


def _unfit(certificate: Path, key: Path, error: ssl.SSLError) -> Misuse:
    """Why a certificate and its key cannot be used, by what the two files hold."""
    first, second = _held(str(certificate)), _held(str(key))
    wanted = ("a certificate" in first, "a private key" in second)
    why = _reason(error) if all(wanted) else f"they hold {first}, and {second}"
    if not any(wanted) and "a private key" in first and "a certificate" in second:
        hint = "they are the wrong way round: the certificate comes first, its key second"
    else:
        hint = "both must be in PEM form: a certificate, with its chain if it has one, and its "
        hint += "private key"
    return Misuse(f"{certificate} and {key} cannot be used: {why}", hint=hint)


class _Encrypted(Exception):
    """The key wants a password."""


def _reason(error: OSError) -> str:
    return error.strerror or getattr(error, "reason", None) or type(error).__name__
