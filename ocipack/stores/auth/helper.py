"""Docker's credential helpers: `docker-credential-NAME get`, `store`, `erase`, all by stdin.

Protocol: github.com/docker/docker-credential-helpers. What a helper writes is a secret even when
it fails, so none of it is ever shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ocipack.errors import Denied, Misuse
from ocipack.stores.auth.credential import Credential

if TYPE_CHECKING:
    import subprocess

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_ABSENT = (b"credentials not found", b"no credentials server url", b"no credentials username")
_LIMIT = 256 * 1024
_IDENTITY = "<token>"
"""The user name by which a helper says that its secret is an identity token."""


@dataclass(frozen=True, slots=True)
class Helpers:
    """Runs helpers in `environment` (which needs PATH, and HOME for most) under a time limit."""

    environment: Mapping[str, str]
    timeout: float = 30.0
    run: Callable[..., subprocess.CompletedProcess[bytes]] | None = None

    def get(self, name: str, server: str) -> Credential | None:
        """Ask helper `name` about `server`; None if it knows nothing.

        Misuse if there is no such helper, Denied if it fails.
        """
        done = self._ask(name, "get", server, server.encode())
        return None if done is None else _read(done, f"docker-credential-{name}", server)

    def store(self, name: str, server: str, username: str, secret: str) -> None:
        """Have helper `name` keep a credential for `server`; errors as for `get`."""
        said = {"ServerURL": server, "Username": username, "Secret": secret}
        self._ask(name, "store", server, json.dumps(said).encode())

    def erase(self, name: str, server: str) -> bool:
        """Have helper `name` forget `server`; whether it knew it. Errors as for `get`."""
        return self._ask(name, "erase", server, server.encode()) is not None

    def _ask(self, name: str, verb: str, server: str, said: bytes) -> bytes | None:
        """Run a helper; what it wrote, or None if it knows nothing."""
        import shutil  # noqa: PLC0415 - most runs need no helper, and start-up counts
        import subprocess  # noqa: PLC0415 - as above

        program = f"docker-credential-{name}"
        if not re.fullmatch(_NAME, name):
            raise Misuse(f"not the name of a credential helper: {name[:100]!r}")
        path = shutil.which(program, path=self.environment.get("PATH", ""))
        if path is None:
            raise Misuse(
                f"the docker configuration names {program} for {server}, and it is not on PATH",
                hint="install it, or take it out of credHelpers or credsStore",
            )
        try:
            done = (self.run or subprocess.run)(
                [path, verb],
                input=said,
                env=dict(self.environment),
                capture_output=True,
                timeout=self.timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Denied(f"{program} gave no answer for {server} in {self.timeout:g} s") from None
        except OSError as e:
            raise Misuse(f"{program} cannot be run: {e.strerror}") from e
        if done.returncode:
            if any(words in (done.stdout + done.stderr).lower() for words in _ABSENT):
                return None
            by_hand = f"run it by hand: echo {server} | {program} {verb}"
            raise Denied(
                f"{program} failed for {server} (exit code {done.returncode})",
                hint=by_hand if verb != "store" else "",
            )
        return done.stdout


def _read(output: bytes, program: str, server: str) -> Credential | None:
    try:
        answer = json.loads(output) if len(output) <= _LIMIT else None
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Denied(f"{program} gave no usable answer for {server}")
    username, secret = answer.get("Username", ""), answer.get("Secret", "")
    if not isinstance(username, str) or not isinstance(secret, str):
        raise Denied(f"{program} gave no usable answer for {server}")
    if not secret:
        return None
    if username == _IDENTITY:
        return Credential(program, identity_token=secret)
    return Credential(program, username=username, password=secret)
