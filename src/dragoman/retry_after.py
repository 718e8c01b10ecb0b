"""How long a provider asks to wait before the next try."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

__all__ = ["parse_duration", "parse_limit_reset", "parse_retry_after", "parse_waiting_text"]

_UNITS = {"ms": 0.001, "mi": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "s": 1.0}
# What others send is read by these: each begins where a number does and never goes back, so that
# the time is linear.
_PIECES = re.compile(
    r"(?<!\d)(\d++(?:\.\d++)?+)\s*+(ms|milliseconds?|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])",
    re.IGNORECASE,
)
_AGAIN = re.compile(
    r"(?:again|retry|wait)(?: it)?(?: in| after| for)?(?: about)? ((?:[\d.]++\s*+[a-z]++\s*+)++)",
    re.IGNORECASE,
)
_RESET = re.compile(r"ratelimit-?(.*?)-?reset-?(.*)")
# Characters of a header's name or value; a longer one is nothing of the kind.
_READ = 100


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Returns the seconds after which to retry, from `retry-after-ms` or from `retry-after` in
    seconds or as a date; `None`: it asks for nothing that can be understood.

    Args:
        headers: of the answer, names in lower case.
        now: seconds since 1970 from which a date counts; without it, from the answer's own `date`.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")[:_READ]) * unit
        except ValueError:
            continue
        if 0 < seconds < math.inf:
            return seconds
    then = _parse_moment(headers.get("retry-after", ""))
    if now is None:
        start = _parse_moment(headers.get("date", ""))
    else:
        start = now
    if then is not None and start is not None and then > start:
        return then - start
    return None


def parse_limit_reset(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds after which to retry: until all limits that are used up are there again,
    as `x-ratelimit-reset…` and its like tell: as a duration (`1m2.5s`, `12`), a date, or a time
    since 1970; `None`: none is told to be used up.

    Args:
        headers: of an answer that was refused for a limit, names in lower case.
    """
    waits: list[float] = []
    for name, value in headers.items():
        if len(name) > _READ or len(value) > _READ or not (match := _RESET.search(name)):
            continue
        # A limit counts if the header beside it says that nothing of it remains.
        remaining = headers.get(name.replace("reset", "remaining"))
        alone = remaining is None and not any(match.groups())
        if (alone or (remaining is not None and _number(remaining) == 0)) and (
            wait := _until(value, headers)
        ) is not None:
            waits.append(wait)
    return max(waits, default=None)


def parse_waiting_text(text: str) -> float | None:
    """Returns the seconds after which to retry, from a text such as "Please try again in 1m2.5s";
    `None`: it says none, or no end."""
    match = _AGAIN.search(text)
    if match:
        return parse_duration(match[1])
    return None


def parse_duration(text: str) -> float | None:
    """Returns the seconds after which to retry, from `34.4s`, `1m2.5s`, `20 seconds`; `None`: it is
    no duration."""
    pieces = _PIECES.findall(text)
    seconds = sum(float(number) * _UNITS[_unit(unit.lower())] for number, unit in pieces)
    if pieces and seconds < math.inf:
        return seconds
    return None


def _unit(unit: str) -> str:
    if unit.startswith(("ms", "mill")):
        return "ms"
    return unit[0]


def _until(value: str, headers: Mapping[str, str]) -> float | None:
    """Returns the seconds after which to retry: from the answer until what a header says."""
    number = _number(value)
    # Below 1e8 (three years) it is a duration, above 1e11 a time since 1970 in milliseconds.
    if number is not None and number < 1e8:
        if number > 0:
            return number
        return None
    if number is not None:
        then: float | None = number / 1000 if number > 1e11 else number
    elif (wait := parse_duration(value)) is not None and not re.search(r"\d[-:T]\d", value):
        return wait
    else:
        then = _parse_moment(value)
    return _seconds_until(then, headers)


def _seconds_until(then: float | None, headers: Mapping[str, str]) -> float | None:
    """Returns the seconds after which to retry: from the answer until a moment, in seconds since
    1970; `None`: it has passed, or one of the two is unknown."""
    # The server's clock counts, not this machine's: only their difference is meant.
    now = _parse_moment(headers.get("date", ""))
    if then is not None and now is not None and then > now:
        return then - now
    return None


def _number(text: str) -> float | None:
    if re.fullmatch(r"\s*\d{1,15}(\.\d+)?\s*", text):
        return float(text)
    return None


def _parse_moment(text: str) -> float | None:
    """Returns the moment after which to retry, a date of HTTP or of RFC 3339, in seconds since
    1970."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            return read(text[:_READ]).timestamp()
        except (ValueError, TypeError, OverflowError):
            continue
    return None
