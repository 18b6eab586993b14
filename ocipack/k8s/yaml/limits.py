"""What one reading may cost. Each number has a test that meets it and one that passes it."""

from __future__ import annotations

BYTES = 256 * 1024 * 1024
"""One stream. kustomize's own output is bounded by the same number where it is read."""

DOCUMENTS = 200_000
"""Documents in one stream, empty ones included."""

DEPTH = 200
"""Collections inside one another. kubectl accepts 10,000; real objects stay under 60, and the
interpreter's own stack ends at 1,000 frames, of which a level takes three."""

ALIASED_NODES = 400_000
"""Nodes that one document may gain through aliases: below this count go-yaml does not judge the
ratio of aliases either (decode.go, `alias_ratio_range_low`). Without it nine lines become 3·10⁹
nodes."""

ALIASED_TOTAL = 4_000_000
"""Nodes that the documents of one stream may gain together: each of them is looked at."""

PIECE = 64 * 1024 * 1024
"""One document of a stream that is read piece by piece. The API server takes 3 MiB."""

MEMO = 50_000
"""Scalars whose meaning is remembered; then remembering starts anew, so that memory stays flat."""
