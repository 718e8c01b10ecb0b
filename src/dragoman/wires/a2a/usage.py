"""Tokens, as a text under our extension: a list of entries, as AG-UI has them. States of tasks too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_objects, if_text
from dragoman.message import FinishReason, Usage
from dragoman.wires.a2a.extras import json_of, text_of

__all__ = ["STATES", "TERMINAL", "dump_finish", "dump_usage", "is_over", "load_finish", "load_usage", "state_of"]

_FIELDS: Mapping[str, str] = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "total_tokens": "totalTokens",
    "reasoning_tokens": "reasoningTokens",
    "cache_read_tokens": "cachedInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
}
TERMINAL = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED")
"""States in which nothing more comes of a task."""
_WAITING = ("TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED")
STATES = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", *TERMINAL, *_WAITING)
"""States of a task."""
_FINISH: Mapping[str, FinishReason] = {
    "TASK_STATE_COMPLETED": FinishReason.stop,
    "TASK_STATE_FAILED": FinishReason.error,
    "TASK_STATE_CANCELED": FinishReason.cancelled,
    "TASK_STATE_REJECTED": FinishReason.refusal,
    "TASK_STATE_INPUT_REQUIRED": FinishReason.stop,
    "TASK_STATE_AUTH_REQUIRED": FinishReason.stop,
}


def state_of(value: Any) -> str:
    """The name of a state as 1.0 has it, from any version's: `input-required` is `TASK_STATE_INPUT_REQUIRED`; else empty."""
    name = if_text(value)
    if not name.startswith("TASK_STATE_"):
        name = f"TASK_STATE_{name.upper().replace('-', '_')}"
    return name if name in STATES else ""


def is_over(state: str) -> bool:
    """Whether a turn ends in that state: the task does, or waits for its client."""
    return state in TERMINAL or state in _WAITING


def load_finish(state: str) -> FinishReason | None:
    """Why an answer ended, as far as the state of its task tells; `None`: it goes on."""
    return _FINISH.get(state)


def dump_finish(reason: FinishReason | None) -> str:
    """The inverse."""
    if reason is FinishReason.error:
        return "TASK_STATE_FAILED"
    return "TASK_STATE_CANCELED" if reason is FinishReason.cancelled else "TASK_STATE_COMPLETED"


def dump_usage(usage: Usage | None) -> dict[str, str]:
    """The field `usage`; none where nothing is known."""
    fields = {theirs: n for ours, theirs in _FIELDS.items() if (n := getattr(usage, ours, None)) is not None}
    return {"usage": text_of([fields])} if fields else {}


def load_usage(fields: Mapping[str, str]) -> Usage | None:
    """The inverse: the sum of the entries."""
    total: Usage | None = None
    for entry in if_objects(json_of(fields.get("usage"))):
        counts = {ours: n for ours, theirs in _FIELDS.items() if _is_count(n := entry.get(theirs))}
        read = Usage(**counts)
        total = read if total is None else total + read
    return total


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
