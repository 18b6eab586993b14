"""The stores of a run: what they share about each registry is found out once."""

from __future__ import annotations

import threading

from ocipack.oci.reference import Reference
from ocipack.stores.auth.config import Credentials
from ocipack.stores.http.host import Mirror
from ocipack.stores.http.transport import Transport
from ocipack.stores.registry.client import PULL, PUSH, Client, Repository
from ocipack.stores.registry.mirrored import Copy, MirroredStore, Reach
from ocipack.stores.registry.store import RegistryStore


class Registries:
    """Makes stores that share connections, tokens, features and places of blobs."""

    def __init__(
        self, transport: Transport | None = None, credentials: Credentials | None = None
    ) -> None:
        self.transport = transport or Transport()
        self.credentials = credentials or Credentials()
        self._lock = threading.Lock()
        self._clients: dict[str, Client] = {}
        self._reach: dict[str, Reach] = {}

    def client(self, registry: str) -> Client:
        """The one client for `registry`, which is `host[:port]` as references write it."""
        key = registry.lower()
        with self._lock:
            if key not in self._clients:
                self._clients[key] = Client(self.transport, self.credentials, key)
            return self._clients[key]

    def store(
        self, reference: Reference, *, writes: bool = False, prefetch: bool = True
    ) -> RegistryStore:
        """The repository of `reference`; with `writes`, tokens to push are asked for.

        What is only read is read from the mirrors of its registry first, if it has some.
        """
        client, name = self.client(reference.registry), reference.repository
        self.transport.admit(client.base)  # as what it is called: mirrors are asked in its place
        at = Repository(client, name, PUSH if writes else PULL)
        mirrors = () if writes else self.transport.settings.host(client.registry).mirrors
        if not mirrors:
            return RegistryStore(at, prefetch=prefetch)
        copies = [self._copy(mirror, name, prefetch=prefetch) for mirror in mirrors]
        with self._lock:
            reach = self._reach.setdefault(client.registry, Reach())
        return MirroredStore(at, copies, reach, prefetch=prefetch)

    def _copy(self, mirror: Mirror, name: str, *, prefetch: bool) -> Copy:
        there = Repository(self.client(mirror.registry), mirror.repository(name))
        return Copy(RegistryStore(there, prefetch=prefetch), believed=mirror.tags)
