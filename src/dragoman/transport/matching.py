"""Compares a request with recorded ones: their keys, which exchange is nearest, and how it
differs."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman.transport.redaction import public_body, public_url

__all__ = ["ExchangeKey", "explain_difference", "find_nearest", "make_key"]

_MOST_SHOWN = 40
"""Most lines of a difference that are shown."""
_MOST_COMPARED = 2000
"""Most lines of a request that are compared one by one, because that takes the square of them."""
_BOUNDARY = re.compile(rb"--([^\r\n]{1,70})\r\n")
"""The first line of a form with files, whose boundary each client chooses anew."""


class ExchangeKey(NamedTuple):
    """What is compared of a request, without secrets."""

    method: str
    """The HTTP method."""
    url: str
    """Without keys."""
    body: Any
    """As JSON, or bytes that are none."""

    def format_lines(self) -> list[str]:
        """Returns the key as the lines of a difference."""
        if isinstance(self.body, bytes):
            text = repr(self.body)
        else:
            text = msgspec.json.format(
                msgspec.json.encode(self.body, order="deterministic")
            ).decode()
        return [f"{self.method} {self.url}", *text.splitlines()]


def make_key(method: str, url: str, body: Any) -> ExchangeKey:
    """Returns the key of a request. Recordings have no keys and passwords in them, so those of a
    request are left out, too."""
    if isinstance(body, bytes) and (first_line := _BOUNDARY.match(body)) is not None:
        body = body.replace(first_line[1], b"boundary")
    return ExchangeKey(method, public_url(url), public_body(body))


def find_nearest(wanted: Sequence[str], recorded: Iterable[Sequence[str]]) -> int:
    """Returns the position of the recorded request that has the most lines in common with the one
    that is wanted, of equal ones the first; -1 if there are none."""
    counts = Counter(wanted)
    nearest, most = -1, -1.0
    for position, lines in enumerate(recorded):
        common = (counts & Counter(lines)).total() * 2 / (len(wanted) + len(lines))
        if common > most:
            nearest, most = position, common
    return nearest


def explain_difference(recorded: Sequence[str], request: Sequence[str]) -> list[str]:
    """Returns the lines in which a request that was sent differs from a recorded one."""
    lines = list(
        difflib.unified_diff(
            recorded[:_MOST_COMPARED],
            request[:_MOST_COMPARED],
            "recorded",
            "sent",
            n=2,
            lineterm="",
        )
    )
    hidden = len(lines) - _MOST_SHOWN
    return lines if hidden <= 0 else [*lines[:_MOST_SHOWN], f"… {hidden} lines more"]
