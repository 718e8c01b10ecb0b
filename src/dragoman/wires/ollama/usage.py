"""Reads and writes how an answer ended: `done_reason`, counts, and the further fields of its
lines."""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_list, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage

__all__ = ["add_fields", "dump_finish", "dump_usage", "load_finish", "load_usage"]

_REASONS = {"stop": FinishReason.stop, "length": FinishReason.length}
_FINISH_WORDS = {reason: name for name, reason in _REASONS.items()}
_READ = (
    "message",
    "response",
    "thinking",
    "tool_calls",
    "model",
    "done",
    "done_reason",
    "prompt_eval_count",
    "eval_count",
)
"""Fields of a line that are read elsewhere. `response` and `thinking` belong to `/api/generate`."""


def load_finish(name: str | None, calls: bool) -> FinishReason:
    """Returns the neutral finish reason of Ollama's `done_reason`. `load`, `unload` and unknown
    reasons are `unspecified`."""
    reason = _REASONS.get(name or "", FinishReason.unspecified)
    asks = calls and (name is None or reason is FinishReason.stop)
    if asks:
        return FinishReason.tool_calls
    return reason


def dump_finish(reason: FinishReason | None, original: Any = None) -> str | None:
    """Returns Ollama's `done_reason`: the original one if it was kept, and None for an unknown
    reason."""
    if isinstance(original, str):
        return original
    if reason is FinishReason.unspecified:
        return None
    return _FINISH_WORDS.get(reason or FinishReason.stop, "stop")


def load_usage(fields: JsonMap) -> Usage | None:
    """Reads the token counts (usage) of an Ollama answer. A prompt that was all in the cache may
    have none."""
    counts = {
        "input_tokens": fields.get("prompt_eval_count"),
        "output_tokens": fields.get("eval_count"),
    }
    counts = {name: count for name, count in counts.items() if type(count) is int}
    if not counts:
        return None
    if len(counts) == 2:
        counts["total_tokens"] = sum(counts.values())
    return Usage(**counts)


def dump_usage(usage: Usage | None) -> dict[str, int]:
    """Writes the token counts of Ollama's answer that are known."""
    counts: dict[str, int] = {}
    if usage is not None and usage.input_tokens is not None:
        counts["prompt_eval_count"] = usage.input_tokens
    if usage is not None and usage.output_tokens is not None:
        counts["eval_count"] = usage.output_tokens
    return counts


def add_fields(fields: Json, line: JsonMap) -> None:
    """Adds the fields of an Ollama line beside its message, such as its counts. Lists of log
    probabilities grow; of all else the last value counts."""
    for name, value in read_extra_fields(line, *_READ).items():
        if name == "logprobs":
            fields.setdefault(name, []).extend(if_list(value))
        elif value is not None:
            fields[name] = value
