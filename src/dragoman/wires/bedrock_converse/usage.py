"""Stop reasons and counts of tokens, both ways."""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = ["dump_finish", "dump_usage", "load_finish", "load_usage", "other_usage"]

# Of several words for one reason the first is written.
_REASONS = {
    "end_turn": FinishReason.stop,
    "stop_sequence": FinishReason.stop,
    "tool_use": FinishReason.tool_calls,
    "max_tokens": FinishReason.length,
    "model_context_window_exceeded": FinishReason.length,
    "content_filtered": FinishReason.content_filter,
    "guardrail_intervened": FinishReason.content_filter,
    "malformed_model_output": FinishReason.error,
    "malformed_tool_use": FinishReason.error,
}
_STOP_REASONS = {reason: name for name, reason in reversed(_REASONS.items())} | {
    FinishReason.refusal: "content_filtered",
    FinishReason.recitation: "content_filtered",
}
_INPUT, _OUTPUT, _TOTAL = "inputTokens", "outputTokens", "totalTokens"
_READ, _WRITE = "cacheReadInputTokens", "cacheWriteInputTokens"
_COUNTS = (_INPUT, _OUTPUT, _TOTAL, _READ, _WRITE)


def load_finish(reason: Any, *, calls: bool = False) -> FinishReason:
    """Returns the neutral reason for a Converse `stopReason`; `unspecified` if it is unknown.
    `calls`: calls wait for their results, whatever the reason says."""
    neutral = _REASONS.get(str(reason), FinishReason.unspecified)
    if calls and neutral is FinishReason.stop:
        return FinishReason.tool_calls
    return neutral


def dump_finish(reason: FinishReason | None, original: Any = None) -> str:
    """Returns the Converse `stopReason` for a finish reason: the original one if it was kept."""
    if isinstance(original, str):
        return original
    return _STOP_REASONS.get(reason or FinishReason.stop, "end_turn")


def load_usage(raw: JsonMap) -> Usage | None:
    """Returns the usage of a Converse answer, or None if it has no counts. `inputTokens` are those
    that were neither read from the cache nor written to it; the neutral count has all."""
    counts = {name: raw[name] for name in _COUNTS if type(raw.get(name)) is int}
    if not counts:
        return None
    prompt = [counts[name] for name in (_INPUT, _READ, _WRITE) if name in counts]
    return Usage(
        input_tokens=sum(prompt) if prompt else None,
        output_tokens=counts.get(_OUTPUT),
        total_tokens=counts.get(_TOTAL),
        cache_read_tokens=counts.get(_READ),
        cache_write_tokens=counts.get(_WRITE),
    )


def other_usage(raw: JsonMap) -> Json:
    """Returns what a Converse usage holds beyond the neutral counts."""
    return read_extra_fields(raw, *[name for name in _COUNTS if type(raw.get(name)) is int])


def dump_usage(usage: Usage | None, other: JsonMap) -> Json:
    """Writes usage as the Converse API has it: it demands three counts, which are 0 if unknown.
    `other`: what it held beyond the neutral counts."""
    usage = usage or Usage()
    read, write = usage.cache_read_tokens, usage.cache_write_tokens
    prompt, answer = usage.input_tokens or 0, usage.output_tokens or 0
    if (read or 0) + (write or 0) > prompt:
        # Some providers count what they cached apart. The API has no negative numbers.
        read = write = None
    counts: Json = {
        _INPUT: prompt - (read or 0) - (write or 0),
        _OUTPUT: answer,
        _TOTAL: prompt + answer if usage.total_tokens is None else usage.total_tokens,
    }
    if read is not None:
        counts[_READ] = read
    if write is not None:
        counts[_WRITE] = write
    return {**counts, **other}
