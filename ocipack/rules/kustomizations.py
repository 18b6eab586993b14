"""Rules about kustomizations: each error here is refused before kustomize starts."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import ERROR, WARNING, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="the confinement of rendering, docs/formats.md")

KUSTOMIZATIONS = table(
    Rule(
        "kustomization-outside",
        ERROR,
        "a path that leads out of the packed tree, or is no plain path",
        "kustomize would read the files of the machine it runs on; the cluster does not have them",
        "move what it names into the tree, or pack a directory above",
    ),
    Rule(
        "kustomization-address",
        ERROR,
        "an address that kustomize would fetch",
        "what is fetched later is not what was checked, packed and signed",
        "bring it into the tree with `ocipack vendor` and refer to it by a relative path",
    ),
    Rule(
        "kustomization-missing",
        ERROR,
        "a path that names nothing in the packed tree",
        "the cluster gets the packed tree alone, so the build would fail there",
        "correct the path; ignored files and symbolic links are not packed",
    ),
    Rule(
        "kustomization-ambiguous",
        ERROR,
        "YAML that readers understand differently, or two kustomizations in one directory",
        "what one reader approved, another would build: no check could hold",
        "write out what is meant, without anchors, merges, tags and repeated keys",
    ),
    Rule(
        "kustomization-field",
        ERROR,
        "a field that a kustomization does not have, or of another shape",
        "kustomize matches names in any case and skips what it does not know; others do not",
        "correct the spelling or the shape of the field",
    ),
    Rule(
        "kustomization-plugin",
        ERROR,
        "a plugin, function or chart that kustomize would run or fetch",
        "programs named by a tree would run where it is checked, and in the cluster",
        "commit what it would make",
    ),
    Rule(
        "kustomization-unreadable",
        ERROR,
        "a kustomization that is no YAML text, or is too long",
        "what cannot be read cannot be judged",
        "correct the file where the finding points",
    ),
    Rule(
        "kustomization-cycle",
        ERROR,
        "kustomizations that name one another in a circle",
        "the build would never end; kustomize refuses it",
        "remove one of the references",
    ),
    Rule(
        "kustomization-too-large",
        ERROR,
        "a build that would load too many files, or nest too deeply",
        "bases are built anew each time they are named, so a small tree can mean endless work",
        "name each base once",
    ),
    Rule(
        "root-empty",
        WARNING,
        "a root that was found, not named, and builds to no object",
        "Flux applies nothing of it and calls that ready; often a path in it is wrong",
        "remove it, or leave it for what is to come",
    ),
)
