"""Everything ocipack raises on purpose, and the exit code each one becomes.

OcipackError
├── Misuse              2   arguments, configuration, policy or references are malformed
├── Rejected            1   we looked and the answer is no; carries the Report
│   └── IntegrityError  1   complete, but not what its digest, size or format says
└── StoreError          3   we could not find out
    ├── NotFound        3   the place answered: there is no such content
    ├── Denied          3   the place knows us and says no, or does not know us (401, 403)
    └── Unavailable     3   worth another try: a body cut short, a full disk, a time-out

Anything else that reaches the command line is a bug in ocipack and exits 70; Ctrl-C exits 130,
SIGTERM 143. Malformed *arguments* are Misuse, malformed *content* is IntegrityError: a noun that
is asked to parse raises Misuse, and whoever reads untrusted bytes converts it (`malformed`).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ocipack.report import Report

_REASON = 300  # characters; the reason can quote content, which may be millions of them


class OcipackError(Exception):
    """Base of every deliberate error: one sentence, the thing it is about, and what to do.

    `hint` is printed on a line of its own. It says what the reader can change; it is empty when
    there is nothing to add. Neither it nor the message may ever hold a secret.
    """

    exit_code: ClassVar[int] = 3
    meaning: ClassVar[str] = "could not decide"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Misuse(OcipackError):
    """The caller gave us something malformed; trying again cannot help."""

    exit_code = 2
    meaning = "arguments, configuration, policy or references are malformed"


class Rejected(OcipackError):
    """We looked, and the answer is no. `report` says why, finding by finding."""

    exit_code = 1
    meaning = "we looked and the answer is no"

    def __init__(self, message: str, *, report: Report | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.report = report


class IntegrityError(Rejected):
    """Content is complete, but is not what its digest, size or format says."""

    meaning = "content is not what its digest, size or format says"


class StoreError(OcipackError):
    """A place could not answer, so nothing is known."""

    exit_code = 3
    meaning = "we could not find out"


class NotFound(StoreError):
    """The place answered: there is no such content."""

    meaning = "there is no such content"


class Denied(StoreError):
    """The place refused us: credentials are missing, wrong or too weak."""

    meaning = "credentials are missing, wrong or too weak"


class Unavailable(StoreError):
    """The place failed in a way that may pass: a cut body, a full disk, a time-out."""

    meaning = "the place failed in a way that may pass"


@contextmanager
def malformed(what: str, *, hint: str = "") -> Iterator[None]:
    """Turn what parsing of untrusted content can raise into IntegrityError about `what`.

    Only for code that reads content: a bug that raises one of these elsewhere must stay a bug.
    """
    try:
        yield
    except (Misuse, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        reason = f"{e.args[0]!r} is missing" if isinstance(e, KeyError) and e.args else str(e)
        cut = f"{reason[:_REASON]}…" if len(reason) > _REASON else reason
        raise IntegrityError(f"{what}: {cut}", hint=hint) from e
