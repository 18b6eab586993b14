"""What to write so that a registry is reached: lines of registries.yaml, and where they belong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ocipack.stores.http.attempt import Attempt

OURS = MappingProxyType({"clientCertificate": "client.crt", "clientKey": "client.key"})
"""What an entry says of our own certificate."""

_SECURE = frozenset({"ca", "serverName", "clientCertificate"})
"""Fields that say by themselves that TLS is spoken."""


def advice(at: Attempt, fields: Mapping[str, str], *notes: str) -> str:
    """What mends the entry of a host, on one line, as YAML writes that, and where it belongs.

    Fields that the entry has are changed, for none may be given twice; others are added.
    """
    if at.plain_first is not None:
        if not _SECURE & fields.keys() or "plainHTTP" in dict(at.places.lines):
            fields = {"plainHTTP": "false", **fields}
        if at.places.listed:
            notes = (f"leave out --plain-http {at.url.netloc}", *notes)
    said = _mended(at, fields) if at.places.entry else _entered(at, fields)
    return "; ".join((said, *notes))


def client_hint(at: Attempt) -> str:
    """What to write for a server that wants a certificate of ours."""
    also = f"or put the two as client.cert and client.key into {certs(at)}"
    return advice(
        at, OURS, "client.crt, beside it, is our certificate for it, client.key its key", also
    )


def secure_hint(at: Attempt) -> str:
    """What to write so that the server of `at` is asked by TLS and no longer by plain HTTP."""
    return advice(replace(at, plain_first=at.url), {})


def certs(at: Attempt) -> str:
    """The directory of certs.d for the server of `at`."""
    return at.places.certs or f"certs.d/{at.url.netloc}"


def _flow(fields: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in fields.items())


def _mended(at: Attempt, fields: Mapping[str, str]) -> str:
    there = dict(at.places.lines)
    changed = [f"{name} to {fields[name]} (line {there[name]})" for name in fields if name in there]
    added = {name: value for name, value in fields.items() if name not in there}
    said = [f"in {at.places.file} change {' and '.join(changed)}"] if changed else []
    if added:
        said.append(f"add to the entry at {at.places.entry}: {_flow(added)}")
    return "; ".join(said)


def _entered(at: Attempt, fields: Mapping[str, str]) -> str:
    places = at.places
    entry = f'{{host: "{at.url.netloc}", {_flow(fields)}}}'
    if places.near:
        return (
            f'the entry at {places.near_at} is for {places.near}: make it host: "{at.url.netloc}", '
            f"or add to registries in {places.file}: - {entry}"
        )
    if places.exists:
        return f"add to registries in {places.file}: - {entry}"
    head = "apiVersion: ocipack.dev/v1alpha1, kind: RegistrySettings"
    return f"write into {places.file}: {{{head}, registries: [{entry}]}}"
