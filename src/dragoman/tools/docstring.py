"""A function's docstring → what it does and what its parameters mean. Google, NumPy and reST styles."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["describe"]


def describe(handler: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The text before the sections, and the text of each parameter by name. Both empty without a docstring."""
    doc = inspect.getdoc(handler.func if isinstance(handler, partial) else handler)
    if not doc:
        return "", {}
    import docstring_parser  # lazily: only those who define tools need it

    parsed = docstring_parser.parse(doc)
    parameters = {
        name.strip(): " ".join(entry.description.split())
        for entry in parsed.params
        if entry.description
        for name in entry.arg_name.split(",")  # NumPy allows `x, y : int`
    }
    return parsed.description or "", parameters
