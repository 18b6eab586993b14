"""Faults around mirrors, logins, checks of registries and scripts on oras-py."""

from __future__ import annotations

STORES = "ocipack/stores/"
HTTP, AUTH, REGISTRY = (f"{STORES}{room}/" for room in ("http", "auth", "registry"))

TESTS = [
    "tests/unit/test_mirrored.py",
    "tests/unit/test_pace_and_tally.py",
    "tests/unit/test_oras_adapter.py",
    "tests/chain/test_registries*.py",
]

FAULTS: list[tuple[str, str, str]] = [
    # mirrors
    (REGISTRY + "mirrored.py", 'if ":" not in name and not copy.believed:  # (3)', "if False:"),
    (
        REGISTRY + "mirrored.py",
        "        except IntegrityError as e:  # (1)\n",
        "        except ZeroDivisionError as e:\n",
    ),
    (REGISTRY + "mirrored.py", "            if not answered:  # (4)\n", "            if False:\n"),
    (REGISTRY + "mirrored.py", "answered = answered or copy.believed", "answered = True"),
    (REGISTRY + "mirrored.py", "kept = piece[done:]", "kept = piece"),
    (
        REGISTRY + "mirrored.py",
        "absent = e if copy.believed and isinstance(e, NotFound) else absent",
        "absent = e if isinstance(e, NotFound) else absent",
    ),
    (REGISTRY + "mirrored.py", "if type(e) in (Unavailable, Silent):", "if False:"),
    (REGISTRY + "registries.py", "self.transport.admit(client.base)", "pass"),
    ("ocipack/stores/http/transport.py", "self._named = Gate(listed)", "self._named = Gate()"),
    (REGISTRY + "registries.py", "mirrors = () if writes else", "mirrors ="),
    (REGISTRY + "registries.py", "self.transport.admit(client.base)", "None"),
    # what is written down
    (
        STORES + "auth/keeping.py",
        "            if self._raw() != before:\n",
        "            if False:\n",
    ),
    (STORES + "auth/keeping.py", "for _ in range(TRIES):", "for _ in range(TRIES * 2):"),
    (STORES + "auth/keeping.py", "if normal(name) != normal(registry)", "if name != registry"),
    ("ocipack/files/replacing.py", "target = os.path.realpath(path)", "target = path"),
    ("ocipack/files/replacing.py", "os.fchmod(file.fileno(), mode)", "None"),
    ("ocipack/cli/registries.py", "mode=0o600, parents=0o700", "mode=0o644, parents=0o755"),
    (
        "ocipack/cli/commands/login.py",
        "    proven = prove(app.registries.trial(name, given), given)\n",
        "    proven = True\n",
    ),
    (REGISTRY + "probe.py", "    if denied is not None:\n        raise denied\n", ""),
    # scripts on oras-py
    (
        STORES + "oras.py",
        "if hasher is not None and expected is not None and hasher.hexdigest() != expected.hex:",
        "if False:",
    ),
    (STORES + "oras.py", "    check_digest(answer, Digest.of(raw))\n", ""),
    (STORES + "oras.py", "                Path(fresh).unlink()\n", "                pass\n"),
    (STORES + "oras.py", "self.auth = _Silent()", "pass"),
    (STORES + "oras.py", """if f'realm="https://{registry}/"' not in challenge:""", "if False:"),
    # probes
    (
        REGISTRY + "probe_writing.py",
        '"PUT", f"manifests/{target.digest}", None',
        '"PUT", "manifests/check", None',
    ),
    (REGISTRY + "probe_writing.py", "if scratch.manifests and api:", "if scratch.manifests:"),
    (
        REGISTRY + "probe_writing.py",
        "for target in reversed(scratch.manifests):",
        "for target in ():",
    ),
    # limits and counts
    (HTTP + "pace.py", "        if begins > now:\n", "        if False:\n"),
    (HTTP + "tally.py", "if host not in self._hosts and len(self._hosts) >= HOSTS:", "if False:"),
    (HTTP + "tally.py", "host = at.url.netloc", "host = at.url.text"),
]
