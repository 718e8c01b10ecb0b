"""How long a provider asks to wait before the next try."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

__all__ = ["retry_after"]


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds, from `retry-after-ms` or from `retry-after` in seconds or as a date; `None`: it asks for nothing that can be understood.

    Args:
        headers: of the answer, names in lower case.
        now: seconds since 1970 from which a date counts; without it, from the answer's own `date`.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if seconds > 0:
            return seconds
    try:
        then = parsedate_to_datetime(headers["retry-after"]).timestamp()
        start = parsedate_to_datetime(headers["date"]).timestamp() if now is None else now
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    return then - start if then > start else None
