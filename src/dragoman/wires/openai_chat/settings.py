"""Settings of Chat Completions: the family's, and what vendors write in other ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wires.chat.settings import SETTINGS, Way, as_it_is, reasoning
from dragoman.wires.openai_chat.tools import dump_function_choice, load_function_choice

__all__ = ["WAYS"]


def _nothing(_: Any, __: object = None) -> None:
    return None


_NOT_AT_ALL = Way("", _nothing, _nothing)


def _reasoning(setting: str | int) -> dict[str, Any]:
    if isinstance(setting, int):
        return {"max_tokens": setting}
    return {"effort": "none" if setting == "off" else setting}


def _thinking(setting: str | int) -> dict[str, Any]:
    if isinstance(setting, int):
        return {"type": "enabled", "budget_tokens": setting}
    return {"type": "disabled" if setting == "off" else "enabled"}


def _cache(field: str, values: Mapping[str, Any]) -> Way:
    """`values`: cache → what the field says of it."""
    return Way(
        field,
        lambda value: next((cache for cache, known in values.items() if known == value), None),
        lambda cache, _: values.get(cache),
    )


WAYS = {
    **SETTINGS,
    "max_tokens": (*SETTINGS["max_tokens"], as_it_is("max_completion_tokens", int)),
    "reasoning": (
        *SETTINGS["reasoning"],
        reasoning("reasoning", _reasoning),
        reasoning("thinking", _thinking),
        reasoning("enable_thinking", lambda setting: setting != "off"),
        _NOT_AT_ALL,
    ),
    "cache": (
        _NOT_AT_ALL,
        _cache("prompt_cache_retention", {"long": "24h"}),
        _cache(
            "cache_control",
            {"short": {"type": "ephemeral"}, "long": {"type": "ephemeral", "ttl": "1h"}},
        ),
    ),
    "tool_choice": (
        *SETTINGS["tool_choice"],
        Way("function_call", load_function_choice, dump_function_choice),
    ),
}
"""Setting → the ways to write it; which of them a vendor takes is in its quirks."""
