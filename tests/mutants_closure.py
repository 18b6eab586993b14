"""Faults to plant in `verify --contents` and `--lock` as whole commands; see `tests/mutants.py`."""

from __future__ import annotations

TESTS = ["tests/chain/test_contents.py", "tests/chain/test_verify_lock.py"]

CONTENTS, INSIDE = "ocipack/verify/contents.py", "ocipack/verify/inside.py"
CLI, SHIP = "ocipack/cli/contents.py", "ocipack/cli/commands/ship.py"
LOCK = "ocipack/cli/commands/lock.py"

FAULTS: list[tuple[str, str, str]] = [
    (CONTENTS, "if one.contents.refuse_unseen)", "if False)"),
    (CONTENTS, "    if not wanted:\n", "    if False:\n"),
    (CONTENTS, "if len(names) > IMAGES:", "if False:"),
    (CONTENTS, "content=spot.content)", "content=False)"),
    (CONTENTS, "for v in (REFUSED, UNDECIDED, EXCUSED, ALLOWED)", "for v in (EXCUSED, ALLOWED)"),
    (CONTENTS, "if isinstance(answer, OcipackError):", "if False:"),
    (CONTENTS, "REFUSED if isinstance(answer, Rejected) else UNDECIDED", "UNDECIDED"),
    (CONTENTS, "verdict == UNDECIDED and not one.warns", "False"),
    (CONTENTS, "        if one.warns:\n", "        if True:\n"),
    (CONTENTS, "if not found or not all(one.warns for one in wanted):", "if False:"),
    (CONTENTS, "    if refused or unread:\n", "    if unread:\n"),
    (CONTENTS, "for one in question.asked", "for one in policy.policies"),
    (INSIDE, "if e.report is not None:  # it", "if False:  # it"),
    (INSIDE, "if link is None or own in", "if link is None and own in"),
    (INSIDE, "if link is None or own in self._sources.get(link, {own}):", "if True:"),
    (INSIDE, "    search.follow()\n", ""),
    (INSIDE, "    search.stand()\n", ""),
    (CLI, '(Asked("key", PINNED),) if by_key else', ""),
    (CLI, "return Spot(self.source, content=True)", "return Spot(self.source)"),
    (CLI, "at = self.mirrors.where(reference)", "at = reference"),
    (CLI, "if Path(name).name != ignore.IGNORE_FILE:", "if True:"),
    (CLI, "judgement.error is not None and not isinstance(judgement.error, Rejected)", "False"),
    (CLI, "judgement.error is None and not allow_exempted", "False"),
    (SHIP, "report + self._inside(artifact, where, wanted) if wanted else report", "report"),
    (SHIP, "replace(job.checking, allow_tags=True) if wanted else", ""),
    (LOCK, "name = entry.reference.at(entry.content.digest)", "name = entry.reference"),
    (LOCK, "(Location(REGISTRY, name), Location", "(Location(REGISTRY, where), Location"),
]  # fmt: skip
