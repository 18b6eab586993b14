"""The one reading of the clock."""

from __future__ import annotations

from datetime import UTC, date, datetime


def now() -> str:
    """The time in UTC, RFC 3339, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def today() -> date:
    """The day in UTC."""
    return datetime.now(UTC).date()
