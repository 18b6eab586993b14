"""Faults to plant in what pins images and keeps locks: each must make a test fail.

`FAULTS` holds (file, what stands there, what to put in its place); `tests/mutants.py` plants them.
"""

from __future__ import annotations

TESTS = [
    *("tests/unit/test_edit.py", "tests/unit/test_pin_rewrite.py", "tests/unit/test_pin_find.py"),
    *(
        "tests/unit/test_lock.py",
        "tests/unit/test_rewriting.py",
        "tests/unit/test_pin_resolve.py",
        "tests/chain/test_pin.py",
    ),
]

EDIT, PIN, IMAGES = "ocipack/k8s/edit.py", "ocipack/pin/", "ocipack/k8s/images/"
FILES, COMMANDS = "ocipack/files/rewriting.py", "ocipack/cli/commands/"

FAULTS: list[tuple[str, str, str]] = [
    (EDIT, "shift = len(_BOM) if", "shift = 0 if"),
    (EDIT, "self.text[:index].encode()", "self.text[:index]"),
    (EDIT, 'if slot.style in ("|", ">"):', "if False:"),
    (EDIT, 'if "\\n" in raw or "\\r" in raw:', "if False:"),
    (EDIT, "if reads_as_text(slot.text) and reads_as_text(slot.text + tail):", "if True:"),
    (EDIT, "if not _NO_QUOTE.fullmatch(new) or not _SAFE.fullmatch(new):", "if False:"),
    (EDIT, "if intended.get((index, path)) != value:", "if (index, path) not in intended:"),
    (EDIT, "elif type(old) is not type(new) or old != new:", "elif old != new:"),
    (EDIT, 'end = rest["end"] or (', 'end = "\\n" or ('),
    (EDIT, "if slot.in_flow:", "if False:"),
    (
        EDIT,
        "value = text if reads_as_text(text) else f'\"{text}\"'\n    if slot.in",
        "value = text\n    if slot.in",
    ),
    (
        PIN + "rewrite.py",
        "return None if edit.strays(page.sheets, data, intended) else data",
        "return data",
    ),
    (PIN + "rewrite.py", "if now == change.text:", "if change.edit is not None:"),
    (PIN + "rewrite.py", "for _ in range(READINGS):", "while True:"),
    (
        PIN + "run.py",
        "if one.status is Status.OPEN and one.counts:\n            hint",
        "if False:\n            hint",
    ),
    (PIN + "run.py", "if warns else said", "if False else said"),
    (PIN + "run.py", 'if one.site.kind == "image" and answer', "if answer"),
    (PIN + "run.py", "3 if isinstance(e, StoreError) else e.exit_code", "0"),
    (PIN + "scan.py", "if written in renames.stand_ins:", "if False:"),
    (PIN + "scan.py", "if len(new) > 1:", "if False:"),
    (PIN + "scan.py", "set_by_name - names.keys()", "set_by_name"),
    (PIN + "scan.py", "and not has_registry(one.name):", ":"),
    (PIN + "scan.py", "if _is_template(name, known):", "if False:"),
    (
        PIN + "resolve.py",
        "unique = sorted(set(references), key=str)",
        "unique = [*references, *references]",
    ),
    (PIN + "resolve.py", "if len(found) > 1:\n        digests", "if False:\n        digests"),
    (PIN + "standing.py", "if there is None:", "if False:"),
    (
        PIN + "standing.py",
        "    if now != digest:\n        return Verdict(entry, Standing.MOVED, now)",
        "    if False:\n        return Verdict(entry, Standing.MOVED, now)",
    ),
    (PIN + "standing.py", "if digest not in here]", "if False]"),
    (PIN + "standing.py", 'if one.via == "tag" and not', 'if one.via != "tag" and not'),
    (PIN + "locked.py", "for reference in kept:", "for reference in ():"),
    (PIN + "locked.py", "if said and digest not in said else None", "if False else None"),
    (PIN + "mirrors.py", "reverse=True", "reverse=False"),
    (
        PIN + "mirrors.py",
        'reference.bare.startswith(f"{name}/")',
        "reference.bare.startswith(name)",
    ),
    (IMAGES + "find.py", "if is_sealed(value):", "if False:"),
    (IMAGES + "find.py", "if kind in kinds.SCHEMAS or group in kinds.PATTERNS:", "if False:"),
    (IMAGES + "values.py", "if not has_registry(base) and not is_open(base):", "if False:"),
    (IMAGES + "values.py", "abs(tag) < _HELM_WHOLE", "True"),
    (
        IMAGES + "values.py",
        "if isinstance(tag, str) and said in (None, tag):",
        "if isinstance(tag, str):",
    ),
    (IMAGES + "values.py", "if said in (None, plain) and", "if"),
    (IMAGES + "kustomize.py", 'elif entry.get("tagSuffix"):', "elif False:"),
    (IMAGES + "flux.py", 'elif reference.get("semver"):', "elif False:"),
    (IMAGES + "flux.py", "if override and", "if False and"),
    (FILES, "if self._content(parent) != before:", "if False:"),
    (FILES, "os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK", "os.O_RDONLY | os.O_NONBLOCK"),
    (FILES, "_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle", "_DIRECTORY, dir_fd=handle"),
    (FILES, "if entry.is_symlink() or entry.name == _SKIPPED:", "if entry.name == _SKIPPED:"),
    (FILES, "if entry.is_symlink() or entry.name == _SKIPPED:", "if entry.is_symlink():"),
    (FILES, "os.fchmod(handle, stat.S_IMODE(mode))", "pass"),
    (FILES, "                    os.unlink(new, dir_fd=parent)", "                    pass"),
    ("ocipack/k8s/yaml/strict.py", "if pair.key not in known:", "if False:"),
    ("ocipack/lock.py", "if one == other:", "if False:"),
    ("ocipack/k8s/yaml/writing.py", "and _is_text(text):", "and True:"),
    (COMMANDS + "pin.py", "if how.check and not how.diff:", "if False:"),
    (COMMANDS + "pin.py", "if (status.st_dev, status.st_ino) not in seen:", "if True:"),
    (COMMANDS + "pin.py", "if not self.how.diff:", "if True:"),
    (
        COMMANDS + "pin.py",
        "everything = bool(path) and not self.how.offline",
        "everything = bool(path)",
    ),
    (COMMANDS + "lock.py", "code = code or 3", "code = 3"),
    (COMMANDS + "lock.py", "code = 1 if kinds & {", "code = 0 if kinds & {"),
]
