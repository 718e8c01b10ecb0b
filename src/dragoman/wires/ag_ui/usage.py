"""Tokens: the field `usage` of a run's end."""

from __future__ import annotations

from typing import Any

from dragoman.codec.usage_entries import dump_entries
from dragoman.codec.usage_entries import load_entries as load_usage
from dragoman.message import Usage

__all__ = ["dump_usage", "load_usage"]


def dump_usage(usage: Usage | None) -> dict[str, Any]:
    """The field `usage` of a run's end; none where nothing is known."""
    entries = dump_entries(usage)
    return {"usage": entries} if entries else {}
