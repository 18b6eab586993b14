"""Which token service may see a registry's credentials.

A registry names its token service itself, so the name is a stranger's word. It may be the
registry's own host, one with the same registrable domain, or one that the run allows. Without
the public suffix list we take a narrower rule than it: the last two labels of a name must be
equal, or three where the second-level label can be a public suffix (short ones under a country,
and clouds that give names to strangers). That refuses some pairs that belong together, and the
hint then says how to allow them; a public suffix that is neither short nor listed here would join
strangers, so what counts is that a registry can only send its own credentials there.
"""

from __future__ import annotations

from ocipack.errors import Denied
from ocipack.stores.http.gate import parse_address
from ocipack.stores.http.url import Url, is_loopback

_SHARED = frozenset(
    {
        *("amazonaws.com", "aliyuncs.com", "appspot.com", "azure.com", "azurecr.io", "fly.dev"),
        *("azurewebsites.net", "cloudapp.net", "cloudfront.net", "digitaloceanspaces.com"),
        *("github.io", "gitlab.io", "googleapis.com", "herokuapp.com", "jfrog.io", "myqcloud.com"),
        *("netlify.app", "ngrok.io", "onrender.com", "pages.dev", "pkg.dev", "run.app"),
        *("vercel.app", "web.app", "windows.net", "workers.dev"),
    }
)
"""Domains whose names belong to strangers: one more label must be equal."""

_REGISTRAR = frozenset({"ac", "co", "com", "edu", "gob", "gov", "ltd", "net", "or", "org", "plc"})
_COUNTRY, _SHORT = 2, 3


def domain(host: str) -> str:
    """The part of a name that one owner has, by the rule above; the whole name if unsure."""
    labels = host.split(".")
    if parse_address(host) is not None or is_loopback(host) or len(labels) < 2:  # noqa: PLR2004 - a bare name
        return host
    second = labels[-2]
    country = len(labels[-1]) == _COUNTRY and (len(second) <= _SHORT or second in _REGISTRAR)
    shared = ".".join(labels[-2:]) in _SHARED
    if not country and not shared:
        return ".".join(labels[-2:])
    return ".".join(labels[-3:])


def check(
    realm: Url, registry: Url, allowed: frozenset[str], where: str = "realms in registries.yaml"
) -> None:
    """Refuse a token service that must not get the registry's credentials.

    1. It is asked by https; by http only when the registry itself is plain and both are loopback,
       or when it is that plain registry.
    2. Its host is the registry's, or has its registrable domain, or is in `allowed`, which a
       person writes at `where`.
    """
    plain = registry.scheme == "http" and (
        realm.origin == registry.origin or (is_loopback(realm.host) and is_loopback(registry.host))
    )
    if realm.scheme != "https" and not plain:  # (1)
        raise Denied(
            f"{registry.netloc} sends us to the token service {realm.shown}, and credentials do "
            "not go over plain HTTP",
            hint="the registry must name its token service by https",
        )
    related = realm.host == registry.host or domain(realm.host) == domain(registry.host)
    if not related and not allowed & {realm.host, realm.netloc}:  # (2)
        raise Denied(
            f"{registry.netloc} sends us to the token service {realm.shown}, a host that is not "
            "its own",
            hint=f"if {realm.host} really issues its tokens, list it under {where}",
        )
