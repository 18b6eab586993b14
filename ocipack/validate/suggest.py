"""The nearest name that someone may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def distance(a: str, b: str, limit: int) -> int:
    """Edits (insert, drop, replace, swap neighbours) from `a` to `b`; `limit + 1` if above."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before, last = last, row
    return min(last[-1], limit + 1)


def nearest(name: str, known: Iterable[str]) -> str:
    """The name in `known` that `name` most likely is a slip of, or empty.

    Case is ignored first; then at most one edit for each three letters; then one of the two
    names being the start or end of the other (`val` for `value`, `path` for `mountPath`).
    """
    folded = name.lower()
    candidates = sorted(set(known))
    limit = max(1, len(name) // 3)
    scored = sorted(
        (found, other)
        for other in candidates
        if (found := distance(folded, other.lower(), limit)) <= limit
    )
    if scored:
        return scored[0][1]
    parts = [
        other
        for other in candidates
        if len(name) > 2  # noqa: PLR2004 - two letters start or end too many names
        and (other.lower().endswith(folded) or other.lower().startswith(folded))
    ]
    return min(parts, key=lambda other: (len(other), other), default="")
