"""Faults to plant in copying: what is carried along, in which order, what is looked at again."""

from __future__ import annotations

TESTS = [
    "tests/unit/test_copy.py",
    "tests/unit/test_copy_attached.py",
    "tests/unit/test_copy_closure.py",
    "tests/unit/test_copy_run.py",
    "tests/contract/test_store.py",
]

COPY, REGISTRY = "ocipack/copy/", "ocipack/stores/registry/"

FAULTS: list[tuple[str, str, str]] = [
    # what belongs to it
    (COPY + "survey.py", "fresh = self._walk.meets(part.target, depth)", "fresh = True"),
    (COPY + "survey.py", "if len(self._attached) > ATTACHED:", "if False:"),
    (COPY + "survey.py", "if len(listed) > ATTACHED:", "if False:"),
    (COPY + "survey.py", "if self._listed > LISTED:", "if False:"),
    (COPY + "survey.py", "self._gone.add(part.target.digest)", "pass"),
    (COPY + "survey.py", "self._walk.holds(target.size)", "pass"),
    (COPY + "survey.py", "elif child.is_manifest or not here:", "elif not here:"),
    (COPY + "survey.py", "linked = self._stands(name, target) if", "linked = False and"),
    (COPY + "survey.py", "return _layers(theirs) <= _layers(ours)", "return True"),
    (
        COPY + "survey.py",
        "return {(one.digest, tuple(sorted(one.annotations.items()))) for one in found.layers}",
        "return {(one.digest, ()) for one in found.layers}",
    ),
    (COPY + "plan.py", "if part.kind is Kind.SIGNATURE", "if part.is_attached"),
    (COPY + "plan.py", "part.subject.digest == self.root.digest", "True"),
    (COPY + "names.py", "if self._some or self._target:", "if True:"),
    (
        COPY + "names.py",
        "return known is None or name in known",
        "return bool(known and name in known)",
    ),
    # the order, and the last look
    (
        COPY + "delivery.py",
        "self._below(part.target for part in plan.missing if part.is_attached)",
        "set[Descriptor]()",
    ),
    (COPY + "delivery.py", "self._name_what_is_here()\n", "pass\n"),
    (COPY + "delivery.py", "self._attach()  # (4)", "pass"),
    (COPY + "delivery.py", "self._compare()  # (5)", "pass"),
    (COPY + "delivery.py", "if name not in self._plan.standing]", "]"),
    (COPY + "delivery.py", "if there != part.target.digest:", "if False:"),
    (COPY + "compare.py", "if not self._dest.exists(target):", "if False:"),
    (COPY + "compare.py", "if there != part.target.digest:", "if False:"),
    (COPY + "compare.py", "if part.target.digest not in listed]", "if False]"),
    # threads
    (
        COPY + "crew.py",
        "if self._first is not None:\n            return False",
        "if False:\n            return False",
    ),
    (COPY + "crew.py", "self._enter(key, other, its)", "other.end()"),
    (COPY + "transfers.py", "if len(under_way) >= self._jobs:", "if False:"),
    # at a registry
    (REGISTRY + "referrers.py", "if not missing:\n            return", "return"),
    (
        REGISTRY + "store.py",
        "new = self._lists is not None and tag not in self._lists",
        "new = self._lists is not None",
    ),
]
