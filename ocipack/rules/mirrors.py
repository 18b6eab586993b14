"""Rules about mirrors: what `mirror` found that somebody may have to look at."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import ERROR, NOTE, WARNING, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="how content is mirrored, docs/mirror.md")

MIRRORS = table(
    Rule(
        "mirror-drifted",
        ERROR,
        "a tag at the target that names something else than at the source",
        "whoever pulls by the tag gets other content from the mirror than from its source",
        "look who moved which of them; `overwrite` follows the source",
    ),
    Rule(
        "mirror-gone",
        WARNING,
        "something that the source lists as attached to content, and does not have",
        "what was attached there, a signature perhaps, cannot be brought along",
        "ask whoever publishes it; a list that outlived what it lists is mended there",
    ),
    Rule(
        "mirror-platform",
        WARNING,
        "a platform that was asked for and that an image is not built for",
        "a node of that platform cannot run it",
        "leave the platform out, or ask whoever publishes the image",
    ),
    Rule(
        "mirror-sparse",
        NOTE,
        "an index whose entries were not all copied, because of `platforms`",
        "the digest and its signatures hold, but a node of another platform cannot run it",
        "nothing, if no such node ever pulls it; else leave `platforms` out and mirror with --full",
    ),
)
