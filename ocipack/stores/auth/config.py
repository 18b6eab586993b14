"""Docker's and podman's credential files.

Formats: docs.docker.com/reference/cli/docker/login, containers-auth.json(5). A key of `auths` is
a registry with or without scheme and path, or (podman) `registry/namespace[/repository]`, the
longest of which wins. `credHelpers` decides before `credsStore`, that before `auths`.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ocipack.errors import Misuse
from ocipack.stores.auth.credential import Credential
from ocipack.stores.auth.helper import Helpers

RENEWED = 300.0
"""Seconds for which what a helper gave is not asked for again, even if it is refused."""

_LIMIT = 8 * 1024 * 1024
_HUB = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
HUB_KEY = "https://index.docker.io/v1/"
"""What docker calls Docker Hub."""


@dataclass(frozen=True, slots=True)
class DockerConfig:
    """One file: `auths` by normalised key, and which helper answers for which registry."""

    path: str
    auths: Mapping[str, Credential]
    helpers: Mapping[str, str]
    store: str = ""

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read a file; None if it is not there, Misuse if it is not what it should be."""
        try:
            with path.open("rb") as file:
                raw = file.read(_LIMIT + 1)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise Misuse(f"{path} cannot be read: {e.strerror}") from e
        try:
            document = json.loads(raw) if len(raw) <= _LIMIT else None
        except (ValueError, RecursionError):
            document = None  # the reason could quote a secret
        if not isinstance(document, dict):
            raise Misuse(f"{path} is not a docker configuration: not a JSON object")
        return cls.parse(document, str(path))

    @classmethod
    def parse(cls, document: Mapping[str, Any], path: str) -> Self:
        """Read the parsed form."""
        auths = _table(document, "auths", path)
        helpers = _table(document, "credHelpers", path)
        store = document.get("credsStore")
        store = "" if store is None else store
        if not isinstance(store, str) or not all(isinstance(h, str) for h in helpers.values()):
            raise Misuse(f"{path}: credsStore and credHelpers hold names of helpers")
        return cls(
            path,
            {normal(key): _entry(entry, key, path) for key, entry in auths.items()},
            {normal(key): name for key, name in helpers.items()},
            store,
        )

    def helper(self, registry: str) -> str:
        """Name the helper that answers for `registry`, or nothing."""
        return self.helpers.get(registry, "") or self.store

    def stored(self, registry: str, repository: str) -> Credential | None:
        """Find what the file itself holds, for the most particular key."""
        parts = repository.split("/")
        keys = ["/".join([registry, *parts[:n]]) for n in range(len(parts), -1, -1)]
        found = (self.auths.get(key) for key in keys)
        return next((one for one in found if one is not None and not one.is_anonymous), None)


def normal(key: str) -> str:
    """Bring a key of `auths` to `registry` or `registry/path`; Docker Hub's names are one."""
    scheme, separator, rest = key.strip().partition("://")
    rest = (rest if separator else scheme).rstrip("/")
    host, _, path = rest.partition("/")
    host = host.lower()
    if separator or path in {"v1", "v2"}:
        path = ""
    host = "docker.io" if host in _HUB else host
    return f"{host}/{path}" if path else host


def _table(document: Mapping[str, Any], member: str, path: str) -> Mapping[str, Any]:
    found = document.get(member)
    if found is not None and not isinstance(found, dict):
        raise Misuse(f"{path}: {member} must be a JSON object")
    return found or {}


def _entry(entry: object, key: str, path: str) -> Credential:
    if not isinstance(entry, dict):
        raise Misuse(f"{path}: the entry for {key!r} must be a JSON object")
    names = ("auth", "username", "password", "identitytoken", "registrytoken")
    values = {name: entry[name] for name in names if entry.get(name) is not None}
    if not all(isinstance(value, str) for value in values.values()):
        raise Misuse(f"{path}: the entry for {key!r} must hold text")
    username, password = values.get("username", ""), values.get("password", "")
    if values.get("auth"):
        try:
            pair = base64.b64decode(values["auth"], validate=True).decode()
        except (binascii.Error, ValueError):
            pair = ""
        username, colon, password = pair.partition(":")
        if not colon:
            raise Misuse(f"{path}: auth of the entry for {key!r} is not base64 of user:password")
        password = password.strip("\0")
    tokens = (values.get("identitytoken", ""), values.get("registrytoken", ""))
    return Credential(path, username, password, *tokens)


class Credentials:
    """Looks credentials up when a registry first asks for them; a helper runs once a registry.

    Those that are `given`, by registry, come before any that could be found. Only a registry that
    refuses what a helper gave RENEWED seconds ago or earlier makes it run again: clouds give out
    what lives for an hour, and a mirror can take longer.
    """

    def __init__(
        self,
        files: Sequence[Path] = (),
        helpers: Helpers | None = None,
        *,
        given: Mapping[str, Credential] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._given = {normal(registry): one for registry, one in (given or {}).items()}
        self._files = files
        self._helpers = helpers or Helpers({})
        self._lock = threading.Lock()
        self._configs: list[DockerConfig] | None = None
        self._asked: dict[tuple[str, str], Credential | None] = {}
        self._monotonic = monotonic
        self._when: dict[str, float] = {}

    def find(self, registry: str, repository: str) -> Credential:
        """Find the credential for `repository` at exactly `registry` (`host[:port]`).

        The first file that has one decides. What is returned when none has is anonymous and says
        where we looked.
        """
        key = normal(registry)
        if key in self._given:
            return self._given[key]
        with self._lock:
            for config in self._load():
                found = self._ask(config.helper(key), key) or config.stored(key, repository)
                if found is not None:
                    return found
            looked = ", ".join(config.path for config in self._configs or ())
        return Credential(f"anonymous; nothing for {key} in {looked or 'any configuration'}")

    def renew(self, registry: str, repository: str) -> Credential:
        """Find what `find` finds; a helper that answered long ago is asked again."""
        key = normal(registry)
        with self._lock:
            if self._monotonic() - self._when.get(key, math.inf) >= RENEWED:
                self._asked = {asked: one for asked, one in self._asked.items() if asked[1] != key}
        return self.find(registry, repository)

    def _load(self) -> Iterator[DockerConfig]:
        if self._configs is None:
            read = (DockerConfig.read(path) for path in self._files)
            self._configs = [config for config in read if config is not None]
        yield from self._configs

    def _ask(self, helper: str, registry: str) -> Credential | None:
        if not helper:
            return None
        if (helper, registry) not in self._asked:
            server = HUB_KEY if registry == "docker.io" else registry
            self._asked[helper, registry] = self._helpers.get(helper, server)
            self._when[registry] = self._monotonic()
        return self._asked[helper, registry]
