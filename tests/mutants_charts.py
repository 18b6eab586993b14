"""Faults in what reads charts, and vendors: see tests/mutants.py."""

from __future__ import annotations

HELM, VENDOR = "ocipack/helm/", "ocipack/vendor/"
STORE, DOWNLOADS = "ocipack/stores/charts.py", "ocipack/stores/downloads.py"
GIT, OWNED = "ocipack/tools/fetching.py", "ocipack/files/owned.py"

TESTS = [
    "tests/unit/test_helm_chart.py",
    "tests/unit/test_helm_index.py",
    "tests/unit/test_helm_images.py",
    "tests/unit/test_charts_store.py",
    "tests/unit/test_chart_places.py",
    "tests/unit/test_vendor.py",
    "tests/chain/test_charts.py",
    "tests/chain/test_chart_images.py",
    "tests/chain/test_vendor.py",
]

FAULTS: list[tuple[str, str, str]] = [
    # which archive is believed
    (STORE, "        if digest is None or Digest.of(raw) == digest:", "        if True:"),
    (
        STORE,
        "        if (said.name, said.version) != (name, release.version):",
        "        if False:",
    ),
    (STORE, "        if release.digest is None:", "        if False:"),
    (STORE, "            if found.digest == digest:", "            if True:"),
    (STORE, "if len({(one.digest, one.version) for one in found}) > 1:", "if False:"),
    (STORE, "and not self._downloads.is_plain(url):", "and False:"),
    (STORE, "while sum(map(len, self._held.values())) > HELD:", "while False:"),
    (STORE, "frozenset({403, 404, 410})", "frozenset({403, 404, 410, 500})"),
    (
        STORE,
        "if answer.status == OK and raw.startswith(SIGNED) else",
        "if answer.status == OK else",
    ),
    (HELM + "chart.py", "or str(content.digest).encode() not in provenance", ""),
    (HELM + "chart.py", "if not slash or (top and first != top):", "if not slash:"),
    (HELM + "chart.py", "        if entry.size > limit:", "        if False:"),
    (HELM + "chart.py", "    if len(archive) > limits.layer:", "    if False:"),
    (HELM + "chart.py", "sorted(layers, key=lambda one: str(one.digest))", "layers"),
    (HELM + "metadata.py", "    if len(data) > BYTES:", "    if False:"),
    (HELM + "metadata.py", ' or "/" in name or', " or"),
    (HELM + "index.py", "    if len(data) > BYTES:", "    if False:"),
    (HELM + "index.py", "if self._releases > RELEASES:", "if False:"),
    (HELM + "index.py", "            if kind is AliasEvent:", "            if False:"),
    (HELM + "index.py", "if depth > limits.DEPTH:", "if False:"),
    (HELM + "index.py", "if key != name or name in found:", "if False:"),
    (HELM + "index.py", "            if name in found:", "            if False:"),
    (HELM + "index.py", "or not _is_text(version)", ""),
    (HELM + "images.py", "if self.charts < 0 or depth > DEPTH:", "if self.charts < 0:"),
    (HELM + "images.py", "if self.charts < 0 or depth > DEPTH:", "if depth > DEPTH:"),
    (HELM + "images.py", "        if self.room < 0:", "        if False:"),
    (HELM + "images.py", "if one.is_resolved or not _is_known(one, known)", ""),
    # what is sent where
    (DOWNLOADS, 'if url.scheme == "http" and not self.is_plain(url):', "if False:"),
    (DOWNLOADS, "self._login.get(url.netloc)", "next(iter(self._login.values()), None)"),
    (
        DOWNLOADS,
        "        if total > limit:\n            answer.drop()",
        "        if False:\n            answer.drop()",
    ),
    (
        DOWNLOADS,
        "            if total > limit:\n                return raw",
        "            if False:\n                return raw",
    ),
    # what git may do, and what of it is taken
    (GIT, '"GIT_ALLOW_PROTOCOL": parts.scheme,', ""),
    (
        GIT,
        '"GIT_CONFIG_GLOBAL": os.devnull,',
        '"GIT_CONFIG_GLOBAL": os.path.expanduser("~/.gitconfig"),',
    ),
    (GIT, "            if mode in _KINDS:  # (3)", "            if False:"),
    (GIT, "        if real.decode().strip() != commit:", "        if False:"),
    (GIT, "            if not wanted(name):", "            if False:"),
    (GIT, "if _size(self._private) > DISK:", "if False:"),
    (GIT, "if time.monotonic() > until:", "if False:"),
    (
        GIT,
        "                os.killpg(process.pid, signal.SIGKILL)",
        "                process.kill()",
    ),
    (GIT, "if len(entries) > limits.entries or", "if"),
    (GIT, "or sum(one.size for one in entries) > limits.tar:", ":"),
    (GIT, "        if len(commits) > 1:", "        if False:"),
    # what is written
    (VENDOR + "run.py", "    if pin and resolved != pin:", "    if False:"),
    (VENDOR + "run.py", "if there and there - known_files and not how.force:  # (3)", "if False:"),
    (VENDOR + "run.py", "    if foreign and not how.force:  # (3)", "    if False:"),
    (VENDOR + "run.py", "and not how.update else None", "else None"),
    (VENDOR + "lock.py", 'and item.pin in ("", self.resolved)', ""),
    (VENDOR + "check.py", "elif found.sha256 != wanted.sha256:", "elif False:"),
    (VENDOR + "check.py", "        elif found != wanted:", "        elif False:"),
    (VENDOR + "check.py", "    for name in sorted(here):", "    for name in ():"),
    (VENDOR + "check.py", "lock.entries.keys() - named", "set()"),
    (VENDOR + "model.py", '    if "@" in host:', "    if False:"),
    (VENDOR + "model.py", "            if other.startswith(one):", "            if False:"),
    (VENDOR + "model.py", '    if not text.startswith(("https://", "http://")) or', "    if"),
    (OWNED, "        if not stat.S_ISDIR(mode):", "        if False:"),
    # what helm may do
    ("ocipack/cli/charts.py", "if self.render == ALWAYS:", "if False:"),
    ("ocipack/cli/charts.py", "and one.covers(Confidence.LIKELY)", ""),
    (
        "ocipack/tools/bounded.py",
        "env=self._environment(),",
        "env={**os.environ, **self._environment()},",
    ),
]
