"""Rules about the tree that is packed, where it comes from, and key files."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import ERROR, WARNING, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="the format of the artifact, docs/formats.md")

TREES = table(
    Rule(
        "name",
        ERROR,
        "a file name that an artifact does not carry",
        "whoever unpacks it would write another file, or none",
        "rename the file",
    ),
    Rule(
        "name-case",
        WARNING,
        "two names that differ only in case or Unicode form",
        "some file systems keep only one of them, without a word",
        "rename one",
    ),
    Rule(
        "symlink",
        ERROR,
        "a symbolic link",
        "source-controller drops links, so the cluster would miss the file",
        "replace it by what it points to, or give --symlinks resolve",
    ),
    Rule(
        "symlink-outside",
        ERROR,
        "a symbolic link that leads out of the tree",
        "a file of the machine that packs would be published",
        "copy what is needed into the tree",
    ),
    Rule(
        "symlink-dangling",
        ERROR,
        "a symbolic link to nothing",
        "there is nothing to pack",
        "remove the link, or restore its target",
    ),
    Rule(
        "symlink-cycle",
        ERROR,
        "a symbolic link to a directory around it",
        "following it never ends",
        "remove the link",
    ),
    Rule(
        "symlink-left-out",
        ERROR,
        "a symbolic link to what is left out of the artifact",
        "what was left out on purpose would be packed under another name",
        "remove the link, or take its target in",
    ),
    Rule(
        "special-file",
        ERROR,
        "a device, socket or pipe",
        "it has no content that could be packed, and reading it may never end",
        "remove it, or leave it out with --ignore",
    ),
    Rule(
        "set-id-mode",
        WARNING,
        "a file that runs as its owner or group",
        "an artifact carries no such mode, so the file behaves differently there",
        "take the mode off",
    ),
    Rule(
        "private-mode",
        WARNING,
        "a file that only its owner may read",
        "in the artifact everyone may read it",
        "leave it out if it is secret, else allow others to read it",
    ),
    Rule(
        "dropped-in-cluster",
        WARNING,
        "a file that is packed and will not arrive in the cluster",
        "source-controller drops it on arrival, so what names it fails there",
        "rename it, leave it out, or take it back in .sourceignore",
    ),
    Rule(
        "tree-dirty",
        ERROR,
        "a file that differs from the commit",
        "the artifact would claim to be a commit that it is not",
        "commit it, ignore it, or give --allow-dirty, which the revision says",
    ),
    Rule(
        "no-git",
        WARNING,
        "a tree without a git repository",
        "the artifact does not say which commit it is",
        "say it with --revision and --source",
    ),
    Rule(
        "no-source",
        WARNING,
        "a repository without a remote that is a network address",
        "the artifact does not say where it comes from",
        "say it with --source",
    ),
    Rule(
        "key-exposed",
        WARNING,
        "a private key that others can read or write",
        "whoever has it and its password signs in your name",
        "chmod 600 the file",
    ),
)
