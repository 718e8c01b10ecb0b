"""How an answer ended: its status and its counts, both ways.

The API counts the answer without the thoughts, and the prompt without what its own tools added; the
neutral counts contain both.
"""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import drop_none, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = [
    "CONTINUES",
    "TOKEN",
    "dump_finish",
    "dump_usage",
    "load_finish",
    "load_usage",
    "other_usage",
]

CONTINUES = "requires_continuation"
"""Status of an interaction that Google suspended: with a token it goes on."""
TOKEN = "continuation_token"  # noqa: S105 a field
"""Field of a suspended interaction, and of the request that goes on with it."""
# Of several words for one reason the first is written.
_REASONS = {
    "completed": FinishReason.stop,
    "requires_action": FinishReason.tool_calls,
    "incomplete": FinishReason.length,
    "budget_exceeded": FinishReason.length,
    CONTINUES: FinishReason.length,
    "failed": FinishReason.error,
    "cancelled": FinishReason.cancelled,
}
_STATUSES = {reason: status for status, reason in reversed(_REASONS.items())} | {
    # A filter ends an answer early, and no status names it.
    FinishReason.content_filter: "incomplete",
    FinishReason.recitation: "incomplete",
}
_INPUT, _OUTPUT = "total_input_tokens", "total_output_tokens"
_THOUGHT, _BY_TOOLS = "total_thought_tokens", "total_tool_use_tokens"
_CACHED, _TOTAL = "total_cached_tokens", "total_tokens"
_READ = (_INPUT, _OUTPUT, _THOUGHT, _CACHED, _TOTAL)


def load_finish(status: Any, calls: bool) -> FinishReason:
    """Returns the neutral finish reason of an interaction's status; `unspecified` for one that is
    not over, or is unknown. `calls`: calls wait for an answer, which some answers do not say."""
    reason = _REASONS.get(str(status), FinishReason.unspecified)
    if calls and reason is FinishReason.stop:
        return FinishReason.tool_calls
    return reason


def dump_finish(reason: FinishReason | None, original: Any = None) -> str:
    """Returns the status of an interaction for a finish reason: the original one if it was kept."""
    if isinstance(original, str):
        return original
    return _STATUSES.get(reason or FinishReason.stop, "completed")


def load_usage(raw: JsonMap) -> Usage | None:
    """Returns the token counts of an interaction, or None if it has none."""
    count = {name: raw[name] for name in (*_READ, _BY_TOOLS) if type(raw.get(name)) is int}
    if not count:
        return None
    return Usage(
        input_tokens=_add(count.get(_INPUT), count.get(_BY_TOOLS)),
        output_tokens=_add(count.get(_OUTPUT), count.get(_THOUGHT)),
        total_tokens=count.get(_TOTAL),
        cache_read_tokens=count.get(_CACHED),
        reasoning_tokens=count.get(_THOUGHT),
    )


def other_usage(raw: JsonMap) -> Json:
    """Returns what an interaction's usage holds beyond the neutral counts."""
    return read_extra_fields(raw, *[name for name in _READ if type(raw.get(name)) is int])


def dump_usage(usage: Usage | None, other: JsonMap) -> Json:
    """Writes token counts as the usage of an interaction. `other`: what it held beyond them."""
    usage = usage or Usage()
    by_tools, thought = other.get(_BY_TOOLS), usage.reasoning_tokens
    counts: Json = {
        _INPUT: _subtract(usage.input_tokens, by_tools if type(by_tools) is int else None),
        _OUTPUT: _subtract(usage.output_tokens, thought),
        _THOUGHT: thought,
        _CACHED: usage.cache_read_tokens,
        _TOTAL: usage.total_tokens,
    }
    return {**drop_none(counts), **other}


def _add(count: int | None, more: int | None) -> int | None:
    if count is None and more is None:
        return None
    return (count or 0) + (more or 0)


def _subtract(count: int | None, less: int | None) -> int | None:
    """Returns what is left of a count. None where nothing was counted but what is subtracted."""
    # Answers of thoughts alone have no count of their own.
    if count is None or (less and count == less):
        return None
    return count - (less or 0)
