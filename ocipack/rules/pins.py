"""Rules about references in files, as `pin` and `lock check` see them."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import NOTE, WARNING, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="how images are pinned, docs/pin.md")

PINS = table(
    Rule(
        "image-unresolved",
        WARNING,
        "an image whose digest cannot be told or written where it stands",
        "what runs is decided later, by a template, a chart or another file",
        "write the whole reference there, or see that what fills it in has a digest",
    ),
    Rule(
        "image-unrenamed",
        WARNING,
        "a name that a map of mirrors has and that could not be changed where it stands",
        "what pulls by it asks the registry that the mirror stands in for",
        "write the mirror's name there, or see that what fills it in does",
    ),
    Rule(
        "image-replaced",
        NOTE,
        "a name that a kustomization replaces, with its tag",
        "what stands there never runs; what the kustomization sets is pinned instead",
        "nothing, as long as it is only used through that kustomization",
    ),
    Rule(
        "image-platform",
        WARNING,
        "an image that is one manifest, not an index of several platforms",
        "a node of another architecture cannot run it",
        "publish it as an index, or see that all nodes are alike",
    ),
    Rule(
        "image-moved",
        WARNING,
        "a tag that points at something else than it did",
        "whoever pulls by the tag runs something else than what was looked at",
        "look at what is new, then pin again",
    ),
    Rule(
        "image-unreadable",
        WARNING,
        "a file that may name images and cannot be read as YAML",
        "its images are not looked at, so nobody knows whether they are pinned",
        "mend the file, or name paths without it",
    ),
)
