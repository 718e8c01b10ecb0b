"""Reads and writes finish reasons and token counts."""

from __future__ import annotations

from math import isfinite
from typing import Any

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = ["dump_finish", "dump_usage", "load_finish", "load_usage", "other_usage"]

# Of several words for one reason the first is written.
_REASONS = {
    "COMPLETE": FinishReason.stop,
    "STOP_SEQUENCE": FinishReason.stop,
    "MAX_TOKENS": FinishReason.length,
    "TOOL_CALL": FinishReason.tool_calls,
    "ERROR": FinishReason.error,
    "TIMEOUT": FinishReason.error,
}
_FINISH_WORDS = {reason: name for name, reason in reversed(_REASONS.items())}
_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens")


def load_finish(vendor_reason: object, calls: bool) -> FinishReason:
    """Returns the neutral finish reason of a Cohere answer, which stands beside its usage;
    `unspecified` for an unknown one. Calls that wait for a Cohere answer come before a stop."""
    reason = _REASONS.get(str(vendor_reason), FinishReason.unspecified)
    if calls and reason is FinishReason.stop:
        return FinishReason.tool_calls
    return reason


def dump_finish(reason: FinishReason | None, original: Any = None) -> str:
    """Returns the Cohere API's word for a finish reason, which stands beside the usage: the
    original one if it was kept."""
    if isinstance(original, str):
        return original
    return _FINISH_WORDS.get(reason or FinishReason.stop, "COMPLETE")


def load_usage(raw: JsonMap) -> Usage | None:
    """Reads the token counts in Cohere's usage from `tokens`, which counts all of the prompt, or
    else from what is billed. None if there are no counts."""
    counts = if_object(raw.get("tokens")) or if_object(raw.get("billed_units"))
    prompt, answer, reasoning = (_round_count(counts.get(name)) for name in _COUNTS)
    if prompt is None and answer is None:
        return None
    total = None
    if prompt is not None and answer is not None:
        total = prompt + answer
    return Usage(
        input_tokens=prompt,
        output_tokens=answer,
        total_tokens=total,
        cache_read_tokens=_round_count(raw.get("cached_tokens")),
        reasoning_tokens=reasoning,
    )


def other_usage(raw: JsonMap) -> Json:
    """Returns what Cohere's usage holds beyond the neutral counts."""
    tokens = if_object(raw.get("tokens"))
    read = ["tokens", "cached_tokens"]
    # Billed units that repeat the tokens say nothing of their own.
    if tokens and raw.get("billed_units") == _billable(tokens):
        read.append("billed_units")
    beside = read_extra_fields(raw, *read)
    if counts := read_extra_fields(tokens, *_COUNTS):
        beside["tokens"] = counts
    return beside


def dump_usage(usage: Usage | None, other: Any) -> Json:
    """Writes token counts as Cohere's usage. `other`: what the usage held beyond them."""
    usage = usage or Usage()
    counted = zip(
        _COUNTS, (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens), strict=True
    )
    counts = {name: count for name, count in counted if count is not None}
    raw: Json = {**if_object(other)}
    if counts:
        # Clients read the billed units, whatever the provider billed.
        raw = {"billed_units": _billable(counts), **raw}
        raw["tokens"] = {**if_object(raw.get("tokens")), **counts}
    if usage.cache_read_tokens is not None:
        raw["cached_tokens"] = usage.cache_read_tokens
    return raw


def _billable(counts: JsonMap) -> Json:
    """Returns the counts that are billed."""
    return {name: counts[name] for name in _COUNTS[:2] if name in counts}


def _round_count(count: Any) -> int | None:
    """Returns a token count as a whole number, or None if it is none. Cohere sends floats."""
    if isinstance(count, float):
        if isfinite(count):
            return int(count)
        return None
    if isinstance(count, bool) or not isinstance(count, int):
        return None
    return count
