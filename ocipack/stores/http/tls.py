"""Whom we trust to be a registry: CA sets and client certificates per host.

Verification is always on. The convention of docker and the containers tools is followed:
`certs.d/<host[:port]>/` holds `*.crt` (CAs, added to the system's) and pairs `X.cert`, `X.key`
(our certificate for that host). See docs.docker.com/engine/security/certificates and
containers-certs.d(5).
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from ocipack.errors import Misuse


@dataclass(frozen=True, slots=True)
class Trust:
    """A TLS context and the words for the CA set in it."""

    context: ssl.SSLContext
    authorities: str


def directory(certs: tuple[str, ...], netloc: str) -> Path | None:
    """Find the first `certs.d` directory that has an entry for `netloc` (`host[:port]`)."""
    places = (Path(root) / netloc for root in certs)
    return next((place for place in places if place.is_dir()), None)


def trust(ca_file: str, place: Path | None) -> Trust:
    """Build the context for a host: the system's CAs, `ca_file`, and what `place` holds.

    Misuse if a file that was named cannot be used.
    """
    context = ssl.create_default_context()
    words = ["the system's CAs"]
    if ca_file:
        _add(context, Path(ca_file))
        words.append(ca_file)
    if place is not None:
        authorities = sorted(place.glob("*.crt"))
        for file in authorities:
            _add(context, file)
        words += [str(file) for file in authorities]
        for certificate in sorted(place.glob("*.cert")):
            _client(context, certificate)
    return Trust(context, " + ".join(words))


def _add(context: ssl.SSLContext, file: Path) -> None:
    try:
        context.load_verify_locations(cafile=file)
    except (OSError, ssl.SSLError) as e:
        raise Misuse(
            f"no CA certificates could be read from {file}: {_reason(e)}",
            hint="it must hold one or more certificates in PEM form",
        ) from e


def _client(context: ssl.SSLContext, certificate: Path) -> None:
    key = certificate.with_suffix(".key")
    if not key.is_file():
        raise Misuse(f"{certificate} has no key beside it: {key} is missing")
    try:  # an empty password: an encrypted key must not wait for somebody to type
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as e:
        raise Misuse(f"{certificate} and {key} cannot be used: {_reason(e)}") from e


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
