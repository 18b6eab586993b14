"""Rules about charts: what `images` and `mirror` could not find out about them."""

from __future__ import annotations

from functools import partial

from ocipack.rules.rule import WARNING, Rule as _Rule, table

Rule = partial(_Rule, ignorable=False, source="the images of charts, docs/charts.md")

CHARTS = table(
    Rule(
        "chart-image-unresolved",
        WARNING,
        "an image of a chart of which the tag or the registry is left to a template",
        "what is mirrored by such a list lacks it, and a node cannot pull it",
        "install helm, so that the chart is rendered, or list the image by hand",
    ),
    Rule(
        "chart-unrendered",
        WARNING,
        "a chart that could not be rendered",
        "what its templates name is known only as far as its values and annotations say it",
        "install helm, and give the values that it needs with --values",
    ),
    Rule(
        "chart-unreadable",
        WARNING,
        "a part of a chart that lists images and cannot be read",
        "what it lists is not known",
        "ask whoever publishes the chart to mend it",
    ),
)
