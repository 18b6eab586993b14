"""The file of settings for registries, `registries.yaml`; docs/registries.md describes it.

apiVersion: ocipack.dev/v1alpha1
kind: RegistrySettings
registries:
- host: 10.20.0.7:5443               # as references write it: host or host:port
  serverName: registry.corp.example  # what its certificate is for
  ca: corp-ca.crt                    # files count from this one
  clientCertificate: client.crt
  clientKey: client.key

It is read strictly; the same is said for machines by docs/schemas/registries-v1alpha1.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ocipack.errors import Misuse
from ocipack.k8s.yaml.nodes import Node, Scalar
from ocipack.k8s.yaml.strict import Reader
from ocipack.stores.http.host import Host, Mirror, place

KIND: Final = "RegistrySettings"

REGISTRIES: Final = 1000
"""Registries that one file describes."""

_FIELDS: Final = (
    *("host", "ca", "clientCertificate", "clientKey", "plainHTTP", "connect", "serverName"),
    *("mirrors", "concurrency", "requestsPerSecond", "realms"),
)

_EXAMPLE: Final = '{host: "registry.example:5000", ca: CA.crt}'


def load(path: Path) -> tuple[Host, ...]:
    """Read the file at `path`; Misuse if it cannot be read, or says what cannot be."""
    try:
        with path.open("rb") as file:
            data = file.read(Reader("").limit + 1)
    except OSError as e:
        raise Misuse(f"{path}: cannot be read: {e.strerror or e}") from e
    return read(data, file=str(path))


def read(data: bytes, *, file: str) -> tuple[Host, ...]:
    """Read the content of the file called `file`, whose directory relative paths count from."""
    reader = Reader(file)
    root = reader.ours(data, ("registries",), kind=KIND)
    listed = reader.items(root.get("registries"), "registries", empty=True)
    if not listed:
        reader.refuse(root.place, "the file has no registries", f"write registries: [{_EXAMPLE}]")
    if len(listed) > REGISTRIES:
        reader.refuse(listed[REGISTRIES].place, f"more than {REGISTRIES} registries")
    found: dict[str, Host] = {}
    for node in listed:
        host = _host(reader, node)
        if host.name in found:
            reader.refuse(node.place, f"{host.name} is described twice", found[host.name].where)
        found[host.name] = host
    return tuple(found.values())


def _host(reader: Reader, node: Node) -> Host:
    said = reader.mapping(node, "a registry", _FIELDS, ("host",))
    base = Path(reader.file).parent

    def file(field: str) -> str:
        node = said.get(field)
        named = reader.text(node, field)
        if node is not None and not named.isprintable():
            reader.refuse(node.place, f"{field} is no name of a file")
        return str(base / named) if named else ""

    plain = said.get("plainHTTP")
    with reader.about(said):
        return Host(
            place(reader.text(said.get("host"), "host")),
            authorities=file("ca"),
            certificate=file("clientCertificate"),
            key=file("clientKey"),
            plain=None if plain is None else reader.flag(plain, "plainHTTP", default=False),
            connect=reader.text(said.get("connect"), "connect"),
            server_name=reader.text(said.get("serverName"), "serverName"),
            mirrors=tuple(
                _mirror(reader, one) for one in reader.items(said.get("mirrors"), "mirrors")
            ),
            concurrency=_limit(reader, said.get("concurrency"), "concurrency"),
            rate=_limit(reader, said.get("requestsPerSecond"), "requestsPerSecond"),
            realms=frozenset(map(place, reader.texts(said.get("realms"), "realms", "a realm"))),
            where=f"{reader.file}:{said.place.line}",
            lines=tuple((pair.key, pair.place.line) for pair in said.pairs),
        )


def _mirror(reader: Reader, node: Node) -> Mirror:
    """A mirror: its place alone, or a mapping that says more of it."""
    with reader.about(node):
        if isinstance(node, Scalar):
            return Mirror.parse(reader.text(node, "a mirror"))
        said = reader.mapping(node, "a mirror", ("host", "tags"), ("host",))
        tags = reader.flag(said.get("tags"), "tags", default=False)
        return Mirror.parse(reader.text(said.get("host"), "host"), tags=tags)


def _limit(reader: Reader, node: Node | None, what: str) -> int:
    found = reader.whole(node, what, 0)
    if node is not None and not found:
        reader.refuse(node.place, f"{what} is at least 1", "leave it out for no limit")
    return found
