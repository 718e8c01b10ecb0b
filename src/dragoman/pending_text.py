"""Says in words what a run waits for (`summarize`). What comes from a model is shown with every
character visible, since an approval must show what will run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from dragoman.interrupt import Interrupt, Reason
from dragoman.visible_text import to_one_line

__all__ = ["WAITS", "describe_call", "summarize", "visible_json"]

_WIDTH = 100
"""Longest JSON on one line."""
WAITS: Mapping[Reason, str] = MappingProxyType(
    {
        "approval": "waits for approval",
        "input": "asks you",
        "auth": "waits for a sign-in",
        "tool": "is yours to run",
        "doubt": "may have been run already",
    }
)
"""What is waited for, in words."""


def summarize(interrupt: Interrupt) -> str:
    """Returns one line that says what an interrupt waits for."""
    about = [describe_call(interrupt), to_one_line(interrupt.message or "")]
    return f"{WAITS[interrupt.reason]}: {' – '.join(piece for piece in about if piece)}"


def describe_call(interrupt: Interrupt, *, pretty: bool = False) -> str:
    """Returns the name and arguments of the interrupt's call as the user is asked about it, or an
    empty text."""
    call = interrupt.call
    return (
        ""
        if call is None
        else f"{to_one_line(call.name)} {visible_json(call.arguments, pretty=pretty)}"
    )


def visible_json(value: Any, *, pretty: bool = False) -> str:
    """Returns the JSON that the user is asked about with every invisible character escaped: what is
    approved must be what is read."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    if pretty and len(text) > _WIDTH:
        text = msgspec.json.format(text)
    return "".join(c if c == "\n" or c.isprintable() else _escape_character(c) for c in text)


def _escape_character(sign: str) -> str:
    """Returns a character as JSON escapes, two of them beyond the basic plane."""
    units = sign.encode("utf-16-be")
    return "".join(f"\\u{units[index : index + 2].hex()}" for index in range(0, len(units), 2))
