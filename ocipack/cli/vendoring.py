"""How `ocipack vendor` fetches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ocipack.cli.charts import archive
from ocipack.cli.command import App
from ocipack.errors import Misuse
from ocipack.files.workspace import Workspace
from ocipack.oci.digest import Digest
from ocipack.oci.location import Location
from ocipack.oci.store import Source
from ocipack.stores.http.url import Url
from ocipack.tools.fetching import Access, GitFetch
from ocipack.vendor.pick import SOURCES, Named

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


@dataclass(frozen=True, slots=True)
class Fetching:
    """Fetches over the connections of `app`; what git needs for a while is in `workspace`."""

    app: App
    workspace: Workspace

    def url(self, address: str) -> bytes:
        """See `vendor.run.Fetch`."""
        return self.app.registries.downloads().file(address)

    def git(
        self, address: str, ref: str, commit: str, wanted: Callable[[str], object]
    ) -> tuple[str, Iterable[Named]]:
        """See `vendor.run.Fetch`."""
        git = GitFetch(address, self.workspace.directory(), self._access(address))
        found = commit or git.commit(ref)
        git.fetch(found, ref)
        return found, git.files(found, wanted, SOURCES)

    def chart(self, where: Location) -> tuple[Digest, bytes]:
        """See `vendor.run.Fetch`."""
        source: Source = (
            self.app.registries.chart(where)
            if where.is_chart
            else self.app.registries.store(where.reference, write=False)
        )
        root, data = archive(source, where.reference.name, where)
        return root.digest, data

    def _access(self, address: str) -> Access:
        """What git is told of a host; Misuse where it cannot be told."""
        registries, environment = self.app.registries, self.app.registries.environment
        url: Url = registries.downloads().address(address)
        host, credential = registries.known(url)
        if host.connect or host.server_name:
            raise Misuse(
                f"{url.netloc}: git cannot be told of connect and serverName in registries.yaml",
                hint="vendor by url, or make its name lead to its address",
            )
        return Access(
            environment.get("PATH", os.defpath),
            credential.basic if credential.username else "",
            {
                name: environment[name]
                for upper in _PROXIES
                for name in (upper, upper.lower())
                if name in environment
            },
            host.authorities or registries.ca_file,
            host.certificate,
            host.key,
        )
