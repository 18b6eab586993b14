"""`ocipack copy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from ocipack.cli.command import App, command as outcome_command
from ocipack.cli.console import size
from ocipack.cli.outcome import Outcome
from ocipack.cli.places import opened, place
from ocipack.cli.trusted import Trust, proof_options, proven
from ocipack.copy import Copied, Plan, Transfers
from ocipack.errors import Misuse, OcipackError, Rejected
from ocipack.mirror.platforms import Choice
from ocipack.oci.descriptor import INDEXES, Descriptor
from ocipack.oci.store import Source, Store
from ocipack.tag import standing, tag

_SPARSE = "the destination may take no index without all its entries: leave --platform out"
_WHOLE = "name the digest of the one entry that is wanted, or leave --platform out"


@click.argument("origin", metavar="SRC")
@click.argument("destination", metavar="DST")
@click.option(
    "--recursive/--no-recursive",
    "--signatures/--no-signatures",
    "attached",
    default=True,
    show_default=True,
    help="Bring along what is attached to each manifest: .sig, .att and .sbom tags, and referrers.",
)
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="OS/ARCH[/VARIANT]",
    help="Of an index bring only these entries, and leave the index as it is; repeatable.",
)
@click.option(
    "--require-signatures",
    is_flag=True,
    help="Refuse SRC, before anything moves, if no signature is attached to it.",
)
@click.option("--jobs", type=click.IntRange(1, 64), default=8, show_default=True)
@proof_options
def copy(
    app: App,
    *,
    origin: str,
    destination: str,
    attached: bool,
    platforms: tuple[str, ...],
    require_signatures: bool,
    jobs: int,
    **options: Any,
) -> Outcome:
    """Copy an artifact or image with all that is attached to it.

    Content moves by digest, byte for byte, and its tag last. What is attached is there before
    what it is attached to, and is looked at once more at DST. Without a tag in DST nothing is
    tagged. With one, the copy is verified at DST first; its immutable twin, TAG-<first 12 hex of
    the digest>, is written before it. Prints the pinned place.
    """
    source_place, where = place(origin), place(destination)
    name = where.reference.tag
    trust = Trust(**options)
    if platforms and where.is_layout:
        raise Misuse(f"{where}: a layout holds no index without all its entries", hint=_WHOLE)
    if name is not None:
        trust.check_tagging(where)  # refuse before anything moves what would be refused after it
    with (
        opened(app, source_place) as source,
        opened(app, where, write=True, prefetch=False) as store,
    ):
        target = source.resolve(source_place.reference.name)
        if where.reference.digest not in (None, target.digest):
            raise Rejected(f"{source_place} is {target.digest}, and not what {where} asks for")
        before = standing(store, [name] if name is not None else [])
        with app.console.stage("copy") as stage:
            gone_ok = not source_place.is_layout  # whose lists are its own
            wanted = _Wanted(attached, platforms, require_signatures, gone_ok, jobs)
            plan, done = wanted.copied(source, store, target)
            stage.say(_described(done))
        for digest in sorted(plan.gone):
            app.console.warn(f"{digest} is listed as attached at {source_place}, and is not there")
        pinned = where.at(target.digest)
        if name is not None:
            proven(app, store, pinned, trust, [name])
            with app.console.stage("tag") as stage:
                stage.say(", ".join(tag(store, target, before).written) or "there already")
    return _outcome(str(pinned), plan, done)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the options say is to be copied, and how many requests may be in flight."""

    attached: bool
    platforms: tuple[str, ...]
    require_signatures: bool
    gone_ok: bool
    jobs: int

    def copied(self, source: Source, store: Store, root: Descriptor) -> tuple[Plan, Copied]:
        """Copy it; Rejected before anything moves if what is required is not there."""
        choice = Choice(self.platforms) if self.platforms else None
        with Transfers(self.jobs) as run:
            plan = run.plan(
                *(source, store, root),
                attached=self.attached,
                choose=choice,
                gone_ok=self.gone_ok,
            )
            if self.require_signatures:
                all_there = plan if self.attached else run.plan(source, store, root, attached=True)
                _require_signature(all_there)
            if choice is not None and root.media_type in INDEXES and choice.lacking:
                raise Rejected(
                    f"{root.digest}: no entry is for {', '.join(choice.lacking)}",
                    hint="`ocipack inspect` shows what it has",
                )
            try:
                return plan, run.deliver(plan, store)
            except OcipackError as error:
                error.hint = error.hint or (_SPARSE if plan.left_out else "")
                raise


def _require_signature(plan: Plan) -> None:
    if not plan.signatures:
        raise Rejected(
            f"{plan.root.digest}: no signature is attached to it",
            hint="sign it, or ask whoever publishes it; --require-signatures was given",
        )


def _outcome(pinned: str, plan: Plan, done: Copied) -> Outcome:
    left_out = {"left_out": len(plan.left_out)} if plan.left_out else {}
    gone = {"gone": sorted(map(str, plan.gone))} if plan.gone else {}
    return Outcome(
        pinned,
        {
            "artifact": {"place": pinned, "digest": str(plan.root.digest)},
            "copied": {"count": done.copied, "bytes": done.copied_bytes},
            "skipped": {"count": done.skipped, "bytes": done.skipped_bytes},
            "mounted": {"count": done.mounted, "bytes": done.mounted_bytes},
            "kinds": dict(done.kinds),
            **left_out,
            **gone,
        },
        summary=[(name, f"{count:,}") for name, count in {**done.kinds, **left_out}.items()],
    )


def _described(done: Copied) -> str:
    moved = f"{done.copied} moved ({size(done.copied_bytes - done.mounted_bytes)})"
    mounted = f", {done.mounted} of them mounted" if done.mounted else ""
    return f"{moved}{mounted}, {done.skipped} there already"


command = outcome_command(copy)
