"""Dates as JavaScript writes them in JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dragoman.codec.timing import convert_to_utc

__all__ = ["date_of", "is_js_date", "js_date", "old_date", "old_date_of"]


def date_of(value: Any) -> datetime | None:
    """Returns a date in an AI SDK message from a text or a `datetime`, or None for anything else.
    Without a zone it is in UTC."""
    if isinstance(value, str):
        if not 10 <= len(value) <= 35:
            return None
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    if value.tzinfo is not None:
        return value
    return value.replace(tzinfo=UTC)


def is_js_date(value: Any) -> bool:
    """True if a text has the form that `js_date` writes."""
    is_long = type(value) is str and len(value) == 24
    return is_long and value[10] == "T" and value[19] == "." and value[23] == "Z"


def js_date(date: datetime) -> str:
    """Returns a date as JavaScript's `JSON.stringify` writes it for AI SDK messages, with
    microseconds if it has any."""
    if date.tzinfo is not UTC:
        date = convert_to_utc(date)
    precision = "milliseconds"
    if date.microsecond % 1000:
        precision = "microseconds"
    return date.isoformat(timespec=precision)[:-6] + "Z"


def old_date_of(value: Any) -> datetime | None:
    """Returns the date of a UI message of AI SDK 4, or None if it is no date with a zone."""
    if isinstance(value, datetime):
        return value
    try:
        date = datetime.fromisoformat(value)
        if date.tzinfo is None:
            return None
        return date.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def old_date(date: datetime) -> str:
    """Returns a date as UI messages of ai 4 write it, in milliseconds."""
    return convert_to_utc(date).isoformat(timespec="milliseconds").replace("+00:00", "Z")
