"""Stop reasons and counts of tokens, both ways."""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_object
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = ["dump_finish", "dump_usage", "load_finish", "load_usage", "other_usage"]

# The first of each kind is what is written.
_REASONS = {
    "end_turn": FinishReason.stop,
    "stop_sequence": FinishReason.stop,
    "max_tokens": FinishReason.length,
    "model_context_window_exceeded": FinishReason.length,
    "tool_use": FinishReason.tool_calls,
    "pause_turn": FinishReason.pause,
    # It has summed up the conversation; sent again with the summary, it goes on.
    "compaction": FinishReason.pause,
    "refusal": FinishReason.refusal,
}
_SENT = {reason: name for name, reason in reversed(_REASONS.items())} | {
    FinishReason.content_filter: "refusal",
    FinishReason.recitation: "refusal",
}
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


def load_finish(reason: str | None) -> FinishReason:
    """Converts a stop reason to the neutral one; `unspecified` for one that is not known."""
    return _REASONS.get(reason or "", FinishReason.unspecified)


def dump_finish(reason: FinishReason | None, original: Any = None) -> str:
    """Converts the neutral reason to Anthropic's `stop_reason`: the original one where it means the
    same."""
    # The decoder notes `tool_calls` for any answer with open calls, whatever the provider said.
    if isinstance(original, str) and (
        load_finish(original) is reason or reason is FinishReason.tool_calls
    ):
        return original
    return _SENT.get(reason or FinishReason.stop, "end_turn")


def load_usage(raw: JsonMap) -> Usage | None:
    """Returns the usage of an Anthropic answer, whose `input_tokens` do not count what was read
    from or written to the cache. None if there are no counts."""
    fresh, output, read, write = (_count(raw.get(name)) for name in _COUNTS)
    counts = [count for count in (fresh, read, write) if count is not None]
    total_input = sum(counts) if counts else None
    reasoning = _details(raw).get("thinking_tokens")
    if total_input is None and output is None:
        return None
    # The API tells no total. With one half unknown there is none.
    total = None
    if total_input is not None and output is not None:
        total = total_input + output
    return Usage(
        input_tokens=total_input,
        output_tokens=output,
        total_tokens=total,
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=_count(reasoning),
    )


def other_usage(raw: JsonMap) -> Json:
    """Returns Anthropic's usage beyond the neutral counts."""
    other_counts = {
        key: value for key, value in raw.items() if key not in _COUNTS and value is not None
    }
    # Nothing in it is beyond the neutral counts.
    if set(_details(raw)) == {"thinking_tokens"}:
        del other_counts["output_tokens_details"]
    return other_counts


def dump_usage(usage: Usage | None, other: Any) -> Json:
    """Converts usage to as the Anthropic API has it. What is not known is 0 where the API demands a
    number."""
    usage = usage or Usage()
    read, write = usage.cache_read_tokens, usage.cache_write_tokens
    raw: Json = {
        **if_object(other),
        # The API counts what came from the cache or went there apart; the neutral count has all.
        "input_tokens": (usage.input_tokens or 0) - (read or 0) - (write or 0),
        "output_tokens": usage.output_tokens or 0,
    }
    if read is not None:
        raw["cache_read_input_tokens"] = read
    if write is not None:
        raw["cache_creation_input_tokens"] = write
    if usage.reasoning_tokens is not None:
        raw["output_tokens_details"] = {
            **_details(if_object(other)),
            "thinking_tokens": usage.reasoning_tokens,
        }
    return raw


def _count(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return None


def _details(raw: JsonMap) -> JsonMap:
    return if_object(raw.get("output_tokens_details"))
