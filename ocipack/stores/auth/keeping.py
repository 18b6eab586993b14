"""Keeping and forgetting credentials, as docker does: in a helper, or in its configuration.

A helper is used where the configuration names one (`credHelpers`, `credsStore`); the file then
holds nothing secret about the registry. Everything else in the file stays as it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocipack.errors import Misuse, Unavailable
from ocipack.stores.auth.config import HUB_KEY, DockerConfig, normal
from ocipack.stores.auth.helper import Helpers

TRIES = 5
"""How often a file is changed anew because somebody else changed it meanwhile."""

_LIMIT = 8 * 1024 * 1024
_TAB = "\t"

Enter = Callable[[dict[str, Any], str, str, str], dict[str, Any]]
"""Adds a registry (its key), a user and a password to a configuration, in docker's form."""

Replace = Callable[[Path, bytes], None]
"""Writes a file whole, in one step, so that nobody else can read it."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Where credentials are kept: the file at `path`, and the helpers that it names."""

    path: Path
    helpers: Helpers
    replace: Replace

    def keep(self, registry: str, username: str, password: str, enter: Enter) -> str:
        """Keep a credential, in place of any other for `registry`; says where.

        Misuse if the file is none that docker could read, Denied if a helper fails.
        """
        helper = self._config().helper(normal(registry))
        if helper:
            self.helpers.store(helper, key(registry), username, password)

        def change(document: dict[str, Any]) -> dict[str, Any]:
            bare = _without(document, registry)
            bare["auths"] = dict(bare.get("auths") or {})
            if not helper:
                return enter(bare, key(registry), username, password)
            bare["auths"][key(registry)] = {}  # how docker remembers where somebody has logged in
            return bare

        self._change(change)
        return f"docker-credential-{helper}" if helper else str(self.path)

    def forget(self, registry: str) -> list[str]:
        """Forget what is kept for `registry`; the places where there was something."""
        found = []
        helper = self._config().helper(normal(registry))
        if helper and self.helpers.erase(helper, key(registry)):
            found.append(f"docker-credential-{helper}")
        if self._change(lambda document: _without(document, registry)):
            found.append(str(self.path))
        return found

    def _config(self) -> DockerConfig:
        return DockerConfig.read(self.path) or DockerConfig(str(self.path), {}, {})

    def _change(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bool:
        """Change the file; whether there was anything to change."""
        for _ in range(TRIES):
            before = self._raw()
            document = json.loads(before) if before is not None else {}
            after = change(document)
            if after == document:
                return False
            if self._raw() != before:
                continue  # another login, of docker perhaps: what it wrote must stay
            self.replace(self.path, f"{json.dumps(after, indent=_TAB)}\n".encode())
            return True
        raise Unavailable(f"{self.path}: somebody else changes it all the time", hint="run again")

    def _raw(self) -> bytes | None:
        DockerConfig.read(self.path)  # Misuse for what docker could not read either
        try:
            with self.path.open("rb") as file:
                return file.read(_LIMIT)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise Misuse(f"{self.path} cannot be read: {e.strerror}") from e


def key(registry: str) -> str:
    """What docker calls a registry in its configuration and to its helpers."""
    found = normal(registry)
    return HUB_KEY if found == "docker.io" else found


def _without(document: dict[str, Any], registry: str) -> dict[str, Any]:
    """A copy that lacks every entry which means `registry`, however its key is written."""
    auths = document.get("auths") or {}
    kept = {name: entry for name, entry in auths.items() if normal(name) != normal(registry)}
    return {**document, "auths": kept} if len(kept) < len(auths) else dict(document)
