"""Rules about what an artifact names inside: of `verify --contents`, and of `ship`."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import ERROR, NOTE, WARNING, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="what is inside, docs/verification.md")

CONTENTS = table(
    Rule(
        "contents-unasked",
        ERROR,
        "an artifact whose contents no policy says anything about",
        "silence means no: what nobody decided about is not let through",
        "say in `contents` of a policy what may be inside",
    ),
    Rule(
        "contents-unpinned",
        ERROR,
        "an image or a source inside that can become something else",
        "a tag, a branch or a range can be moved after everything was verified",
        "pin it: `ocipack pin` writes digests; an exemption needs an owner and a last day",
    ),
    Rule(
        "contents-forbidden",
        ERROR,
        "an image or a source inside that the policy does not name",
        "whoever may change the tree could have anything run that has a digest",
        "name it in `contents` of the policy, or take it out",
    ),
    Rule(
        "contents-unclear",
        ERROR,
        "a place inside that names something nobody can tell",
        "a variable, a template or a malformed name becomes something only where it runs",
        "write the whole name there",
    ),
    Rule(
        "contents-unverified",
        ERROR,
        "an image inside that its own policies do not prove, or that could not be looked at",
        "an artifact is no more trustworthy than what it has run",
        "have it signed; if it is elsewhere, say where with --map",
    ),
    Rule(
        "contents-unreadable",
        ERROR,
        "a manifest inside that cannot be read, or that readers read differently",
        "what it names is anybody's guess",
        "mend it, or leave it out of the artifact",
    ),
    Rule(
        "contents-exempted",
        WARNING,
        "an image or a source inside that a policy does not judge for now",
        "somebody answers for it until the day that is named",
        "pin it, have it signed, and remove the exemption",
    ),
    Rule(
        "contents-unseen",
        NOTE,
        "something inside that was not looked at",
        "text, templates and charts can name images where no reader of manifests sees them",
        "nothing; know that it is not part of what was proven",
    ),
    Rule(
        "contents-good",
        NOTE,
        "an image or a source inside that is as the policies ask",
        "this is what was looked for",
        "nothing",
    ),
)
