"""Finish reasons and counts of tokens, both ways."""

from __future__ import annotations

from math import isfinite
from typing import Any

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = ["dump_finish", "dump_usage", "load_finish", "load_usage", "other_usage"]

# the first of each kind is what is written
_REASONS = {
    "COMPLETE": FinishReason.stop,
    "STOP_SEQUENCE": FinishReason.stop,
    "MAX_TOKENS": FinishReason.length,
    "TOOL_CALL": FinishReason.tool_calls,
    "ERROR": FinishReason.error,
    "TIMEOUT": FinishReason.error,
}
_SENT = {reason: name for name, reason in reversed(_REASONS.items())}
_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens")


def load_finish(vendor_reason: object, calls: bool) -> FinishReason:
    """A finish reason → the neutral one; `unspecified` for one that is not known."""
    reason = _REASONS.get(str(vendor_reason), FinishReason.unspecified)
    return FinishReason.tool_calls if calls and reason is FinishReason.stop else reason


def dump_finish(reason: FinishReason | None, original: Any = None) -> str:
    """The neutral reason → a finish reason: the original one where it was kept."""
    return (
        original
        if isinstance(original, str)
        else _SENT.get(reason or FinishReason.stop, "COMPLETE")
    )


def load_usage(raw: JsonMap) -> Usage | None:
    """Usage by `tokens`, which counts all of the prompt; where it is missing, by what is billed.
    `None`: there are no counts."""
    counts = if_object(raw.get("tokens")) or if_object(raw.get("billed_units"))
    prompt, answer, reasoning = (_whole(counts.get(name)) for name in _COUNTS)
    if prompt is None and answer is None:
        return None
    return Usage(
        input_tokens=prompt,
        output_tokens=answer,
        total_tokens=None if prompt is None or answer is None else prompt + answer,
        cache_read_tokens=_whole(raw.get("cached_tokens")),
        reasoning_tokens=reasoning,
    )


def other_usage(raw: JsonMap) -> Json:
    """What the provider's usage holds beyond the neutral counts."""
    tokens = if_object(raw.get("tokens"))
    same = bool(tokens) and raw.get("billed_units") == _billable(tokens)
    beside = read_extra_fields(raw, "tokens", "cached_tokens", *(["billed_units"] if same else []))
    counts = read_extra_fields(tokens, *_COUNTS)
    return {**beside, **({"tokens": counts} if counts else {})}


def dump_usage(usage: Usage | None, other: Any) -> Json:
    """Usage → as the API has it."""
    usage = usage or Usage()
    counted = zip(
        _COUNTS, (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens), strict=True
    )
    counts = {name: count for name, count in counted if count is not None}
    raw: Json = {**if_object(other)}
    if counts:
        # which clients read, whatever is billed
        raw = {"billed_units": _billable(counts), **raw}
        raw["tokens"] = {**if_object(raw.get("tokens")), **counts}
    if usage.cache_read_tokens is not None:
        raw["cached_tokens"] = usage.cache_read_tokens
    return raw


def _billable(counts: JsonMap) -> Json:
    return {name: counts[name] for name in _COUNTS[:2] if name in counts}


def _whole(count: Any) -> int | None:
    if isinstance(count, float):
        return int(count) if isfinite(count) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None
