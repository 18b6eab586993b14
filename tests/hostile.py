"""Documents that nobody would write, for tests of what reads documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st


def values(keys: Sequence[str], leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and mappings in one another, under `keys`, with `leaf` at their ends."""
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(keys), inner, max_size=5)
        ),
        max_leaves=20,
    )
