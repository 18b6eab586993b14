"""Which hosts and addresses may be contacted. Names are strangers' words; addresses are facts."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from ocipack.errors import Misuse, Rejected, StoreError
from ocipack.stores.http.url import is_loopback


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Read an IP address (a zone is dropped, a mapped IPv4 one unwrapped); None for a name."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found


def is_inner(address: str) -> bool:
    """Whether an address or a literal name is loopback, link-local, private or otherwise ours."""
    if is_loopback(address):
        return True
    found = parse_address(address)
    return found is not None and (not found.is_global or found.is_multicast)


@dataclass(frozen=True, slots=True)
class Gate:
    """The allow-list of a run; without entries it lets everything through but metadata services.

    Checks, numbered in the code:

    1. with a list, the name is on it, or a network is (decided at 3);
    2. no *name* may lead to a link-local, unspecified or multicast address: cloud metadata
       services live there, and a pull request can name any host;
    3. with a list, a name that is not on it must have led to an address in a listed network;
    4. what only a wildcard let in must not lead to loopback.

    A proxy resolves names itself, so through one only the first holds.
    """

    allowed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for entry in self.allowed:
            if "/" in entry and not _network(entry):
                raise Misuse(f"not a network in the list of allowed registries: {entry!r}")

    def name(self, host: str, port: int) -> None:
        """Refuse `host` before it is looked up."""
        if not self.allowed or self._listed(host, port):
            return
        address = parse_address(host)
        if any(map(_network, self.allowed)) and (address is None or self._within(host)):
            return
        raise _refused(host, port)  # (1)

    def address(self, host: str, port: int, address: str) -> None:
        """Refuse the address that `host` turned out to have, before anything is sent to it."""
        found = parse_address(address)
        if found is None or parse_address(host) is not None:
            return
        if found.is_link_local or found.is_unspecified or found.is_multicast:  # (2)
            raise Rejected(f"{host} leads to {address}, which no registry's name may lead to")
        if not self.allowed:
            return
        listed = self._listed(host, port)
        if not listed and not self._within(address):  # (3)
            raise _refused(host, port, address)
        if listed == "wildcard" and found.is_loopback and not self._within(address):  # (4)
            raise _refused(host, port, address)

    def vouches(self, host: str, port: int) -> bool:
        """Whether the list names exactly this host, wherever it may be."""
        return self._listed(host, port) == "exact"

    def _listed(self, host: str, port: int) -> str:
        exact = {host, f"{host}:{port}", f"[{host}]:{port}", f"[{host}]"}
        entries = [entry.lower() for entry in self.allowed]
        if exact.intersection(entries):
            return "exact"
        stars = [entry[1:] for entry in entries if entry.startswith("*.")]
        return "wildcard" if any(host.endswith(star) for star in stars) else ""

    def _within(self, address: str) -> bool:
        found = parse_address(address)
        networks = [ip_network(entry) for entry in self.allowed if _network(entry)]
        return found is not None and any(found in network for network in networks)


def outward(host: str, address: str) -> None:
    """Refuse an inner address for a place that a public server sent us to."""
    if is_inner(address):
        raise StoreError(
            f"a redirect from a public registry to {host} ({address}), which is an inner address, "
            "is refused",
            hint="a registry must not make us talk to this machine or its network; if that host is "
            "where it keeps its content, list both as allowed registries",
        )


def _network(entry: str) -> bool:
    if "/" not in entry:
        return False
    try:
        ip_network(entry)
    except ValueError:
        return False
    return True


def _refused(host: str, port: int, address: str = "") -> Rejected:
    led = f" (which leads to {address})" if address else ""
    return Rejected(
        f"{host}:{port}{led} is not among the registries that this project may contact",
        hint="add it to the list of allowed registries, if it belongs there",
    )
