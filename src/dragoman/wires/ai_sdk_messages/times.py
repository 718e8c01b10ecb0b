"""Dates as JavaScript writes them in JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dragoman.codec.timing import in_utc

__all__ = ["date_of", "is_js_date", "js_date"]


def date_of(value: Any) -> datetime | None:
    """A date, written or as Python has it; `None`: it is none. One without a zone is in UTC."""
    if isinstance(value, str):
        if not 10 <= len(value) <= 35:
            return None
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def is_js_date(value: Any) -> bool:
    """Whether a value is written as `js_date` writes dates, if it is one."""
    return (
        type(value) is str
        and len(value) == 24
        and value[10] == "T"
        and value[19] == "."
        and value[23] == "Z"
    )


def js_date(date: datetime) -> str:
    """A date as `JSON.stringify` writes it; one with more than milliseconds keeps them."""
    if date.tzinfo is not UTC:
        date = in_utc(date)
    return (
        date.isoformat(timespec="milliseconds" if date.microsecond % 1000 == 0 else "microseconds")[
            :-6
        ]
        + "Z"
    )
