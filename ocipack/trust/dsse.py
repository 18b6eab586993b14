"""Dead Simple Signing Envelope (secure-systems-lab/dsse, protocol.md and envelope.md)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Self

from ocipack.trust import wire

IN_TOTO = "application/vnd.in-toto+json"

SHAPE: wire.Shape = {
    "payload!": wire.BASE64,
    "payloadType!": wire.TEXT,
    "signatures!": [{"sig!": wire.BASE64, "keyid": wire.TEXT}, 32],
}


def pae(payload_type: str, payload: bytes) -> bytes:
    """Pre-authentication encoding: what a DSSE signature covers. Lengths are in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload, what it is, and the signatures over both; none of them is verified."""

    payload_type: str
    payload: bytes
    signatures: tuple[bytes, ...]

    @classmethod
    def from_dict(cls, raw: Any) -> Self:
        """Read the JSON form; ValueError for anything missing, unknown or of the wrong kind."""
        wire.check(raw, SHAPE, "dsseEnvelope")
        return cls(
            raw["payloadType"],
            base64.b64decode(raw["payload"]),
            tuple(base64.b64decode(entry["sig"]) for entry in raw["signatures"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Write the JSON form, without key ids, as cosign does."""
        return {
            "payload": base64.b64encode(self.payload).decode(),
            "payloadType": self.payload_type,
            "signatures": [{"sig": base64.b64encode(sig).decode()} for sig in self.signatures],
        }

    @property
    def signed(self) -> bytes:
        """The bytes that each signature covers."""
        return pae(self.payload_type, self.payload)
