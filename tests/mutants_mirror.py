"""Faults to plant in what mirrors and renames: each must make a test fail.

`FAULTS` holds (file, what stands there, what to put in its place); `tests/mutants.py` plants them.
"""

from __future__ import annotations

TESTS = [
    *("tests/unit/test_mirror_versions.py", "tests/unit/test_mirror_pattern.py"),
    *("tests/unit/test_mirror_select.py", "tests/unit/test_mirror_plan.py"),
    *("tests/unit/test_mirror_maps.py", "tests/unit/test_mirror_reader.py"),
    "tests/unit/test_mirror_platforms.py",
    *(
        "tests/chain/test_mirror.py",
        "tests/chain/test_mirror_whole.py",
        "tests/chain/test_rename.py",
    ),
]

MIRROR, COMMAND = "ocipack/mirror/", "ocipack/cli/commands/mirror.py"
RUN, PLAN = MIRROR + "run.py", MIRROR + "plan.py"
RENAME = "ocipack/pin/rename.py"

FAULTS: list[tuple[str, str, str]] = [
    # what is verified, and that it is
    (
        RUN,
        "if self.how.prove is None or (item.source.unsigned and not self.how.everything):",
        "if self.how.prove is None or item.source.unsigned:",
    ),
    (
        RUN,
        "return self.how.prove(self.places.source(item.source.bare), item.reference)",
        "return None",
    ),
    (RUN, "root = proof.descriptor if proof is not None else None", "root = None"),
    (COMMAND, "(decide if decides else verify)", "decide"),
    (
        COMMAND,
        "if not nothing and not all(source.unsigned for source in wanted.sources):",
        "if False:",
    ),
    (COMMAND, "elif wanted.policies and not trust.allow_unsigned:", "elif False:"),
    (COMMAND, "everything=trust.given", "everything=False"),
    # what stands at the target
    (RUN, "if now not in (None, digest) and not (", "if False and not ("),
    (RUN, "store.tag(root, result.name, was=result.before)", "store.tag(root, result.name)"),
    (RUN, "if self.how.full and plan.missing:", "if False:"),
    (RUN, "if now == digest and not self.how.full:", "if now is not None and not self.how.full:"),
    (RUN, "if item.settled and not self.how.full:", "if item.settled:"),
    (RUN, "if self.how.dry_run:", "if False:"),
    (RUN, "if needed and not plan.signatures:", "if False:"),
    (
        RUN,
        "lost = sorted(item.source.recorded - found) if item.source.attached else []",
        "lost: list[Digest] = []",
    ),
    (RUN, "return now if now != result.digest else None", "return None"),
    (RUN, 'error.hint = error.hint or (_SPARSE if plan.left_out else "")', "pass"),
    (
        RUN,
        "except OcipackError as error:\n            return Result",
        "except KeyError as error:\n            return Result",
    ),
    # what is planned
    (PLAN, "elif _content(known, resolve) != _content(item, resolve):", "elif False:"),
    (PLAN, "if shard.holds(item.identity)]", "]"),
    (
        PLAN,
        "replace(item, settled=True) if item.name in known and _never_moves(item) else item",
        "replace(item, settled=True) if item.name in known else item",
    ),
    (PLAN, "except (Rejected, StoreError) as error:", "except Rejected as error:"),
    (MIRROR + "select.py", "if _ATTACHED.fullmatch(tag):", "if False:"),
    (MIRROR + "select.py", "if len(left) < selection.min_tags:", "if False:"),
    (MIRROR + "select.py", "any(pattern.fits(tag) for pattern in selection.exclude)", "False"),
    (MIRROR + "select.py", 'value.replace("_", "+") if chart else value', "value"),
    (MIRROR + "relocate.py", 'name.startswith(f"{prefix}/")', "name.startswith(prefix)"),
    (MIRROR + "relocate.py", "found = replace(found, registry=found.registry.lower())", "pass"),
    (
        MIRROR + "relocate.py",
        'return f"{digest.algorithm}.{digest.hex}"[:128]',
        'return f"{digest.algorithm}-{digest.hex}"[:128]',
    ),
    (MIRROR + "versions.py", "if version.is_prerelease and not asked:", "if False:"),
    (
        MIRROR + "versions.py",
        "if version < least:\n        return False\n    if said == 0",
        "if said == 0",
    ),
    (MIRROR + "platforms.py", "if not wanted:", "if False:"),
    (MIRROR + "platforms.py", 'text.startswith(f"{one}/")', "text.startswith(one)"),
    (MIRROR + "report.py", "drifted = drifted or one.outcome is Outcome.DRIFTED", "pass"),
    (MIRROR + "maps.py", "if known.target != pair.target:", "if False:"),
    (MIRROR + "maps.py", "if one.flat or not target.endswith(tail):", "if False:"),
    (MIRROR + "maps.py", "if known.flat and not pair.flat:", "if False:"),
    # patterns have bounds (two faults more would be caught by never ending)
    (MIRROR + "pattern.py", "if len(self._moves) >= MEMO:", "if False:"),
    (MIRROR + "expression.py", "if len(self.steps) >= SIZE:", "if False:"),
    (MIRROR + "expression.py", "if depth > DEPTH:", "if False:"),
    # names in files
    (RENAME, "elif found and _is_overridden(place, overridden):", "elif False:"),
    (RENAME, "if found and find.is_sealed(by_index[place.document].document.value):", "if False:"),
    (RENAME, "elif found and not place.counts:", "elif False:"),
    (RENAME, "if not halves:", "if True:"),
    (
        RENAME,
        "target = mirrors.below(name) if holds_charts else _mirrored(name, mirrors)",
        "target = mirrors.below(name)",
    ),
    (RENAME, "if place.site.place == ARGO and not before:", "if False:"),
    ("ocipack/pin/mirrors.py", "if len(found) == 1 else None", "if found else None"),
]
