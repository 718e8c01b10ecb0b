"""Strict validators, one module a target: the official client's request types, and the API's rules
besides.

`problems(wire, body)` tells what the target would refuse in a request's body; nothing: it would
take it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["problems"]


def problems(wire: str, body: dict[str, Any]) -> list[str]:
    """What is wrong with a body of that wire, sent to the provider whose own API it is."""
    found: list[str] = []
    try:
        found.extend(import_module(f"{__package__}.{wire}").problems(body))
    except (AttributeError, KeyError, TypeError):  # what is of a wrong type cannot be asked further
        if not found:
            raise
    return found
