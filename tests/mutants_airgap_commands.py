"""Faults to plant in the commands that carry content across an air gap: a test must fail for each.

`FAULTS` holds (file, what stands there, what to put in its place); `tests/mutants.py` plants them.
"""

from __future__ import annotations

TESTS = ["tests/chain/test_airgap.py"]

ARCHIVES, SAVING = "ocipack/cli/archives.py", "ocipack/cli/saving.py"
LOADING = "ocipack/cli/loading.py"

FAULTS: list[tuple[str, str, str]] = [
    (ARCHIVES, "files.check(app.console.moved)", "pass"),
    (ARCHIVES, "for target in left_out if since else ():", "for target in ():"),
    (ARCHIVES, "if site.since not in (None, before.digest):", "if False:"),
    (ARCHIVES, "(decide if lenient else verify)", "decide"),
    (ARCHIVES, "    if trust.given:\n        raise Misuse", "    if False:\n        raise Misuse"),
    (ARCHIVES, "if not trust.allow_unsigned:", "if trust.given:"),
    (LOADING, "if all(one.outcome in PLACED for one in results):", "if True:"),
    (SAVING, "if found.setdefault(name, content) != content:", "if False:"),
    (SAVING, "if found < SMALLEST:", "if False:"),
    (SAVING, "confine(app, inputs.project,", "(app, inputs.project,"),
]
