"""Times in UTC."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["in_utc"]


def in_utc(time: datetime) -> datetime:
    """A time in UTC; one without a zone is in it already. Where UTC would be before the year 1 or after 9999, the first or last time that
    there is."""
    if time.tzinfo is None:
        return time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        return (datetime.min if time.year == 1 else datetime.max).replace(tzinfo=UTC)
