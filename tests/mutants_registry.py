"""Faults in `ocipack/stores` for registries: see tests/mutants.py."""

from __future__ import annotations

HTTP, AUTH, REGISTRY = (f"ocipack/stores/{room}/" for room in ("http", "auth", "registry"))

TESTS = [
    "tests/unit/test_registry_http.py",
    "tests/unit/test_registry_auth.py",
    "tests/unit/test_registry_store.py",
    "tests/contract/test_store.py",
]

FAULTS: list[tuple[str, str, str]] = [
    # where we may be sent
    (HTTP + "transport.py", 'url.scheme == "https" and target.scheme != "https"', "False"),
    (HTTP + "transport.py", "outward(target.host, target.host)", "pass"),
    (
        HTTP + "transport.py",
        "                outward(url.host, address)\n",
        "                pass\n",
    ),
    (HTTP + "transport.py", "if target.origin != url.origin:  # (4)", "if False:"),
    (
        HTTP + "transport.py",
        "if target.origin != url.origin:  # (4)",
        "if target.host != url.host:",
    ),
    (HTTP + "transport.py", '{"GET", "HEAD"}', '{"GET", "HEAD", "PUT", "POST"}'),
    (HTTP + "transport.py", "REDIRECTS: Final = 3", "REDIRECTS: Final = 4"),
    (HTTP + "transport.py", "self._gate.name(url.host, url.port)", "pass"),
    (HTTP + "transport.py", "gate.address(url.host, url.port, address)", "pass"),
    (HTTP + "transport.py", "not elsewhere and target.origin != url.origin", "False"),
    (HTTP + "transport.py", "self._may_lead(sent_by, url)", "pass"),
    (HTTP + "transport.py", "if is_loopback(secure.host) and not known", "if not known"),
    (HTTP + "gate.py", "raise _refused(host, port)  # (1)", "return"),
    (HTTP + "gate.py", "if found.is_link_local or", "if"),
    (HTTP + "gate.py", "if not listed and not self._within(address):  # (3)", "if False:"),
    (HTTP + "gate.py", 'if listed == "wildcard" and', "if False and"),
    (HTTP + "gate.py", "        return found.ipv4_mapped\n", "        return found\n"),
    (HTTP + "url.py", "parts.username is not None or parts.password is not None", "False"),
    (HTTP + "url.py", "if name in _HARMLESS]", "if name]"),
    (HTTP + "url.py", "not _TARGET.fullmatch(self.path + self.query)", "False"),
    (HTTP + "settings.py", "if not chosen or is_loopback(host):", "if not chosen:"),
    # what is read, and for how long we wait
    (HTTP + "answer.py", "            if total > limit:", "            if False:"),
    (HTTP + "answer.py", "if len(found) > ERROR_LIMIT:", "if False:"),
    (HTTP + "patience.py", "e.after is not None and e.after > self.limit", "False"),
    # whom we trust
    (HTTP + "tls.py", "ssl.create_default_context()", "ssl._create_unverified_context()"),
    (HTTP + "tls.py", "context.load_verify_locations(cafile=file)", "pass"),
    # who sees credentials
    (AUTH + "realm.py", 'if realm.scheme != "https" and not plain:  # (1)', "if False:"),
    (AUTH + "realm.py", "if not related and not allowed", "if False and not allowed"),
    (AUTH + "realm.py", "if not country and not shared:", "if not shared:"),
    (AUTH + "realm.py", "if not country and not shared:", "if not country:"),
    (AUTH + "tokens.py", "elsewhere=False)", "elsewhere=True)"),
    (AUTH + "tokens.py", "or not re.fullmatch(_USABLE, token)", ""),
    (AUTH + "tokens.py", "or now() >= slot.until", ""),
    (AUTH + "tokens.py", 'return better if better != sent else ""', "return better"),
    (AUTH + "config.py", "key = normal(registry)", 'key = normal(registry).partition(":")[0]'),
    (AUTH + "config.py", "if (helper, registry) not in self._asked:", "if True:"),
    (AUTH + "helper.py", "env=dict(self.environment)", "env=None"),
    (AUTH + "helper.py", "if not re.fullmatch(_NAME, name):", "if False:"),
    (REGISTRY + "client.py", "own = url.origin == self.base.origin", "own = True"),
    (REGISTRY + "client.py", "url.origin == self.base.origin", "url.host == self.base.host"),
    (
        REGISTRY + "refusal.py",
        'code, message = code.replace(secret, "***"), message.replace(secret, "***")',
        "pass",
    ),
    (REGISTRY + "refusal.py", 'printable(" ".join(message.split()), 200)', "message"),
    # what is believed
    (REGISTRY + "manifests.py", "if asked is not None and digest != asked:  # (1)", "if False:"),
    (REGISTRY + "manifests.py", "    check_digest(answer, digest)  # (2)", "    pass"),
    (REGISTRY + "manifests.py", "            check_digest(answer, written)", "            pass"),
    (REGISTRY + "upload.py", "    check_digest(answer, target.digest)", "    pass"),
    (REGISTRY + "upload.py", "target.check(source.fetch(target))", "iter(source.fetch(target))"),
    (REGISTRY + "upload.py", "answer.status == CREATED", "answer.status in (CREATED, ACCEPTED)"),
    (REGISTRY + "upload.py", "at.client.features.self_mount = False", "pass"),
    (REGISTRY + "store.py", "target.check(_stream(answer, target))", "_stream(answer, target)"),
    (
        REGISTRY + "store.py",
        "target.check([self.at.client.patience",
        "iter([self.at.client.patience",
    ),
    (REGISTRY + "store.py", "return self._here[target.digest] == target.size", "return True"),
    (REGISTRY + "store.py", "answer.length is not None and answer.length != target.size", "False"),
    (REGISTRY + "store.py", "self._new or surely or not self._here", "True"),
    (REGISTRY + "store.py", "self._new or surely or not self._here", "self._new"),
    (REGISTRY + "store.py", "target.check(source.fetch(target))", "source.fetch(target)"),
    (REGISTRY + "store.py", "elif not self._is_here(target.digest):", "else:"),
    (REGISTRY + "store.py", "asked is not None and found.digest != asked", "False"),
    # tags and listings
    (REGISTRY + "store.py", "if now != was:", "if False:"),
    (REGISTRY + "store.py", "if now == target.digest:", "if False:"),
    (REGISTRY + "store.py", 'with self.at.client.busy(f"{self.at.name}:{name}"):', "if True:"),
    (REGISTRY + "referrers.py", "if features.referrers and said ==", "if said =="),
    (REGISTRY + "referrers.py", "seen = {subject}", "seen = set()"),
    (REGISTRY + "referrers.py", "if hasher.hexdigest() == subject.hex:", "if False:"),
    (
        REGISTRY + "referrers.py",
        'answer.header("Content-Type").strip() == INDEX',
        "answer.media_type == INDEX",
    ),
    (REGISTRY + "referrers.py", "ours = {**entries, **ours}", "ours = dict(ours)"),
    (REGISTRY + "referrers.py", "for _ in range(ROUNDS):", "for _ in range(1):"),
    (REGISTRY + "referrers.py", "and not refusal.is_new_repository", ""),
    (
        REGISTRY + "referrers.py",
        'answer.media_type != INDEX and document.get("mediaType") != INDEX',
        "False",
    ),
    (REGISTRY + "referrers.py", "entry.is_manifest and", ""),
    (REGISTRY + "pages.py", "if url.origin != at.client.base.origin:", "if False:"),
    (REGISTRY + "pages.py", "if url.target in seen:", "if False:"),
]
