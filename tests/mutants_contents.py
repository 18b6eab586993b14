"""Faults to plant in what finds and judges the names inside an artifact; see `tests/mutants.py`."""

from __future__ import annotations

TESTS = [
    *("tests/unit/test_contents_inside.py", "tests/unit/test_contents_policy.py"),
    "tests/unit/test_sources.py",
]

NAMED, INSIDE = "ocipack/verify/named.py", "ocipack/verify/inside.py"
POLICY, PLACES = "ocipack/trust/policy/contents.py", "ocipack/trust/policy/places.py"
SOURCES = "ocipack/flux/sources.py"

FAULTS: list[tuple[str, str, str]] = [
    (NAMED, 'whole = {**frame, **item} if kind != "List" else item', "whole = item"),
    (NAMED, "        if not text:\n", "        if False:\n"),
    (NAMED, "            if runs and _in_pod(here):", "            if _in_pod(here):"),
    (NAMED, "            if runs and _in_pod(here):", "            if False:"),
    (NAMED, "return bool(container) or", "return bool(container) and"),
    (NAMED, "elif IMAGE_KEY.fullmatch(key):", "elif False:"),
    (NAMED, "for key in _TEXTS.get(kind, ()) if not resource.group):", "for key in ()):"),
    (NAMED, 'if isinstance(value.get("sops"), Mapping):', "if False:"),
    (NAMED, "any(spec.get(key) for key in _PATCHES):", "False:"),
    (INSIDE, "for dialect in Dialect:", "for dialect in (Dialect.FLUX,):"),
    (INSIDE, 'wide or b"\\\\" in data or all(mark.encode() in data for mark in _CLAIM)', "False"),
    (INSIDE, "if self._sizes[name] > MANIFEST:", "if False:"),
    (INSIDE, "if self._places > PLACES:", "if False:"),
    (INSIDE, "if len(self._done) > ROOTS:", "if False:"),
    (INSIDE, "if not self._walk.report.ok:", "if False:"),
    (INSIDE, "key = (one.part, document.line, pointer)", "key = (one.part, 0, pointer)"),
    (INSIDE, "if not made.objects and not made.parts and not made.findings:", "if False:"),
    (INSIDE, "if link not in self._sources:", "if False:"),
    (INSIDE, "for name in self._sizes.keys() - self._sorted.arriving:", "for name in ():"),
    (INSIDE, "for name in self._sorted.arriving - listed:", "for name in ():"),
    (INSIDE, "            (where,) = known\n", "            where = sorted(known)[0]\n"),
    (INSIDE, 'or text.startswith("/"):', "or False:"),
    (POLICY, "today is not None and today <= one.until", "True"),
    (POLICY, "today <= one.until", "today < one.until"),
    (POLICY, "    if part.reason:\n", "    if False:\n"),
    (POLICY, "    if not _allowed(contents, part):\n", "    if False:\n"),
    (POLICY, "if contents.require_digest and not part.pinned and not followed:", "if False:"),
    (POLICY, "and not part.pinned and not followed:", "and not part.pinned:"),
    (POLICY, "followed = _covered(part, (), contents.follow)", "followed = bool(contents.follow)"),
    (POLICY, "if contents.verified and part.ranges:", "if False:"),
    (POLICY, "contents.verified and part.reference is not None", "False"),
    (POLICY, "        return bool(contents.sources or contents.follow)\n", "        return True\n"),
    (
        POLICY,
        "any(g.covers(found) if found else g.text == EVERYTHING for g in images)",
        "any(g.covers(found) if found else True for g in images)",
    ),
    (
        POLICY,
        "any(g.covers(where) if where else g.text == EVERYTHING for g in sources)",
        "any(g.covers(where) if where else True for g in sources)",
    ),
    (POLICY, "if not self.images and not self.sources and not self.follow:", "if False:"),
    (POLICY, "if not named or not self.owner.strip() or not self.reason.strip():", "if not named:"),
    (PLACES, '{".", ".."} & set(parts)', "False"),
    (PLACES, 'or "**" in host:', "or False:"),
    (SOURCES, '{".", ".."} & set(segments)', "False"),
    (SOURCES, "scheme not in SCHEMES", "False"),
    (SOURCES, 'host = match["host"].lower()', 'host = match["host"]'),
    (SOURCES, "reference.at(Digest.parse(digest))", "reference"),
    (SOURCES, "pinned=_COMMIT.fullmatch(commit) is not None,", "pinned=bool(commit),"),
    (SOURCES, "pinned=_COMMIT.fullmatch(version) is not None,", "pinned=bool(version),"),
    (SOURCES, "pinned=own or exact", "pinned=own or bool(version)"),
    (SOURCES, 'if address is not None and address.scheme != "oci":', "if False:"),
]  # fmt: skip
