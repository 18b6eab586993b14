"""What a mirror is to those who pull from it: the same names, asked for elsewhere.

One map, a pair for each repository that is at the target, in four forms:

- `pin`: what `ocipack pin --map` and `ocipack lock check --map` read
- `hosts_toml`: containerd's `certs.d/HOST/hosts.toml` (containerd, docs/hosts.md)
- `registries_conf`: podman's and CRI-O's (containers-registries.conf(5), version 2)
- `idms`: OpenShift's ImageDigestMirrorSet (config.openshift.io/v1)

What a form cannot say is refused, and named: a map with a hole sends nodes to the internet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ocipack.errors import Misuse
from ocipack.mirror.plan import Item
from ocipack.oci.reference import Reference

IsPlain = Callable[[str], bool]
"""Whether a registry is spoken to without TLS."""

_HUB = "docker.io"
_HUB_SERVER = "registry-1.docker.io"


@dataclass(frozen=True, slots=True)
class Pair:
    """A repository, and where it is mirrored; `flat`: its tags are not there, only digests."""

    source: Reference
    target: Reference
    flat: bool = False


def pairs(items: Iterable[Item]) -> list[Pair]:
    """A pair for each repository of `items`, sorted. Misuse if one goes to two places.

    Charts from classic repositories are in none: no registry was ever asked for them.
    """
    found: dict[str, Pair] = {}
    for item in items:
        if item.source.repository is not None:
            continue
        pair = Pair(item.source.bare, item.target, item.name != item.tag)
        known = found.setdefault(str(pair.source), pair)
        if known.flat and not pair.flat:
            known = found[str(pair.source)] = replace(known, flat=False)
        if known.target != pair.target:
            raise Misuse(
                f"{pair.source} goes to {known.target} and to {pair.target}, and a map says one",
                hint="mirror them in two files, or write no map",
            )
    return [found[name] for name in sorted(found)]


def pin(found: Iterable[Pair]) -> str:
    """The form of `pin --map`."""
    lines = [f"{json.dumps(str(one.source))}: {json.dumps(str(one.target))}\n" for one in found]
    return "".join(lines)


def hosts_toml(found: Iterable[Pair], is_plain: IsPlain) -> dict[str, str]:
    """Files of a `certs.d` by name: one for each registry.

    containerd puts the repository behind the path of a mirror, so a repository must keep its name
    there. Misuse if one does not.
    """
    prefixes: dict[str, list[str]] = {}
    for one in found:
        target, tail = str(one.target), f"/{one.source.repository}"
        if one.flat or not target.endswith(tail):
            raise Misuse(
                f"{one.source} is {target} at the target, and hosts.toml can only put something "
                "before its repository",
                hint="relocate with form full or path, or write registries-conf or idms",
            )
        known = prefixes.setdefault(one.source.registry, [])
        prefix = target.removesuffix(tail)
        if prefix not in known:
            known.append(prefix)
    return {
        f"{registry}/hosts.toml": _hosts(registry, known, is_plain)
        for registry, known in sorted(prefixes.items())
    }


def _hosts(registry: str, prefixes: list[str], is_plain: IsPlain) -> str:
    server = _HUB_SERVER if registry == _HUB else registry
    parts = [f"server = {json.dumps(_url(server, is_plain))}\n"]
    for prefix in prefixes:
        host, _, path = prefix.partition("/")
        url = _url(host, is_plain) + (f"/v2/{path}" if path else "")
        table = f'[host.{json.dumps(url)}]\n  capabilities = ["pull", "resolve"]\n'
        parts.append(table + ("  override_path = true\n" if path else ""))
    return "\n".join(parts)


def _url(host: str, is_plain: IsPlain) -> str:
    return f"http{'' if is_plain(host) else 's'}://{host}"


def registries_conf(found: Iterable[Pair], is_plain: IsPlain) -> str:
    """A file for `/etc/containers/registries.conf.d`."""
    return "\n".join(_registry(one, is_plain) for one in found)


def _registry(one: Pair, is_plain: IsPlain) -> str:
    lines = [
        "[[registry]]",
        f"prefix = {json.dumps(str(one.source))}",
        f"location = {json.dumps(str(one.source))}",
        "",
        "[[registry.mirror]]",
        f"location = {json.dumps(str(one.target))}",
    ]
    lines += ["insecure = true"] if is_plain(one.target.registry) else []
    lines += ['pull-from-mirror = "digest-only"'] if one.flat else []
    return "\n".join(lines) + "\n"


def idms(found: Iterable[Pair]) -> str:
    """An ImageDigestMirrorSet; it holds for images with a digest alone."""
    lines = [
        "apiVersion: config.openshift.io/v1",
        "kind: ImageDigestMirrorSet",
        "metadata:",
        "  name: ocipack-mirror",
        "spec:",
        "  imageDigestMirrors:",
    ]
    for one in found:
        lines += [f"  - source: {json.dumps(str(one.source))}", "    mirrors:"]
        lines += [f"    - {json.dumps(str(one.target))}"]
    return "\n".join(lines) + "\n"
