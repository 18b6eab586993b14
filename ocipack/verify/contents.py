"""The closure of trust: everything that an artifact names inside is pinned and allowed.

An artifact whose signature holds can still name an image by a tag that anybody may move. Which
names count is `inside`'s to say, what a policy asks of each `ocipack.trust.policy.contents`'. Here
they meet:

1. every policy that covers the artifact's name and has `contents` must be met by every part;
   where none has any there is nothing to be met, and that is a refusal
2. a part is excused by an exemption that still holds, with its owner; that is a warning
3. a part that nobody can tell, that no glob covers, or that is not pinned is refused
4. where a policy asks for it, each part in a registry is verified like any other artifact, under
   all policies that were given and by the name that is written inside, wherever it is looked for;
   what is merely exempted there is not verified
5. what could not be read is neither yes nor no, but a refusal weighs more
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from ocipack.errors import NotFound, OcipackError, Rejected, StoreError
from ocipack.oci.reference import Reference
from ocipack.pin.resolve import each
from ocipack.report import Finding, Report, Severity
from ocipack.trust.policy.contents import UNVERIFIED, Contents, Opinion, Part, opinion
from ocipack.trust.policy.decision import Waiver, ask
from ocipack.trust.policy.model import WARN
from ocipack.verify import Verified, verify

if TYPE_CHECKING:
    from ocipack.oci.store import Source
    from ocipack.trust.policy import Policy
    from ocipack.verify.inside import Inside, Where

AT_ONCE: Final = 8
"""Images verified at the same time."""

IMAGES: Final = 5_000
"""Different names in the contents of one artifact that are verified."""

ALLOWED, EXCUSED, REFUSED, UNDECIDED = "allowed", "exempted", "refused", "undecided"

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something is looked for; `content` if nobody has hashed what lies there yet."""

    source: Source
    content: bool = False


Place = Callable[[Reference], Spot | None]
"""Finds where a reference is looked for: None if nowhere. It never changes what it is called."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the policy called `policy` asks of contents; `warns` if it refuses nothing."""

    policy: str
    contents: Contents
    warns: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """A part, the places that name it, and what became of it: `verdict` is one of the four words.

    `findings` say why, unless it is allowed.
    """

    part: Part
    places: tuple[Where, ...]
    verdict: str
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of the contents of `artifact`.

    `waivers` are policies that only warn and are not met. `error` is why the answer is not yes:
    Rejected, or StoreError if nobody could find out; None if it is.
    """

    artifact: str
    parts: tuple[Judged, ...]
    unseen: tuple[tuple[str, Severity, tuple[str, ...]], ...]
    report: Report
    waivers: tuple[Waiver, ...] = ()
    error: OcipackError | None = None


def asked(policy: Policy, reference: Reference) -> tuple[Asked, ...]:
    """What the policies that cover `reference` ask of its contents (1).

    One that exempts the artifact asks nothing.
    """
    question = ask(policy, reference)
    return tuple(
        Asked(one.name, one.contents, one.mode == WARN)
        for one in question.asked
        if one.contents is not None
    )


def silent(reference: Reference) -> Rejected:
    """The refusal where no policy says anything about contents."""
    message = "no policy that covers it says what its contents may be"
    hint = "say so in `contents` of a policy (docs/policy.md); silence means no"
    finding = Finding("contents-unasked", message, subject=str(reference), hint=hint)
    return Rejected(f"{reference}: {message}", report=Report.of([finding]), hint=hint)


def judge(
    reference: Reference,
    inside: Inside,
    wanted: tuple[Asked, ...],
    policy: Policy,
    place: Place,
) -> Judgement:
    """Judge everything `inside` the artifact `reference` by what is `wanted`.

    `policy` is what images must meet where they have to be verified, and knows the day. Rejected
    if nothing is wanted, or if there is more to verify than IMAGES.
    """
    if not wanted:
        raise silent(reference)
    opinions = {
        part: [(one, opinion(one.contents, part, policy.today)) for one in wanted]
        for part in inside.parts
    }
    proofs = _proofs(reference, opinions, policy, place)
    trial = _Trial(proofs)
    judged = tuple(
        trial.judge(part, tuple(inside.parts[part]), said) for part, said in opinions.items()
    )
    unseen = tuple(
        (what.reason, what.severity, tuple(sorted(names)))
        for what, names in sorted(inside.unseen.items(), key=lambda one: one[0].reason)
    )
    strict = tuple(one for one in wanted if one.contents.refuse_unseen)
    listed = list(_listed(unseen, strict=bool(strict)))
    refused = [finding for finding in listed if finding.severity is Severity.ERROR]
    unread = [*trial.unreadable(inside.findings, wanted), *trial.unreadable(refused, strict)]
    notes = [finding for finding in listed if finding.severity is not Severity.ERROR]
    report = Report.of([*unread, *trial.findings, *notes])
    error = _error(reference, judged, unread, trial.errors, report)
    waivers = tuple(Waiver(name, "warned", why) for name, why in trial.warned.items())
    return Judgement(str(reference), judged, unseen, report, waivers, error)


def _proofs(
    reference: Reference,
    opinions: Mapping[Part, list[tuple[Asked, Opinion]]],
    policy: Policy,
    place: Place,
) -> Mapping[Reference, Verified | OcipackError]:
    """Verify, each once, what has to be (4)."""
    names = {
        part.reference
        for part, said in opinions.items()
        if part.reference is not None and any(one.proof for _, one in said)
    }
    if len(names) > IMAGES:
        raise Rejected(f"{reference}: more than {IMAGES} names in it have to be verified")

    def prove(name: Reference) -> Verified:
        spot = place(name)
        if spot is None:
            raise NotFound(f"{name}: there is no place to look for it")
        return verify(spot.source, name, policy, content=spot.content)

    return each(names, prove, jobs=AT_ONCE)


@dataclass(slots=True)
class _Trial:
    """What was found so far, beyond each single part."""

    proofs: Mapping[Reference, Verified | OcipackError]
    findings: list[Finding] = field(default_factory=list)
    errors: list[OcipackError] = field(default_factory=list)
    warned: dict[str, str] = field(default_factory=dict)

    def judge(
        self, part: Part, places: tuple[Where, ...], said: list[tuple[Asked, Opinion]]
    ) -> Judged:
        """The verdict about one part: the worst of those of the policies (5)."""
        verdicts, own = {ALLOWED}, list[Finding]()
        for one, thought in said:
            verdict, found = self._one(part, one, thought)
            verdicts.add(verdict)
            own += found
        worst = next(v for v in (REFUSED, UNDECIDED, EXCUSED, ALLOWED) if v in verdicts)
        if worst == ALLOWED and not own:
            text = f"{part.text}: allowed" + (", pinned" if part.pinned else "")
            own = [Finding("contents-good", text, Severity.NOTE)]
        self.findings += [_at(finding, where) for finding in own for where in places]
        return Judged(part, places, worst, () if worst == ALLOWED else tuple(own))

    def unreadable(self, found: list[Finding], wanted: tuple[Asked, ...]) -> list[Finding]:
        """What could not be read: an error, unless all that is `wanted` only warns."""
        if not found or not all(one.warns for one in wanted):
            return found
        self.warned |= {one.policy: found[0].message for one in wanted} | self.warned
        return [replace(finding, severity=Severity.WARNING) for finding in found]

    def _one(self, part: Part, one: Asked, thought: Opinion) -> tuple[str, list[Finding]]:
        found = [
            Finding(
                "policy-expired",
                f"policy {one.policy}: the exemption of {part.text} by {ended.owner} ended on "
                f"{ended.until.isoformat()}",
                Severity.NOTE,
            )
            for ended in thought.ended
        ]
        if thought.excused is not None:
            message = f"policy {one.policy} does not judge {part.text}: {thought.excused}"
            return EXCUSED, [*found, Finding("contents-exempted", message, Severity.WARNING)]
        rule, message, hint = thought.rule, thought.message, thought.hint
        verdict = REFUSED if rule else ALLOWED
        if thought.proof and not rule:
            assert part.reference is not None  # or no proof would be asked for
            answer = self.proofs[part.reference]
            if isinstance(answer, OcipackError):
                rule, message, hint = UNVERIFIED, f"{part.text}: {answer}", answer.hint
                verdict = REFUSED if isinstance(answer, Rejected) else UNDECIDED
                self._remember(one, verdict, answer)
        if verdict == ALLOWED:
            return ALLOWED, found
        if one.warns:
            self.warned.setdefault(one.policy, message)
            return ALLOWED, [*found, Finding(rule, message, Severity.WARNING, hint=hint)]
        return verdict, [*found, Finding(rule, message, hint=hint)]

    def _remember(self, one: Asked, verdict: str, answer: OcipackError) -> None:
        if verdict == UNDECIDED and not one.warns:
            self.errors.append(answer)


def _at(finding: Finding, where: Where) -> Finding:
    return Finding(
        finding.rule,
        finding.message,
        finding.severity,
        where.file,
        where.line,
        where.column,
        where.pointer,
        where.subject,
        finding.hint,
    )


def _listed(
    unseen: tuple[tuple[str, Severity, tuple[str, ...]], ...], *, strict: bool
) -> Iterator[Finding]:
    """One finding for each reason, with the first names; if `strict`, warnings are errors."""
    for reason, given, names in unseen:
        refused = strict and given is Severity.WARNING
        severity = Severity.ERROR if refused else given
        hint = "the policy has refuseUnseen: write the names out where they are looked at"
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        shown = ", ".join(names[:_SHOWN])
        message = f"not looked at, {reason}: {shown}{more}"
        yield Finding("contents-unseen", message, severity, hint=hint if refused else "")


def _error(
    reference: Reference,
    judged: tuple[Judged, ...],
    unreadable: list[Finding],
    errors: list[OcipackError],
    report: Report,
) -> OcipackError | None:
    """Why the answer is not yes, if it is not."""
    refused = [one for one in judged if one.verdict == REFUSED]
    unread = [finding for finding in unreadable if finding.severity is Severity.ERROR]
    if refused or unread:
        first = unread[0] if unread else refused[0].findings[-1]
        count = len(refused) + len(unread)
        more = f" (and {count - 1} more)" if count > 1 else ""
        message = f"{reference}: its contents are refused: {first.message}{more}"
        return Rejected(message, report=report, hint=first.hint)
    if errors:
        first_error = errors[0]
        kind = StoreError if isinstance(first_error, NotFound) else type(first_error)
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        error = kind(
            f"{reference}: nobody knows about its contents: {first_error}{more}",
            hint=first_error.hint or "the answer may be there, so this is neither yes nor no",
        )
        error.__cause__ = first_error
        return error
    return None
