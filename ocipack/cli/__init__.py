"""The composition root: the only reader of arguments, environment and clock."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
