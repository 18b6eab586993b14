"""The stores of a run: what they share about each registry is found out once."""

from __future__ import annotations

import threading

from ocipack.oci.reference import Reference
from ocipack.stores.auth.config import Credentials
from ocipack.stores.http.transport import Transport
from ocipack.stores.registry.client import PULL, PUSH, Client, Repository
from ocipack.stores.registry.store import RegistryStore


class Registries:
    """Makes stores that share connections, tokens, features and places of blobs."""

    def __init__(
        self, transport: Transport | None = None, credentials: Credentials | None = None
    ) -> None:
        self._transport = transport or Transport()
        self._credentials = credentials or Credentials()
        self._lock = threading.Lock()
        self._clients: dict[str, Client] = {}

    def client(self, registry: str) -> Client:
        """The one client for `registry`, which is `host[:port]` as references write it."""
        key = registry.lower()
        with self._lock:
            if key not in self._clients:
                self._clients[key] = Client(self._transport, self._credentials, key)
            return self._clients[key]

    def store(
        self, reference: Reference, *, writes: bool = False, prefetch: bool = True
    ) -> RegistryStore:
        """The repository of `reference`; with `writes`, tokens to push are asked for."""
        at = Repository(
            self.client(reference.registry), reference.repository, PUSH if writes else PULL
        )
        return RegistryStore(at, prefetch=prefetch)
