"""A credential, and where it was found."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Credential:
    """How to log in at one registry; `source` says in words where that was found.

    Secrets are in no representation. Nothing at all means anonymous.
    """

    source: str
    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)

    @property
    def is_anonymous(self) -> bool:
        """Whether there is nothing to log in with."""
        return not (self.username or self.identity_token or self.registry_token)

    @property
    def basic(self) -> str:
        """The value of a Basic Authorization header (RFC 7617), UTF-8."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must never be shown, in each form that a server could echo."""
        found = [self.password, self.identity_token, self.registry_token]
        if self.password:
            found.append(self.basic.removeprefix("Basic "))
        return tuple(secret for secret in found if secret)
