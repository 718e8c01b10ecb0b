"""Tokens as agent protocols have them: a list of entries, one for each provider and model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from typing import Any

from dragoman.codec.json_values import if_objects
from dragoman.message import Usage

__all__ = ["dump_entries", "load_entries"]

_FIELDS: Mapping[str, str] = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "reasoning_tokens": "reasoningTokens",
    "cache_read_tokens": "cachedInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
}
_MOST = 2**53 - 1
"""The largest whole number that every reader of JSON keeps."""


def load_entries(entries: Any) -> Usage | None:
    """Entries → their sum; `None`: there are none. What is no count in them is left out."""
    read = [
        Usage(**{ours: n for ours, theirs in _FIELDS.items() if _is_count(n := entry.get(theirs))})
        for entry in if_objects(entries)
    ]
    return reduce(add, read) if read else None


def dump_entries(usage: Usage | None) -> list[dict[str, Any]]:
    """The inverse: one entry, or none where nothing is known."""
    fields = {
        theirs: n for ours, theirs in _FIELDS.items() if _is_count(n := getattr(usage, ours, None))
    }
    return [fields] if fields else []


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
