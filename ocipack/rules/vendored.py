"""Rules about what is vendored: what `vendor --check` found."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import ERROR, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="vendored content, docs/vendor.md")

VENDORED = table(
    Rule(
        "vendor-changed",
        ERROR,
        "a vendored file that is not what was fetched",
        "nobody would see the change when the file is fetched anew, and it would be lost",
        "keep changes elsewhere, as in a kustomize patch, and run `ocipack vendor`",
    ),
    Rule(
        "vendor-missing",
        ERROR,
        "a vendored file that is not there",
        "what is built is not what upstream has",
        "run `ocipack vendor`; to leave a file out say so with `exclude`",
    ),
    Rule(
        "vendor-extra",
        ERROR,
        "a file among vendored ones that no entry brought",
        "it passes for a part of what was fetched",
        "move it to a directory of its own",
    ),
    Rule(
        "vendor-stale",
        ERROR,
        "a vendor file and a lock that do not say the same",
        "what is in the tree is not what was asked for",
        "run `ocipack vendor` and commit what it writes",
    ),
)
