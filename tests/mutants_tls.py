"""Faults around whom we trust to be which registry."""

from __future__ import annotations

STORES = "ocipack/stores/"
HTTP, AUTH = f"{STORES}http/", f"{STORES}auth/"

TESTS = [
    "tests/unit/test_registries_file.py",
    "tests/chain/test_registries.py",
    "tests/unit/test_tls.py",
    "tests/unit/test_tls_hints.py",
]

FAULTS: list[tuple[str, str, str]] = [
    (
        HTTP + "tls.py",
        "ssl.create_default_context(cafile=host.authorities)",
        "ssl.create_default_context()",
    ),
    (HTTP + "tls.py", "if host.authorities:", "if False:"),
    (HTTP + "tls.py", 'if key.with_suffix(".cert") not in certificates:', "if False:"),
    (HTTP + "tls.py", "raise _Encrypted", 'return ""'),
    (
        HTTP + "transport.py",
        "return self._trust(self.settings.ca_file, place, said)",
        'return self._trust(self.settings.ca_file, place, Host("x.example"))',
    ),
    (
        HTTP + "transport.py",
        "known = bool(said.is_secure or self.settings.ca_file)",
        "known = bool(self.settings.ca_file)",
    ),
    (HTTP + "transport.py", "                self._gate.name(url.host, url.port)\n", ""),
    (
        HTTP + "transport.py",
        "            return None\n        if at.url.scheme",
        "            pass\n        if at.url.scheme",
    ),
    (HTTP + "transport.py", 'proxy="" if said.connect else proxy', "proxy=proxy"),
    (
        HTTP + "pools.py",
        "(route.context if ours else None) or _believing()",
        "_believing()",
    ),
    (HTTP + "pools.py", "            self._check(made.getpeername()[0])\n", "            pass\n"),
    (
        HTTP + "settings.py",
        'name = registry.lower().removesuffix(":443")',
        'name = registry.lower().partition(":")[0]',
    ),
    (
        HTTP + "host.py",
        "if self.plain and (self.authorities or self.certificate or self.server_name):",
        "if False:",
    ),
    (HTTP + "host.py", "if bool(self.certificate) != bool(self.key):", "if False:"),
    (STORES + "hosts.py", "if host.name in found:", "if False:"),
    (STORES + "hosts.py", "if len(listed) > REGISTRIES:", "if False:"),
    (
        AUTH + "tokens.py",
        "allowed = settings.realms | settings.host(self._registry).realms",
        "allowed = settings.realms",
    ),
]
