"""What a server's certificate says of itself, for people: nothing here is believed (RFC 5280)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from ocipack.errors import IntegrityError

if TYPE_CHECKING:
    from cryptography import x509

NAMES = 100
"""Names of a certificate that are kept; some have thousands."""

_HELD = 3
_SHOWN = 6
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Presented:
    """Subject and issuer (RFC 4514), the names and addresses it is for, and its days (UTC)."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    since: str
    until: str

    @classmethod
    def parse(cls, der: bytes) -> Self:
        """Read a certificate; IntegrityError if it is none."""
        from cryptography import x509  # noqa: PLC0415 - start-up: only a failure is explained

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is odd about it is no business of ours
                found = x509.load_der_x509_certificate(der)
                return cls(
                    _words(found.subject),
                    _words(found.issuer),
                    _names(found),
                    f"{found.not_valid_before_utc:%Y-%m-%d %H:%M}",
                    f"{found.not_valid_after_utc:%Y-%m-%d %H:%M}",
                )
        except (ValueError, TypeError, x509.InvalidVersion) as e:
            raise IntegrityError("not a certificate that can be read") from e

    @property
    def is_self_issued(self) -> bool:
        """Whether it names itself as its issuer."""
        return self.subject == self.issuer

    def is_for(self, name: str) -> bool:
        """Whether it lists `name`, a name or an address; `*` stands for one label (RFC 6125)."""
        _, _, rest = name.partition(".")
        return any(one in (name, f"*.{rest}") for one in map(str.lower, self.names))

    def __str__(self) -> str:
        """Words for all of it, in one line."""
        more = f" and {len(self.names) - _SHOWN} more" if len(self.names) > _SHOWN else ""
        names = ", ".join(self.names[:_SHOWN]) + more if self.names else "no name at all"
        return (
            f"{self.subject}, issued by {'itself' if self.is_self_issued else self.issuer}, "
            f"for {names}, valid {self.since} to {self.until} UTC"
        )


def vouching(pem: bytes, der: bytes) -> str:
    """What the CA certificates in `pem` are, and why they do not vouch for the one in `der`.

    Empty if either cannot be read.
    """
    from cryptography import x509  # noqa: PLC0415 - as above

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as above
            leaf = x509.load_der_x509_certificate(der)
            held = x509.load_pem_x509_certificates(pem)
            words = [_vouches(one, leaf) for one in held[:_HELD]]
    except (ValueError, TypeError, x509.InvalidVersion):
        return ""
    more = f" and {len(held) - _HELD} more" if len(held) > _HELD else ""
    return ", ".join(words) + more


def _vouches(held: x509.Certificate, leaf: x509.Certificate) -> str:
    from cryptography import x509  # noqa: PLC0415 - as above
    from cryptography.exceptions import (  # noqa: PLC0415 - as above
        InvalidSignature,
        UnsupportedAlgorithm,
    )

    words = _words(held.subject)
    try:
        is_authority = held.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, x509.DuplicateExtension):
        is_authority = False
    if not is_authority:
        return f"{words}, which is no CA"
    if held.subject != leaf.issuer:
        return words
    try:
        leaf.verify_directly_issued_by(held)
    except InvalidSignature:
        return f"{words}, of the same name with another key"
    except (ValueError, TypeError, UnsupportedAlgorithm):
        pass
    return words


def _words(name: x509.Name) -> str:
    return _safe(name.rfc4514_string()) or "a certificate without a subject"


def _names(found: x509.Certificate) -> tuple[str, ...]:
    from cryptography import x509  # noqa: PLC0415 - as above

    try:
        listed = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return ()
    names = [_safe(name) for name in listed.get_values_for_type(x509.DNSName)]
    names += [str(address) for address in listed.get_values_for_type(x509.IPAddress)]
    return tuple(names[:NAMES])


def _safe(text: str) -> str:
    """Cut what a stranger wrote, and replace what could steer a terminal."""
    cut = text[:_LONGEST] + ("…" if len(text) > _LONGEST else "")
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in cut)
